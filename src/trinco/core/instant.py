"""A point on one node's own clock.

Two hosts' clocks never agree, so an instant must not leave the node that read it: answers carry *remaining* seconds,
writes carry a *ttl*. Within a node, keep deadlines (``ctx.now() + ttl``), not stamps: the model checker counts every
instant down towards now, which is exact as long as instants are only compared with now and with each other.

A plain class, and not an ``int``: mypy then refuses to add two instants, and the blocking path of ``trinco run`` stays
free of ``dataclasses``. A deadline has come when ``deadline <= now``, and not before: the checker keeps of the past
only that it is past, so there ``deadline < now`` has no answer.
"""


class Instant:
    """``Instant + seconds -> Instant``, ``Instant - Instant -> seconds``, ordered, hashable."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at

    def __add__(self, seconds: float) -> "Instant":
        return Instant(self.at + seconds)

    def __sub__(self, other: "Instant") -> float:
        return self.at - other.at

    def __lt__(self, other: "Instant") -> bool:
        return self.at < other.at

    def __le__(self, other: "Instant") -> bool:
        return self.at <= other.at

    def __gt__(self, other: "Instant") -> bool:
        return self.at > other.at

    def __ge__(self, other: "Instant") -> bool:
        return self.at >= other.at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and self.at == other.at

    def __hash__(self) -> int:
        return hash((Instant, self.at))

    def __repr__(self) -> str:
        return f"Instant({self.at!r})"
