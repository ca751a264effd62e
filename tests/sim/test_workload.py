from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.toys import alone, events_of, known, times_of, toy
from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.node import Process
from trinco.sim.faults import Crash, Restart
from trinco.sim.laws import Constant, Uniform
from trinco.sim.simulation import run
from trinco.sim.workload import Closed, OneShot, Open, Scripted, saturated


@given(st.integers(1, 30), st.integers(1, 4), st.integers(0, 99))
def test_a_closed_workload_makes_exactly_its_entries(entries, n, seed):
    assert run(toy(alone, n, workload=Closed(entries), seed=seed)).metrics.entries == entries


def test_in_a_closed_workload_each_process_thinks_holds_and_thinks_again():
    result = run(toy(alone, 1, workload=Closed(3, think=Constant(5.0), hold=Constant(2.0))))
    assert times_of(result, Kind.ACQUIRE) == [5.0, 12.0, 19.0]
    assert times_of(result, Kind.RELEASE) == [7.0, 14.0, 21.0]


def test_a_closed_workload_is_shared_by_all_processes():
    result = run(known("coordinator", 4, workload=Closed(30)))
    entered = Counter(event.node for event in events_of(result, Kind.GRANT))
    assert set(entered) == {1, 2, 3}
    assert entered.total() == 30


def test_under_saturation_somebody_always_waits():
    result = run(known("ricart-agrawala", 3, workload=saturated(30)))
    waiting = set()
    for event in result.recording.events():
        if event.kind is Kind.ACQUIRE:
            waiting.add(event.node)
        elif event.kind is Kind.GRANT:
            waiting.discard(event.node)
            assert waiting or result.metrics.duration - event.at < 10


def test_under_saturation_a_process_asks_again_as_soon_as_it_has_left():
    result = run(toy(alone, 1, workload=saturated(4, hold=Constant(3.0))))
    assert times_of(result, Kind.ACQUIRE) == [0.0, 3.0, 6.0, 9.0]


def test_in_an_open_workload_requests_queue_up_where_they_arrive():
    result = run(toy(alone, 1, workload=Open(20, rate=100.0, hold=Constant(1.0))))
    released, asked = times_of(result, Kind.RELEASE), times_of(result, Kind.ACQUIRE)
    assert result.metrics.entries == 20
    assert asked[1:] == released[:-1]


def test_an_open_workload_that_is_slow_leaves_no_backlog():
    result = run(toy(alone, 1, workload=Open(20, rate=0.001, hold=Constant(1.0))))
    released, asked = times_of(result, Kind.RELEASE), times_of(result, Kind.ACQUIRE)
    assert all(later > earlier for later, earlier in zip(asked[1:], released[:-1], strict=True))


def test_an_open_workload_arrives_at_its_rate():
    result = run(toy(alone, 5, workload=Open(1000, rate=0.5, hold=Constant(0.0)), trace=False))
    assert result.metrics.duration == pytest.approx(2000, rel=0.1)


def test_in_a_one_shot_every_process_asks_once():
    result = run(known("ricart-agrawala", 4, workload=OneShot()))
    assert times_of(result, Kind.ACQUIRE) == [0.0] * 4
    assert sorted(event.node for event in events_of(result, Kind.GRANT)) == [0, 1, 2, 3]


def test_the_times_of_a_one_shot_may_be_drawn():
    asked = times_of(run(known("ricart-agrawala", 4, workload=OneShot(at=Uniform(5.0, 9.0)))), Kind.ACQUIRE)
    assert len(set(asked)) == 4
    assert all(5.0 <= at <= 9.0 for at in asked)


def test_a_script_is_followed_to_the_letter():
    result = run(toy(alone, 2, workload=Scripted(((1, 3.0, 2.0), (0, 1.0, 1.0)))))
    assert [(event.at, event.node) for event in events_of(result, Kind.ACQUIRE)] == [(1.0, 0), (3.0, 1)]
    assert [(event.at, event.node) for event in events_of(result, Kind.RELEASE)] == [(2.0, 0), (5.0, 1)]


