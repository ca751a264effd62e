"""Every number here was worked out by hand. A message takes one unit of time."""

from dataclasses import dataclass
from itertools import permutations
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mutants.coordinator import ignores_one
from tests.sim.toys import ANYTHING_GOES, alone, known, toy
from trinco.core.node import Process
from trinco.protocols.coordinator import CLAIMS
from trinco.sim.metrics import Spread, jain
from trinco.sim.simulation import run
from trinco.sim.workload import Scripted


def scripted(name, n, *asks, **rest):
    return run(known(name, n, workload=Scripted(asks), **rest)).metrics


def two_clients():
    """Client 1 asks at 0, enters at 2, leaves at 7; client 2 asks at 1, enters at 9, leaves at 11."""
    return scripted("coordinator", 3, (1, 0.0, 5.0), (2, 1.0, 2.0))


def test_entries_and_messages_are_counted_by_kind():
    metrics = two_clients()
    assert metrics.entries == 2
    assert metrics.messages == 6
    assert metrics.messages_by_kind == {"grant": 2, "release": 2, "request": 2}


def test_messages_per_entry_are_given_on_average_and_at_worst():
    metrics = two_clients()
    assert metrics.messages_per_entry == 3.0
    assert metrics.worst_messages_per_entry == 3
    assert metrics.costs == [3, 3]


def test_waiting_is_from_asking_to_entering():
    """Client 1 waits 2, client 2 waits 8."""
    assert two_clients().waiting == Spread(mean=5.0, p50=2.0, p99=8.0, max=8.0)


def test_the_synchronisation_delay_is_from_leaving_to_the_next_entering():
    """From 7, when client 1 leaves, to 9, when client 2 enters."""
    assert two_clients().synchronisation_delay == Spread(2.0, 2.0, 2.0, 2.0)


def test_there_is_no_synchronisation_delay_where_nobody_was_waiting():
    assert scripted("coordinator", 3, (1, 0.0, 1.0), (2, 50.0, 1.0)).synchronisation_delay is None


def test_bypass_is_how_often_others_entered_meanwhile():
    """Client 1 had asked but not entered when client 2 asked."""
    assert two_clients().bypass == 1
    assert scripted("coordinator", 3, (1, 0.0, 5.0), (2, 3.0, 2.0)).bypass == 0


def test_the_load_is_what_a_node_sends_and_receives():
    """The coordinator receives 2 requests and the first release and sends 2 grants; each client sends 2, receives 1."""
    assert two_clients().load == Spread(mean=11 / 3, p50=3.0, p99=5.0, max=5.0)


def test_the_duration_ends_with_the_last_leaving():
    metrics = two_clients()
    assert metrics.duration == 11.0
    assert metrics.entries_per_time == pytest.approx(2 / 11)


def test_fairness_is_over_the_processes_and_not_over_the_coordinator():
    assert two_clients().fairness == 1.0
    assert scripted("coordinator", 3, (1, 0.0, 1.0), (1, 10.0, 1.0)).fairness == 0.5


def test_a_lone_request_of_ricart_and_agrawala_takes_two_message_times_and_2n_minus_2_messages():
    metrics = scripted("ricart-agrawala", 4, (2, 0.0, 1.0))
    assert metrics.messages_by_kind == {"ok": 3, "request": 3}
    assert metrics.waiting.max == 2.0
    assert metrics.duration == 3.0


def test_contenders_of_ricart_and_agrawala_enter_one_message_time_after_each_other():
    """All ask at 0 with the same stamp: 0 enters at 2 and leaves at 3, 1 at 4 and 5, 2 at 6 and 7."""
    metrics = scripted("ricart-agrawala", 3, (0, 0.0, 1.0), (1, 0.0, 1.0), (2, 0.0, 1.0))
    assert metrics.waiting == Spread(mean=4.0, p50=4.0, p99=6.0, max=6.0)
    assert metrics.synchronisation_delay == Spread(1.0, 1.0, 1.0, 1.0)
    assert metrics.bypass == 2
    assert metrics.costs == [4, 4, 4]


def test_in_the_token_ring_a_process_waits_until_the_token_comes_by():
    """The token leaves 0 at 0 and is at 2 at time 2."""
    metrics = scripted("token-ring", 3, (2, 1.5, 1.0))
    assert metrics.waiting.max == 0.5
    assert metrics.messages == 3


