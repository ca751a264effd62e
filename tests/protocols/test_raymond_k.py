"""Raymond 1989, k entries, with what seed 003 says of it as tests."""

import pytest

from tests.mutants import raymond_k as mutants
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.errors import BeyondClaims, UsageError
from trinco.core.event import Kind
from trinco.protocols.catalogue import find
from trinco.protocols.permission.raymond_k import CLAIMS, RaymondK, RaymondKSystem
from trinco.sim.faults import Chaos, Crash
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Scripted, Workload, saturated

OUT_OF_ORDER = Links(Uniform(0.1, 20.0), ordered=False)
LIGHT = Closed(20, think=Exponential(30.0))


def scenario(n: int, k: int, **options: object) -> Scenario:
    build = RaymondKSystem(k)
    return Scenario(protocol="raymond-k", build=build, claims=CLAIMS, n=n, **options)  # type: ignore[arg-type]


def model(n: int, k: int, kind: type[RaymondK] = RaymondK, **options: object) -> Model:
    nodes = [kind.in_place_of(honest) for honest in RaymondKSystem(k)(n)]
    options = {"network": Network.UNORDERED, "reductions": False, **options}
    return Model(nodes=nodes, k=k, **options)  # type: ignore[arg-type]


def entries(result: Result) -> list[tuple[float, int]]:
    """When who entered."""
    assert result.violation is None
    assert result.recording is not None
    return [(event.at, event.node) for event in result.recording.events() if event.kind is Kind.GRANT]


def most_inside(result: Result) -> int:
    """How many living processes were inside together, at most."""
    assert result.recording is not None
    inside: set[int] = set()
    most = 0
    for event in result.recording.events():
        if event.kind is Kind.GRANT:
            inside.add(event.node)
        elif event.kind in (Kind.RELEASE, Kind.CRASH):
            inside.discard(event.node)
        most = max(most, len(inside))
    return most


# Messages


@pytest.mark.parametrize("n", [4, 8, 16, 32, 64])
@pytest.mark.parametrize("k", [1, 3])
def test_who_asks_alone_gets_everybody_s_reply(n: int, k: int) -> None:
    """ "No pior caso, são geradas 2(n-1) mensagens por solicitação." """
    metrics = run(scenario(n, k, workload=Scripted(((1, 5.0, 1.0),)))).metrics
    assert metrics.messages_by_kind == {"reply": n - 1, "request": n - 1}
    assert metrics.waiting is not None
    assert metrics.waiting.max == CLAIMS.delay.high() == 2


@pytest.mark.parametrize("n", [4, 8, 16, 32, 64])
def test_with_n_minus_k_replies_a_process_enters_and_those_held_back_come_as_one(n: int) -> None:
    """Process 0 stays inside while process 1 enters ten times without its permission: 2n-k-1 messages each."""
    asks = ((0, 0.0, 200.0), *((1, 10.0, 1.0),) * 10)
    metrics = run(scenario(n, 2, workload=Scripted(asks))).metrics
    assert metrics.entries == 11
    assert metrics.messages == 2 * (n - 1) + 10 * (2 * n - 2 - 1) + 1
    assert metrics.messages_by_kind["reply"] == (n - 1) + 10 * (n - 2) + 1


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("workload", [saturated(40), LIGHT], ids=["saturated", "light"])
def test_on_average_an_entry_costs_between_2n_minus_k_minus_1_and_2n_minus_2(k: int, workload: Workload) -> None:
    for n, seeds in ((4, 20), (16, 3), (64, 1)):
        for seed in range(seeds):
            result = run(scenario(n, k, workload=workload, links=OUT_OF_ORDER, seed=seed))
            assert result.violation is None
            assert CLAIMS.messages_per_entry.admits(result.metrics.messages_per_entry or 0, n=n, k=k)


# Properties


@pytest.mark.parametrize(("network", "states"), [(Network.FIFO, 25_674), (Network.UNORDERED, 37_229)])
def test_with_one_unit_it_is_ricart_agrawala_state_for_state(network: Network, states: int) -> None:
    """The same numbers stand in the tests of Ricart and Agrawala's."""
    entry = find("raymond-k").set("k=1")
    result = check(model_of(entry, n=3, rounds=2, network=network, reductions=False))
    assert (result.verdict, result.liveness) == (Verdict.HOLDS, True)
    assert result.progress.states == states


def two_inside(view: View) -> bool:
    return len(view.believers()) == 2


@pytest.mark.parametrize(("crashes", "states"), [(0, 10_643), (1, 25_347)])
def test_two_units_for_three_are_shared_safely_in_exactly_so_many_states(crashes: int, states: int) -> None:
    """No deadlock, no starvation, with k-1 crashes at any time too. Two entries each in order, without crash: 1,745,898
    states, too many for a test."""
    result = check(model(3, 2, crashes=crashes, sometimes={"two are inside": two_inside}))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


@pytest.mark.parametrize("workload", [saturated(20), LIGHT], ids=["saturated", "light"])
@pytest.mark.parametrize(("n", "k"), [(5, 2), (7, 4)])
def test_random_runs_without_order_break_nothing(workload: Workload, n: int, k: int) -> None:
    swarm = Swarm(scenario(n, k, workload=workload, links=OUT_OF_ORDER))
    swarm.run(range(200))
    assert (swarm.done, swarm.unfinished, swarm.violations) == (200, 0, [])


