"""The clusters C(i,s) of the virtual hypercube: whom process i tests and tells, and in which order.

The ids are the corners of a cube of d = ceil(log2 n) dimensions; cluster s of process i is the half cube across
dimension s, headed by the neighbour there: C(i,s) = <j, C(j,s-1), ..., C(j,1)> with j = i xor 2^(s-1). So the clusters
of a process part the others into groups of 1, 2, 4, ... And whoever j in C(i,s) is taken for the head, j and its own
clusters 1 to s-1 are together C(i,s) again: that is why any live one can stand in for a dead head.

The papers have 2^d processes. For other n the corners without a process are left out, as if everybody knew them to be
dead for ever; a cluster may then be empty.
"""

from functools import cache

from trinco.core.ids import Ids, bit


def dimensions(n: int) -> int:
    """d: how many clusters each of n processes has."""
    return (n - 1).bit_length()


@cache
def cluster(me: int, s: int, n: int) -> tuple[int, ...]:
    """C(me,s), in the order of the paper."""
    return tuple(corner for corner in _half_cube(me, s) if corner < n)


def first_unsuspected(corners: tuple[int, ...], suspects: Ids) -> int | None:
    return next((each for each in corners if not suspects & bit(each)), None)


@cache
def _half_cube(i: int, s: int) -> tuple[int, ...]:
    head = i ^ 1 << (s - 1)
    return (head, *(corner for inner in range(s - 1, 0, -1) for corner in _half_cube(head, inner)))
