"""Processes that crash and come back: incarnations, JOIN, and what goes wrong without each rule."""

from dataclasses import dataclass, replace

import pytest

from tests.mutants import robust_k as mutants
from tests.protocols.test_robust_k_schedules import failures, schedule
from trinco.check.model import Clocks, Model, Timers
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core import snapshot
from trinco.core.claims import Network
from trinco.core.context import INSIDE, WAITING, Context
from trinco.core.event import Kind
from trinco.core.node import Node
from trinco.protocols.detection.hi_adsd import HiAdsd, Timing
from trinco.protocols.detection.perfect import CRASHED
from trinco.protocols.permission.robust_k_recovery import BOOT, Join, RecoveringRobustK
from trinco.protocols.permission.robust_k_system import RobustKSystem
from trinco.sim.faults import Crash, Fault, Restart
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, Simulation, run
from trinco.sim.workload import Scripted

SYSTEM = RobustKSystem(k=1, detector="hi-adsd", tree=False, recovers=True, delta=1.0)
"""A test takes 4 at most, a round of tests begins every 100; every message takes 1 unless it is said."""


def told(n: int, *asks: tuple[int, float, float], faults: tuple[Fault, ...] = (), system: object = SYSTEM) -> Result:
    return run(
        Scenario(
            protocol="robust-k",
            build=system,  # type: ignore[arg-type]
            claims=SYSTEM.claims,
            n=n,
            workload=Scripted(asks),
            faults=faults,
            until=5_000.0,
            beyond_claims=len({fault.node for fault in faults if isinstance(fault, Crash)}) == n,
        )
    )


def entries(result: Result) -> list[tuple[float, int]]:
    assert result.recording is not None
    return [(event.at, event.node) for event in result.recording.events() if event.kind is Kind.GRANT]


# What happens to who comes back


def test_who_comes_back_joins_and_enters_again() -> None:
    """p1 is back at 20, has all answers at 22, and its request of 21 goes out then."""
    result = told(3, (1, 0.0, 1.0), (1, 21.0, 1.0), faults=(Crash(1, 10.0), Restart(1, 20.0)))
    assert result.violation is None
    assert entries(result) == [(2.0, 1), (24.0, 1)]
    counted = result.metrics.messages_by_kind
    assert (counted["join"], counted["join-ack"]) == (2, 2)


def test_who_does_not_answer_in_time_has_crashed() -> None:
    """p0 is down for ever when p1 joins at 20. The answer of p0 would have been there by 22; p1 waits until 24."""
    result = told(3, (1, 21.0, 1.0), faults=(Crash(0, 10.0), Crash(1, 10.0), Restart(1, 20.0)))
    assert result.violation is None
    assert entries(result) == [(26.0, 1)]


def test_two_who_come_back_at_the_same_time_answer_each_other_by_joining() -> None:
    faults = (Crash(0, 10.0), Crash(1, 10.0), Restart(0, 20.0), Restart(1, 20.5))
    result = told(3, (0, 20.5, 1.0), (1, 21.0, 1.0), faults=faults)
    assert result.violation is None
    assert [node for _, node in entries(result)] == [0, 1]


def test_a_request_that_waits_is_permitted_by_who_comes_back() -> None:
    """p0 is inside, p1 waits, p2 crashes without p1's knowing and comes back: nobody answers p1's request twice."""
    result = told(3, (0, 0.0, 30.0), (1, 5.0, 1.0), faults=(Crash(2, 5.5), Restart(2, 8.0)))
    assert result.violation is None
    assert entries(result) == [(2.0, 0), (33.0, 1)]


def test_an_incarnation_is_kept_and_clocks_begin_beyond_it() -> None:
    faults = tuple(fault for at in (10.0, 20.0) for fault in (Crash(1, at), Restart(1, at + 5.0)))
    result = told(2, (1, 40.0, 1.0), faults=faults)
    assert result.recording is not None
    joins = [event.message for event in result.recording.events() if event.kind is Kind.SEND and event.node == 1]
    assert [each.incarnation for each in joins if isinstance(each, Join)] == [1, 2]
    requests = [each.timestamp for each in joins if type(each).__name__ == "Request"]
    assert requests == [2 * BOOT + 1]


