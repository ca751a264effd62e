from dataclasses import dataclass, field

import pytest

from tests.mutants.ricart_agrawala import never_defers
from tests.sim.toys import ONE_INSIDE, Numbered, alone, events_of, known, times_of, toy
from trinco.core import trace
from trinco.core.event import Kind
from trinco.core.node import Process
from trinco.core.verify import verify
from trinco.protocols.catalogue import ENTRIES
from trinco.protocols.permission.ricart_agrawala import CLAIMS
from trinco.sim.laws import Exponential
from trinco.sim.links import Links
from trinco.sim.simulation import run
from trinco.sim.workload import Closed, Scripted, saturated

NAMES = [entry.name for entry in ENTRIES if not entry.claims.elects]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workload", [Closed(40), saturated(40)], ids=["closed", "saturated"])
def test_every_protocol_of_the_catalogue_keeps_its_claims(name, workload):
    for seed in range(5):
        result = run(known(name, 4, seed=seed, workload=workload, links=Links(Exponential(1.0))))
        assert result.violation is None
        assert result.finished
        assert result.metrics.entries == 40


@pytest.mark.parametrize("name", NAMES)
def test_the_monitors_find_in_the_trace_what_they_found_in_the_run(name, tmp_path):
    scenario = known(name, 3, workload=Closed(20))
    result = run(scenario)
    path = tmp_path / "trace.ndjson"
    result.recording.write(path)
    found = verify(*trace.read(path), scenario.claims)
    assert (found.violation, found.entries) == (None, 20)


@pytest.mark.parametrize("bound", [{"until": 10.0}, {"max_events": 20}], ids=repr)
def test_a_run_that_a_bound_cut_off_is_not_finished_and_proves_nothing(bound):
    result = run(known("coordinator", 3, workload=saturated(100), **bound))
    assert not result.finished
    assert result.violation is None


def test_no_event_happens_after_the_bound():
    result = run(known("coordinator", 3, workload=saturated(100), until=10.0))
    assert max(event.at for event in result.recording.events()) <= 10.0


class Endless(Exception):
    """The run went on far beyond its bound."""


@dataclass(slots=True)
class Echo(Process):
    """Talks to itself, which takes no time, without ever coming to an end."""

    said: int = 0

    def acquire(self, ctx):
        ctx.send(ctx.me, Numbered(0))

    def on_message(self, ctx, source, message):
        self.said += 1
        if self.said > 10_000:
            raise Endless
        ctx.send(ctx.me, message)

    def release(self, ctx):
        pass


def echo(n):
    return [Echo()]


def test_the_bound_on_events_ends_a_run_in_which_time_stands_still():
    assert not run(toy(echo, 1, workload=saturated(1), max_events=100)).finished


def test_the_trace_of_a_run_that_was_cut_off_says_so():
    scenario = known("coordinator", 3, workload=saturated(100), until=10.0)
    recording = run(scenario).recording
    assert not recording.header.finished
    assert verify(recording.header, list(recording.events()), scenario.claims).violation is None


def test_a_run_ends_at_its_first_violation():
    result = run(toy(alone, 2, ONE_INSIDE, workload=Scripted(((0, 0.0, 5.0), (1, 1.0, 7.5)))))
    assert result.violation.at == 1.0
    assert result.metrics.duration == 1.0
    assert max(event.at for event in result.recording.events()) == 1.0


def test_a_violation_says_what_was_broken_and_when():
    violation = run(toy(alone, 2, ONE_INSIDE, workload=Scripted(((0, 0.0, 5.0), (1, 1.0, 7.5))))).violation
    assert violation.property == "AtMostInside"
    assert violation.text == "p0 and p1 are inside together, at most 1 may be"


def test_the_trace_of_a_violating_run_shows_the_violation():
    result = run(known("ricart-agrawala", 3, build=never_defers, workload=saturated(30)))
    recording = result.recording
    found = verify(recording.header, list(recording.events()), CLAIMS)
    assert (found.violation, found.at) == (result.violation.text, result.violation.at)


def test_a_step_stands_in_the_trace_before_its_effects():
    events = list(run(known("ricart-agrawala", 3, workload=saturated(10))).recording.events())
    places = {(event.node, event.clock[event.node]): place for place, event in enumerate(events)}
    caused = [(place, places[event.cause]) for place, event in enumerate(events) if event.cause]
    assert caused
    assert all(cause < place for place, cause in caused)


