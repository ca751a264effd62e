"""The ring election: what the slides say it costs, every run of a few processes, and what each rule is for."""

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

import pytest

from tests.mutants.elections import HastyMember, NeverPassesOver, NobodyIsTold, PassesOverTheWinner, TrustsTheRing
from trinco.check.elections import election_model
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.core.event import Event, Kind
from trinco.core.message import describe, tag_of
from trinco.lab.exhibits.elections import OnlyTheSenderRemoves
from trinco.protocols.election.ring import CLAIMS, Member, RingElection
from trinco.sim.faults import Crash, Fault, Restart
from trinco.sim.laws import Constant, Law, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, run
from trinco.sim.workload import Elections

SIZES = [4, 8, 16, 32, 64]


def election(
    n: int,
    *noticing: int,
    dead: int = 1,
    faults: tuple[Fault, ...] = (),
    delay: Law = Constant(1.0),
    build: RingElection = RingElection(),
) -> Result:
    """The highest ``dead`` processes have crashed, and some notice it at the same time."""
    return run(
        Scenario(
            protocol="ring-election",
            build=build,
            claims=CLAIMS,
            n=n,
            workload=Elections(tuple((node, 5.0) for node in noticing)),
            links=Links(delay),
            faults=(*(Crash(n - 1 - each, 0.0) for each in range(dead)), *faults),
        )
    )


def events(result: Result) -> list[Event]:
    assert result.violation is None
    assert result.recording is not None
    return list(result.recording.events())


def delivered(result: Result) -> Counter[str]:
    """The messages that found somebody, by kind; what a process sends to itself is no message."""
    kinds = [event for event in events(result) if event.kind is Kind.RECEIVE and event.peer != event.node]
    return Counter(tag_of(event.message) for event in kinds)


def attempts(result: Result) -> int:
    """The messages that found nobody."""
    return sum(event.kind is Kind.DROP for event in events(result))


def told(result: Result) -> list[tuple[int, int | None]]:
    """(who, whom it took for the leader), as it happened."""
    return [(event.node, event.peer) for event in events(result) if event.kind is Kind.ELECTED]


# What it costs


def test_the_slides_example_of_two_that_notice_takes_14_and_14_messages_and_4_attempts() -> None:
    """ "Envio da mensagem ELEIÇÃO por dois processos distintos": both choose the same leader."""
    result = election(8, 2, 5)
    assert delivered(result) == {"election": 14, "coordinator": 14, "received": 28}
    assert attempts(result) == 4
    assert dict(told(result)) == dict.fromkeys(range(7), 6)


