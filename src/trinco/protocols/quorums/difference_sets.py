"""Singer 1938: A theorem in finite projective geometry and some applications to number theory.

A planar difference set of order m is a set D of m+1 numbers such that every number from 1 to m^2+m is the difference,
mod m^2+m+1, of exactly one pair of them: {0, 1, 3} mod 7. The sets {i + d : d in D} are then the lines of a projective
plane, and a plane needs no table.

There is one for every power q of a prime. The points of the plane PG(2,q) are the triples over GF(q) other than
(0,0,0), where multiples count as the same point. Read a triple as a polynomial of degree 2 and multiply by x modulo
x^3 = a x^2 + b x + c, with c other than 0: a linear map, so it permutes the points and takes lines to lines. Walk by
it from the point 1. For some a and b the walk comes by all q^2+q+1 points before it returns, and then the times at
which it is on one certain line are a difference set. The line here is "no x^2".
"""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import gcd

from trinco.protocols.quorums.fields import Field, finite_field

TRIANGLE = (0, 1)
"""Of order 1, which is no power of a prime: the plane is a triangle, which the applications allow."""


def size(order: int) -> int:
    """How many points a plane of this order has, and how many lines."""
    return order * order + order + 1


def difference_set(order: int) -> tuple[int, ...]:
    """The planar difference set that tables print: with 0 and 1, and the least of all that are equivalent."""
    if order == 1:
        return TRIANGLE
    return _least(next(_walks_by_all_points(finite_field(order))), size(order))


def fault_of(differences: Sequence[int], modulus: int) -> str | None:
    """What is wrong if this is no planar difference set."""
    seen: dict[int, tuple[int, int]] = {}
    for one, other in permutations(differences, 2):
        difference = (one - other) % modulus
        if difference in seen:
            return f"{one}-{other} and {'-'.join(map(str, seen[difference]))} are the same mod {modulus}"
        seen[difference] = (one, other)
    missing = next((each for each in range(1, modulus) if each not in seen), None)
    return None if missing is None else f"{missing} is no difference mod {modulus}"


def _walks_by_all_points(field: Field) -> Iterator[Sequence[int]]:
    """The times on the line. c is the generator: where three divides q-1, no walk with a cube for c comes by all."""
    for a, b in product(range(field.order), repeat=2):
        length, times = _walk(field, a, b, field.generator)
        if length == size(field.order):
            yield times


def _walk(field: Field, a: int, b: int, c: int) -> tuple[int, Sequence[int]]:
    """How many points the walk comes by, and at which times it is on the line."""
    sums, times_a, times_b, times_c = field.sums, field.products[a], field.products[b], field.products[c]
    squared, linear, constant = 0, 0, 1
    time = 0
    times = []
    while time == 0 or squared or linear:
        if not squared:
            times.append(time)
        squared, linear, constant = sums[linear][times_a[squared]], sums[constant][times_b[squared]], times_c[squared]
        time += 1
    return time, times


def _least(differences: Sequence[int], modulus: int) -> tuple[int, ...]:
    return tuple(min(_equivalent(differences, modulus)))


def _equivalent(differences: Sequence[int], modulus: int) -> Iterator[list[int]]:
    """Shifted, or multiplied by what has an inverse, a difference set stays one. So any two members whose difference
    has an inverse can become 0 and 1, and no others can."""
    for zero, one in permutations(differences, 2):
        if gcd(one - zero, modulus) == 1:
            factor = pow(one - zero, -1, modulus)
            yield sorted((each - zero) * factor % modulus for each in differences)
