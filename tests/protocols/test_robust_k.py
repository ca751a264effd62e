"""Robust k-mutual exclusion: what an entry costs, what a crash does, tokens, settings, and that it needs each rule."""

import pytest

from tests.mutants import robust_k as mutants
from trinco.check.model import Clocks, Model, Timers
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.core.context import Context, Phase
from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.lab.exhibits.robust_k import NoTimeLeft
from trinco.protocols.broadcast.spanning_tree import Ack, Retry, Rules, SpanningTree
from trinco.protocols.detection.clusters import dimensions
from trinco.protocols.detection.hi_adsd import HiAdsd
from trinco.protocols.permission import raymond_k
from trinco.protocols.permission.raymond_k import RaymondKSystem
from trinco.protocols.permission.robust_k import Reply, Request, RobustK
from trinco.protocols.permission.robust_k_system import RobustKSystem
from trinco.protocols.settings import with_settings
from trinco.sim.faults import Crash
from trinco.sim.laws import Constant
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, run
from trinco.sim.workload import Scripted, saturated

FIFO, UNORDERED = Network.FIFO, Network.UNORDERED
SIZES = pytest.mark.parametrize("n", [4, 8, 16, 32, 64])


def scenario(system: RobustKSystem, n: int, **options: object) -> Scenario:
    return Scenario(protocol="robust-k", build=system, claims=system.claims, n=n, **options)  # type: ignore[arg-type]


def told(system: RobustKSystem, n: int, *asks: tuple[int, float, float], crashes: tuple[Crash, ...] = ()) -> Result:
    """Exactly these requests (who, when, held for how long) and crashes; every message takes 1."""
    result = run(scenario(system, n, workload=Scripted(asks), faults=crashes))
    assert result.violation is None
    return result


def entries(result: Result) -> list[tuple[float, int]]:
    return times(result, Kind.GRANT)


def times(result: Result, kind: Kind) -> list[tuple[float, int]]:
    assert result.recording is not None
    return [(event.at, event.node) for event in result.recording.events() if event.kind is kind]


# What an entry costs


@SIZES
def test_an_entry_takes_each_of_tree_ack_and_reply_for_every_other_process(n: int) -> None:
    counted = told(RobustKSystem(k=1), n, (1, 1.0, 1.0)).metrics.messages_by_kind
    assert counted == {"tree": n - 1, "ack": n - 1, "reply": n - 1}


def test_sixteen_processes_pay_45_where_raymond_pays_30() -> None:
    """ "50% maior que na solução de Raymond" """
    asked = (2, 1.0, 10.0)
    assert told(RobustKSystem(k=5), 16, asked).metrics.messages == 45
    raymond = Scenario(
        protocol="raymond-k", build=RaymondKSystem(5), claims=raymond_k.CLAIMS, n=16, workload=Scripted((asked,))
    )
    assert run(raymond).metrics.messages == 30


@SIZES
def test_a_reply_at_once_spares_the_ack_and_a_direct_request_takes_none(n: int) -> None:
    spared = told(RobustKSystem(k=1, reply_is_ack=True), n, (1, 1.0, 1.0)).metrics.messages_by_kind
    direct = told(RobustKSystem(k=1, tree=False), n, (1, 1.0, 1.0)).metrics.messages_by_kind
    assert spared == {"tree": n - 1, "reply": n - 1}
    assert direct == {"request": n - 1, "reply": n - 1}


def test_who_defers_its_reply_acknowledges_at_once() -> None:
    """p1 is inside when p0 asks: it sends an ACK then, and its REPLY when it leaves."""
    result = told(RobustKSystem(k=1, reply_is_ack=True), 4, (1, 0.0, 10.0), (0, 5.0, 1.0))
    assert result.metrics.messages_by_kind == {"tree": 6, "reply": 6, "ack": 1}


@pytest.mark.parametrize("n", [4, 16, 64])
@pytest.mark.parametrize("settings", [(), ("reply_is_ack=yes",), ("tree=no",)], ids=["tree", "reply is ack", "direct"])
@pytest.mark.parametrize("k", [1, 3])
def test_under_load_no_more_is_paid_than_claimed(n: int, settings: tuple[str, ...], k: int) -> None:
    system: RobustKSystem = with_settings(RobustKSystem(k=k), settings, "robust-k")
    result = run(scenario(system, n, workload=saturated(2 * n)))
    assert result.violation is None
    assert system.claims.messages_per_entry.admits(result.metrics.messages_per_entry or 0.0, n=n, k=k)


@SIZES
def test_a_lone_request_takes_a_hop_for_each_dimension_and_one_back_or_two_if_it_goes_directly(n: int) -> None:
    tree, direct = RobustKSystem(k=1), RobustKSystem(k=1, tree=False)
    assert entries(told(tree, n, (1, 10.0, 1.0))) == [(10.0 + dimensions(n) + 1, 1)]
    assert entries(told(direct, n, (1, 10.0, 1.0))) == [(12.0, 1)]


