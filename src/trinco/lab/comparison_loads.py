"""The loads under which algorithms are compared: who asks when. Everybody holds for one message time.

=============  =================================================================================================
alone          one process asks again and again as soon as it has left, and nobody else ever does
in turn        one process after the other, in a random order, each only when all is quiet after the one before
light          requests come at random, on average one in ten message times, from any process
saturated      everybody asks again as soon as it has left
=============  =================================================================================================

The first of a load are not counted where they begin from a state that never comes back: alone the first entry, in turn
everybody's first. Nor is the last request, which marks the moment at which all is over that the others have caused
(``lab.tally``).
"""

from dataclasses import dataclass

from trinco.sim.laws import Constant
from trinco.sim.workload import Desk, Open, Source, Workload

HOLD = 1.0
REST = 8.0
"""After an entry, for whatever is still on its way: in message times."""
LIGHT_RATE = 0.1
"""Requests in a message time, of all processes together. That is the offered load too, since everybody holds for 1."""


@dataclass(frozen=True)
class Alone:
    """The first process asks again and again."""

    entries: int = 21

    def start(self, desk: Desk) -> Source:
        source = _Asking(self.entries)
        source.left(desk, desk.processes[0], 0.0)
        return source


@dataclass
class _Asking:
    """Whoever leaves asks again at once, until there are no requests left."""

    budget: int

    def left(self, desk: Desk, node: int, now: float) -> None:
        if self.budget > 0:
            self.budget -= 1
            desk.ask(node, now, HOLD)


@dataclass(frozen=True)
class InTurn:
    """Everybody, and everybody again."""

    entries: int

    def start(self, desk: Desk) -> Source:
        source = _Turns(self.entries)
        source.left(desk, desk.processes[0], 0.0)
        return source


@dataclass
class _Turns:
    budget: int
    order: tuple[int, ...] = ()
    """Who is still to come in this round."""

    def left(self, desk: Desk, node: int, now: float) -> None:
        if self.budget > 0:
            self.budget -= 1
            if not self.order:
                self.order = tuple(desk.rng.sample(desk.processes, len(desk.processes)))
            desk.ask(self.order[0], now + REST, HOLD)
            self.order = self.order[1:]


@dataclass(frozen=True)
class Light:
    entries: int

    def start(self, desk: Desk) -> Source:
        Open(self.entries - 1, LIGHT_RATE, Constant(HOLD)).start(desk)
        return _OneMore(self.entries - 1)


@dataclass
class _OneMore:
    """When all the others have left, the first process asks."""

    inside: int

    def left(self, desk: Desk, node: int, now: float) -> None:
        self.inside -= 1
        if self.inside == 0:
            desk.ask(desk.processes[0], now + REST, HOLD)


@dataclass(frozen=True)
class Saturated:
    """Not all begin at the same moment: in step with each other, they would favour whoever comes first."""

    entries: int

    def start(self, desk: Desk) -> Source:
        source = _Asking(self.entries - len(desk.processes))
        for node in desk.processes:
            desk.ask(node, 2 * desk.rng.random(), HOLD)
        return source


def loads(processes: int) -> dict[str, Workload]:
    """All four for so many processes: enough entries to judge by, and for each process some when everybody asks."""
    return {
        "alone": Alone(),
        "in_turn": InTurn(processes + max(32, processes) + 1),
        "light": Light(max(100, min(2 * processes, 400))),
        "saturated": Saturated(max(40, 4 * processes)),
    }
