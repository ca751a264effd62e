"""Locks within one process: for tests, for one program's threads, and for trying Trinco out.

Everything is lost with the process, and a forked child has no part in it: its copy would exclude nobody, so it is
refused.
"""

import os
from _thread import allocate_lock

from trinco.core.errors import StoreUnavailable
from trinco.leases.accesses import Versioned
from trinco.leases.item import Item
from trinco.stores.clock import boottime, wall_microseconds
from trinco.stores.store import NO_DESCRIPTOR, Hint, Store
from trinco.stores.wake import WakingLink, where_to_ring

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from trinco.stores.store import Replied, Said
    from trinco.stores.wake import Change

WAITERS = 1024


class MemoryStore(Store):
    """Its items are shared by all links of the same object; ``named`` gives one object per name."""

    __slots__ = ("clock", "items", "listeners", "mutex", "process")

    def __init__(self, name: str = "", *, t_max: float = 60.0, clock: "Callable[[], float]" = boottime) -> None:
        super().__init__(f"memory:{name}", "one-access", "this process", local=True, t_max=t_max)
        self.clock = clock
        self.items: dict[str, tuple[int, Item]] = {}
        self.listeners: dict[str, list[MemoryLink]] = {}
        self.mutex = allocate_lock()
        self.process = os.getpid()

    @staticmethod
    def named(name: str) -> "MemoryStore":
        """The store of that name in this process."""
        with _naming:
            store = _named.get(name)
            if store is None or store.process != os.getpid():
                store = _named[name] = MemoryStore(name)
            return store

    def connect(self, address: str, timeout: float = 5.0) -> "MemoryLink":
        self.check_process()
        return MemoryLink(self, address)

    def check_process(self) -> None:
        if os.getpid() != self.process:
            raise StoreUnavailable(
                f"{self.url} belongs to process {self.process}, and this is its forked child {os.getpid()}: "
                f"use a store that both can reach, such as sqlite:///locks.db"
            )


_named: dict[str, MemoryStore] = {}
_naming = allocate_lock()


def _new_item() -> tuple[int, Item]:
    return 0, Item(wall_microseconds())


class MemoryLink(WakingLink):
    __slots__ = ("_address", "_hints", "_reader", "_store", "_writer")

    def __init__(self, store: MemoryStore, address: str) -> None:
        super().__init__(store.url, store.t_max, WAITERS)
        self._store = store
        self._address = address
        self._hints: dict[str, None] = {}
        self._reader: socket.socket | None = None
        self._writer: socket.socket | None = None

    def names(self, prefix: str = "") -> "Iterator[str]":
        self._store.check_process()
        with self._store.mutex:
            found = sorted(name for name in self._store.items if name.startswith(prefix))
        return iter(found)

    def fileno(self) -> int:
        return NO_DESCRIPTOR if self._reader is None else self._reader.fileno()

    def receive(self) -> "list[Replied | Said]":
        with self._store.mutex:
            if self._hints and self._reader is not None:
                self._reader.recv(1)
            heard: list[Replied | Said] = [Hint(owner) for owner in self._hints]
            self._hints.clear()
        return heard

    def close(self) -> None:
        if self._reader is not None and os.getpid() == self._store.process:
            with self._store.mutex:
                self._store.listeners[self._address].remove(self)
        for each in (self._reader, self._writer):
            if each is not None:
                each.close()
        self._reader = self._writer = None

    def hear(self, owner: str) -> None:
        """Called with the mutex held, by whoever rings. One byte stands for all the hints that wait."""
        if not self._hints and self._writer is not None:
            self._writer.send(b"!")
        self._hints[owner] = None

    def _read(self, resource: str) -> Versioned:
        self._store.check_process()
        with self._store.mutex:
            version, item = self._store.items.get(resource) or _new_item()
        return Versioned(item.counted_from(self._store.clock()), version)

    def _transact(self, resource: str, change: "Callable[[Item, float], Change]") -> "Change":
        store = self._store
        store.check_process()
        with store.mutex:
            version, item = store.items.get(resource) or _new_item()
            result = change(item, store.clock())
            if result[0] is not item:
                store.items[resource] = version + 1, result[0]
        return result

    def _ring(self, owner: str) -> bool:
        address = where_to_ring(owner)
        if address is None:
            return True
        with self._store.mutex:
            listeners = self._store.listeners.get(address, ())
            for each in listeners:
                each.hear(owner)
        return bool(listeners)

    def _listen(self) -> None:
        """Without the mutex: a change that makes us wait calls this, and holds it."""
        if self._reader is not None:
            return
        from socket import socketpair

        self._reader, self._writer = socketpair()
        self._store.listeners.setdefault(self._address, []).append(self)
