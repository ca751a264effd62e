"""Locks within one process: for tests, for one program's threads, and for trying Trinco out.

Everything is lost with the process, and a forked child has no part in it: its copy would exclude nobody, so it is
refused.

The handler of a signal, or a finaliser, may interrupt a thread anywhere in here, and use the same store through another
service. It must not wait for the thread that it has interrupted, so nothing in here waits. Each version of an item has
one place for its successor, which only the first who comes can fill; whoever finds it taken starts over from there.

    a thread                              the handler of a signal in it
    reads version 7, works out an 8
                                          reads version 7, works out another 8, puts it after 7
    finds that one after 7, drops its own
    reads version 8, works out a 9, puts it after 8
"""

import os

from trinco.core.errors import StoreUnavailable
from trinco.leases.accesses import Versioned
from trinco.leases.item import Item
from trinco.stores.clock import boottime, wall_microseconds
from trinco.stores.store import NO_DESCRIPTOR, Hint, Store
from trinco.stores.wake import WakingLink, where_to_ring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from trinco.stores.store import Replied, Said
    from trinco.stores.wake import Change

    Kept: TypeAlias = "tuple[int, Item, dict[str, Kept]]"
    """A version of an item, its number, and, by the resource's name, the version that came after it."""

WAITERS = 1024
MOST_RINGS = 4096


class MemoryStore(Store):
    """Its items are shared by all links of the same object; ``named`` gives one object per name. ``kept``: where to
    begin to look for the newest version of each item. ``listeners``: who is to be rung at, by address."""

    __slots__ = ("clock", "kept", "listeners", "process")

    def __init__(self, name: str = "", *, t_max: float = 60.0, clock: "Callable[[], float]" = boottime) -> None:
        super().__init__(f"memory:{name}", "one-access", "this process", local=True, t_max=t_max)
        self.clock = clock
        self.kept: dict[str, Kept] = {}
        self.listeners: dict[str, MemoryLink] = {}
        self.process = os.getpid()

    @staticmethod
    def named(name: str) -> "MemoryStore":
        """The store of that name in this process."""
        key = os.getpid(), name
        return _named.get(key) or _named.setdefault(key, MemoryStore(name))

    def connect(self, address: str, timeout: float = 5.0) -> "MemoryLink":
        self.check_process()
        return MemoryLink(self, address)

    def newest(self, resource: str) -> "Kept":
        """Several steps from where we begin, if somebody was interrupted before they could say how far we are."""
        kept, after = None, self.kept
        while (found := after.get(resource)) is not None:
            kept, after = found, found[2]
        return kept or (0, Item(wall_microseconds()), after)

    def check_process(self) -> None:
        if os.getpid() != self.process:
            raise StoreUnavailable(
                f"{self.url} belongs to process {self.process}, and this is its forked child {os.getpid()}: "
                f"use a store that both can reach, such as sqlite:///locks.db"
            )


_named: dict[tuple[int, str], MemoryStore] = {}
"""By process: a child inherits those of its parent, and has its own."""


class Bell:
    """A pipe to ourselves. It is closed when the last who rings has let go of it, not earlier: by then the number of a
    closed one may be somebody else's."""

    __slots__ = ("_reader", "_writer")

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)

    def fileno(self) -> int:
        return self._reader

    def ring(self) -> None:
        try:
            os.write(self._writer, b"!")
        except BlockingIOError:  # it is full of what nobody has heard yet
            return

    def silence(self) -> None:
        try:
            os.read(self._reader, MOST_RINGS)
        except BlockingIOError:
            return

    def __del__(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


class MemoryLink(WakingLink):
    __slots__ = ("_address", "_bell", "_hints", "_store")

    def __init__(self, store: MemoryStore, address: str) -> None:
        super().__init__(store.url, store.t_max, WAITERS)
        self._store = store
        self._address = address
        self._hints: dict[str, None] = {}
        self._bell: Bell | None = None

    def names(self, prefix: str = "") -> "Iterator[str]":
        self._store.check_process()
        names = list(self._store.kept)
        return iter(sorted(name for name in names if name.startswith(prefix)))

    def fileno(self) -> int:
        return NO_DESCRIPTOR if self._bell is None else self._bell.fileno()

    def receive(self) -> "list[Replied | Said]":
        """The bell first: what is heard between the two rings again."""
        if self._bell is not None:
            self._bell.silence()
        return [Hint(owner) for owner in list(self._hints) if self._hints.pop(owner, self) is None]

    def close(self) -> None:
        if self._store.listeners.get(self._address) is self:
            self._store.listeners.pop(self._address, None)
        self._bell = None

    def hear(self, owner: str) -> None:
        """Called by whoever rings. The hint first: who finds the bell rung finds it."""
        self._hints[owner] = None
        bell = self._bell
        if bell is not None:
            bell.ring()

    def _read(self, resource: str) -> Versioned:
        self._store.check_process()
        version, item, _ = self._store.newest(resource)
        return Versioned(item.counted_from(self._store.clock()), version)

    def _transact(self, resource: str, change: "Callable[[Item, float], Change]") -> "Change":
        store = self._store
        store.check_process()
        while True:
            version, item, after = store.newest(resource)
            result = change(item, store.clock())
            if result[0] is item:
                return result
            ours: Kept = version + 1, result[0], {}
            if after.setdefault(resource, ours) is ours:
                store.kept[resource] = ours
                return result

    def _ring(self, owner: str) -> bool:
        address = where_to_ring(owner)
        if address is None:
            return True
        listener = self._store.listeners.get(address)
        if listener is not None:
            listener.hear(owner)
        return listener is not None

    def _listen(self) -> None:
        """Of several links of one address, the last that listens is rung at."""
        if self._bell is None:
            self._bell = Bell(*os.pipe())
        self._store.listeners[self._address] = self
