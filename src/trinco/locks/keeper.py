"""Renewal in the background: one thread for all leases of a service.

It sleeps until the next lease is due (a third of its term after the last renewal), and between renewals costs nothing.
A lease that could not be renewed is tried again and again; when its belief ends, it is lost, and the thread says so. It
also sees to releases that a store has not confirmed yet.
"""

from _thread import allocate_lock, start_new_thread

from trinco.core.errors import StoreUnavailable
from trinco.locks.books import LINGER, is_renewing
from trinco.locks.hub import NEVER
from trinco.locks.lease import Lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trinco.locks.desk import Desk


class Keeper:
    def __init__(self, desk: "Desk") -> None:
        self.desk = desk
        self._latch = allocate_lock()
        self._latch.acquire()
        self._wakes_at = 0.0
        self._attends_at = NEVER
        """When to listen for releases that are not confirmed."""
        self._noticed_due = NEVER
        """When what woke us is due. If it has been given back by the time we look, we sleep until then all the same:
        where locks are held for moments, the next is not due before, and need not wake us."""
        self._is_running = False
        self._is_stopped = False
        self._postponed: list[Lease] = []
        """What is to be given back for others."""

    def notice(self, lease: Lease) -> None:
        """There is a lease to keep. Called with the mutex held."""
        if not self._is_running:
            self._is_running = True
            start_new_thread(self._run, ())
        elif lease.renew_at < self._wakes_at or lease.until < self._wakes_at:
            self._noticed_due = lease.renew_at
            self._wake()

    def attend(self) -> None:
        """Somebody left, and not all stores have confirmed it: see to it, soon. Called with the mutex held."""
        if self._attends_at == NEVER:
            self._attends_at = self.desk.hub.clock() + LINGER
        if not self._is_running:
            self._is_running = True
            start_new_thread(self._run, ())
        elif self._attends_at < self._wakes_at:
            self._wake()

    def release_soon(self, lease: Lease) -> None:
        """For who is in the middle of something and cannot wait for it to end."""
        self._postponed.append(lease)
        if not self._is_running:
            self._is_running = True
            start_new_thread(self._run, ())
        else:
            self._wake()

    def stop(self) -> None:
        self._is_stopped = True
        self._wake()

    def catch_up(self) -> None:
        """Do at once what is due by the service's clock: for tests that move it."""
        with self.desk.waiting.mutex:
            lost = [] if self.desk.is_closed else self._round()
            self._wake()
            self.desk.waiting.wake_all()
        for lease in lost:
            lease.tell()

    def _wake(self) -> None:
        self._wakes_at = 0.0
        try:
            self._latch.release()
        except RuntimeError:  # it is open
            return

    def _run(self) -> None:
        desk = self.desk
        while not self._is_stopped:
            while self._postponed:
                desk.release(self._postponed.pop())
            with desk.waiting.mutex:
                try:
                    lost = [] if desk.is_closed else self._round()
                except StoreUnavailable:  # it was closed
                    return
                due = min(self._attends_at, self._noticed_due)
                self._wakes_at = NEVER if desk.is_closed else min(desk.next_due(), due)
                self._noticed_due = NEVER
                nap = self._wakes_at - desk.hub.clock()
            for lease in lost:
                start_new_thread(lease.tell, ())  # a slow callback must not keep the others from being renewed
            if nap > 0:
                self._latch.acquire(timeout=-1 if nap == NEVER else nap)

    def _round(self) -> list[Lease]:
        """Renew what is due, listen for what is to be confirmed; those that were lost."""
        desk = self.desk
        renewing = desk.start_due_renewals()
        attends = self._attends_at <= desk.hub.clock()
        if attends:
            self._attends_at = NEVER
        if desk.has_leavers():
            desk.hub.connect_missing()
        if renewing or desk.has_leavers():
            claimants = [lease.claimant for lease in renewing]

            def settled() -> bool:
                return not (any(map(is_renewing, renewing)) or desk.has_leavers())

            desk.waiting.until(settled, max(desk.next_due(), desk.hub.clock()), *claimants)
        return desk.judge_all(renewing)
