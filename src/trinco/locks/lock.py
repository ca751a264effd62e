"""A lock, as a user holds it: the shape of ``threading.Lock``, and ``hold`` for a ``with`` block."""

from _thread import get_ident

from trinco.core.errors import NotHeld, TrincoError, UsageError, of_one_process
from trinco.locks.inspection import LockInfo
from trinco.locks.lease import Lease
from trinco.locks.options import Options, refuse_coroutines, require_timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta
    from types import TracebackType
    from typing import NoReturn

    from trinco.locks.service import LockService


class Lock:
    """One name, to be held by one at a time, among all who use the same stores.

        with locks.lock("nightly").hold(timeout=10) as lease:
            write(fence=lease.token)

    One ``Lock`` may be shared by many threads; each ``hold`` is a holder of its own, so they exclude each other.

    ``with lock:`` has no handle to say which stay it ends: it gives back what its thread acquired last. Where blocks of
    one thread end in another order than they began, use ``hold``; see ``Semaphore``.
    """

    def __init__(self, service: "LockService", name: str, resources: "tuple[str, ...]", options: Options) -> None:
        refuse_coroutines(options.on_lost, "on_lost of a blocking lock")
        self._service = service
        self._resources = resources
        self._options = options
        self._acquired: list[Stay] = []
        """What ``acquire`` got and ``release`` has not given back. Other threads change it at any time."""
        self.name = name

    @property
    def lease(self) -> Lease | None:
        """What ``acquire`` got last; None when it is not held. ``hold`` and ``try_acquire`` hand theirs out instead."""
        last = self._acquired[-1:]
        return last[0].lease if last else None

    def hold(self, timeout: "float | timedelta | None" = None) -> "Hold":
        """For a ``with`` block: waits until the lock is ours, for ever or for ``timeout`` seconds, and gives it back at
        the end. Raises ``AcquireTimeout``; and ``LeaseLost`` at the end if it was not ours all the time."""
        return Hold(self, None if timeout is None else require_timeout(timeout))

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
        return self._entered(patience) is not None

    def release(self) -> None:
        """Give back what ``acquire`` got: what this thread acquired last, or else whoever did. Any thread may, but a
        re-entrant lock is given back by the thread that has it."""
        while not self._leave(self._stay_to_leave()):
            pass  # another thread was quicker with this one

    def inspect(self) -> LockInfo:
        """Who holds it, and who waits."""
        return self._service.inspect(self.name)

    @property
    def clock(self) -> "Callable[[], float]":
        """What time-outs are counted by."""
        return self._service.desk.hub.clock

    def locked(self) -> bool:
        """Whether anybody holds it, here or elsewhere."""
        return self._service.is_held(self._resources)

    def enter(self, timeout: float | None) -> Lease:
        """For ``hold``: a holder of its own, or, re-entrant, this thread's."""
        service, options = self._service, self._options
        if options.reentrant:
            lease = self._entered(timeout)
        else:
            lease = service.desk.obtain(self.name, self._resources, options, timeout)
        if lease is None:
            raise service.timed_out(self.name, self._resources, timeout)
        return lease

    def leave(self, lease: Lease) -> None:
        """For ``hold``: exactly this lease, once for each time that it was entered with."""
        stay = self._stay_with(lease) if self._acquired else None
        if stay is None or not self._leave(stay):
            lease.release()

    def _obtained(self, timeout: float | None) -> Lease | None:
        return self._service.desk.obtain(self.name, self._resources, self._options, timeout)

    def _entered(self, timeout: float | None) -> Lease | None:
        """Once more with what this thread has, if it may; else with a lease that is kept."""
        mine = self._last_of_this_thread() if self._options.reentrant else None
        if mine is not None and mine.lease.valid:
            mine.depth += 1
            return mine.lease
        lease = self._obtained(timeout)
        if lease is not None:
            try:
                self._acquired.append(Stay(lease))
            except BaseException:  # an interrupt: nobody will know that there is something to give back
                self.leave(lease)
                raise
        return lease

    def _leave(self, stay: "Stay") -> bool:
        """Once less; the last time, the lease goes. False if another thread has given it back meanwhile."""
        if stay.depth > 1:
            stay.depth -= 1
            return True
        try:
            self._acquired.remove(stay)
        except ValueError:
            return False
        except BaseException:
            self.leave_soon(stay.lease)
            raise
        stay.lease.release()
        return True

    def leave_soon(self, lease: Lease) -> None:
        """``leave``, for who was interrupted in it: once less, or else in the background."""
        stay = self._stay_with(lease)
        if stay is not None and stay.depth > 1:
            stay.depth -= 1
            return
        if stay is not None:
            self._acquired.remove(stay)
        lease.release_soon()

    def _stay_with(self, lease: Lease) -> "Stay | None":
        for stay in list(self._acquired):
            if stay.lease is lease:
                return stay
        return None

    def _stay_to_leave(self) -> "Stay":
        mine = self._last_of_this_thread()
        if mine is not None:
            return mine
        others = list(self._acquired)
        if not others:
            raise NotHeld(f"the lock '{self.name}' is not held by this object: there is nothing to release")
        if self._options.reentrant:
            raise NotHeld(f"the lock '{self.name}' is held by another thread of this process")
        return others[least_missed([stay.lease for stay in others])]

    def _last_of_this_thread(self) -> "Stay | None":
        me = get_ident()
        for stay in self._acquired[::-1]:
            if stay.thread == me:
                return stay
        return None

    def __enter__(self) -> Lease:
        lease = self._entered(None)
        if lease is None:
            raise self._service.timed_out(self.name, self._resources, None)
        return lease

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        if not self._acquired:
            return
        stay: Stay | None = None
        try:
            stay = leaving = self._stay_to_leave()  # another thread's, where a generator is ended by another thread
            _end_of_block(leaving.lease, lambda lease: self._leave(leaving), error)
        except TrincoError:
            raise
        except BaseException:
            self.leave_soon((stay or self._stay_to_leave()).lease)
            raise

    def __reduce__(self) -> "NoReturn":
        raise of_one_process("lock", "make another where it is needed: trinco.connect(...).lock(name)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class Stay:
    """A lease that is kept for the thread that took it. ``depth``: how often that thread has entered with it."""

    __slots__ = ("depth", "lease", "thread")

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.thread = get_ident()
        self.depth = 1


class Hold:
    """One stay inside a lock."""

    __slots__ = ("__weakref__", "_idle", "_lock", "_timeout", "lease")

    def __init__(self, lock: Lock, timeout: float | None) -> None:
        self._lock = lock
        self._timeout = timeout
        self._idle = [True]
        """Emptied by whoever enters, until they have left."""
        self.lease: Lease | None = None

    def __enter__(self) -> Lease:
        try:
            self._idle.pop()
        except IndexError:
            raise in_use() from None
        try:
            self.lease = self._lock.enter(self._timeout)
        except BaseException:
            self._idle.append(True)
            raise
        return self.lease

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        lease, self.lease = self.lease, None
        if lease is None:
            return
        try:
            _end_of_block(lease, self._lock.leave, error)
        except TrincoError:
            raise
        except BaseException:  # an interrupt: nobody else may know of this lease
            self._lock.leave_soon(lease)
            raise
        finally:
            self._idle.append(True)

    def __reduce__(self) -> "NoReturn":
        raise of_one_process("hold", "call hold() for each stay")

    def __repr__(self) -> str:
        return f"<Hold {self._lock.name!r} {'outside' if self.lease is None else self.lease}>"


def in_use() -> UsageError:
    """For whoever enters with a hold; not for the first, if several do at once."""
    return UsageError("this hold is in use already: call hold() for each stay")


def _end_of_block(lease: Lease, leave: "Callable[[Lease], object]", error: "BaseException | None") -> None:
    """The body's own error is the one to tell, whatever becomes of the lease."""
    try:
        leave(lease)
    except TrincoError:
        if error is None:
            raise
    if lease.reason is not None and error is None:
        raise lease.loss()


def least_missed(leases: "Sequence[Lease]") -> int:
    """Which of several leases to give back if it is not known whose it is: one that is over, or else the latest."""
    return next((place for place, lease in enumerate(leases) if not lease.valid), len(leases) - 1)


class Semaphore(Lock):
    """``limit`` units; a lease's ``slot`` says which one it is, and tokens rise within a slot.

    ``with semaphore:`` gives back the unit that its thread acquired last. If blocks of one thread end in another order
    than they began (generators, an ``ExitStack``), the one that ends first gives another one's unit back, and somebody
    else gets it while that one is still inside:

        with gpu as lease:              # wrong in a generator
        with gpu.hold() as lease:       # right: gives exactly this lease back
    """

    @property
    def limit(self) -> int:
        """How many may hold it at once."""
        return len(self._resources)

    def inspect(self) -> LockInfo:
        """One of those who are in, if anybody is: the one whose term ends first. ``locked`` tells whether all are."""
        units = [self._service.inspect(resource) for resource in self._resources]
        held = [unit for unit in units if unit.held]
        return min(held or units, key=lambda unit: unit.remaining).but(name=self.name)

    def locked(self) -> bool:
        """Whether every unit is taken."""
        return all(self._service.is_held((resource,)) for resource in self._resources)
