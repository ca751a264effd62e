"""Files that commands write."""

from pathlib import Path
from typing import TYPE_CHECKING

from trinco.core.errors import UsageError
from trinco.core.trace import Recording

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_trace(path: Path, recording: Recording) -> None:
    try:
        recording.write(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def write_plot(path: Path, figure: "Figure") -> None:
    from trinco.view.plots import format_of, picture

    try:
        path.write_bytes(picture(figure, format_of(path.name)))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def refuse_unwritable(path: Path) -> None:
    """Before the work, and not after it."""
    existed = path.exists()
    try:
        path.open("ab").close()
        if not existed:
            path.unlink()
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
