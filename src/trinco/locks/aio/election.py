"""Who leads, for tasks. The twin of ``locks.election``."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

import anyio

from trinco.core.errors import UsageError
from trinco.locks.aio.lease import AsyncLease
from trinco.locks.aio.lock import AsyncHold, AsyncLock
from trinco.locks.election import POLL
from trinco.locks.inspection import LockInfo
from trinco.locks.options import require_timeout

Result = TypeVar("Result")


class AsyncElection:
    def __init__(self, lock: AsyncLock) -> None:
        self._lock = lock
        self.name = lock.name

    async def leader(self) -> LockInfo | None:
        """Who leads, and in which term (``token``); None if nobody does."""
        info = await self._lock.inspect()
        return info if info.held else None

    async def wait_for_leader(self, timeout: float | timedelta | None = None) -> LockInfo | None:
        """The leader, as soon as there is one; None if there is none within ``timeout``."""
        with anyio.move_on_after(require_timeout(timeout)):
            while (leader := await self.leader()) is None:
                await anyio.sleep(POLL)
            return leader
        return None

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
            return await callback(lease)
        raise AssertionError("a lost term raises")  # pragma: no cover
