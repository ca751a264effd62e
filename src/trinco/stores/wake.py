"""Waking those who wait on this host.

A store that is only memory or a file can wake nobody by itself: whoever frees a lock rings at the first in line,
*after* the change has been committed, and whoever is rung at asks again. A ring that nobody answers tells that the
waiter is dead: it is taken out of the line, and the next one is rung at.

    holder                      first in line (killed)      second in line
    Release, commit
    ring  ------------------->  refused
    take it out, commit
    ring  ------------------------------------------------>  asks again, is granted
"""

import errno
import os
from stat import S_ISSOCK

from trinco.core.errors import StoreUnavailable
from trinco.leases.accesses import Access, Apply, Read, Versioned
from trinco.leases.claim import Claim
from trinco.leases.item import Item, Limits
from trinco.leases.operation import TOKEN_LIMIT, Answer, Grade, Operation, Request, Yield
from trinco.leases.owner import ADDRESS_DIGITS, address_of
from trinco.stores.clock import wall_microseconds
from trinco.stores.store import EXHAUSTED, NO_DESCRIPTOR, Failed, Hint, Link, is_of_the_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import TypeAlias

    from trinco.stores.store import Replied

    Change: TypeAlias = "tuple[Item, Answer, tuple[Claim, ...]]"
    """What ``Item.apply`` gives: the item afterwards, the answer, and whom to wake."""

GUESS_AHEAD = 3_600_000_000
"""A guessed token may be an hour ahead of our clock, in microseconds."""
LONGEST_OWNER = 4096
OLD = 60.0
"""Seconds after which a socket that never got its name is rubbish."""
UNNAMED = ".new"
WRITABLE_BY_OTHERS = 0o022
_DIGITS = frozenset("0123456789abcdef")
REFUSED = Grade.REFUSED
"""By a name of our own: to look a member up in its enum takes as long as a call."""


class NotNow(Exception):
    """The store was reached and did nothing; the text is one line for people."""


def without(item: Item, claim: Claim) -> "Change":
    """Take a dead waiter out of the line. Its lease, if it has one by now, is left alone: it runs to its end, because
    what it started may live on."""
    waiters = tuple(each for each in item.waiters if each.claim != claim)
    after = item if len(waiters) == len(item.waiters) else item.but(waiters=waiters)
    return after, _DROPPED, after.first_in_line()


_DROPPED = Answer(Grade.DONE)


def where_to_ring(owner: str) -> str | None:
    """The address in an owner's name; None for a name of another form: nobody can ring there, so it polls, and its
    silence proves nothing."""
    address = address_of(owner)
    return address if _is_address(address) else None


def _is_address(name: str) -> bool:
    return len(name) == ADDRESS_DIGITS and _DIGITS.issuperset(name)


