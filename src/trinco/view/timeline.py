"""A trace as a picture made of letters: one column a process, one row a step, messages as arrows.

    step       p0            p1
    1          ● acquire     │               clock=1 timestamp=1 · sends request(1) to p1
    2          ┆             ● acquire       clock=1 timestamp=1 · sends request(1) to p0
    3          ●◀request(1)──┤               sends ok to p1

A line ``│`` is a process at rest, ``┆`` one that waits, ``║`` one that is inside, and nothing one that has crashed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from trinco.core.event import Event, Kind
from trinco.core.instant import Instant
from trinco.core.message import describe


@dataclass(frozen=True)
class Pen:
    """The characters to draw with."""

    idle: str = "│"
    waiting: str = "┆"
    inside: str = "║"
    event: str = "●"
    line: str = "─"
    left: str = "◀"
    right: str = "▶"
    from_left: str = "├"
    from_right: str = "┤"
    separator: str = " · "


ASCII = Pen("|", ":", "#", "*", "-", "<", ">", "+", "+", "; ")


@dataclass
class Row:
    """One step with everything it did."""

    event: Event
    notes: list[str]


def draw(
    events: Iterable[Event], n: int, *, pen: Pen = Pen(), steps: bool = True, repeats_from: int | None = None
) -> Iterator[str]:
    """The lines of the picture. ``steps``: times are the numbers of steps. ``repeats_from``: the step from which the
    rest goes on for ever."""
    rows = list(_rows(events))
    width = _column_width(rows)
    yield (f"{'step' if steps else 'time':<11}" + "".join(f"{f'p{node}':<{width}}" for node in range(n))).rstrip()
    strokes = [pen.idle] * n
    for row in rows:
        if row.event.at == repeats_from:
            yield f"{'':<11}from here the same steps again and again, for ever:"
            repeats_from = None
        when = "" if row.event.kind is Kind.START else f"{row.event.at:.6g}"
        yield (f"{when:<11}" + _cells(row, strokes, width, pen) + "  " + pen.separator.join(row.notes)).rstrip()
        _move_on(strokes, row, pen)


def _rows(events: Iterable[Event]) -> Iterator[Row]:
    """Steps and faults, each with the effects that follow it. A start that does nothing is no row."""
    row: Row | None = None
    for event in events:
        if row is not None and _is_effect(event, row):
            row.notes += _effect(event, row)
            continue
        if row is not None and not _is_silent_start(row):
            yield row
        row = Row(event, _changes(event))
    if row is not None and not _is_silent_start(row):
        yield row


def _is_silent_start(row: Row) -> bool:
    return row.event.kind is Kind.START and not any(note.startswith("sends") for note in row.notes)


_EFFECTS = frozenset({Kind.SEND, Kind.GRANT, Kind.REFUSE, Kind.LOST, Kind.ELECTED, Kind.DROP})


def _is_effect(event: Event, row: Row) -> bool:
    """What a step did. A message that finds its receiver dead is dropped there, later: that is a row of its own."""
    return event.kind in _EFFECTS and event.node == row.event.node and event.at == row.event.at


def _changes(event: Event) -> list[str]:
    if event.kind is Kind.DROP:
        return [f"{describe(event.message)} from p{event.peer}: {event.note}"]
    if event.kind is Kind.START or not event.state:
        return []
    return [" ".join(f"{name}={_value(value)}" for name, value in event.state.items())]


def _value(value: Any) -> str:
    """As short as it can be said: a value with much in it has ``in_words``."""
    if hasattr(value, "in_words"):
        return str(value.in_words())
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Instant):
        return f"{value.at:.6g}"
    if isinstance(value, frozenset | set):
        return "{" + ",".join(map(str, sorted(value, key=repr))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_value, value)) + "]"
    return str(value)


def _effect(event: Event, row: Row) -> list[str]:
    match event.kind:
        case Kind.SEND:
            return _send(event, row)
        case Kind.GRANT:
            return ["ENTERS" if event.token is None else f"ENTERS with token {event.token}"]
        case Kind.DROP:
            return [f"{describe(event.message)} to p{event.peer} is {event.note}"]
        case Kind.ELECTED:
            return [f"takes p{event.peer} for the leader"]
        case _:
            return [f"{event.kind.value}: {event.note}"]


def _send(event: Event, row: Row) -> list[str]:
    """Several receivers of one message share a note."""
    text = f"sends {describe(event.message)} to "
    if row.notes and row.notes[-1].startswith(text):
        row.notes[-1] += f" p{event.peer}"
        return []
    return [f"{text}p{event.peer}"]


def _column_width(rows: Sequence[Row]) -> int:
    labels = [len(_arrow_label(row.event)) + 4 for row in rows] + [len(_word(row.event)) + 3 for row in rows]
    return max(8, *labels) if labels else 8


def _arrow_label(event: Event) -> str:
    return describe(event.message) if event.kind is Kind.RECEIVE else ""


def _word(event: Event) -> str:
    """What stands beside the event's dot."""
    if event.kind is Kind.RECEIVE:
        return describe(event.message) if event.peer == event.node else ""
    if event.kind in (Kind.TIMER, Kind.INPUT):
        return str(event.note)
    words = {Kind.EXPIRE: "runs out", Kind.CRASH: "crashes", Kind.DROP: "is dead"}
    return words.get(event.kind, str(event.kind))


def _cells(row: Row, strokes: Sequence[str], width: int, pen: Pen) -> str:
    canvas = list("".join(f"{stroke:<{width}}" for stroke in strokes))
    event = row.event
    here = event.node * width
    if event.kind is Kind.RECEIVE and event.peer is not None and event.peer != event.node:
        _arrow(canvas, event.peer * width, here, _arrow_label(event), width, pen)
    canvas[here] = pen.event
    for offset, letter in enumerate(_word(event), start=2):
        canvas[here + offset] = letter
    return "".join(canvas)


def _arrow(canvas: list[str], source: int, here: int, label: str, width: int, pen: Pen) -> None:
    low, high = sorted((source, here))
    for place in range(low + 1, high):
        canvas[place] = pen.line
    canvas[source] = pen.from_left if source < here else pen.from_right
    canvas[here - 1 if source < here else here + 1] = pen.right if source < here else pen.left
    start = low + 2 + (width - 3 - len(label)) // 2
    canvas[start : start + len(label)] = label


def _move_on(strokes: list[str], row: Row, pen: Pen) -> None:
    """How the process' line goes on below this row."""
    node, kind = row.event.node, row.event.kind
    if kind is Kind.ACQUIRE:
        strokes[node] = pen.waiting
    if kind in (Kind.RELEASE, Kind.EXPIRE, Kind.RESTART):
        strokes[node] = pen.idle
    if any(note.startswith(("refuse", "lost")) for note in row.notes):
        strokes[node] = pen.idle
    if any(note.startswith("ENTERS") for note in row.notes):
        strokes[node] = pen.inside
    if kind is Kind.CRASH:
        strokes[node] = " "
