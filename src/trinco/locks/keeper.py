"""Renewal in the background: one thread for all leases of a service.

It sleeps until the next lease is due (a third of its term after the last renewal), and between renewals costs nothing.
A lease that could not be renewed is tried again and again; when its belief ends, it is lost, and the thread says so. It
also sees to releases that a store has not confirmed yet.
"""

from _thread import allocate_lock, start_new_thread
from time import sleep

from trinco.core.errors import StoreUnavailable
from trinco.locks.agenda import NEVER
from trinco.locks.books import IN_NEED, LINGER, is_renewing
from trinco.locks.lease import Lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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
        self._is_listening = False
        self.wakers: list[Callable[[], None]] = []
        """Of ourselves, where we listen for the stores."""
        self._is_running = False
        self._is_stopped = False
        self.is_retiring = False
        """Nobody has the service any more: it is closed when nothing is held."""
        self._postponed: list[Lease] = []
        """What is to be given back for others."""

    def notice(self, lease: Lease) -> None:
        """There is a lease to keep. Called with the mutex held."""
        if not self._is_running:
            self._start()
        elif lease.renew_at < self._wakes_at or (lease.ends is not None and lease.ends < self._wakes_at):
            self._noticed_due = lease.renew_at
            self._wake()

    def attend(self) -> None:
        """Somebody left, and not all stores have confirmed it: see to it, soon. Called with the mutex held."""
        if self._is_listening:
            return
        if self._attends_at == NEVER:
            self._attends_at = self.desk.hub.clock() + LINGER
        if not self._is_running:
            self._start()
        elif self._attends_at < self._wakes_at:
            self._wake()

    def release_soon(self, lease: Lease) -> None:
        """For who is in the middle of something and cannot wait for it to end."""
        self._postponed.append(lease)
        if not self._is_running:
            self._start()
        else:
            self._wake()

    def retire(self) -> None:
        """Close the service when nothing is held any more. By a finaliser, which may run anywhere: so it waits for
        nothing."""
        self.is_retiring = True
        if self.desk.is_closed:
            return
        if self._is_running:
            self._wake_latch()
            return
        try:
            self._start()
        except RuntimeError:  # the interpreter is about to end, and closes everything
            return

    def _start(self) -> None:
        """Raises ``RuntimeError`` where the system has no thread for us: then the next who has something to keep tries
        again."""
        self._is_running = True
        try:
            start_new_thread(self._run, ())
        except BaseException:
            self._is_running = False
            raise

    def stop(self) -> None:
        self._is_stopped = True
        self._wake()

    def catch_up(self) -> None:
        """Do at once what is due by the service's clock: for tests that move it."""
        with self.desk.waiting.mutex:
            lost = [] if self.desk.is_closed else self._round(self.desk.next_due)
            self._wake()
            self.desk.waiting.wake_all()
        for lease in lost:
            lease.tell()

    def _wake(self) -> None:
        self._wakes_at = 0.0
        for wake in self.wakers:
            wake()
        self._wake_latch()

    def _wake_latch(self) -> None:
        try:
            self._latch.release()
        except RuntimeError:  # it is open
            return

    def _run(self) -> None:
        try:
            while not self._has_kept():
                sleep(IN_NEED)
        finally:
            self._is_running = False

    def _has_kept(self) -> bool:
        """Keep until there is nothing more to keep. False: there was no memory to go on with; nobody else would renew
        what is held, nor say that it is lost."""
        try:
            self._keep()
        except MemoryError:
            return False
        return True

    def _keep(self) -> None:
        desk = self.desk
        while not self._is_stopped:
            with desk.waiting.mutex:
                try:
                    lost = [] if desk.is_closed else self._give_back() + self._round(self._lease_due)
                    due = min(self._attends_at, self._lease_due())
                    self._wakes_at = NEVER if desk.is_closed else min(desk.hub.next_due(), due)
                except StoreUnavailable:  # it was closed
                    return
                except Exception:
                    lost = desk.bury_overdue()
                    self._wakes_at = desk.hub.clock() + IN_NEED
                nap = self._wakes_at - desk.hub.clock()
            for lease in lost:
                _tell(lease)
            if self.is_retiring and not desk.leases:
                desk.close()
                return
            if nap > 0:
                self._latch.acquire(timeout=-1 if nap == NEVER else nap)

    def _give_back(self) -> list[Lease]:
        """What was postponed; those that turned out to be lost. Nobody waits for the stores to confirm it: what else is
        held is to be renewed."""
        lost = []
        while self._postponed:
            lease = self._postponed.pop()
            self.desk.mark_released(lease)
            if lease.reason is not None:
                lost.append(lease)
        return lost

    def _lease_due(self) -> float:
        """When a lease wants us."""
        if self._noticed_due <= self.desk.hub.clock():
            self._noticed_due = NEVER
        return min(self._noticed_due, self.desk.next_lease_due())

    def _round(self, due: "Callable[[], float]") -> list[Lease]:
        """Renew what is due, listen for what is to be confirmed, until something else is due or there is a lease that
        we did not know of; those that were lost."""
        desk = self.desk
        renewing = desk.start_due_renewals()
        attends = self._attends_at <= desk.hub.clock()
        if attends:
            self._attends_at = NEVER
        if desk.has_leavers():
            desk.hub.connect_missing()
            desk.hub.pump()  # what is owed is asked for by now: then there is something to listen for
        if renewing or desk.has_leavers():
            claimants = [lease.claimant for lease in renewing]
            self._wakes_at = max(due(), desk.hub.clock())

            def settled() -> bool:
                return self._wakes_at == 0.0 or not (any(map(is_renewing, renewing)) or desk.has_leavers())

            self._is_listening = True
            try:
                desk.waiting.until(settled, self._wakes_at, *claimants, self)
            finally:
                self._is_listening = False
        return desk.judge_all(renewing)


def _tell(lease: Lease) -> None:
    """A slow callback must not keep the others from being renewed; but rather that than not to tell."""
    try:
        start_new_thread(lease.tell, ())
    except (RuntimeError, MemoryError):
        lease.tell()
