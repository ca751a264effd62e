"""Robust k-mutual exclusion: what it costs, what crashes do to it and to Raymond's algorithm, and random schedules."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from tests.mutants import robust_k as mutants
from trinco.check.model import Model
from trinco.check.run import check
from trinco.core.claims import Network
from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.message import Message
from trinco.core.monitor import TokenRises
from trinco.core.node import Node
from trinco.lab.exhibits.robust_k import NoTimeLeft
from trinco.protocols.broadcast.spanning_tree import Ack, Retry, Rules, SpanningTree, Tree
from trinco.protocols.detection.clusters import dimensions
from trinco.protocols.detection.hi_adsd import HiAdsd
from trinco.protocols.permission import raymond_k
from trinco.protocols.permission.raymond_k import RaymondKSystem
from trinco.protocols.permission.robust_k import RobustK
from trinco.protocols.permission.robust_k_system import RobustKSystem
from trinco.protocols.settings import with_settings
from trinco.sim.faults import Crash, Fault, Restart
from trinco.sim.laws import Constant, Exponential, Law, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, Simulation, run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Scripted, saturated

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


# Raymond's algorithm, which has no detector


def raymond(n: int, k: int, workload: Scripted | Closed, *faults: Fault, **options: object) -> Simulation:
    simulation = Simulation(
        Scenario(
            protocol="raymond-k",
            build=RaymondKSystem(k),
            claims=raymond_k.CLAIMS,
            n=n,
            workload=workload,
            faults=faults,
            beyond_claims=True,
            **options,  # type: ignore[arg-type]
        )
    )
    simulation.run()
    return simulation


FIGURE_1 = Scripted(((0, 0.0, 20.0), (1, 10.0, 5.0)))


def entered(simulation: Simulation) -> list[tuple[float, int]]:
    return [(at, node) for at, node, kind in simulation.history if kind is Kind.GRANT]


def test_figure_1_without_crashes_the_second_enters_while_the_first_is_inside() -> None:
    """ "p_1 deve aguardar por no mínimo n - k = 8 - 5 = 3 respostas" """
    assert entered(raymond(8, 5, FIGURE_1)) == [(2.0, 0), (12.0, 1)]


def test_figure_1_with_four_dead_the_second_waits_for_the_first_although_four_units_are_free() -> None:
    """ "apenas após a liberação do recurso por p_0 [...] mesmo havendo quatro recursos livres" """
    dead = [Crash(node, 5.0) for node in (4, 5, 6, 7)]
    assert entered(raymond(8, 5, FIGURE_1, *dead)) == [(2.0, 0), (23.0, 1)]


def test_with_a_detector_it_enters_at_once_since_no_more_than_k_are_alive() -> None:
    dead = tuple(Crash(node, 5.0) for node in (4, 5, 6, 7))
    assert entries(told(RobustKSystem(k=5, tree=False), 8, *FIGURE_1.asks, crashes=dead)) == [(2.0, 0), (10.0, 1)]


def inside_at_most(simulation: Simulation, since: float) -> int:
    inside: set[int] = set()
    most = 0
    for at, node, kind in simulation.history:
        inside = inside | {node} if kind is Kind.GRANT else inside - {node}
        most = max(most, len(inside)) if at > since else most
    return most


@pytest.mark.parametrize("seed", range(20))
def test_each_crash_takes_a_unit_from_raymond_and_after_k_nobody_who_asks_enters(seed: int) -> None:
    """Those die who hold nothing; what was asked for before may still be permitted."""
    rng = random.Random(seed)
    k = rng.randint(1, 4)
    n = 2 * k + rng.randint(1, 4)
    dead = rng.randint(1, k)
    crashes = [Crash(node, 0.0) for node in rng.sample(range(n), dead)]
    simulation = raymond(n, k, Closed(20, think=Exponential(5.0)), *crashes, seed=seed)
    assert inside_at_most(simulation, since=0.0) <= k - dead
    assert bool(entered(simulation)) == (dead < k)


def test_nothing_that_is_asked_for_after_the_k_th_crash_is_granted_by_raymond() -> None:
    late = Scripted(((0, 0.0, 1.0), (0, 10.0, 1.0), (1, 11.0, 1.0)))
    assert entered(raymond(5, 2, late, Crash(3, 5.0), Crash(4, 6.0))) == [(2.0, 0)]
    assert len(entries(told(RobustKSystem(k=2), 5, *late.asks, crashes=(Crash(3, 5.0), Crash(4, 6.0))))) == 3


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


# Loss of what the tree sends


class Leaky(RobustK):
    """One in ten TREE and ACK is lost on the way here."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if not isinstance(message, Tree | Ack) or ctx.choose(10):
            RobustK.on_message(self, ctx, source, message)


@dataclass(frozen=True)
class InPlaceOf:
    """The same system with nodes of another class."""

    kind: type[Node]
    system: RobustKSystem

    def __call__(self, n: int) -> list[Node]:
        return [self.kind.in_place_of(node) for node in self.system(n)]

    def letters(self, n: int) -> dict[str, float]:
        return self.system.letters(n)


def leaking(seed: int, acknowledges_again: bool) -> Result:
    system = RobustKSystem(k=1 + seed % 3, delta=1.0, acknowledges_again=acknowledges_again)
    crashes = (Crash(seed % 6, 20.0),)
    return run(
        scenario(system, 6, seed=seed, workload=saturated(18), faults=crashes, until=2_000.0, trace=False).with_changes(
            build=InPlaceOf(Leaky, system)
        )
    )


