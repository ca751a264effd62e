"""A lock service for tasks, on the same stores as its blocking twin, over links of its own."""

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

import anyio.to_thread

from trinco.core.errors import AcquireTimeout, TrincoError
from trinco.locks.aio.desk import AsyncDesk
from trinco.locks.aio.election import AsyncElection
from trinco.locks.aio.lock import AsyncLock, AsyncSemaphore
from trinco.locks.books import GLANCE
from trinco.locks.inspection import LockInfo
from trinco.locks.names import require_name
from trinco.locks.service import LockService, acquire_timeout, slots

if TYPE_CHECKING:
    from trinco.locks.health import StoreHealth
    from trinco.locks.options import LockOptions


class AsyncLockService:
    """``trinco.connect(...).aio``. Everything of it belongs to one event loop; close it there."""

    def __init__(self, service: LockService) -> None:
        self._service = service
        self.desk = AsyncDesk(service.new_hub(), service.f)

    def lock(self, name: str, **options: "Unpack[LockOptions]") -> AsyncLock:
        """Options as for the blocking ``lock``."""
        return AsyncLock(self, require_name(name), (name,), self._service.options(options))

    def semaphore(self, name: str, limit: int, **options: "Unpack[LockOptions]") -> AsyncSemaphore:
        return AsyncSemaphore(self, name, slots(name, limit), self._service.options(options))

    def election(self, name: str, **options: "Unpack[LockOptions]") -> AsyncElection:
        return AsyncElection(self.lock(name, **options))

    async def inspect(self, name: str) -> LockInfo:
        """Who holds a lock, and who waits."""
        look = await self.desk.look(require_name(name))
        return look.info(self.desk.hub, self._service.enough)

    async def list(self, prefix: str = "") -> AsyncIterator[LockInfo]:
        """Every lock that a store knows of, held or not."""
        for name in await anyio.to_thread.run_sync(self._service.names, prefix):
            yield await self.inspect(name)

    async def break_(self, name: str, *, token: int | None = None) -> bool:
        """Take a lock away from whoever holds it; see ``LockService.break_``."""
        holder = (await self.desk.look(require_name(name))).holder(self._service.enough)
        if holder is None or (token is not None and holder.token != token):
            return False
        await self.desk.banish(name, holder.claim, self._service.options({}).once)
        after = (await self.desk.look(name)).holder(self._service.enough)
        return after is None or after.claim != holder.claim

    async def health(self) -> "Sequence[StoreHealth]":
        return await anyio.to_thread.run_sync(self._service.health)

    async def timed_out(self, name: str, resources: tuple[str, ...], timeout: float | None) -> AcquireTimeout:
        try:
            looks = [await self.desk.look(resource, GLANCE) for resource in resources]
            infos = [look.info(self.desk.hub, self._service.enough) for look in looks]
            holders = [info for info in infos if info.held]
        except TrincoError:
            holders = []
        return acquire_timeout(name, holders, timeout, self.desk.hub.troubles)

    async def close(self) -> None:
        """Release everything that is held, and hang up. Idempotent."""
        await self.desk.close()

    async def __aenter__(self) -> "AsyncLockService":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
