"""Lock services for tests: on stores in memory, on clocks that a test moves, with stores that fail as they are told."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from trinco.core.errors import StoreUnavailable
from trinco.leases.accesses import Access
from trinco.leases.keys import Keyring, MacKey
from trinco.locks.aio.waiting import AsyncWaiting
from trinco.locks.lease import Lease
from trinco.locks.lock import Lock
from trinco.locks.service import LockService
from trinco.locks.waiting import Waiting
from trinco.stores.clock import boottime
from trinco.stores.memory import MemoryStore
from trinco.stores.store import Link, Store
from trinco.testing import Behaviour, LyingStore
from trinco.testing.lying import WrappedLink

LIMIT = 10.0
KEYS = Keyring(MacKey(b"a secret of 32 bytes, no more..!"))


class Clock:
    """Stands still until it is moved, and wakes nobody: what happens to a process that is not run meanwhile."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


class TamperedStore(Store):
    """A store whose replies go through ``tamper``; before each access ``before`` is called."""

    __slots__ = ("before", "store", "tamper")

    def __init__(
        self,
        store: Store,
        tamper: "Callable[[Any], Any]" = lambda reply: reply,
        before: "Callable[[Access], None]" = lambda access: None,
    ) -> None:
        super().__init__(store.url, store.kind, store.domain, local=store.local, t_max=store.t_max)
        self.store = store
        self.tamper = tamper
        self.before = before

    def connect(self, address: str, timeout: float = 5.0) -> Link:
        return TamperedLink(self, self.store.connect(address, timeout))


class TamperedLink(WrappedLink):
    __slots__ = ("_owner",)

    def __init__(self, owner: TamperedStore, honest: Link) -> None:
        super().__init__(honest)
        self._owner = owner

    def send(self, resource: str, access: Access) -> Any:
        self._owner.before(access)
        return self._owner.tamper(self._honest.send(resource, access))


class Outage:
    """Makes a tampered store fail while it ``lasts``."""

    def __init__(self) -> None:
        self.lasts = False

    def begin(self) -> None:
        self.lasts = True

    def __call__(self, access: Access) -> None:
        if self.lasts:
            raise StoreUnavailable("memory:outage: there is no such store right now")


class Silence:
    """Has a tampered store of memory answer nothing while it ``lasts``."""

    def __init__(self) -> None:
        self.lasts = False

    def begin(self) -> None:
        self.lasts = True

    def __call__(self, reply: Any) -> Any:
        return None if self.lasts else reply


class SlowToConnect(Store):
    """Far away, and its connections take until ``answer`` is set."""

    __slots__ = ("answer", "asked", "fails", "store")

    def __init__(self, store: Store, answer: Event) -> None:
        super().__init__(store.url, store.kind, store.url, local=False, t_max=store.t_max)
        self.store = store
        self.answer = answer
        self.asked = Event()
        self.fails = False

    def connect(self, address: str, timeout: float = 5.0) -> Link:
        self.asked.set()
        self.answer.wait(LIMIT)
        if self.fails:
            raise StoreUnavailable(f"{self.url} is not there after all")
        return self.store.connect(address, timeout)


def one_store(store: Store | None = None, **options: Any) -> LockService:
    return LockService([store or MemoryStore("one")], **options)


def unattended(store: Store, clock: Clock) -> LockService:
    """Nobody renews in the background, and nobody finds a loss before the test does."""
    service = one_store(store, clock=clock)
    service.desk.keeper = None
    return service


def four_stores(**options: Any) -> list[Store]:
    return [MemoryStore(str(each), **options) for each in range(4)]


def quorum(stores: "list[Store]", *, keyring: Keyring = KEYS, **options: Any) -> LockService:
    return LockService(stores, 1, keyring=keyring, **options)


def with_a_liar(behaviour: "Behaviour | str", position: int = 0) -> list[Store]:
    stores = four_stores()
    stores[position] = LyingStore(stores[position], behaviour, delay=0.05)
    return stores


def take(lock: Lock) -> Lease:
    """The lease on a lock that is free."""
    lease = lock.try_acquire()
    assert lease is not None, f"{lock} is free, and was refused"
    return lease


class Waiter:
    """A thread that waits for a lock and keeps it until it is told to let go."""

    def __init__(self, lock: Lock, timeout: float | None = LIMIT) -> None:
        self.lease: Lease | None = None
        self.error: BaseException | None = None
        self.seconds = 0.0
        self._lock = lock
        self._timeout = timeout
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        began = boottime()
        try:
            self.lease = self._lock.hold(self._timeout).__enter__()
        except BaseException as error:
            self.error = error
        self.seconds = boottime() - began

    def join(self, limit: float = LIMIT) -> Lease:
        """What it got."""
        self._thread.join(limit)
        assert not self._thread.is_alive(), "it still waits"
        if self.error is not None:
            raise self.error
        assert self.lease is not None
        return self.lease


def in_line(service: LockService, name: str, how_many: int = 1) -> None:
    """Returns when so many wait."""
    eventually(lambda: len(service.inspect(name).waiters) >= how_many)


def sleeps_for_long(waiting: "Waiting | AsyncWaiting") -> bool:
    """Whether whoever is at the poller has nothing to do for half a second."""
    return waiting._at_poller != 0 and waiting._rises_at > waiting.hub.clock() + 0.5


def eventually(holds: Callable[[], object], limit: float = LIMIT) -> None:
    end = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert took <= seconds, f"it took {took:.2f} s, and {seconds} s were allowed"


class Crowd:
    """Threads that all do the same until they are done; what went wrong in any of them is raised by ``join``."""

    def __init__(self, work: Callable[[int], object], how_many: int) -> None:
        self._wrong: list[BaseException] = []
        self._threads = [Thread(target=self._run, args=(work, each), daemon=True) for each in range(how_many)]
        for thread in self._threads:
            thread.start()

    def _run(self, work: Callable[[int], object], number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            self._wrong.append(error)

    def join(self, limit: float = 3 * LIMIT) -> None:
        end = time.monotonic() + limit
        for thread in self._threads:
            thread.join(max(end - time.monotonic(), 0))
        if self._wrong:
            raise self._wrong[0]
        assert not any(thread.is_alive() for thread in self._threads), "a thread never finished"
