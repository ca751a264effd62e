"""Monitors: what must hold, watched event by event, in every runtime and over a recorded trace.

A monitor is written like a node: a small dataclass whose fields are values, assigned and never mutated in place. So
the simulator and ``trinco verify`` simply feed it events, and the checker can keep its memory as part of the state.
``observe`` returns a sentence when something is wrong, else None; ``finish`` does the same at the end of a whole run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from trinco.core.claims import Claims
from trinco.core.event import Event, Kind


class Monitor:
    __slots__ = ()
    kinds: ClassVar[frozenset[Kind]] = frozenset()
    """What this monitor wants to see; it is shown nothing else."""

    def observe(self, event: Event) -> str | None:
        return None

    def finish(self) -> str | None:
        return None


_ENTER = frozenset({Kind.GRANT})
_RENEW = frozenset({Kind.RENEW})
_LEAVE = frozenset({Kind.RELEASE, Kind.LOST, Kind.EXPIRE, Kind.CRASH})


@dataclass(slots=True)
class AtMostInside(Monitor):
    """Safety (S1 of the slides): never more than k inside."""

    kinds: ClassVar[frozenset[Kind]] = _ENTER | _RENEW | _LEAVE
    k: int = 1
    inside: frozenset[int] = frozenset()

    def observe(self, event: Event) -> str | None:
        if event.kind in _LEAVE:
            self.inside -= {event.node}
            return None
        self.inside |= {event.node}
        if len(self.inside) <= self.k:
            return None
        names = " and ".join(f"p{node}" for node in sorted(self.inside))
        return f"{names} are inside together, at most {self.k} may be"


@dataclass(slots=True)
class GrantedOnlyIfAsked(Monitor):
    """Nobody enters who did not ask, and nobody leaves who was not inside."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.ACQUIRE, Kind.REFUSE}) | _ENTER | _LEAVE
    waiting: frozenset[int] = frozenset()
    inside: frozenset[int] = frozenset()

    def observe(self, event: Event) -> str | None:
        node, kind = event.node, event.kind
        complaint = None
        if kind is Kind.GRANT and node not in self.waiting:
            complaint = f"p{node} entered without having asked"
        if kind is Kind.RELEASE and node not in self.inside:
            complaint = f"p{node} left without having been inside"
        self.waiting = self.waiting | {node} if kind is Kind.ACQUIRE else self.waiting - {node}
        if kind is not Kind.EXPIRE:  # whose lease ran out may still say that it leaves
            self.inside = self.inside | {node} if kind is Kind.GRANT else self.inside - {node}
        return complaint


@dataclass(slots=True)
class BoundedBypass(Monitor):
    """Between one process' asking and its entering, others enter at most ``bound`` times."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.ACQUIRE, Kind.REFUSE, Kind.CRASH}) | _ENTER
    bound: int
    overtaken: tuple[tuple[int, int], ...] = ()

    def observe(self, event: Event) -> str | None:
        node = event.node
        if event.kind is Kind.ACQUIRE:
            self.overtaken = (*self.overtaken, (node, 0))
            return None
        others = tuple(entry for entry in self.overtaken if entry[0] != node)
        self.overtaken = others
        if event.kind is not Kind.GRANT:
            return None
        self.overtaken = tuple((each, count + 1) for each, count in others)
        for each, count in self.overtaken:
            if count > self.bound:
                return f"p{each} waits and was overtaken {count} times, at most {self.bound} are claimed"
        return None


@dataclass(slots=True)
class TokenRises(Monitor):
    """Fencing: every grant carries a token larger than all before it; where units have tokens of their own
    (``token.slot``), than all before it for that unit."""

    kinds: ClassVar[frozenset[Kind]] = _ENTER
    highest: tuple[tuple[Any, Any], ...] = ()
    """(unit, the largest token so far)"""

    def observe(self, event: Event) -> str | None:
        unit, token = _unit_and_token(event.token)
        if token is None:
            return f"p{event.node} entered without a fencing token"
        known = dict(self.highest)
        if unit in known and not _is_above(token, known[unit]):
            return f"p{event.node} entered with token {token} after {known[unit]} had been given out"
        known[unit] = token
        self.highest = tuple(sorted(known.items(), key=lambda each: str(each[0])))
        return None


def _unit_and_token(token: Any) -> tuple[Any, Any]:
    """In a trace that was read back, what had fields is a mapping of them, in their order."""
    if isinstance(token, Mapping):
        return (token["slot"], token.get("token")) if "slot" in token else (None, tuple(token.values()))
    unit = getattr(token, "slot", None)
    return (None, token) if unit is None else (unit, token.token)


def _is_above(token: Any, other: Any) -> bool:
    """Tokens that cannot be compared, as in a file that somebody has changed, do not rise."""
    try:
        return bool(token > other)
    except TypeError:
        return False


@dataclass(slots=True)
class EveryoneServed(Monitor):
    """At the end of a run that was let finish, nobody who can still run is left waiting: no deadlock (V1), no
    starvation (V2): that is when others entered while the one that waits longest did."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.ACQUIRE, Kind.REFUSE, Kind.CRASH}) | _ENTER | _LEAVE
    entries: int = 0
    waiting: tuple[tuple[int, int], ...] = ()
    """(who, how many entries there had been when it asked), longest waiting first."""

    def observe(self, event: Event) -> str | None:
        if event.kind is Kind.ACQUIRE:
            self.waiting = (*self.waiting, (event.node, self.entries))
        else:
            self.waiting = tuple(each for each in self.waiting if each[0] != event.node)
            self.entries += event.kind is Kind.GRANT
        return None

    def finish(self) -> str | None:
        if not self.waiting:
            return None
        names = ", ".join(f"p{node}" for node, _ in sorted(self.waiting))
        how = "starvation" if self.entries > self.waiting[0][1] else "deadlock"
        return f"{how}: {names} asked and never entered"


