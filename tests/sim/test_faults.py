import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.toys import (
    ANYTHING_GOES,
    ONE_INSIDE,
    Numbered,
    alone,
    events_of,
    heard,
    known,
    readings,
    speech,
    times_of,
    toy,
    watchmen,
)
from trinco.core.context import INSIDE
from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.formula import Formula
from trinco.core.node import Process
from trinco.protocols.permission.ricart_agrawala import CLAIMS as RICART_AGRAWALA
from trinco.sim.faults import Chaos, Crash, Drift, Partition, Pause, Restart, Slow
from trinco.sim.simulation import run
from trinco.sim.workload import Scripted

CRASHES_WELCOME = replace(RICART_AGRAWALA, crashes=Formula("n"))


@dataclass(slots=True)
class Counter(Process):
    """Counts what it hears, stores every count, and after a restart goes on from what was stored."""

    counted: int = 0
    restarts: int = 0

    def acquire(self, ctx):
        ctx.grant()
        ctx.set_timer("say", 1.0)

    def on_timer(self, ctx, name):
        ctx.broadcast(Numbered(0), to=range(2))
        ctx.set_timer("say", 1.0)

    def on_message(self, ctx, source, message):
        self.counted += 1
        ctx.store(self.counted)

    def on_restart(self, ctx, stored):
        self.counted = -1 if stored is None else stored
        self.restarts = 1

    def release(self, ctx):
        pass


def counters(n):
    return [Counter() for _ in range(n)]


def counting(*faults):
    """Node 0 says something to node 1 every second for nearly twenty seconds."""
    return run(toy(counters, 2, workload=Scripted(((0, 0.0, 19.5),)), faults=faults))


def counts(result):
    return [event.state["counted"] for event in result.recording.events() if "counted" in event.state and event.node]


def test_a_crashed_node_handles_nothing_more_and_its_mail_is_told_as_lost():
    result = speech(faults=(Crash(1, 4.5),))
    assert [number for _, number in heard(result)] == [0, 1, 2, 3]
    assert [event.message.number for event in events_of(result, Kind.DROP, 1)] == [4, 5, 6, 7, 8, 9]
    assert times_of(result, Kind.CRASH, 1) == [4.5]


def test_a_crashed_node_says_nothing_more():
    result = speech(n=2, faults=(Crash(0, 4.5),))
    assert times_of(result, Kind.SEND)[-1] == 4.0


def test_what_was_on_the_way_from_a_node_that_crashed_still_arrives():
    result = speech(n=2, speakers=(0, 1), faults=(Crash(0, 4.5),))
    assert heard(result, 1)[-1] == (5.0, 4)


def test_a_process_that_crashed_inside_no_longer_counts_as_inside():
    claims = replace(ANYTHING_GOES, k=Formula("1"))
    script = Scripted(((0, 0.0, 10.0), (1, 5.0, 1.0)))
    assert run(toy(alone, 2, claims, workload=script, faults=(Crash(0, 3.0),))).violation is None
    assert run(toy(alone, 2, claims, workload=script)).violation.property == "AtMostInside"


def test_a_process_that_crashed_while_it_waited_is_not_missed():
    result = run(known("coordinator", 3, workload=Scripted(((1, 0.0, 5.0), (2, 1.0, 1.0))), claims=_crashing()))
    assert result.metrics.entries == 2
    crashed = known("coordinator", 3, workload=Scripted(((1, 0.0, 5.0), (2, 1.0, 1.0))), claims=_crashing())
    result = run(crashed.with_changes(faults=(Crash(2, 3.0),)))
    assert (result.violation, result.metrics.entries) == (None, 1)


def _crashing():
    return replace(known("coordinator", 2).claims, crashes=Formula("n"))


def multi_send(after_sends, at=0.5, asks=((0, 1.0, 1.0), (1, 100.0, 1.0))):
    """Node 0 asks four others for permission, and is to die on the way."""
    scenario = known("ricart-agrawala", 5, claims=CRASHES_WELCOME, workload=Scripted(asks))
    return run(scenario.with_changes(faults=(Crash(0, at, after_sends),)))


