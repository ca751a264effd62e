"""What belongs to no single node: crashes left, the leads of drifting clocks, the memory of monitors.

An environment is interned like a cell and sits in its own slot of the state. A move that concerns it carries *news*;
the environment answers with what to add to the state, or None where the move is not allowed (no crash is left, a clock
would run too far ahead). Nearly all moves carry none, and a model without any of the three never gets here.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from trinco.check.model import Model
from trinco.core import snapshot
from trinco.core.event import Event, Kind

if TYPE_CHECKING:
    from trinco.check.cells import Label

News: TypeAlias = tuple[tuple[Any, ...], ...]
"""(what, node, detail) for everything in a move that the environment must know."""

SHARED_CLOCK = -1


class World(NamedTuple):
    crashes: int
    leads: tuple[tuple[int, int], ...]
    """How far each clock is ahead of the slowest; every clock that does not drift on its own is the shared one."""
    monitors: tuple[snapshot.Snapshot, ...]
    violation: str | None = None


class Environment:
    def __init__(self, model: Model, shift: int, alarm: int) -> None:
        """``shift`` is where the slot starts in a state; ``alarm`` is what a violation adds to it."""
        self._model = model
        self._shift = shift
        self._alarm = alarm
        self._ids: dict[World, int] = {}
        self.worlds: list[World] = []
        self._changes: dict[tuple[int, News], int | None] = {}
        drifting = model.clocks.drifting if model.clocks else frozenset()
        leads = tuple((clock, 0) for clock in (SHARED_CLOCK, *sorted(drifting))) if drifting else ()
        self.first = self._intern(World(model.crashes, leads, tuple(map(snapshot.take, model.monitors))))
        self._observed = frozenset(kind for monitor in model.monitors for kind in monitor.kinds)

    def weight(self, number: int) -> int:
        return (number << self._shift) + (self._alarm if self.worlds[number].violation else 0)

    def news(self, label: "Label") -> News:
        """What of a move concerns the environment."""
        if label.crashes:
            crash: News = ((Kind.CRASH, label.node, None),)
            return (*self._visible(label), *crash)
        if label.event.kind == "tick":
            return ((Kind.TICK, label.node, None),)
        return self._visible(label)

    def _visible(self, label: "Label") -> News:
        if not self._observed:
            return ()
        seen = ((Kind(what), label.node, *detail) for what, *detail in label.outcome.news if what in _KINDS)
        return tuple((kind, node, *detail) for kind, node, *detail in seen if kind in self._observed)

    def change(self, number: int, news: News) -> int | None:
        """What the news adds to a state with this environment; None if it cannot happen in it."""
        key = (number, news)
        if key not in self._changes:
            self._changes[key] = self._change(number, news)
        return self._changes[key]

    def _change(self, number: int, news: News) -> int | None:
        world = self.worlds[number]
        for what, node, *detail in news:
            after = self._happens(world, what, node, detail)
            if after is None:
                return None
            world = after
        return self.weight(self._intern(world)) - self.weight(number)

    def _happens(self, world: World, what: Kind, node: int, detail: list[Any]) -> World | None:
        if what is Kind.TICK:
            return self._ticks(world, node)
        if what is Kind.CRASH:
            if not world.crashes:
                return None
            world = world._replace(crashes=world.crashes - 1)
        return self._observe(world, Event(0.0, node, what, token=detail[0] if detail else None))

    def _ticks(self, world: World, clock: int) -> World | None:
        leads = dict(world.leads)
        leads[clock] += 1
        slowest = min(leads.values())
        assert self._model.clocks is not None
        if leads[clock] - slowest > self._model.clocks.window:
            return None
        return world._replace(leads=tuple((each, lead - slowest) for each, lead in sorted(leads.items())))

    def _observe(self, world: World, event: Event) -> World:
        if world.violation:
            return world
        monitors = tuple(map(snapshot.restore, world.monitors))
        complaints = [monitor.observe(event) for monitor in monitors if event.kind in monitor.kinds]
        violation = next((each for each in complaints if each), None)
        return world._replace(monitors=tuple(map(snapshot.take, monitors)), violation=violation)

    def _intern(self, world: World) -> int:
        known = self._ids.get(world)
        if known is None:
            known = self._ids[world] = len(self.worlds)
            self.worlds.append(world)
        return known


_KINDS = frozenset(kind.value for kind in Kind)
