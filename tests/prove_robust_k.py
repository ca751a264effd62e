"""The full counts for robust k-mutual exclusion: its detector, its tree, crashes at any moment, and the experiment."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from math import ceil, log2

from tests.check.test_robust_k_states import DIRECT, DIRECT_2, FIFO, TREE, UNORDERED, model
from tests.protocols import test_robust_k_raymond as raymond
from tests.protocols import test_robust_k_recovery as recovery
from tests.protocols import test_units as units
from tests.protocols.test_clusters import clusters
from tests.protocols.test_robust_k_schedules import failures, leaking, schedules
from tests.protocols.test_spanning_tree import copies, fault_sets
from tests.protocols.test_spanning_tree_runs import assert_that_all_heard_everything_once, living_after, lossy
from tests.prove_foundation import Figures, Proof
from trinco.check.model import Clocks, Model, Timers
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.core.event import Kind
from trinco.core.ids import bit
from trinco.lab import diagnosis
from trinco.lab.comparison import Subject, compare
from trinco.lab.diagnosis import Case, latency, survey, worst_case
from trinco.lab.robust_k_experiment import RAYMOND, REQUESTERS, WINDOW, Reading, Trial, measure
from trinco.lab.robust_k_experiment import VARIANTS as MEASURED
from trinco.protocols.catalogue import find
from trinco.protocols.detection.clusters import dimensions
from trinco.protocols.permission.robust_k_recovery import RecoveringRobustK
from trinco.protocols.permission.robust_k_system import RobustKSystem
from trinco.protocols.permission.units import NobodyShares, UnitHolder
from trinco.sim.faults import Crash
from trinco.sim.laws import Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.swarm import Swarm
from trinco.sim.workload import saturated

HERE = "tests.prove_robust_k"
SIZES = (4, 8, 16, 32, 64)
MOST_STATES = 5_000_000
BYTES = 3 << 30

# Who tests whom, and who tells whom


def parted() -> Figures:
    """The clusters of every process part all others, whatever n."""
    sizes = range(2, 65)
    for n in sizes:
        for me in range(n):
            others = sorted(each for corners in clusters(me, n) for each in corners)
            assert others == [each for each in range(n) if each != me], (n, me)
    return {"command": f"{HERE}.parted()", "partitions": sum(sizes), "clusters_for_n": "2 to 64"}


def told_once() -> Figures:
    """For every root and every set of known dead: as many messages as there are others alive, in log n hops."""
    trees = 0
    for n in range(2, 11):
        for root in range(n):
            for faulty in fault_sets(n, root):
                told = copies(n, root, faulty)
                living = [each for each in range(n) if each != root and not faulty & bit(each)]
                assert sorted(to for _, _, to, _ in told) == living, (n, root, faulty)
                assert max((hop for hop, *_ in told), default=0) <= ceil(log2(n)), (n, root, faulty)
                trees += 1
    return {"command": f"{HERE}.told_once()", "trees": trees, "trees_for_n": "2 to 10", "copies_too_many": 0}


def lost(seeds: int) -> Figures:
    """A tenth of TREE and ACK is lost: of the tree by itself, and under robust-k, and nobody is stuck."""
    for seed in range(seeds):
        assert_that_all_heard_everything_once(living_after(lossy(seed, think=0.2 * (seed % 2))))
        result = leaking(seed, n=2 + seed % 15)
        assert result.finished, seed
        assert result.violation is None, (seed, result.violation)
    printed = sum(not leaking(seed, acknowledges_again=False, n=2 + seed % 15).finished for seed in range(100))
    return {
        "command": f"{HERE}.lost({seeds})",
        "lossy_runs": 2 * seeds,
        "stuck": 0,
        "stuck_in_a_hundred_as_printed": printed,
    }


# Diagnosis

FOUND = {
    9: Case(8, (5, 7), (1, 2, 3, 2, 3, 3, 2, 3)),
    16: Case(16, (6, 12, 15), (3, 4, 4, 2, 3, 3, 3, 2, 1, 1, 4, 2, 4, 2, 4, 3)),
}
"""Schedules that a search has found, by the intervals that they take."""


def diagnosed(n: int, cases: int = 1_500) -> Figures:
    """Any faults, any phases: log^2 n intervals at most."""
    found = survey(n, cases)
    assert sum(found.by_latency.values()) == cases
    assert found.worst <= found.bound == dimensions(n) ** 2, found
    return {"command": f"trinco.lab.diagnosis.survey({n}, {cases})", "diagnosis": asdict(found)}


def slowest() -> Figures:
    """The bound is reached."""
    reached = {n: latency(worst_case(n)) for n in (2, *SIZES)}
    assert all(intervals == dimensions(n) ** 2 for n, intervals in reached.items()), reached
    assert all(latency(case) == intervals for intervals, case in FOUND.items())
    stored = {str(intervals): asdict(case) for intervals, case in FOUND.items()}
    return {"command": f"{HERE}.slowest()", "intervals_at_worst": reached, "stored": stored}


def in_step(n: int, most: int) -> Figures:
    """All test the same cluster in each interval: exactly log n, whoever is dead. So many are dead or alive at most."""
    counts = [count for count in range(1, n) if min(count, n - count) <= most]
    dead = [faulty for count in counts for faulty in combinations(range(n), count)]
    found = {latency(Case(n, faulty)) for faulty in dead}
    assert found == {dimensions(n)}, found
    return {"command": f"{HERE}.in_step({n}, {most})", "fault_sets": len(dead), "intervals": dimensions(n)}


# Every run of a small system


PATIENT, PATIENT_2 = (RobustKSystem(k=k, delta=0.25) for k in (1, 2))
"""A tick of the checker is as long as the tree's timeout."""

