"""A database file that holds locks: opened, described, and its errors in words.

The file says which boot of which machine its times belong to:

=================  =======================================================================================
same boot          the times are ours
another boot of    whoever held or waited died with the host: all leases and lines are void. Without an
the same machine   fsync per commit the last ones may be lost, so every token is raised above a floor that
                   is on the disk before anybody is granted anything
another machine    a copy, or a disk that was moved: nothing is granted until the longest lease is over
=================  =======================================================================================
"""

import _sqlite3 as sqlite3  # what sqlite3 is made of: the rest loads datetime
import os
import time
from stat import S_ISREG

from trinco.core.errors import StoreForbidden, StoreUnavailable
from trinco.leases.operation import TOKEN_LIMIT
from trinco.stores.boot import Boot, mounts, network_filesystem
from trinco.stores.clock import wall_microseconds
from trinco.stores.sqlite_companions import (
    COMPANIONS,
    NOWHERE,
    Companions,
    companions_of,
    found_beside,
    identity_of,
)
from trinco.stores.sqlite_description import FORMAT, LOCK, START_ANEW, STORE, described, what_is_strange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from trinco.stores.sqlite_companions import Identity
    from trinco.stores.sqlite_description import Description

    Result = TypeVar("Result")

TOKENS_PER_BOOT = 2**20
"""How far the floor rises at a reboot, at the least: the time of day may be wrong then."""
SPINS = 2
LONGEST_PAUSE = 0.003

_BEGIN_STORE = """INSERT OR IGNORE INTO trinco_store (one, format, boot_id, machine_id, clock_offset, floor, t_max)
    VALUES (1, ?, ?, ?, ?, ?, ?)"""
_LARGEST = "SELECT max(token) FROM trinco_lock WHERE typeof(token) = 'integer' AND token < ?"
_VOID = """UPDATE trinco_lock SET version = version + 1,
    token = CASE WHEN token < :last THEN max(token, :floor) ELSE max(token, :exhausted) END,
    owner = NULL, attempt = NULL, until = NULL, ticket = NULL, committed = NULL, entry = NULL, waiters = NULL"""
_MOVE_IN = """UPDATE trinco_store SET boot_id = ?, machine_id = ?, clock_offset = ?, floor = ?, t_max = ?,
    newcomer = NULL, newcomer_since = NULL"""


