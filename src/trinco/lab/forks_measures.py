"""What ``lab.forks_experiment`` measures: the algorithms, the loads, and the pieces of work on them.

Every message takes one message time and everybody holds for one, but where a piece says otherwise.
"""

import random
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean
from typing import Any, Protocol

from trinco.core.claims import Network
from trinco.core.event import Kind
from trinco.core.trace import Recording
from trinco.lab.comparison import Subject
from trinco.lab.comparison_loads import HOLD, REST, Saturated
from trinco.lab.pieces import Listener, do_all
from trinco.lab.tally import Tally, tallied
from trinco.protocols.quorums.padding import padded
from trinco.sim.laws import Constant, Exponential, Law, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Closed, OneShot, Scripted, Workload

FORKS = Subject("campos-carvalho")
APART = Subject("campos-carvalho", ("piggy_back=no",))
RETURNING = Subject("campos-carvalho", ("returns=yes",))
CONTENDERS: Mapping[str, Subject] = {
    "Forks (Campos-Carvalho)": FORKS,
    "Forks, no piggy-backing": APART,
    "Forks, voluntary return": RETURNING,
    "Maekawa, on planes": Subject("maekawa", ("quorums=plane",)),
    "Carvalho-Roucairol": Subject("carvalho-roucairol"),
    "Chandy-Misra": Subject("chandy-misra"),
    "Ricart-Agrawala": Subject("ricart-agrawala"),
}
ORDERS = ("in turn", "at random", "saturated")

QUIET = 2 * REST
"""From one request to the next, where the first is to be over: in message times."""
WARM_UP = 600
MEDIUM_RATE = 0.15
"""Requests in a message time, of all together. A fork is handed on in two message times and used for one, so this is
not quite half of what can be served."""
LOADS: Mapping[str, str] = {
    "low": "one request at a time, from anybody",
    "medium": f"{MEDIUM_RATE:g} requests in a message time, from anybody",
    "saturated": "everybody asks again as soon as it has left",
}
PAUSE = 0.01
ALTERNATING = 100
"""Entries of two nodes that take turns: each costs what the one before it did."""
LATENCY = Uniform(0.01, 20.0)
THINKING = Exponential(200.0)
"""With these a request often meets a fork that is on its way to somebody of lower priority."""
ROUNDS = 4
"""In which the load of the nodes is counted."""


@dataclass(frozen=True)
class Outcome:
    entries: int
    violation: str | None


@dataclass(frozen=True)
class Cost(Outcome):
    """In messages."""

    per_entry: float
    most: int
    """Between two requests: for one entry, where they do not overlap."""


class Load(Protocol):
    def workload(self, n: int) -> Workload: ...

    def per_entry(self, tally: Tally) -> float | None: ...


@dataclass(frozen=True)
class Anybody:
    """Requests of nodes drawn at random, ``gap`` apart. They count once there were enough for every fork to be with
    some client, and until all is quiet."""

    gap: Law
    counted: int

    def workload(self, n: int) -> Workload:
        chance = random.Random(f"{n}/{self.counted}")
        gaps = (
            [QUIET] * (min(2 * n, WARM_UP) + 1) + [self.gap.draw(chance) for _ in range(self.counted - 1)] + [self.end]
        )
        return Scripted(tuple((chance.randrange(n), at, HOLD) for at in accumulate(gaps)))

    @property
    def end(self) -> float:
        """More than enough for all to be served who might still wait."""
        return QUIET * self.counted

    def per_entry(self, tally: Tally) -> float | None:
        return tally.per_request(skip=len(tally.requests) - 1 - self.counted)


def low(counted: int) -> Anybody:
    """One at a time."""
    return Anybody(Constant(QUIET), counted)


def medium(counted: int) -> Anybody:
    return Anybody(Exponential(1 / MEDIUM_RATE), counted)


@dataclass(frozen=True)
class Crowded:
    """Everybody asks again: as soon as it has left, or after a pause."""

    pause: bool = False

    def workload(self, n: int) -> Workload:
        entries = max(40, 3 * n)
        return Closed(entries, Constant(PAUSE), Constant(HOLD)) if self.pause else Saturated(entries)

    def per_entry(self, tally: Tally) -> float | None:
        return tally.in_full_swing().messages_per_entry()


