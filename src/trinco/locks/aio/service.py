"""A lock service for tasks, on the same stores as its blocking twin, over links of its own."""

import os
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Unpack

import anyio.to_thread

from trinco.core.errors import AcquireTimeout, TrincoError, of_one_process
from trinco.locks.aio.desk import AsyncDesk
from trinco.locks.aio.election import AsyncElection
from trinco.locks.aio.lock import AsyncLock, AsyncSemaphore
from trinco.locks.books import GLANCE
from trinco.locks.inspection import LockInfo
from trinco.locks.names import is_name, require_name, require_token
from trinco.locks.service import LockService, acquire_timeout, slots

if TYPE_CHECKING:
    from trinco.locks.options import LockOptions
    from trinco.locks.service import Healths


_in_use: set[AsyncDesk] = set()
"""The desks of services that somebody has, or that are not closed yet. What becomes garbage together is finalised in
any order: a desk that did so with its service would be too late to close its links."""


class AsyncLockService:
    """``trinco.connect(...).aio``. Everything of it belongs to one event loop; close it there."""

    def __init__(self, service: LockService) -> None:
        self._service = service
        self._open()

    def _open(self) -> None:
        _close_the_forgotten()
        self._desk, self._process = AsyncDesk(self._service.new_hub(), self._service.f), os.getpid()
        _in_use.add(self._desk)

    @property
    def desk(self) -> AsyncDesk:
        """Where leases are obtained; a forked child gets one of its own, with a name of its own."""
        if self._process != os.getpid():
            self._desk.forget()
            _in_use.discard(self._desk)
            self._open()
        return self._desk

    def lock(self, name: str, **options: "Unpack[LockOptions]") -> AsyncLock:
        """Options as for the blocking ``lock``."""
        name = require_name(name)
        return AsyncLock(self, name, (name,), self._service.options(options))

    def semaphore(self, name: str, limit: int, **options: "Unpack[LockOptions]") -> AsyncSemaphore:
        """``limit`` may hold it at once; options as for the blocking ``lock``."""
        return AsyncSemaphore(self, require_name(name), slots(name, limit), self._service.options(options))

    def election(self, name: str, **options: "Unpack[LockOptions]") -> AsyncElection:
        """One of all who stand for this name leads."""
        return AsyncElection(self.lock(name, **options))

    async def inspect(self, name: str) -> LockInfo:
        """Who holds a lock, and who waits."""
        look = await self.desk.look(require_name(name))
        return look.info(self.desk.hub, self._service.enough)

    async def list(self, prefix: str = "") -> AsyncIterator[LockInfo]:
        """Every lock that a store knows of, held or not; see ``LockService.list``."""
        for name in filter(is_name, await anyio.to_thread.run_sync(self._service.names, prefix)):
            yield await self.inspect(name)

    async def break_(self, name: str, *, token: int | None = None) -> bool:
        """Take a lock away from whoever holds it; see ``LockService.break_``."""
        require_token(token)
        name = require_name(name)
        holder = (await self.desk.look(name)).holder(self._service.enough)
        if holder is None or (token is not None and holder.token != token):
            return False
        await self.desk.banish(name, holder.claim, self._service.options({}).once)
        after = (await self.desk.look(name)).holder(self._service.enough)
        return after is None or after.claim != holder.claim

    async def health(self) -> "Healths":
        """What each store is worth; see ``LockService.health``."""
        from trinco.locks.health import examine_all

        return await anyio.to_thread.run_sync(examine_all, self._service.stores, self.desk.hub)

    async def timed_out(self, name: str, resources: tuple[str, ...], timeout: float | None) -> AcquireTimeout:
        """The error that says who was in the way, or what."""
        troubles = tuple(self.desk.hub.troubles)
        try:
            looks = [await self.desk.look(resource, GLANCE) for resource in resources]
            infos = [look.info(self.desk.hub, self._service.enough) for look in looks]
            holders = [info for info in infos if info.held]
        except TrincoError:
            holders = []
        return acquire_timeout(name, holders, timeout, troubles)

    async def close(self) -> None:
        """Release everything that is held, and hang up. Idempotent."""
        await self.desk.close()

    def __del__(self) -> None:
        """Nobody can lock with it any more. It is closed when what is still held was given back."""
        desk = getattr(self, "_desk", None)
        if desk is not None and self._process == os.getpid():
            desk.retire()

    def __reduce__(self) -> NoReturn:
        raise of_one_process("lock service", "connect again where it is needed: trinco.connect(...)")

    def __repr__(self) -> str:
        return f"<AsyncLockService of {self._service!r}>"

    async def __aenter__(self) -> "AsyncLockService":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _close_the_forgotten() -> None:
    """An event loop may end while it holds something by a service that nobody has any more, and nobody hears of that
    end: so whoever opens the next service looks."""
    for desk in list(_in_use):
        if desk.is_retiring and desk.is_closed:
            _in_use.discard(desk)
        elif desk.is_retiring:
            desk.retire()
