"""Finite fields: the laws of arithmetic, and which orders there are."""

from itertools import accumulate, product, repeat

import pytest

from trinco.core.errors import UsageError
from trinco.protocols.quorums.fields import finite_field, is_prime_power, prime_power

PRIMES = [2, 3, 5, 7, 11, 13, 31]
POWERS = [4, 8, 9, 16, 25, 27, 32]


@pytest.mark.parametrize("prime", PRIMES)
def test_of_a_prime_order_it_is_arithmetic_modulo_that_prime(prime: int) -> None:
    field = finite_field(prime)
    for one, other in product(range(prime), repeat=2):
        assert field.sums[one][other] == (one + other) % prime
        assert field.products[one][other] == one * other % prime


@pytest.mark.parametrize("order", POWERS)
def test_sums_and_products_are_commutative_associative_and_distributive(order: int) -> None:
    field = finite_field(order)
    plus, times = field.sums, field.products
    for a, b in product(range(order), repeat=2):
        assert plus[a][b] == plus[b][a]
        assert times[a][b] == times[b][a]
    for a, b, c in product(range(order), repeat=3):
        assert plus[plus[a][b]][c] == plus[a][plus[b][c]]
        assert times[times[a][b]][c] == times[a][times[b][c]]
        assert times[a][plus[b][c]] == plus[times[a][b]][times[a][c]]


@pytest.mark.parametrize("order", POWERS)
def test_everything_has_a_negative_and_all_but_0_has_an_inverse(order: int) -> None:
    field = finite_field(order)
    assert field.sums[0] == field.products[1] == tuple(range(order))
    assert all(sorted(row) == list(range(order)) for row in field.sums)
    assert all(sorted(row) == list(range(order)) for row in field.products[1:])


@pytest.mark.parametrize("order", PRIMES + POWERS)
def test_the_powers_of_the_generator_are_all_the_elements_but_0(order: int) -> None:
    field = finite_field(order)
    powers = accumulate(repeat(field.generator, order - 1), lambda one, other: field.products[one][other])
    assert sorted(powers) == list(range(1, order))


@pytest.mark.parametrize(("order", "prime"), [(4, 2), (8, 2), (9, 3), (25, 5), (27, 3), (32, 2)])
def test_so_many_times_the_same_as_its_prime_says_is_0(order: int, prime: int) -> None:
    sums = finite_field(order).sums
    for element in range(order):
        assert list(accumulate(repeat(element, prime), lambda one, other: sums[one][other]))[-1] == 0


def test_there_is_a_field_for_every_power_of_a_prime_and_for_no_other_order() -> None:
    known = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 37, 41, 43, 47, 49]
    assert [order for order in range(-2, 50) if is_prime_power(order)] == known


@pytest.mark.parametrize(("order", "parts"), [(2, (2, 1)), (97, (97, 1)), (32, (2, 5)), (81, (3, 4)), (121, (11, 2))])
def test_an_order_is_a_prime_and_an_exponent(order: int, parts: tuple[int, int]) -> None:
    assert prime_power(order) == parts


@pytest.mark.parametrize(("order", "following"), [(1, 2), (6, 7), (10, 11), (12, 13), (24, 25), (33, 37)])
def test_any_other_order_is_refused_with_the_next_one_that_works(order: int, following: int) -> None:
    told = f"^{order} is not a power of a prime; the next order that works is {following}$"
    with pytest.raises(UsageError, match=told):
        finite_field(order)
