"""A coordinator that may crash: "o coordenador é um ponto único de falha", say the slides. Not here."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.mutants import failover as mutants
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.claims import Network
from trinco.core.event import Kind
from trinco.core.node import Node
from trinco.protocols.catalogue import find
from trinco.protocols.coordinator_failover import system
from trinco.sim.faults import Crash
from trinco.sim.laws import Constant, Exponential, Law, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, Simulation, run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Scripted, saturated

FIFO, UNORDERED = Network.FIFO, Network.UNORDERED
SIZES = pytest.mark.parametrize("n", [4, 8, 16, 32, 64])


def scenario(n: int, **options: object) -> Scenario:
    entry = find("coordinator-failover")
    return Scenario(protocol=entry.name, build=entry.build, claims=entry.claims, n=n, **options)  # type: ignore[arg-type]


def told(n: int, *asks: tuple[int, float, float], crashes: tuple[Crash, ...] = ()) -> Result:
    """Exactly these requests (who, when, held for how long) and crashes; every message takes 1."""
    result = run(scenario(n, workload=Scripted(asks), faults=crashes))
    assert result.violation is None
    return result


def entries(result: Result) -> list[tuple[float, int]]:
    assert result.recording is not None
    return [(event.at, event.node) for event in result.recording.events() if event.kind is Kind.GRANT]


def elected(result: Result) -> list[tuple[float, int, int | None]]:
    """Who took whom for the leader, and when."""
    assert result.recording is not None
    events = result.recording.events()
    return [(event.at, event.node, event.peer) for event in events if event.kind is Kind.ELECTED]


# What an entry costs


@SIZES
def test_an_entry_takes_a_request_a_grant_and_a_release_and_the_leader_s_own_takes_nothing(n: int) -> None:
    """ "apenas três para todo o processo (request, grant, release)"; messages to oneself are free."""
    assert told(n, (0, 1.0, 1.0)).metrics.messages_by_kind == {"request": 1, "grant": 1, "release": 1}
    assert told(n, (n - 1, 1.0, 1.0)).metrics.messages == 0


@SIZES
def test_under_load_every_client_s_entry_costs_three(n: int) -> None:
    result = run(scenario(n, workload=saturated(3 * n)))
    clients = sum(node != n - 1 for _, node in entries(result))
    assert result.violation is None
    assert result.metrics.messages == 3 * clients
    assert result.metrics.worst_messages_per_entry == 3


@SIZES
def test_a_client_enters_after_two_message_times_and_the_leader_at_once(n: int) -> None:
    assert entries(told(n, (0, 1.0, 1.0), (n - 1, 10.0, 1.0))) == [(3.0, 0), (10.0, n - 1)]


@SIZES
def test_a_crash_of_the_leader_costs_one_message_for_each_survivor_but_the_next_leader(n: int) -> None:
    result = told(n, (0, 10.0, 1.0), crashes=(Crash(n - 1, 5.0),))
    assert result.metrics.messages_by_kind == {"state": n - 2, "request": 1, "grant": 1, "release": 1}


# What a crash does


def test_whoever_is_inside_when_the_leader_crashes_is_waited_for() -> None:
    """p0 is inside from 3 to 13; p1 asks the dead p3 at 6, and the next leader, p2, at 7."""
    result = told(4, (0, 1.0, 10.0), (1, 6.0, 1.0), crashes=(Crash(3, 5.5),))
    assert entries(result) == [(3.0, 0), (15.0, 1)]


def test_those_in_the_dead_leader_s_queue_are_served_by_the_next() -> None:
    result = told(4, (0, 1.0, 10.0), (1, 2.0, 1.0), (2, 2.0, 1.0), crashes=(Crash(3, 5.0),))
    assert [node for _, node in entries(result)] == [0, 2, 1]


def test_a_holder_that_crashes_inside_makes_place_as_soon_as_the_leader_hears_of_it() -> None:
    result = told(3, (0, 1.0, 100.0), (1, 2.0, 1.0), crashes=(Crash(0, 5.0),))
    assert entries(result) == [(3.0, 0), (7.0, 1)]


def test_a_leader_that_crashes_while_it_collects_is_succeeded_too() -> None:
    """p3 dies at 5, which p2 hears at 6; p2 dies before a state reaches it at 7."""
    result = told(4, (0, 1.0, 10.0), (1, 2.0, 1.0), crashes=(Crash(3, 5.0), Crash(2, 6.5)))
    assert entries(result) == [(3.0, 0), (14.0, 1)]
    assert elected(result) == [(6.0, 0, 2), (6.0, 1, 2), (6.0, 2, 2), (7.5, 0, 1), (7.5, 1, 1)]


@pytest.mark.parametrize("n", range(2, 9))
def test_the_last_one_alive_serves_itself(n: int) -> None:
    crashes = tuple(Crash(node, float(node)) for node in range(1, n))
    result = told(n, (0, 20.0, 1.0), (0, 30.0, 1.0), crashes=crashes)
    assert entries(result) == [(20.0, 0), (30.0, 0)]


# Every run of a small system


@pytest.mark.parametrize(
    ("rounds", "crashes", "network", "states"),
    [
        (2, 1, FIFO, 4_751),
        (2, 1, UNORDERED, 8_336),
        (2, 2, FIFO, 5_519),
        (2, 2, UNORDERED, 10_693),
        (None, 2, FIFO, 1_267),
        (None, 2, UNORDERED, 3_204),
    ],
)
def test_three_are_safe_deadlock_free_and_starvation_free_in_exactly_so_many_states(
    rounds: int | None, crashes: int, network: Network, states: int
) -> None:
    model = model_of(
        find("coordinator-failover"), n=3, rounds=rounds, network=network, crashes=crashes, reductions=False
    )
    result = check(model)
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


@pytest.mark.parametrize(
    ("kind", "n", "crashes", "network", "breaks"),
    [
        (mutants.AwaitsTheDead, 2, 1, FIFO, "deadlock"),
        (mutants.ForgetsTheLine, 2, 1, FIFO, "deadlock"),
        (mutants.KeepsTheDeadInside, 2, 1, FIFO, "deadlock"),
        (mutants.HeedsRequestsOfTheDead, 2, 1, UNORDERED, "deadlock"),
        (mutants.KeepsTheDeadInLine, 3, 1, FIFO, "deadlock"),
        (mutants.ForgetsTheHolder, 3, 1, FIFO, "safety"),
        (mutants.BelievesAnOutdatedState, 3, 1, UNORDERED, "deadlock"),
    ],
)
def test_no_rule_can_be_dropped(kind: type[Node], n: int, crashes: int, network: Network, breaks: str) -> None:
    nodes = [kind.in_place_of(node) for node in system(n)]
    found = check(Model(nodes=nodes, network=network, crashes=crashes)).violation
    assert found is not None
    assert found.kind == breaks


# Many runs of larger systems

LAWS: tuple[Law, ...] = (Uniform(0.1, 10.0), Exponential(3.0), Lognormal(1.0, 1.5))


def schedule(protocol: str, seed: int) -> Scenario:
    """Two to eight nodes of which up to all but one crash, some in a burst, some just before they send or in the middle
    of it; wide delays, on channels that mostly reorder; light or heavy load."""
    rng, entry = random.Random(seed), find(protocol)
    n = rng.randint(2, 8)
    start, spread = rng.uniform(0.0, 10.0 * n), rng.choice((5.0, 50.0))
    crashes = tuple(
        Crash(node, start + rng.uniform(0.0, spread), after_sends=rng.choice((None, None, None, 0, 1)))
        for node in rng.sample(range(n), rng.randint(1, n - 1))
    )
    return Scenario(
        protocol=protocol,
        build=entry.build,
        claims=entry.claims,
        n=n,
        seed=seed,
        workload=Closed(10 * n, think=rng.choice((Constant(0.0), Exponential(20.0))), hold=Exponential(3.0)),
        links=Links(rng.choice(LAWS), ordered=rng.random() < 0.25),
        faults=crashes,
        max_events=300_000,
        trace=False,
    )


def schedules(count: int, protocol: str = "coordinator-failover") -> Iterator[Simulation]:
    """So many crash schedules, each run to its end."""
    for seed in range(count):
        simulation = Simulation(schedule(protocol, seed))
        simulation.run()
        yield simulation


def failures(simulations: Iterator[Simulation]) -> list[int]:
    """The seeds of those in which something was violated or somebody was left waiting."""
    results = (simulation.result() for simulation in simulations)
    return [each.scenario.seed for each in results if each.violation or not each.finished]


def died_inside(simulation: Simulation) -> int:
    last: dict[int, Kind] = {}
    dead = 0
    for _, node, kind in simulation.history:
        dead += kind is Kind.CRASH and last.get(node) is Kind.GRANT
        last[node] = kind
    return dead


def test_no_random_crash_schedule_breaks_it_or_leaves_anybody_waiting() -> None:
    assert failures(schedules(300)) == []


def test_the_schedules_are_hard() -> None:
    """Leaders die, holders inside, new leaders that still collect, and all but one."""
    seen: Counter[str] = Counter()
    for simulation in schedules(100):
        dead = [host for host in simulation.hosts if not host.alive]
        leaders = [host.node for host in dead if host.node.leader == host.me]  # type: ignore[attr-defined]
        seen["a leader"] += len(leaders)
        seen["a leader that still collects"] += sum(bool(node.awaited) for node in leaders)  # type: ignore[attr-defined]
        seen["a holder"] += died_inside(simulation)
        seen["all but one"] += len(dead) == simulation.scenario.n - 1
    assert len(seen) == 4
    assert min(seen.values()) > 1


@pytest.mark.parametrize("think", [Constant(0.0), Exponential(30.0)], ids=["saturated", "light"])
def test_wide_delays_alone_break_nothing(think: Law) -> None:
    links = Links(Lognormal(1.0, 1.5), ordered=False)
    swarm = Swarm(scenario(6, workload=Closed(30, think=think), links=links))
    swarm.run(range(200))
    assert (swarm.done, swarm.violations, swarm.unfinished) == (200, [], 0)