# What a crash does


def test_a_unit_whose_holder_crashes_is_free_as_soon_as_its_crash_is_known() -> None:
    """k = 1: p0 is inside from 2 on and dies at 5, which p1 and p2 are told at 6."""
    result = told(RobustKSystem(k=1, tree=False), 3, (0, 0.0, 100.0), (1, 3.0, 1.0), crashes=(Crash(0, 5.0),))
    assert entries(result) == [(2.0, 0), (6.0, 1)]


def test_a_permission_of_the_dead_takes_nobody_s_place() -> None:
    """The spec's trace of F5: p1 and p2 hold both units; p3 permits p0 and dies. p0 has to wait for one of them."""
    asks = ((1, 0.0, 20.0), (2, 0.0, 30.0), (0, 5.0, 1.0))
    result = told(RobustKSystem(k=2, tree=False), 4, *asks, crashes=(Crash(3, 6.5),))
    assert entries(result) == [(2.0, 1), (2.0, 2), (23.0, 0)]


@pytest.mark.parametrize("tree", [True, False])
@pytest.mark.parametrize("n", range(2, 9))
def test_the_last_one_alive_enters_at_once(n: int, tree: bool) -> None:
    crashes = tuple(Crash(node, float(node)) for node in range(1, n))
    result = told(RobustKSystem(k=1, tree=tree), n, (0, 20.0, 1.0), (0, 30.0, 1.0), crashes=crashes)
    assert entries(result) == [(20.0, 0), (30.0, 0)]


class Inside(Context):
    """Of a process that is inside, and what it sends."""

    def __init__(self) -> None:
        self.phase = Phase.INSIDE
        self.sent: list[tuple[int, object]] = []

    def send(self, to: int, message: Message) -> None:
        self.sent.append((to, message))


def test_a_request_that_was_overtaken_by_a_newer_one_does_not_take_its_place() -> None:
    """The reply names the request that it answers: to an old one it would count for nothing."""
    process, context = RobustK(0, 3, k=1), Inside()
    process.on_message(context, 1, Request(5))
    process.on_message(context, 1, Request(3))
    process.release(context)
    assert context.sent == [(1, Reply(5))]


def test_the_older_request_goes_first_whatever_the_prose_says() -> None:
    """The spec's trace of F7: p2 is slow, p0 asks at 0, p1 hears of it and asks at 1.5."""
    slow = {(2, 0): Constant(10.0), (2, 1): Constant(10.0)}
    links, asks = Links(per_link=slow), Scripted(((0, 0.0, 5.0), (1, 1.5, 5.0)))
    result = run(scenario(RobustKSystem(k=1, tree=False), 3, links=links, workload=asks))
    assert result.violation is None
    assert [node for _, node in entries(result)] == [0, 1]


def acknowledged_by_3(retry: str) -> float:
    """The spec's trace of F8: p0 asks at 0.2 and tells p3 by way of p2, which dies at 0.205."""
    system, asks = RobustKSystem(k=1, detector="hi-adsd", retry=retry, delta=0.01), Scripted(((0, 0.2, 0.1),))
    result = run(scenario(system, 4, links=Links(Constant(0.01)), workload=asks, faults=(Crash(2, 0.205),)))
    assert result.violation is None
    assert result.recording is not None
    received = (event for event in result.recording.events() if event.kind is Kind.RECEIVE and event.peer == 3)
    return next(event.at for event in received if isinstance(event.message, Ack))


def test_a_message_that_died_with_who_was_to_pass_it_on_is_there_within_a_tenth_of_a_second() -> None:
    assert acknowledged_by_3("missing") < 0.3


def test_repeated_down_the_whole_tree_it_is_there_when_the_crash_is_known_a_second_later() -> None:
    assert acknowledged_by_3("whole-tree") > 1.0


def patient(n: int, retry: str, asking: frozenset[int] | None) -> Model:
    """One crash. The tree's timer fires, up to three times, when nothing is under way any more."""
    nodes = RobustKSystem(k=1, retry=retry, delta=0.25)(n)
    timers, clocks = Timers.PUNCTUAL, Clocks()
    return Model(nodes=nodes, crashes=1, called=asking, timers=timers, clocks=clocks, reductions=False)


@pytest.mark.parametrize(("n", "asking", "states"), [(4, frozenset({0}), 1_450), (3, None, 34_048)])
def test_in_every_run_a_request_that_a_crash_has_lost_on_its_way_down_the_tree_is_served(
    n: int, asking: frozenset[int] | None, states: int
) -> None:
    result = check(patient(n, "missing", asking))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def test_unless_it_is_never_repeated() -> None:
    found = check(patient(4, "never", frozenset({0}))).violation
    assert found is not None
    assert (found.kind, found.text) == ("deadlock", "p0 waits and nothing can move")


# Tokens