@pytest.mark.parametrize("after_sends", [0, 1, 2, 3])
def test_a_crash_in_a_multi_send_lets_exactly_so_many_messages_out(after_sends):
    result = multi_send(after_sends)
    assert [event.peer for event in events_of(result, Kind.SEND, 0)] == [1, 2, 3, 4][:after_sends]
    assert times_of(result, Kind.CRASH) == [1.0]


def test_a_step_at_the_very_time_of_a_crash_in_a_multi_send_is_the_one_that_is_cut():
    assert times_of(multi_send(2, at=1.0), Kind.CRASH) == [1.0]


def test_a_step_that_sends_no_more_than_allowed_is_survived():
    result = multi_send(4, asks=((0, 1.0, 1.0),))
    assert times_of(result, Kind.CRASH) == []
    assert result.metrics.entries == 1


def test_the_sends_of_steps_before_do_not_count_towards_a_crash_in_a_multi_send():
    """The speaker sends one message a step, which is never more than two."""
    result = speech(n=2, faults=(Crash(0, 0.0, after_sends=2),))
    assert [number for _, number in heard(result)] == list(range(10))


def test_a_crash_in_a_multi_send_waits_until_its_time():
    result = multi_send(2, at=50.0, asks=((0, 0.0, 1.0), (0, 60.0, 1.0), (1, 100.0, 1.0)))
    assert times_of(result, Kind.GRANT, 0) == [2.0]
    assert times_of(result, Kind.CRASH) == [60.0]


def test_a_restarted_node_is_handed_what_it_stored_last():
    result = counting(Crash(1, 6.5), Restart(1, 10.5))
    assert counts(result) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    assert times_of(result, Kind.RESTART) == [10.5]


def test_a_restarted_node_that_stored_nothing_is_handed_nothing():
    result = counting(Crash(1, 0.5), Restart(1, 0.75))
    assert counts(result)[:2] == [0, -1]


def test_a_node_comes_back_as_new_with_nothing_but_what_it_stored():
    result = counting(Crash(1, 6.5), Restart(1, 10.5), Crash(1, 12.5), Restart(1, 13.5))
    restarts = [event.state["restarts"] for event in result.recording.events() if "restarts" in event.state]
    assert restarts == [0, 0, 1]


def test_a_timer_does_not_survive_a_crash():
    everybody = Scripted(((1, 0.0, 30.0), (0, 0.0, 30.0)))
    scenario = toy(counters, 2, workload=everybody, faults=(Crash(0, 5.5), Restart(0, 5.75)))
    assert times_of(run(scenario), Kind.TIMER, 0) == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_restarting_a_node_that_is_alive_does_nothing():
    assert counting(Restart(1, 5.5)).trace_hash == counting().trace_hash


def test_crashing_a_dead_node_does_nothing():
    assert times_of(counting(Crash(1, 5.5), Crash(1, 6.5)), Kind.CRASH) == [5.5]


def test_a_paused_node_handles_everything_in_order_when_it_resumes():
    result = speech(faults=(Pause(1, 4.5, 3.0),))
    assert [number for _, number in heard(result)] == list(range(10))
    assert [at for at, _ in heard(result)] == [1.0, 2.0, 3.0, 4.0, 7.5, 7.5, 7.5, 8.0, 9.0, 10.0]
    assert (times_of(result, Kind.PAUSE), times_of(result, Kind.RESUME)) == ([4.5], [7.5])


def test_a_timer_that_runs_out_during_a_pause_fires_when_the_node_resumes():
    result = speech(faults=(Pause(0, 4.5, 3.0),))
    assert times_of(result, Kind.SEND)[4:7] == [4.0, 7.5, 8.5]


def test_a_process_paused_inside_leaves_when_it_resumes():
    result = run(toy(alone, 1, workload=Scripted(((0, 0.0, 5.0),)), faults=(Pause(0, 3.0, 10.0),)))
    assert times_of(result, Kind.RELEASE) == [13.0]