def test_the_header_tells_the_protocol_the_nodes_and_the_seed():
    header = run(known("coordinator", 3, seed=7)).recording.header
    assert (header.protocol, header.n, header.k, header.seed) == ("coordinator", 3, 1, 7)
    assert header.roles == ("Coordinator", "Client", "Client")


@dataclass(slots=True)
class Tenant(Process):
    """Takes a lease that runs out by itself after ``ttl``."""

    ttl: float

    def acquire(self, ctx):
        ctx.grant(until=ctx.now() + self.ttl)

    def release(self, ctx):
        pass


def tenants(n):
    return [Tenant(4.0) for _ in range(n)]


def late_tenants(n):
    return [Tenant(-4.0) for _ in range(n)]


def test_a_lease_that_runs_out_makes_room_for_the_next():
    result = run(toy(tenants, 2, ONE_INSIDE, workload=Scripted(((0, 0.0, 10.0), (1, 6.0, 1.0)))))
    assert times_of(result, Kind.EXPIRE) == [4.0]
    assert result.violation is None


def test_before_a_lease_has_run_out_there_is_no_room():
    result = run(toy(tenants, 2, ONE_INSIDE, workload=Scripted(((0, 0.0, 10.0), (1, 3.0, 1.0)))))
    assert result.violation.property == "AtMostInside"


def test_a_lease_that_was_given_back_does_not_run_out():
    result = run(toy(tenants, 1, ONE_INSIDE, workload=Scripted(((0, 0.0, 1.0), (0, 2.0, 3.0)))))
    assert times_of(result, Kind.EXPIRE) == []


def test_a_lease_that_was_over_before_it_was_granted_does_not_turn_time_back():
    result = run(toy(late_tenants, 1, workload=Scripted(((0, 10.0, 1.0), (0, 20.0, 1.0)))))
    times = [event.at for event in result.recording.events()]
    assert times == sorted(times)


@dataclass(slots=True)
class Alarmed(Process):
    """Arms one timer several times over and notes when it rings."""

    delays: tuple[float, ...]
    cancels: bool = False

    def acquire(self, ctx):
        ctx.grant()
        for delay in self.delays:
            ctx.set_timer("ring", delay)
        if self.cancels:
            ctx.cancel_timer("ring")

    def release(self, ctx):
        ctx.cancel_timer("never armed")


def armed_twice(n):
    return [Alarmed((3.0, 5.0))]


def armed_in_the_past(n):
    return [Alarmed((-5.0,))]


def cancelled(n):
    return [Alarmed((3.0,), cancels=True)]


def rings(build):
    return run(toy(build, 1, workload=Scripted(((0, 10.0, 20.0),)))).recording.events()


def test_arming_a_timer_again_replaces_it():
    assert [(event.at, event.note) for event in rings(armed_twice) if event.kind is Kind.TIMER] == [(15.0, "ring")]


def test_a_timer_that_was_cancelled_does_not_ring():
    assert [event for event in rings(cancelled) if event.kind is Kind.TIMER] == []


def test_a_timer_set_for_the_past_does_not_turn_time_back():
    times = [event.at for event in rings(armed_in_the_past)]
    assert times == sorted(times)


@dataclass(slots=True)
class Tally:
    """A part: counts, and returns what it has come to."""

    count: int = 0

    def add(self):
        self.count += 1
        return self.count


@dataclass(slots=True)
class Layered(Process):
    tally: Tally = field(default_factory=Tally)

    def acquire(self, ctx):
        if self.tally.add() > 0:
            ctx.grant()

    def release(self, ctx):
        ctx.elected(0)


def layered(n):
    return [Layered() for _ in range(n)]


def test_the_trace_follows_the_changes_of_a_part_step_by_step():
    result = run(toy(layered, 1, workload=saturated(3)))
    assert [event.state["tally"] for event in result.recording.events() if "tally" in event.state] == [
        (Tally, 0),
        (Tally, 1),
        (Tally, 2),
        (Tally, 3),
    ]


def test_the_trace_of_a_node_with_parts_can_be_written_and_read(tmp_path):
    result = run(toy(layered, 2, workload=saturated(6)))
    path = tmp_path / "parts.ndjson"
    result.recording.write(path)
    assert len(trace.read(path)[1]) == len(result.recording.records)


def test_an_election_is_in_the_trace_with_its_leader():
    result = run(toy(layered, 2, workload=Scripted(((1, 0.0, 1.0),))))
    assert [(event.node, event.peer) for event in events_of(result, Kind.ELECTED)] == [(1, 0)]
