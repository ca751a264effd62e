"""Elections in the simulator: who notices, what the monitors say in the end, and many random schedules of both."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from tests.check.examples.electing import Believer, Doubter, Usurper
from tests.mutants.elections import HastyMember
from trinco.core.claims import Claims, Fairness, Network
from trinco.core.errors import UsageError
from trinco.core.event import Event, Kind
from trinco.core.formula import Formula
from trinco.core.monitor import ElectionsEnd, OneLeader, claimed
from trinco.core.node import Elector, Node
from trinco.core.verify import verify
from trinco.lab.exhibits.elections import HastyReturn, OneTimeout, OnlyTheSenderRemoves
from trinco.protocols import coordinator
from trinco.protocols.election import bully, ring
from trinco.sim.faults import Crash, Fault, Pause, Restart
from trinco.sim.laws import Law, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, Simulation, run
from trinco.sim.workload import Elections

CLAIMS = Claims(
    paper="none",
    network=Network.UNORDERED,
    messages_per_entry=Formula("0..inf"),
    delay=Formula("0..inf"),
    fairness=Fairness.NONE,
    crashes=Formula("n"),
    elects=True,
)


def usurpers(n: int) -> Sequence[Elector]:
    return [Usurper(n) for _ in range(n)]


def believers(n: int) -> Sequence[Elector]:
    return [Believer((me + 1) % n, 1.0) for me in range(n)]


def doubters(n: int) -> Sequence[Elector]:
    return [Doubter((me + 1) % n, 3.0) for me in range(n)]


def elect(
    build: Callable[[int], Sequence[Node]], n: int, *notices: tuple[int, float], faults: tuple[Fault, ...] = ()
) -> Result:
    return run(Scenario(protocol="toy", build=build, claims=CLAIMS, n=n, workload=Elections(notices), faults=faults))


def happened(result: Result, kind: Kind) -> list[tuple[int, float]]:
    assert result.recording is not None
    return [(event.node, event.at) for event in result.recording.events() if event.kind is kind]


# Who notices


def test_nodes_notice_when_they_are_told_to() -> None:
    result = elect(usurpers, 3, (2, 1.5), (0, 7.0))
    assert happened(result, Kind.INPUT) == [(2, 1.5), (0, 7.0)]
    assert happened(result, Kind.ELECTED)[0] == (2, 1.5)


def test_a_node_that_has_crashed_notices_nothing() -> None:
    result = elect(usurpers, 3, (2, 1.5), (0, 7.0), faults=(Crash(2, 1.0),))
    assert happened(result, Kind.INPUT) == [(0, 7.0)]


def test_a_node_that_is_paused_notices_when_it_resumes() -> None:
    assert happened(elect(usurpers, 2, (0, 1.5), faults=(Pause(0, 1.0, 3.0),)), Kind.INPUT) == [(0, 4.0)]


def test_the_run_ends_when_nothing_is_under_way_any_more() -> None:
    result = elect(doubters, 2, (0, 1.0), faults=(Crash(1, 0.0),))
    assert result.finished
    assert result.metrics.duration == 4.0


@pytest.mark.parametrize(
    ("build", "notice", "words"),
    [
        (coordinator.system, (1, 1.0), "node 1 takes part in no election"),
        (usurpers, (3, 1.0), "node 3 takes part in no election"),
        (usurpers, (-1, 1.0), "node -1 takes part in no election"),
        (usurpers, (1, -1.0), "before the run starts"),
    ],
)
def test_a_notice_that_makes_no_sense_is_refused(
    build: Callable[[int], Sequence[Node]], notice: tuple[int, float], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        elect(build, 3, notice)


def test_the_same_seed_gives_the_same_election() -> None:
    scenarios = [random_scenario(BULLY, seed, trace=True) for seed in (7, 7, 8)]
    hashes = [run(scenario).trace_hash for scenario in scenarios]
    assert hashes[0] == hashes[1] != hashes[2]


# What the monitors say


def complaint(monitor: OneLeader | ElectionsEnd, *story: tuple[Kind, int, int | None]) -> str | None:
    for kind, node, peer in story:
        assert monitor.observe(Event(0.0, node, kind, peer)) is None
    return monitor.finish()


ELECTED, CRASH, RESTART, INPUT = Kind.ELECTED, Kind.CRASH, Kind.RESTART, Kind.INPUT


@pytest.mark.parametrize(
    ("story", "words"),
    [
        ([], None),
        ([(ELECTED, 0, 1), (ELECTED, 1, 1)], None),
        ([(ELECTED, 0, 0), (ELECTED, 1, 1), (ELECTED, 0, 1)], None),
        ([(ELECTED, 0, 0), (ELECTED, 1, 1)], "2 leaders: p0 by p0 and p1 by p1"),
        ([(ELECTED, 0, 0), (ELECTED, 1, 1), (CRASH, 1, None)], None),
        ([(ELECTED, 0, 1), (ELECTED, 1, 1), (CRASH, 1, None)], "p1 is taken for the leader, and has crashed"),
        ([(ELECTED, 0, 1)], "a leader was elected, and not known to p1"),
        ([(ELECTED, 0, 0), (CRASH, 1, None)], None),
        ([(ELECTED, 0, 0), (CRASH, 1, None), (RESTART, 1, None)], "a leader was elected, and not known to p1"),
        ([(ELECTED, 0, 0), (CRASH, 1, None), (RESTART, 1, None), (ELECTED, 1, 0)], None),
    ],
)
def test_when_all_is_quiet_everybody_who_runs_knows_the_same_leader_and_it_runs(
    story: list[tuple[Kind, int, int | None]], words: str | None
) -> None:
    assert complaint(OneLeader(n=2), *story) == words


@pytest.mark.parametrize(
    ("story", "words"),
    [
        ([(INPUT, 0, None), (ELECTED, 0, 1)], None),
        ([(INPUT, 0, None), (ELECTED, 1, 1)], "an election never ended for p0"),
        ([(INPUT, 0, None), (INPUT, 1, None)], "an election never ended for p0, p1"),
        ([(INPUT, 0, None), (CRASH, 0, None)], None),
        ([(ELECTED, 0, 1), (INPUT, 0, None)], "an election never ended for p0"),
    ],
)
def test_whoever_notices_learns_who_leads_unless_it_crashes(
    story: list[tuple[Kind, int, int | None]], words: str | None
) -> None:
    assert complaint(ElectionsEnd(), *story) == words


def test_both_watch_over_what_elects() -> None:
    assert claimed(CLAIMS, n=3) == [OneLeader(3), ElectionsEnd()]


def test_two_that_tell_each_other_that_they_lead_are_caught() -> None:
    violation = elect(usurpers, 2, (0, 1.0), (1, 1.5)).violation
    assert violation is not None
    assert (violation.property, violation.text) == ("OneLeader", "2 leaders: p0 by p1 and p1 by p0")
    assert elect(usurpers, 2, (0, 1.0), (1, 2.5)).violation is None


def test_an_election_that_waits_for_the_dead_is_caught() -> None:
    violation = elect(believers, 2, (0, 1.0), faults=(Crash(1, 0.0),)).violation
    assert violation is not None
    assert violation.property == "ElectionsEnd"
    assert elect(doubters, 2, (0, 1.0), faults=(Crash(1, 0.0),)).violation is not None


def test_a_recorded_election_is_judged_as_the_run_was() -> None:
    for faults in ((Crash(3, 0.0),), (Crash(3, 9.0),)):
        scenario = Scenario(
            protocol="bully",
            build=bully.BullyElection(),
            claims=bully.CLAIMS,
            n=4,
            workload=Elections(((1, 5.0),)),
            faults=faults,
        )
        result = run(scenario)
        assert result.recording is not None
        found = verify(result.recording.header, list(result.recording.events()), bully.CLAIMS)
        assert found.violation == (result.violation.text if result.violation else None)
        assert found.monitors == ("OneLeader", "ElectionsEnd")


# Many random schedules


@dataclass(frozen=True)
class Built:
    """Nodes of one class, whichever it is."""

    kind: type[bully.Bully] | type[ring.Member]

    def __call__(self, n: int) -> Sequence[Elector]:
        return [self.kind(me, n, 1.0) for me in range(n)]


class Candidate(NamedTuple):
    name: str
    claims: Claims
    build: Callable[[int], Sequence[Elector]]


BULLY = Candidate("bully", bully.CLAIMS, bully.BullyElection())
RING = Candidate("ring-election", ring.CLAIMS, ring.RingElection())
SPAN = 15.0


def random_faults(rng: random.Random, n: int) -> list[Crash | Restart]:
    """Some crash, some of those come back, some crash again."""
    faults: list[Crash | Restart] = []
    for node in rng.sample(range(n), rng.randrange(n)):
        at = SPAN * rng.random()
        faults.append(Crash(node, at))
        for kind in (Restart, Crash)[: rng.choice((0, 0, 1, 1, 2))]:
            at += 0.1 + 8 * rng.random()
            faults.append(kind(node, at))
    return sorted(faults, key=lambda fault: fault.at)


def running_after(faults: Sequence[Crash | Restart], n: int) -> list[int]:
    last = {fault.node: isinstance(fault, Restart) for fault in faults}
    return [node for node in range(n) if last.get(node, True)]


def random_scenario(candidate: Candidate, seed: int, law: Law = Uniform(0.01, 1.0), trace: bool = False) -> Scenario:
    """Anybody may notice anything at any time. If the last that happens is a crash, somebody who runs notices, after
    the time that it takes to see that an answer is missing; who comes back holds an election by itself."""
    rng = random.Random(f"schedule/{seed}")
    n = rng.randrange(2, 8)
    faults = random_faults(rng, n)
    notices = [(rng.randrange(n), SPAN * rng.random()) for _ in range(rng.randrange(n))]
    if not faults or isinstance(faults[-1], Crash):
        end = faults[-1].at if faults else 0.0
        notices.append((rng.choice(running_after(faults, n)), end + 2 + 8 * rng.random()))
    return Scenario(
        protocol=candidate.name,
        build=candidate.build,
        claims=candidate.claims,
        n=n,
        seed=seed,
        workload=Elections(tuple(notices)),
        links=Links(law, ordered=candidate.claims.network is Network.FIFO),
        faults=tuple(faults),
        trace=trace,
        max_events=10_000,
        beyond_claims=True,
    )


@pytest.mark.parametrize("candidate", [BULLY, RING], ids=lambda candidate: candidate.name)
def test_in_1500_random_schedules_the_highest_that_runs_is_known_to_all_in_the_end(candidate: Candidate) -> None:
    crashes = restarts = 0
    for seed in range(1500):
        simulation = Simulation(random_scenario(candidate, seed))
        simulation.run()
        assert (seed, simulation.violation, simulation.kernel.out_of_bounds) == (seed, None, False)
        running = [host for host in simulation.hosts if host.alive]
        assert {host.node.leader for host in running} == {max(host.me for host in running)}, seed  # type: ignore[attr-defined]
        crashes += sum(isinstance(fault, Crash) for fault in simulation.faults)
        restarts += sum(isinstance(fault, Restart) for fault in simulation.faults)
    assert crashes > 1500
    assert restarts > 1000


def cut_short(candidate: Candidate, seed: int) -> Scenario:
    """Two of five die in the middle of whatever sends too much from some time on. That may be the last election."""
    rng = random.Random(f"cut short/{seed}")
    faults = tuple(
        Crash(node, SPAN * rng.random(), after_sends=rng.randrange(1, 4)) for node in rng.sample(range(5), 2)
    )
    notices = [(rng.randrange(5), SPAN * rng.random()) for _ in range(4)]
    notices += [(node, at) for at in (100.0, 300.0, 500.0) for node in range(5)]
    scenario = random_scenario(candidate, seed)
    return scenario.with_changes(n=5, faults=faults, workload=Elections(tuple(notices)))


@pytest.mark.parametrize("candidate", [BULLY, RING], ids=lambda candidate: candidate.name)
def test_crashes_in_the_middle_of_a_multi_send_leave_one_leader_in_the_end(candidate: Candidate) -> None:
    results = [run(cut_short(candidate, seed)) for seed in range(200)]
    assert [result.violation for result in results if result.violation or not result.finished] == []


def violations(candidate: Candidate, seeds: range, law: Law = Uniform(0.01, 1.0)) -> list[str]:
    """What goes wrong, by property; a run that a bound cuts off does not end."""
    results = [run(random_scenario(candidate, seed, law)) for seed in seeds]
    endless = ["endless" for result in results if not result.finished]
    return endless + [result.violation.property for result in results if result.violation]


@pytest.mark.parametrize("build", [bully.BullyElection, ring.RingElection])
def test_a_message_takes_some_time(build: type[bully.BullyElection] | type[ring.RingElection]) -> None:
    with pytest.raises(UsageError, match="above 0"):
        build(delta=0.0)


def test_with_longer_delays_that_were_assumed_nothing_goes_wrong() -> None:
    for candidate, build in ((BULLY, bully.BullyElection(4.0)), (RING, ring.RingElection(4.0))):
        scenarios = [random_scenario(candidate._replace(build=build), seed, Uniform(0.01, 4.0)) for seed in range(60)]
        noticed_late = [(0, 500.0), (1, 1000.0)]
        results = [
            run(scenario.with_changes(faults=(Crash(scenario.n - 1, 450.0),), workload=Elections(tuple(noticed_late))))
            for scenario in scenarios
            if scenario.n > 2
        ]
        assert [result.violation for result in results if result.violation] == []


def test_with_longer_delays_than_were_assumed_the_bully_has_two_leaders() -> None:
    assert violations(BULLY, range(300), Uniform(0.01, 4.0)).count("OneLeader") > 10


def test_with_longer_delays_than_were_assumed_the_ring_passes_the_living_over_and_never_comes_to_rest() -> None:
    assert "endless" in violations(RING, range(6), Uniform(0.01, 4.0))


@pytest.mark.parametrize(
    ("kind", "seeds", "breaks"),
    [
        (OneTimeout, range(30, 40), "OneLeader"),
        (HastyReturn, range(170, 175), "OneLeader"),
        (OnlyTheSenderRemoves, range(40), "endless"),
        (HastyMember, range(10, 15), "OneLeader"),
    ],
)
def test_random_schedules_catch_what_the_checker_catches(
    kind: type[bully.Bully] | type[ring.Member], seeds: range, breaks: str
) -> None:
    candidate = RING if issubclass(kind, ring.Member) else BULLY
    assert breaks in violations(candidate._replace(build=Built(kind)), seeds)
