"""The network between simulated nodes: how long a message takes, and whether it arrives once, twice or never."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

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


class Wires:
    """The links of one run: draws delays, keeps channels in order, holds back what a partition cuts off."""

    def __init__(self, links: Links, rng: random.Random) -> None:
        self._links = links
        self._rng = rng
        self._busy_until: dict[tuple[int, int], float] = {}
        self.slowness: dict[int, float] = {}
        """Nodes whose messages take so many times longer, both ways."""
        self.islands: dict[int, int] = {}
        """While the network is parted: which part each node is in."""
        self.parted_until = 0.0
        self.parting_drops = False

    def arrivals(self, source: int, to: int, now: float) -> list[float]:
        """When a message sent now arrives: usually once, never if it is lost, twice if it is duplicated."""
        links, rng = self._links, self._rng
        if links.loss and rng.random() < links.loss:
            return []
        times = [self._arrival(source, to, now)]
        if links.duplication and rng.random() < links.duplication:
            times.append(self._arrival(source, to, now))
        return [at for at in times if at >= 0]

    def _arrival(self, source: int, to: int, now: float) -> float:
        links, rng = self._links, self._rng
        law = links.per_link.get((source, to), links.delay)
        delay = law.draw(rng)
        if links.reordering and rng.random() < links.reordering:
            delay += law.draw(rng)
        if self.slowness:
            delay *= self.slowness.get(source, 1.0) * self.slowness.get(to, 1.0)
        if self.islands and now < self.parted_until and self.islands.get(source) != self.islands.get(to):
            if self.parting_drops:
                return -1.0
            delay += self.parted_until - now
        if not links.ordered:
            return now + delay
        at = max(now + delay, self._busy_until.get((source, to), 0.0))
        self._busy_until[source, to] = at
        return at
