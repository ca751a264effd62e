"""Planar difference sets: Singer's theorem at work."""

from itertools import permutations
from math import gcd

import pytest

from trinco.core.errors import UsageError
from trinco.protocols.quorums.difference_sets import difference_set, fault_of, size
from trinco.protocols.quorums.fields import is_prime_power

ORDERS = [1, *filter(is_prime_power, range(2, 65))]


@pytest.mark.parametrize("order", ORDERS)
def test_every_number_is_the_difference_of_exactly_one_pair(order: int) -> None:
    differences, modulus = difference_set(order), order * order + order + 1
    assert len(differences) == order + 1
    assert sorted((one - other) % modulus for one, other in permutations(differences, 2)) == list(range(1, modulus))
    assert fault_of(differences, modulus) is None


@pytest.mark.parametrize(
    ("order", "known"),
    [
        (1, (0, 1)),
        (2, (0, 1, 3)),
        (3, (0, 1, 3, 9)),
        (4, (0, 1, 4, 14, 16)),
        (5, (0, 1, 3, 8, 12, 18)),
        (7, (0, 1, 3, 13, 32, 36, 43, 52)),
        (8, (0, 1, 3, 7, 15, 31, 36, 54, 63)),
        (9, (0, 1, 3, 9, 27, 49, 56, 61, 77, 81)),
    ],
)
def test_it_is_the_one_that_tables_print(order: int, known: tuple[int, ...]) -> None:
    assert difference_set(order) == known


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_no_equivalent_one_is_less(order: int) -> None:
    differences, modulus = difference_set(order), size(order)
    factors = [factor for factor in range(1, modulus) if gcd(factor, modulus) == 1]
    images = (
        sorted((each * factor + shift) % modulus for each in differences)
        for factor in factors
        for shift in range(modulus)
    )
    assert min(images) == list(differences)


@pytest.mark.parametrize(
    ("differences", "modulus", "told"),
    [
        ((0, 1, 2), 7, "1-2 and 0-1 are the same mod 7"),
        ((0, 1, 4, 9), 13, "4-0 and 0-9 are the same mod 13"),
        ((0, 1), 7, "2 is no difference mod 7"),
    ],
)
def test_what_is_none_is_told_by_its_differences(differences: tuple[int, ...], modulus: int, told: str) -> None:
    assert fault_of(differences, modulus) == told


@pytest.mark.parametrize("order", [6, 10])
def test_there_is_none_from_a_field_that_does_not_exist(order: int) -> None:
    with pytest.raises(UsageError, match=f"the next order that works is {order + 1}"):
        difference_set(order)
