"""The full counts behind what the docs claim about the classics and the elections. Part of ``make prove``.

Every search is a plain one, without reductions, so the numbers of states are those that the tests keep.
"""

import random
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from math import sqrt

from tests.protocols import test_ordered_voting, test_voting
from tests.protocols.test_coordinator_failover import failures, schedules
from tests.prove_foundation import MOST_STATES, Figures, Instance, Proof, exhaustive, swarm
from trinco.check.elections import election_model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.core.cost import beyond_claim
from trinco.core.event import Kind
from trinco.lab import vote_loss
from trinco.lab.comparison_measures import measure
from trinco.lab.election_comparison import elect
from trinco.protocols.catalogue import find
from trinco.protocols.permission.ordered_voting import OrderedVotingSystem
from trinco.protocols.permission.voting import VotingSystem
from trinco.sim.faults import Crash, Fault, Restart
from trinco.sim.laws import Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Elections, saturated

PEERS = (
    "carvalho-roucairol",
    "chandy-misra",
    "coordinator",
    "coordinator-failover",
    "lamport",
    "maekawa",
    "naimi-trehel",
    "ordered-voting",
    "raymond-k",
    "raymond-tree",
    "regenerating-ring",
    "ricart-agrawala",
    "suzuki-kasami",
    "token-ring",
    "voting",
)
SIZES = (4, 8, 16, 32, 64)
FAILOVER = ("coordinator-failover", "regenerating-ring")
ELECTIONS = ("bully", "ring-election")
TICK = "delta=0.33"
"""A third of the checker's tick for a message: the shortest timeouts that are still all of different length."""

# Every run of a small system


def _instances() -> Iterator[Instance]:
    cases: list[tuple[str, int, int | None, dict[str, object]]] = [
        ("carvalho-roucairol", 3, 2, {}), ("carvalho-roucairol", 3, 3, {}),
        ("chandy-misra", 3, 2, {}), ("chandy-misra", 3, None, {}),
        ("chandy-misra", 4, None, {"settings": ("graph=ring",)}),
        ("coordinator", 4, 2, {"settings": ("says_nok=yes",)}),
        ("coordinator", 5, 2, {"settings": ("resources=printer,scanner",)}),
        ("coordinator-failover", 3, 2, {"crashes": 2}), ("coordinator-failover", 3, None, {"crashes": 2}),
        ("coordinator-failover", 4, 1, {"crashes": 2}),
        ("lamport", 3, 1, {}), ("lamport", 3, 2, {}),
        ("maekawa", 3, 1, {}), ("maekawa", 3, 2, {}),
        ("naimi-trehel", 3, 2, {}), ("naimi-trehel", 4, 2, {}), ("naimi-trehel", 4, None, {}),
        ("ordered-voting", 5, 2, {}), ("ordered-voting", 6, 1, {"settings": ("m=3",)}),
        ("ordered-voting", 6, 2, {"settings": ("m=3",), "network": Network.FIFO}),
        ("raymond-k", 3, 1, {"crashes": 1}), ("raymond-k", 3, 2, {"settings": ("k=1",)}),
        ("raymond-k", 3, 2, {"network": Network.FIFO}),
        ("raymond-tree", 3, 2, {}), ("raymond-tree", 4, 2, {}), ("raymond-tree", 5, None, {}),
        ("raymond-tree", 4, 2, {"settings": ("tree=star",)}), ("raymond-tree", 3, 2, {"settings": ("tree=line",)}),
        ("regenerating-ring", 3, 2, {"crashes": 2}), ("regenerating-ring", 3, None, {"crashes": 2}),
        ("regenerating-ring", 4, None, {"crashes": 3}),
        ("suzuki-kasami", 3, 2, {}),
    ]  # fmt: skip
    for protocol, n, rounds, more in cases:
        yield Instance(protocol=protocol, n=n, rounds=rounds, reductions=False, **more)  # type: ignore[arg-type]


def safe_voting(m: int, votes: int, rounds: int, fires: int) -> Figures:
    """Two clients, each of which may try again so many times. That nobody starves is not claimed."""
    model = test_voting.model(m, votes, rounds=rounds, fires=fires, reductions=False)
    result = check(model, liveness=False, max_states=MOST_STATES)
    assert result.verdict is Verdict.HOLDS, result.violation
    return {
        "command": f"tests.prove_classics.safe_voting({m}, {votes}, {rounds}, {fires})",
        "states": result.progress.states,
        "verdict": "safe",
    }


def endless_ordered_voting(m: int, clients: int, numbers: int) -> Figures:
    """Entries without end: with few numbers, which begin again from 0, the states come to one."""
    result = check(test_ordered_voting.model(m, clients, None, numbers=numbers), max_states=MOST_STATES)
    assert result.verdict is Verdict.HOLDS, result.violation
    assert result.liveness
    return {
        "command": f"tests.prove_classics.endless_ordered_voting({m}, {clients}, {numbers})",
        "states": result.progress.states,
        "verdict": "safe, deadlock-free, starvation-free",
    }