@dataclass(slots=True)
class OneLeader(Monitor):
    """Elections (S of the slides): once all is quiet, everybody who runs knows the same leader, and it runs too."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.ELECTED, Kind.CRASH, Kind.RESTART})
    n: int
    leaders: tuple[tuple[int, int], ...] = ()
    """(who, whom it takes for the leader)"""
    dead: frozenset[int] = frozenset()

    def observe(self, event: Event) -> str | None:
        others = tuple(each for each in self.leaders if each[0] != event.node)
        if event.kind is Kind.ELECTED and event.peer is not None:
            self.leaders = tuple(sorted((*others, (event.node, event.peer))))
        elif event.kind is Kind.CRASH:
            self.leaders, self.dead = others, self.dead | {event.node}
        else:
            self.dead -= {event.node}
        return None

    def finish(self) -> str | None:
        known: dict[int, list[int]] = {}
        for node, leader in self.leaders:
            known.setdefault(leader, []).append(node)
        if len(known) > 1:
            sides = " and ".join(f"p{leader} by {_names(nodes)}" for leader, nodes in sorted(known.items()))
            return f"{len(known)} leaders: {sides}"
        gone = [leader for leader in known if leader in self.dead]
        if gone:
            return f"p{gone[0]} is taken for the leader, and has crashed"
        ignorant = [node for node in range(self.n) if node not in self.dead and node not in dict(self.leaders)]
        return f"a leader was elected, and not known to {_names(ignorant)}" if known and ignorant else None


@dataclass(slots=True)
class ElectionsEnd(Monitor):
    """Elections (V of the slides): whoever notices that the leader is gone learns who leads, unless it crashes too."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.INPUT, Kind.ELECTED, Kind.CRASH})
    electing: frozenset[int] = frozenset()

    def observe(self, event: Event) -> str | None:
        self.electing = self.electing | {event.node} if event.kind is Kind.INPUT else self.electing - {event.node}
        return None

    def finish(self) -> str | None:
        return f"an election never ended for {_names(sorted(self.electing))}" if self.electing else None


def _names(nodes: Iterable[int]) -> str:
    return ", ".join(f"p{node}" for node in nodes)


def claimed(claims: Claims, **letters: float) -> list[Monitor]:
    """The monitors that watch over what a paper claims. What entries cost is judged at the end, by ``core.cost``."""
    if claims.elects:
        return [OneLeader(int(letters["n"])), ElectionsEnd()]
    monitors: list[Monitor] = [AtMostInside(int(claims.k.high(**letters))), GrantedOnlyIfAsked()]
    if claims.bypass is not None:
        monitors.append(BoundedBypass(int(claims.bypass.high(**letters))))
    if claims.fencing:
        monitors.append(TokenRises())
    if claims.deadlock_free:
        monitors.append(EveryoneServed())
    return monitors


def watch(monitors: Iterable[Monitor], events: Iterable[Event]) -> tuple[Event, str] | None:
    """The first complaint over recorded events, with the event that caused it."""
    watching = list(monitors)
    for event in events:
        for monitor in watching:
            if event.kind in monitor.kinds:
                complaint = monitor.observe(event)
                if complaint:
                    return event, complaint
    return None
