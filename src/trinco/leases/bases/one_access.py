"""A base in one access: the store runs ``Item.apply`` itself, in a script, a stored procedure or a transaction.

What most stores of today can do (conditional create, Lua, ``INSERT .. ON CONFLICT``); the paper's four kinds need two
to four accesses. Acquire, renew, commit and release: one access each.
"""

from trinco.core.value import Value
from trinco.leases.accesses import Apply
from trinco.leases.item import NO_LIMITS, Limits
from trinco.leases.operation import FAILED, Answer, Operation
from trinco.leases.plan import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.leases.plan import Steps


class OneAccess(Value):
    __slots__ = ()
    fences = True
    counts = True
    hands_over = False

    def __init__(self, limits: Limits = NO_LIMITS) -> None:
        """The store keeps the limits by itself."""

    def step(self, operation: Operation, replies: "tuple[Any, ...]") -> "Apply | Outcome":
        if not replies:
            return Apply(operation)
        answer = replies[0]
        return Outcome(answer if isinstance(answer, Answer) and answer.makes_sense() else FAILED)

    def steps(self, operation: Operation, memory: "Any" = None) -> "Steps":
        """For whoever drives generators: tests, and those who compare the bases."""
        answer = yield Apply(operation)
        outcome = self.step(operation, (answer,))
        assert isinstance(outcome, Outcome)
        return outcome
