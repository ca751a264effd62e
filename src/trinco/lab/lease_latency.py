"""How long a free lease takes to get, and what of the paper's figure 2 a model bears out.

The composite asks all n stores at once and waits for the slowest of the quorum: a *quorum of sums*. DepSky's lock goes
through the stores in phases and waits for a quorum in each: a *sum of quorums*. The paper says that this makes DepSky
twice as slow. Here both run in the simulator, over the same stores and the same laws, and what an implementation may do
besides is drawn from those laws.

Each experiment is one function that returns plain figures; the same seed gives the same. Tests run it small; for
evidence, all laws and thousands of acquisitions. The means per service are our calibration of the ranges in the paper's
text, not its data: ratios count, not milliseconds.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any, TypeAlias

from trinco.core.claims import Claims
from trinco.core.event import Kind
from trinco.core.node import Node
from trinco.leases.nodes import coordination, depsky, system
from trinco.leases.nodes.messages import Reply
from trinco.sim.laws import Constant, Exponential, Law, Lognormal
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Closed

Figures: TypeAlias = dict[str, Any]
Build: TypeAlias = Callable[[int], Sequence[Node]]
Trips: TypeAlias = list[list[float]]
"""Round trips: one row an access (or phase), one column a store."""

QUORUM = 3
"""Of four stores."""
FOREVER = 1e6
"""Longer than any attempt: here leases do not run out."""
PAUSE = 10_000.0
"""Between two acquisitions, so that the slowest store has done its part of the one before."""


@dataclass(frozen=True)
class Service:
    """``kind`` of base algorithm, and how long one access takes there on average, there and back."""

    kind: str
    access: float


SERVICES = {
    "DDB": Service("conditional", 0.100),
    "AQ": Service("queue", 0.090),
    "GDS": Service("transactional", 0.150),
    "RQ": Service("queue", 0.600),
    "AS": Service("object", 0.095),
    "S3": Service("object", 0.250),
    "GS": Service("object", 0.350),
    "RS": Service("object", 0.900),
}
COMPOSITES = {
    "NAR": ("AQ", "RQ", "DDB", "GDS"),
    "AR": ("S3", "GS", "AS", "RS"),
    "TR": ("DDB", "AQ", "AS", "GDS"),
}
SCFS_ACCESS = 0.060
"""From a client in Europe to machines in Europe; the paper gives no figure."""
ACCESSES = {"one-access": 1, "conditional": 2, "object": 3, "queue": 3, "transactional": 4}
"""Of an uncontended acquire, without a token."""


@dataclass(frozen=True)
class Pareto:
    """A heavy tail: of the times, one in a thousand is a hundred times the shortest (at a shape of 1.5)."""

    shortest: float
    shape: float

    def draw(self, rng: random.Random) -> float:
        return self.shortest * math.pow(1.0 - rng.random(), -1 / self.shape)


@dataclass(frozen=True)
class SometimesSlow:
    """One message in eight takes ten times as long: another store is the slow one each time."""

    usual: float

    def draw(self, rng: random.Random) -> float:
        return self.usual * (10 if rng.random() < 1 / 8 else 1)


LAWS: dict[str, Callable[[float], Law]] = {
    "constant": Constant,
    "exponential": Exponential,
    "lognormal 0.5": lambda mean: _lognormal(mean, 0.5),
    "lognormal 1": lambda mean: _lognormal(mean, 1.0),
    "pareto 1.5": lambda mean: Pareto(mean / 3, 1.5),
    "sometimes slow": lambda mean: SometimesSlow(mean * 8 / 17),
}
"""The law of one direction, by its mean."""
QUICK = ("constant", "exponential", "lognormal 0.5")
"""Those whose mean a few hundred acquisitions show."""


def _lognormal(mean: float, sigma: float) -> Lognormal:
    return Lognormal(mean / math.exp(sigma * sigma / 2), sigma)


# Running


def run_alone(
    build: Build, claims: Claims, laws: Sequence[Law], times: int, seed: int, trace: bool = False, hold: float = 0.0
) -> Simulation:
    """One client, node 0, that acquires and releases again and again, and a store a law."""
    stores = range(1, 1 + len(laws))
    per_link = {link: law for store, law in zip(stores, laws, strict=True) for link in ((0, store), (store, 0))}
    scenario = Scenario(
        protocol="lease-latency",
        build=build,
        claims=claims,
        n=1 + len(laws),
        seed=seed,
        workload=Closed(times, think=Constant(PAUSE), hold=Constant(hold)),
        links=Links(ordered=False, per_link=per_link),
        until=math.inf,
        trace=trace,
    )
    simulation = Simulation(scenario)
    simulation.run()
    assert simulation.violation is None, simulation.violation
    assert simulation.entries == times
    return simulation


def _latencies(simulation: Simulation) -> list[float]:
    """One client, never refused: its askings and grants alternate."""
    asked = [at for at, _, kind in simulation.history if kind is Kind.ACQUIRE]
    granted = [at for at, _, kind in simulation.history if kind is Kind.GRANT]
    return [later - earlier for earlier, later in zip(asked, granted, strict=True)]


def _composite(
    kinds: Sequence[str], laws: Sequence[Law], acquisitions: int, seed: int, fenced: bool = False, trace: bool = False
) -> Simulation:
    lease = system.QuorumLease(stores=tuple(kinds), clients=1, ttl=FOREVER, t_max=FOREVER, fenced=fenced)
    return run_alone(lease, replace(system.CLAIMS, fencing=fenced), laws, acquisitions, seed, trace)


def _depsky(laws: Sequence[Law], acquisitions: int, seed: int) -> Simulation:
    return run_alone(depsky.DepSky(validity=FOREVER), depsky.CLAIMS, laws, acquisitions, seed)


def laws_for(law: str, accesses: Sequence[float]) -> list[Law]:
    """A law for one direction to each store: half of what an access takes."""
    return [LAWS[law](access / 2) for access in accesses]


def third(values: Sequence[float]) -> float:
    return sorted(values)[QUORUM - 1]


def _trips(rng: random.Random, laws: Sequence[Law], rows: int) -> Trips:
    return [[law.draw(rng) + law.draw(rng) for law in laws] for _ in range(rows)]


# The composite is as fast as its third fastest store


STORES = {
    "one-access": ("one-access",) * 4,
    "conditional": ("conditional",) * 4,
    "object": ("object",) * 4,
    "mixed": ("one-access", "conditional", "object", "transactional"),
}
ALIKE = (0.1,) * 4


def order_statistic(
    seed: int = 0,
    acquisitions: int = 200,
    samples: int = 5_000,
    laws: Sequence[str] = QUICK,
    stores: Sequence[str] = tuple(STORES),
) -> Figures:
    """The latency of an uncontended acquire against the third of four base latencies: drawn from the same laws
    (``expected``), and as the stores were in that very run (``third_in_run``). With a token beside it."""
    rows = [_order_statistic(seed, acquisitions, samples, law, name) for law in laws for name in stores]
    return {"seed": seed, "acquisitions": acquisitions, "samples": samples, "access_seconds": ALIKE[0], "rows": rows}


def _order_statistic(seed: int, acquisitions: int, samples: int, law: str, name: str) -> Figures:
    kinds, laws = STORES[name], laws_for(law, ALIKE)
    simulation = _composite(kinds, laws, acquisitions, seed, trace=True)
    latencies = _latencies(simulation)
    lease = fmean(latencies)
    with_token = fmean(_latencies(_composite(kinds, laws, acquisitions, seed, fenced=True)))
    expected = _expected(random.Random(f"{seed}/{law}/{name}"), kinds, laws, samples)
    return {
        "stores": name,
        "law": law,
        "lease": lease,
        "standard_error": stdev(latencies) / math.sqrt(acquisitions),
        "third_in_run": fmean(_thirds_in_run(simulation, kinds)),
        "expected": expected,
        "deviation": lease / expected - 1,
        "lease_and_token": with_token,
        "token_ratio": with_token / lease,
    }


def _expected(rng: random.Random, kinds: Sequence[str], laws: Sequence[Law], samples: int) -> float:
    """The mean of the third of four independent base latencies, each the sum of its accesses."""
    directions = [2 * ACCESSES[kind] for kind in kinds]
    return fmean(
        [
            third([math.fsum(law.draw(rng) for _ in range(count)) for law, count in zip(laws, directions, strict=True)])
            for _ in range(samples)
        ]
    )


def _thirds_in_run(simulation: Simulation, kinds: Sequence[str]) -> list[float]:
    """From the trace: of each acquisition, when the third store had answered the last access of its base algorithm.
    The release has the same claim; it comes after that in every store's chain."""
    assert simulation.recording is not None
    asked: list[float] = []
    replies: Counter[tuple[int, int]] = Counter()
    done: dict[int, list[float]] = {}
    for at, node, kind, peer, message, *_ in simulation.recording.records:
        if node == 0 and kind is Kind.ACQUIRE:
            asked.append(at)
        elif node == 0 and kind is Kind.RECEIVE:
            assert isinstance(message, Reply)
            attempt = message.claim.attempt
            replies[attempt, peer] += 1
            if replies[attempt, peer] == ACCESSES[kinds[peer - 1]]:
                done.setdefault(attempt, []).append(at)
    return [third(done[attempt]) - at for attempt, at in enumerate(asked, start=1)]


