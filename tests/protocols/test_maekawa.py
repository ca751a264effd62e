"""Maekawa 1985, with the rules of the paper as tests."""

import pytest

from tests.mutants import maekawa as mutants
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.claims import Network
from trinco.core.errors import UsageError
from trinco.lab.exhibits.maekawa import FORKED, PAIR, DisplacesInSilence
from trinco.protocols.catalogue import find
from trinco.protocols.permission.maekawa import CLAIMS, Maekawa, MaekawaSystem, among
from trinco.protocols.quorums import ARRANGEMENTS
from trinco.protocols.quorums.grids import grid
from trinco.protocols.quorums.quorum_set import QuorumSet
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Scripted, Workload, saturated

OUT_OF_ORDER = Links(Uniform(0.1, 20.0), ordered=False)
LIGHT = Closed(20, think=Exponential(30.0))
EVERYBODY = QuorumSet((0b111, 0b111, 0b111))


def scenario(n: int, quorums: str = "grid", **options: object) -> Scenario:
    build = MaekawaSystem(quorums)
    return Scenario(protocol="maekawa", build=build, claims=CLAIMS, n=n, **options)  # type: ignore[arg-type]


def model(quorums: QuorumSet, kind: type[Maekawa] = Maekawa, **options: object) -> Model:
    nodes = [kind(me, quorum) for me, quorum in enumerate(quorums)]
    return Model(nodes=nodes, reductions=False, **options)  # type: ignore[arg-type]


# Messages


@pytest.mark.parametrize("n", [4, 9, 16, 25, 36, 49, 64])
def test_who_asks_alone_pays_a_request_a_lock_and_a_release_for_each_other_member(n: int) -> None:
    metrics = run(scenario(n, workload=Scripted(((n - 1, 5.0, 1.0),)))).metrics
    others = MaekawaSystem().letters(n)["q"] - 1
    assert metrics.messages_by_kind == {"locked": others, "release": others, "request": others}
    assert others == 2 * (n**0.5 - 1)
    assert metrics.waiting is not None
    assert metrics.waiting.max == CLAIMS.delay.high() == 2


@pytest.mark.parametrize("n", [4, 9, 16, 25, 36, 49, 64])
def test_when_all_ask_all_the_time_each_member_also_says_failed_but_to_whom_it_locks_for_first(n: int) -> None:
    """And is never asked back: "in heavy demand" an entry costs 4(q-1)."""
    metrics = run(scenario(n, workload=saturated(3 * n))).metrics
    each = 3 * n * 2 * (round(n**0.5) - 1)
    assert metrics.messages_by_kind == {"failed": each - (n - 1), "locked": each, "release": each, "request": each}


@pytest.mark.parametrize("quorums", ARRANGEMENTS)
@pytest.mark.parametrize("workload", [saturated(40), LIGHT, Closed(40, think=Exponential(300.0))])
def test_every_arrival_at_a_member_causes_one_failed_or_one_inquire_at_most(quorums: str, workload: Workload) -> None:
    """And every lock given back is given again: so 6(q-1) messages an entry at most, on average, however many ask.
    The paper says 5(q-1), which our random runs keep to."""
    for n, seeds in ((4, 8), (7, 4), (16, 2)):
        others = MaekawaSystem(quorums).letters(n)["q"] - 1
        for seed in range(seeds):
            result = run(scenario(n, quorums, workload=workload, links=OUT_OF_ORDER, seed=seed))
            assert result.violation is None
            kinds = {"failed": 0, "inquire": 0, "relinquish": 0} | result.metrics.messages_by_kind
            assert kinds["failed"] + kinds["inquire"] <= kinds["request"] == kinds["release"]
            assert kinds["relinquish"] <= kinds["inquire"]
            assert kinds["locked"] == kinds["request"] + kinds["relinquish"]
            assert result.metrics.messages <= 5 * others * result.metrics.entries


def contended_by_a_laggard(entries: int) -> Result:
    """Process 1 of four enters so often, which process 2 does not hear of. Then both want in, process 2 as often as
    its clock is behind; the member that they share with the slower link to process 1 always fails it."""
    at_first = ((1, 0.0, 0.1),) * entries
    then = ((1, 1000.5, 0.1), *((2, 1000.0, 0.1),) * entries)
    links = Links(per_link={(3, 1): Constant(2.0)})
    return run(scenario(4, workload=Scripted((*at_first, *then)), links=links))


@pytest.mark.parametrize("entries", [5, 10, 20])
def test_whose_clock_lags_overtakes_until_it_has_caught_up(entries: int) -> None:
    result = contended_by_a_laggard(entries)
    assert result.violation is None
    assert result.metrics.bypass == entries


