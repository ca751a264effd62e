"""Monitors over a recorded trace, wherever it came from."""

from collections.abc import Sequence
from dataclasses import dataclass

from trinco.core.claims import Claims
from trinco.core.cost import beyond_claim, messages_per_entry
from trinco.core.event import Event, Kind
from trinco.core.monitor import AtMostInside, GrantedOnlyIfAsked, Monitor, claimed, watch
from trinco.core.trace import Header


@dataclass(frozen=True)
class Findings:
    events: int
    entries: int
    monitors: tuple[str, ...]
    violation: str | None
    at: float | None


def verify(header: Header, events: Sequence[Event], claims: Claims | None, own: Sequence[Monitor] = ()) -> Findings:
    """``claims`` of the protocol, if it is one we know: without them only what holds for every protocol is watched.
    ``own``: what else its system says must hold."""
    monitors = [*_monitors(header, claims), *own]
    honest = [event for event in events if event.node not in header.byzantine]
    found = watch(monitors, honest)
    complaint, at = (found[1], found[0].at) if found else (None, None)
    if complaint is None and header.finished:
        complaint = next(filter(None, (monitor.finish() for monitor in monitors)), None)
    if complaint is None and claims and header.finished and _is_undisturbed(header, events):
        costs = messages_per_entry(events, claims.paid_by)
        if costs:
            complaint = beyond_claim(sum(costs) / len(costs), max(costs), claims, **_values(header))
    if complaint is not None and at is None:
        at = events[-1].at if events else 0.0
    entries = sum(event.kind is Kind.GRANT for event in honest)
    return Findings(len(events), entries, tuple(type(each).__name__ for each in monitors), complaint, at)


def _monitors(header: Header, claims: Claims | None) -> list[Monitor]:
    if claims is None:
        return [AtMostInside(header.k), GrantedOnlyIfAsked()]
    return claimed(claims, **_values(header))


def _values(header: Header) -> dict[str, float]:
    return {"n": header.n, "k": header.k, **header.letters}


def _is_undisturbed(header: Header, events: Sequence[Event]) -> bool:
    disturbances = (Kind.DROP, Kind.CRASH, Kind.PAUSE)
    return header.within_claims and not header.byzantine and not any(event.kind in disturbances for event in events)
