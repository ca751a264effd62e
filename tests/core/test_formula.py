import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.core.errors import UsageError
from trinco.core.formula import Formula

numbers = st.integers(0, 50)


def test_a_formula_prints_as_the_paper_wrote_it():
    assert str(Formula("2*(n-1)")) == "2*(n-1)"
    assert repr(Formula("0..n")) == "Formula('0..n')"


def test_formulas_with_the_same_text_are_the_same_claim():
    assert Formula("n-1") == Formula("n-1")
    assert hash(Formula("n-1")) == hash(Formula("n-1"))
    assert Formula("n-1") != Formula("n-2")
    assert Formula("1") != 1


@given(a=numbers, b=numbers, n=numbers)
def test_a_single_expression_has_one_value(a, b, n):
    formula = Formula(f"{a}*(n-{b})")
    assert formula.low(n=n) == formula.high(n=n) == a * (n - b)


@given(low=numbers, width=numbers, n=numbers, measured=st.integers(-10, 200))
def test_a_range_admits_exactly_what_lies_between_its_ends(low, width, n, measured):
    claim = Formula(f"{low}..{low}+n+{width}")
    assert claim.admits(measured, n=n) == (low <= measured <= low + n + width)


@given(measured=st.floats(min_value=1, allow_infinity=False, allow_nan=False))
def test_an_open_range_admits_everything_above_its_lower_end(measured):
    assert Formula("1..inf").admits(measured)


def test_an_open_range_does_not_admit_what_lies_below_its_lower_end():
    assert not Formula("1..inf").admits(0.5)


def test_a_tolerance_widens_the_claim_on_both_sides():
    claim = Formula("n")
    assert not claim.admits(3.2, n=3)
    assert claim.admits(3.2, tolerance=0.25, n=3)
    assert claim.admits(2.8, tolerance=0.25, n=3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sqrt(n)", 3.0),
        ("ceil(log2(n))", 4),
        ("floor(n/2)", 4),
        ("n//2", 4),
        ("min(n, 5)", 5),
        ("max(n, k)", 9),
        ("-n+k", -6),
        ("n**2", 81),
        ("1.5*n", 13.5),
    ],
)
def test_the_papers_arithmetic_is_understood(text, value):
    assert Formula(text).low(n=9, k=3) == value


def test_a_letter_without_a_value_is_named():
    with pytest.raises(UsageError, match=r"'n\+m' needs a value for m"):
        Formula("n+m").low(n=3)


@pytest.mark.parametrize("text", ["", "2*(n", "n n", "..3", "0..2..3"])
def test_what_is_no_formula_is_refused_when_it_is_written(text):
    with pytest.raises(UsageError, match="cannot be read"):
        Formula(text)


def test_a_range_without_an_upper_end_is_refused():
    with pytest.raises(UsageError):
        Formula("1..")


@pytest.mark.parametrize("text", ["__import__('os')", "n.real", "[n]", "'n'", "n if n else 1", "n < 3", "sqrt(x=n)"])
def test_anything_beyond_arithmetic_is_refused(text):
    with pytest.raises(UsageError, match="which formulas do not have"):
        Formula(text).low(n=3)


def test_a_formula_without_a_value_at_this_size_says_so():
    with pytest.raises(UsageError, match=r"1/\(n-1\)"):
        Formula("1/(n-1)").low(n=1)


def test_a_formula_travels_to_another_process():
    formula = Formula("1..sqrt(n)")
    copy = pickle.loads(pickle.dumps(formula))
    assert copy == formula
    assert copy.high(n=16) == 4