@dataclass(frozen=True)
class Alone:
    """One node asks, when nobody has asked before: that request counts, or the one that follows."""

    again: bool

    def workload(self, n: int) -> Workload:
        return Scripted(tuple((n // 2, QUIET * place, HOLD) for place in range(2 + self.again)))

    def per_entry(self, tally: Tally) -> float | None:
        return tally.per_request(skip=int(self.again))


@dataclass(frozen=True)
class Pair:
    """Only two nodes ask: ``neighbours``, of which one is the arbiter of both, or not. They do so in ``order``:
    in turn, at random (both when all is quiet), or whenever they can."""

    neighbours: bool
    order: str
    counted: int

    def workload(self, n: int) -> Workload:
        return Scripted(tuple(zip(self.asking(n), self.times(), [HOLD] * (2 * self.counted + 1), strict=True)))

    def asking(self, n: int) -> Sequence[int]:
        arbiters = padded(n)
        two = (0, next(j for j in range(1, n) if (arbiters.common(0, j) in (0, j)) is self.neighbours))
        if self.order == "at random":
            return random.Random(f"{n}").choices(two, k=2 * self.counted + 1)
        return (two * (self.counted + 1))[:-1]

    def times(self) -> Sequence[float]:
        step = HOLD / 2 if self.order == "saturated" else QUIET
        return [step * place for place in range(2 * self.counted + 1)]

    def per_entry(self, tally: Tally) -> float | None:
        return tally.per_request(skip=self.counted)


@dataclass(frozen=True)
class Costing:
    subject: Subject
    n: int
    load: Load

    @property
    def title(self) -> str:
        return f"{self.subject.title}, n={self.n}"

    def do(self) -> Cost:
        tally = tallied(scenario(self.subject, self.n, self.load.workload(self.n)))
        marks, violation = tally.requests, tally.simulation.violation
        return Cost(
            len(tally.passages),
            violation.text if violation else None,
            self.load.per_entry(tally) or 0.0,
            max(after.messages - before.messages for before, after in pairwise(marks)),
        )


@dataclass(frozen=True)
class Preemption(Outcome):
    """In messages, charged to entries as ``core.cost`` says."""

    per_entry: float
    """Of the dearest run, on average."""
    most: int
    """Of the dearest entry."""


@dataclass(frozen=True)
class Preempting:
    """Messages that take very different times: a fork is often called back before it was used."""

    subject: Subject
    n: int
    seeds: int

    @property
    def title(self) -> str:
        return f"{self.subject.title}, n={self.n}, called back"

    def do(self) -> Preemption:
        load = Closed(max(200, 3 * self.n), THINKING, Constant(HOLD))
        base = scenario(self.subject, self.n, load).with_changes(links=Links(delay=LATENCY), trace=True)
        results = [run(base.with_changes(seed=seed)) for seed in range(self.seeds)]
        return Preemption(
            sum(each.metrics.entries for each in results),
            next((each.violation.text for each in results if each.violation), None),
            max(each.metrics.messages_per_entry or 0.0 for each in results),
            max(each.metrics.worst_messages_per_entry or 0 for each in results),
        )


@dataclass(frozen=True)
class Shares(Outcome):
    """Of the nodes, when everybody asks all the time."""

    mean: float
    """Messages that a node sends and receives, for each entry of its own."""
    most: float
    """The same of the busiest node."""
    jain: float
    """Jain's index over the entries of each: 1 is equal."""


@dataclass(frozen=True)
class Sharing:
    n: int

    @property
    def title(self) -> str:
        return f"the load of each node, n={self.n}"

    def do(self) -> Shares:
        result = run(scenario(FORKS, self.n, Saturated((ROUNDS + 2) * self.n)).with_changes(trace=True))
        loads = self._loads(result.recording) if result.recording else [0]
        return Shares(
            result.metrics.entries,
            result.violation.text if result.violation else None,
            fmean(loads) / ROUNDS,
            max(loads) / ROUNDS,
            result.metrics.fairness or 0.0,
        )

    def _loads(self, recording: Recording) -> list[int]:
        """Over whole rounds in which everybody enters once, so that nobody's work is counted in part."""
        loads, entries = [0] * self.n, 0
        for _, node, kind, peer, *_ in recording.records:
            entries += kind is Kind.GRANT
            if 1 <= entries / self.n < 1 + ROUNDS and kind in (Kind.SEND, Kind.RECEIVE) and peer != node:
                loads[node] += 1
        return loads


@dataclass(frozen=True)
class Scale(Outcome):
    """What a run took: messages per entry, and of the machine."""

    per_entry: float
    seconds: float
    mebibytes: float


@dataclass(frozen=True)
class Rush:
    """Everybody asks once, all at the same time: as many nodes as one machine can take."""

    n: int

    @property
    def title(self) -> str:
        return f"everybody at once, n={self.n:,}"

    def do(self) -> Scale:
        began = time.process_time()
        result = run(scenario(FORKS, self.n, OneShot()))
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return Scale(
            result.metrics.entries,
            result.violation.text if result.violation else None,
            result.metrics.messages / max(result.metrics.entries, 1),
            time.process_time() - began,
            largest,
        )


def scenario(subject: Subject, n: int, workload: Workload) -> Scenario:
    entry = subject.entry
    return Scenario(
        protocol=subject.name,
        build=entry.build,
        claims=entry.claims,
        n=n,
        workload=workload,
        links=Links(ordered=entry.claims.network is Network.FIFO),
        trace=False,
    )


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    sizes: tuple[int, ...]
    """Each of them is m**2 + m + 1."""
    beyond: tuple[int, ...]
    """More of them, for Campos-Carvalho only."""
    padded: tuple[int, ...]
    """Numbers of nodes for which there is no plane."""
    counted: int
    """Entries, where requests are drawn at random."""
    paired: int
    """The same, where only two nodes ask."""
    seeds: int
    rushes: tuple[int, ...] = ()
    """Numbers of nodes that all ask at once."""


class Measured:
    """All that is measured."""

    def __init__(self, extent: Extent, executor: Executor | None, listener: Listener | None) -> None:
        self.extent = extent
        self.loads: dict[str, Load] = {
            "low": low(extent.counted),
            "medium": medium(extent.counted),
            "saturated": Crowded(),
        }
        pieces = sorted(self._pieces(), key=lambda piece: -piece.n)
        self.outcomes: dict[Any, Any] = do_all(pieces, executor, listener)

    def _pieces(self) -> Iterator[Costing | Preempting | Sharing | Rush]:
        extent = self.extent
        yield from map(Rush, extent.rushes)
        for load in self.loads.values():
            yield from (Costing(each, n, load) for each in CONTENDERS.values() for n in extent.sizes)
            yield from (Costing(FORKS, n, load) for n in extent.beyond)
        for n in (*extent.sizes, *extent.beyond):
            yield from (Costing(FORKS, n, Alone(again)) for again in (False, True))
        for n in extent.sizes:
            yield Costing(FORKS, n, Crowded(pause=True))
            yield from (Costing(FORKS, n, self.pair(near, order)) for near in (True, False) for order in ORDERS)
            yield from (Preempting(each, n, extent.seeds) for each in (FORKS, APART))
        yield from map(Sharing, (*extent.sizes, *extent.padded))

    def pair(self, neighbours: bool, order: str) -> Pair:
        return Pair(neighbours, order, self.extent.paired if order == "at random" else ALTERNATING)

    def sizes_of(self, subject: Subject) -> tuple[int, ...]:
        return self.extent.sizes + (self.extent.beyond if subject is FORKS else ())

    def cost(self, subject: Subject, n: int, load: Load) -> float:
        per_entry: float = self.outcomes[Costing(subject, n, load)].per_entry
        return per_entry

    def preemption(self, subject: Subject, n: int) -> Preemption:
        preemption: Preemption = self.outcomes[Preempting(subject, n, self.extent.seeds)]
        return preemption

    def rush(self, n: int) -> Scale:
        scale: Scale = self.outcomes[Rush(n)]
        return scale

    def shares(self, n: int) -> Shares:
        shares: Shares = self.outcomes[Sharing(n)]
        return shares