def test_who_asks_first_need_not_be_first_to_enter() -> None:
    """Spec P6. Process 0 has slow links; process 1 asks later, lacks its reply, and does not need it."""
    slow = {(node, 0): Constant(10.0) for node in (1, 2)}
    asks = Scripted(((0, 0.0, 1.0), (1, 5.0, 1.0)))
    assert [node for _, node in entries(run(scenario(3, 2, workload=asks, links=Links(per_link=slow))))] == [1, 0]


# Crashes


def test_k_crashes_are_beyond_the_claims_and_block_somebody() -> None:
    with pytest.raises(BeyondClaims):
        model_of(find("raymond-k"), n=3, crashes=2)
    result = check(model(3, 2, crashes=2))
    assert result.violation is not None
    assert result.violation.kind == "deadlock"


@pytest.mark.parametrize("workload", [saturated(30), LIGHT], ids=["saturated", "light"])
def test_with_fewer_than_k_crashes_whoever_lives_is_served(workload: Workload) -> None:
    """Also when they come in the middle of asking."""
    swarm = Swarm(scenario(8, 4, workload=workload, links=OUT_OF_ORDER, chaos=Chaos(crashes=3, within=100.0)))
    swarm.run(range(100))
    assert (swarm.done, swarm.unfinished, swarm.violations) == (100, 0, [])


@pytest.mark.parametrize("crashed", [0, 1, 2, 3])
def test_each_crash_takes_a_unit_with_it(crashed: int) -> None:
    faults = tuple(Crash(node, 0.0) for node in range(crashed))
    result = run(scenario(8, 4, workload=saturated(80, Constant(20.0)), faults=faults))
    assert result.violation is None
    assert most_inside(result) == 4 - crashed


def test_after_k_crashes_nobody_enters_any_more() -> None:
    faults = tuple(Crash(node, 50.0) for node in range(4))
    workload = Scripted(((5, 10.0, 1.0), (6, 60.0, 1.0)))
    result = run(scenario(8, 4, workload=workload, faults=faults, beyond_claims=True))
    assert result.violation is not None
    assert result.violation.text == "deadlock: p6 asked and never entered"


def figure_1(dead: tuple[int, ...]) -> list[tuple[float, int]]:
    """Eight processes, five units; process 0 is inside when process 1 asks, and leaves long after."""
    faults = tuple(Crash(node, 0.0) for node in dead)
    return entries(run(scenario(8, 5, workload=Scripted(((0, 1.0, 50.0), (1, 10.0, 1.0))), faults=faults)))


def test_figure_1_process_1_does_not_need_the_reply_of_process_0() -> None:
    assert figure_1(dead=()) == [(3.0, 0), (12.0, 1)]


def test_figure_1_with_four_dead_process_1_waits_for_process_0_though_four_units_are_free() -> None:
    assert figure_1(dead=(4, 5, 6, 7)) == [(3.0, 0), (54.0, 1)]


# Rules


@pytest.mark.parametrize(
    ("kind", "k", "rounds", "crashes", "breaks"),
    [
        (mutants.TakesOldRepliesForNew, 2, 2, 0, "safety"),
        (mutants.EntersTooSoon, 1, 1, 0, "safety"),
        (mutants.WaitsForAll, 2, 1, 1, "deadlock"),
        (mutants.IgnoresTimestamps, 2, 1, 0, "safety"),
        (mutants.NeverDefers, 2, 1, 0, "safety"),
        (mutants.DefersWhileItWaits, 2, 1, 0, "deadlock"),
    ],
)
def test_every_rule_is_needed(kind: type[RaymondK], k: int, rounds: int, crashes: int, breaks: str) -> None:
    result = check(model(3, k, kind, network=Network.FIFO, inputs={"acquire": rounds}, crashes=crashes))
    assert result.violation is not None
    assert result.violation.kind == breaks


@pytest.mark.parametrize("honest", [True, False])
def test_every_request_held_back_must_be_answered(honest: bool) -> None:
    """Process 0 enters twice while process 1 is inside and holds two replies back. When process 2 has crashed, they
    are all that process 0 can still get."""

    def build(n: int) -> list[RaymondK]:
        nodes = RaymondKSystem(2)(n)
        return nodes if honest else [mutants.AnswersOnce.in_place_of(node) for node in nodes]  # type: ignore[return-value]

    asks = Scripted(((1, 0.0, 30.0), (0, 5.0, 1.0), (0, 15.0, 1.0), (0, 50.0, 1.0)))
    made = scenario(3, 2, workload=asks, faults=(Crash(2, 40.0),)).with_changes(build=build, letters={"k": 2})
    violation = run(made).violation
    assert violation is None if honest else violation is not None


# Settings


def test_units_that_nobody_would_ever_wait_for_are_refused() -> None:
    with pytest.raises(UsageError, match="with 3 units for 3 processes nobody would ever wait: take at most 2"):
        RaymondKSystem(3)(3)
    with pytest.raises(UsageError, match="at least one process must be let in"):
        RaymondKSystem(0)