class WakingLink(Link):
    """A link to a store that answers at once and leaves the waking to its clients."""

    __slots__ = ("_limits", "_url")

    def __init__(self, url: str, t_max: float, waiters: int) -> None:
        self._url = url
        self._limits = Limits(t_max, waiters)

    # What a store has to do

    def _transact(self, resource: str, change: "Callable[[Item, float], Change]") -> "Change":
        """Carry a change of an item out, all or nothing. Raises ``NotNow`` if it did nothing."""
        raise NotImplementedError

    def _read(self, resource: str) -> Versioned:
        raise NotImplementedError

    def _ring(self, owner: str) -> bool:
        """Send a hint; whether somebody may have heard it. Only a certain no is a no."""
        raise NotImplementedError

    def _listen(self) -> None:
        """From now on we can be rung at. Idempotent."""
        raise NotImplementedError

    # What every such link does

    def send(self, resource: str, access: Access) -> "Replied":
        try:
            if isinstance(access, Apply):
                return self._apply(resource, access.operation)
            if isinstance(access, Read):
                return self._read(resource)
        except NotNow as reason:
            return Failed(str(reason))
        raise TypeError(f"a store that runs operations has no {type(access).__name__}")

    def expect_hints(self, owner: str) -> None:
        self._listen()

    def _apply(self, resource: str, operation: Operation) -> Answer:
        limits = self._limits
        if isinstance(operation, Request) and operation.token is not None:
            # A file that was restored from a backup has forgotten tokens, and none was larger than the clock is.
            clock = wall_microseconds()
            limits = Limits(limits.t_max, limits.waiters, clock + GUESS_AHEAD, clock)

        def run(item: Item, now: float) -> "Change":
            change = item.apply(operation, now, limits)
            if change[0].token >= TOKEN_LIMIT:
                raise NotNow(f"{self._url}: '{resource}': {EXHAUSTED}; it was not done")
            if change[0].waiters and isinstance(operation, (Request, Yield)) and operation.wait:
                self._listen()  # before anybody can read that we wait, and ring
            return change

        for _ in range(limits.waiters):
            after, answer, woken = self._transact(resource, run)
            if woken and after.holder is None:
                self._wake(resource, woken[0])
            elif woken:
                self._ring(woken[0].owner)  # a holder: its silence proves nothing
            if after.holder is not None or answer.grade is not REFUSED:
                break
            if not self._is_blocked_by_dead(resource, after, operation.claim):
                break
        return answer

    def _is_blocked_by_dead(self, resource: str, item: Item, claim: Claim) -> bool:
        """Nobody holds, and we were refused: somebody else is first in line. Either it hears us, or it is dead and
        taken out."""
        first = item.first_in_line()
        if not first or first[0].owner == claim.owner or self._ring(first[0].owner):
            return False
        try:
            self._transact(resource, lambda found, now: without(found, first[0]))
        except NotNow:
            return False  # our own request was carried out all the same: we are in line
        return True

    def _wake(self, resource: str, claim: Claim) -> None:
        """Ring at the first in line who lives. What was asked for has been done, so whatever happens here must not
        look like a failure of it; a ring that is lost costs one poll."""
        try:
            while not self._ring(claim.owner):
                _, _, woken = self._transact(resource, lambda item, now, dead=claim: without(item, dead))  # type: ignore[misc]
                if not woken:
                    return
                claim = woken[0]
        except (NotNow, StoreUnavailable):
            return


