"""Quorums from a grid: the row and the column of each process.

The processes fill a grid of width ceil(sqrt(n)) row by row; the quorum of a process is its row and its column, at most
2 ceil(sqrt(n)) - 1 of them. Where n leaves the last row short, the columns beyond its end are one shorter and nothing
needs repair. The row of one process meets the column of another, or else the other's row meets the first one's column:
only a place in the last row can be missing, and two processes of the last row share that row.
"""

from math import isqrt

from trinco.core.ids import Ids, bit
from trinco.protocols.quorums.quorum_set import QuorumSet


def grid(n: int) -> QuorumSet:
    width = isqrt(n - 1) + 1
    return QuorumSet(_row_and_column(me, n, width) for me in range(n))


def _row_and_column(me: int, n: int, width: int) -> Ids:
    row, column = divmod(me, width)
    start = row * width
    return sum(bit(member) for member in {*range(start, min(start + width, n)), *range(column, n, width)})
