"""Which forks to give back unasked: an extension to Campos & Carvalho 1988 of our own.

A fork that is kept costs nothing if its holder is the next to eat with it. If somebody else is, it must first be asked
for, and comes two message times later. Given back unasked it saves that request; but if its holder was the next after
all, that one has to ask, to be sent the fork and to return it once more. One message is won or three are lost, so it
pays to give back what is used again in fewer than one of four times.

Where everybody eats now and then this comes near Maekawa's cost. Where a few eat again and again it is dearer than
keeping every fork.
"""

from dataclasses import dataclass

from trinco.core.ids import Ids, bit

MOST, TRUSTED, LEAST = 7, 4, 0
USED_AGAIN, LOST = 3, -1
"""They balance at one in four."""
PROBE = 4
"""A fork that is given back teaches nothing, so every fourth time all are kept."""


@dataclass(slots=True)
class Predictor:
    arbiters: tuple[int, ...]
    trust: tuple[int, ...]
    """By arbiter: up when its fork was used again, down when somebody else was the next."""
    leavings: int = 0

    def used_again(self, forks: Ids) -> None:
        self._learn(forks, USED_AGAIN)

    def lost(self, forks: Ids) -> None:
        self._learn(forks, LOST)

    def _learn(self, forks: Ids, change: int) -> None:
        self.trust = tuple(
            min(max(trust + change, LEAST), MOST) if forks & bit(arbiter) else trust
            for arbiter, trust in zip(self.arbiters, self.trust, strict=True)
        )

    def losses(self) -> Ids:
        """Whoever leaves asks this once: the arbiters whose forks are better given back."""
        self.leavings = (self.leavings + 1) % PROBE
        doubted = (each for each, trust in zip(self.arbiters, self.trust, strict=True) if trust < TRUSTED)
        return sum(map(bit, doubted)) if self.leavings else 0


def beginner(arbiters: tuple[int, ...]) -> Predictor:
    """Keeps every fork until it is lost once."""
    return Predictor(arbiters, (TRUSTED,) * len(arbiters))
