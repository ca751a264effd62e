"""Locks in a database file of this host: one row per lock, changed by ``Item.apply``.

Without rivals an operation reads the row, applies itself, and writes the row back if nobody has since (the ``version``
tells). If somebody has, it does the same in a transaction that keeps other writers out. A link that has just taken a
lock knows the row and need not read it to give it back.

Times are seconds on the host's own clock (``clock.boottime``). ``nonce`` of a claim is not kept: here an owner and its
attempt are unique.
"""

import _sqlite3 as sqlite3  # what sqlite3 is made of: the rest loads datetime
import os

try:
    from _blake2 import blake2b  # hashlib would load OpenSSL, which takes longer than all the rest
except ImportError:
    from hashlib import blake2b

from trinco.core.errors import ConfigError, StoreUnavailable
from trinco.leases.accesses import Access, Apply, Versioned
from trinco.leases.item import Item
from trinco.leases.operation import Release
from trinco.stores.boot import Boot, this_boot
from trinco.stores.clock import boottime, wall_microseconds
from trinco.stores.sqlite_description import START_ANEW
from trinco.stores.sqlite_file import Database, Patience, in_words, is_busy
from trinco.stores.sqlite_row import columns_of, item_of
from trinco.stores.store import Store
from trinco.stores.wake import NotNow, WakeFolder, WakingLink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from trinco.stores.store import Replied, Said
    from trinco.stores.wake import Change

    Result = TypeVar("Result")
    Known = tuple[int, int, Item]
    """The key of a row, its version (0: there is none), and what it says."""

BUSY_SECONDS = 2.0
LOOK_AROUND_SECONDS = 1.0
COMMITS_PER_CHECKPOINT = 1000
"""A checkpoint takes 4 ms: two waits for the disk. The log grows to 1 MB."""
MOST_KNOWN = 1024
KEY_BITS = 2**63 - 1

_SELECT = """SELECT name, version, token, evidence, owner, attempt, until, ticket, committed, entry, waiters
    FROM trinco_lock WHERE id = ?"""
_UPDATE = """UPDATE trinco_lock SET version = version + 1, token = ?, evidence = ?, owner = ?, attempt = ?, until = ?,
    ticket = ?, committed = ?, entry = ?, waiters = ? WHERE id = ? AND version = ?"""
_INSERT = """INSERT INTO trinco_lock
    (token, evidence, owner, attempt, until, ticket, committed, entry, waiters, id, version, name)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? + 1, ?) ON CONFLICT DO NOTHING"""
_NAMES = """SELECT CAST(name AS BLOB) FROM trinco_lock
    WHERE typeof(name) = 'text' AND substr(name, 1, ?) = ? ORDER BY name"""

WAITERS = 64
"""So many fit into a row; those beyond poll."""


class SQLiteStore(Store):
    """``boot`` is for tests; None asks the system."""

    __slots__ = ("_asked", "_boot", "_clock")

    def __init__(
        self, path: str, *, t_max: float = 60.0, clock: "Callable[[], float]" = boottime, boot: Boot | None = None
    ) -> None:
        try:
            self._asked = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
        except FileNotFoundError:
            raise ConfigError(
                f"sqlite:///{path}: the current folder is gone: go to another one, or give the whole path"
            ) from None
        url = f"sqlite:///{os.path.realpath(self._asked)}"  # a link to a file is that file
        super().__init__(url, "one-access", "this host", local=True, t_max=t_max)
        self._clock = clock
        self._boot = boot

    def connect(self, address: str, timeout: float = 5.0) -> "SQLiteLink":
        """Where a symbolic link leads is asked each time: it may have been switched since."""
        boot = self._boot or this_boot()
        database = Database(self._asked, boot, self.t_max, self._clock, timeout)
        try:
            return SQLiteLink(database, WakeFolder(database.path, address), self.t_max, self._clock)
        except BaseException:
            database.close()
            raise


