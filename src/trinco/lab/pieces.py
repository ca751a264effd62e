"""Work that is cut into pieces which do not depend on each other, done here or on any executor."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from typing import Any, Protocol, TypeAlias

Listener: TypeAlias = Callable[[str, float], None]
"""Is told which piece has been done, and what share of all pieces that makes."""


class Piece(Protocol):
    """One that can be sent to another process: a frozen dataclass of plain values."""

    @property
    def title(self) -> str: ...

    def do(self) -> Any: ...


def do_all(pieces: Sequence[Piece], executor: Executor | None, listener: Listener | None) -> dict[Any, Any]:
    """What each piece came to. With several workers, the long ones should stand first."""
    done: dict[Any, Any] = {}
    for piece, result in _finished(pieces, executor):
        done[piece] = result
        if listener:
            listener(piece.title, len(done) / len(pieces))
    return done


def _finished(pieces: Iterable[Piece], executor: Executor | None) -> Iterator[tuple[Piece, Any]]:
    if executor is None:
        yield from ((piece, piece.do()) for piece in pieces)
        return
    tasks = {executor.submit(piece.do): piece for piece in pieces}
    for task in as_completed(tasks):
        yield tasks[task], task.result()
