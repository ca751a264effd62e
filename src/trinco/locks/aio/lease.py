"""What a task has in its hands while it holds a lock."""

from contextvars import copy_context
from types import TracebackType
from typing import Any

import anyio

from trinco.core.duration import in_words
from trinco.core.errors import LeaseLost
from trinco.locks.lease import EXPLANATIONS, Lease


class AsyncLease(Lease):
    """As ``Lease``; ``renew`` and ``release`` are awaited, and ``lost`` is an event to wait for. ``scope``: what is
    cancelled when the lease is lost. A worker thread may ``check`` it; all else belongs to the event loop."""

    __slots__ = ("_alarm", "_context", "scope")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._alarm: anyio.Event | None = None
        self._context = copy_context()
        """Of whoever acquired: what ``on_lost`` sees."""
        self.scope: anyio.CancelScope | None = None

    @property
    def lost(self) -> anyio.Event:  # type: ignore[override]
        """Set when the lease is lost, not when it is released."""
        if self._alarm is None:
            self._alarm = anyio.Event()
            if self.reason is not None:
                self._alarm.set()
        return self._alarm

    async def renew(self) -> None:  # type: ignore[override]
        """A new full term from now. ``StoreUnavailable`` while the old one still stands; ``LeaseLost`` otherwise."""
        self.check()
        await self._service.renew(self)

    async def release(self) -> None:  # type: ignore[override]
        """Give the lock back, also while being cancelled. Calling it again does nothing."""
        await self._service.release(self)

    def tell(self) -> None:
        """Make a loss loud, once: ``lost`` is set, the body is cancelled, ``on_lost`` is called."""
        if not self.is_news():
            return
        if self._alarm is not None:
            self._alarm.set()
        if self.scope is not None:
            self.scope.cancel()
        if self.options.on_lost is not None:
            self._service.call_back(self.options.on_lost, self, self._context)

    def __enter__(self) -> Lease:
        raise TypeError("this lease is held by a task: use 'async with'")

    async def __aenter__(self) -> "AsyncLease":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()
        if self.reason is not None and error is None:
            raise self.loss()


def not_ours(lease: Lease, reason: str) -> LeaseLost:
    """What a thread is told that finds a loss before the event loop has heard of it."""
    why = EXPLANATIONS[reason].format(ttl=in_words(lease.options.ttl))
    return LeaseLost(f"the lock '{lease.name}' is not ours any more: {why}", reason)