@pytest.mark.parametrize("delay", [Constant(1.0), Uniform(0.01, 1.0)], ids=["constant", "wide"])
@pytest.mark.parametrize("dead", [0, 1, 2])
@pytest.mark.parametrize("n", SIZES)
def test_a_round_takes_one_message_for_every_process_that_runs_and_one_attempt_for_every_other(
    n: int, dead: int, delay: Law
) -> None:
    running = n - dead
    for initiators in (1, 2, 3):
        noticing = [position * running // 3 for position in range(initiators)]
        noticing = sorted(set(noticing))
        result = election(n, *noticing, dead=dead, delay=delay)
        round_trips = running * len(noticing)
        assert delivered(result) == {"election": round_trips, "coordinator": round_trips, "received": 2 * round_trips}
        assert attempts(result) == 2 * dead * len(noticing)
        assert dict(told(result)) == dict.fromkeys(range(running), running - 1)


@pytest.mark.parametrize("n", [4, 8, 16, 32])
def test_if_one_or_if_all_notice_it_is_the_least_and_the_most_that_is_claimed(n: int) -> None:
    for noticing, claimed in (
        ([0], CLAIMS.messages_per_entry.low(n=n)),
        (range(n - 1), CLAIMS.messages_per_entry.high(n=n)),
    ):
        kinds = delivered(election(n, *noticing))
        assert kinds["election"] + kinds["coordinator"] == claimed


@pytest.mark.parametrize("n", SIZES)
def test_everybody_knows_the_leader_after_the_claimed_delay(n: int) -> None:
    """With the timeout of everybody who must pass the crashed one over: the COORDINATOR of p0 comes to it last."""
    for detector, delay in ((0, CLAIMS.delay.low(n=n)), (1, CLAIMS.delay.high(n=n))):
        result = election(n, detector)
        assert max(event.at for event in events(result) if event.kind is Kind.ELECTED) - 5.0 == delay


def test_a_process_that_is_alone_elects_itself_without_a_message() -> None:
    result = election(4, 0, dead=3)
    assert delivered(result) == {}
    assert attempts(result) == 6
    assert told(result) == [(0, 0)]


# What may go wrong meanwhile


def test_if_the_initiator_crashes_the_first_that_was_passed_acts_for_it() -> None:
    """p1's ELECTION is on its way when p1 crashes at 6.5; it comes to p2 again, whose id is in it."""
    result = election(5, 1, faults=(Crash(1, 6.5),))
    assert told(result)[0] == (2, 3)
    assert dict(told(result)) == dict.fromkeys((0, 2, 3), 3)


def test_if_the_initiator_crashes_its_coordinator_is_taken_off_the_ring_as_well() -> None:
    """p1's COORDINATOR is on its way from 12 on; p1 crashes at 13.5."""
    result = election(5, 1, faults=(Crash(1, 13.5),))
    assert dict(told(result)) == dict.fromkeys(range(4), 3)
    assert result.metrics.messages_by_kind["coordinator"] < 10


def test_a_message_that_somebody_crashed_with_is_sent_again_by_its_initiator() -> None:
    """p2 acknowledges p1's ELECTION at 6 and crashes before it passes it on."""
    result = election(5, 1, faults=(Crash(2, 5.5, after_sends=1),))
    assert dict(told(result)) == dict.fromkeys((0, 1, 3), 3)
    sent = [(event.at, event.peer) for event in events(result) if describe(event.message) == "election[1]"]
    assert (5.0, 2) in sent
    assert (5.0 + Member(1, 5, delta=1.0).round_timeout, 2) in sent


def test_if_the_winner_crashes_its_predecessor_holds_another_election() -> None:
    """p3 has passed the ELECTION on at 10 and crashes; p2 finds it so when it passes the COORDINATOR on."""
    result = election(5, 1, faults=(Crash(3, 10.5),))
    assert dict(told(result)) == dict.fromkeys((0, 1, 2), 2)
    assert (1, 3) in told(result)


def test_who_comes_back_holds_an_election_and_if_it_is_the_highest_leads() -> None:
    result = election(5, 1, faults=(Restart(4, 100.0),))
    assert dict(told(result)) == dict.fromkeys(range(5), 4)


def test_who_comes_back_while_it_is_passed_over_lets_that_round_end_first() -> None:
    result = election(5, 1, faults=(Restart(4, 9.0),))
    assert dict(told(result)) == dict.fromkeys(range(5), 4)


@dataclass(frozen=True)
class Fitful:
    """Most messages take all the time that they may, the others none."""

    def draw(self, rng: Random) -> float:
        return 1.0 if rng.random() < 0.6 else 0.01


def disagreements(links: Links) -> list[str]:
    """p6 notices, p7 wins, passes its own COORDINATOR on and crashes; meanwhile p4 has noticed too."""
    scenario = Scenario(
        protocol="ring-election",
        build=RingElection(),
        claims=CLAIMS,
        n=8,
        workload=Elections(((6, 0.0), (4, 3.5))),
        links=links,
        faults=(Crash(7, 6.5),),
        trace=False,
        beyond_claims=True,
    )
    violations = [run(scenario.with_changes(seed=seed)).violation for seed in range(150)]
    return [violation.text for violation in violations if violation and "2 leaders" in violation.text]


def test_without_fifo_channels_a_round_may_overtake_another_and_leave_two_leaders() -> None:
    """p4's ELECTION overtakes the COORDINATOR that says p7, so p4's own COORDINATOR, which says p6, is ahead of it."""
    assert disagreements(Links(Fitful(), ordered=False))
    assert not disagreements(Links(Fitful()))


# Every run of a few processes: a third of a tick for a message, so that the timeouts are 1 tick and 6, 8 or 11


def small(kind: type[Member], n: int, **options: object) -> Model:
    nodes = [kind(me, n, 1 / 3) for me in range(n)]
    return election_model(nodes, network=Network.FIFO, reductions=False, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n", "noticing", "notices", "restarts", "states"),
    [
        (2, {0, 1}, 1, 1, 9_744),
        (3, {0}, 1, 1, 26_403),
        (3, {0, 1}, 1, 0, 9_597),
        (3, {0}, 2, 0, 6_201),
        (4, {0, 2}, 1, 0, 60_845),
    ],
)
def test_with_a_crash_all_agree_when_quiet_and_the_election_ends_in_exactly_so_many_states(
    n: int, noticing: set[int], notices: int, restarts: int, states: int
) -> None:
    result = check(small(Member, n, noticing=frozenset(noticing), notices=notices, crashes=1, restarts=restarts))
    assert (result.verdict, result.violation) == (Verdict.HOLDS, None)
    assert result.progress.states == states


def test_four_processes_with_a_crash_and_a_recovery_agree_when_quiet_in_exactly_so_many_states() -> None:
    """That the election always ends takes twice as long to see as this; it is seen with three processes."""
    model = small(Member, 4, noticing=frozenset({0}), crashes=1, restarts=1)
    result = check(replace(model, reachable={}))
    assert (result.verdict, result.violation) == (Verdict.HOLDS, None)
    assert result.progress.states == 199_158


# Without its rules


@pytest.mark.parametrize(
    ("kind", "n", "noticing", "crashes", "restarts", "breaks"),
    [
        (OnlyTheSenderRemoves, 3, {0}, 1, 0, "unreachable"),
        (NobodyIsTold, 2, {0}, 0, 0, "never"),
        (NeverPassesOver, 2, {0, 1}, 1, 0, "unreachable"),
        (TrustsTheRing, 3, {0}, 1, 0, "never"),
        (PassesOverTheWinner, 3, {0, 1}, 1, 0, "never"),
        (HastyMember, 2, {0, 1}, 1, 1, "never"),
    ],
)
def test_without_one_of_its_rules_it_is_caught(
    kind: type[Member], n: int, noticing: set[int], crashes: int, restarts: int, breaks: str
) -> None:
    def instance(kind: type[Member]) -> Model:
        return small(kind, n, noticing=frozenset(noticing), crashes=crashes, restarts=restarts)

    assert check(instance(Member)).verdict is Verdict.HOLDS
    violation = check(instance(kind)).violation
    assert violation is not None
    assert violation.kind == breaks
