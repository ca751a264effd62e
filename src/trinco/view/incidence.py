"""Who is in which set, as a picture made of letters: one row a set, one column a member.

    0123456
    ●●.●...
    .●●.●..

A bar parts the first members from the rest, where they are of two kinds.
"""

from collections.abc import Iterator, Sequence

from trinco.view.timeline import Pen

OUTSIDE = "."


def draw(family: Sequence[Sequence[int]], members: int, *, first: int | None = None, pen: Pen = Pen()) -> Iterator[str]:
    """The numbers of the members, read downwards, then a line for each set. ``first``: how many are before the bar."""
    bar = members if first is None else first
    for place in range(len(str(members - 1)) - 1, -1, -1):
        yield _barred([_digit(member, 10**place) for member in range(members)], bar, " ")
    for each in family:
        inside = frozenset(each)
        yield _barred([pen.event if member in inside else OUTSIDE for member in range(members)], bar, pen.idle)


def _digit(number: int, place: int) -> str:
    """The last digit of every number; the others only where they change."""
    if number % place or (place > 1 and number < place):
        return " "
    return str(number // place % 10)


def _barred(cells: Sequence[str], bar: int, stroke: str) -> str:
    parts = ["".join(part) for part in (cells[:bar], cells[bar:]) if part]
    return stroke.join(parts).rstrip()