# DepSky: does waiting in phases cost twice as much?

PHASES = (QUORUM, QUORUM, QUORUM)
LISTS_WAIT_FOR_ALL = (4, QUORUM, 4)
SAME = (1.0,) * 4
FAR = (2.0, 2.0, 1.0, 1.0)
"""S3 and Google Storage in the US, twice as far as in Europe."""


def quorum_of_sums(trips: Trips) -> float:
    """The composite over object stores: list, write, list at each by itself."""
    return third([math.fsum(column) for column in zip(*trips[:3], strict=True)])


def sum_of_quorums(trips: Trips, needed: Sequence[int] = PHASES) -> float:
    """DepSky as published: list, write, list, each time the third of four."""
    return math.fsum(sorted(row)[count - 1] for row, count in zip(trips, needed, strict=False))


def one_thread_a_store(trips: Trips, needed: Sequence[int] = PHASES) -> float:
    """A store is asked anew only once it has answered, so that a slow one begins the next phase late."""
    free, now = [0.0] * len(trips[0]), 0.0
    for row, count in zip(trips, needed, strict=False):
        free = [max(now, at) + trip for at, trip in zip(free, row, strict=True)]
        now = sorted(free)[count - 1]
    return now


def lists_wait_for_all(trips: Trips) -> float:
    return sum_of_quorums(trips, LISTS_WAIT_FOR_ALL)