class SQLiteLink(WakingLink):
    __slots__ = (
        "_clock",
        "_commits",
        "_database",
        "_execute",
        "_known",
        "_look_around_at",
        "_process",
        "_shared",
        "_wakes",
    )

    def __init__(self, database: Database, wakes: WakeFolder, t_max: float, clock: "Callable[[], float]") -> None:
        super().__init__(database.url, t_max, WAITERS)
        self._database = database
        self._execute = database.connection.cursor().execute
        self._wakes = wakes
        self._clock = clock
        self._process = os.getpid()
        self._known: dict[str, Known] = {}
        self._shared: dict[str, int] = {}
        """What others turned out to use, and the version at which we left it."""
        self._look_around_at = 0.0
        # Processes that commit twice and end must checkpoint too, now and then: start anywhere.
        self._commits = wall_microseconds() % COMMITS_PER_CHECKPOINT

    # The interface

    def names(self, prefix: str = "") -> "Iterator[str]":
        try:
            self._check()
            rows = self._patiently(lambda: self._execute(_NAMES, (len(prefix), prefix)).fetchall())
        except NotNow as reason:
            raise StoreUnavailable(str(reason)) from None
        return (name for (written,) in rows if (name := _decoded(written)) is not None)

    def fileno(self) -> int:
        return self._wakes.fileno()

    def receive(self) -> "list[Replied | Said]":
        return [*self._wakes.heard()]

    def close(self) -> None:
        if os.getpid() != self._process:
            _left_to_the_parent.append(self._database)
            self._wakes.forget()
            return
        self._wakes.close()
        self._database.close()

    def disown(self) -> None:
        """SQLite remembers for each process which locks of the system it has, and a child has none of those that its
        parent got. With this connection open, the child's next one would believe that it has them, and others would
        remove the log under it. Closing takes nothing away from the parent: the system counts locks by process."""
        self._database.close()

    def __del__(self) -> None:
        if hasattr(self, "_process") and os.getpid() != self._process:  # else we were interrupted before it was whole
            _left_to_the_parent.append(self._database)

    # Changing an item

    def send(self, resource: str, access: Access) -> "Replied":
        reply = WakingLink.send(self, resource, access)
        if self._commits >= COMMITS_PER_CHECKPOINT:
            self._checkpoint_after(access)
        return reply

    def _transact(self, resource: str, change: "Callable[[Item, float], Change]") -> "Change":
        now = self._check()
        patience: Patience | None = None
        while True:
            try:
                return (
                    self._change_known(resource, change, now)
                    or self._change_read(resource, change, now)
                    or self._database.exclusively(lambda: self._change_locked(resource, change))
                )
            except sqlite3.Error as error:
                patience = self._be_patient(patience, error)
                now = self._check()
            except (OverflowError, UnicodeEncodeError) as error:
                raise NotNow(f"{self._database.url}: it was not done: {error}") from None

    def _change_known(self, resource: str, change: "Callable[[Item, float], Change]", now: float) -> "Change | None":
        """By what we remember of the row. Only the write tells whether that is right: None if somebody else has
        written since, or if there is nothing to write."""
        known = self._known.pop(resource, None)
        if known is None:
            return None
        result = change(known[2], now)
        if result[0] is known[2]:
            return None
        if not self._written(resource, known, result[0]):
            self._shared[resource] = known[1]
            return None
        self._remember(resource, known, result[0])
        return result

    def _change_read(self, resource: str, change: "Callable[[Item, float], Change]", now: float) -> "Change | None":
        """None if somebody else wrote between our read and our write. ``now`` may be earlier than the read: then a
        lease counts as live for a moment longer, which is the safe side."""
        found = self._found(resource)
        if self._shared.get(resource) == found[1]:
            del self._shared[resource]
        result = change(found[2], now)
        if result[0] is not found[2]:
            if not self._written(resource, found, result[0]):
                return None
            self._remember(resource, found, result[0])
        return result

    def _change_locked(self, resource: str, change: "Callable[[Item, float], Change]") -> "Change":
        """With other writers kept out. What it writes is not remembered: it may still be rolled back."""
        found = self._found(resource)
        result = change(found[2], self._clock())
        if result[0] is not found[2] and not self._written(resource, found, result[0]):
            raise self._damaged(resource, "it cannot be written, although other writers are kept out")
        return result

    def _found(self, resource: str) -> "Known":
        key = _key(resource)
        try:
            row = self._execute(_SELECT, (key,)).fetchone()
            if row is None:
                return key, 0, Item(max(wall_microseconds(), self._database.floor))
            if row[0] == resource:
                return key, row[1], item_of(row)
        except ValueError as error:
            raise self._damaged(resource, str(error)) from None
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
            raise self._damaged(resource, "a text is not in UTF-8") from None  # says Python, and not SQLite
        raise NotNow(f"{self._database.url}: '{resource}' has the same key as {row[0]!r}: choose another name")

    def _damaged(self, resource: str, how: str) -> StoreUnavailable:
        return StoreUnavailable(f"{self._database.url}: the row of '{resource}' is damaged ({how}): {START_ANEW}")

    def _written(self, resource: str, found: "Known", item: Item) -> bool:
        """Whether nobody else had written since."""
        key, version, _ = found
        if version:
            cursor = self._execute(_UPDATE, (*columns_of(item), key, version))
        else:
            cursor = self._execute(_INSERT, (*columns_of(item), key, version, resource))
        if cursor.rowcount != 1:
            return False
        self._commits += 1
        return True

    def _remember(self, resource: str, found: "Known", item: Item) -> None:
        """While nobody waits, the next to write is most likely us, and the row need not be read. A free lock that
        others turned out to use is not worth a guess, since a wrong one costs a write, until a read shows that we were
        the last to use it."""
        if item.waiters:
            return
        if item.holder is None and resource in self._shared:
            self._shared[resource] = found[1] + 1
            return
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
            self._shared.clear()
        self._known[resource] = found[0], found[1] + 1, item

    def _read(self, resource: str) -> Versioned:
        now = self._check()
        _, version, item = self._patiently(lambda: self._found(resource))
        return Versioned(item.counted_from(now), version)

    # Before and after

    def _check(self) -> float:
        """That this link may be used, now."""
        if os.getpid() != self._process:
            raise StoreUnavailable(
                f"{self._database.url}: this link was opened before a fork and belongs to process {self._process}: "
                f"connect again in the child"
            )
        now = self._clock()
        if now >= self._look_around_at:
            self._look_around(now)
        return now

    def _look_around(self, now: float) -> None:
        database = self._database
        database.check_still_there()
        if database.closed_until is not None:
            if now >= database.closed_until:
                self._patiently(database.settle)
            if database.closed_until is not None:
                raise NotNow(
                    f"{database.url} comes from another machine, where its locks may still be held: nothing is granted "
                    f"here for another {database.closed_until - now:.0f} s (t_max)"
                )
        self._look_around_at = now + LOOK_AROUND_SECONDS

    def _patiently(self, action: "Callable[[], Result]") -> "Result":
        patience: Patience | None = None
        while True:
            try:
                return action()
            except sqlite3.Error as error:
                patience = self._be_patient(patience, error)

    def _be_patient(self, patience: Patience | None, error: sqlite3.Error) -> Patience:
        if not is_busy(error):
            raise in_words(self._database.url, error) from None
        patience = patience or Patience(BUSY_SECONDS)
        if not patience.pause():
            raise NotNow(
                f"{self._database.url}: other processes kept it busy for {BUSY_SECONDS:g} s; it was not done"
            ) from None
        return patience

    def _checkpoint_after(self, access: Access) -> None:
        """What was committed goes from the log into the file, which is best done when nothing is held."""
        released = isinstance(access, Apply) and isinstance(access.operation, Release)
        if not released and self._commits < 4 * COMMITS_PER_CHECKPOINT:
            return
        self._commits = 0
        try:
            _, frames, _ = self._execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if frames > 2 * COMMITS_PER_CHECKPOINT:
                self._restart_log()
        except sqlite3.Error:
            return  # what was asked for is committed; if the disk is full the next commit will say so

    def _restart_log(self) -> None:
        """Where others write all the time, a checkpoint never gets to the end of the log: keep them out for a moment.
        For this one SQLite may wait in its own way."""
        self._execute("PRAGMA busy_timeout=50").fetchone()
        try:
            self._execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        finally:
            self._execute("PRAGMA busy_timeout=0").fetchone()

    # Waking

    def _ring(self, owner: str) -> bool:
        return self._wakes.ring(owner)

    def _listen(self) -> None:
        self._wakes.listen()


_left_to_the_parent: "list[Database]" = []
"""What a forked child must neither use nor close, since somebody may have been in the middle of using it."""


def _decoded(name: bytes) -> str | None:
    """None for what nobody can ask for."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None


def _key(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") & KEY_BITS
