"""A set of node ids as one int: bit i is set when node i is in it.

State must be values, so every change of a set makes a new one. Copying a frozenset of fifty ids takes longer than all
the rest of a handler, and a trace that keeps them takes kilobytes a step; an int is small, quick to compare, and as
good a value. ``ids | bit(7)`` adds, ``ids & ~bit(7)`` removes, ``ids.bit_count()`` counts. Declare the field as ``Ids``
and traces and timelines show the members.
"""

from collections.abc import Iterator
from typing import Annotated, TypeAlias

Ids: TypeAlias = Annotated[int, "a set of node ids"]

NOBODY: Ids = 0


def bit(node: int) -> Ids:
    return 1 << node


def members(ids: Ids) -> Iterator[int]:
    """The ids in the set, smallest first."""
    while ids:
        lowest = ids & -ids
        yield lowest.bit_length() - 1
        ids ^= lowest
