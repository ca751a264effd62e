"""A base algorithm at work, as a value.

An algorithm is written as a generator: it yields accesses and is sent the replies. A live generator cannot be compared,
hashed or put back, so nobody keeps one: a :class:`Plan` is the operation and the replies so far, and ``step`` runs the
generator through them again (a microsecond). The checker interns plans; the blocking and the async shell step them just
the same.
"""

from trinco.core.value import Value
from trinco.leases.accesses import Access, Reply
from trinco.leases.operation import FAILED, Answer, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, Protocol, TypeAlias

    from trinco.core.instant import Instant

    Steps: TypeAlias = Generator[Access, Reply, "Outcome"]

    class Algorithm(Protocol):
        """How to do an operation on one kind of store. ``memory`` is what the last operation there left."""

        fences: bool
        counts: bool
        hands_over: bool

        def steps(self, operation: Operation, memory: Any) -> Steps: ...


class Outcome(Value):
    """The end of a plan: the base's answer, and what the next plan on this base may want to know (``memory``)."""

    __slots__ = ("answer", "memory")

    def __init__(self, answer: Answer, memory: "Any" = None) -> None:
        self.answer = answer
        self.memory = memory


class Plan(Value):
    """``until``: how long the client may believe if this operation is granted, counted from before its first
    access."""

    __slots__ = ("memory", "operation", "replies", "until")

    def __init__(
        self,
        operation: Operation,
        until: "Instant | None" = None,
        memory: "Any" = None,
        replies: tuple[Reply, ...] = (),
    ) -> None:
        self.operation = operation
        self.until = until
        self.memory = memory
        self.replies = replies

    def step(self, algorithm: "Algorithm") -> "Access | Outcome":
        """The next access, or the outcome. Whatever a store says, it can at worst fail the operation."""
        quick = getattr(algorithm, "step", None)  # one access needs no generator
        if quick is not None:
            found: Access | Outcome = quick(self.operation, self.replies)
            return found
        steps = algorithm.steps(self.operation, self.memory)
        try:
            access = next(steps)
            for reply in self.replies:
                access = steps.send(reply)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
            if not self.replies:
                raise
            return Outcome(FAILED)
        return access

    def told(self, reply: Reply) -> "Plan":
        return Plan(self.operation, self.until, self.memory, (*self.replies, reply))
