"""What commands print: JSON for programs, tables and timelines for people."""

import codecs
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trinco.core.event import Event
from trinco.core.printable import printable
from trinco.view.timeline import ASCII, Pen, draw

if TYPE_CHECKING:
    from rich.text import Text

FRAME = 3
"""What a column of a table takes besides its cells."""
LEAST = 5
"""What is left to a column for its cells."""


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """A character that standard output would escape in its own way, or a terminal would obey, is escaped in that of
    JSON."""
    shows_all = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    lines = json.dumps(value, indent=2, ensure_ascii=not shows_all).split("\n")
    print("\n".join(line if line.isprintable() else _escaped(line) for line in lines))


def _escaped(line: str) -> str:
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], whole: Sequence[str] = ()) -> None:
    """``whole``: the columns whose cells are not to be broken over lines, since people copy them; the first of them
    before the others, as far as the screen has room."""
    from rich.console import Console
    from rich.table import Table

    cells = [list(map(_as_it_is, row)) for row in rows]
    console = Console(soft_wrap=False, width=None if sys.stdout.isatty() else 120)
    widths = {head: max(len(head), *(row[i].cell_len for row in cells)) for i, head in enumerate(headings) if cells}
    kept = _kept_whole([(head, widths[head]) for head in whole if cells], len(headings), console.width)
    table = Table(title=_as_it_is(title), title_justify="left", title_style="bold", header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in kept)
    for row in cells:
        table.add_row(*row)
    console.print(table)


def _kept_whole(wanted: Iterable[tuple[str, int]], columns: int, width: int) -> set[str]:
    kept: set[str] = set()
    room = width - 1
    for heading, needed in wanted:
        room -= needed + FRAME
        if room < (columns - len(kept) - 1) * (LEAST + FRAME):
            break
        kept.add(heading)
    return kept


def _as_it_is(text: str) -> "Text":
    """Rich would take brackets for commands, and hands a terminal's own on."""
    from rich.text import Text

    return Text(printable(text))


def print_line(text: str) -> None:
    print(printable(text))


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Name and value, a line each, values in one column."""
    known = list(facts)
    width = max(len(name) for name, _ in known) + 2
    for name, value in known:
        print_line(f"{name:<{width}}{value}")


def print_timeline(events: Iterable[Event], n: int, *, steps: bool, repeats_from: int | None = None) -> None:
    for line in draw(events, n, pen=pen_for_stdout(), steps=steps, repeats_from=repeats_from):
        print_line(line)


def pen_for_stdout() -> Pen:
    """Plain letters where the terminal cannot show others."""
    try:
        "●◀─▶┆║".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return ASCII
    return Pen()


def number(value: float | None) -> str:
    """As a person writes it: at most four digits that matter, a dash for nothing."""
    return "-" if value is None else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
