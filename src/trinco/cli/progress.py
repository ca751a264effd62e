"""Progress on long work, for people: on the terminal's error channel, gone when the work is done."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Teller(Protocol):
    def __call__(self, text: str, done: float | None = None) -> None:
        """Show what is going on; ``done`` is the share of the work, from 0 to 1, where that is known."""


@contextmanager
def progress(quiet: bool = False) -> Iterator[Teller]:
    if quiet or not sys.stderr.isatty():
        yield lambda text, done=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), BarColumn(bar_width=30), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("starting", total=None)

        def tell(text: str, done: float | None = None) -> None:
            total = None if done is None else 1.0
            shown.update(task, description=text, total=total, completed=done or 0.0)

        yield tell