def test_a_run_without_entries_has_no_averages():
    metrics = run(known("coordinator", 2, workload=Scripted(((1, 5.0, 1.0),)), until=1.0)).metrics
    assert metrics.entries == 0
    assert metrics.messages_per_entry is metrics.waiting is metrics.fairness is metrics.entries_per_time is None


def test_without_a_trace_only_what_needs_one_is_missing():
    metrics = scripted("coordinator", 3, (1, 0.0, 5.0), (2, 1.0, 2.0), trace=False)
    assert metrics.load is metrics.worst_messages_per_entry is None
    assert metrics.messages_per_entry == 3.0
    assert metrics.waiting == two_clients().waiting


def test_a_process_that_starves_is_the_one_that_was_bypassed_worst():
    asks = ((1, 0.0, 1.0), *((2, float(at), 1.0) for at in range(1, 50, 10)))
    scenario = toy(ignores_one, 3, CLAIMS, workload=Scripted(asks))
    assert run(scenario).metrics.bypass == 5


@dataclass(slots=True)
class Waits(Process):
    """Enters, or is refused, some time after it asked."""

    for_long: float
    in_vain: bool = False

    def acquire(self, ctx):
        ctx.set_timer("decide", self.for_long)

    def on_timer(self, ctx, name):
        if self.in_vain:
            ctx.refuse("in vain")
        else:
            ctx.grant()

    def release(self, ctx):
        pass


def one_gives_up(n):
    return [Waits(1.0), Waits(9.0, in_vain=True), Waits(1.0)]


def test_a_refused_request_is_waited_for_by_nobody():
    metrics = run(toy(one_gives_up, 3, workload=Scripted(((1, 0.0, 1.0), (0, 20.0, 1.0))))).metrics
    assert metrics.waiting == Spread(1.0, 1.0, 1.0, 1.0)
    assert metrics.entries == 1


def test_a_process_that_asks_long_after_the_last_left_adds_no_synchronisation_delay():
    """0 leaves at 6 while 1 waits; 1 gives up at 10; 2 asks at 100, when nobody has been waiting."""
    script = Scripted(((0, 0.0, 5.0), (1, 1.0, 1.0), (2, 100.0, 1.0)))
    assert run(toy(one_gives_up, 3, ANYTHING_GOES, workload=script)).metrics.synchronisation_delay is None


def test_metrics_as_plain_values_leave_the_single_costs_out():
    plain = two_clients().as_dict()
    assert "costs" not in plain
    assert plain["waiting"] == {"mean": 5.0, "p50": 2.0, "p99": 8.0, "max": 8.0}


def test_several_entries_at_one_moment_are_all_counted():
    metrics = run(toy(alone, 4, workload=Scripted(tuple((node, 1.0, 1.0) for node in range(4))))).metrics
    assert (metrics.entries, metrics.fairness, metrics.waiting.max) == (4, 1.0, 0.0)


@pytest.mark.parametrize(
    ("shares", "index"), [([5, 5, 5], 1.0), ([9, 0, 0], 1 / 3), ([1, 2], 0.9), ([0, 0], None), ([], None)]
)
def test_jains_index_is_one_for_equals_and_one_nth_where_one_takes_all(shares, index):
    assert jain(shares) == (None if index is None else pytest.approx(index))


@given(st.lists(st.integers(0, 100), min_size=1).filter(any))
def test_jains_index_lies_between_one_nth_and_one(shares):
    assert 1 / len(shares) - 1e-9 <= jain(shares) <= 1 + 1e-9


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=300))
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(values):
    spread, ordered = Spread.of(values), sorted(values)
    assert spread.p50 == ordered[ceil(len(values) / 2) - 1]
    assert spread.p99 == ordered[ceil(len(values) * 99 / 100) - 1]
    assert spread.max == max(values)
    assert spread.mean == pytest.approx(sum(values) / len(values))


def test_nothing_has_no_spread():
    assert Spread.of([]) is None


def test_a_mean_and_jains_index_depend_on_no_order_and_on_no_version_of_python():
    """A plain sum of ten tenths is 0.9999999999999999 in Python 3.11, and 1.0 from 3.12 on."""
    assert Spread.of([0.1] * 10).mean == 0.1
    assert len({jain(shares) for shares in permutations([0.1, 0.7, 0.2, 1e-3, 3.3])}) == 1