class Patience:
    """How to wait for a file that another process is writing.

    SQLite's own way starves some of 8 busy processes for seconds. Ours: twice just let others run, then sleep for a
    random time of a growing range.
    """

    __slots__ = ("_end", "_pauses", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._pauses = 0

    def pause(self) -> bool:
        """Whether there is any left, after a pause."""
        if time.monotonic() >= self._end:
            return False
        exponent = self._pauses - SPINS
        self._pauses += 1
        time.sleep(0 if exponent < 0 else min(1e-4 * 2 ** min(exponent, 8), LONGEST_PAUSE) * os.urandom(1)[0] / 255)
        return True


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process was in the way, and nothing was done."""
    return _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)


def _primary(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


_IN_WORDS = {
    sqlite3.SQLITE_PERM: "we may not use this file: check who owns it and its folder",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only for us: make both writable, or choose another path",
    sqlite3.SQLITE_IOERR: "the disk failed us: check that it is healthy and not full",
    sqlite3.SQLITE_CORRUPT: f"the file is damaged: {START_ANEW}",
    sqlite3.SQLITE_FULL: "the disk is full: make room",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened: check that the path is right and that we may write there",
    sqlite3.SQLITE_NOTADB: "this is some other file, not an SQLite database: choose another path",
    sqlite3.SQLITE_BUSY: "other processes kept it busy: look for one that is stopped while it writes",
    sqlite3.SQLITE_PROTOCOL: "other processes kept it busy: look for one that is stopped while it writes",
}


FORBIDDEN = (sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY)
OPENING = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
DESCRIPTORS = 4
"""For the file, its log, the index of that, and their folder."""


def in_words(url: str, error: sqlite3.Error) -> StoreUnavailable:
    """One line: which store, what happened, what to do."""
    what = _IN_WORDS.get(_primary(error), "SQLite could not do it")
    if _primary(error) in OPENING:
        from trinco.stores import descriptors

        what = descriptors.ADVICE if descriptors.are_used_up(DESCRIPTORS) else what
    kind = StoreForbidden if _primary(error) in FORBIDDEN else StoreUnavailable
    return kind(f"{url}: {what} ({str(error).splitlines()[0] if str(error) else type(error).__name__})")


class Database:
    """An open file. ``path``: the file itself, where ``asked`` led when it was opened. ``floor``: no token of a new
    lock is smaller. ``closed_until``: before that moment nothing may be granted, because the file comes from another
    machine."""

    __slots__ = (
        "_asked",
        "_boot",
        "_clock",
        "_companions",
        "_identity",
        "_t_max",
        "closed_until",
        "connection",
        "floor",
        "path",
        "url",
    )

    def __init__(self, asked: str, boot: Boot, t_max: float, clock: "Callable[[], float]", timeout: float) -> None:
        self._asked = asked
        self.path = os.path.realpath(asked)
        self.url = f"sqlite:///{self.path}"
        self._boot = boot
        self._t_max = t_max
        self._clock = clock
        self.floor = 0
        self.closed_until: float | None = None
        self._companions: Companions | None = None
        self._require_folder()
        identity = self._usable()
        self.connection = self._opened()
        try:
            self._patiently(self._begin, timeout)
            self._identity = identity or identity_of(self.path)
            self._companions = companions_of(self._identity, found_beside(self.path))
            if identity_of(self._asked) == NOWHERE:
                self._asked = self.path  # it goes through a folder that is not there, and up again
            self.check_still_there()
        except BaseException:
            self.close()
            raise

    def _require_folder(self) -> None:
        folder = os.path.dirname(self.path)
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
        except OSError as error:
            kind = StoreForbidden if isinstance(error, PermissionError) else StoreUnavailable
            raise kind(
                f"{self.url}: its folder cannot be made: {error.strerror} ({error.filename}); choose another path"
            ) from None
        shared = network_filesystem(os.path.realpath(folder), mounts())
        if shared is not None:
            raise StoreUnavailable(
                f"{self.url} is on a network file system ({shared}), where locks of several machines cannot be "
                f"trusted: use a local disk, or a store on a server (redis://, postgresql://)"
            )

    def _usable(self) -> "Identity | None":
        """Which file it is, if there is one. Judged before SQLite opens it: even to read it would make files beside it
        that are ours, and that whoever may write this one may not."""
        try:
            found = os.stat(self.path)
        except PermissionError as error:
            raise StoreForbidden(
                f"{self.url}: we may not look into its folder ({error.strerror}): choose another path"
            ) from None
        except OSError:
            found = None
        if found is not None:
            self._require_plain(found)
        self._require_writable(os.path.dirname(self.path) if found is None else self.path)
        for companion in COMPANIONS:
            self._require_writable(self.path + companion)
        return None if found is None else (found.st_dev, found.st_ino)

    def _require_plain(self, found: os.stat_result) -> None:
        """SQLite's log goes by the file's name: who opens the same file by another one would not see what we write."""
        if not S_ISREG(found.st_mode):
            raise StoreUnavailable(f"{self.url} is no regular file, so it cannot be opened: choose another path")
        if found.st_nlink > 1:
            raise StoreUnavailable(
                f"{self.url} has {found.st_nlink} names (hard links), and who uses another of them would hold the same "
                f"lock: remove all but one, and link to that with ln -s"
            )

    def _require_writable(self, path: str) -> None:
        if _is_read_only(path):
            raise StoreForbidden(
                f"{self.url}: {path} is read-only for us, and even to look at a lock is to write: make it "
                f"writable, or choose another path"
            )

    def _opened(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(
                self.path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=64
            )
        except sqlite3.Error as error:
            raise in_words(self.url, error) from None

    def _patiently(self, action: "Callable[[], None]", timeout: float) -> None:
        patience = Patience(timeout)
        while True:
            try:
                return action()
            except sqlite3.Error as error:
                if not is_busy(error) or not patience.pause():
                    raise in_words(self.url, error) from None

    def close(self) -> None:
        self._companions = None
        try:
            self.connection.close()
        except sqlite3.Error:
            return  # its locks go with the process

    def exclusively(self, action: "Callable[[], Result]") -> "Result":
        """In one transaction that keeps other writers out from its beginning."""
        execute = self.connection.execute
        try:
            execute("BEGIN IMMEDIATE")  # in here: a signal's handler may raise as soon as it is done
            result = action()
            execute("COMMIT")
        finally:
            if self.connection.in_transaction:
                execute("ROLLBACK")
        return result

    def _durably(self, action: "Callable[[], Result]") -> "Result":
        """The same, and on the disk when it returns."""
        self.connection.execute("PRAGMA synchronous=FULL")
        try:
            return self.exclusively(action)
        finally:
            self.connection.execute("PRAGMA synchronous=NORMAL")

    # Whose times are these?

    def _begin(self) -> None:
        self.connection.execute("PRAGMA synchronous=NORMAL")
        self.connection.execute("PRAGMA wal_autocheckpoint=0")
        strange = what_is_strange(self.connection)
        if strange is not None:
            raise StoreUnavailable(f"{self.url}: {strange} stands where tables of ours should: {START_ANEW}")
        self.settle()
        if NOWHERE in found_beside(self.path):
            self._require_log()  # the file was restored from a copy in another mode
            self._described()  # SQLite makes the log when it first reads

    def settle(self) -> None:
        """Find out whether the times in the file are ours, and make them ours."""
        self.closed_until = None
        found = self._described() or self._created()
        if found.format != FORMAT:
            raise StoreUnavailable(
                f"{self.url} was made by another version of Trinco (format {found.format}, we know {FORMAT}): "
                f"use that version, or another path"
            )
        if found.boot.boot_id != self._boot.boot_id:
            found = self._durably(self._move_in)
        self._check_clock(found)
        if found.t_max < self._t_max:
            self.connection.execute("UPDATE trinco_store SET t_max = max(t_max, ?)", (self._t_max,))
        self.floor = found.floor

    def _described(self) -> "Description | None":
        try:
            return described(self.connection)
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return None
            raise
        except ValueError as error:
            raise StoreUnavailable(f"{self.url}: trinco_store is damaged ({error}): {START_ANEW}") from None

    def _described_by_now(self) -> "Description":
        found = self._described()
        if found is None:
            raise StoreUnavailable(f"{self.url}: trinco_store is damaged (it keeps nothing): {START_ANEW}")
        return found

    def _created(self) -> "Description":
        self.connection.execute("PRAGMA page_size=1024")  # a row is small, and each commit writes a page
        self._require_log()
        self._durably(self._create)
        return self._described_by_now()

    def _require_log(self) -> None:
        mode = self.connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            raise StoreUnavailable(
                f"{self.url}: its file system cannot share memory between processes: use a local disk"
            )

    def _create(self) -> None:
        boot = self._boot
        self.connection.execute(STORE)
        self.connection.execute(LOCK)
        self.connection.execute(
            _BEGIN_STORE,
            (FORMAT, boot.boot_id, boot.machine_id, boot.offset, wall_microseconds(), self._t_max),
        )

    def _move_in(self) -> "Description":
        """The file is from another boot. Another process may have been quicker, so it is read again."""
        found = self._described_by_now()
        if found.boot.boot_id != self._boot.boot_id:
            rebooted = found.boot.machine_id == self._boot.machine_id != ""
            if rebooted or self._has_waited(found):
                self._void(found)
        return self._described_by_now()

    def _has_waited(self, found: "Description") -> bool:
        """Whether the longest lease of the other machine is over, counted from when we first saw the file."""
        now = self._clock()
        if found.newcomer != self._boot.boot_id:
            self.connection.execute(
                "UPDATE trinco_store SET newcomer = ?, newcomer_since = ?", (self._boot.boot_id, now)
            )
        since = found.newcomer_since if found.newcomer == self._boot.boot_id else now
        end: float = since + max(found.t_max, self._t_max)
        self.closed_until = None if now >= end else end
        return now >= end

    def _void(self, found: "Description") -> None:
        """A lock that has next to no tokens left has none afterwards, and does not take them from the others."""
        last = TOKEN_LIMIT - TOKENS_PER_BOOT
        largest = self.connection.execute(_LARGEST, (last,)).fetchone()[0] or 0
        floor = max(found.floor + TOKENS_PER_BOOT, largest + TOKENS_PER_BOOT, wall_microseconds())
        floor = min(floor, TOKEN_LIMIT - 1)
        boot = self._boot
        self.connection.execute(_VOID, {"last": last, "floor": floor, "exhausted": TOKEN_LIMIT - 1})
        self.connection.execute(_MOVE_IN, (boot.boot_id, boot.machine_id, boot.offset, floor, self._t_max))

    def _check_clock(self, found: "Description") -> None:
        """Within one boot two processes may still have two clocks: containers with a time namespace of their own."""
        if found.boot.boot_id == self._boot.boot_id and found.boot.offset != self._boot.offset:
            raise StoreUnavailable(
                f"{self.url} is used by processes with another clock (a time namespace moved by {found.boot.offset}, "
                f"ours by {self._boot.offset}): use it from one of them only"
            )

    # Is it still there?

    def check_still_there(self) -> None:
        """A file that was removed or replaced excludes nobody who comes now. Nor do its log and its index: SQLite
        makes others for whoever opens the file next, and removes them only when nobody has it open."""
        if identity_of(self.path) != self._identity:
            raise self._replaced(self.path)
        beside = () if self._companions is None else self._companions.found  # none once it is closed
        for suffix, ours in zip(COMPANIONS, beside, strict=False):
            if ours == NOWHERE or identity_of(self.path + suffix) != ours:
                raise self._replaced(self.path + suffix)
        if self._asked != self.path and identity_of(self._asked) != self._identity:
            raise StoreUnavailable(
                f"{self.url}: {self._asked} led to this file and leads elsewhere since (a symbolic link was switched): "
                f"what it protected may be taken by others; connect again"
            )

    def _replaced(self, path: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self.url}: {path} was removed or replaced while it was in use: what it protected may be taken by "
            f"others; connect again"
        )


def _is_read_only(path: str) -> bool:
    """Whether it is there, and not for us to write. Somebody's SQLite may make it while we look: so we look again."""
    return not os.access(path, os.W_OK) and os.path.exists(path) and not os.access(path, os.W_OK)