def test_a_process_that_is_paused_asks_when_it_resumes():
    result = run(toy(alone, 1, workload=Scripted(((0, 5.0, 1.0),)), faults=(Pause(0, 3.0, 10.0),)))
    assert times_of(result, Kind.ACQUIRE) == [13.0]


def test_a_node_that_crashes_during_a_pause_does_not_resume():
    result = speech(faults=(Pause(1, 4.5, 3.0), Crash(1, 5.5)))
    assert times_of(result, Kind.RESUME) == []
    assert [number for _, number in heard(result)] == [0, 1, 2, 3]


def test_a_short_pause_within_a_long_one_does_not_end_it():
    result = speech(faults=(Pause(1, 2.5, 5.0), Pause(1, 3.0, 1.0)))
    assert [at for at, _ in heard(result)][2:8] == [7.5, 7.5, 7.5, 7.5, 7.5, 8.0]


@dataclass(slots=True)
class Revocable(Process):
    """Is inside at once; a message takes the section away."""

    def acquire(self, ctx):
        ctx.grant()
        ctx.send(1 - ctx.me, Numbered(0))

    def on_message(self, ctx, source, message):
        if ctx.phase is INSIDE:
            ctx.lost("revoked")

    def release(self, ctx):
        pass


def revocable(n):
    return [Revocable() for _ in range(n)]


def test_a_process_that_lost_the_section_during_a_pause_does_not_leave_it_as_well():
    script = Scripted(((0, 0.0, 5.0), (1, 2.0, 20.0)))
    result = run(toy(revocable, 2, workload=script, faults=(Pause(0, 1.0, 9.0),)))
    assert times_of(result, Kind.LOST, 0) == [10.0]
    assert times_of(result, Kind.RELEASE, 0) == []
    assert result.violation is None


def watched(*faults):
    return readings(run(toy(watchmen, 1, workload=Scripted(((0, 0.0, 65.0),)), faults=faults)))


def test_an_honest_clock_shows_the_time():
    assert watched() == [(at, at) for at in (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0)]


def test_a_clock_that_runs_fast_lets_timers_fire_early():
    """By its own clock the node still looks every ten seconds."""
    assert watched(Drift(0, rate=2.0))[:4] == [(0.0, 0.0), (5.0, 10.0), (10.0, 20.0), (15.0, 30.0)]


def test_a_clock_that_runs_slow_lets_timers_fire_late():
    assert watched(Drift(0, rate=0.5))[:3] == [(0.0, 0.0), (20.0, 10.0), (40.0, 20.0)]


def test_a_clock_starts_at_its_offset():
    assert watched(Drift(0, offset=100.0))[:3] == [(0.0, 100.0), (10.0, 110.0), (20.0, 120.0)]


def test_a_clock_that_begins_to_drift_later_does_not_jump():
    assert watched(Drift(0, rate=2.0, at=10.0))[:4] == [(0.0, 0.0), (10.0, 10.0), (15.0, 20.0), (20.0, 30.0)]


def test_a_drifting_clock_is_nobody_elses():
    result = run(toy(watchmen, 2, workload=Scripted(((0, 0.0, 35.0),)), faults=(Drift(1, rate=2.0, at=5.0),)))
    assert times_of(result, Kind.TIMER, 0) == [10.0, 20.0, 30.0]


@dataclass(slots=True)
class ForTen(Process):
    """Inside at once, for ten seconds by its own clock."""

    def acquire(self, ctx):
        ctx.grant(until=ctx.now() + 10.0)

    def release(self, ctx):
        pass


@pytest.mark.parametrize(
    ("change", "ends"),
    [
        (Drift(0, rate=0.5, at=4.0), 16.0),
        (Drift(0, rate=2.0, at=4.0), 7.0),
        (Drift(0, offset=-5.0, at=4.0), 15.0),
        (Drift(0, offset=20.0, at=4.0), 4.0),
        (Drift(0, rate=0.5, at=11.0), 10.0),
    ],
)
def test_a_lease_runs_out_by_the_clock_as_it_runs_then(change, ends):
    result = run(toy(lambda n: [ForTen()], 1, workload=Scripted(((0, 0.0, 30.0),)), faults=(change,)))
    assert times_of(result, Kind.EXPIRE) == [ends]


