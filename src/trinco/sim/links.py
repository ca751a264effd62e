"""The network between simulated nodes: how long a message takes, and whether it arrives once, twice or never."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from trinco.core.errors import UsageError
from trinco.sim.laws import Constant, Law


@dataclass(frozen=True)
class Links:
    """What the network does. ``ordered``: messages of one channel arrive in the order they were sent. ``per_link`` has
    the law of single channels (source, receiver). ``reordering`` is the chance that a message dawdles for a second
    delay, so that later ones overtake it."""

    delay: Law = Constant(1.0)
    ordered: bool = True
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    per_link: Mapping[tuple[int, int], Law] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("loss", "duplication", "reordering"):
            chance = getattr(self, name)
            if not 0 <= chance < 1:
                raise UsageError(f"{name} is a chance: at least 0 and less than 1, not {chance:g}")
        if self.reordering and self.ordered:
            raise UsageError("a network in order cannot reorder: give ordered=False with reordering")

    @property
    def constant_delay(self) -> float | None:
        """The delay of every message, where it is always the same and every message arrives once."""
        plain = not (self.loss or self.duplication or self.reordering or self.per_link)
        return self.delay.value if plain and isinstance(self.delay, Constant) else None


@dataclass(frozen=True)
class Parting:
    """While it lasts, nodes on different islands do not reach each other."""

    islands: Mapping[int, int]
    until: float
    drops: bool

    def parts(self, source: int, to: int, now: float) -> bool:
        return now < self.until and self.islands[source] != self.islands[to]


class Wires:
    """The links of one run: draws delays, keeps channels in order, holds back what a partition cuts off."""

    def __init__(self, links: Links, rng: random.Random, steady: bool = False) -> None:
        """``steady``: no fault will ever change how long a message takes."""
        self._links = links
        self._rng = rng
        self._busy_until: dict[tuple[int, int], float] = {}
        self._slowness: dict[int, list[float]] = {}
        self._partings: list[Parting] = []
        self.steady_delay = links.constant_delay if steady else None
        """The delay of every message of the run, where that is known."""

    def slow_down(self, node: int, factor: float, _c: Any = None) -> None:
        """All messages to and from the node take so many times as long, on top of what slows it down already."""
        self._slowness.setdefault(node, []).append(factor)

    def recover(self, node: int, factor: float, _c: Any = None) -> None:
        self._slowness[node].remove(factor)

    def part(self, parting: Parting) -> None:
        self._partings.append(parting)

    def arrivals(self, source: int, to: int, now: float) -> tuple[float, ...]:
        """When a message sent now arrives: usually once, never if it is lost, twice if it is duplicated."""
        links, rng = self._links, self._rng
        if links.loss and rng.random() < links.loss:
            return ()
        if self._partings and any(each.drops and each.parts(source, to, now) for each in self._partings):
            return ()
        if links.duplication and rng.random() < links.duplication:
            return self.sure_arrival(source, to, now), self.sure_arrival(source, to, now)
        return (self.sure_arrival(source, to, now),)

    def sure_arrival(self, source: int, to: int, now: float) -> float:
        """When a message that is not lost arrives."""
        links, rng = self._links, self._rng
        law = links.per_link.get((source, to), links.delay) if links.per_link else links.delay
        at = now + law.draw(rng)
        if links.reordering and rng.random() < links.reordering:
            at += law.draw(rng)
        if self._slowness:
            at = now + (at - now) * prod(self._slowness.get(source, ())) * prod(self._slowness.get(to, ()))
        if self._partings:
            at += max((each.until - now for each in self._partings if each.parts(source, to, now)), default=0.0)
        if links.ordered:
            channel = (source, to)
            at = max(at, self._busy_until.get(channel, 0.0))
            self._busy_until[channel] = at
        return at
