"""What the two bases that list have in common: the object store and the queue.

Look, write, look again: an entry counts once a listing taken *after* it was written shows nobody in its way. Rows are
judged by the time of the listing they stand in, never by an earlier one (``lease/E15``). A waiter is a row of its own.
"""

from enum import Enum

from trinco.core.value import Value
from trinco.leases.accesses import Access, Delete, Done, List, Listing
from trinco.leases.bases.conditional import Judge
from trinco.leases.claim import Claim
from trinco.leases.item import Limits
from trinco.leases.operation import FAILED, Answer, Commit, Extend, Grade, Operation, Release, Request, Yield
from trinco.leases.plan import Outcome
from trinco.leases.row import Kind, Named, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, TypeAlias

    from trinco.leases.plan import Steps

    Rows: TypeAlias = tuple[Row, ...]
    Keys: TypeAlias = tuple[Any, ...]

LOOKS_AGAIN = 2
"""How often a smaller ticket waits for the larger one it met to give way."""
MANY_ROWS = 4096
"""A listing with more is no listing: whoever sends it wants to hurt."""


class Verdict(Enum):
    WON = 1
    LOST = 2
    AGAIN = 3


class Ours(Value):
    """What an operation leaves for the next one here: the keys of all that a claim has in the store."""

    __slots__ = ("claim", "keys")

    def __init__(self, claim: Claim, keys: "Keys") -> None:
        self.claim = claim
        self.keys = keys