def public_code(trips: Trips) -> float:
    """One thread a cloud, listings wait for all four, and the new lock is read back from one cloud after the other."""
    return one_thread_a_store(trips, LISTS_WAIT_FOR_ALL) + math.fsum(trips[3])


def reads_what_it_lists(trips: Trips) -> float:
    """Signatures in the objects, not in their names: a leftover lock is read after both listings, our own after the
    second; each store by itself, each phase the third of four."""
    phases = [trips[0], trips[3]], [trips[1]], [trips[2], trips[4], trips[5]]
    return math.fsum(third([math.fsum(column) for column in zip(*rows, strict=True)]) for rows in phases)


ASSUMPTIONS: dict[str, tuple[Callable[[Trips], float], Sequence[float]]] = {
    "as published": (sum_of_quorums, SAME),
    "one thread a store": (one_thread_a_store, SAME),
    "two of DepSky's stores twice as far": (sum_of_quorums, FAR),
    "locks are read after each listing": (reads_what_it_lists, SAME),
    "listings wait for all four": (lists_wait_for_all, SAME),
    "the public code": (public_code, SAME),
}


def depsky_ratio(
    seed: int = 0, acquisitions: int = 200, samples: int = 2_000, laws: Sequence[str] = tuple(LAWS)
) -> Figures:
    """DepSky's three phases over four object stores against the composite over the same ones: the ratio of the mean
    latencies, simulated (``simulated``), drawn (``drawn``), and drawn under other assumptions."""
    calibrated = [SERVICES[name].access for name in COMPOSITES["AR"]]
    alike = [fmean(calibrated)] * 4
    simulated = [
        _simulated_ratio(seed, acquisitions, law, stores, accesses)
        for law in laws
        for stores, accesses in (("calibrated", calibrated), ("alike", alike))
    ]
    drawn = [figures for law in laws for figures in _drawn_ratios(seed, samples, law, calibrated)]
    return {
        "seed": seed,
        "acquisitions": acquisitions,
        "samples": samples,
        "paper": 2.0,
        "simulated": simulated,
        "drawn": drawn,
        "slow_in_turn": [
            _slow_in_turn(seed, samples, law, slowness) for law in ("constant", "lognormal 0.5") for slowness in (4, 20)
        ],
        "verdict": _verdict(simulated, drawn),
    }