def checked_election(name: str, n: int, restarts: int, noticing: frozenset[int] | None = None) -> Figures:
    """One crash at any moment, and so many that come back. All may notice unless some are named."""
    entry = find(name).set(TICK)
    model = election_model(
        entry.nodes(n),
        noticing=noticing,
        crashes=1,
        restarts=restarts,
        network=entry.claims.network,
        reductions=False,
    )
    result = check(model, liveness=False, max_states=MOST_STATES)
    assert result.verdict is Verdict.HOLDS, result.violation
    command = f"trinco check {name} -n {n} --crashes 1 --restarts {restarts} --set {TICK} --no-reductions"
    here = f"tests.prove_classics.checked_election({name!r}, {n}, {restarts}, {noticing})"
    return {
        "command": command if noticing is None else here,
        "states": result.progress.states,
        "verdict": "all agree when quiet, and the election ends",
    }


# Messages


def measured(protocol: str) -> Figures:
    """Messages per entry under each of the comparison's loads, and delays, for n = 4 to 64."""
    entry, figures = find(protocol), {}
    for n in SIZES:
        found = measure(entry, n)
        assert not found.violations, found.violations
        for mean in asdict(found.messages).values():
            assert mean is not None, f"nobody entered, n={n}"
            excess = beyond_claim(mean, None, entry.claims, **entry.letters(n))
            assert excess is None, excess
        figures[str(n)] = {
            "messages": asdict(found.messages),
            "delay": asdict(found.delay) if found.delay else None,
            "synchronisation_delay": found.synchronisation_delay,
        }
    return {"command": f"trinco compare {protocol} -n {','.join(map(str, SIZES))}", "measured": figures}


def by_voters(protocol: str) -> Figures:
    """Messages per entry when one client asks, for m = 4 to 64: 3m, and 3m + 2 in one total order."""
    entry, counts = find(protocol), {}
    for m in SIZES:
        build = VotingSystem(m) if protocol == "voting" else OrderedVotingSystem(m)
        n = m + 1 + (protocol == "ordered-voting")
        scenario = Scenario(protocol=protocol, build=build, claims=entry.claims, n=n, workload=saturated(10))
        metrics = run(scenario).metrics
        costs = set(metrics.costs[:-1])  # of the last entry not all messages are sent when the run ends
        assert costs == {3 * m + 2 * (protocol == "ordered-voting")}, costs
        counts[str(m)] = costs.pop()
    return {"command": f"trinco sim {protocol} --set m=M -n N --workload saturated", "by_voters": counts}


def cost_of_elections(name: str) -> Figures:
    """When only the leader has crashed: the highest of the others notices, the lowest, or all of them."""
    entry, figures = find(name), {}
    for n in SIZES:
        costs = {"highest": elect(entry, n, n - 1), "lowest": elect(entry, n, 1), "all": elect(entry, n, None)}
        for cost in costs.values():
            assert cost.violation is None, cost
            assert cost.predicted in (cost.messages, cost.messages - cost.to_the_dead), cost
            assert cost.leader == n - 2
        figures[str(n)] = {who: asdict(cost) for who, cost in costs.items()}
    return {"command": f"trinco compare {name} --elections -n {','.join(map(str, SIZES))}", "elections": figures}


EXAMPLES = {
    "bully": (
        (8, (4,), {"election": 6, "ok": 3, "coordinator": 6}),
        (4, (1,), {"election": 3, "ok": 1, "coordinator": 2}),
    ),
    "ring-election": ((8, (2, 5), {"election": 14 + 2, "coordinator": 14 + 2, "received": 28}),),
}
"""The slides' examples: n, who notices, and what is sent. Of the ring's, two and two are attempts that find nobody."""


def examples(name: str) -> Figures:
    entry, figures = find(name), []
    for n, noticing, counts in EXAMPLES[name]:
        scenario = Scenario(
            protocol=name,
            build=entry.build,
            claims=entry.claims,
            n=n,
            workload=Elections(tuple((node, 1.0) for node in noticing)),
            faults=(Crash(n - 1, 0.5),),
        )
        result = run(scenario)
        assert result.violation is None, result.violation
        assert result.metrics.messages_by_kind == counts, result.metrics.messages_by_kind
        assert result.recording is not None
        lost = sum(event.kind is Kind.DROP for event in result.recording.events_without_clocks())
        figures.append({"n": n, "noticing": noticing, "sent": counts, "to_the_dead": lost})
    notices = " ".join(f"--notice {node}@1" for node in EXAMPLES[name][0][1])
    return {"command": f"trinco sim {name} -n 8 --fault crash:7@0.5 {notices}", "examples": figures}


# Many runs


