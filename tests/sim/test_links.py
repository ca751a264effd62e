from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.toys import Numbered, events_of, heard, speech, toy
from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.node import Process
from trinco.sim.faults import Partition, Slow
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.simulation import run
from trinco.sim.workload import Scripted

seeds = st.integers(0, 10**6)


def numbers(result, node=1):
    return [number for _, number in heard(result, node)]


def test_a_message_takes_the_delay_of_the_law():
    assert heard(speech(sayings=3, links=Links(Constant(2.5)))) == [(2.5, 0), (3.5, 1), (4.5, 2)]


@given(seeds, st.sampled_from([Uniform(0.0, 10.0), Exponential(5.0)]))
def test_an_ordered_channel_keeps_the_order_whatever_the_delays(seed, delay):
    assert numbers(speech(seed=seed, links=Links(delay))) == list(range(10))


@given(seeds)
def test_an_ordered_channel_that_loses_and_duplicates_still_never_goes_back(seed):
    result = speech(seed=seed, links=Links(Uniform(0.0, 10.0), loss=0.3, duplication=0.3))
    assert numbers(result) == sorted(numbers(result))


def test_an_unordered_channel_lets_messages_overtake_and_loses_none():
    result = speech(links=Links(Uniform(0.0, 10.0), ordered=False))
    assert sorted(numbers(result)) == list(range(10))
    assert numbers(result) != list(range(10))


def test_order_is_kept_for_each_channel_and_not_between_channels():
    result = speech(n=3, sayings=30, links=Links(Uniform(0.0, 10.0)))
    assert numbers(result, 1) == numbers(result, 2) == list(range(30))
    assert heard(result, 1) != heard(result, 2)


@given(seeds)
def test_every_message_is_heard_or_told_as_lost_and_never_both(seed):
    result = speech(sayings=30, seed=seed, links=Links(loss=0.4))
    lost = [event.message.number for event in events_of(result, Kind.DROP)]
    assert sorted(numbers(result) + lost) == list(range(30))


def test_about_as_many_messages_are_lost_as_the_chance_says():
    result = speech(sayings=500, gap=0.1, links=Links(loss=0.2))
    assert len(events_of(result, Kind.DROP)) == pytest.approx(100, abs=30)


def test_a_duplicated_message_is_heard_twice_and_counted_once():
    result = speech(sayings=200, gap=0.1, links=Links(duplication=0.25))
    counts = [numbers(result).count(number) for number in range(200)]
    assert set(counts) == {1, 2}
    assert counts.count(2) == pytest.approx(50, abs=20)
    assert result.metrics.messages == 200


def test_a_reordered_message_dawdles_for_a_second_delay():
    result = speech(sayings=50, links=Links(Constant(2.0), ordered=False, reordering=0.3))
    delays = {at - number for at, number in heard(result)}
    assert delays == {2.0, 4.0}
    assert numbers(result) != sorted(numbers(result))


def test_a_single_channel_may_have_a_law_of_its_own():
    result = speech(n=3, sayings=1, links=Links(Constant(1.0), per_link={(0, 2): Constant(7.0)}))
    assert heard(result, 1) == [(1.0, 0)]
    assert heard(result, 2) == [(7.0, 0)]


def test_the_law_of_a_channel_does_not_hold_for_the_way_back():
    result = speech(n=2, sayings=1, speakers=(1,), links=Links(per_link={(0, 1): Constant(7.0)}))
    assert heard(result, 0) == [(1.0, 0)]


@dataclass(slots=True)
class ToOneself(Process):
    """Tells itself a number and enters when it hears it."""

    def acquire(self, ctx):
        ctx.send(ctx.me, Numbered(0))

    def on_message(self, ctx, source, message):
        ctx.grant()

    def release(self, ctx):
        pass


def to_oneself(n):
    return [ToOneself() for _ in range(n)]


