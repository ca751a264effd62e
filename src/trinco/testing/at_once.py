"""Doing the same with several people at the same moment, each in a thread of its own."""

from collections.abc import Callable, Sequence
from threading import Barrier, Thread
from time import monotonic
from typing import TypeVar

PATIENCE = 20.0
"""Whoever is asked has given up by then."""
PARTING = 3.0
"""A store of this host has answered by then. One that is elsewhere may not, but a link to it may be closed any time."""

T = TypeVar("T")
R = TypeVar("R")


def at_once(crowd: Sequence[T], act: Callable[[T], R]) -> list[R]:
    """What each came back with, in order; if any raised, what the first of them raised."""
    line = Barrier(len(crowd))
    results: list[R | None] = [None] * len(crowd)
    errors: list[BaseException | None] = [AssertionError("it did not come back in time") for _ in crowd]

    def run(position: int) -> None:
        try:
            line.wait(PATIENCE)
            results[position] = act(crowd[position])
            errors[position] = None
        except BaseException as error:
            errors[position] = error

    threads = [Thread(target=run, args=(position,), daemon=True) for position in range(len(crowd))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    finally:
        _see_off(threads, line)
    for error in errors:
        if error is not None:
            raise error
    return results  # type: ignore[return-value]


def _see_off(threads: list[Thread], line: Barrier) -> None:
    """Whoever is interrupted closes the links next. A connection to SQLite that is in use would not survive that, and
    the process neither."""
    line.abort()
    end = monotonic() + PARTING
    for thread in threads:
        if thread.is_alive():
            thread.join(max(end - monotonic(), 0))
