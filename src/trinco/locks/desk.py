"""Where threads obtain leases, renew them and give them back."""

from trinco.core.errors import StoreUnavailable
from trinco.locks.books import (
    FAREWELL,
    FIRST_CONTACT,
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
        self.keeper: Keeper | None = None

    def obtain(
        self, name: str, resources: "tuple[str, ...]", options: "Options", timeout: float | None
    ) -> "Lease | None":
        """A lease on the first of these resources that can be had within ``timeout`` (None: for ever); the slots of a
        semaphore are several. None if it cannot."""
        deadline = NEVER if timeout is None else self.hub.clock() + timeout
        with self.waiting.mutex:
            losses = self.hub.losses
            try:
                lease = self._obtain(name, resources, options, deadline, timeout)
            except StoreUnavailable:
                if self.hub.losses == losses:
                    raise
                lease = self._obtain(name, resources, options, deadline, timeout)  # it broke in our hands: once more
            if lease is not None:
                self.keep(lease)
                if self.keeper is not None:
                    self.keeper.notice(lease)
            return lease

    def _obtain(
        self, name: str, resources: "tuple[str, ...]", options: "Options", deadline: float, timeout: float | None
    ) -> "Lease | None":
        self._contact(deadline)
        if len(resources) == 1:
            at_once = timeout == 0
            return self._compete(name, resources, 0, options, NEVER if at_once else deadline, once=at_once)
        lease = self._try_each(name, resources, options, deadline if timeout else NEVER)
        if lease is None and timeout != 0:
            lease = self._compete(name, resources, 0, options, deadline, once=False)
        return lease

    def _contact(self, deadline: float) -> None:
        if self.lacks_links():
            if not self.has_first_contact():
                self.waiting.until(self.has_first_contact, self.first_contact_by(deadline))
            self.require_links()

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
        """Ask for all of these; keep the first that is granted and give the others back at once. One alone that a store
        has granted at once has nothing to wait for, and nobody to give back."""
        claimants = self.compete(resources, options, once=once)
        try:
            winner: Claimant | None = claimants[0]
            if len(claimants) > 1 or not claimants[0].is_holding:
                self.waiting.until(lambda: any(map(is_settled, claimants)), deadline, *claimants)
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
        if lease is None:
            self.explain_failure(claimants)
        return lease

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
        with self.waiting.mutex:
            self.mark_lost(lease, reason or why_over(lease))
        lease.tell()

    def release(self, lease: Lease) -> None:
        """Confirmed by all but f stores, or by none if they are silent: the term ends anyhow."""
        with self.waiting.mutex:
            if not self.mark_released(lease):
                return
            if lease.claimant.unanswered() > self.f:
                leaving = [lease.claimant]
                self.waiting.until(lambda: self.are_gone(leaving), self.hub.clock() + FAREWELL, lease.claimant)
            if self.keeper is not None and self.hub.active and self.has_leavers():
                self.keeper.attend()
        if lease.reason is not None:
            lease.tell()

    def look(self, resource: str, seconds: float = LOOK_PATIENCE) -> Look:
        """Read what the stores have about a resource; at least a quorum of them, or it raises."""
        with self.waiting.mutex:
            patience = self.hub.clock() + seconds
            self._contact(patience)
            look = Look(self.hub, resource)
            self.waiting.until(lambda: self.has_seen_enough(look), patience, look)
        return self.require_enough(look)

    def banish(self, resource: str, claim: "Claim", terms: "Terms") -> None:
        with self.waiting.mutex:
            stranger = self.evict(resource, claim, terms)
            self.waiting.until(lambda: self.are_gone([stranger]), self.hub.clock() + FAREWELL, stranger)

    def forget(self) -> None:
        super().forget()
        self.waiting.reset()

    def shut(self) -> None:
        """At the end of the process. An interrupt may have come just when somebody took the mutex: then nobody has it
        any more, and what is held runs out by itself."""
        if self.waiting.mutex.acquire(timeout=FAREWELL):
            self.waiting.mutex.release()
            self.close()

    def close(self) -> None:
        """Give everything back, and hang up."""
        for lease in list(self.leases.values()):
            self.release(lease)
        with self.waiting.mutex:
            if not self.is_closed:
                self.is_closed = self.hub.is_closed = True
                self.waiting.leave_poller()
                self.hub.close()
        if self.keeper is not None:
            self.keeper.stop()
