"""A base on a store that compares and sets (the paper's Algorithm 4, "bases de dados NoSQL").

Read the item, decide, write it back if nobody has written since: two accesses. Deadlock-free: of two that read the same
version one succeeds. Release: one access with the version that our own last write made; two if somebody wrote since.

Against the print: a lease is live while ``expiration > cloudTime`` (printed the other way round: ``lease/E0``); an
entry whose key we lack counts as held (``lease/E9``); one item a lock, not one for the whole table; release compares
(``lease/E8``) and leaves a tombstone that keeps the token.
"""

from trinco.core.value import Value
from trinco.leases.accesses import CompareAndSet, Read, Versioned, Written
from trinco.leases.item import NO_LIMITS, Item, Limits
from trinco.leases.operation import FAILED, Answer, Grade, Operation, Release, Request
from trinco.leases.plan import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.leases.plan import Steps

CONFLICT = Answer(Grade.REFUSED)
TRIES = 3
MANY_WAITERS = 4096
"""An item with more is none: whoever sends it wants to hurt."""


class Judge(Value):
    """Which entries can be ignored: none, unless keys are in use."""

    __slots__ = ()

    def is_forged(self, entry: "Any") -> bool:
        return False


class Conditional(Value):
    __slots__ = ("judge", "limits")
    fences = True
    counts = True
    hands_over = False

    def __init__(self, limits: Limits = NO_LIMITS, judge: Judge = Judge()) -> None:
        self.limits = limits
        self.judge = judge

    def steps(self, operation: Operation, memory: "Any" = None) -> "Steps":
        releases = isinstance(operation, Release)
        if releases and isinstance(memory, Versioned):
            outcome: Outcome = yield from self._written(memory, operation)
            if outcome.answer is not CONFLICT:
                return outcome
        for _ in range(tries(operation)):
            read: Any = yield Read()
            if not is_readable(read):
                return Outcome(FAILED)
            outcome = yield from self._written(read, operation)
            if outcome.answer is not CONFLICT:
                break
        return outcome

    def _written(self, read: Versioned, operation: Operation) -> "Steps":
        """Apply the operation to what was read, and write what came of it."""
        before = without_forged(read.item, self.judge)
        item, answer, _ = before.apply(operation, read.now, self.limits)
        if item == before.settled(read.now):
            return Outcome(answer)
        written: Any = yield CompareAndSet(read.version, item)
        if not isinstance(written, Written):
            return Outcome(FAILED)
        if not written.ok:
            return Outcome(CONFLICT)
        return Outcome(answer.but(granularity=read.granularity), Versioned(item, written.version, read.now))


def tries(operation: Operation) -> int:
    """A request that meets a conflict is refused, and asked again when its time comes. Whoever holds already must not
    be pushed out, or kept in, by those who write that they wait."""
    return 1 if isinstance(operation, Request) else TRIES


def is_readable(read: object) -> bool:
    """Whether this is a read at all, and not one with more waiters than any store would keep."""
    return isinstance(read, Versioned) and len(read.item.waiters) <= MANY_WAITERS


def without_forged(item: Item, judge: Judge) -> Item:
    """An entry that names a key of ours and fails is nobody's. One that names a key we lack is somebody's."""
    if item.holder is not None and judge.is_forged(item.holder.entry):
        item = item.but(holder=None)
    if any(judge.is_forged(each.entry) for each in item.waiters):
        item = item.but(waiters=tuple(each for each in item.waiters if not judge.is_forged(each.entry)))
    return item