@pytest.mark.parametrize("trace", [True, False])
def test_a_message_to_oneself_takes_no_time_costs_nothing_and_is_never_lost(trace):
    links = Links(Constant(3.0), loss=0.9) if trace else Links(Constant(3.0))
    script = Scripted(tuple((0, float(at), 1.0) for at in range(0, 40, 2)))
    metrics = run(toy(to_oneself, 1, workload=script, links=links, trace=trace)).metrics
    assert (metrics.entries, metrics.messages, metrics.waiting.max) == (20, 0, 0.0)


@pytest.mark.parametrize("chance", ["loss", "duplication", "reordering"])
@pytest.mark.parametrize("value", [-0.1, 1.0, 2.0, float("nan")])
def test_a_chance_that_is_none_is_refused(chance, value):
    with pytest.raises(UsageError, match=f"{chance} is a chance"):
        Links(ordered=False, **{chance: value})


def test_a_network_in_order_cannot_reorder():
    with pytest.raises(UsageError, match="ordered=False"):
        Links(reordering=0.1)


def parted(*groups, at=2.5, lasts=5.0, drops=False):
    return (Partition(groups, at, lasts, drops),)


def test_what_a_partition_holds_back_arrives_in_order_when_it_has_healed():
    result = speech(faults=parted((0,), (1,)))
    held = [(at, number) for at, number in heard(result) if 3 <= number <= 7]
    assert held == [(8.5, 3), (8.5, 4), (8.5, 5), (8.5, 6), (8.5, 7)]
    assert numbers(result) == list(range(10))


def test_what_was_on_the_way_when_a_partition_began_still_arrives():
    assert (3.0, 2) in heard(speech(faults=parted((0,), (1,))))


def test_a_partition_that_drops_loses_exactly_what_was_sent_across_it():
    result = speech(faults=parted((0,), (1,), drops=True))
    assert numbers(result) == [0, 1, 2, 8, 9]
    assert [event.message.number for event in events_of(result, Kind.DROP)] == [3, 4, 5, 6, 7]


def test_within_a_group_nobody_notices_the_partition():
    result = speech(n=3, faults=parted((0, 1), (2,)))
    assert heard(result, 1) == [(number + 1.0, number) for number in range(10)]
    assert heard(result, 2) != heard(result, 1)


def test_a_node_in_no_group_is_on_its_own():
    result = speech(n=4, faults=parted((0, 1), drops=True))
    assert numbers(result, 1) == list(range(10))
    assert numbers(result, 2) == numbers(result, 3) == [0, 1, 2, 8, 9]


def test_a_second_partition_does_not_heal_the_first():
    brief = Partition(((0, 1), (2,)), at=4.0, lasts=1.0, drops=True)
    result = speech(n=3, faults=(*parted((0,), (1,), (2,), drops=True), brief))
    assert numbers(result, 1) == [0, 1, 2, 8, 9]


def test_a_slow_node_takes_its_factor_longer_to_reach_and_to_answer_and_then_recovers():
    to_slow = speech(n=3, sayings=6, gap=10.0, faults=(Slow(1, at=15.0, lasts=20.0, factor=3.0),))
    assert [at for at, _ in heard(to_slow, 1)] == [1.0, 11.0, 23.0, 33.0, 41.0, 51.0]
    assert [at for at, _ in heard(to_slow, 2)] == [1.0, 11.0, 21.0, 31.0, 41.0, 51.0]
    from_slow = speech(n=2, sayings=1, faults=(Slow(0, at=0.0, lasts=20.0, factor=3.0),))
    assert heard(from_slow) == [(3.0, 0)]


@given(st.floats(0.0, 5.0), st.floats(0.0, 5.0), st.floats(0.0, 4.0))
def test_a_node_that_changes_its_pace_keeps_its_channels_in_order(at, lasts, factor):
    result = speech(sayings=10, gap=0.5, faults=(Slow(0, at, lasts, factor),))
    assert numbers(result) == list(range(10))
