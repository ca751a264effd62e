"""Who leads, for tasks. The twin of ``locks.election``."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NoReturn, TypeVar

import anyio

from trinco.core.errors import StoreUnavailable, UsageError, of_one_process
from trinco.locks.aio.lease import AsyncLease
from trinco.locks.aio.lock import AsyncHold, AsyncLock
from trinco.locks.election import POLL
from trinco.locks.inspection import LockInfo
from trinco.locks.options import require_timeout

Result = TypeVar("Result")


class AsyncElection:
    """As ``Election``, for tasks: ``async with election.lead()``, or ``await election.run(callback)``."""

    def __init__(self, lock: AsyncLock) -> None:
        self._lock = lock
        self.name = lock.name

    def __reduce__(self) -> NoReturn:
        raise of_one_process("election", "make another where it is needed: trinco.connect(...).aio.election(name)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    async def leader(self) -> LockInfo | None:
        """Who leads, and in which term (``token``); None if nobody does."""
        info = await self._lock.inspect()
        return info if info.held else None

    async def wait_for_leader(self, timeout: float | timedelta | None = None) -> LockInfo | None:
        """The leader, if there is one or one comes within ``timeout``; else None. It is looked for four times a second:
        whoever leads for less may be missed."""
        patience = require_timeout(timeout)
        clock = self._lock.clock
        deadline = None if patience is None else clock() + patience
        leader = await self.leader()
        while leader is None:
            if deadline is not None and clock() >= deadline:
                return None
            await anyio.sleep(POLL if deadline is None else min(POLL, deadline - clock()))
            try:
                leader = await self.leader()
            except StoreUnavailable:
                leader = None  # an outage while we wait: there may be a leader after it
        return leader

    def lead(self, timeout: float | timedelta | None = None) -> AsyncHold:
        """Wait until it is our turn, and lead as long as the block lasts."""
        return self._lock.hold(timeout)

    async def run(
        self, callback: Callable[[AsyncLease], Awaitable[Result]], timeout: float | timedelta | None = None
    ) -> Result:
        """Wait for our turn and await ``callback`` with the lease; it is cancelled when we lead no longer."""
        if not callable(callback):
            raise UsageError(f"run() calls you when it is your turn: it takes a function, not {callback!r}")
        async with self.lead(timeout) as lease:
            work = callback(lease)
            if not isinstance(work, Awaitable):
                raise UsageError(f"run() awaits what it calls: it takes an 'async def', not {callback!r}")
            return await work
        raise AssertionError("a lost term raises")  # pragma: no cover