def test_a_scripted_request_of_a_busy_process_waits_until_it_is_free():
    result = run(toy(alone, 1, workload=Scripted(((0, 0.0, 5.0), (0, 1.0, 2.0), (0, 2.0, 4.0)))))
    assert times_of(result, Kind.ACQUIRE) == [0.0, 5.0, 7.0]
    assert times_of(result, Kind.RELEASE) == [5.0, 7.0, 11.0]


def test_a_run_in_which_nobody_asks_is_finished():
    assert run(known("token-ring", 3, workload=Scripted(()), max_events=1000)).finished


def test_a_run_is_over_with_the_last_request():
    result = run(known("token-ring", 3, workload=Scripted(((1, 0.5, 4.0),))))
    assert result.finished
    assert result.metrics.duration == times_of(result, Kind.RELEASE)[-1]


def test_the_requests_of_a_process_that_died_are_over():
    script = Scripted(((0, 0.0, 5.0), (0, 1.0, 5.0), (0, 9.0, 5.0), (1, 0.0, 1.0)))
    result = run(toy(alone, 2, workload=script, faults=(Crash(0, 3.0),)))
    assert result.finished
    assert result.metrics.entries == 2


def test_a_process_that_comes_back_goes_on_asking():
    closed = Closed(6, think=Constant(2.0), hold=Constant(1.0))
    result = run(toy(alone, 2, workload=closed, faults=(Crash(0, 2.5), Restart(0, 4.0))))
    assert times_of(result, Kind.ACQUIRE, 0)[:2] == [2.0, 6.0]


def test_a_lone_process_that_comes_back_goes_on_asking():
    closed = Closed(3, think=Constant(2.0), hold=Constant(1.0))
    result = run(toy(alone, 1, workload=closed, faults=(Crash(0, 2.5), Restart(0, 4.0))))
    assert times_of(result, Kind.ACQUIRE) == [2.0, 6.0, 9.0]


def test_a_process_that_restarts_while_it_thinks_does_not_ask_twice_as_often():
    closed = Closed(4, think=Constant(10.0), hold=Constant(1.0))
    asked = times_of(run(toy(alone, 1, workload=closed, faults=(Crash(0, 1.0), Restart(0, 2.0)))), Kind.ACQUIRE)
    assert all(later - earlier == 11.0 for earlier, later in pairwise(asked))
    assert len(asked) > 1


@dataclass(slots=True)
class Moody(Process):
    """Refuses every other request."""

    asked: int = 0

    def acquire(self, ctx):
        self.asked += 1
        if self.asked % 2:
            ctx.refuse("not now")
        else:
            ctx.grant()

    def release(self, ctx):
        pass


def moody(n):
    return [Moody() for _ in range(n)]


def test_a_process_that_was_refused_may_ask_anew():
    script = Scripted(((0, 0.0, 2.0), (0, 0.0, 2.0), (0, 9.0, 2.0), (0, 10.0, 2.0)))
    result = run(toy(moody, 1, workload=script))
    assert times_of(result, Kind.REFUSE) == [0.0, 9.0]
    assert times_of(result, Kind.GRANT) == [0.0, 10.0]
    assert [event.note for event in events_of(result, Kind.REFUSE)] == ["not now", "not now"]


@pytest.mark.parametrize("make", [lambda: Closed(0), lambda: Open(0), lambda: saturated(-1)])
def test_a_workload_without_entries_is_refused(make):
    with pytest.raises(UsageError, match="at least one entry"):
        make()


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_arrivals_without_a_rate_are_refused(rate):
    with pytest.raises(UsageError, match="rate above 0"):
        Open(rate=rate)


@pytest.mark.parametrize(
    ("ask", "words"),
    [((0, 0.0, 1.0), "lets node 0 ask"), ((9, 0.0, 1.0), "lets node 9 ask"), ((1, -1.0, 1.0), "negative time"),
     ((1, 1.0, -1.0), "negative time")],
)  # fmt: skip
def test_a_script_that_cannot_be_followed_is_refused(ask, words):
    """Node 0 is the coordinator, which asks for nothing."""
    with pytest.raises(UsageError, match=words):
        run(known("coordinator", 3, workload=Scripted((ask,))))