FOR_EVER = "safe, deadlock-free, starvation-free"
UP_TO_TIMERS = "safe; where somebody waits for a timer that has fired as often as it may, nothing is said of progress"


@dataclass(frozen=True)
class Explored:
    """``asking``: how many of the processes ever ask; None is all. ``hasty``: how often the tree's timer may fire, at
    any time; None is up to three times, and only when nothing is under way any more."""

    system: RobustKSystem
    n: int
    crashes: int
    network: Network
    entries: int = 1
    hasty: int | None = None
    asking: int | None = None

    @property
    def title(self) -> str:
        how = "directly" if not self.system.tree else "reply is ack" if self.system.reply_is_ack else "by tree"
        asking = f"{self.asking} ask" if self.asking else "all ask"
        repeated = f", repeated hastily up to {self.hasty} times" if self.hasty else ""
        bounds = f"n={self.n} k={self.system.k} rounds={self.entries} crashes={self.crashes}"
        return f"check robust-k {bounds} {self.network.name.lower()} {how}, {asking}{repeated}"

    @property
    def command(self) -> str:
        """Not all of it can be said on the command line."""
        if self.system.tree or self.asking:
            return f"{HERE}, {self.title}"
        settings = f"--set k={self.system.k} --set tree=no --network {self.network.name.lower()} --no-reductions"
        return f"trinco check robust-k -n {self.n} --rounds {self.entries} --crashes {self.crashes} {settings}"

    def model(self) -> Model:
        made = model(self.system, self.n, self.entries, self.crashes, self.network, self.hasty or 3)
        made = replace(made, called=frozenset(range(self.asking)) if self.asking else None)
        return made if self.hasty or not self.system.tree else replace(made, timers=Timers.PUNCTUAL, clocks=Clocks())


EXPLORED = (
    Explored(DIRECT, 3, 1, UNORDERED), Explored(DIRECT_2, 3, 1, UNORDERED),
    Explored(DIRECT, 3, 2, UNORDERED), Explored(DIRECT_2, 3, 2, UNORDERED),
    Explored(DIRECT, 3, 1, UNORDERED, entries=2),
    Explored(PATIENT, 3, 1, FIFO), Explored(PATIENT_2, 3, 1, FIFO), Explored(PATIENT, 3, 2, FIFO),
    Explored(PATIENT, 3, 1, UNORDERED), Explored(replace(PATIENT, reply_is_ack=True), 3, 1, FIFO),
    Explored(TREE, 2, 1, UNORDERED, entries=2, hasty=1), Explored(TREE, 4, 1, UNORDERED, hasty=1, asking=1),
    Explored(DIRECT, 4, 0, FIFO),
    Explored(DIRECT, 4, 1, UNORDERED, asking=2), Explored(DIRECT, 4, 3, FIFO, asking=2),
    Explored(PATIENT, 4, 1, FIFO, asking=2), Explored(DIRECT_2, 4, 1, FIFO, asking=3),
)  # fmt: skip
TOO_LARGE = Explored(DIRECT, 4, 1, FIFO)


def exhaustive(command: str, searched: Model) -> Figures:
    result = check(searched, max_states=MOST_STATES, max_bytes=BYTES)
    assert result.verdict is Verdict.HOLDS, result.violation
    assert result.liveness or result.cut_off
    return {
        "command": command,
        "states": result.progress.states,
        "depth": result.progress.depth,
        "verdict": FOR_EVER if result.liveness else UP_TO_TIMERS,
    }