@dataclass(frozen=True)
class CutShort:
    """Process 1 crashes in the middle of its first JOIN: only process 0 hears of it."""

    kind: type[RecoveringRobustK] = RecoveringRobustK

    def __call__(self, n: int) -> list[Node]:
        class JoinsHalfway(self.kind):  # type: ignore[name-defined, misc]
            __slots__ = ()

            def on_restart(self, ctx: Context, stored: int | None) -> None:
                ctx.store((stored or 0) + 1)
                ctx.send(0, Join((stored or 0) + 1))

        return [(JoinsHalfway if me == 1 else self.kind).in_place_of(node) for me, node in enumerate(SYSTEM(n))]

    def letters(self, n: int) -> dict[str, float]:
        return SYSTEM.letters(n)


QUICK = (Crash(1, 10.0), Restart(1, 11.0), Crash(1, 11.0))
"""Nobody notices that it was gone, and only process 0 that it was back."""


def test_a_join_that_reached_only_some_blocks_nobody() -> None:
    """Process 2 hears of 1 from 0 alone, which speaks of an incarnation that 2 has never seen."""
    result = told(3, (2, 50.0, 1.0), faults=QUICK, system=CutShort())
    assert result.violation is None
    assert [node for _, node in entries(result)] == [2]


def test_it_does_if_incarnations_are_not_hearsay_too() -> None:
    result = told(3, (2, 50.0, 1.0), faults=QUICK, system=CutShort(mutants.LearnsIncarnationsFirstHand))
    assert entries(result) == []


def test_a_token_may_fall_if_all_who_knew_the_highest_have_crashed() -> None:
    """That is why recovery claims none. p0, in its third life, enters with p2's permission; then p1 comes back, which
    has been down for long, and p2 crashes before it can answer. (All three crash, though never all at once.)"""
    lives = tuple(fault for at in (10.0, 20.0) for fault in (Crash(0, at), Restart(0, at + 5.0)))
    last = (Crash(0, 60.0), Restart(1, 70.0), Crash(2, 70.5))
    result = told(3, (0, 40.0, 1.0), (1, 80.0, 1.0), faults=(Crash(1, 5.0), *lives, *last))
    assert result.recording is not None
    tokens = [event.token for event in result.recording.events() if event.kind is Kind.GRANT]
    assert tokens == [(2 * BOOT + 1, 0), (BOOT + 1, 1)]
    assert not SYSTEM.claims.fencing


# Every run of a small system


def with_hi_adsd(kind: type[RecoveringRobustK], crashes: int, network: Network) -> Model:
    """Two processes with all of Hi-ADSD, one round of tests in each life; a tick is more than a question and its answer
    take."""
    timing = Timing(interval=2.0, timeout=1.0, delta=0.1)
    nodes = [kind(me, 2, 1, HiAdsd(me, 2, timing)) for me in range(2)]
    return Model(
        nodes=nodes,
        network=network,
        crashes=crashes,
        restarts=crashes,
        timers=Timers.PUNCTUAL,
        clocks=Clocks(),
        fires=1,
        reductions=False,
    )


@pytest.mark.parametrize(("crashes", "network", "states"), [(1, Network.UNORDERED, 34_153), (2, Network.FIFO, 47_448)])
def test_two_that_test_each_other_come_back_safely_in_exactly_so_many_states(
    crashes: int, network: Network, states: int
) -> None:
    """Who crashes after the last round of tests is never found out, so nothing is said of who waits for it."""
    result = check(with_hi_adsd(RecoveringRobustK, crashes, network))
    assert (result.verdict, result.violation, result.cut_off) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def test_with_an_oracle_one_of_two_comes_back_without_harm_in_exactly_so_many_states() -> None:
    """Three entries each. Of three processes with one entry each there are 160,625."""
    nodes = [RecoveringRobustK(me, 2, 1) for me in range(2)]
    result = check(Model(nodes=nodes, inputs={"acquire": 3}, crashes=1, restarts=1, reductions=False))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == 6_953


