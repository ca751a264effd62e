import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.core.instant import Instant

moments = st.integers(-(10**6), 10**6)


@given(at=moments, seconds=moments)
def test_a_deadline_minus_now_is_what_remains(at, seconds):
    now = Instant(at)
    assert (now + seconds) - now == seconds


@given(a=moments, b=moments)
def test_instants_are_ordered_as_their_clock_is(a, b):
    first, second = Instant(a), Instant(b)
    assert (first < second, first <= second, first > second, first >= second) == (a < b, a <= b, a > b, a >= b)
    assert (first == second) == (a == b)


def test_equal_instants_are_one_element_of_a_set():
    assert {Instant(2), Instant(2.0), Instant(3)} == {Instant(3), Instant(2)}


def test_an_instant_is_never_equal_to_a_number():
    assert Instant(2) != 2


def test_two_instants_cannot_be_added():
    with pytest.raises(TypeError):
        Instant(1) + Instant(2)


def test_an_instant_shows_where_it_stands():
    assert repr(Instant(2.5)) == "Instant(2.5)"
