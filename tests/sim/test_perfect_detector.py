"""The oracle that tells of crashes, as the simulator plays it."""

from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from tests.sim.toys import ANYTHING_GOES, Numbered, events_of, heard, times_of, toy
from trinco.core.event import Kind
from trinco.core.ids import bit, members
from trinco.core.node import Process
from trinco.core.trace import read
from trinco.core.verify import verify
from trinco.protocols.detection.perfect import CRASHED, PerfectDetector
from trinco.sim.faults import Crash, Partition, Pause, Slow
from trinco.sim.laws import Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.simulation import Simulation, run
from trinco.sim.workload import Scripted


@dataclass(slots=True)
class Witness(Process):
    """Counts what its detector tells it; says a number to all others every second, as often as it is to."""

    n: int
    sayings: int = 0
    notices: int = 0
    detector: PerfectDetector = field(default_factory=PerfectDetector)

    def on_start(self, ctx):
        if self.sayings:
            ctx.set_timer("say", 1.0)

    def on_timer(self, ctx, name):
        self.sayings -= 1
        ctx.broadcast(Numbered(self.sayings), to=range(self.n))
        self.on_start(ctx)

    def on_message(self, ctx, source, message):
        self.notices += len(self.detector.on_message(ctx, source, message))

    def acquire(self, ctx):
        ctx.grant()

    def release(self, ctx):
        pass


@dataclass(slots=True)
class Deaf(Process):
    """Has no detector, and writes down what it hears."""

    messages: int = 0

    def on_message(self, ctx, source, message):
        self.messages += 1

    def acquire(self, ctx):
        ctx.grant()

    def release(self, ctx):
        pass


def witnesses(n, sayings=0):
    return [Witness(n, sayings) for _ in range(n)]


def with_a_deaf_one(n):
    return [*witnesses(n - 1), Deaf()]


def watching(*faults, n=4, build=witnesses, **rest):
    """Node 0 holds for so long that everything can happen meanwhile."""
    return toy(build, n, workload=Scripted(((0, 0.0, 1000.0),)), faults=faults, **rest)


def nodes_after(scenario):
    simulation = Simulation(scenario)
    simulation.run()
    return [host.node for host in simulation.hosts if host.alive]


def told(result):
    """(who, of whose crash), in the order in which they were told."""
    return [(each.node, each.peer) for each in events_of(result, Kind.RECEIVE) if each.message == CRASHED]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_everybody_alive_is_told_of_every_crash_exactly_once(ordered, seed):
    scenario = watching(Crash(1, 5.0), Crash(3, 7.0), links=Links(Uniform(0.1, 9.0), ordered), seed=seed)
    assert sorted(each for each in told(run(scenario)) if each[0] in (0, 2)) == [(0, 1), (0, 3), (2, 1), (2, 3)]
    assert [(node.notices, list(members(node.detector.suspects))) for node in nodes_after(scenario)] == [
        (2, [1, 3])
    ] * 2


def test_nobody_is_told_of_a_crash_that_did_not_happen():
    faults = (Pause(1, 5.0, 50.0), Slow(2, 5.0, 50.0, 10.0), Partition(((0,), (1, 2, 3)), 5.0, 50.0))
    scenario = watching(*faults, build=partial(witnesses, sayings=20))
    assert told(run(scenario)) == []
    assert [node.detector.suspects for node in nodes_after(scenario)] == [0] * 4


def test_a_crash_in_the_middle_of_a_multi_send_is_told_to_all_whether_the_message_got_out_to_them_or_not():
    result = run(watching(Crash(1, 0.5, after_sends=1), build=partial(witnesses, sayings=1)))
    sent_by_1 = events_of(result, Kind.SEND, 1)
    assert [event.peer for event in sent_by_1] == [0]
    assert sorted(told(result)) == [(0, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize("seed", range(20))
def test_on_fifo_channels_the_news_comes_after_all_that_the_dead_one_said(seed):
    result = run(
        watching(Crash(1, 5.5), build=partial(witnesses, sayings=20), links=Links(Exponential(5.0)), seed=seed)
    )
    for node in (0, 2, 3):
        of_the_dead = [each.message for each in events_of(result, Kind.RECEIVE, node) if each.peer == 1]
        assert of_the_dead == [*map(Numbered, (19, 18, 17, 16, 15)), CRASHED]


def test_on_channels_that_reorder_it_may_come_before():
    links = Links(Exponential(5.0), ordered=False)
    result = run(watching(Crash(1, 5.5), build=partial(witnesses, sayings=20), links=links))
    last = [
        [each.message for each in events_of(result, Kind.RECEIVE, node) if each.peer == 1][-1] for node in (0, 2, 3)
    ]
    assert any(message != CRASHED for message in last)


def test_the_news_takes_as_long_as_a_message_and_waits_at_a_partition():
    assert times_of(run(watching(Crash(1, 5.0))), Kind.RECEIVE) == [6.0, 6.0, 6.0]
    parted = run(watching(Crash(1, 5.0), Partition(((0, 1), (2, 3)), 4.0, 10.0)))
    assert [(event.node, event.at) for event in events_of(parted, Kind.RECEIVE)] == [(0, 6.0), (2, 15.0), (3, 15.0)]


def test_a_network_that_loses_and_duplicates_does_neither_to_the_news():
    links = Links(Exponential(1.0), ordered=False, loss=0.9, duplication=0.9)
    assert sorted(told(run(watching(Crash(1, 5.0), links=links)))) == [(0, 1), (2, 1), (3, 1)]


def test_the_news_counts_as_no_message_and_is_caused_by_the_crash():
    result = run(watching(Crash(1, 5.0)))
    assert result.metrics.messages == 0
    assert events_of(result, Kind.SEND) == []
    (crash,) = events_of(result, Kind.CRASH)
    causes = {event.cause for event in events_of(result, Kind.RECEIVE)}
    assert causes == {(crash.node, crash.clock[crash.node])}


def test_only_those_with_a_detector_are_told():
    result = run(watching(Crash(1, 5.0), build=with_a_deaf_one))
    assert sorted(told(result)) == [(0, 1), (2, 1)]
    assert heard(result, 3) == []


def test_the_dead_are_told_nothing():
    result = run(watching(Crash(1, 5.0), Crash(2, 5.5)))
    assert sorted(told(result)) == [(0, 1), (0, 2), (3, 1), (3, 2)]
    assert {(event.node, event.peer) for event in events_of(result, Kind.DROP)} == {(1, 2), (2, 1)}


def test_who_is_suspected_already_is_not_news():
    detector = PerfectDetector()
    assert detector.on_message(None, 2, CRASHED) == (2,)
    assert detector.on_message(None, 2, CRASHED) == ()
    assert detector.on_message(None, 1, Numbered(0)) == ()
    assert detector.suspects == bit(2)


def test_the_trace_can_be_written_read_and_verified_and_is_the_same_for_the_same_seed(tmp_path):
    scenario = watching(Crash(1, 5.0), Crash(3, 7.0), links=Links(Exponential(3.0), ordered=False), seed=7)
    result = run(scenario)
    result.recording.write(tmp_path / "trace.ndjson")
    header, events = read(tmp_path / "trace.ndjson")
    assert [(event.node, event.peer) for event in events if event.kind is Kind.RECEIVE] == told(result)
    assert verify(header, events, replace(ANYTHING_GOES, deadlock_free=True)).violation is None
    assert run(scenario).trace_hash == result.trace_hash
