"""Faults, as a schedule or drawn by the seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trinco.core.errors import UsageError


@dataclass(frozen=True)
class Crash:
    """The node falls silent. With ``after_sends`` it dies in the middle of a multi-send: at the first step from ``at``
    on that sends more than so many messages, once those are out."""

    node: int
    at: float
    after_sends: int | None = None


@dataclass(frozen=True)
class Restart:
    """A crashed node comes back as new, with nothing but what it had stored."""

    node: int
    at: float


@dataclass(frozen=True)
class Pause:
    """The node stops, as a suspended process does, and later handles everything that came in meanwhile."""

    node: int
    at: float
    lasts: float


@dataclass(frozen=True)
class Slow:
    """All messages to and from the node take ``factor`` times as long."""

    node: int
    at: float
    lasts: float
    factor: float


@dataclass(frozen=True)
class Drift:
    """From ``at`` on the node's clock runs at ``rate`` (1.0001 is 100 ppm fast); it jumps by ``offset`` at that moment.
    What was timed before then keeps its time."""

    node: int
    rate: float = 1.0
    offset: float = 0.0
    at: float = 0.0


@dataclass(frozen=True)
class Partition:
    """From ``at`` on the groups cannot reach each other. After ``lasts`` the network heals and what was held back
    arrives; with ``drops`` it is lost instead. A node in no group is a group of its own."""

    groups: tuple[tuple[int, ...], ...]
    at: float
    lasts: float
    drops: bool = False


Fault: TypeAlias = Crash | Restart | Pause | Slow | Drift | Partition


@dataclass(frozen=True)
class Chaos:
    """Faults at random: so many of each, somewhere between 0 and ``within``. A node that is to come back crashes at
    once; of those that are not, half do so in the middle of a multi-send, which may never come."""

    crashes: int = 0
    restarts: bool = False
    pauses: int = 0
    partitions: int = 0
    within: float = 50.0
    lasts: float = 5.0

    def __post_init__(self) -> None:
        for name in ("crashes", "pauses", "partitions", "within", "lasts"):
            if getattr(self, name) < 0:
                raise UsageError(f"chaos: {name} cannot be negative")

    def draw(self, rng: random.Random, n: int) -> tuple[Fault, ...]:
        faults: list[Fault] = []
        for node in rng.sample(range(n), min(self.crashes, n)):
            at = self.within * rng.random()
            in_multi_send = not self.restarts and rng.randrange(2) and rng.randrange(n)
            faults.append(Crash(node, at, after_sends=in_multi_send or None))
            if self.restarts:
                faults.append(Restart(node, at + self.lasts))
        for _ in range(self.pauses):
            faults.append(Pause(rng.randrange(n), self.within * rng.random(), self.lasts))
        for _ in range(self.partitions if n > 1 else 0):
            cut = rng.randrange(1, n)
            order = rng.sample(range(n), n)
            at = self.within * rng.random()
            faults.append(Partition((tuple(sorted(order[:cut])), tuple(sorted(order[cut:]))), at, self.lasts))
        return tuple(sorted(faults, key=lambda fault: fault.at))


def validate(faults: Sequence[Fault], n: int) -> None:
    for fault in faults:
        members = [node for group in fault.groups for node in group] if isinstance(fault, Partition) else [fault.node]
        strangers = [node for node in members if not 0 <= node < n]
        if strangers:
            raise UsageError(f"{fault}: there is no node {strangers[0]}; the nodes are 0 to {n - 1}")
        numbers = ("at", "lasts", "factor", "rate", "after_sends")
        negative = [name for name in numbers if (getattr(fault, name, None) or 0) < 0]
        if negative:
            raise UsageError(f"{fault}: {negative[0]} cannot be negative")
        if isinstance(fault, Drift) and fault.rate == 0:
            raise UsageError(f"{fault}: a clock that stands still never lets a timer fire")
