"""The three standard streams, in whatever state we were given them: closed, full, or of few characters."""

import io
import os
import sys

from trinco.core.errors import TrincoError
from trinco.core.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


class CannotWrite(TrincoError):
    """What a command has to say does not arrive."""


class Output(io.TextIOWrapper):
    """Standard output. What the terminal cannot show is escaped; what cannot be written is an error of its own, so that
    nobody takes it for one of a store. A reader that has seen enough (``| head``) is no error: what follows goes
    nowhere, and the command ends as it would have, since its exit code may still be looked at."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._give_up(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """What is still in a buffer goes nowhere: the interpreter would complain of it once more at the end."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            raise CannotWrite(f"cannot write the output: {error.strerror}") from None


class Complaints(io.TextIOWrapper):
    """Standard error. Where it cannot be written, the exit code has to do."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            return


def prepare_streams() -> None:
    """After this all three can be used, and none of them is None."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_closed_ones()
    sys.stdout = _made_anew(Output, sys.stdout)
    sys.stderr = _made_anew(Complaints, sys.stderr)


def _open_closed_ones() -> None:
    """Where one of the three was closed, the next file that is opened would take its place, and all that is written
    there."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (it stays open)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _made_anew(kind: type[io.TextIOWrapper], stream: "TextIO") -> "TextIO":
    if not isinstance(stream, io.TextIOWrapper):
        return stream  # somebody has put in something else
    return kind(
        stream.detach(),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def say(text: str) -> None:
    """One line for people, at once, if anybody reads it: a lock is looked after all the same if nobody does."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(f"trinco: {printable(' '.join(text.split()))}\n")
            sys.stderr.flush()
    except OSError:
        return


def say_nothing(text: str) -> None:
    """What is no error, to those who asked for silence."""