def test_news_of_a_crash_that_may_be_of_the_next_incarnation_blocks_it() -> None:
    """The oracle says of no incarnation; on channels that reorder its news may come after the JOIN."""
    nodes = [RecoveringRobustK(me, 2, 1) for me in range(2)]
    found = check(Model(nodes=nodes, network=Network.UNORDERED, crashes=1, restarts=1)).violation
    assert found is not None
    assert found.kind == "deadlock"


# No rule can be dropped


def rebooting(kind: type[RecoveringRobustK]) -> type[RecoveringRobustK]:
    """Crashes and is back at once, when the environment wants it; what was sent to it before still arrives."""

    class Rebooting(kind):  # type: ignore[valid-type, misc]
        __slots__ = ()

        def reboot(self, ctx: Context) -> None:
            incarnation = self.incarnations[self.me]
            if ctx.phase is INSIDE:
                ctx.lost("crashed")
            elif ctx.phase is WAITING:
                ctx.refuse("crashed")
            fresh = type(self)(self.me, self.n, self.k)
            for name in snapshot.field_names(type(self)):
                setattr(self, name, getattr(fresh, name))
            ctx.broadcast(CRASHED, to=range(self.n))
            self.on_restart(ctx, incarnation)

    return Rebooting


def with_one_that_reboots(kind: type[RecoveringRobustK], reboots: int) -> Model:
    """Three processes: 0 is in its sixth life, so its timestamps are far ahead, and 1 may reboot."""
    lives = (5, 0, 0)
    kinds = (kind, rebooting(kind), kind)
    nodes = [kinds[me](me, 3, 1, clock=lives[me] * BOOT, incarnations=lives) for me in range(3)]
    return Model(nodes=nodes, inputs={"acquire": 1, "reboot": reboots})


def test_one_that_reboots_harms_nobody_in_exactly_so_many_states() -> None:
    result = check(replace(with_one_that_reboots(RecoveringRobustK, reboots=1), reductions=False))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == 44_444


@pytest.mark.parametrize(
    ("kind", "reboots", "breaks"),
    [
        (mutants.AsksAtOnce, 1, "safety"),
        (mutants.LearnsNoClock, 1, "safety"),
        (mutants.TakesAnyAnswer, 2, "safety"),
        (mutants.WaitsForWhoJoins, 1, "deadlock"),
        (mutants.StaysSuspicious, 1, "deadlock"),
    ],
)
def test_no_rule_can_be_dropped(kind: type[RecoveringRobustK], reboots: int, breaks: str) -> None:
    found = check(with_one_that_reboots(kind, reboots)).violation
    assert found is not None
    assert found.kind == breaks


@pytest.mark.parametrize(("kind", "crashes"), [(mutants.FinishesTests, 1), (mutants.WantsAnAnswerFromJoiners, 2)])
def test_no_rule_about_tests_can_be_dropped(kind: type[RecoveringRobustK], crashes: int) -> None:
    found = check(with_hi_adsd(kind, crashes, Network.FIFO)).violation
    assert found is not None
    assert found.kind == "safety"


@pytest.mark.parametrize(
    "kind",
    [mutants.AsksAtOnce, mutants.LearnsNoClock, mutants.BelievesOldHearsay, mutants.FinishesTests],
    ids=lambda kind: kind.__name__,
)
def test_random_schedules_notice_it_too(kind: type[RecoveringRobustK]) -> None:
    for seed in range(300):
        simulation = Simulation(schedule(seed, recovers=True, kind=kind))
        simulation.run()
        if failures([simulation]):
            return
    pytest.fail("300 schedules, and nothing was violated")
