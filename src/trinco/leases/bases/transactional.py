"""A base on a transactional store (the paper's Algorithm 5, "bases de dados transaccionais").

Begin, look up, write, commit: four accesses, for acquire, renew and release alike. Needs serializable transactions over
one row a lock: with a row a client, or under snapshot isolation, two clients that each see no lease can both commit one
(``lease/E24``). Deadlock-free. A transaction that changes nothing, or in which anything goes wrong, is aborted.

Against the print: the comparison of expiry is turned round, as in Algorithm 4 (``lease/E0``).
"""

from trinco.core.value import Value
from trinco.leases.accesses import Abort, Begin, CommitTransaction, Done, Read, Write, Written
from trinco.leases.bases.conditional import CONFLICT, Judge, is_readable, tries, without_forged
from trinco.leases.item import NO_LIMITS, Limits
from trinco.leases.operation import FAILED, Answer, Operation
from trinco.leases.plan import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.leases.plan import Steps


class Transactional(Value):
    __slots__ = ("judge", "limits")
    fences = True
    counts = True
    hands_over = False

    def __init__(self, limits: Limits = NO_LIMITS, judge: Judge = Judge()) -> None:
        self.limits = limits
        self.judge = judge

    def steps(self, operation: Operation, memory: "Any" = None) -> "Steps":
        for _ in range(tries(operation)):
            outcome: Outcome = yield from self._transaction(operation)
            if outcome.answer is not CONFLICT:
                break
        return outcome

    def _transaction(self, operation: Operation) -> "Steps":
        begun: Any = yield Begin()
        if not isinstance(begun, Done):
            return Outcome(FAILED)
        read: Any = yield Read()
        if not is_readable(read):
            return (yield from self._aborted(FAILED))
        before = without_forged(read.item, self.judge)
        item, answer, _ = before.apply(operation, read.now, self.limits)
        if item == before.settled(read.now):
            return (yield from self._aborted(answer))
        written: Any = yield Write(item)
        if not isinstance(written, Done):
            return (yield from self._aborted(FAILED))
        committed: Any = yield CommitTransaction()
        if not isinstance(committed, Written):
            return Outcome(FAILED)
        return Outcome(answer.but(granularity=read.granularity) if committed.ok else CONFLICT)

    def _aborted(self, answer: Answer) -> "Steps":
        yield Abort()
        return Outcome(answer)
