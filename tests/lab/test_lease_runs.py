"""The long runs of leases, short. ``make prove`` runs them in full."""

from trinco.lab.lease_runs import coarse_clocks, rising_tokens, waiting
from trinco.leases.terms import Policy


def test_terms_never_overlap_though_clocks_show_whole_seconds_and_are_an_hour_off():
    found = coarse_clocks(400)
    assert (found["terms"], found["overlaps"]) == (400, 0)


def test_without_the_margin_for_granularity_they_do():
    assert coarse_clocks(400, margin=False)["overlaps"] > 20


def test_a_quorum_does_not_overlap_either():
    assert coarse_clocks(60, n=4, f=1)["overlaps"] == 0


def test_tokens_rise_past_a_store_that_shows_old_ones_and_clients_that_crash():
    found = rising_tokens(400)
    assert found["violation"] is None
    assert found["acquisitions"] > 300
    assert found["crashes"] > 20


def test_with_a_silent_store_priority_waits_a_fifth_of_what_back_off_does():
    ours, papers = (waiting(policy, each=3, seeds=1) for policy in (Policy.PRIORITY, Policy.BACKOFF))
    assert ours["everybody_served"]
    assert ours["mean"] * 5 <= papers["mean"]
    assert ours["p99"] <= 4 * ours["mean"]


def test_who_asks_alone_waits_no_longer_under_either_policy():
    ours, papers = (waiting(policy, clients=1, liar=None, seeds=1) for policy in (Policy.PRIORITY, Policy.BACKOFF))
    assert 0.8 < ours["mean"] / papers["mean"] < 1.25
