"""What belongs to no single node: crashes and restarts left, the leads of drifting clocks, the memory of monitors.

An environment is interned like a cell and sits in its own slot of the state. A move that concerns it carries *news*;
the environment answers with what to add to the state, or None where the move is not allowed (no crash is left, a clock
would run too far ahead). Nearly all moves carry none, and a model without any of the three never gets here.
"""

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from trinco.check.handlers import News
from trinco.check.model import Model
from trinco.core import snapshot
from trinco.core.errors import UsageError
from trinco.core.event import Event, Kind

if TYPE_CHECKING:
    from trinco.check.cells import Label

Told: TypeAlias = tuple[tuple[int, News], ...]
"""(node, news) for everything in a move that the environment must know."""

SHARED_CLOCK = -1
VISIBLE = frozenset(
    {Kind.ACQUIRE, Kind.RELEASE, Kind.INPUT, Kind.GRANT, Kind.RENEW, Kind.REFUSE, Kind.LOST, Kind.ELECTED, Kind.EXPIRE}
) | {Kind.CRASH, Kind.RESTART}
"""What monitors can be shown: whatever changes where a process stands. Single messages would tell all states apart."""
TICK, CRASH, RESTART = News(Kind.TICK), News(Kind.CRASH), News(Kind.RESTART)


class World(NamedTuple):
    crashes: int
    restarts: int
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
        self._changes: dict[tuple[int, Told], int | None] = {}
        drifting = model.clocks.drifting if model.clocks else frozenset()
        leads = tuple((clock, 0) for clock in (SHARED_CLOCK, *sorted(drifting))) if drifting else ()
        self.first = self._intern(
            World(model.crashes, model.restarts, leads, tuple(map(snapshot.take, model.monitors)))
        )
        self._observed = frozenset(kind for monitor in model.monitors for kind in monitor.kinds)
        unseen = self._observed - VISIBLE
        if unseen:
            raise UsageError(f"in the checker monitors cannot see {', '.join(sorted(unseen))}")

    def weight(self, number: int) -> int:
        return (number << self._shift) + (self._alarm if self.worlds[number].violation else 0)

    def news(self, label: "Label") -> Told:
        """What of a move concerns the environment."""
        seen = self.visible(label.node, label.outcome.news)
        if label.event.kind == "tick":
            return ((label.node, TICK), *seen)
        if label.event.kind == "restart":
            return ((label.node, RESTART), *seen)
        return (*seen, (label.node, CRASH)) if label.crashes else seen

    def observes(self, kind: Kind) -> bool:
        return kind in self._observed

    def visible(self, node: int, news: tuple[News, ...]) -> Told:
        """What of some news a monitor wants to see. What liars believe is nobody's concern."""
        if not self._observed or node in self._model.byzantine:
            return ()
        return tuple((node, each) for each in news if each.kind in self._observed)

    def change(self, number: int, told: Told) -> int | None:
        """What the news adds to a state with this environment; None if it cannot happen in it."""
        key = (number, told)
        if key not in self._changes:
            self._changes[key] = self._change(number, told)
        return self._changes[key]

    def _change(self, number: int, told: Told) -> int | None:
        world = self.worlds[number]
        for node, news in told:
            after = self._happens(world, node, news)
            if after is None:
                return None
            world = after
        return self.weight(self._intern(world)) - self.weight(number)

    def _happens(self, world: World, node: int, news: News) -> World | None:
        if news.kind is Kind.TICK:
            return self._ticks(world, node)
        if news.kind is Kind.CRASH:
            if not world.crashes:
                return None
            living = tuple((clock, lead) for clock, lead in world.leads if clock != node)
            world = world._replace(crashes=world.crashes - 1, leads=_normal(living))
        if news.kind is Kind.RESTART:
            if not world.restarts:
                return None
            world = world._replace(restarts=world.restarts - 1)
        if news.kind not in self._observed or node in self._model.byzantine:
            return world
        return self._observe(world, Event(0.0, node, news.kind, news.peer, None, news.note, news.token))

    def _ticks(self, world: World, clock: int) -> World | None:
        leads = _normal(tuple((each, lead + (each == clock)) for each, lead in world.leads))
        assert self._model.clocks is not None
        if dict(leads)[clock] > self._model.clocks.window:
            return None
        return world._replace(leads=leads)

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


def _normal(leads: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Leads are over the slowest."""
    slowest = min((lead for _, lead in leads), default=0)
    return tuple((clock, lead - slowest) for clock, lead in leads)