def test_a_clock_that_slows_down_within_a_lease_lets_two_in_and_is_seen_to():
    script = Scripted(((0, 0.0, 30.0), (1, 12.0, 1.0)))
    result = run(toy(lambda n: [ForTen(), ForTen()], 2, ONE_INSIDE, workload=script, faults=(Drift(0, 0.5, at=4.0),)))
    assert result.violation is not None
    assert result.violation.property == "AtMostInside"


chaos = st.builds(
    Chaos,
    crashes=st.integers(0, 6),
    restarts=st.booleans(),
    pauses=st.integers(0, 5),
    partitions=st.integers(0, 5),
    within=st.floats(0, 100),
)


@given(chaos, st.integers(2, 8), st.integers(0, 99))
def test_chaos_draws_so_many_of_each_within_its_time(chaos, n, seed):
    faults = chaos.draw(random.Random(seed), n)
    crashed = [fault.node for fault in faults if isinstance(fault, Crash)]
    assert len(crashed) == len(set(crashed)) == min(chaos.crashes, n)
    assert sum(isinstance(fault, Restart) for fault in faults) == len(crashed) * chaos.restarts
    assert sum(isinstance(fault, Pause) for fault in faults) == chaos.pauses
    assert sum(isinstance(fault, Partition) for fault in faults) == chaos.partitions
    assert all(0 <= fault.at <= chaos.within for fault in faults if not isinstance(fault, Restart))


@given(chaos, st.integers(2, 8), st.integers(0, 99))
def test_what_chaos_draws_can_be_written_down_as_a_schedule(chaos, n, seed):
    faults = chaos.draw(random.Random(seed), n)
    scenario = toy(alone, n, faults=faults)
    assert scenario.faults == faults
    for partition in (fault for fault in faults if isinstance(fault, Partition)):
        assert sorted(node for group in partition.groups for node in group) == list(range(n))
        assert all(partition.groups)


def test_the_same_seed_draws_the_same_chaos_and_another_another():
    chaos = Chaos(crashes=2, pauses=2, partitions=2)
    drawn = [chaos.draw(random.Random(seed), 5) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_run_under_chaos_has_the_faults_that_were_drawn():
    script = Scripted(tuple((node, 0.0, 500.0) for node in range(4)))
    result = run(toy(alone, 4, workload=script, chaos=Chaos(pauses=3, within=400.0), seed=3))
    assert len(events_of(result, Kind.PAUSE)) == 3


def test_a_lone_node_cannot_be_parted_by_chaos():
    assert Chaos(partitions=2).draw(random.Random(0), 1) == ()


@pytest.mark.parametrize(
    "wrong", [{"crashes": -1}, {"pauses": -1}, {"partitions": -1}, {"within": -1.0}, {"lasts": -1.0}], ids=repr
)
def test_chaos_in_negative_numbers_is_refused(wrong):
    with pytest.raises(UsageError):
        toy(alone, 3, chaos=Chaos(**wrong))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Crash(3, 1.0), "there is no node 3; the nodes are 0 to 2"),
        (Restart(-1, 1.0), "there is no node -1"),
        (Pause(7, 1.0, 1.0), "there is no node 7"),
        (Slow(3, 1.0, 1.0, 2.0), "there is no node 3"),
        (Drift(3), "there is no node 3"),
        (Partition(((0, 1), (2, 3)), 1.0, 1.0), "there is no node 3"),
        (Crash(0, -1.0), "at cannot be negative"),
        (Pause(0, 1.0, -1.0), "lasts cannot be negative"),
        (Slow(0, 1.0, 1.0, -2.0), "factor cannot be negative"),
        (Drift(0, rate=-1.0), "rate cannot be negative"),
        (Drift(0, rate=0.0), "stands still"),
        (Crash(0, 1.0, after_sends=-1), "after_sends cannot be negative"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_fault_that_makes_no_sense_is_refused(fault, words):
    with pytest.raises(UsageError, match=words):
        toy(alone, 3, faults=(fault,))
