import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.core.errors import UsageError
from trinco.sim.laws import Constant, Exponential, Lognormal, Uniform, parse

times = st.floats(0, 1e6)
laws = st.one_of(
    st.builds(Constant, times),
    st.tuples(times, times).map(sorted).map(lambda ends: Uniform(*ends)),
    st.builds(Exponential, times),
    st.builds(Lognormal, times, st.floats(0, 5)),
)


def draws(law, count=4000, seed=1):
    rng = random.Random(seed)
    return [law.draw(rng) for _ in range(count)]


@given(laws, st.integers(0, 99))
def test_no_law_draws_a_negative_time(law, seed):
    assert all(time >= 0 for time in draws(law, 20, seed))


@given(laws, st.integers(0, 99))
def test_a_law_draws_the_same_from_the_same_seed(law, seed):
    assert draws(law, 5, seed) == draws(law, 5, seed)


def test_a_constant_is_always_the_same():
    assert set(draws(Constant(1.5))) == {1.5}


def test_a_uniform_law_fills_its_range_evenly():
    drawn = draws(Uniform(2.0, 4.0))
    assert min(drawn) >= 2.0
    assert max(drawn) <= 4.0
    assert statistics.mean(drawn) == pytest.approx(3.0, rel=0.02)
    assert statistics.pstdev(drawn) == pytest.approx(2.0 / 12**0.5, rel=0.05)


def test_an_exponential_law_has_its_mean_and_as_wide_a_spread():
    drawn = draws(Exponential(3.0))
    assert statistics.mean(drawn) == pytest.approx(3.0, rel=0.05)
    assert statistics.pstdev(drawn) == pytest.approx(3.0, rel=0.1)


def test_a_lognormal_law_has_its_median_and_a_long_tail():
    drawn = draws(Lognormal(2.0, 1.0))
    assert statistics.median(drawn) == pytest.approx(2.0, rel=0.1)
    assert statistics.mean(drawn) > 1.3 * statistics.median(drawn)


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("1.5", Constant(1.5)),
        ("constant:2", Constant(2.0)),
        ("uniform:0.5,1.5", Uniform(0.5, 1.5)),
        ("exponential:2", Exponential(2.0)),
        ("lognormal:1,0.5", Lognormal(1.0, 0.5)),
    ],
)
def test_a_law_is_read_as_it_is_typed(text, law):
    assert parse(text) == law


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("normal:1", "there is no law 'normal'"),
        ("soon", "'soon' is not a number"),
        ("", "is not a number"),
        ("uniform:1", "uniform takes 2 numbers, not 1"),
        ("constant:1,2", "constant takes 1 number, not 2"),
        ("uniform:2,1", "lies above the upper end"),
        ("-1", "-1 is not a time"),
        ("inf", "inf is not a time"),
        ("nan", "nan is not a time"),
        ("lognormal:1,-1", "-1 is not a time"),
        ("lognormal:1,900", "at most 50 wide"),
    ],
)
def test_what_is_no_law_is_refused_in_plain_words(text, words):
    with pytest.raises(UsageError, match=words):
        parse(text)


@pytest.mark.parametrize("law", [Constant, Exponential])
def test_a_negative_time_is_refused_when_the_law_is_made(law):
    with pytest.raises(UsageError):
        law(-1.0)
