"""The bully algorithm: what the slides say it costs, every run of a few processes, and what each rule is for."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.mutants.elections import NeverSaysOk, OnlySaysOk, ReturnsInSilence, TellsTheNearest
from trinco.check.elections import election_model
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.event import Kind
from trinco.lab.exhibits.elections import HastyReturn, Impatient, OneTimeout
from trinco.protocols.election.bully import CLAIMS, MESSAGES, Bully, BullyElection
from trinco.sim.faults import Crash, Fault, Restart
from trinco.sim.laws import Constant, Law, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, run
from trinco.sim.workload import Elections

SIZES = [4, 8, 16, 32, 64]


def election(
    n: int, *noticing: int, faults: tuple[Fault, ...] = (), delay: Law = Constant(1.0), at: float = 5.0
) -> Result:
    """The highest process has crashed, and some notice it at the same time."""
    return run(
        Scenario(
            protocol="bully",
            build=BullyElection(),
            claims=CLAIMS,
            n=n,
            workload=Elections(tuple((node, at) for node in noticing)),
            links=Links(delay, ordered=False),
            faults=(Crash(n - 1, 0.0), *faults),
        )
    )


def counts(result: Result) -> tuple[int, int, int]:
    """ELECTION, OK, COORDINATOR."""
    assert result.violation is None
    kinds = result.metrics.messages_by_kind
    return kinds.get("election", 0), kinds.get("ok", 0), kinds.get("coordinator", 0)


def leaders(result: Result) -> dict[int, int | None]:
    """Whom each process took for the leader last, and when nobody disagrees."""
    assert result.violation is None
    assert result.recording is not None
    return {event.node: event.peer for event in result.recording.events() if event.kind is Kind.ELECTED}


def seen_by(result: Result, node: int) -> Counter[tuple[str, str, int | None]]:
    """What one process sent and received."""
    assert result.recording is not None
    events = [event for event in result.recording.events() if event.node == node]
    return Counter(
        (event.kind.value, event.message.__struct_config__.tag, event.peer)
        for event in events
        if event.kind in (Kind.SEND, Kind.RECEIVE)
    )


# What it costs


def test_the_slides_example_takes_6_elections_3_oks_and_6_coordinators() -> None:
    """ "4 deteta falha do 7": 4 asks 5, 6 and 7; 5 and 6 say OK; 5 asks 6 and 7, 6 asks 7; 6 leads."""
    result = election(8, 4)
    assert counts(result) == (6, 3, 6)
    assert leaders(result) == dict.fromkeys(range(7), 6)


def test_the_slides_exercise_in_the_view_of_each_process() -> None:
    """ "Um grupo estático com 4 processos (1, 2, 3 e 4) em que apenas o processo 2 detecta a falha do processo 4": here
    they are p0 to p3."""
    result = election(4, 1)
    assert counts(result) == (3, 1, 2)
    first, second, third, fourth = (seen_by(result, node) for node in range(4))
    assert first == {("receive", "coordinator", 2): 1}
    assert second == {
        ("send", "election", 2): 1,
        ("send", "election", 3): 1,
        ("receive", "ok", 2): 1,
        ("receive", "coordinator", 2): 1,
    }
    assert third == {
        ("receive", "election", 1): 1,
        ("send", "ok", 1): 1,
        ("send", "election", 3): 1,
        ("send", "coordinator", 0): 1,
        ("send", "coordinator", 1): 1,
    }
    assert not fourth


@pytest.mark.parametrize("delay", [Constant(1.0), Uniform(0.01, 1.0)], ids=["constant", "wide"])
@pytest.mark.parametrize(("n", "detectors"), [(4, range(3)), (8, range(7)), (16, range(15)), (64, (0, 31, 62))])
def test_an_election_takes_as_many_messages_as_the_rank_of_who_notices_says(
    n: int, detectors: range | tuple[int, ...], delay: Law
) -> None:
    for detector in detectors:
        d = detector + 1
        elections, oks, coordinators = counts(election(n, detector, delay=delay))
        assert elections == (n - d) * (n - d + 1) // 2
        assert oks == (n - d) * (n - d - 1) // 2
        assert coordinators == n - 2
        assert elections + oks + coordinators == MESSAGES.high(n=n, d=d)


@pytest.mark.parametrize(("n", "best", "worst"), [(4, 3, 11), (8, 7, 55), (16, 15, 239), (32, 31, 991), (64, 63, 4031)])
def test_the_best_and_the_worst_are_as_claimed_and_if_all_notice_it_is_the_worst(n: int, best: int, worst: int) -> None:
    assert sum(counts(election(n, n - 2))) == best == CLAIMS.messages_per_entry.low(n=n)
    assert sum(counts(election(n, 0))) == worst == CLAIMS.messages_per_entry.high(n=n)
    assert sum(counts(election(n, *range(n - 1)))) == worst


@pytest.mark.parametrize("n", SIZES)
def test_everybody_knows_the_leader_after_the_claimed_delay(n: int) -> None:
    """The timeout and one message if the next in rank notices, and one message more if somebody below does."""
    for detector, delay in ((n - 2, CLAIMS.delay.low()), (0, CLAIMS.delay.high())):
        result = election(n, detector)
        assert result.recording is not None
        told = [event.at for event in result.recording.events() if event.kind is Kind.ELECTED]
        assert max(told) - 5.0 == delay


# What may go wrong meanwhile


def test_who_comes_back_holds_an_election_and_if_it_is_the_highest_bullies_the_leader_away() -> None:
    """ "Quando um processo que estava parado entra em funcionamento, executa o algoritmo. Se tiver o número mais alto,
    passa a ser coordenador." """
    result = election(4, 1, faults=(Restart(3, 50.0),))
    assert leaders(result) == dict.fromkeys(range(4), 3)


