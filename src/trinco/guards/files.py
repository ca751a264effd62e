"""Fencing for files: beside the file stands the largest token that was ever accepted for it.

    guard = FileGuard("report.csv")
    guard.write(data, lease.token)             # replaces the file, whole or not at all
    guard.append(line, lease.token)
    with guard.open(lease.token) as file: ...  # a large file, piece by piece; replaced when the block ends

    report.csv.fence         the token; replaced, never changed in place, so a crash leaves the old one or the new one
    report.csv.fence.lock    what ``flock`` locks; nothing is in it and nobody removes it

**The order on disk.** Two files cannot change in one step, so the token goes first and is forced to disk before the
data is touched. After a crash between the two the token is there and the effect is not: older ones are refused, the
same one may try again. The other way round the data would be token 6's and the mark still 5, and a late 5 would pass.

Locks of this kind bind those who ask, on one host: whoever writes to the file without a guard is not stopped.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from time import monotonic, sleep
from typing import BinaryIO

from trinco.core.errors import DamagedData, StoreUnavailable
from trinco.guards.stale import require_current, require_token

BUSY_SECONDS = 30.0
POLL_SECONDS = 0.005


class Fence:
    """The mark of one resource, in a file, and the lock around it."""

    def __init__(self, path: str, resource: str, timeout: float = BUSY_SECONDS) -> None:
        self._path = path
        self._resource = resource
        self._timeout = timeout

    @contextmanager
    def fenced(self, token: int) -> Iterator[None]:
        """Nobody else is inside, the token is not older than any before, and that is on disk. Or ``StaleToken``."""
        require_token(token)
        with self._locked():
            highest = self.highest()
            require_current(self._resource, token, highest)
            if highest != token:
                replace(self._path, lambda file: file.write(f"{token} {self._resource}\n".encode()))
            yield

    def highest(self) -> int | None:
        try:
            with open(self._path, "rb") as file:
                return int(file.read().partition(b" ")[0])
        except FileNotFoundError:
            return None
        except ValueError:
            raise DamagedData(
                f"{self._path} does not begin with a token, so nothing can be let through: "
                "write into it the largest token that was ever in use"
            ) from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._lock(descriptor)
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child that was forked meanwhile still has it open
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        """Waits, but not for ever: somebody may have been stopped in the middle of a write."""
        end = monotonic() + self._timeout
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if monotonic() >= end:
                    raise StoreUnavailable(
                        f"somebody has been inside '{self._resource}' for {self._timeout:g} s: "
                        f"look who has {self._path}.lock open (fuser, lsof)"
                    ) from None
            sleep(POLL_SECONDS)


class FileGuard:
    """For one file. Two paths to it are one guard: links are followed."""

    def __init__(self, path: str | os.PathLike[str], timeout: float = BUSY_SECONDS) -> None:
        self._path = os.path.realpath(path)
        self._fence = Fence(f"{self._path}.fence", self._path, timeout)

    def write(self, data: bytes, token: int) -> None:
        """Replace the file. A reader sees the old one or the new one."""
        with self.open(token) as file:
            file.write(data)

    def append(self, data: bytes, token: int) -> None:
        """Add to the end of the file. A crash in the middle may leave a part of the data."""
        with self._fence.fenced(token):
            is_new = not os.path.exists(self._path)
            with open(self._path, "ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                _sync_folder(self._path)

    @contextmanager
    def open(self, token: int) -> Iterator[BinaryIO]:
        """A file to write in, which takes the place of the guarded one when the block ends well. Nothing is locked
        meanwhile: whoever is stopped within the block holds nobody up, and is refused at its end."""
        require_current(self._path, require_token(token), self.highest())
        with unfinished(self._path) as (file, finish):
            yield file
            with self._fence.fenced(token):
                finish()

    def highest(self) -> int | None:
        """The largest token accepted so far, None before the first."""
        return self._fence.highest()


class FolderGuard:
    """Marks for many resources, one file each, for effects that are elsewhere (see ``http``). One block is inside a
    resource at a time, also of those with the same token: one that waits for another of its own token, waits for
    itself, and is refused after ``timeout``."""

    def __init__(self, folder: str | os.PathLike[str], timeout: float = BUSY_SECONDS) -> None:
        self._folder = os.path.realpath(folder)
        self._timeout = timeout
        os.makedirs(self._folder, exist_ok=True)

    @contextmanager
    def fenced(self, resource: str, token: int) -> Iterator[None]:
        """A block in which nobody else changes this resource, with a token that is not older than any before. Or
        ``StaleToken``."""
        with self._fence(resource).fenced(token):
            yield

    def highest(self, resource: str) -> int | None:
        """The largest token accepted for it so far, None before the first."""
        return self._fence(resource).highest()

    def _fence(self, resource: str) -> Fence:
        """Any name fits: the file is called by its digest and says inside what it is for."""
        name = sha256(resource.encode()).hexdigest()[:32]
        return Fence(os.path.join(self._folder, f"{name}.fence"), resource, self._timeout)


# Files that appear whole


def replace(path: str, fill: Callable[[BinaryIO], object]) -> None:
    with unfinished(path) as (file, finish):
        fill(file)
        finish()


@contextmanager
def unfinished(path: str) -> Iterator[tuple[BinaryIO, Callable[[], None]]]:
    """A file beside ``path``, and what puts it in that place: content first, then the name, each forced to disk. A name
    that reached the disk before its content would be an empty file after a crash."""
    beside = f"{path}.{os.urandom(8).hex()}.new"
    try:
        with open(beside, "xb") as file:

            def finish() -> None:
                file.flush()
                _keep_mode(path, file.fileno())
                os.fsync(file.fileno())
                os.replace(beside, path)
                _sync_folder(path)

            yield file, finish
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)


def _keep_mode(path: str, descriptor: int) -> None:
    with suppress(FileNotFoundError):
        os.fchmod(descriptor, os.stat(path).st_mode & 0o7777)


def _sync_folder(path: str) -> None:
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
