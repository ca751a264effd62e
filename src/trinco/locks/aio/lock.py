"""A lock for tasks."""

from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

import anyio

from trinco.core.errors import NotHeld, TrincoError, UsageError, of_one_process
from trinco.locks.aio.lease import AsyncLease
from trinco.locks.inspection import LockInfo
from trinco.locks.lock import in_use, least_missed
from trinco.locks.options import Options, require_timeout

if TYPE_CHECKING:
    from trinco.locks.aio.service import AsyncLockService


class AsyncLock:
    """As ``Lock``: ``async with locks.aio.lock("nightly").hold() as lease``. Losing the lease cancels the body."""

    def __init__(self, service: "AsyncLockService", name: str, resources: tuple[str, ...], options: Options) -> None:
        self._service = service
        self._resources = resources
        self._options = options
        self.name = name
        self._acquired: list[tuple[int, AsyncLease]] = []
        """What ``acquire`` got and ``release`` has not given back, with the task that asked."""
        if options.reentrant:
            raise UsageError("a lock for tasks cannot be re-entered: hold() it once and pass the lease on")

    @property
    def lease(self) -> AsyncLease | None:
        """What ``acquire`` got last; None when it is not held."""
        return self._acquired[-1][1] if self._acquired else None

    def hold(self, timeout: float | timedelta | None = None) -> "AsyncHold":
        """For an ``async with`` block: waits for the lock, gives it back at the end, and cancels the body if the lease
        is lost; then ``LeaseLost`` is raised."""
        return AsyncHold(self, require_timeout(timeout))

    async def try_acquire(self) -> AsyncLease | None:
        """The lease if it can be had at once, else None. Nothing is cancelled when it is lost: see ``lost``."""
        return await self._service.desk.obtain(self.name, self._resources, self._options, 0)

    async def acquire(self, blocking: bool = True, timeout: float | timedelta = -1) -> bool:
        """As ``Lock.acquire``: whether we got it. The lease is then in ``lease``; nothing is cancelled when it is
        lost."""
        patience = require_timeout(timeout)
        if not blocking:
            if patience is not None:
                raise UsageError("acquire(blocking=False) does not wait: it takes no timeout")
            patience = 0
        lease = await self._service.desk.obtain(self.name, self._resources, self._options, patience)
        if lease is None:
            return False
        self._acquired.append((_task(), lease))
        return True

    async def release(self) -> None:
        """Give back what ``acquire`` got: what this task acquired last, or else whoever did."""
        if not self._acquired:
            raise NotHeld(f"the lock '{self.name}' is not held by this object: there is nothing to release")
        await self._acquired.pop(self._place_to_leave())[1].release()

    def _place_to_leave(self) -> int:
        """``asyncio.wait_for`` acquires in a task of its own."""
        me = _task()
        mine = [place for place, (who, _) in enumerate(self._acquired) if who == me]
        return mine[-1] if mine else least_missed([lease for _, lease in self._acquired])

    async def locked(self) -> bool:
        """Whether anybody holds it (all units of a semaphore), here or elsewhere."""
        for resource in self._resources:
            if not (await self._service.inspect(resource)).held:
                return False
        return True

    async def inspect(self) -> LockInfo:
        """Who holds it, and who waits."""
        return await self._service.inspect(self.name)

    @property
    def clock(self) -> Callable[[], float]:
        """What time-outs are counted by."""
        return self._service.desk.hub.clock

    async def obtain(self, timeout: float | None) -> AsyncLease:
        """For ``hold``: the lease, or ``AcquireTimeout``."""
        lease = await self._service.desk.obtain(self.name, self._resources, self._options, timeout)
        if lease is None:
            raise await self._service.timed_out(self.name, self._resources, timeout)
        return lease

    async def __aenter__(self) -> AsyncLease:
        if not await self.acquire():
            raise await self._service.timed_out(self.name, self._resources, None)
        me = _task()
        return next(lease for who, lease in reversed(self._acquired) if who == me)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._acquired:
            return
        _, lease = self._acquired.pop(self._place_to_leave())  # a generator may be ended by another task
        try:
            await lease.release()
        except TrincoError:
            if error is None:
                raise
        if lease.reason is not None and error is None:
            raise lease.loss()

    def __reduce__(self) -> NoReturn:
        raise of_one_process("lock", "make another where it is needed: trinco.connect(...).aio.lock(name)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def _task() -> int:
    return anyio.get_current_task().id


class AsyncSemaphore(AsyncLock):
    """As ``Semaphore``, for tasks."""

    @property
    def limit(self) -> int:
        """How many may hold it at once."""
        return len(self._resources)

    async def inspect(self) -> LockInfo:
        """One of those who are in, if anybody is: the one whose term ends first. ``locked`` tells whether all are."""
        units = [await self._service.inspect(resource) for resource in self._resources]
        held = [unit for unit in units if unit.held]
        return min(held or units, key=lambda unit: unit.remaining).but(name=self.name)


def _is_swallowed(
    scope: anyio.CancelScope,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> bool:
    """Leave a scope; whether what the body raised was its cancellation. A scope can be left only where it was
    entered: it belongs to that task, and nobody else can take it off."""
    try:
        return bool(scope.__exit__(kind, error, trace))
    except RuntimeError as mixed_up:
        if error is not None:
            return False
        raise UsageError(
            "the lock was given back, but by another task than the one that entered hold(), which cancels its own task"
            " when the lease is lost: leave it in the same task, or use try_acquire() and release()"
        ) from mixed_up


class AsyncHold:
    """One stay inside a lock. The body runs in a cancel scope that ends with the lease."""

    __slots__ = ("__weakref__", "_idle", "_lease", "_lock", "_scope", "_timeout")

    def __init__(self, lock: AsyncLock, timeout: float | None) -> None:
        self._lock = lock
        self._timeout = timeout
        self._idle = [True]
        """Emptied by whoever enters, until they have left."""
        self._lease: AsyncLease | None = None
        self._scope: anyio.CancelScope | None = None

    async def __aenter__(self) -> AsyncLease:
        try:
            self._idle.pop()
        except IndexError:
            raise in_use() from None
        try:
            lease = await self._lock.obtain(self._timeout)
        except BaseException:
            self._idle.append(True)
            raise
        self._lease = lease
        self._scope = lease.scope = anyio.CancelScope()
        self._scope.__enter__()
        if lease.reason is not None:
            self._scope.cancel()
        return lease

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        lease, scope = self._lease, self._scope
        assert lease is not None
        assert scope is not None
        lease.scope = self._lease = self._scope = None
        self._idle.append(True)
        try:
            await lease.release()
        except TrincoError:
            if error is None:
                raise
        finally:
            swallowed = _is_swallowed(scope, kind, error, trace)
        if lease.reason is not None and (error is None or swallowed):
            raise lease.loss()
        return swallowed

    def __reduce__(self) -> NoReturn:
        raise of_one_process("hold", "call hold() for each stay")

    def __repr__(self) -> str:
        return f"<AsyncHold {self._lock.name!r} {'outside' if self._lease is None else self._lease}>"
