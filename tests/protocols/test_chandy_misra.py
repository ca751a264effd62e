"""Chandy & Misra 1984, with the sentences of the paper and of seed 002 as tests."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.mutants import chandy_misra as mutants
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.errors import DamagedData, UsageError
from trinco.core.event import Event, Kind
from trinco.core.ids import members
from trinco.core.monitor import watch
from trinco.core.neighbours import NoNeighboursInside
from trinco.lab.exhibits.chandy_misra import everybody_with_the_left_fork
from trinco.protocols import conflicts
from trinco.protocols.permission.chandy_misra import CLAIMS, Fork, OneBit, Philosopher, Philosophers, Request
from trinco.sim.laws import Constant, Exponential, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Scripted, saturated

OUT_OF_ORDER = Links(Uniform(0.1, 20.0), ordered=False)
LIGHT = Closed(40, think=Exponential(30.0))


def scenario(n: int, graph: str = "complete", **options: object) -> Scenario:
    return Scenario(protocol="chandy-misra", build=Philosophers(graph), claims=CLAIMS, n=n, **options)  # type: ignore[arg-type]


def alone(n: int, *asks: int, graph: str = "complete") -> list[int]:
    """What each entry costs when these ask one after the other."""
    script = tuple((node, 10.0 * turn, 1.0) for turn, node in enumerate(asks))
    result = run(scenario(n, graph, workload=Scripted(script)))
    assert result.violation is None
    return result.metrics.costs


def events(scene: Scenario) -> list[Event]:
    recording = run(scene).recording
    assert recording is not None
    return list(recording.events_without_clocks())


def table(n: int, graph: str = "complete", rounds: int | None = None, **options: object) -> Model:
    """The claimed network, and neighbours who never eat together."""
    system = Philosophers(graph)
    options = {
        "nodes": system(n),
        "network": CLAIMS.network,
        "monitors": [NoNeighboursInside(conflicts.parse(graph, n))],
        **options,
    }
    return Model(k=int(system.letters(n)["k"]), inputs={"acquire": rounds}, reductions=False, **options)  # type: ignore[arg-type]


# Messages


@pytest.mark.parametrize("n", [4, 8, 16, 32, 64])
def test_who_starts_without_a_fork_asks_for_all_and_eats_again_for_nothing(n: int) -> None:
    assert alone(n, n - 1, n - 1, n - 1) == [2 * (n - 1), 0, 0]


@pytest.mark.parametrize("n", [4, 8, 16, 32, 64])
def test_an_entry_costs_a_request_and_a_fork_for_each_fork_that_is_missing(n: int) -> None:
    """The fork that two share starts at the smaller id, so each lacks those of all before it."""
    assert [alone(n, me) for me in range(n)] == [[2 * me] for me in range(n)]


@pytest.mark.parametrize("n", [4, 8, 16, 32, 64])
def test_two_who_take_turns_exchange_one_request_and_one_fork(n: int) -> None:
    assert alone(n, n - 1, 1, n - 1, 1, n - 1)[2:] == [2, 2, 2]


@pytest.mark.parametrize("n", [4, 16, 64])
def test_who_asks_alone_waits_for_one_round_trip_or_not_at_all(n: int) -> None:
    waits = [run(scenario(n, workload=Scripted(((me, 5.0, 1.0),)))).metrics.waiting for me in (0, n - 1)]
    assert [wait.max for wait in waits if wait] == [CLAIMS.delay.low(), CLAIMS.delay.high()] == [0, 2]


@pytest.mark.parametrize("n", [4, 8, 16, 32, 64])
def test_on_a_ring_an_entry_costs_four_messages_at_most(n: int) -> None:
    """ "No máximo 2d mensagens": two neighbours, whatever n is. Only the last shares its forks with two smaller ids."""
    assert [alone(n, me, graph="ring")[0] for me in range(n)] == [0, *[2] * (n - 2), 4]
    result = run(scenario(n, "ring", workload=saturated(5 * n)))
    assert result.metrics.messages_per_entry is not None
    assert 0 < result.metrics.messages_per_entry <= 4


def hungers(trace: Iterable[Event]) -> list[tuple[int, int, int]]:
    """For each entry: who ate, the requests it sent and the forks it was sent while it was hungry."""
    requests: Counter[int] = Counter()
    forks: Counter[int] = Counter()
    entries = []
    for event in trace:
        if event.kind is Kind.SEND and event.peer is not None:
            requests[event.node] += isinstance(event.message, Request)
            forks[event.peer] += isinstance(event.message, Fork)
        elif event.kind is Kind.GRANT:
            entries.append((event.node, requests.pop(event.node, 0), forks.pop(event.node, 0)))
    return entries


@pytest.mark.parametrize(
    ("graph", "n", "seeds"), [("complete", 4, 20), ("complete", 16, 4), ("complete", 64, 1), ("ring", 7, 20)]
)
@pytest.mark.parametrize("workload", [saturated(80), LIGHT], ids=["saturated", "light"])
def test_no_hungry_philosopher_loses_a_fork_twice_to_one_neighbour(
    graph: str, n: int, seeds: int, workload: Closed
) -> None:
    """So d requests and d forks are the most that an entry costs, also when all the others are hungry."""
    degrees = [neighbours.bit_count() for neighbours in conflicts.parse(graph, n)]
    for seed in range(seeds):
        entries = hungers(events(scenario(n, graph, workload=workload, links=OUT_OF_ORDER, seed=seed)))
        assert entries
        assert all(requests == forks <= degrees[me] for me, requests, forks in entries)


def test_r1_as_printed_asks_again_and_again_while_a_fork_is_overtaken() -> None:
    """Two neighbours, so two requests an entry; with a slow fork under way the token goes to and fro many times."""
    some_slow = Links(Lognormal(1.0, 2.0), ordered=False)
    scene = scenario(3, workload=saturated(60), links=some_slow)
    assert max(requests for _, requests, _ in hungers(events(scene))) == 2
    printed = scene.with_changes(build=mutants.asking_as_printed, letters=Philosophers().letters(3))
    assert max(requests for _, requests, _ in hungers(events(printed))) > 5 * 2


@pytest.mark.parametrize(("rounds", "states"), [(2, 3_202), (None, 642)])
def test_where_messages_keep_their_order_r1_as_printed_is_the_same_algorithm(rounds: int | None, states: int) -> None:
    printed = mutants.asking_as_printed(3)
    for nodes in (Philosophers()(3), printed):
        result = check(table(3, rounds=rounds, nodes=nodes, network=Network.FIFO))
        assert (result.verdict, result.liveness, result.progress.states) == (Verdict.HOLDS, True, states)


# One bit


def sent(scene: Scenario) -> list[Event]:
    return [event for event in events(scene) if event.kind is Kind.SEND]


RUNS = [
    scenario(5, graph, workload=saturated(40), links=OUT_OF_ORDER, seed=seed)
    for graph in ("complete", "ring")
    for seed in range(20)
]


def test_two_kinds_of_messages_travel_and_one_bit_says_all_of_each() -> None:
    """ "Só são usadas mensagens de dois tipos distintos, podendo portanto ser codificadas com um único bit." """
    codec, codes = OneBit(), set()
    for event in (event for scene in RUNS for event in sent(scene)):
        code = codec.encode(event.message)
        codes.add(code)
        assert codec.decode(code) == event.message
    assert codes == {b"\x00", b"\x01"}


@pytest.mark.parametrize("data", [b"", b"\x02", b"\xff", b"\x00\x01"])
def test_what_is_not_one_bit_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedData, match="neither 0, a request, nor 1, a fork"):
        OneBit().decode(data)


def test_from_one_to_another_forks_and_requests_go_in_turn_so_that_the_bit_tells_nothing() -> None:
    for scene in RUNS:
        channels = defaultdict(list)
        for event in sent(scene):
            channels[event.node, event.peer].append(type(event.message))
        for (source, to), kinds in channels.items():
            first, second = (Fork, Request) if source < to else (Request, Fork)
            assert kinds == [second if turn % 2 else first for turn in range(len(kinds))]


# Exhaustively


def precedence_runs_in_a_circle(view: View) -> bool:
    """precedence runs in a circle"""
    yields_to: dict[int, set[int]] = defaultdict(set)
    for me in view.processes:
        philosopher = view.node(me)
        for other in members(philosopher.forks):
            one, first = (me, other) if philosopher.dirty >> other & 1 else (other, me)
            yields_to[one].add(first)
    for source, to, message in view.in_flight():
        if isinstance(message, Fork):
            yields_to[source].add(to)
    try:
        TopologicalSorter(yields_to).prepare()
    except CycleError:
        return True
    return False


@pytest.mark.parametrize(
    ("graph", "n", "rounds", "states"),
    [
        ("complete", 2, 2, 69),
        ("complete", 2, None, 16),
        ("complete", 3, 2, 4_571),
        ("complete", 3, None, 1_068),
        ("0-1 1-2", 3, None, 178),
        ("ring", 4, None, 13_248),
    ],
)
def test_nobody_starves_and_precedence_stays_acyclic_in_exactly_so_many_states(
    graph: str, n: int, rounds: int | None, states: int
) -> None:
    """Unordered channels, no reductions. Without a bound on entries too: there are no clocks that rise."""
    result = check(table(n, graph, rounds, never=[precedence_runs_in_a_circle]))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def test_at_dijkstra_s_table_of_five_two_eat_together_and_never_two_neighbours() -> None:
    """Without a bound on entries. Starvation-freedom holds too, but takes most of a minute to establish."""
    two = {"two eat together": lambda view: len(view.believers()) == 2}
    result = check(table(5, "ring", sometimes=two), liveness=False)
    assert (result.verdict, result.violation) == (Verdict.HOLDS, None)
    assert result.progress.states == 152_880


def test_one_may_be_overtaken_again_and_again_while_its_request_travels() -> None:
    slow = Links(per_link={(1, 0): Constant(100.0)})
    script = ((1, 0.0, 1.0), *((0, 2.0 * turn, 1.0) for turn in range(40)))
    assert run(scenario(2, workload=Scripted(script), links=slow)).metrics.bypass == 40


# At random


@pytest.mark.parametrize(("graph", "n"), [("complete", 5), ("ring", 7), ("0-1 0-2 0-3 3-4 4-5 5-3", 6)])
@pytest.mark.parametrize("workload", [saturated(40), LIGHT], ids=["saturated", "light"])
def test_random_runs_with_wide_delays_break_nothing(graph: str, n: int, workload: Closed) -> None:
    swarm = Swarm(scenario(n, graph, workload=workload, links=OUT_OF_ORDER))
    swarm.run(range(200))
    assert (swarm.done, swarm.unfinished, swarm.violations) == (200, 0, [])


def test_a_ring_that_starts_by_id_and_is_never_idle_serves_one_at_a_time() -> None:
    """Eating turns both forks of a philosopher, so as many point each way round as at the start: all but one. Half of
    them could eat together, and nearly as many do when there are pauses."""

    def at_once(workload: Closed) -> float:
        metrics = run(scenario(32, "ring", workload=workload, trace=False)).metrics
        return 100.0 * metrics.entries / metrics.duration

    assert at_once(saturated(640, hold=Constant(100.0))) == pytest.approx(0.99, abs=0.01)
    assert at_once(Closed(640, think=Exponential(100.0), hold=Constant(100.0))) > 8


@pytest.mark.parametrize("n", [4, 5, 8])
def test_at_a_round_table_neighbours_never_eat_together_and_all_others_may(n: int) -> None:
    at_once = 0
    long_meals = Closed(60, think=Exponential(50.0), hold=Constant(50.0))
    for seed in range(20):
        trace = events(scenario(n, "ring", workload=long_meals, links=OUT_OF_ORDER, seed=seed))
        assert watch([NoNeighboursInside(conflicts.ring(n))], trace) is None
        inside = 0
        for event in trace:
            inside += (event.kind is Kind.GRANT) - (event.kind is Kind.RELEASE)
            at_once = max(at_once, inside)
    assert at_once == n // 2


# Each rule is needed


@pytest.mark.parametrize(
    ("kind", "n", "network", "breaks"),
    [
        (mutants.KeepsDirtyForks, 3, Network.UNORDERED, "deadlock"),
        (mutants.GivesUpCleanForks, 3, Network.FIFO, "starvation"),
        (mutants.GivesUpForksWhileEating, 2, Network.UNORDERED, "safety"),
        (mutants.LeavesForksClean, 2, Network.UNORDERED, "deadlock"),
        (mutants.DoesNotAskBack, 3, Network.UNORDERED, "deadlock"),
        (mutants.ForgetsWhoAsked, 2, Network.UNORDERED, "deadlock"),
    ],
)
def test_a_philosopher_without_the_rule_is_caught(
    kind: type[Philosopher], n: int, network: Network, breaks: str
) -> None:
    result = check(table(n, nodes=mutants.all_of(kind, n), network=network, monitors=()))
    assert result.violation is not None
    assert result.violation.kind == breaks


def test_forks_that_start_clean_are_never_given_up() -> None:
    result = check(table(2, nodes=mutants.with_clean_forks(2)))
    assert result.violation is not None
    assert result.violation.kind == "deadlock"


def test_a_circle_at_the_start_is_seen_at_once_as_one() -> None:
    nodes = everybody_with_the_left_fork(5)
    result = check(table(5, "ring", nodes=nodes, never=[precedence_runs_in_a_circle]))
    assert result.violation is not None
    assert (result.violation.text, result.progress.depth) == ("precedence runs in a circle", 0)


def test_where_two_may_be_inside_only_the_neighbours_monitor_sees_that_they_sit_side_by_side() -> None:
    nodes = mutants.all_of(mutants.GivesUpForksWhileEating, 4, "ring")
    result = check(table(4, "ring", nodes=nodes, rounds=1))
    assert result.violation is not None
    assert result.violation.kind == "monitor"
    assert result.violation.text == "p1 is inside together with its neighbour p0"


# Conflict graphs


@pytest.mark.parametrize(
    ("graph", "n", "together"),
    [
        ("complete", 1, 1),
        ("complete", 2, 1),
        ("complete", 64, 1),
        ("ring", 1, 1),
        ("ring", 2, 1),
        ("ring", 3, 1),
        ("ring", 4, 2),
        ("ring", 5, 2),
        ("ring", 65, 32),
        ("0-1 1-2 2-3", 4, 2),
        ("0-1 0-2 0-3 0-4", 5, 4),
        ("0-1 1-2 2-0 2-3 3-4 4-5 5-3", 6, 2),
        ("0-1", 4, 3),
    ],
)
def test_so_many_can_eat_together(graph: str, n: int, together: int) -> None:
    assert Philosophers(graph).letters(n) == {"k": together}


def test_the_most_that_can_eat_together_is_the_best_of_all_choices() -> None:
    rng = random.Random(1)
    for _ in range(100):
        n, density = rng.randrange(1, 9), rng.random()
        edges = [(one, other) for one in range(n) for other in range(one) if rng.random() < density]
        graph = conflicts.joined(edges, n)
        apart = [group for group in range(1 << n) if not any(graph[node] & group for node in members(group))]
        assert conflicts.largest_independent_set(graph) == max(group.bit_count() for group in apart)


def test_a_graph_is_what_its_edges_say() -> None:
    assert conflicts.parse("0-1 2-1", 4) == (0b0010, 0b0101, 0b0010, 0b0000)
    assert conflicts.ring(3) == conflicts.complete(3) == conflicts.parse("0-1 1-2 2-0", 3)
    assert conflicts.ring(4) == conflicts.parse("0-1 1-2 2-3 3-0", 4)


def test_who_has_no_neighbour_eats_at_once_and_for_nothing() -> None:
    assert alone(4, 3, 3, graph="0-1") == [0, 0]


@pytest.mark.parametrize("graph", ["star", "0-1 1", "0-1-2", "0,1"])
def test_what_is_no_graph_is_refused_with_what_one_looks_like(graph: str) -> None:
    with pytest.raises(UsageError, match="say complete, ring, or edges such as '0-1 1-2'"):
        Philosophers(graph)(3)


@pytest.mark.parametrize("edge", ["0-3", "1-1"])
def test_an_edge_joins_two_nodes_that_there_are(edge: str) -> None:
    with pytest.raises(UsageError, match=f"{edge} joins no two of 3 nodes; they are called 0 to 2"):
        Philosophers(edge)(3)