def _simulated_ratio(seed: int, acquisitions: int, law: str, stores: str, accesses: Sequence[float]) -> Figures:
    laws = laws_for(law, accesses)
    phases = fmean(_latencies(_depsky(laws, acquisitions, seed)))
    lease = fmean(_latencies(_composite(("object",) * 4, laws, acquisitions, seed)))
    return {"law": law, "stores": stores, "depsky": phases, "composite": lease, "ratio": phases / lease}


def _drawn_ratios(seed: int, samples: int, law: str, accesses: Sequence[float]) -> list[Figures]:
    """Every assumption over the same draws."""
    rng, laws = random.Random(f"{seed}/{law}"), laws_for(law, accesses)
    draws = [_trips(rng, laws, 6) for _ in range(samples)]
    lease = fmean([quorum_of_sums(trips) for trips in draws])
    return [
        {"law": law, "assumption": name, "ratio": fmean([wait(_scaled(trips, far)) for trips in draws]) / lease}
        for name, (wait, far) in ASSUMPTIONS.items()
    ]


def _scaled(trips: Trips, factors: Sequence[float]) -> Trips:
    return [[trip * factor for trip, factor in zip(row, factors, strict=True)] for row in trips]


def _slow_in_turn(seed: int, samples: int, law: str, slowness: float) -> Figures:
    """By design, not by chance: one store is always slow, and in each phase another one as well."""
    rng, laws = random.Random(f"{seed}/in turn"), laws_for(law, ALIKE)
    draws = [_trips(rng, laws, 3) for _ in range(samples)]
    for trips in draws:
        for phase, row in enumerate(trips):
            row[phase] *= slowness
            row[3] *= slowness
    ratio = fmean(map(sum_of_quorums, draws)) / fmean(map(quorum_of_sums, draws))
    return {"law": law, "slowness": slowness, "ratio": ratio}


def _verdict(simulated: Sequence[Figures], drawn: Sequence[Figures]) -> str:
    phases = [figures["ratio"] for figures in simulated]
    text = f"Phases by themselves cost {min(phases):.2f} to {max(phases):.2f} times the composite, not twice as much."
    for name in list(ASSUMPTIONS)[1:]:
        ratios = [figures["ratio"] for figures in drawn if figures["assumption"] == name]
        text += f" {name[0].upper()}{name[1:]}: {min(ratios):.2f} to {max(ratios):.2f}."
    return text


# The paper's mixes


def paper_mixes(seed: int = 0, acquisitions: int = 200, laws: Sequence[str] = tuple(LAWS)) -> Figures:
    """The paper's composites and its two baselines under the calibrated laws. Paper: AR is about twice NAR, TR about
    half of it, TD about four times, TS the fastest."""
    return {
        "seed": seed,
        "acquisitions": acquisitions,
        "paper": {"AR/NAR": 2.0, "TR/NAR": 0.5, "TD/NAR": 4.0},
        "rows": [_mixes(seed, acquisitions, law) for law in laws],
    }


def _mixes(seed: int, acquisitions: int, law: str) -> Figures:
    means: dict[str, float] = {}
    for name, members in COMPOSITES.items():
        services = [SERVICES[member] for member in members]
        laws = laws_for(law, [service.access for service in services])
        kinds = [service.kind for service in services]
        means[name] = fmean(_latencies(_composite(kinds, laws, acquisitions, seed)))
    stores = laws_for(law, [SERVICES[member].access for member in COMPOSITES["AR"]])
    means["TD"] = fmean(_latencies(_depsky(stores, acquisitions, seed)))
    scfs = run_alone(coordination.Coordination(), coordination.CLAIMS, laws_for(law, [SCFS_ACCESS]), acquisitions, seed)
    means["TS"] = fmean(_latencies(scfs))
    ratios = {f"{name}/NAR": means[name] / means["NAR"] for name in ("AR", "TR", "TD", "TS")}
    return {"law": law, "latency": means, **ratios}
