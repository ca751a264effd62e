"""A folder as a store: what the hosts that share it can all list, write and delete. The paper's object store.

    /srv/locks/nightly/.name                 the lock's real name
    /srv/locks/nightly/held-5f0c...          one file an entry; ``cat`` shows who holds, for how long
    /srv/locks/nightly/token-93ab...         the largest fencing token; it stays when the lease is released

**Whole or not at all.** An entry is written under a dotted name that listings skip and then renamed. Its name is the
digest of its content: what the two disagree about (a disk that lost power, a file of somebody else) is *unknown*, and
counts as held until it is ``t_max`` old. No entry has a dotted name: what desktops and file servers leave behind
(``.DS_Store``, ``.nfs...``) is nothing. To put an entry again replaces it by itself, with a fresh stamp, as an object
store does; nothing else can have its name.

**Why a listing that is not a snapshot is enough.** All that is asked of the file system is that a file that was there
before a scan began, and is there when it ends, is seen. Say both A and B believe; B wrote its file last, then looked.
If A's file was there all the time, B saw it. If A removed it meanwhile, it had renewed: it wrote a file a', looked, saw
nobody, and only then removed the old one. Either A looked after B's write, and would have seen B; or a' was written
before A looked, so before B wrote, and B saw that.

**The clock** is the file system's, because that is the one all hosts share: on this host its wall clock, on a network
mount the server's. *Now* is the stamp of a file that we make in the same folder just before we scan it (a network mount
then also notices that what it remembers of the folder is out of date). Stamps are cut off, never rounded up, to a tick:
an entry may carry a stamp up to one tick before it was written, so others may think it a tick older than it is, and may
take the lease that much too early. The listing says so (``granularity``) and the client takes it off what it believes
(``Terms.allowing_for``). A clock that is set back only makes leases last longer. One that is *set forward* ends them
early: let it be slewed, as time daemons do, or allow for the step with ``sigma``.

Tokens are not forced to disk. A client's guess is at least its wall clock in microseconds, so a token file that a crash
took away is followed by a larger one.

A file system that hangs (a network mount without its server) hangs the caller: no operating system offers better.
"""

import errno
import os
from contextlib import suppress
from stat import S_ISREG
from time import monotonic

from trinco.core.errors import StoreForbidden, StoreUnavailable
from trinco.leases.accesses import Access, Delete, Done, List, Listing, Put, Reply
from trinco.leases.bases.listed import MANY_ROWS
from trinco.leases.claim import Claim
from trinco.leases.operation import TOKEN_LIMIT
from trinco.leases.row import Kind, Named, Row
from trinco.leases.terms import RHO, T_MAX
from trinco.stores import descriptors
from trinco.stores.clock import boottime
from trinco.stores.directory_entry import DIGEST_DIGITS, digest, file_name, read, written
from trinco.stores.store import EXHAUSTED, Failed, Link, Store, is_of_the_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Stamp = Callable[[], int]

MAX_FILE_BYTES = 8192
"""An entry of 4 KiB and what stands before it; a larger file is none of ours."""
MAX_FILES = 16_384
"""A folder with more is not scanned to its end."""
MAX_SEGMENT = 150
NAME_FILE = ".name"
UNFINISHED = ".new-"
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
VANISHED = (errno.ENOENT, errno.ESTALE)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)

FINEST_SECONDS = 0.01
"""No kernel's tick is longer, and newer ones stamp some files more finely than others: what one sees is no proof."""
PROBE_SECONDS = 0.05
COARSEST_SECONDS = 2.0
"""FAT: two seconds, cut off."""
SECOND_NS = 1_000_000_000


class DirectoryStore(Store):
    __slots__ = ("path",)

    def __init__(self, path: str, *, t_max: float = T_MAX) -> None:
        self.path = os.path.abspath(path)
        super().__init__(f"dir://{self.path}", "object", f"mount {mount_of(self.path)}", local=False, t_max=t_max)

    def connect(self, address: str, timeout: float = 5.0) -> "DirectoryLink":
        """Makes the folder if it is missing. ``address`` and ``timeout`` mean nothing to a file system."""
        try:
            os.makedirs(self.path, exist_ok=True)
            link = DirectoryLink(self)
            link.granularity = granularity_of(link.stamp)
        except OSError as error:
            raise self.unavailable(error) from error
        return link

    def unavailable(self, error: OSError) -> StoreUnavailable:
        kind = StoreForbidden if error.errno in FORBIDDEN else StoreUnavailable
        return kind(f"the store {self.url} cannot be used: {_in_words(error)}")