def test_a_tenth_of_the_tree_s_messages_may_be_lost() -> None:
    assert all(result.finished and not result.violation for result in (leaking(seed, True) for seed in range(60)))


def test_unless_duplicates_are_not_acknowledged_again() -> None:
    """F9: sooner or later an ACK is lost, and that root never gets on."""
    assert sum(not leaking(seed, False).finished for seed in range(10)) == 10


# Many runs of larger systems

VARIANTS = ("", "reply_is_ack=yes", "retry=whole-tree", "retry=whole-tree acknowledges_again=no", "tree=no")
DETECTORS = ("detector=perfect", "detector=hi-adsd", "detector=hi-adsd schedule=one", "detector=hi-adsd notifies=yes")
BOUNDED: tuple[Law, ...] = (Uniform(0.05, 1.0), Uniform(0.9, 1.0), Constant(1.0))
WIDE: tuple[Law, ...] = (Uniform(0.1, 10.0), Exponential(3.0), Lognormal(1.0, 1.5))


def schedule(seed: int, recovers: bool = False, kind: type[Node] | None = None) -> Scenario:
    """Two to sixteen processes, one unit to all but one, and up to all but one of the processes crash, some of them in
    the middle of a multi-send, and come back perhaps, several times; light or heavy load; any variant and detector.
    Messages take at most 1, which is delta, where a detector relies on it. ``kind``: another class for the nodes."""
    rng = random.Random(f"{seed}/{recovers}")
    n = rng.randint(2, 16)
    k = rng.randint(1, n - 1) if rng.random() < 0.5 else 1
    detector = rng.choice(DETECTORS[1:3] if recovers else DETECTORS)
    words = f"k={k} delta=1 {detector} {rng.choice(VARIANTS)} {'recovers=yes' * recovers}".split()
    system: RobustKSystem = with_settings(RobustKSystem(), words, "robust-k")
    within = rng.choice((20.0, 100.0, 300.0))
    faults = [
        fault
        for node in rng.sample(range(n), rng.randint(1, n - 1))
        for fault in (_lives(rng, node, within) if recovers else [_crash(rng, node, rng.uniform(0.0, within))])
    ]
    law = rng.choice(BOUNDED if system.detector == "hi-adsd" else WIDE)
    return Scenario(
        protocol="robust-k",
        build=InPlaceOf(kind, system) if kind else system,
        claims=system.claims,
        n=n,
        seed=seed,
        workload=Closed(6 * n, think=rng.choice((Constant(0.0), Exponential(20.0))), hold=Exponential(3.0)),
        links=Links(law, ordered=rng.random() < 0.3),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        until=20_000.0,
        trace=False,
    )


def _crash(rng: random.Random, node: int, at: float) -> Crash:
    return Crash(node, at, after_sends=rng.choice((None, None, 0, 1, 2)))


def _lives(rng: random.Random, node: int, within: float) -> Iterator[Fault]:
    """Crashes and comes back up to four times, mostly soon."""
    at = rng.uniform(0.0, within)
    for _ in range(rng.randint(1, 4)):
        yield _crash(rng, node, at)
        at += rng.uniform(0.0, rng.choice((3.0, 10.0, 200.0)))
        yield Restart(node, at)
        at += rng.uniform(0.0, rng.choice((3.0, 10.0, 200.0)))


def schedules(count: int, recovers: bool = False) -> Iterator[Simulation]:
    """So many, each run to its end."""
    for seed in range(count):
        simulation = Simulation(schedule(seed, recovers))
        simulation.run()
        yield simulation


def failures(simulations: Iterable[Simulation]) -> list[int]:
    """The seeds of those in which something was violated or somebody was left waiting."""
    results = (simulation.result() for simulation in simulations)
    return [each.scenario.seed for each in results if each.violation or not each.finished]


@pytest.mark.parametrize("recovers", [False, True], ids=["for ever", "coming back"])
def test_no_random_crash_schedule_breaks_it_or_leaves_anybody_waiting(recovers: bool) -> None:
    assert failures(schedules(150, recovers)) == []


def test_the_schedules_are_hard() -> None:
    """All but one die, holders inside, processes in the middle of a multi-send."""
    all_but_one = inside = mid_send = 0
    for simulation in schedules(40):
        dead = [host for host in simulation.hosts if not host.alive]
        all_but_one += len(dead) == simulation.scenario.n - 1
        last: dict[int, Kind] = {}
        for _, node, kind in simulation.history:
            inside += kind is Kind.CRASH and last.get(node) is Kind.GRANT
            last[node] = kind
        died = {host.me for host in dead}
        mid_send += sum(bool(fault.after_sends) and fault.node in died for fault in simulation.faults)  # type: ignore[union-attr]
    assert min(all_but_one, inside, mid_send) > 3


def test_tokens_rise_whoever_crashes() -> None:
    seen = [each for each in schedules(40) if each.scenario.claims.fencing]
    assert len(seen) > 15
    assert all(any(isinstance(monitor, TokenRises) for monitor in each.monitors) for each in seen)
    assert failures(iter(seen)) == []


@pytest.mark.parametrize("think", [Constant(0.0), Exponential(30.0)], ids=["saturated", "light"])
@pytest.mark.parametrize("tree", [True, False], ids=["tree", "direct"])
def test_wide_delays_alone_break_nothing(think: Law, tree: bool) -> None:
    links = Links(Lognormal(1.0, 1.5), ordered=False)
    swarm = Swarm(scenario(RobustKSystem(k=2, tree=tree, delta=1e6), 6, workload=Closed(30, think=think), links=links))
    swarm.run(range(50))
    assert (swarm.done, swarm.violations, swarm.unfinished) == (50, [], 0)