class WakeFolder:
    """The sockets of those who wait for the locks of one database file: ``<file>-wake/<address>``.

    A socket gets its name only when it can already be rung at (it is bound under another name and moved), so a named
    socket that refuses belongs to nobody alive, and whoever sees that may remove it. Only a folder that is ours alone
    is used, and nothing but sockets with names of our form is removed from it: it may be a link to somebody's papers.
    """

    __slots__ = ("_address", "_descriptor", "_file", "_folder", "_inode", "_own", "_sender")

    def __init__(self, file: str, address: str) -> None:
        self._file = file
        self._folder = f"{file}-wake"
        self._address = address
        self._descriptor = NO_DESCRIPTOR
        self._inode = 0
        self._own: socket.socket | None = None
        self._sender: socket.socket | None = None

    def fileno(self) -> int:
        return NO_DESCRIPTOR if self._own is None else self._own.fileno()

    def listen(self) -> None:
        """Idempotent; a name that somebody has removed is taken anew, since without it we are taken for dead. Where it
        is impossible (the folder is another user's) we poll."""
        if self._own is not None and self._inode_of(self._address) == self._inode:
            return
        before, self._own = self._own, None
        self._close_folder()
        try:
            self._own = self._named()
        except OSError as error:
            if not is_of_the_system(error):
                raise
        finally:
            if before is not None:
                before.close()  # not earlier: who polls must see that the new one has another number

    def _named(self) -> "socket.socket":
        self._make()
        self._descriptor = _entered(self._folder)
        self._sweep(self._descriptor)
        own = _datagrams()
        try:
            unnamed = f"{self._address}{UNNAMED}"
            own.bind(self._place(unnamed))
            self._inode = _status(self._descriptor, unnamed).st_ino
            os.rename(unnamed, self._address, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except BaseException:
            own.close()
            raise
        return own

    def _make(self) -> None:
        """Root makes none for a file of somebody else, who could not use it."""
        if os.stat(self._file).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it is for the owner of the file", self._folder)
        try:
            os.mkdir(self._folder, 0o700)
        except FileExistsError:
            return  # somebody else has waited before

    def ring(self, owner: str) -> bool:
        address = where_to_ring(owner)
        if address is None:
            return True
        try:
            self._socket().sendto(owner.encode(), self._place(address))
        except OSError as error:
            if not is_of_the_system(error):
                raise
            return not self._is_dead(error, address)
        return True

    def _is_dead(self, error: OSError, address: str) -> bool:
        """No socket, or one that nobody listens to, in a folder where only we could have removed it. Anything else (a
        full buffer, no permission, no folder at all) proves nothing."""
        if error.errno not in (errno.ECONNREFUSED, errno.ENOENT):
            return False
        try:
            folder = _entered(self._folder)
        except OSError:
            return False
        try:
            _remove_socket(folder, address)
        finally:
            os.close(folder)
        return True

    def heard(self) -> list[Hint]:
        """The hints that have arrived."""
        hints: list[Hint] = []
        while self._own is not None:
            try:
                hints.append(Hint(self._own.recv(LONGEST_OWNER).decode(errors="replace")))
            except BlockingIOError:
                break
        return hints

    def close(self) -> None:
        """Another link of this process may have taken the name over: then it stays."""
        if self._own is not None and self._inode_of(self._address) == self._inode:
            _remove_socket(self._descriptor, self._address)
        self.forget()

    def forget(self) -> None:
        """Close what is open and leave the name: after a fork it is our parent's."""
        for each in (self._own, self._sender):
            if each is not None:
                each.close()
        self._own = self._sender = None
        self._close_folder()

    def _close_folder(self) -> None:
        if self._descriptor != NO_DESCRIPTOR:
            os.close(self._descriptor)
            self._descriptor = NO_DESCRIPTOR

    def _socket(self) -> "socket.socket":
        if self._own is not None:
            return self._own
        if self._sender is None:
            self._sender = _datagrams()
        return self._sender

    def _place(self, name: str) -> str:
        """A path that fits into a socket address (108 bytes), however deep the folder is."""
        path = f"{self._folder}/{name}"
        if len(os.fsencode(path)) < 100:
            return path
        if self._descriptor == NO_DESCRIPTOR:
            self._descriptor = _entered(self._folder)
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def _inode_of(self, name: str) -> int:
        try:
            return os.stat(f"{self._folder}/{name}").st_ino
        except OSError as error:
            if not is_of_the_system(error):
                raise
            return 0

    def _sweep(self, folder: int) -> None:
        """Remove what dead processes left behind."""
        for name in os.listdir(folder):
            if not _may_be_dead(folder, name):
                continue
            probe = _datagrams()
            try:
                probe.connect(self._place(name))
            except ConnectionRefusedError:
                _remove_socket(folder, name)
            except OSError:
                pass
            finally:
                probe.close()


def _entered(folder: str) -> int:
    """A descriptor of the folder. Raises ``OSError`` unless it is a real one, ours, and nobody else may write to it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid() or found.st_mode & WRITABLE_BY_OTHERS:
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "others may write there", folder)
    return descriptor


def _may_be_dead(folder: int, name: str) -> bool:
    """Whether it is called as our sockets are, and not just about to get its name."""
    if name.endswith(UNNAMED):
        return _is_address(name.removesuffix(UNNAMED)) and _is_old(folder, name)
    return _is_address(name)


def _is_old(folder: int, name: str) -> bool:
    try:
        return wall_microseconds() / 1e6 - _status(folder, name).st_mtime > OLD
    except OSError:
        return False


def _remove_socket(folder: int, name: str) -> None:
    """And nothing else: to connect to a file is refused, too."""
    try:
        if S_ISSOCK(_status(folder, name).st_mode):
            os.unlink(name, dir_fd=folder)
    except OSError:
        return  # somebody else was quicker


def _status(folder: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _datagrams() -> "socket.socket":
    import socket

    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made
