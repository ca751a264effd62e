"""Files that commands write: refused before the work if they cannot be written, and written when all has been told."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trinco.cli.streams import CannotWrite
from trinco.core.errors import UsageError
from trinco.core.trace import Recording

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def refuse_unwritable(*paths: Path | None) -> None:
    """Before the work, and not after it. None stands for a file that nobody asked for."""
    asked = [path for path in paths if path is not None]
    for number, path in enumerate(asked):
        if path in asked[:number]:
            raise UsageError(f"{path} is named twice: what is written last would be all that is left")
        try:
            _try(path)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _try(path: Path) -> None:
    existed = path.exists()
    if path.is_fifo() and os.access(path, os.W_OK):
        return  # its reader would take it for the end if it were opened and closed
    path.open("ab").close()
    if not existed:
        path.unlink()


def write_trace(path: Path, recording: Recording) -> None:
    with _complaining(path):
        recording.write(path)


def write_plot(path: Path, figure: "Figure") -> None:
    from trinco.view.plots import format_of, picture

    with _complaining(path):
        path.write_bytes(picture(figure, format_of(path.name)))


def write_text(path: Path, text: str) -> None:
    with _complaining(path):
        path.write_text(text, encoding="utf-8")


@contextmanager
def _complaining(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror}") from error