class Listed(Value):
    """Where ``memory`` is None, or about another claim, we cannot be sure what of ours is in the store."""

    __slots__ = ("judge", "limits")
    fences = False
    """Whether this kind of store keeps a token."""
    counts = False
    """Whether it can count tokens up by itself."""
    hands_over = False
    """Whether it gives what is let go of to the first in line, and says so."""

    def __init__(self, limits: Limits = Limits(), judge: Judge = Judge()) -> None:
        self.limits = limits
        self.judge = judge

    def steps(self, operation: Operation, memory: "Any" = None) -> "Steps":
        if isinstance(operation, Request):
            return self.request(operation)
        if isinstance(operation, Extend):
            return self.extend(operation)
        if isinstance(operation, Yield):
            return self.yield_(operation, self._keys(memory, operation))
        if isinstance(operation, Commit):
            return self.commit(operation)
        assert isinstance(operation, Release)
        return self.release(operation, self._keys(memory, operation))

    def _keys(self, memory: "Any", operation: Operation) -> "Keys | None":
        """What we know to be ours by this very claim. The keys of a later attempt are none of its business (E8)."""
        return memory.keys if isinstance(memory, Ours) and memory.claim == operation.claim else None

    # What the two stores do differently

    def add(self, named: Named) -> Access:
        raise NotImplementedError

    def key_of(self, named: Named, reply: "Any") -> "Any":
        """What deletes a row that was just added; None if the reply makes no sense."""
        raise NotImplementedError

    def verdict(self, rows: "Rows", key: "Any", request: "Request | Extend") -> Verdict:
        """Of a listing that was taken after our row was written."""
        raise NotImplementedError

    def fence(self, operation: "Request | Commit", rows: "Rows") -> "Generator[Access, Any, Answer]":
        """The answer to a grant, with its token if this kind of store keeps tokens."""
        return Answer(Grade.COMMITTED)
        yield

    def commit(self, commit: Commit) -> "Steps":
        return Outcome(FAILED)
        yield

    # The operations

    def request(self, request: Request) -> "Steps":
        rows = self.rows((yield List()))
        if rows is None:
            return Outcome(FAILED)
        standing = self.standing(rows, request.claim)
        overtaken = not standing and self.smaller(rows, request.claim, request.ticket)
        if overtaken or self.in_the_way(rows, request):
            return (yield from self._wait(rows, request))
        return (yield from self._enter(request, standing))

    def extend(self, extend: Extend) -> "Steps":
        rows = self.rows((yield List()))
        if rows is None:
            return Outcome(FAILED)
        standing = self.standing(rows, extend.claim)
        if not standing:
            held = (row.remaining(self.limits.t_max) for row in rows if row.named.kind is Kind.HELD)
            return Outcome(Answer(Grade.GONE, remaining=max(held, default=0)), Ours(extend.claim, ()))
        return (yield from self._enter(extend, standing))

    def _enter(self, operation: "Request | Extend", standing: "Rows") -> "Steps":
        """Write a row, look again, and take it back if somebody is in the way. What stood before stands until the new
        row has won: a renewal that fails leaves the old term alone (``lease/E10``)."""
        named = self.named(operation, standing)
        key = self.key_of(named, (yield self.add(named)))
        if key is None:
            return Outcome(FAILED)
        rows, verdict, granularity = yield from self._look(key, operation)
        if rows is None:
            return Outcome(FAILED)
        lapsed = standing and not self.standing_still(rows, standing)
        if verdict is not Verdict.WON or lapsed:
            return (yield from self._step_back(operation, rows, key, standing))
        for row in self.leftovers(rows, key, operation.claim):
            yield Delete(row.key)
        answer = Answer(Grade.COMMITTED)
        if isinstance(operation, Request) and operation.token is not None:
            answer = yield from self.fence(operation, rows)
        ticket = operation.ticket if isinstance(operation, Request) else None
        smaller = self.smaller(rows, operation.claim, ticket)
        answer = answer.but(smaller=smaller, remaining=operation.ttl, granularity=granularity)
        return Outcome(answer, Ours(operation.claim, (key,)))

    def _step_back(self, operation: "Request | Extend", rows: "Rows", key: "Any", standing: "Rows") -> "Steps":
        """Somebody was in the way. Who has a ticket says so before it leaves, so that a larger one lets it pass."""
        keys: Keys | None = tuple(row.key for row in standing)
        if isinstance(operation, Request) and operation.wait and operation.ticket is not None:
            yield from self._say_that_we_wait(rows, operation)
            keys = None
        yield Delete(key)
        remaining = max((row.remaining(self.limits.t_max) for row in self.rivals(rows, operation.claim)), default=0)
        return Outcome(Answer(Grade.REFUSED, None, remaining), None if keys is None else Ours(operation.claim, keys))

    def _look(
        self, key: "Any", operation: "Request | Extend"
    ) -> "Generator[Access, Any, tuple[Rows | None, Verdict, float]]":
        """The last listing that was taken, what it says about our row, and how coarse its times are."""
        for _ in range(1 + LOOKS_AGAIN):
            listing = yield List()
            rows = self.rows(listing)
            verdict = Verdict.LOST if rows is None else self.verdict(rows, key, operation)
            if verdict is not Verdict.AGAIN:
                break
        return rows, verdict, 0 if rows is None else listing.granularity

    def named(self, operation: "Request | Extend", standing: "Rows") -> Named:
        renewal = 1 + max((row.named.renewal for row in standing), default=-1)
        ticket, entry = standing[0].named.ticket if standing else None, None
        if isinstance(operation, Request):
            ticket, entry = operation.ticket, operation.entry
        return Named(Kind.HELD, operation.claim, operation.ttl, ticket, renewal, None, entry)

    def _wait(self, rows: "Rows", request: Request) -> "Steps":
        """Refused; remembered as a waiter where that was asked for."""
        if request.wait and request.ticket is not None:
            yield from self._say_that_we_wait(rows, request)
        blocking = self.rivals(rows, request.claim)
        remaining = max((row.remaining(self.limits.t_max) for row in blocking), default=0)
        smaller = self.smaller(rows, request.claim, request.ticket)
        ticket = self.largest_ticket(rows, request.claim)
        memory = None if request.wait else Ours(request.claim, ())
        return Outcome(Answer(Grade.REFUSED, None, remaining, smaller, None, ticket), memory)

    def _say_that_we_wait(self, rows: "Rows", request: Request) -> "Generator[Access, Any, None]":
        """A row of our own among those who wait; renewed when half its time is over."""
        waiting = [row for row in rows if row.named.kind is Kind.WAITING and row.named.claim == request.claim]
        if not any(row.age * 2 < request.wait for row in waiting):
            renewal = 1 + max((row.named.renewal for row in waiting), default=-1)
            yield self.add(self._waiting(request, renewal))
            for row in waiting:
                yield Delete(row.key)

    def _waiting(self, operation: "Request | Yield", renewal: int = 0) -> Named:
        return Named(Kind.WAITING, operation.claim, operation.wait, operation.ticket, renewal, None, operation.entry)

    def yield_(self, operation: Yield, memory: "Keys | None") -> "Steps":
        deleted = yield from self._delete(operation.claim, memory)
        if not deleted:
            return Outcome(FAILED)
        if operation.wait and operation.ticket is not None:
            yield self.add(self._waiting(operation))
        return Outcome(Answer(Grade.DONE))

    def release(self, release: Release, memory: "Keys | None") -> "Steps":
        deleted = yield from self._delete(release.claim, None if release.renewals else memory)
        return Outcome(Answer(Grade.DONE) if deleted else FAILED, Ours(release.claim, ()) if deleted else None)

    def _delete(self, claim: Claim, keys: "Keys | None") -> "Generator[Access, Any, bool]":
        """Our own rows and nobody else's (``lease/E11``)."""
        if keys is None:
            rows = self.rows((yield List()))
            if rows is None:
                return False
            keys = tuple(row.key for row in rows if row.is_of(claim) and row.named.claim == claim and not row.is_token)
        for key in keys:
            if not isinstance((yield Delete(key)), Done):
                return False
        return True

    # Who is in whose way

    def rows(self, reply: "Any") -> "Rows | None":
        """What a listing shows, without what is forged; None if it is none."""
        if not isinstance(reply, Listing) or len(reply.rows) > MANY_ROWS:
            return None
        return tuple(row for row in reply.rows if not self.judge.is_forged(row.named.entry))

    def rivals(self, rows: "Rows", claim: Claim) -> "Rows":
        """Live entries of others that hold, or that we cannot read."""
        t_max = self.limits.t_max
        kinds = (Kind.HELD, Kind.UNKNOWN)
        return tuple(row for row in rows if not row.is_of(claim) and row.named.kind in kinds and row.is_live(t_max))

    def in_the_way(self, rows: "Rows", operation: Operation) -> bool:
        """A rival, or a later attempt of our own (``lease/E4``)."""
        later = any(row.is_of(operation.claim) and operation.claim.is_older_than(row.named.claim) for row in rows)
        return later or bool(self.rivals(rows, operation.claim))

    def smaller(self, rows: "Rows", claim: Claim, ticket: int | None) -> bool:
        """Whether somebody else with a smaller ticket waits. No ticket is larger than any."""
        t_max = self.limits.t_max
        waiting = [row.named for row in rows if row.named.kind is Kind.WAITING and row.is_live(t_max)]
        others = [named for named in waiting if named.claim.owner != claim.owner and named.ticket is not None]
        return any(ticket is None or _rank(named) < (ticket, claim.owner) for named in others)

    def largest_ticket(self, rows: "Rows", claim: Claim) -> "Any":
        tickets = [row.named for row in rows if not row.is_of(claim) and row.named.ticket is not None]
        return max(tickets, key=_rank).entry if tickets else None

    def standing(self, rows: "Rows", claim: Claim) -> "Rows":
        """What we already hold, live, by this very claim."""
        t_max = self.limits.t_max
        held = (row for row in rows if row.named.kind is Kind.HELD and row.is_live(t_max))
        return tuple(row for row in held if row.named.claim == claim)

    def standing_still(self, rows: "Rows", standing: "Rows") -> bool:
        """Whether what stood before still does: without a gap, or it is no renewal (``lease/E23``)."""
        live = {row.key for row in rows if row.is_live(self.limits.t_max)}
        return any(row.key in live for row in standing)

    def leftovers(self, rows: "Rows", key: "Any", claim: Claim) -> "Rows":
        """Our own older rows, of this attempt and of earlier ones."""
        mine = (row for row in rows if row.is_of(claim) and not row.is_token and row.key != key)
        return tuple(row for row in mine if not claim.is_older_than(row.named.claim))


def _rank(named: Named) -> "tuple[int, Any]":
    assert named.ticket is not None
    return named.ticket, named.claim.owner
