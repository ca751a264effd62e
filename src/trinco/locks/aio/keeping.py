"""Renewal in the background, and seeing to releases that a store has not confirmed yet, as a task of the event loop.
The twin of ``locks.keeper``."""

import inspect
import logging
from _thread import get_ident
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from typing import Any

import anyio

from trinco.core.errors import StoreUnavailable
from trinco.locks.agenda import NEVER
from trinco.locks.aio.background import start_in_background
from trinco.locks.aio.waiting import AsyncWaiting
from trinco.locks.books import IN_NEED, LINGER, Books, is_renewing
from trinco.locks.hub import Hub
from trinco.locks.lease import Lease


class Keeping(Books):
    """The books of an event loop, with a task that keeps them while there is anything to keep."""

    def __init__(self, hub: Hub, f: int) -> None:
        super().__init__(hub, f)
        self.waiting = AsyncWaiting(hub)
        self._thread = 0
        """Of the event loop."""
        self._call_in_loop: Callable[[Callable[[], object]], object] | None = None
        """How another thread reaches that event loop."""
        self._nudge: anyio.Event | None = None
        self._keeper: object = None
        """Which of the tasks that have kept leases is to go on."""
        self._wakes_at = 0.0
        self._attends_at = NEVER
        """When to listen for releases that are not confirmed."""
        self._is_listening = False
        self.wakers: list[Callable[[], None]] = []
        """Of the keeper, where it listens for the stores."""

    def keep_anew(self) -> None:
        """Another event loop takes over what is to be kept."""
        self._nudge = None
        self._is_listening = False
        self.wakers = []
        self._notice(min(self.next_due(), self._attends_at))

    def _notice(self, due: float) -> None:
        """Something is due at that time: see that the keeper is awake by then."""
        if due == NEVER or self.is_closed:
            return
        if self._nudge is None:
            self._nudge = anyio.Event()
            self._wakes_at = due
            self._keeper = keeper = object()
            start_in_background(lambda: self._keep(keeper))
        elif due < self._wakes_at:
            self._wakes_at = 0.0
            self._nudge.set()
            for wake in self.wakers:
                wake()

    def catch_up(self) -> None:
        """Do what is due by the service's clock as soon as the event loop runs: for tests that move it."""
        if self._thread == get_ident():
            self._look_again()
        elif self._call_in_loop is not None:
            with suppress(RuntimeError):  # that loop has ended
                self._call_in_loop(self._look_again)

    def _look_again(self) -> None:
        if self._nudge is not None:
            self._wakes_at = 0.0
            self._nudge.set()
        self.waiting.wake_all()

    def _attend(self) -> None:
        """If somebody left and not all stores have confirmed it, somebody must listen, soon."""
        if self.has_leavers() and not self._is_listening:
            if self._attends_at == NEVER:
                self._attends_at = self.hub.clock() + LINGER
            self._notice(self._attends_at)

    async def _keep(self, keeper: object) -> None:
        """Renew what is due, and see to releases that are not confirmed, until nothing is left to see to, or another
        one does."""
        try:
            while not self.is_closed and self._nudge is not None and self._wakes_at != NEVER:
                with anyio.move_on_after(max(self._wakes_at - self.hub.clock(), 0)):
                    await self._nudge.wait()
                if self._keeper is not keeper:
                    return
                try:
                    lost = await self._round()
                    self._wakes_at = min(self.next_due(), self._attends_at)
                except StoreUnavailable:
                    return  # it was closed
                except Exception:
                    lost = self.bury_overdue()
                    self._wakes_at = self.hub.clock() + IN_NEED
                for lease in lost:
                    lease.tell()
                self._nudge = anyio.Event()
        finally:
            if self._keeper is keeper:
                self._nudge = None

    async def _round(self) -> list[Lease]:
        renewing = self.start_due_renewals()
        attends = self._attends_at <= self.hub.clock()
        if attends:
            self._attends_at = NEVER
        if self.has_leavers():
            self.hub.connect_missing()
            self.hub.pump()  # what is owed is asked for by now: then there is something to listen for
        if renewing or self.has_leavers():
            claimants = [lease.claimant for lease in renewing]

            self._wakes_at = max(self.next_lease_due(), self.hub.clock())

            def settled() -> bool:
                return self._wakes_at == 0.0 or not (any(map(is_renewing, renewing)) or self.has_leavers())

            self._is_listening = True
            try:
                await self.waiting.until(settled, self._wakes_at, *claimants, self)
            finally:
                self._is_listening = False
        return self.judge_all(renewing)

    def call_back(self, on_lost: Callable[[Any], Any], lease: Lease, context: Context) -> None:
        """``on_lost`` may be a function or a coroutine function; what it raises must not end the renewals. It runs in
        the context of whoever acquired, whoever finds the loss."""
        try:
            result = context.run(on_lost, lease)
        except Exception:
            logging.getLogger("trinco").exception("on_lost of the lock '%s' raised", lease.name)
            return
        if inspect.isawaitable(result):
            start_in_background(_awaiting(result, lease.name), context)


def _awaiting(result: Awaitable[Any], name: str) -> Callable[[], Awaitable[None]]:
    async def wait() -> None:
        try:
            await result
        except Exception:
            logging.getLogger("trinco").exception("on_lost of the lock '%s' raised", name)

    return wait