def begun(command: str, searched: Model) -> Figures:
    """As far as it goes: the shortest runs, all of them."""
    result = check(searched, max_states=MOST_STATES, max_bytes=BYTES, liveness=False)
    assert result.violation is None, result.violation
    assert result.verdict is Verdict.INCONCLUSIVE
    return {
        "command": command,
        "states": result.progress.states,
        "depth": result.progress.depth,
        "verdict": f"no violation within {result.progress.depth - 1} steps; inconclusive, by the bound on states",
    }


def _others() -> Iterator[tuple[str, Model]]:
    """Those who come back, and who has which unit."""
    for crashes, network in ((1, UNORDERED), (2, FIFO)):
        words = f"n=2 k=1 crashes={crashes} restarts={crashes} {network.name.lower()}, Hi-ADSD and all"
        yield f"check robust-k {words}", recovery.with_hi_adsd(RecoveringRobustK, crashes, network)
    nodes = [RecoveringRobustK(me, 3, 1) for me in range(3)]
    oracle = Model(nodes=nodes, crashes=1, restarts=1, reductions=False)
    yield "check robust-k n=3 k=1 crashes=1 restarts=1 fifo, with an oracle", oracle
    for k, crashes, network in ((1, 1, UNORDERED), (2, 1, UNORDERED), (2, 2, FIFO)):
        words = f"n=3 k={k} crashes={crashes} {network.name.lower()}"
        yield f"check robust-units {words}", units.model(UnitHolder, 3, k, crashes, network, NobodyShares())


# Random crash schedules


SETTINGS = ("detector", "schedule", "notifies", "tree", "retry", "acknowledges_again", "reply_is_ack")


def crash_schedules(count: int, recovers: bool) -> Figures:
    """Of any size, load, variant and detector: 0 violations, nobody stuck. Says what was drawn."""
    drawn: Counter[str] = Counter()
    for simulation in schedules(count, recovers):
        assert not failures([simulation]), simulation.scenario.seed
        drawn.update(_drawn(simulation))
    assert all(drawn[f"n={n}"] for n in range(2, 17))
    assert all(drawn[f"k={k}"] for k in range(1, 16))
    settings = {words: count for words, count in sorted(drawn.items()) if words.partition("=")[0] in SETTINGS}
    counted = ("crashes", "while_sending", "while_inside", "restarts", "all_but_one_dead", "entries")
    return {
        "command": f"{HERE}.crash_schedules({count}, recovers={recovers})",
        "schedules": count,
        "violations": 0,
        "stuck": 0,
        **{name: drawn[name] for name in counted},
        "settings": settings,
    }


def _drawn(simulation: Simulation) -> Iterator[str]:
    scenario, system = simulation.scenario, simulation.scenario.build
    assert isinstance(system, RobustKSystem)
    yield from (f"n={scenario.n}", f"k={system.k}", *(f"{name}={getattr(system, name)}" for name in SETTINGS))
    at_once = {(each.at, each.node) for each in scenario.faults if isinstance(each, Crash) and each.after_sends is None}
    last: dict[int, Kind] = {}
    for at, node, kind in simulation.history:
        yield from ["entries"] * (kind is Kind.GRANT) + ["restarts"] * (kind is Kind.RESTART)
        if kind is Kind.CRASH:
            yield "crashes"
            yield from ["while_sending"] * ((at, node) not in at_once)
            yield from ["while_inside"] * (last.get(node) is Kind.GRANT)
        last[node] = kind
    yield from ["all_but_one_dead"] * (sum(host.alive for host in simulation.hosts) == 1)


def units_under_crashes(count: int) -> Figures:
    """Nobody has the unit of another, and tokens rise."""
    failed = units.failures(count)
    assert not failed, failed
    return {"command": f"{HERE}.units_under_crashes({count})", "schedules": count, "violations": 0, "stuck": 0}


def wide(protocol: str, seeds: int, entries: int) -> Figures:
    entry = find(protocol)
    scenario = Scenario(
        protocol=protocol,
        build=entry.build,
        claims=entry.claims,
        n=6,
        workload=saturated(entries),
        links=Links(Uniform(0.1, 20.0), ordered=False),
        trace=False,
    )
    crowd = Swarm(scenario)
    crowd.run(range(seeds))
    assert not crowd.violations, crowd.violations
    assert not crowd.unfinished
    return {
        "command": f"trinco sim {protocol} -n 6 --workload saturated --entries {entries} --delay uniform:0.1,20 "
        f"--unordered --seeds {seeds}",
        "seeds": crowd.done,
        "entries": crowd.entries,
        "violations": 0,
    }


# Beside Raymond's


