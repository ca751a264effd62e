"""Finite projective planes, as Maekawa 1985 and Campos & Carvalho 1988 use them.

A plane of order m has m^2+m+1 points and as many lines, m+1 points on each line and m+1 lines through each point. Two
points are on exactly one common line (P1) and two lines meet in exactly one point (P2). If node i asks the points of
line i, any two nodes ask exactly one common node, and nobody asks more than about the square root of all.

There is a plane for every order that is a power of a prime. It is PG(2,q), its points and lines numbered by a
difference set, so that line i is {i + d} and point i is on line i. Order 1 is the triangle.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from operator import or_
from typing import TypeAlias

from trinco.core.errors import UsageError
from trinco.core.ids import Ids, bit
from trinco.protocols.quorums.difference_sets import difference_set, size
from trinco.protocols.quorums.fields import is_prime_power

Family: TypeAlias = tuple[tuple[int, ...], ...]
"""Sets of numbers, each in rising order, numbered themselves: the points of each line, the clients of each arbiter.
Tuples: to go through the members of a set of bits that is ten thousand wide takes too long."""

LARGEST_ORDER = 128
_LIMIT = f"planes are built up to order {LARGEST_ORDER}, which has {size(LARGEST_ORDER):,} points"


@dataclass(frozen=True)
class Check:
    """Something that must hold, and what speaks against it."""

    claim: str
    fault: str | None


def plane(order: int) -> Family:
    """Its lines."""
    if order < 1:
        raise UsageError(f"the order of a plane is at least 1, not {order}")
    if order > LARGEST_ORDER:
        raise UsageError(f"the order {order:,} is too large: {_LIMIT}")
    return turned(difference_set(order))


def order_for(n: int) -> int:
    """The smallest order for which there is a plane with n points or more."""
    if n > size(LARGEST_ORDER):
        raise UsageError(f"{n:,} nodes are too many: {_LIMIT}")
    return next(order for order in count(1) if size(order) >= n and (order == 1 or is_prime_power(order)))


def turned(differences: Sequence[int]) -> Family:
    """The lines of a planar difference set with 0 in it: turned by one, each is the next one."""
    points = size(len(differences) - 1)
    wheel = tuple(range(points)) * 2
    return tuple(tuple(sorted(wheel[line + each] for each in differences)) for line in range(points))


def dual(family: Family, members: int) -> Family:
    """In which sets of the family each member is: the lines through each point."""
    within: list[list[int]] = [[] for _ in range(members)]
    for number, each in enumerate(family):
        for member in each:
            within[member].append(number)
    return tuple(map(tuple, within))


def checks(order: int, lines: Family) -> Iterator[Check]:
    """What makes lines a plane that nodes can use, each with the first thing found that speaks against it."""
    points, on_each = size(order), order + 1
    through = dual(lines, points)
    yield Check(f"there are {points:,} lines", None if len(lines) == points else f"there are {len(lines)}")
    yield Check(f"{on_each} points are on each line", _unlike(on_each, lines, "points on line"))
    yield Check(f"{on_each} lines go through each point", _unlike(on_each, through, "lines through point"))
    yield Check("two points are on exactly one common line", not_sharing_one(through, lines, "points"))
    yield Check("two lines meet in exactly one point", not_sharing_one(lines, through, "lines"))
    yield Check("point i is on line i", _not_on_its_own(lines))


def _unlike(wanted: int, family: Family, what: str) -> str | None:
    found = ((number, len(each)) for number, each in enumerate(family))
    return next((f"there are {many} {what} {number}" for number, many in found if many != wanted), None)


def _not_on_its_own(lines: Family) -> str | None:
    return next((f"line {each} is {braced(line)}" for each, line in enumerate(lines) if each not in line), None)


def not_sharing_one(family: Family, within: Family, what: str) -> str | None:
    """What is wrong if two sets of the family do not share exactly one member. ``within`` is its dual.

    No pair is looked at unless something is wrong. The sets that share a member with set i are those in which its
    members are: if all these together are everything, every set shares a member with it; if they are no more in number
    than the others are, none shares two.
    """
    everything = _ids(range(len(family)))
    sharing = [_ids(each) for each in within]
    for number, members in enumerate(family):
        together = reduce(or_, map(sharing.__getitem__, members), bit(number))
        if together != everything or sum(len(within[each]) - 1 for each in members) != len(family) - 1:
            return _pair_at_fault(family, number, what)
    return None


def _ids(numbers: Iterable[int]) -> Ids:
    return sum(map(bit, numbers))


def _pair_at_fault(family: Family, number: int, what: str) -> str | None:
    mine = set(family[number])
    for other, members in enumerate(family):
        shared = mine.intersection(members)
        if other != number and len(shared) != 1:
            return f"{what} {number} and {other} share {braced(sorted(shared))}"
    return None


def braced(numbers: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, numbers))}}}"