def crash_schedules(protocol: str, count: int = 3_000) -> Figures:
    """Two to eight nodes, of which up to all but one crash, wide delays, channels that mostly reorder."""
    failed = failures(schedules(count, protocol))
    assert not failed, failed
    return {
        "command": f"tests.prove_classics.crash_schedules({protocol!r}, {count})",
        "schedules": count,
        "violations": 0,
        "stuck": 0,
    }


def crashes_and_recoveries(name: str, count: int = 2_000) -> Figures:
    """Nodes crash and come back at random while others hold elections; in the end everybody notices."""
    crashes = restarts = 0
    for seed in range(count):
        scenario = election_schedule(name, seed)
        result = run(scenario)
        assert result.violation is None, (seed, result.violation)
        assert result.finished, seed
        crashes += sum(isinstance(fault, Crash) for fault in scenario.faults)
        restarts += sum(isinstance(fault, Restart) for fault in scenario.faults)
    return {
        "command": f"tests.prove_classics.crashes_and_recoveries({name!r}, {count})",
        "elections_disturbed": count,
        "crashes": crashes,
        "restarts": restarts,
        "violations": 0,
    }


def election_schedule(name: str, seed: int) -> Scenario:
    rng, entry = random.Random(seed), find(name)
    n = rng.randint(2, 8)
    faults: list[Fault] = []
    for node in rng.sample(range(n), rng.randint(1, n - 1)):
        at = rng.uniform(0.0, 40.0)
        faults.append(Crash(node, at, after_sends=rng.choice((None, None, 0, 1))))
        if rng.random() < 0.5:
            faults.append(Restart(node, at + rng.uniform(0.0, 30.0)))
    over = max(fault.at for fault in faults if isinstance(fault, Crash | Restart)) + 100.0 * n
    # Who is to crash while it sends may do so as late as this: each time somebody must notice it.
    late = ((node, over + 100.0 * n * turn) for turn in range(n) for node in range(n))
    early = tuple((rng.randrange(n), rng.uniform(0.0, 40.0)) for _ in range(rng.randint(1, n)))
    return Scenario(
        protocol=name,
        build=entry.build,
        claims=entry.claims,
        n=n,
        seed=seed,
        workload=Elections((*early, *late)),
        links=Links(Uniform(0.01, 1.0), ordered=entry.claims.network is Network.FIFO),
        faults=tuple(faults),
        trace=False,
    )


def lost_votes(trials: int = 1_000) -> Figures:
    """Coordinators that forget let two in as often as Lin's formula says, within four standard deviations."""
    rows = vote_loss.simulate(trials=trials)
    for row in rows:
        deviation = sqrt(row.predicted * (1 - row.predicted) / row.trials)
        assert abs(row.share - row.predicted) < 4 * deviation, row
    return {
        "command": "trinco compare --vote-loss",
        "vote_loss": [asdict(row) | {"share": row.share} for row in rows],
        "table": [asdict(row) for row in vote_loss.table()],
    }


def proofs() -> dict[str, Proof]:
    """What is proven, by name. Ordered as the docs show it."""
    found: dict[str, Proof] = {}
    for instance in _instances():
        found[instance.title] = partial(exhaustive, instance)
    for m, votes, rounds, fires in ((3, 2, 1, 3), (3, 2, 2, 1), (3, 3, 1, 0)):
        title = f"check voting m={m} votes={votes} rounds={rounds} retries={fires}"
        found[title] = partial(safe_voting, m, votes, rounds, fires)
    found["check ordered-voting m=2 rounds=forever"] = partial(endless_ordered_voting, 2, 2, 3)
    for name in PEERS:
        found[f"measured {name}"] = partial(measured, name)
    for name in ("voting", "ordered-voting"):
        found[f"voters {name}"] = partial(by_voters, name)
    for name in PEERS:
        found[f"wide {name}"] = partial(swarm, name, Uniform(0.1, 20.0), seeds=2_000, entries=30)
    for name in FAILOVER:
        found[f"crashes {name}"] = partial(crash_schedules, name)
    found["votes lost voting"] = lost_votes
    return found | _elections()


def _elections() -> dict[str, Proof]:
    found: dict[str, Proof] = {
        "check bully n=3 all may notice": partial(checked_election, "bully", 3, 1),
        "check bully n=4 2 notices": partial(checked_election, "bully", 4, 1, frozenset({2})),
        "check ring-election n=2 all may notice": partial(checked_election, "ring-election", 2, 1),
        "check ring-election n=3 all may notice": partial(checked_election, "ring-election", 3, 0),
        "check ring-election n=3 0 notices": partial(checked_election, "ring-election", 3, 1, frozenset({0})),
    }
    for name in ELECTIONS:
        found[f"slides {name}"] = partial(examples, name)
        found[f"elections {name}"] = partial(cost_of_elections, name)
        found[f"disturbed {name}"] = partial(crashes_and_recoveries, name)
    return found
