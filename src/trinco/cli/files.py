"""Files that commands write."""

from pathlib import Path

from trinco.core.errors import UsageError
from trinco.core.trace import Recording


def write_trace(path: Path, recording: Recording) -> None:
    try:
        recording.write(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