class DirectoryLink(Link):
    __slots__ = ("_ahead", "_count", "_exhausted", "_mark", "granularity", "store")

    def __init__(self, store: DirectoryStore) -> None:
        self.store = store
        self.granularity = COARSEST_SECONDS
        self._mark = os.urandom(8).hex()
        self._count = 0
        self._ahead: dict[tuple[str, int, int], float] = {}
        """Files with a stamp of the future, and when we first saw each."""
        self._exhausted: set[str] = set()
        """Folders that had the last token when they were listed."""

    def send(self, resource: str, access: Access) -> Reply:
        folder = os.path.join(self.store.path, segment(resource))
        try:
            if isinstance(access, List):
                return self._list(folder)
            if isinstance(access, Put):
                return self._put(folder, resource, access.named)
            if isinstance(access, Delete):
                return self._delete(folder, access.key)
        except OSError as error:
            raise self.store.unavailable(error) from error
        return Failed(f"the store {self.store.url} is a folder: it cannot {type(access).__name__.lower()}")

    def names(self, prefix: str = "") -> "Iterator[str]":
        try:
            with os.scandir(self.store.path) as found:
                folders = [each.path for each in found if each.is_dir(follow_symlinks=False)]
            known = [_name_in(folder) for folder in folders]
        except OSError as error:
            raise self.store.unavailable(error) from error
        return iter(sorted(name for name in known if name is not None and name.startswith(prefix)))

    # The three accesses

    def _list(self, folder: str) -> Reply:
        """A lock that nobody has used has no folder; to look at it makes none."""
        try:
            now = self.stamp(folder)
        except FileNotFoundError:
            return Listing((), self.granularity)
        rows: list[Row] = []
        with os.scandir(folder) as found:
            for count, each in enumerate(found):
                if count >= MAX_FILES:
                    return Failed(self._too_many(folder))
                row = None if each.name.startswith(".") else self._row(each, now)
                if row is not None:
                    rows.append(row)
        self._note_last_token(folder, rows)
        return Listing(self._bounded(rows), self.granularity)

    def _note_last_token(self, folder: str, rows: list[Row]) -> None:
        last = any(row.is_token and row.named.token == TOKEN_LIMIT - 1 for row in rows)
        (self._exhausted.add if last else self._exhausted.discard)(folder)

    def _row(self, found: "os.DirEntry[str]", now: int) -> Row | None:
        """None for what was removed while we looked."""
        try:
            status = found.stat(follow_symlinks=False)
            named = _named(found, S_ISREG(status.st_mode))
        except OSError as error:
            if error.errno in VANISHED:
                return None
            raise
        age = (now - status.st_mtime_ns) / SECOND_NS
        return Row(named, age if age >= 0 else self._age_ahead(found.path, status))

    def _age_ahead(self, path: str, status: os.stat_result) -> float:
        """Of a file with a stamp of the future: a clock was set back, or somebody set the stamp. For how long we have
        seen this very file, by our own clock at its slowest: a holder would have put another in its place."""
        if len(self._ahead) > MAX_FILES:
            self._ahead.clear()
        now = boottime()
        seen = self._ahead.setdefault((path, status.st_ino, status.st_mtime_ns), now)
        return (now - seen) * (1 - RHO)

    def _bounded(self, rows: list[Row]) -> tuple[Row, ...]:
        """What crashes have left behind over the years must not lock everybody out: of too many rows, those that have
        run out are left out. They are listed at all only for their owners to remove."""
        if len(rows) > MANY_ROWS:
            rows = [row for row in rows if row.is_token or row.is_live(self.store.t_max)]
        return tuple(rows)

    def _too_many(self, folder: str) -> str:
        return (
            f"the store {self.store.url} has more than {MAX_FILES} files in {folder}: remove what crashes left behind, "
            f"and no token, with: find '{folder}' '(' -name 'held-*' -o -name 'waiting-*' ')' -mtime +1 -delete"
        )

    def _put(self, folder: str, resource: str, named: Named) -> Reply:
        """A renewal needs no token, and whoever holds the last one may keep it."""
        if folder in self._exhausted and named.kind is Kind.HELD and not named.renewal:
            return Failed(f"the store {self.store.url}: '{resource}': {EXHAUSTED}; it was not done")
        if not os.path.exists(os.path.join(folder, NAME_FILE)):
            os.makedirs(folder, exist_ok=True)
            self._write(folder, NAME_FILE, resource.encode())
        content = written(named)
        self._write(folder, file_name(named.kind, content), content)
        return Done()

    def _delete(self, folder: str, key: object) -> Reply:
        if not isinstance(key, Named):
            return Failed(f"the store {self.store.url} deletes entries of its own only, not {key!r}")
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, file_name(key.kind, written(key))))
        return Done()

    # Files that nobody sees before they are whole

    def _write(self, folder: str, name: str, content: bytes) -> None:
        unfinished = self._unfinished(folder)
        try:
            descriptor = _create(unfinished)
            try:
                _write_all(descriptor, content)
            finally:
                os.close(descriptor)
            os.rename(unfinished, os.path.join(folder, name))
        except OSError:
            _remove(unfinished)
            raise

    def stamp(self, folder: str | None = None) -> int:
        """The file system's time, in nanoseconds: what it writes on a file that is made in this moment."""
        probe = self._unfinished(self.store.path if folder is None else folder)
        descriptor = _create(probe)
        try:
            return os.fstat(descriptor).st_mtime_ns
        finally:
            os.close(descriptor)
            _remove(probe)

    def _unfinished(self, folder: str) -> str:
        """A name that no other link uses, on any host."""
        self._count += 1
        return os.path.join(folder, f"{UNFINISHED}{self._mark}-{self._count}")