def test_who_comes_back_and_is_not_the_highest_follows() -> None:
    result = election(4, 1, faults=(Crash(0, 50.0), Restart(0, 60.0)))
    assert leaders(result) == dict.fromkeys(range(3), 2)


def test_who_comes_back_says_ok_while_it_keeps_still() -> None:
    """p3 is back when p1 asks, and has not led yet: p1 must not lead, nor p2."""
    result = election(4, 1, faults=(Restart(3, 4.0),))
    assert leaders(result) == dict.fromkeys(range(4), 3)
    assert ("send", "ok", 1) in seen_by(result, 3)


def test_if_the_one_that_said_ok_crashes_the_one_that_stood_back_asks_again() -> None:
    """p0 asks at 5, p1 says OK at 6 and asks p2, which has crashed; at 7 it crashes too."""
    result = election(3, 0, faults=(Crash(1, 7.0),))
    assert leaders(result) == {0: 0}
    assert seen_by(result, 0)["send", "election", 1] == 2


def test_if_the_leader_crashes_while_it_tells_everybody_those_who_were_not_told_elect_another() -> None:
    """p2 leads at 9 and has told p0 only. p1 stood back and waits for it; p0 must forget p2 again."""
    result = election(4, 1, faults=(Crash(2, 8.5, after_sends=1),))
    assert result.recording is not None
    told = [(event.node, event.peer) for event in result.recording.events() if event.kind is Kind.ELECTED]
    assert told == [(2, 2), (0, 2), (1, 1), (0, 1)]


def test_two_that_lead_at_the_same_moment_are_told_apart() -> None:
    """p3 comes back at 7.5, between p2's asking it in vain and p2's leading at 9."""
    result = election(4, 1, faults=(Restart(3, 7.5),))
    assert leaders(result) == dict.fromkeys(range(4), 3)


def test_where_messages_take_longer_than_was_assumed_there_are_two_leaders_sooner_or_later() -> None:
    slow = Uniform(0.01, 6.0)
    results = [
        run(
            Scenario(
                protocol="bully",
                build=BullyElection(),
                claims=CLAIMS,
                n=5,
                seed=seed,
                workload=Elections(((1, 5.0), (2, 6.0))),
                links=Links(slow, ordered=False),
                faults=(Crash(4, 0.0),),
                trace=False,
            )
        )
        for seed in range(200)
    ]
    violations = [result.violation for result in results if result.violation]
    assert len(violations) > 5
    assert {violation.property for violation in violations} == {"OneLeader"}
    assert any("2 leaders" in violation.text for violation in violations)


# Every run of a few processes: a third of a tick for a message, so that timeouts are 1, 2 and 4 ticks


def small(kind: type[Bully], n: int, **options: object) -> Model:
    return election_model([kind(me, n, 1 / 3) for me in range(n)], reductions=False, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n", "noticing", "notices", "restarts", "states"),
    [
        (2, {0, 1}, 2, 1, 2_259),
        (3, {0, 1}, 1, 1, 36_340),
        (3, {1}, 2, 1, 3_878),
        (3, {0}, 2, 0, 7_538),
        (4, {1, 2}, 1, 0, 8_442),
    ],
)
def test_with_a_crash_all_agree_when_quiet_and_the_election_ends_in_exactly_so_many_states(
    n: int, noticing: set[int], notices: int, restarts: int, states: int
) -> None:
    result = check(small(Bully, n, noticing=frozenset(noticing), notices=notices, crashes=1, restarts=restarts))
    assert (result.verdict, result.violation) == (Verdict.HOLDS, None)
    assert result.progress.states == states


def test_four_processes_with_a_crash_and_a_recovery_agree_when_quiet_in_exactly_so_many_states() -> None:
    """That the election always ends takes three times as long to see as this; it is seen with three processes."""
    model = small(Bully, 4, noticing=frozenset({2}), crashes=1, restarts=1)
    result = check(replace(model, reachable={}))
    assert (result.verdict, result.violation) == (Verdict.HOLDS, None)
    assert result.progress.states == 355_451


# Without its rules


@pytest.mark.parametrize(
    ("kind", "n", "noticing", "crashes", "restarts", "breaks"),
    [
        (OnlySaysOk, 2, {0, 1}, 0, 0, "unreachable"),
        (NeverSaysOk, 4, {1}, 1, 0, "never"),
        (TellsTheNearest, 3, {2}, 0, 0, "never"),
        (ReturnsInSilence, 2, {0}, 1, 1, "never"),
        (OneTimeout, 3, {0}, 1, 0, "unreachable"),
        (Impatient, 3, {0}, 0, 0, "never"),
        (HastyReturn, 3, {1}, 1, 1, "never"),
    ],
)
def test_without_one_of_its_rules_it_is_caught(
    kind: type[Bully], n: int, noticing: set[int], crashes: int, restarts: int, breaks: str
) -> None:
    def instance(kind: type[Bully]) -> Model:
        return small(kind, n, noticing=frozenset(noticing), crashes=crashes, restarts=restarts)

    assert check(instance(Bully)).verdict is Verdict.HOLDS
    violation = check(instance(kind)).violation
    assert violation is not None
    assert violation.kind == breaks
