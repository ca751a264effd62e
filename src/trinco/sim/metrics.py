"""What a run measured."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Any

from trinco.core.cost import messages_per_entry
from trinco.core.event import Kind
from trinco.core.monitor import OneLeader
from trinco.core.trace import Recording

if TYPE_CHECKING:
    from trinco.sim.simulation import Simulation


@dataclass(frozen=True)
class Spread:
    """Of some times: the mean, the median, the 99th percentile and the largest."""

    mean: float
    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread | None":
        if not values:
            return None
        ordered = sorted(values)
        return cls(fsum(ordered) / len(ordered), _percentile(ordered, 0.50), _percentile(ordered, 0.99), ordered[-1])


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


@dataclass(frozen=True)
class Metrics:
    """Times are virtual, in the unit of the message delay."""

    entries: int
    messages: int
    messages_by_kind: dict[str, int]
    messages_per_entry: float | None
    worst_messages_per_entry: int | None
    """Who pays for which message is told in ``core.cost``; None without a trace."""
    load: Spread | None
    """Messages sent and received by a node; None without a trace."""
    synchronisation_delay: Spread | None
    """From one process' leaving to the next one's entering, where somebody was already waiting."""
    waiting: Spread | None
    bypass: int
    """How often others entered while one process waited, at worst."""
    fairness: float | None
    """Jain's index over the entries of each process: 1 is equal, 1/n is one takes all."""
    entries_per_time: float | None
    duration: float
    leaders: dict[int, int]
    """Whom each node takes for the leader, after an election."""
    costs: list[int] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        del plain["costs"]
        if not self.leaders:
            del plain["leaders"]
        return plain


def measure(sim: "Simulation") -> Metrics:
    kinds: Counter[str] = Counter()
    for host in sim.hosts:
        for kind, count in host.sent.items():
            kinds[str(kind.__struct_config__.tag)] += count  # type: ignore[attr-defined]
    messages = kinds.total()
    grants = [(at, node) for at, node, kind in sim.history if kind is Kind.GRANT]
    costs = _costs(sim)
    waits, bypass = _waiting(sim.history)
    per_process = Counter(node for _, node in grants)
    duration = sim.kernel.now
    return Metrics(
        entries=len(grants),
        messages=messages,
        messages_by_kind=dict(sorted(kinds.items())),
        messages_per_entry=messages / len(grants) if grants else None,
        worst_messages_per_entry=max(costs) if costs else None,
        load=Spread.of(_load(sim.recording)) if sim.recording else None,
        synchronisation_delay=Spread.of(_synchronisation(sim.history)),
        waiting=Spread.of(waits),
        bypass=bypass,
        fairness=jain([per_process[node] for node in sim.crowd.processes]),
        entries_per_time=len(grants) / duration if duration else None,
        duration=duration,
        leaders=dict(pair for monitor in sim.monitors if isinstance(monitor, OneLeader) for pair in monitor.leaders),
        costs=costs,
    )


def _costs(sim: "Simulation") -> list[int]:
    if sim.recording is None:
        return []
    return messages_per_entry(sim.recording.events_without_clocks(), sim.scenario.claims.paid_by)


def _load(recording: Recording) -> list[float]:
    load = [0.0] * recording.header.n
    for _, node, kind, peer, *_ in recording.records:
        if kind in (Kind.SEND, Kind.RECEIVE) and peer != node:
            load[node] += 1
    return load


def jain(shares: Sequence[float]) -> float | None:
    total, squares = fsum(shares), fsum(share * share for share in shares)
    return total * total / (len(shares) * squares) if squares else None


def _waiting(history: Sequence[tuple[float, int, Kind]]) -> tuple[list[float], int]:
    """How long each entry was waited for, and the worst number of entries of others meanwhile."""
    asked: dict[int, tuple[float, int]] = {}
    waits: list[float] = []
    entries = worst = 0
    for at, node, kind in history:
        if kind is Kind.ACQUIRE:
            asked[node] = at, entries
        elif kind is Kind.GRANT and node in asked:
            since, before = asked.pop(node)
            waits.append(at - since)
            worst = max(worst, entries - before)
            entries += 1
        elif kind in (Kind.REFUSE, Kind.CRASH):
            asked.pop(node, None)
    still_waiting = (entries - before for _, before in asked.values())
    return waits, max(worst, *still_waiting, 0)


def _synchronisation(history: Sequence[tuple[float, int, Kind]]) -> list[float]:
    waiting: list[float] = []
    since: dict[int, float] = {}
    delays: list[float] = []
    left_at: float | None = None
    for at, node, kind in history:
        if kind is Kind.ACQUIRE:
            insort(waiting, at)
            since[node] = at
        elif node in since and kind in (Kind.GRANT, Kind.REFUSE, Kind.CRASH):
            del waiting[bisect_left(waiting, since.pop(node))]
            if kind is Kind.GRANT and left_at is not None:
                delays.append(at - left_at)
            if kind is Kind.GRANT or not waiting:
                left_at = None
        if kind in (Kind.RELEASE, Kind.LOST):
            left_at = at if waiting else None
    return delays
