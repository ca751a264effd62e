"""Which stores of a quorum to ask first.

All clients begin with the same ones: where they meet early, they part early. Who failed, or was late, goes last for a
while.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trinco.stores.store import Link

FORGIVEN_AFTER = 30.0


class Preference:
    """``order``: the bases, in the order in which they are asked."""

    __slots__ = ("_clock", "_forgiven_at", "_usual", "order")

    def __init__(self, bases: int, clock: "Callable[[], float]") -> None:
        self._clock = clock
        self._usual = list(range(bases))
        self._forgiven_at = 0.0
        self.order = list(self._usual)

    def first(self, how_many: int, links: "Sequence[Link | None]") -> list[int]:
        """Of those that are connected."""
        if self.order != self._usual and self._clock() > self._forgiven_at:
            self.order = list(self._usual)
        return [base for base in self.order if links[base] is not None][:how_many]

    def demote(self, base: int) -> None:
        self.order.remove(base)
        self.order.append(base)
        self._forgiven_at = self._clock() + FORGIVEN_AFTER
