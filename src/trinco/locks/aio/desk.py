"""Where tasks obtain leases, renew them and give them back. The twin of ``locks.desk``."""

import inspect
import logging
from _thread import get_ident
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio

from trinco.core.errors import StoreUnavailable, UsageError
from trinco.locks.aio.background import start_in_background
from trinco.locks.aio.lease import AsyncLease
from trinco.locks.aio.waiting import AsyncWaiting
from trinco.locks.books import (
    FAREWELL,
    FIRST_CONTACT,
    LINGER,
    LOOK_PATIENCE,
    WITHDRAWAL,
    Books,
    is_renewing,
    is_settled,
    unrenewed,
    why_over,
)
from trinco.locks.hub import NEVER, Hub
from trinco.locks.inspection import Look
from trinco.locks.lease import Lease
from trinco.locks.options import Options

if TYPE_CHECKING:
    from trinco.leases.claim import Claim
    from trinco.leases.terms import Terms
    from trinco.locks.claimant import Claimant


class AsyncDesk(Books):
    """All of it belongs to one event loop."""

    def __init__(self, hub: Hub, f: int) -> None:
        super().__init__(hub, f)
        self.waiting = AsyncWaiting(hub)
        self._thread = 0
        """Whose event loop uses it."""
        self._nudge: anyio.Event | None = None
        self._wakes_at = 0.0
        self._attends_at = NEVER
        """When to listen for releases that are not confirmed."""

    async def obtain(
        self, name: str, resources: tuple[str, ...], options: Options, timeout: float | None
    ) -> AsyncLease | None:
        """A lease on the first of these resources that can be had within ``timeout``; cancelled, it leaves nothing."""
        deadline = NEVER if timeout is None else self.hub.clock() + timeout
        losses = self.hub.losses
        try:
            lease = await self._obtain(name, resources, options, deadline, timeout)
        except StoreUnavailable:
            if self.hub.losses == losses:
                raise
            lease = await self._obtain(name, resources, options, deadline, timeout)  # it broke in our hands: once more
        if lease is not None:
            self.keep(lease)
            self._notice(min(lease.renew_at, lease.until))
        return lease

    async def _obtain(
        self, name: str, resources: tuple[str, ...], options: Options, deadline: float, timeout: float | None
    ) -> AsyncLease | None:
        await self._contact(deadline)
        lease = None
        if timeout == 0 or len(resources) > 1:
            lease = await self._try_each(name, resources, options, deadline if timeout else NEVER)
        if lease is None and timeout != 0:
            lease = await self._compete(name, resources, 0, options, deadline, once=False)
        return lease

    def _require_own_loop(self) -> None:
        """One loop at a time: what one of them waits for, the other would take in."""
        me = get_ident()
        if self._thread != me and self.hub.active:
            raise UsageError("this async lock service is in use by another event loop: connect once for each of them")
        self._thread = me

    async def _contact(self, deadline: float) -> None:
        self._require_own_loop()
        if self.lacks_links():
            if not self.has_first_contact():
                await self.waiting.until(self.has_first_contact, self.first_contact_by(deadline))
            self.require_links()

    async def _try_each(
        self, name: str, resources: tuple[str, ...], options: Options, deadline: float
    ) -> AsyncLease | None:
        first = int(self.hub.chance() * len(resources)) if len(resources) > 1 else 0
        for each in range(len(resources)):
            slot = (first + each) % len(resources)
            lease = await self._compete(name, resources[slot : slot + 1], slot, options, deadline, once=True)
            if lease is not None:
                return lease
        return None

    async def _compete(
        self, name: str, resources: tuple[str, ...], first: int, options: Options, deadline: float, *, once: bool
    ) -> AsyncLease | None:
        claimants = self.compete(resources, options, once=once)
        try:
            await self.waiting.until(lambda: any(map(is_settled, claimants)), deadline, *claimants)
        except BaseException:
            self.withdraw(claimants)
            self._attend()
            with anyio.CancelScope(shield=True):
                await self.waiting.until(lambda: self.are_gone(claimants), self.hub.clock() + WITHDRAWAL, *claimants)
            raise
        winner = self.winner(claimants)
        if winner is None:
            self.explain_failure(claimants)
        self._attend()
        if winner is None:
            return None
        slot = None if winner.resource == name else first + claimants.index(winner)
        return AsyncLease(self, name, winner, options, slot)

    async def renew(self, lease: Lease) -> None:
        self.start_renewal(lease)
        patience = min(lease.until, self.hub.clock() + FIRST_CONTACT)
        await self.waiting.until(lambda: not is_renewing(lease), patience, lease.claimant)
        renewed = self.judge_renewal(lease)
        if lease.reason is not None:
            lease.tell()
        lease.check()
        if not renewed:
            raise unrenewed(lease)

    def lose(self, lease: Lease, reason: str | None = None) -> None:
        self.mark_lost(lease, reason or why_over(lease))
        lease.tell()

    async def release(self, lease: Lease) -> None:
        """The words leave before the first wait, so nothing that happens meanwhile can keep them back."""
        if not self.mark_released(lease):
            return
        claimant = lease.claimant
        try:
            await self._see_off(claimant)
        finally:
            self._attend()
        if lease.reason is not None:
            lease.tell()

    async def _see_off(self, claimant: "Claimant") -> None:
        """Wait until it is gone, whoever is cancelled meanwhile."""

        def gone() -> bool:
            return self.are_gone([claimant])

        if self.hub.settles(gone):
            await self.waiting.be_fair()
            return
        with anyio.CancelScope(shield=True):
            await self.waiting.until(gone, self.hub.clock() + FAREWELL, claimant)

    async def look(self, resource: str, seconds: float = LOOK_PATIENCE) -> Look:
        patience = self.hub.clock() + seconds
        await self._contact(patience)
        look = Look(self.hub, resource)
        await self.waiting.until(lambda: self.has_seen_enough(look), patience, look)
        return self.require_enough(look)

    async def banish(self, resource: str, claim: "Claim", terms: "Terms") -> None:
        stranger = self.evict(resource, claim, terms)
        await self.waiting.until(lambda: self.are_gone([stranger]), self.hub.clock() + FAREWELL, stranger)

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            for lease in list(self.leases.values()):
                await self.release(lease)
        if not self.is_closed:
            self.is_closed = self.hub.is_closed = True
            await self.waiting.leave_poller()
            self.hub.close()
        if self._nudge is not None:
            self._nudge.set()

    # Keeping: the twin of ``locks.keeper``, as a task

    def _notice(self, due: float) -> None:
        """Something is due at that time: see that the keeper is awake by then."""
        if due == NEVER or self.is_closed:
            return
        if self._nudge is None:
            self._nudge = anyio.Event()
            self._wakes_at = due
            start_in_background(self._keep)
        elif due < self._wakes_at:
            self._wakes_at = 0.0
            self._nudge.set()

    def _attend(self) -> None:
        """If somebody left and not all stores have confirmed it, somebody must listen, soon."""
        if self.has_leavers():
            if self._attends_at == NEVER:
                self._attends_at = self.hub.clock() + LINGER
            self._notice(self._attends_at)

    async def _keep(self) -> None:
        """Renew what is due, and see to releases that are not confirmed, until nothing is left to see to."""
        try:
            while not self.is_closed and self._nudge is not None and self._wakes_at != NEVER:
                with anyio.move_on_after(max(self._wakes_at - self.hub.clock(), 0)):
                    await self._nudge.wait()
                try:
                    lost = await self._round()
                except StoreUnavailable:
                    return  # it was closed
                for lease in lost:
                    lease.tell()
                self._wakes_at = min(self.next_due(), self._attends_at)
                self._nudge = anyio.Event()
        finally:
            self._nudge = None

    async def _round(self) -> list[Lease]:
        renewing = self.start_due_renewals()
        attends = self._attends_at <= self.hub.clock()
        if attends:
            self._attends_at = NEVER
        if renewing or (attends and self.has_leavers()):
            claimants = [lease.claimant for lease in renewing]

            def settled() -> bool:
                return not (any(map(is_renewing, renewing)) or self.has_leavers())

            await self.waiting.until(settled, max(self.next_due(), self.hub.clock()), *claimants)
        return self.judge_all(renewing)

    def call_back(self, on_lost: Callable[[Any], Any], lease: Lease) -> None:
        """``on_lost`` may be a function or a coroutine function; what it raises must not end the renewals."""
        try:
            result = on_lost(lease)
        except Exception:
            logging.getLogger("trinco").exception("on_lost of the lock '%s' raised", lease.name)
            return
        if inspect.isawaitable(result):
            start_in_background(_awaiting(result, lease.name))


def _awaiting(result: Awaitable[Any], name: str) -> Callable[[], Awaitable[None]]:
    async def wait() -> None:
        try:
            await result
        except Exception:
            logging.getLogger("trinco").exception("on_lost of the lock '%s' raised", name)

    return wait
