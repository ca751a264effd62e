"""A trace as a picture made of letters: one column a process, one row a step, messages as arrows.

    step       p0            p1
    1          ● acquire     │               clock=1 timestamp=1 · sends request(1) to p1
    2          ┆             ● acquire       clock=1 timestamp=1 · sends request(1) to p0
    3          ●◀request(1)──┤               sends ok to p1

A line ``│`` is a process at rest, ``┆`` one that waits, ``║`` one that is inside, and nothing one that has crashed.

Where many answer one, a row a message is too long to read. ``gathered``, what one sends to several or several send to
one, in the same words and at the same time, is one row:

    2          ├──GET──▶●──────▶●──────▶●       p1 p2 p3: sends ticket(4) to p0
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from trinco.core.event import Event, Kind
from trinco.core.ids import members
from trinco.core.instant import Instant
from trinco.core.message import describe
from trinco.core.signed import Signed
from trinco.core.snapshot import field_names, set_fields


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


LONGEST = 60
"""In letters, of what is told of a message that was read from a file: it no longer knows what matters in it."""


@dataclass
class Row:
    """One step with everything it did."""

    event: Event
    notes: list[str]


Group = list[Row]
"""What is drawn in one line: a row, or several that belong together."""


def draw(
    events: Iterable[Event],
    n: int,
    *,
    pen: Pen = Pen(),
    steps: bool = True,
    repeats_from: int | None = None,
    gathered: bool = False,
) -> Iterator[str]:
    """The lines of the picture. ``steps``: times are the numbers of steps. ``repeats_from``: the step from which the
    rest goes on for ever."""
    rows = list(_rows(events))
    width = _column_width(rows)
    yield (f"{'step' if steps else 'time':<11}" + "".join(f"{f'p{node}':<{width}}" for node in range(n))).rstrip()
    strokes = [pen.idle] * n
    for group in _gather(rows) if gathered else ([row] for row in rows):
        first = group[0].event
        if first.at == repeats_from:
            yield f"{'':<11}from here the same steps again and again, for ever:"
            repeats_from = None
        when = "" if first.kind is Kind.START else f"{first.at:.6g}"
        yield (f"{when:<11}" + _cells(group, strokes, width, pen) + "  " + _notes(group, pen)).rstrip()
        for row in group:
            _move_on(strokes, row, pen)


def _gather(rows: Iterable[Row]) -> Iterator[Group]:
    """At one moment rows change places, if they are of different nodes."""
    groups: list[Group] = []
    for row in rows:
        if groups and groups[0][0].event.at != row.event.at:
            yield from groups
            groups = []
        home = _home(row, groups)
        if home is None:
            groups.append([row])
        else:
            home.append(row)
    yield from groups


def _home(row: Row, groups: Sequence[Group]) -> Group | None:
    """The group that a row belongs to, unless its node has done something else since."""
    for group in reversed(groups):
        if _belongs(row, group):
            return group
        if any(each.event.node == row.event.node for each in group):
            break
    return None


def _belongs(row: Row, group: Group) -> bool:
    """The same words at the same time: from one, or to one."""
    events = [each.event for each in (*group, row)]
    alike = {(event.at, event.kind, describe(event.message)) for event in events}
    senders, receivers = {event.peer for event in events}, {event.node for event in events}
    return len(alike) == 1 and events[0].kind is Kind.RECEIVE and 1 in (len(senders), len(receivers))


def _notes(group: Group, pen: Pen) -> str:
    """Of several rows: who does what, and those who do the same together."""
    if len(group) == 1:
        return pen.separator.join(group[0].notes)
    doers: dict[str, list[str]] = {}
    for row in group:
        if row.notes:
            doers.setdefault(pen.separator.join(row.notes), []).append(f"p{row.event.node}")
    if len({row.event.node for row in group}) == 1:
        return pen.separator.join(doers)
    return pen.separator.join(f"{' '.join(names)}: {text}" for text, names in doers.items())


def _rows(events: Iterable[Event]) -> Iterator[Row]:
    """Steps and faults, each with the effects that follow it. A start that does nothing is no row."""
    row: Row | None = None
    parts: Parts = {}
    for event in events:
        if row is not None and _is_effect(event, row):
            row.notes += _effect(event, row)
            continue
        if row is not None and not _is_silent_start(row):
            yield row
        row = Row(event, _changes(event, parts))
    if row is not None and not _is_silent_start(row):
        yield row


def _is_silent_start(row: Row) -> bool:
    return row.event.kind is Kind.START and not any(note.startswith("sends") for note in row.notes)


_EFFECTS = frozenset({Kind.SEND, Kind.GRANT, Kind.REFUSE, Kind.LOST, Kind.ELECTED, Kind.DROP})


def _is_effect(event: Event, row: Row) -> bool:
    """What a step did. A message that finds its receiver dead is dropped there, later: that is a row of its own."""
    return event.kind in _EFFECTS and event.node == row.event.node and event.at == row.event.at


Parts = dict[tuple[int, str], tuple[Any, ...]]
"""Per node and field: the part that it held last."""


def _changes(event: Event, parts: Parts) -> list[str]:
    if event.kind is Kind.DROP:
        return [f"{_told(event.message)} from p{event.peer}: {event.note}"]
    changed = [text for name, value in event.state.items() for text in _change(event.node, name, value, parts)]
    return [" ".join(changed)] if changed and event.kind is not Kind.START else []


def _change(node: int, name: str, value: Any, parts: Parts) -> Iterator[str]:
    """Of a part, only what is different in it."""
    if not _is_part(value):
        yield f"{name}={_value(value)}"
        return
    kind, *fields = value
    before = parts.get((node, name), ())[1:] or (None,) * len(fields)
    parts[node, name] = value
    for inner, old, new in zip(field_names(kind), before, fields, strict=True):
        if old != new:
            yield f"{name}.{inner}={_value(list(members(new)) if inner in set_fields(kind) else new)}"


def _is_part(value: Any) -> bool:
    """In a trace its class comes first."""
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], type)


def _value(value: Any) -> str:
    """As short as it can be said: a value with much in it has ``in_words``."""
    if hasattr(value, "in_words"):
        return str(value.in_words())
    match value:
        case Signed():
            text = f"{_value(value.body)} by p{value.signer}"
        case msgspec.Struct():
            text = _struct(value)
        case Enum():
            text = str(value.value)
        case Instant():
            text = f"{value.at:.6g}"
        case frozenset() | set():
            text = "{" + ",".join(map(str, sorted(value, key=repr))) + "}"
        case list() | tuple():
            text = "[" + ",".join(map(_value, value)) + "]"
        case _:
            text = str(value)
    return text


def _struct(value: msgspec.Struct) -> str:
    """Without the fields that are as they usually are."""
    told = [
        f"{field.name}={_value(getattr(value, field.name))}"
        for field in msgspec.structs.fields(value)
        if getattr(value, field.name) != field.default
    ]
    return f"{type(value).__name__}({', '.join(told)})"


def _told(message: Any) -> str:
    text = describe(message)
    return f"{text[: LONGEST - 3]}..." if isinstance(message, dict) and len(text) > LONGEST else text


def _effect(event: Event, row: Row) -> list[str]:
    match event.kind:
        case Kind.SEND:
            return _send(event, row)
        case Kind.GRANT:
            return ["ENTERS" if event.token is None else f"ENTERS with token {event.token}"]
        case Kind.DROP:
            return [f"{_told(event.message)} to p{event.peer} is {event.note}"]
        case Kind.ELECTED:
            return [f"takes p{event.peer} for the leader"]
        case _:
            return [f"{event.kind.value}: {event.note}"]


def _send(event: Event, row: Row) -> list[str]:
    """Several receivers of one message share a note."""
    text = f"sends {_told(event.message)} to "
    if row.notes and row.notes[-1].startswith(text):
        row.notes[-1] += f" p{event.peer}"
        return []
    return [f"{text}p{event.peer}"]


def _column_width(rows: Sequence[Row]) -> int:
    labels = [len(_arrow_label(row.event)) + 4 for row in rows] + [len(_word(row.event)) + 3 for row in rows]
    return max(8, *labels) if labels else 8


def _arrow_label(event: Event) -> str:
    return _told(event.message) if event.kind is Kind.RECEIVE else ""


def _word(event: Event) -> str:
    """What stands beside the event's dot."""
    if event.kind is Kind.RECEIVE:
        return _told(event.message) if event.peer == event.node else ""
    if event.kind in (Kind.TIMER, Kind.INPUT):
        return str(event.note)
    words = {Kind.EXPIRE: "runs out", Kind.CRASH: "crashes", Kind.DROP: "is dead"}
    return words.get(event.kind, str(event.kind))


def _cells(group: Group, strokes: Sequence[str], width: int, pen: Pen) -> str:
    canvas = list("".join(f"{stroke:<{width}}" for stroke in strokes))
    farthest_first = sorted(group, key=lambda row: -abs((row.event.peer or 0) - row.event.node))
    for row in farthest_first:
        event, here = row.event, row.event.node * width
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
