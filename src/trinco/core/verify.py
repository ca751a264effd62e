"""Monitors over a recorded trace, wherever it came from."""

from collections.abc import Sequence
from dataclasses import dataclass

from trinco.core.claims import Claims
from trinco.core.cost import beyond_claim, messages_per_entry
from trinco.core.event import Event, Kind
from trinco.core.monitor import AtMostInside, EveryoneServed, GrantedOnlyIfAsked, Monitor, TokenRises, claimed, watch
from trinco.core.trace import Header


@dataclass(frozen=True)
class Findings:
    events: int
    entries: int
    monitors: tuple[str, ...]
    violation: str | None
    at: float | None
    waiting: tuple[int, ...] = ()
    """Who asked, and neither entered nor gave up, when the trace ends."""


def verify(header: Header, events: Sequence[Event], claims: Claims | None, own: Sequence[Monitor] = ()) -> Findings:
    """``claims`` of the protocol, if it is one we know: without them only what holds for every protocol is watched.
    ``own``: what else its system says must hold."""
    honest = [event for event in events if event.node not in header.byzantine]
    monitors = [*_monitors(header, claims, honest), *own]
    found = watch(monitors, honest)
    complaint, at = (found[1], found[0].at) if found else (None, None)
    if complaint is None and header.finished:
        complaint = next(filter(None, (monitor.finish() for monitor in monitors)), None)
    if complaint is None and claims and header.finished and _is_undisturbed(header, events):
        costs = messages_per_entry(events, claims.paid_by)
        if costs:
            complaint = beyond_claim(sum(costs) / len(costs), max(costs), claims, **_values(header))
    if complaint is None and header.violation:
        complaint = f"the {header.runtime} found: {header.violation}"
    if complaint is not None and at is None:
        at = events[-1].at if events else 0.0
    entries = sum(event.kind is Kind.GRANT for event in honest)
    names = tuple(type(each).__name__ for each in monitors)
    return Findings(len(events), entries, names, complaint, at, _still_waiting(honest))


def _monitors(header: Header, claims: Claims | None, honest: Sequence[Event]) -> list[Monitor]:
    """What the protocol claims, if we know it. Where grants carry tokens they must rise, whatever is claimed."""
    monitors = [AtMostInside(header.k), GrantedOnlyIfAsked()] if claims is None else claimed(claims, **_values(header))
    fenced = any(event.kind is Kind.GRANT and event.token is not None for event in honest)
    if fenced and not any(isinstance(each, TokenRises) for each in monitors):
        monitors.append(TokenRises())
    return monitors


def _still_waiting(events: Sequence[Event]) -> tuple[int, ...]:
    everyone = EveryoneServed()
    watch([everyone], events)
    return tuple(sorted(node for node, _ in everyone.waiting))


def _values(header: Header) -> dict[str, float]:
    return {"n": header.n, "k": header.k, **header.letters}


def _is_undisturbed(header: Header, events: Sequence[Event]) -> bool:
    disturbances = (Kind.DROP, Kind.CRASH, Kind.PAUSE)
    return header.within_claims and not header.byzantine and not any(event.kind in disturbances for event in events)
