"""Durations: what is one, and what is none."""

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from trinco.core.duration import in_seconds, seconds
from trinco.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "amount"), [("30", 30), ("1.5s", 1.5), ("500ms", 0.5), ("2m", 120), ("1h", 3600), (" 1e3 us ", 1e-3)]
)
def test_a_text_with_a_unit_is_a_duration(text: str, amount: float) -> None:
    assert seconds(text) == pytest.approx(amount)


@pytest.mark.parametrize("text", ["", "h", "0parsecs", "1 2", "nan", "inf", "1e400", "1e308h", "0x10"])
def test_other_texts_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="no duration"):
        seconds(text)


@pytest.mark.parametrize("amount", [2, 2.0, Decimal(2), Fraction(4, 2), timedelta(seconds=2)])
def test_every_kind_of_number_is_a_number_of_seconds(amount: Any) -> None:
    given = in_seconds(amount, "ttl")
    assert (given, type(given)) == (2.0, float)


@pytest.mark.parametrize("amount", ["2", b"2", True, None, [2], 2j, float("nan"), float("inf"), Decimal("sNaN")])
def test_what_is_no_number_is_no_number_of_seconds(amount: Any) -> None:
    with pytest.raises(UsageError, match="ttl is a number of seconds or a timedelta, not"):
        in_seconds(amount, "ttl")


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_that_is_too_large_is_told_without_its_digits(digits: int) -> None:
    for amount in (10**digits, Fraction(10**digits)):
        with pytest.raises(UsageError, match="too large"):
            in_seconds(amount, "ttl")  # type: ignore[arg-type]