def test_with_one_unit_the_token_of_a_grant_never_falls_and_with_more_there_is_none() -> None:
    assert RobustKSystem(k=1).claims.fencing
    assert not RobustKSystem(k=2).claims.fencing
    result = told(RobustKSystem(k=1), 3, (2, 0.0, 1.0), (1, 0.0, 1.0), (0, 0.0, 1.0))
    assert result.recording is not None
    tokens = [event.token for event in result.recording.events() if event.kind is Kind.GRANT]
    assert tokens == [(1, 0), (1, 1), (1, 2)]


def test_with_two_units_a_younger_request_may_be_served_first() -> None:
    """p0 asks before p1, and the one reply that it needs is slow."""
    slow = {(node, 0): Constant(50.0) for node in (1, 2)}
    asks = Scripted(((0, 0.0, 1.0), (1, 2.0, 1.0)))
    result = run(scenario(RobustKSystem(k=2, tree=False), 3, links=Links(per_link=slow), workload=asks))
    assert [node for _, node in entries(result)] == [1, 0]


# Settings


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ("k=0", "at least one"),
        ("delta=0", "takes some time"),
        ("detector=crystal-ball", "perfect or hi-adsd"),
        ("retry=sometimes", "missing or whole-tree or never"),
        ("schedule=none", "all or one"),
        ("tree=no reply_is_ack=yes", "nothing is acknowledged"),
        ("notifies=yes", "hi-adsd"),
        ("recovers=yes", "hi-adsd"),
        ("detector=hi-adsd notifies=yes recovers=yes", "incarnation"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        with_settings(RobustKSystem(), settings.split(), "robust-k")


def test_as_many_units_as_processes_are_refused() -> None:
    with pytest.raises(UsageError, match="at most 2"):
        RobustKSystem(k=3)(3)


def test_timeouts_are_those_of_the_paper_s_experiment_and_leave_time_for_the_answers() -> None:
    system = RobustKSystem(k=5, detector="hi-adsd", delta=0.01)
    assert system.rules(16).timeout == 0.08
    assert (system.timing().interval, system.timing().timeout) == (1.0, 0.04)
    assert all(system.rules(n).timeout > 0.01 * (dimensions(n) + 1) for n in range(2, 65))


# No rule can be dropped


def test_a_detector_that_errs_lets_too_many_in() -> None:
    """F6 with the delays of the experiment: a timeout of 0.015 where an answer takes 0.02."""

    def hasty(n: int) -> list[Node]:
        return [RobustK(me, n, 1, HiAdsd(me, n, NoTimeLeft(timeout=0.015))) for me in range(n)]

    asks = Scripted(((0, 0.1, 1.0), (1, 0.12, 1.0)))
    claims = RobustKSystem(k=1).claims
    links = Links(Constant(0.01))
    result = run(
        Scenario(protocol="hasty", build=hasty, claims=claims, n=2, links=links, workload=asks, letters={"k": 1})
    )
    assert result.violation is not None
    assert result.violation.property == "AtMostInside"


NEVER_REPEATS = Rules(retry=Retry.NEVER)


@pytest.mark.parametrize(
    ("kind", "n", "k", "rounds", "crashes", "network", "rules", "breaks"),
    [
        (mutants.PermitsWhileInside, 2, 1, 1, 0, UNORDERED, None, "safety"),
        (mutants.IgnoresTimestamps, 2, 1, 1, 0, UNORDERED, None, "safety"),
        (mutants.WaitsForTheDead, 2, 1, 1, 1, UNORDERED, None, "deadlock"),
        (mutants.CountsTheDead, 3, 1, 1, 1, UNORDERED, None, "safety"),
        (mutants.TakesAnyReply, 3, 2, 2, 0, FIFO, None, "safety"),
        (mutants.ForgetsTheDeferred, 2, 1, 1, 0, UNORDERED, None, "deadlock"),
        (mutants.LooksAwayFromCrashes, 2, 1, 1, 1, UNORDERED, None, "deadlock"),
        (mutants.LeavesTheTreeAlone, 3, 1, 2, 1, FIFO, NEVER_REPEATS, "deadlock"),
        (mutants.TakesNoReplyForAnAck, 2, 1, 2, 0, UNORDERED, Rules(retry=Retry.NEVER, owner_answers=True), "deadlock"),
    ],
)
def test_no_rule_can_be_dropped(
    kind: type[RobustK], n: int, k: int, rounds: int, crashes: int, network: Network, rules: Rules | None, breaks: str
) -> None:
    nodes = [kind(me, n, k, tree=SpanningTree(me, n, rules) if rules else None) for me in range(n)]
    called = frozenset({0}) if kind is mutants.LeavesTheTreeAlone else None
    model = Model(
        nodes=nodes, k=k, network=network, inputs={"acquire": rounds}, crashes=crashes, fires=0, called=called
    )
    found = check(model).violation
    assert found is not None
    assert found.kind == breaks
