"""Renewal in the background: one thread for all leases of a service.

It sleeps until the next lease is due (a third of its term after the last renewal), and between renewals costs nothing.
A lease that could not be renewed is tried again and again; when its belief ends, it is lost, and the thread says so. It
also sees to releases that a store has not confirmed yet.
"""

from _thread import allocate_lock, start_new_thread

from trinco.locks.books import is_renewing, wants_renewal
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
        self._is_running = False
        self._is_stopped = False

    def notice(self, lease: Lease) -> None:
        """There is a lease to keep. Called with the mutex held."""
        if not self._is_running:
            self._is_running = True
            start_new_thread(self._run, ())
        elif min(lease.renew_at, lease.until) < self._wakes_at:
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
            _tell_safely(lease)

    def _wake(self) -> None:
        self._wakes_at = 0.0
        if self._latch.locked():
            self._latch.release()

    def _run(self) -> None:
        desk = self.desk
        while not self._is_stopped:
            with desk.waiting.mutex:
                lost = [] if desk.is_closed else self._round()
                self._wakes_at = NEVER if desk.is_closed else desk.next_due()
                nap = self._wakes_at - desk.hub.clock()
            for lease in lost:
                _tell_safely(lease)
            if nap > 0:
                self._latch.acquire(timeout=-1 if nap == NEVER else nap)

    def _round(self) -> list[Lease]:
        """Renew what is due; those that were lost."""
        desk, now = self.desk, self.desk.hub.clock()
        due = [lease for lease in desk.leases.values() if wants_renewal(lease, now)]
        for lease in due:
            desk.start_renewal(lease)
        if due:
            patience = min(now + lease.claimant.terms.patience for lease in due)
            patience = min(patience, *(lease.until for lease in due))
            desk.waiting.until(lambda: not any(map(is_renewing, due)), patience, *(each.claimant for each in due))
            for lease in due:
                desk.judge_renewal(lease)
        desk.hub.pump()
        return [lease for lease in due if lease.reason is not None] + desk.overdue()


def _tell_safely(lease: Lease) -> None:
    """A callback that raises must not end the renewals of all the others."""
    try:
        lease.tell()
    except Exception:
        import logging

        logging.getLogger("trinco").exception("on_lost of the lock '%s' raised", lease.name)
