"""A base on an object store (the paper's Algorithm 2, "armazenamento de objetos").

List, write an object whose *name* is the signed entry, list again: three accesses; a fourth deletes the old object of a
renewal. Needs listings that show what was written before. Two writers can make each other give up, so by itself it is
only obstruction-free; with tickets the smaller one keeps its object and looks again, and the larger deletes.

Against the print: the second listing is judged by its own time (printed: by the first one's, ``lease/E15``); names have
a nonce, so a renewal never overwrites (``lease/E10``); our own later attempt is never taken for an old lease of ours
(``lease/E4``); an unknown key counts as held (``lease/E9``).

A token is an object as well, written while we hold; whoever holds next removes the older ones. There is no atomic
comparison: the token counts only because our lease, judged again after the write, kept everybody else away.
"""

from trinco.leases.accesses import Access, Delete, Done, List, Put
from trinco.leases.bases.listed import Listed, Ours, Verdict
from trinco.leases.operation import FAILED, Answer, Commit, Extend, Grade, Request
from trinco.leases.plan import Outcome
from trinco.leases.row import Kind, Named, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from trinco.leases.plan import Steps


class ObjectStore(Listed):
    __slots__ = ()
    fences = True

    def add(self, named: Named) -> Access:
        return Put(named)

    def key_of(self, named: Named, reply: "Any") -> "Any":
        return named if isinstance(reply, Done) else None

    def verdict(self, rows: tuple[Row, ...], key: "Any", request: "Request | Extend") -> Verdict:
        rivals = self.rivals(rows, request.claim)
        if not any(row.key == key for row in rows):
            return Verdict.LOST
        if not rivals:
            return Verdict.WON
        ticket = getattr(request, "ticket", None)
        gives_way = ticket is not None and all(self._is_larger(row, ticket, request.claim.owner) for row in rivals)
        return Verdict.AGAIN if gives_way else Verdict.LOST

    def _is_larger(self, row: Row, ticket: int, owner: "Any") -> bool:
        if row.named.kind is not Kind.HELD:
            return False
        return row.named.ticket is None or (row.named.ticket, row.named.claim.owner) > (ticket, owner)

    def fence(self, operation: "Request | Commit", rows: tuple[Row, ...]) -> "Generator[Access, Any, Answer]":
        tokens = [row for row in rows if row.is_token]
        largest = max(tokens, key=lambda row: row.named.token or 0, default=None)
        token = operation.token
        assert isinstance(token, int)
        if largest is not None and (largest.named.token or 0) >= token:
            return Answer(Grade.TENTATIVE, evidence=largest.named.entry)
        named = Named(Kind.TOKEN, operation.claim, 0, None, 0, token, operation.entry)
        if not isinstance((yield Put(named)), Done):
            return FAILED
        for row in tokens:
            yield Delete(row.key)
        return Answer(Grade.COMMITTED, token)

    def commit(self, commit: Commit) -> "Steps":
        rows = self.rows((yield List()))
        if rows is None:
            return Outcome(FAILED)
        standing = self.standing(rows, commit.claim)
        if not standing:
            return Outcome(Answer(Grade.GONE))
        answer = yield from self.fence(commit, rows)
        memory = Ours(commit.claim, tuple(row.key for row in standing))
        return Outcome(answer if answer.grade is Grade.COMMITTED else answer.but(grade=Grade.REFUSED), memory)
