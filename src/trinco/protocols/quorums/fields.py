"""Finite fields: GF(p^k) for every prime p, as tables of sums and products.

An element is a number below p^k whose k digits to the base p are the coefficients of a polynomial over the integers
mod p, the constant one last. Sums are digit by digit; products are taken modulo a monic polynomial of degree k for
which x is primitive, that is, the powers of x are all the elements but 0. For k = 1 that is arithmetic mod p, and x
stands for a primitive root. The tables have p^2k places, so this is for small fields.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from math import isqrt
from typing import TypeAlias

from trinco.core.errors import UsageError

Table: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Field:
    """``sums[a][b]`` and ``products[a][b]``; the powers of ``generator`` are all the elements but 0."""

    order: int
    generator: int
    sums: Table = field(repr=False)
    products: Table = field(repr=False)


def finite_field(order: int) -> Field:
    prime, _ = prime_power(order)
    sums = tuple(tuple(_sum(one, other, prime) for other in range(order)) for one in range(order))
    powers = next(filter(_are_all_but_zero, (_powers(tail, prime, sums) for tail in range(1, order))))
    return Field(order, powers[1], sums, _products(powers[:-1]))


def prime_power(order: int) -> tuple[int, int]:
    """The prime p and the exponent k with p^k = order."""
    parts = _parted(order)
    if parts is None:
        following = next(each for each in count(order + 1) if is_prime_power(each))
        raise UsageError(f"{order} is not a power of a prime; the next order that works is {following}")
    return parts


def is_prime_power(number: int) -> bool:
    return _parted(number) is not None


def _parted(number: int) -> tuple[int, int] | None:
    if number < 2:
        return None
    prime = next((each for each in range(2, isqrt(number) + 1) if number % each == 0), number)
    exponent = 0
    while number % prime == 0:
        number //= prime
        exponent += 1
    return (prime, exponent) if number == 1 else None


def _sum(one: int, other: int, prime: int) -> int:
    total, place = 0, 1
    while one or other:
        total += (one + other) % prime * place
        one, other, place = one // prime, other // prime, place * prime
    return total


def _powers(tail: int, prime: int, sums: Table) -> Sequence[int]:
    """1, x, x^2 and so on, as many as there are elements, where x^k = tail."""
    order = len(sums)
    below = order // prime
    multiples = [0]
    for _ in range(1, prime):
        multiples.append(sums[multiples[-1]][tail])
    powers = [1]
    for _ in range(1, order):
        leading, rest = divmod(powers[-1], below)
        powers.append(sums[rest * prime][multiples[leading]])
    return powers


def _are_all_but_zero(powers: Sequence[int]) -> bool:
    return set(powers) == set(range(1, len(powers)))


def _products(powers: Sequence[int]) -> Table:
    """Exponents are added instead. ``powers`` has each element but 0 once, the exponents in order."""
    order = len(powers) + 1
    exponents = {power: exponent for exponent, power in enumerate(powers)}
    twice = [*powers, *powers]
    table = [[0] * order for _ in range(order)]
    for one, first in exponents.items():
        for other, second in exponents.items():
            table[one][other] = twice[first + second]
    return tuple(map(tuple, table))
