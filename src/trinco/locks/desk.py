"""Where threads obtain leases, renew them and give them back."""

from time import sleep

from trinco.core.errors import StoreUnavailable
from trinco.locks.agenda import NEVER
from trinco.locks.books import (
    FAREWELL,
    FIRST_CONTACT,
    LOOK_PATIENCE,
    WITHDRAWAL,
    Books,
    are_settled,
    has_all,
    is_renewing,
    unrenewed,
    why_over,
)
from trinco.locks.endings import time_to_the_end
from trinco.locks.forking import rest_when_forking
from trinco.locks.hub import Hub
from trinco.locks.inspection import Look
from trinco.locks.lease import Lease
from trinco.locks.waiting import Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trinco.leases.claim import Claim
    from trinco.leases.terms import Terms
    from trinco.locks.claimant import Claimant
    from trinco.locks.keeper import Keeper
    from trinco.locks.options import Options


class Desk(Books):
    """The mutex is held around everything that touches the hub, except sleep. ``keeper`` renews in the background; a
    program with a loop of its own (``trinco run``) does without."""

    def __init__(self, hub: Hub, f: int) -> None:
        super().__init__(hub, f)
        self.waiting = Waiting(hub)
        hub.left_out = 0  # a thread may wait in place
        self.keeper: Keeper | None = None
        rest_when_forking(self.waiting)

    def obtain(
        self, name: str, resources: "tuple[str, ...]", options: "Options", timeout: float | None
    ) -> "Lease | None":
        """A lease on the first of these resources that can be had within ``timeout`` (None: for ever; 0: at once, for
        as long as the stores take to say so); the slots of a semaphore are several. None if it cannot."""
        hub, waiting = self.hub, self.waiting
        deadline = hub.clock() + timeout if timeout else NEVER
        lease = None
        try:
            waiting.require_rest()
            with waiting.mutex:
                losses = hub.losses
                try:
                    lease = self._obtain(name, resources, options, deadline, timeout)
                except StoreUnavailable:
                    if hub.losses == losses:
                        raise
                    lease = self._obtain(name, resources, options, deadline, timeout)  # it broke in our hands: again
                if lease is not None:
                    self.keep(lease)
                    if self.keeper is not None:
                        self.keeper.notice(lease)
            return lease
        except BaseException as error:
            if lease is not None:  # an interrupt: nobody will know that there is something to give back
                self.release(lease)
            if isinstance(error, StoreUnavailable):
                sleep(time_to_the_end())
            raise

    def _obtain(
        self, name: str, resources: "tuple[str, ...]", options: "Options", deadline: float, timeout: float | None
    ) -> "Lease | None":
        if self.lacks_links() and not self._connects(deadline):
            return None
        if len(resources) == 1:
            return self._compete(name, resources, 0, options, deadline, once=timeout == 0)
        lease = self._try_each(name, resources, options, deadline)
        if lease is None and timeout != 0:
            lease = self._compete(name, resources, 0, options, deadline, once=False)
        return lease

    def _connects(self, deadline: float) -> bool:
        """False if time was over before the stores could be connected to."""
        if not self.has_first_contact():
            self.waiting.until(self.has_first_contact, self.first_contact_by(deadline))
        if self.is_too_late(deadline):
            return False
        self.require_links()
        return True

    def _try_each(self, name: str, resources: "tuple[str, ...]", options: "Options", deadline: float) -> "Lease | None":
        """One after the other, from anywhere: with a free slot nobody has to ask for all of them."""
        first = int(self.hub.chance() * len(resources))
        for each in range(len(resources)):
            slot = (first + each) % len(resources)
            lease = self._compete(name, resources[slot : slot + 1], slot, options, deadline, once=True)
            if lease is not None:
                return lease
        return None

    def _compete(
        self, name: str, resources: "tuple[str, ...]", first: int, options: "Options", deadline: float, *, once: bool
    ) -> "Lease | None":
        """Ask for all of these; keep the first that is granted and give the others back at once."""
        claimants = self.compete(resources, options, once=once)
        try:
            if has_all(claimants) or self._is_granted_all(claimants, deadline):
                return Lease(self, name, claimants[0], options, None if resources[0] == name else first)
            failure = self.failure(claimants)
            winner = self.winner(claimants)
            lease = None
            if winner is not None:
                slot = None if winner.resource == name else first + claimants.index(winner)
                lease = Lease(self, name, winner, options, slot)
        except BaseException:
            self.withdraw(claimants)
            raise
        if not once:
            self._see_off(claimants)
        if failure is not None:
            raise failure
        return lease

    def _is_granted_all(self, claimants: "list[Claimant]", deadline: float) -> bool:
        """Wait until it is settled."""
        self.waiting.until(are_settled(claimants), deadline, *claimants)
        self.require_open()
        return has_all(claimants)

    def withdraw(self, claimants: "list[Claimant]") -> None:
        super().withdraw(claimants)
        self._see_off(claimants)

    def _see_off(self, claimants: "list[Claimant]") -> None:
        """Wait a little until those who leave have left; if that takes longer, the keeper does."""
        if self.are_gone(claimants):
            return
        patience = self.hub.clock() + (FAREWELL if self.keeper is None else WITHDRAWAL)
        if not self.waiting.until(lambda: self.are_gone(claimants), patience, *claimants) and self.keeper is not None:
            self.keeper.attend()

    def renew(self, lease: Lease, deadline: float = NEVER) -> None:
        """``deadline``: until when to wait for the stores; belief never lasts longer."""
        self.waiting.require_rest()
        with self.waiting.mutex:
            self.start_renewal(lease)
            patience = min(deadline, lease.until, self.hub.clock() + FIRST_CONTACT)
            self.waiting.until(lambda: not is_renewing(lease), patience, lease.claimant)
            renewed = self.judge_renewal(lease)
        if lease.reason is not None:
            lease.tell()
        lease.check()
        if not renewed:
            raise unrenewed(lease)

    def lose(self, lease: Lease, reason: str | None = None) -> None:
        """The lease is over although nobody gave it back. Say so, once."""
        if self.hub.is_closed or self.waiting.is_in_use_here():
            return  # somebody asks in the middle of something: whoever asks next says so
        with self.waiting.mutex:
            self.mark_lost(lease, reason or why_over(lease))
        if lease.reason is not None:  # else it was given back meanwhile
            lease.tell()

    def release(self, lease: Lease) -> None:
        """Confirmed by all but f stores, or by none if they are silent: the term ends anyhow. After the end there is
        nothing left to give back, and perhaps nobody to open the mutex: a finaliser must not wait for it."""
        if self.hub.is_closed:
            return
        if self.waiting.is_in_use_here() and self.keeper is not None:
            self.keeper.release_soon(lease)
            return
        try:
            with self.waiting.mutex:
                self._release(lease)
        except BaseException:  # an interrupt, perhaps before anything was done
            self.release_soon(lease)
            raise
        if lease.reason is not None:
            lease.tell()

    def _release(self, lease: Lease) -> None:
        claimant = lease.claimant
        attempt = claimant.attempt
        try:
            if not self.mark_released(lease):
                return
            if claimant.unanswered() > self.f:
                self.waiting.until(lambda: self.are_gone([claimant]), self.hub.clock() + FAREWELL, claimant)
            if self.keeper is not None and (self.keeper.is_retiring or (self.hub.active and self.has_leavers())):
                self.keeper.attend()
        except BaseException:
            if claimant.attempt == attempt:  # else somebody else has it by now, and it has given everything back
                self.withdraw([claimant])
            raise

    def release_soon(self, lease: Lease) -> None:
        """In the background: whoever was about to was interrupted."""
        if self.keeper is not None and not self.hub.is_closed:
            self.keeper.release_soon(lease)

    def look(self, resource: str, seconds: float = LOOK_PATIENCE) -> Look:
        """Read what the stores have about a resource; at least a quorum of them, or it raises."""
        self.waiting.require_rest()
        with self.waiting.mutex:
            patience, losses = self.hub.clock() + seconds, self.hub.losses
            look = self._look(resource, patience)
            if self.hub.losses > losses and len(look.items) < self.quorum:
                look = self._look(resource, patience)  # it broke in our hands: again
        return self.require_enough(look)

    def _look(self, resource: str, patience: float) -> Look:
        if self.lacks_links() and not self._connects(patience):
            self.require_links()
        look = Look(self.hub, resource)
        self.waiting.until(lambda: self.has_seen_enough(look), patience, look)
        return look

    def banish(self, resource: str, claim: "Claim", terms: "Terms") -> None:
        self.waiting.require_rest()
        with self.waiting.mutex:
            stranger = self.evict(resource, claim, terms)
            self.waiting.until(lambda: self.are_gone([stranger]), self.hub.clock() + FAREWELL, stranger)
            self.require_gone(stranger)

    def forget(self) -> None:
        super().forget()
        self.waiting.reset()

    def shut(self) -> None:
        """At the end of the process. A thread may have been ended while it had the mutex: then nobody opens it any
        more, and what is held runs out by itself."""
        if not self.waiting.mutex.acquire(timeout=FAREWELL):
            self.is_closed = self.hub.is_closed = True  # so that nobody waits for it again
            return
        try:
            for lease in list(self.leases.values()):
                self.mark_released(lease)
        finally:
            self.waiting.mutex.release()
        self.close()

    def turn_away(self) -> None:
        if self.waiting.mutex.acquire(timeout=FAREWELL):
            try:
                self._turn_away()
            finally:
                self.waiting.mutex.release()

    def _turn_away(self) -> None:
        """What is held stays so."""
        self.hub.is_closing = True
        self.withdraw(self.waiting_claimants())
        self.waiting.wake_all()

    def close(self) -> None:
        """Whoever waits is sent away, what is held is given back, and those who hold it hear of it; then hang up."""
        if self.hub.is_closed:
            return
        self.waiting.require_rest()
        with self.waiting.mutex:
            if self.hub.is_closed:  # by another thread, meanwhile
                return
            self.is_closed = True
            self._turn_away()
        for lease in list(self.leases.values()):
            self.lose(lease, "closed")
        with self.waiting.mutex:
            leavers = [claimant for claimant in self.hub.active.values() if claimant.leaving]
            patience = self.hub.clock() + FAREWELL
            self.waiting.until(lambda: self.hub.is_closed or self.are_gone(leavers), patience, *leavers)
            if self.hub.is_closed:  # by another thread, meanwhile
                return
            self.hub.is_closed = True
            self.waiting.leave_poller()
            self.hub.close()
        if self.keeper is not None:
            self.keeper.stop()