def test_an_entry_for_which_another_gives_back_all_its_locks_costs_6_messages_a_member() -> None:
    """One more than the paper counts: who gave a lock back must be locked for again. One more round is one more entry
    of process 1 alone, and one of process 2 against process 1, whose single entry pays for all it had to give back."""
    shorter, longer = contended_by_a_laggard(10).metrics, contended_by_a_laggard(11).metrics
    others = MaekawaSystem().letters(4)["q"] - 1
    assert longer.messages - shorter.messages == 3 * others + 6 * others
    assert max(longer.costs) > 30 * others


# Properties


@pytest.mark.parametrize(
    ("quorums", "rounds", "network", "states"),
    [
        (grid(2), 3, Network.UNORDERED, 8_161),
        (grid(3), 1, Network.UNORDERED, 2_102),
        (grid(3), 2, Network.FIFO, 26_044),
        (FORKED, 1, Network.UNORDERED, 1_751),
        (EVERYBODY, 1, Network.FIFO, 10_884),
    ],
)
def test_safe_deadlock_free_and_starvation_free_in_exactly_so_many_states(
    quorums: QuorumSet, rounds: int, network: Network, states: int
) -> None:
    """Of three processes in a grid, two entries each, without order: 654,428 states, too many for a test."""
    result = check(model(quorums, network=network, inputs={"acquire": rounds}))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


@pytest.mark.parametrize(("quorums", "n", "seeds"), [("grid", 5, 100), ("grid", 9, 200), ("plane", 7, 50)])
@pytest.mark.parametrize("workload", [saturated(20), LIGHT], ids=["saturated", "light"])
def test_random_runs_without_order_break_nothing(quorums: str, n: int, seeds: int, workload: Workload) -> None:
    swarm = Swarm(scenario(n, quorums, workload=workload, links=OUT_OF_ORDER))
    swarm.run(range(seeds))
    assert (swarm.done, swarm.unfinished, swarm.violations) == (seeds, 0, [])


def test_a_process_by_itself_enters_at_once() -> None:
    assert check(model(grid(1), inputs={"acquire": 2})).verdict is Verdict.HOLDS


# Rules


@pytest.mark.parametrize(
    ("kind", "quorums", "breaks"),
    [
        (mutants.NeverFails, PAIR, "deadlock"),
        (mutants.ForgetsWhatItGaveBack, FORKED, "deadlock"),
        (mutants.GivesBackWhatItLacks, grid(3), "safety"),
        (mutants.DropsEarlyInquiries, FORKED, "deadlock"),
        (mutants.GivesBackInside, grid(3), "safety"),
        (mutants.QueuesByArrival, grid(3), "deadlock"),
        (mutants.ForgetsWhoGaveBack, PAIR, "deadlock"),
        (mutants.LocksForEverybody, PAIR, "safety"),
    ],
)
def test_every_rule_is_needed(kind: type[Maekawa], quorums: QuorumSet, breaks: str) -> None:
    result = check(model(quorums, kind, network=Network.UNORDERED))
    assert result.violation is not None
    assert result.violation.kind == breaks
    assert check(model(quorums, network=Network.UNORDERED)).verdict is Verdict.HOLDS


@pytest.mark.parametrize("kind", [mutants.GivesBackWhatItLacks, mutants.DropsEarlyInquiries])
@pytest.mark.parametrize("quorums", [FORKED, grid(3)], ids=["forked", "grid"])
def test_inquiries_come_early_only_where_channels_reorder(kind: type[Maekawa], quorums: QuorumSet) -> None:
    assert check(model(quorums, kind, network=Network.FIFO)).verdict is Verdict.HOLDS


def test_where_all_ask_all_the_silent_displacement_does_no_harm() -> None:
    """A later process asks the earlier one, which then has queued its own request, and says FAILED."""
    assert check(model(EVERYBODY, DisplacesInSilence)).verdict is Verdict.HOLDS


def test_quorums_that_do_not_meet_let_two_in() -> None:
    result = check(Model(nodes=[Maekawa(0, 0b01), Maekawa(1, 0b10)]))
    assert result.violation is not None
    assert result.violation.kind == "safety"


# The catalogue


def test_the_catalogue_s_model_is_the_grid_without_order() -> None:
    entry = find("maekawa")
    standard = model_of(entry, n=3)
    assert standard.network is Network.UNORDERED
    assert standard.nodes == among(grid(3))
    assert entry.letters(7) == {"n": 7, "s": 3, "q": 5}


def test_unknown_quorums_are_refused_before_anything_is_built() -> None:
    with pytest.raises(UsageError, match="there are no quorums 'ring'"):
        find("maekawa").set("quorums=ring")