def segment(resource: str) -> str:
    """A folder's name for a lock's: plain characters as they are, a capital as ^ and its small letter (for file systems
    that do not tell them apart), any other as its bytes in hexadecimal. What is too long ends in a digest."""
    encoded = "".join(map(_encoded, resource))
    if encoded.startswith("."):
        encoded = "%2e" + encoded[1:]
    if len(encoded) <= MAX_SEGMENT:
        return encoded
    return f"{encoded[: MAX_SEGMENT - DIGEST_DIGITS]}~{digest(resource.encode())}"


def _encoded(character: str) -> str:
    if character in PLAIN:
        return character
    if "A" <= character <= "Z":
        return "^" + character.lower()
    return "".join(f"%{byte:02x}" for byte in character.encode())


def mount_of(path: str) -> str:
    """Where the file system begins that a path is on: what is on one of them fails together."""
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    return path


def granularity_of(stamp: "Stamp", limit: float = PROBE_SECONDS) -> float:
    """How coarse the stamps are: the step from one to the next, or the worst that is in use where none is seen in
    time. Never less than a kernel's tick."""
    first = stamp()
    end = monotonic() + limit
    while (second := stamp()) == first and monotonic() < end:
        pass
    whole_seconds = first % SECOND_NS == second % SECOND_NS == 0
    if whole_seconds or second <= first:
        return COARSEST_SECONDS
    return min(max((second - first) / SECOND_NS, FINEST_SECONDS), COARSEST_SECONDS)


# What a listing makes of a file


def _named(found: "os.DirEntry[str]", regular: bool) -> Named:
    """What the file says, if it is one of ours and whole; if not, a lease of nobody knows whom: it is called by its
    place in the store."""
    content = _content(found.path) if regular else None
    named = None if content is None else read(content)
    if content is None or named is None or file_name(named.kind, content) != found.name:
        folder = os.path.basename(os.path.dirname(found.path))
        return Named(Kind.UNKNOWN, Claim(f"{folder}/{found.name}", 0), 0)
    return named


def _content(path: str) -> bytes | None:
    """None if it is too large, or not for us to read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        return None
    try:
        content = os.read(descriptor, MAX_FILE_BYTES + 1)
    finally:
        os.close(descriptor)
    return content if len(content) <= MAX_FILE_BYTES else None


def _name_in(folder: str) -> str | None:
    """The lock that a folder is for; None if it is for none."""
    try:
        content = _content(os.path.join(folder, NAME_FILE))
        return None if content is None else content.decode() or None
    except UnicodeDecodeError:
        return None
    except OSError as error:
        if error.errno in descriptors.USED_UP or not is_of_the_system(error):
            raise  # it says nothing about this folder
        return None


# The file system


def _create(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        if not is_of_the_system(error):
            raise


ADVICE = {
    errno.EACCES: "give this user the right to write there, or choose another folder",
    errno.EPERM: "give this user the right to write there, or choose another folder",
    errno.EROFS: "it is mounted read-only; remount it or choose another folder",
    errno.ENOSPC: "the disk is full; make room",
    errno.EDQUOT: "the quota is used up; make room",
    errno.ENOTDIR: "it must be a folder; remove the file or choose another path",
    errno.EEXIST: "it must be a folder; remove the file or choose another path",
}


def _in_words(error: OSError) -> str:
    if error.errno in descriptors.USED_UP:
        return descriptors.ADVICE
    advice = ADVICE.get(error.errno or 0, "look at that path, and at the file system that it is on")
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}; {advice}"
