"""How many bases must agree, and how much of a term a client may believe."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.core.errors import UsageError
from trinco.core.instant import Instant
from trinco.leases.terms import RHO, Policy, Terms

faults = st.integers(0, 40)
stores = st.integers(0, 40)
terms = st.builds(
    Terms,
    ttl=st.floats(2, 60),
    granularity=st.floats(0, 0.5),
    sigma=st.floats(0, 0.5),
    rho=st.floats(0, 0.1),
)


@given(terms, st.floats(0, 1e9))
def test_belief_is_the_start_plus_the_term_less_its_margins(lease: Terms, start: float) -> None:
    """v = t_start + (T - g - sigma)(1 - rho)"""
    expected = start + (lease.ttl - lease.granularity - lease.sigma) * (1 - lease.rho)
    assert lease.belief(Instant(start)) == Instant(expected)


@given(terms)
def test_nobody_believes_a_whole_term_unless_there_are_no_margins(lease: Terms) -> None:
    margins = lease.granularity + lease.sigma + lease.rho
    assert lease.believed <= lease.ttl
    assert lease.believed < lease.ttl or margins < 1e-9


@given(faults, stores)
def test_a_quorum_is_half_of_n_and_f_and_one_rounded_up(f: int, more: int) -> None:
    n = 3 * f + 1 + more
    assert Terms(n, f).quorum == ceil((n + f + 1) / 2)


@given(faults)
def test_of_three_f_and_one_a_quorum_is_two_f_and_one(f: int) -> None:
    assert Terms(3 * f + 1, f).quorum == 2 * f + 1
    assert Terms(3 * f + 1, f).refusals == f + 1


@given(faults, stores)
def test_two_quorums_share_more_bases_than_can_lie(f: int, more: int) -> None:
    lease = Terms(3 * f + 1 + more, f)
    assert 2 * lease.quorum - lease.n >= f + 1


@given(faults, stores)
def test_the_correct_bases_are_a_quorum_by_themselves(f: int, more: int) -> None:
    lease = Terms(3 * f + 1 + more, f)
    assert lease.n - f >= lease.quorum


@given(faults, stores)
def test_so_many_refusals_leave_no_quorum_and_one_less_does(f: int, more: int) -> None:
    lease = Terms(3 * f + 1 + more, f)
    assert lease.n - lease.refusals == lease.quorum - 1


def test_an_attempt_takes_no_longer_than_half_a_term_or_its_timeout() -> None:
    assert Terms(ttl=4.0, attempt_timeout=5.0).patience == 2.0
    assert Terms(ttl=40.0, attempt_timeout=5.0).patience == 5.0


def test_what_is_useful_is_a_share_of_the_term() -> None:
    assert Terms(ttl=30.0, min_useful=0.2).useful == pytest.approx(6.0)
    assert Terms().rho == RHO == 4e-4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n": 0}, "at least 3f\\+1 = 1 stores, not 0"),
        ({"n": 3, "f": 1}, "at least 3f\\+1 = 4 stores, not 3"),
        ({"n": 6, "f": 2}, "at least 3f\\+1 = 7 stores, not 6"),
        ({"f": -1}, "how many stores may fail; it cannot be -1"),
        ({"rho": -0.1}, "0 <= rho < 1, not -0.1"),
        ({"rho": 1.0}, "0 <= rho < 1, not 1"),
        ({"rho": float("nan")}, "0 <= rho < 1, not nan"),
        ({"granularity": -1.0}, "margins; they cannot be negative"),
        ({"sigma": -1.0}, "margins; they cannot be negative"),
        ({"ttl": 0.0}, "ttl of 0 s leaves nothing to believe"),
        ({"ttl": -1.0}, "ttl of -1 s leaves nothing to believe"),
        ({"ttl": float("nan")}, "leaves nothing to believe"),
        ({"ttl": 1.0, "granularity": 1.0}, "the margins take 1 s \\(granularity 1, sigma 0\\)"),
        ({"ttl": 2.0, "granularity": 1.0, "sigma": 1.5}, "the margins take 2.5 s \\(granularity 1, sigma 1.5\\)"),
        ({"min_useful": 0.0}, "0 < min_useful <= 1, not 0"),
        ({"min_useful": 1.5}, "0 < min_useful <= 1, not 1.5"),
        ({"ttl": 2.0, "granularity": 1.0, "min_useful": 0.9}, "leaves 0.9996 s to believe, less than the 1.8 s"),
        ({"min_useful": 1.0}, "less than the 30 s \\(min_useful\\)"),
        ({"ttl": 61.0}, "a ttl of 61 s is longer than the 60 s \\(t_max\\) for which stores and other clients count"),
        ({"ttl": float("inf")}, "a ttl of inf s is longer than the 60 s"),
        ({"attempt_timeout": 0.0}, "an attempt needs some time"),
        ({"attempt_timeout": -1.0}, "an attempt needs some time"),
        ({"wait": -1.0}, "cannot take less than none"),
        ({"poll": -1.0}, "cannot take less than none"),
        ({"backoff": -1.0}, "cannot take less than none"),
        ({"access_timeout": -1.0}, "cannot take less than none"),
        ({"wait": 0.0}, "to wait by priority a base must remember the waiter"),
    ],
)
def test_terms_that_make_no_sense_are_refused_in_words(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Terms(**wrong)  # type: ignore[arg-type]


def test_who_does_not_wait_need_not_be_remembered() -> None:
    assert Terms(wait=0.0, policy=Policy.ONCE).wait == 0.0
