"""Waiting in threads: the blocking shell around a hub.

Any number of threads share a hub. Whoever has to wait first sleeps on the poller, for all; the others sleep on a latch
of their own, and whoever takes something in for them opens it. When the one at the poller is done, it wakes another to
take its place. No thread is started for that, and a thread that is alone never switches to another.
"""

from _thread import allocate_lock
from time import sleep

from trinco.core.errors import StoreUnavailable
from trinco.locks.hub import NEVER, Hub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable
    from typing import Protocol

    class Sleeper(Protocol):
        """Whose news matter to somebody who sleeps."""

        waker: Callable[[], None] | None


CLOSED = "this lock service was closed: connect again"
LONGEST_SLEEP = 1.0
"""Somebody else's timers may have become earlier meanwhile."""


class Waiting:
    """``mutex`` is held around everything that touches the hub, except sleep."""

    __slots__ = ("_at_poller", "_sleepers", "hub", "mutex")

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.mutex = allocate_lock()
        self._at_poller = False
        self._sleepers: list[LockType] = []

    def reset(self) -> None:
        """After a fork: whoever held the mutex is in the other process."""
        self.mutex = allocate_lock()
        self._at_poller = False
        self._sleepers = []

    def wake_all(self) -> None:
        """Have everybody look again: time may have passed by another clock than the system's. The mutex is held."""
        for latch in self._sleepers:
            latch.release()
        self._sleepers = []
        if self._at_poller:
            self.hub.ring()

    def leave_poller(self) -> None:
        """Have everybody look again, and nobody sleep at the poller. The mutex is held."""
        self.wake_all()
        while self._at_poller:
            self.mutex.release()
            sleep(0.0005)
            self.mutex.acquire()

    def until(self, done: "Callable[[], bool]", deadline: float = NEVER, *sleepers: "Sleeper") -> bool:
        """Sleep until something is done, or it is too late: then False. Called with the mutex held; ``sleepers`` are
        those whose news matter."""
        hub = self.hub
        try:
            if hub.settles(done):
                return True
            while True:
                if hub.is_closed:
                    raise StoreUnavailable(CLOSED)
                now = hub.clock()
                if now >= deadline:
                    return False
                nap = min(deadline - now, hub.next_due() - now, LONGEST_SLEEP)
                if self._at_poller:
                    self._sleep(nap, sleepers)
                else:
                    self._poll(nap, sleepers)
                hub.pump()
                if done():
                    return True
        finally:
            if self._sleepers and not self._at_poller:
                self._sleepers.pop(0).release()  # somebody must take our place

    def _poll(self, nap: float, sleepers: "tuple[Sleeper, ...]") -> None:
        """Whoever else takes in meanwhile what we wait for rings: the poller does not see it any more."""
        hub = self.hub
        hub.start_polling()
        self._at_poller = True
        for sleeper in sleepers:
            sleeper.waker = hub.ring
        self.mutex.release()
        try:
            events = hub.poller.poll(_as_timeout(hub.poller, nap))
        finally:
            self.mutex.acquire()
            self._at_poller = False
            for sleeper in sleepers:
                if sleeper.waker == hub.ring:
                    sleeper.waker = None
        hub.ready(events)

    def _sleep(self, nap: float, sleepers: "tuple[Sleeper, ...]") -> None:
        latch = allocate_lock()
        latch.acquire()
        self._sleepers.append(latch)

        def wake() -> None:
            if latch in self._sleepers:
                self._sleepers.remove(latch)
                latch.release()

        for sleeper in sleepers:
            sleeper.waker = wake
        self.mutex.release()
        try:
            latch.acquire(timeout=max(nap, 0))
        finally:
            self.mutex.acquire()
            if latch in self._sleepers:
                self._sleepers.remove(latch)
            for sleeper in sleepers:
                if sleeper.waker is wake:  # it may serve somebody else by now
                    sleeper.waker = None


def _as_timeout(poller: object, seconds: float) -> float:
    """``epoll`` counts in seconds and ``poll`` in milliseconds; both sleep no less than asked."""
    nap = max(seconds, 0.0)
    return nap if type(poller).__name__ == "epoll" else nap * 1000
