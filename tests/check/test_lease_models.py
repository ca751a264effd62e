"""Small models of the quorum lease, with their exact numbers of states. ``make prove`` checks the large ones.

The counts depend on what is in a model: one-access stores that say no more than they must, releases that nobody
answers, symmetry over the honest stores, votes forgotten when they run out.
"""

from dataclasses import replace

import pytest

from trinco.check.leases import SMALL, lease_model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.errors import BeyondClaims, UsageError
from trinco.leases.terms import Policy

ONE = replace(SMALL, stores=("one-access",), f=0)
TWO = replace(SMALL, stores=("one-access",) * 2, f=0)


def holds(system, states, **options):
    result = check(lease_model(system, **options), liveness=False)
    assert result.verdict is Verdict.HOLDS, result.violation
    assert result.progress.states == states


def test_one_store_with_time():
    holds(ONE, 670, byzantine={})


def test_two_stores_with_time():
    holds(TWO, 14_935, byzantine={})


def test_four_stores_of_which_one_does_anything():
    holds(SMALL, 85_270, time=False)


def test_renewal_on_one_store():
    holds(ONE, 6_548, byzantine={}, renewals=1)


def test_a_margin_of_twice_the_window_is_enough_for_clocks_that_drift():
    holds(replace(ONE, ttl=4, sigma=2), 8_036, byzantine={}, drift=1)


def test_a_smaller_one_is_not():
    result = check(lease_model(replace(ONE, ttl=4, sigma=1), byzantine={}, drift=1), liveness=False)
    assert result.violation.kind == "safety"


def test_accesses_that_get_no_answer_in_time_leave_nothing_behind():
    """An access may time out and still be carried out, also after the release: its late answer has it undone."""
    system = replace(ONE, policy=Policy.PRIORITY, access_timeout=1)
    model = replace(lease_model(system, byzantine={}, time=False), fires=1)
    result = check(model, liveness=False)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, 6_017)


def test_nor_do_they_break_a_renewal():
    model = replace(lease_model(replace(ONE, access_timeout=1), byzantine={}, renewals=1), fires=1)
    result = check(model, liveness=False)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, 64_838)


def test_one_liar_too_many_breaks_it():
    model = lease_model(SMALL, byzantine={4: "grant-all", 5: "grant-all"}, time=False, beyond_claims=True)
    assert check(model, liveness=False).violation.kind == "safety"


def test_which_needs_to_be_asked_for():
    with pytest.raises(BeyondClaims, match="2 Byzantine stores"):
        lease_model(SMALL, byzantine={4: "grant-all", 5: "grant-all"})


def test_clocks_that_drift_need_time():
    with pytest.raises(UsageError, match="need time"):
        lease_model(ONE, byzantine={}, time=False, drift=1)


@pytest.mark.parametrize("kind", ["one-access", "object", "queue", "conditional"])
def test_who_waits_by_priority_is_served_in_every_fair_run(kind):
    model = lease_model(replace(ONE, stores=(kind,), policy=Policy.PRIORITY), byzantine={}, time=False)
    result = check(model)
    assert result.verdict is Verdict.HOLDS, result.violation
    assert result.liveness


def test_two_stores_by_priority_with_tokens_are_free_of_starvation():
    """Each client is granted at one store first: without yielding they would wait for each other for ever."""
    model = lease_model(replace(TWO, policy=Policy.PRIORITY, fenced=True), byzantine={}, time=False, symmetry=False)
    result = check(model)
    assert result.verdict is Verdict.HOLDS, result.violation
    assert result.liveness
    assert result.progress.states == 14_414


def test_tokens_rise_over_two_rounds_on_one_store():
    holds(replace(ONE, fenced=True, policy=Policy.PRIORITY), 998, byzantine={}, time=False, rounds=2)
