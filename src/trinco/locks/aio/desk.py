"""Where tasks obtain leases, renew them and give them back. The twin of ``locks.desk``."""

from _thread import allocate_lock, get_ident, start_new_thread
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from trinco.core.errors import StoreUnavailable, UsageError
from trinco.locks.agenda import NEVER
from trinco.locks.aio.background import from_any_thread, has_ended, running_loop, start_in_background
from trinco.locks.aio.keeping import Keeping
from trinco.locks.aio.lease import AsyncLease, not_ours
from trinco.locks.aio.waiting import AsyncWaiting
from trinco.locks.books import (
    FAREWELL,
    FIRST_CONTACT,
    LOOK_PATIENCE,
    WITHDRAWAL,
    are_settled,
    has_all,
    is_renewing,
    unrenewed,
    why_over,
)
from trinco.locks.endings import is_ending, time_to_the_end
from trinco.locks.hub import Hub
from trinco.locks.inspection import Look
from trinco.locks.lease import Lease
from trinco.locks.options import Options

if TYPE_CHECKING:
    from trinco.leases.claim import Claim
    from trinco.leases.terms import Terms
    from trinco.locks.claimant import Claimant


PARTING = 1.0
"""Seconds that an event loop in another thread has to close what belongs to it."""


class AsyncDesk(Keeping):
    """All of it belongs to one event loop."""

    def __init__(self, hub: Hub, f: int) -> None:
        super().__init__(hub, f)
        self._loop: object = None
        """The event loop that uses it."""
        self._taking_over = allocate_lock()
        """Held by an event loop that is about to be the one that uses it, and by who finds that none does any more."""
        self.is_retiring = False
        """Nobody has the service any more: it is closed when nothing is held."""

    async def obtain(
        self, name: str, resources: tuple[str, ...], options: Options, timeout: float | None
    ) -> AsyncLease | None:
        """A lease on the first of these resources that can be had within ``timeout``; cancelled, it leaves nothing."""
        await checkpoint_if_cancelled()
        deadline = NEVER if timeout is None else self.hub.clock() + timeout
        lease = None
        try:
            losses = self.hub.losses
            try:
                lease = await self._obtain(name, resources, options, deadline, timeout)
            except StoreUnavailable:
                if self.hub.losses == losses:
                    raise
                lease = await self._obtain(name, resources, options, deadline, timeout)  # it broke in our hands: again
            if lease is not None:
                self.keep(lease)
                self._notice(min(lease.renew_at, lease.until))
            else:
                await self.waiting.be_fair()
            return lease
        except BaseException as error:
            if lease is not None:  # an interrupt: nobody will know that there is something to give back
                await self.release(lease)
            if isinstance(error, StoreUnavailable) and (moment := time_to_the_end()):
                await anyio.sleep(moment)
            raise

    async def _obtain(
        self, name: str, resources: tuple[str, ...], options: Options, deadline: float, timeout: float | None
    ) -> AsyncLease | None:
        if not await self._contact(deadline if timeout else NEVER):
            return None
        lease = None
        if timeout == 0 or len(resources) > 1:
            lease = await self._try_each(name, resources, options, deadline if timeout else NEVER)
        if lease is None and timeout != 0:
            lease = await self._compete(name, resources, 0, options, deadline, once=False)
        return lease

    def _require_own_loop(self) -> None:
        """One loop at a time: what one of them waits for, the other would take in. What was begun in a loop that has
        ended is seen to in the next."""
        loop = running_loop()
        if loop is self._loop:
            return
        with self._taking_over:
            if not has_ended(self._loop, self._call_in_loop):
                raise UsageError(
                    "this async lock service is in use by another event loop: connect once for each of them"
                )
            self._thread, self._loop, self._call_in_loop = get_ident(), loop, from_any_thread()
        self.waiting.stop_watching()
        self.waiting = AsyncWaiting(self.hub)  # tasks of the other loop that end yet leave the old one
        self.keep_anew()

    async def _contact(self, deadline: float) -> bool:
        """False if time was over before the stores could be connected to."""
        self._require_own_loop()
        if self.lacks_links():
            if not self.has_first_contact():
                await self.waiting.until(self.has_first_contact, self.first_contact_by(deadline))
            if self.is_too_late(deadline):
                return False
            self.require_links()
        return True

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
            if not has_all(claimants):
                await self.waiting.until(are_settled(claimants), deadline, *claimants)
                self.require_open()
            if has_all(claimants):
                return AsyncLease(self, name, claimants[0], options, None if resources[0] == name else first)
            failure = self.failure(claimants)
            winner = self.winner(claimants)
            lease = None
            if winner is not None:
                slot = None if winner.resource == name else first + claimants.index(winner)
                lease = AsyncLease(self, name, winner, options, slot)
            self._attend()
        except BaseException:
            self.withdraw(claimants)
            self._attend()
            with anyio.CancelScope(shield=True):
                await self.waiting.until(lambda: self.are_gone(claimants), self.hub.clock() + WITHDRAWAL, *claimants)
            raise
        if failure is not None:
            raise failure
        return lease

    async def renew(self, lease: Lease) -> None:
        self._require_own_loop()
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
        """A task's lease may be checked by another thread, which must touch nothing else: the loss is told where the
        body can be cancelled."""
        reason = reason or why_over(lease)
        if self._thread != get_ident() and self._call_in_loop is not None:
            with suppress(RuntimeError):  # that loop has ended
                self._call_in_loop(lambda: self.lose(lease, reason))
            raise not_ours(lease, reason)
        self.mark_lost(lease, reason)
        if lease.reason is not None:  # else it was given back meanwhile
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

        if gone():
            await self.waiting.be_fair()
            return
        with anyio.CancelScope(shield=True):
            await self.waiting.until(gone, self.hub.clock() + FAREWELL, claimant)

    async def look(self, resource: str, seconds: float = LOOK_PATIENCE) -> Look:
        patience, losses = self.hub.clock() + seconds, self.hub.losses
        look = await self._look(resource, patience)
        if self.hub.losses > losses and len(look.items) < self.quorum:
            look = await self._look(resource, patience)  # it broke in our hands: again
        return self.require_enough(look)

    async def _look(self, resource: str, patience: float) -> Look:
        if not await self._contact(patience):
            self.require_links()
        look = Look(self.hub, resource)
        await self.waiting.until(lambda: self.has_seen_enough(look), patience, look)
        return look

    async def banish(self, resource: str, claim: "Claim", terms: "Terms") -> None:
        stranger = self.evict(resource, claim, terms)
        await self.waiting.until(lambda: self.are_gone([stranger]), self.hub.clock() + FAREWELL, stranger)
        self.require_gone(stranger)

    async def close(self) -> None:
        """Whoever waits is sent away, what is held is given back, and those who hold it hear of it; then hang up."""
        if self.is_closed:
            return
        self._say_good_bye()
        with anyio.CancelScope(shield=True):
            await self._hang_up()

    def shut(self) -> None:
        if self.is_closed:
            return
        if self._loop is not None and running_loop() is self._loop:
            self._part()
        elif not self._parts_in_its_loop() and self._is_left_to_us():
            self._part_by_hand()

    def _is_left_to_us(self) -> bool:
        """Whether its event loop closes it no more, nor does another thread. A loop that is only busy does it when it
        runs again: who holds goes on until it is told, so the lock is not given away before."""
        with self._taking_over:
            is_ours = not self.is_closed and (is_ending() or has_ended(self._loop, self._call_in_loop))
            self.is_closed = self.is_closed or is_ours
        return is_ours

    def _part_by_hand(self) -> None:
        """Nobody is left to be told."""
        self.waiting.stop_watching()
        self.withdraw(self._unkept())
        for lease in list(self.leases.values()):
            self.mark_lost(lease, "closed")
        if has_ended(self._loop, self._call_in_loop):
            self._see_off_by_hand()
        self.hub.close()

    def _see_off_by_hand(self) -> None:
        """What was given back may have to wait for the store's answer to something else, and no event loop is left to
        listen for it."""
        hub = self.hub
        leavers = [claimant for claimant in hub.active.values() if claimant.leaving]
        patience = hub.clock() + FAREWELL
        if leavers:
            hub.start_polling()
        while not self.are_gone(leavers) and hub.clock() < patience:
            events = hub.poller.poll(0)
            hub.silence_bell(events)
            hub.ready(events)
            hub.pump()
            sleep(PARTING / 1000)

    def _parts_in_its_loop(self) -> bool:
        """Have it closed by the event loop in another thread. Whether that was done."""
        if self._call_in_loop is None or self._thread == get_ident():
            return False
        with suppress(RuntimeError):  # that loop has ended
            self._call_in_loop(self._part)
            patience = monotonic() + PARTING
            while not self.is_closed and monotonic() < patience:
                sleep(PARTING / 1000)
        return self.is_closed

    def _part(self) -> None:
        """In the event loop, by somebody who cannot await it."""
        if not self.is_closed:
            self._say_good_bye()
            start_in_background(self._hang_up)

    def retire(self) -> None:
        """Close when nothing is held any more. By a finaliser, which may run anywhere, in the middle of a store too: so
        it waits for nothing, and closes nothing itself. What an event loop held that has ended is given back."""
        self.is_retiring = True
        if self._call_in_loop is None:
            self.is_closed = True  # it was never used
        if self.is_closed or self._call_in_loop is None:
            return
        try:
            self._call_in_loop(self._part_if_idle)
        except RuntimeError:  # that loop has ended
            self._shut_in_a_thread()

    def _shut_in_a_thread(self) -> None:
        with suppress(RuntimeError):  # the interpreter is about to end, and closes everything
            start_new_thread(self.shut, ())

    def drop(self, lease: Lease) -> None:
        super().drop(lease)
        if self.is_retiring and self._call_in_loop is not None:
            with suppress(RuntimeError):  # that loop has ended
                self._call_in_loop(self._part_if_idle)

    def _part_if_idle(self) -> None:
        if not self.leases:
            self._part()

    def _say_good_bye(self) -> None:
        self.is_closed = self.hub.is_closing = True
        self.withdraw(self._unkept())
        for lease in list(self.leases.values()):
            self.lose(lease, "closed")

    def _unkept(self) -> "list[Claimant]":
        """Whoever waits, and whom an interrupt left with what was granted and is in nobody's books."""
        kept = {lease.owner for lease in self.leases.values()}
        return [each for each in self.hub.active.values() if not each.leaving and each.owner not in kept]

    async def _hang_up(self) -> None:
        leavers = [claimant for claimant in self.hub.active.values() if claimant.leaving]
        try:
            await self.waiting.until(lambda: self.are_gone(leavers), self.hub.clock() + FAREWELL, *leavers)
            self.hub.is_closed = True
            await self.waiting.leave_poller()
        finally:
            self.waiting.stop_watching()
            self.hub.close()
            if self._nudge is not None:
                self._nudge.set()
