"""A lock, as a user holds it: the shape of ``threading.Lock``, and ``hold`` for a ``with`` block."""

from trinco.core.errors import NotHeld, UsageError
from trinco.locks.books import loss
from trinco.locks.inspection import LockInfo
from trinco.locks.lease import Lease
from trinco.locks.options import Options, require_timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from types import TracebackType

    from trinco.locks.service import LockService


class Lock:
    """One name, to be held by one at a time, among all who use the same stores.

        with locks.lock("nightly").hold(timeout=10) as lease:
            write(fence=lease.token)

    One ``Lock`` may be shared by many threads; each ``hold`` is a holder of its own, so they exclude each other.
    """

    def __init__(self, service: "LockService", name: str, resources: "tuple[str, ...]", options: Options) -> None:
        self._service = service
        self._resources = resources
        self._options = options
        self._depth: dict[int, int] = {}
        self._acquired: list[tuple[int, Lease]] = []
        """What ``acquire`` got and ``release`` has not given back, with the thread that asked."""
        self.name = name

    @property
    def lease(self) -> Lease | None:
        """What ``acquire`` got last; None when it is not held. ``hold`` and ``try_acquire`` hand theirs out instead."""
        return self._acquired[-1][1] if self._acquired else None

    def hold(self, timeout: "float | timedelta | None" = None) -> "Hold":
        """For a ``with`` block: waits until the lock is ours, for ever or for ``timeout`` seconds, and gives it back at
        the end. Raises ``AcquireTimeout``; and ``LeaseLost`` at the end if it was not ours all the time."""
        return Hold(self, require_timeout(timeout))

    def try_acquire(self) -> Lease | None:
        """The lease if it can be had at once, else None."""
        return self._service.desk.obtain(self.name, self._resources, self._options, 0)

    def acquire(self, blocking: bool = True, timeout: "float | timedelta" = -1) -> bool:
        """As ``threading.Lock.acquire``: whether we got it. The lease is then in ``lease``."""
        patience = require_timeout(timeout)
        if not blocking:
            if patience is not None:
                raise UsageError("acquire(blocking=False) does not wait: it takes no timeout")
            patience = 0
        if self._options.reentrant and self._enter_again():
            return True
        lease = self._service.desk.obtain(self.name, self._resources, self._options, patience)
        if lease is None:
            return False
        self._keep(lease)
        return True

    def release(self) -> None:
        """Give back what ``acquire`` got: what this thread acquired last, or else whoever did. Any thread may."""
        if not self._acquired:
            raise NotHeld(f"the lock '{self.name}' is not held by this object: there is nothing to release")
        if self._options.reentrant and self._leave() > 0:
            return
        me = _thread()
        places = [place for place, (who, _) in enumerate(self._acquired) if who == me]
        _, lease = self._acquired.pop(places[-1] if places else -1)
        lease.release()

    def inspect(self) -> LockInfo:
        """Who holds it, and who waits."""
        return self._service.inspect(self.name)

    @property
    def clock(self) -> "Callable[[], float]":
        return self._service.desk.hub.clock

    def locked(self) -> bool:
        """Whether anybody holds it, here or elsewhere."""
        return self._service.is_held(self._resources)

    def enter(self, timeout: float | None) -> Lease:
        """For ``hold``: a holder of its own, or, re-entrant, this thread's."""
        if not self._options.reentrant:
            return self._obtained(timeout)
        if not self._enter_again():
            self._keep(self._obtained(timeout))
        lease = self.lease
        assert lease is not None
        return lease

    def leave(self, lease: Lease) -> None:
        if self._options.reentrant and any(lease is each for _, each in self._acquired):
            self.release()
        else:
            lease.release()

    def _keep(self, lease: Lease) -> None:
        self._acquired.append((_thread(), lease))
        if self._options.reentrant:
            self._depth = {_thread(): 1}

    def _obtained(self, timeout: float | None) -> Lease:
        lease = self._service.desk.obtain(self.name, self._resources, self._options, timeout)
        if lease is None:
            raise self._service.timed_out(self.name, self._resources, timeout)
        return lease

    def _enter_again(self) -> bool:
        me, lease = _thread(), self.lease
        if lease is None or me not in self._depth or not lease.valid:
            return False
        self._depth[me] += 1
        return True

    def _leave(self) -> int:
        me = _thread()
        if me not in self._depth:
            raise NotHeld(f"the lock '{self.name}' is held by another thread of this process")
        self._depth[me] -= 1
        return self._depth[me]

    def __enter__(self) -> Lease:
        self.acquire()
        me = _thread()
        return next(lease for who, lease in reversed(self._acquired) if who == me)

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        mine = next((lease for who, lease in reversed(self._acquired) if who == _thread()), None)
        if mine is None:
            return
        self.release()
        if mine.reason is not None and error is None:
            raise loss(mine)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class Hold:
    """One stay inside a lock."""

    __slots__ = ("_lock", "_timeout", "lease")

    def __init__(self, lock: Lock, timeout: float | None) -> None:
        self._lock = lock
        self._timeout = timeout
        self.lease: Lease | None = None

    def __enter__(self) -> Lease:
        self.lease = self._lock.enter(self._timeout)
        return self.lease

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        lease, self.lease = self.lease, None
        if lease is None:
            return
        self._lock.leave(lease)
        if lease.reason is not None and error is None:
            raise loss(lease)


def _thread() -> int:
    from _thread import get_ident

    return get_ident()


class Semaphore(Lock):
    """``limit`` units; a lease's ``slot`` says which one it is, and tokens rise within a slot."""

    @property
    def limit(self) -> int:
        return len(self._resources)

    def inspect(self) -> LockInfo:
        """One of those who are in, if anybody is: the one whose term ends first. ``locked`` tells whether all are."""
        units = [self._service.inspect(resource) for resource in self._resources]
        held = [unit for unit in units if unit.held]
        return min(held or units, key=lambda unit: unit.remaining).but(name=self.name)

    def locked(self) -> bool:
        """Whether every unit is taken."""
        return all(self._service.is_held((resource,)) for resource in self._resources)
