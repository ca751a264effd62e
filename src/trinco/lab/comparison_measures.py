"""What one algorithm costs with n nodes, under each of the four loads of ``lab.comparison_loads``.

Every message takes exactly one message time, so delays come out as the papers state them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from trinco.core.claims import Network
from trinco.lab.comparison_loads import HOLD, loads
from trinco.lab.tally import Tally, tallied
from trinco.protocols.catalogue import Entry, competitors
from trinco.sim.links import Links
from trinco.sim.metrics import measure as metrics_of
from trinco.sim.scenario import Scenario
from trinco.sim.workload import Workload

UNTIL = 100_000.0
MOST_EVENTS = 3_000_000
"""A load under which hardly anybody enters is cut off here, and judged by what happened until then."""


@dataclass(frozen=True)
class Range:
    """Of several delays."""

    least: float
    mean: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Range | None":
        return cls(min(values), fmean(values), max(values)) if values else None


@dataclass(frozen=True)
class Messages:
    """Per entry, under each load."""

    alone: float | None
    in_turn: float | None
    light: float | None
    saturated: float | None


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Times are in message times; None where nobody entered."""

    n: int
    processes: int
    """How many of the nodes ask: servers do not."""
    messages: Messages
    delay: Range | None
    """From asking to entering when nobody else asks; messages to several go out in parallel."""
    sequential_delay: Range | None
    """The same with every message sent after the one before, as the slides count."""
    synchronisation_delay: float | None
    """From one process' leaving to the next one's entering, when everybody asks."""
    light_response: float | None
    """From asking to leaving, under light load."""
    saturated_response: float | None
    """The same when everybody asks."""
    bypass: int
    """How often others entered while one process waited, at worst, when everybody asks."""
    jain: float | None
    """Jain's index over the entries of each process, when everybody asks: 1 is equal, 1/n is one takes all."""
    violations: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure(entry: Entry, n: int, seed: int = 0) -> Measures:
    processes = competitors(entry.nodes(n))
    runs = {name: _run(entry, n, seed, load) for name, load in loads(processes).items()}
    alone, in_turn, light, saturated = runs.values()
    swing, crowded = saturated.in_full_swing(), metrics_of(saturated.simulation)
    light_delay = Range.of([each.delay for each in light.counted()])
    turns = in_turn.counted(skip=processes)
    return Measures(
        n=n,
        processes=processes,
        messages=Messages(
            alone=alone.per_request(skip=1),
            in_turn=in_turn.per_request(skip=processes),
            light=light.per_request(),
            saturated=swing.messages_per_entry(),
        ),
        delay=Range.of([each.delay for each in turns]),
        sequential_delay=Range.of([each.sends for each in turns]),
        synchronisation_delay=crowded.synchronisation_delay.mean if crowded.synchronisation_delay else None,
        light_response=light_delay.mean + HOLD if light_delay else None,
        saturated_response=swing.response(),
        bypass=crowded.bypass,
        jain=crowded.fairness,
        violations=tuple(
            f"{name.replace('_', ' ')}: {violation.text}"
            for name, run in runs.items()
            if (violation := run.simulation.violation)
        ),
    )


def _run(entry: Entry, n: int, seed: int, load: Workload) -> Tally:
    return tallied(
        Scenario(
            protocol=entry.name,
            build=entry.build,
            claims=entry.claims,
            n=n,
            seed=seed,
            workload=load,
            links=Links(ordered=entry.claims.network is Network.FIFO),
            until=UNTIL,
            max_events=MOST_EVENTS,
            trace=False,
        )
    )
