"""Conflict graphs: who must not be inside together with whom.

A graph is a tuple of sets: the neighbours of each node. On the complete graph everybody excludes everybody else, which
is mutual exclusion; on a ring each excludes the two beside it, as at the table of Dijkstra's philosophers.
"""

from collections.abc import Iterable
from typing import TypeAlias

from trinco.core.errors import UsageError
from trinco.core.ids import NOBODY, Ids, bit, members

Neighbours: TypeAlias = tuple[Ids, ...]


def complete(n: int) -> Neighbours:
    everybody = bit(n) - 1
    return tuple(everybody & ~bit(node) for node in range(n))


def ring(n: int) -> Neighbours:
    """Of two nodes it is one edge, of one node none."""
    return joined(((node, (node + 1) % n) for node in range(n) if n > 1), n)


def joined(edges: Iterable[tuple[int, int]], n: int) -> Neighbours:
    """The graph with exactly these edges."""
    neighbours = [NOBODY] * n
    for one, other in edges:
        if one == other or not (0 <= one < n and 0 <= other < n):
            raise UsageError(f"{one}-{other} joins no two of {n} nodes; they are called 0 to {n - 1}")
        neighbours[one] |= bit(other)
        neighbours[other] |= bit(one)
    return tuple(neighbours)


def parse(text: str, n: int) -> Neighbours:
    """``complete``, ``ring``, or edges: ``0-1 1-2 2-3``."""
    if text in _GRAPHS:
        return _GRAPHS[text](n)
    try:
        edges = [(int(one), int(other)) for one, other in (edge.split("-") for edge in text.split())]
    except ValueError:
        raise UsageError(f"'{text}' is no graph: say {', '.join(_GRAPHS)}, or edges such as '0-1 1-2'") from None
    return joined(edges, n)


_GRAPHS = {"complete": complete, "ring": ring}


def largest_independent_set(neighbours: Neighbours) -> int:
    """How many can be inside together at most, no two of them neighbours. Quick on dense and on sparse graphs; there
    are graphs between for which nobody knows a quick way."""
    return _largest_within(neighbours, bit(len(neighbours)) - 1)


def _largest_within(neighbours: Neighbours, left: Ids) -> int:
    """A node whose neighbours all exclude each other can always be in the set: no two of them could be in its place.
    Where there is no such node, one of the highest degree is in the set or it is not."""
    taken = 0
    while left:
        safe = next((node for node in members(left) if _is_clique(neighbours, neighbours[node] & left)), None)
        if safe is None:
            node = max(members(left), key=lambda each: (neighbours[each] & left).bit_count())
            without = left & ~bit(node)
            with_it = 1 + _largest_within(neighbours, without & ~neighbours[node])
            return taken + max(with_it, _largest_within(neighbours, without))
        taken += 1
        left &= ~(bit(safe) | neighbours[safe])
    return taken


def _is_clique(neighbours: Neighbours, group: Ids) -> bool:
    return all(not group & ~(bit(node) | neighbours[node]) for node in members(group))