def raymond_crashes(count: int) -> Figures:
    """Of those who ask after f crashes at most k-f are inside together; after k crashes nobody is."""
    after_all = reached = 0
    for simulation in map(raymond.crashing, range(count)):
        k = raymond.units(simulation)
        for crashes, most in raymond.inside_together(simulation).items():
            assert most <= k - crashes, simulation.scenario.seed
            after_all += crashes == k
            reached += most == k - crashes > 0
    return {
        "command": f"{HERE}.raymond_crashes({count})",
        "raymond_runs": count,
        "with_k_crashes": after_all,
        "entries_after_them": 0,
        "times_k_minus_f_inside": reached,
    }


def measured(protocol: str) -> Figures:
    """Messages per entry under each of the comparison's loads, and delays, for n = 4 to 64."""
    (found,) = compare([Subject(protocol)], SIZES)
    assert not list(found.violations), list(found.violations)
    figures = {
        str(each.n): {
            "messages": asdict(each.messages),
            "delay": asdict(each.delay) if each.delay else None,
            "synchronisation_delay": each.synchronisation_delay,
        }
        for each in found.measures
    }
    return {"command": f"trinco compare {protocol} -n {','.join(map(str, SIZES))}", "measured": figures}


def experiment() -> Figures:
    """Section 5 of the paper. The figures of the diagnosis and Raymond's requests are exactly those published."""
    rows = measure()
    assert diagnosis.experiment() == diagnosis.PUBLISHED
    assert rows[RAYMOND].messages["request"] == 1_425
    shown = {
        name: {
            "messages": dict(row.messages),
            "without_diagnosis": row.without_diagnosis,
            "entries": row.entries,
            "entries_by_window": row.entries_by_window,
            "mean_wait": round(row.waiting.mean, 3),
            "longest_wait": round(row.waiting.max, 2),
        }
        for name, row in rows.items()
    }
    return {"command": "trinco reproduce robust-k", "experiment": shown}


def every_window(readings: int) -> Figures:
    """However the paper is read, whoever asks when: somebody enters in each 5.0 of time, also when p0 is alone, and
    never more than k are inside; Raymond's lets nobody in from the sixth crash on."""
    robust = [name for name in MEASURED if name != RAYMOND]
    fewest: dict[str, int] = {}
    for seed in range(readings):
        rng = random.Random(seed)
        reading = Reading(rng.random(), tuple(rng.random() for _ in REQUESTERS), rng.random() < 0.5)
        for name in robust:
            row = Trial(name, reading).do()
            assert all(row.entries_by_window), (seed, name, row.entries_by_window)
            assert row.most_inside <= 5, (seed, name)
            fewest[name] = min(fewest.get(name, row.entries), *row.entries_by_window[: int(75 / WINDOW)])
        assert not any(Trial(RAYMOND, reading).do().entries_by_window[6:]), seed
    return {
        "command": f"{HERE}.every_window({readings})",
        "readings": readings,
        "fewest_entries_in_a_window_until_75": fewest,
    }


def proofs() -> dict[str, Proof]:
    """What is proven, by name. Ordered as the docs show it."""
    explored = {each.title: partial(exhaustive, each.command, each.model()) for each in EXPLORED}
    found: dict[str, Proof] = {**explored}
    found[TOO_LARGE.title] = partial(begun, TOO_LARGE.command, TOO_LARGE.model())
    found |= {title: partial(exhaustive, f"{HERE}, {title}", searched) for title, searched in _others()}
    found["crashes robust-k for ever"] = partial(crash_schedules, 5_000, recovers=False)
    found["crashes robust-k coming back"] = partial(crash_schedules, 5_000, recovers=True)
    found["crashes robust-units"] = partial(units_under_crashes, 5_000)
    found["crashes raymond-k"] = partial(raymond_crashes, 2_000)
    for name in ("robust-k", "robust-units"):
        found[f"measured {name}"] = partial(measured, name)
        found[f"wide {name}"] = partial(wide, name, seeds=2_000, entries=30)
    found["loss robust-k"] = partial(lost, 2_000)
    found["clusters robust-k"] = parted
    found["tree robust-k"] = told_once
    for n in (5, 8, 12, 16, 24, 32, 64):
        found[f"diagnosis robust-k n={n}"] = partial(diagnosed, n)
    found["diagnosis robust-k at worst"] = slowest
    for n, most in ((2, 1), (4, 2), (8, 4), (16, 3)):
        found[f"diagnosis robust-k in step n={n}"] = partial(in_step, n, most)
    found["experiment robust-k"] = experiment
    found["windows robust-k"] = partial(every_window, 50)
    return found
