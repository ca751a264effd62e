"""Waiting in threads: the blocking shell around a hub.

Any number of threads share a hub. Whoever has to wait first sleeps on the poller, for all; the others sleep on a latch
of their own, and whoever takes something in for them opens it. When the one at the poller is done, it wakes another to
take its place. No thread is started for that, and a thread that is alone never switches to another.
"""

import _thread
import sys
from _thread import allocate_lock, get_ident
from time import sleep

from trinco.core.errors import StoreUnavailable, UsageError
from trinco.locks.agenda import NEVER
from trinco.locks.hub import Hub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable
    from typing import Any, Protocol

    class Sleeper(Protocol):
        """Whose news matter to somebody who sleeps."""

        wakers: list[Callable[[], None]]


CLOSED = "this lock service was closed: connect again"
GLANCE = 0.005
"""Seconds for which the only one who waits for an answer looks at no timer: most answers come sooner."""
LONGEST_SLEEP = 1.0
"""Somebody else's timers may have become earlier meanwhile."""


class Waiting:
    """``mutex`` is held around everything that touches the hub, except sleep. It knows who holds it, and that matters
    where the handler of a signal interrupts somebody who does."""

    __slots__ = ("__weakref__", "_at_poller", "_rises_at", "_sleepers", "hub", "mutex")

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.mutex = _new_mutex()
        self._at_poller = 0
        """Which thread sleeps there; 0: nobody."""
        self._rises_at = NEVER
        """When it looks at the timers, at the latest."""
        self._sleepers: list[LockType] = []

    def is_in_use_here(self) -> bool:
        """Whether this very thread is in the middle of something: a signal handler or a finaliser asks, who must not
        wait for what they have interrupted."""
        return bool(self.mutex._is_owned())

    def require_rest(self) -> None:
        """Nothing is begun in the middle of something, nor after the end: at the end of the process a thread may have
        been ended while it had the mutex."""
        if self.hub.is_closed:
            raise StoreUnavailable(CLOSED)
        if self.mutex._is_owned():
            raise UsageError(
                "this thread is in the middle of using this lock service: the handler of a signal, or a finaliser, may"
                " release and check a lease, and nothing else"
            )

    def reset(self) -> None:
        """After a fork: whoever held the mutex is in the other process."""
        self.mutex = _new_mutex()
        self._at_poller = 0
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
            try:
                self.mutex.release()
                sleep(0.0005)
            finally:
                self._take_back()

    def until(self, done: "Callable[[], bool]", deadline: float = NEVER, *sleepers: "Sleeper") -> bool:
        """Sleep until something is done, or it is too late: then False. Called with the mutex held; ``sleepers`` are
        those whose news matter."""
        hub = self.hub
        try:
            hub.deliver()
            soon = hub.clock() + GLANCE if hub.owes_one_answer() else 0.0
            while not done():
                if hub.is_closed:
                    raise StoreUnavailable(CLOSED)
                now = hub.clock()
                if now >= deadline:
                    return False
                due = soon if now < soon else hub.next_due()
                nap = min(deadline - now, due - now, LONGEST_SLEEP)
                if self._at_poller in (0, get_ident()):  # our own place there: then we are in the handler of a signal
                    self._poll(nap, sleepers)
                else:
                    if now >= soon:
                        nap = min(deadline - now, LONGEST_SLEEP)  # the timers are for whoever is at the poller
                        if due < self._rises_at:
                            hub.ring()
                    self._sleep(nap, sleepers)
                hub.deliver()
                if now >= soon and not done():
                    hub.pump()
            return True
        finally:
            if not self.mutex._is_owned():
                self._take_back()  # who was to do that was interrupted before it could begin
            if self._sleepers and not self._at_poller:
                self._sleepers.pop(0).release()  # somebody must take our place

    def _poll(self, nap: float, sleepers: "tuple[Sleeper, ...]") -> None:
        """Whoever else takes in meanwhile what we wait for rings: the poller does not see it any more."""
        hub, me, before = self.hub, get_ident(), (self._at_poller, self._rises_at)
        hub.start_polling()
        for sleeper in sleepers:
            sleeper.wakers.append(hub.ring)
        self._at_poller, self._rises_at = me, hub.clock() + nap
        try:
            self.mutex.release()
            events = hub.poller.poll(max(nap, 0.0) * hub.poll_unit)
        finally:
            try:
                self._take_back()
            finally:
                self._at_poller, self._rises_at = before
                for sleeper in sleepers:
                    sleeper.wakers.remove(hub.ring)
        hub.silence_bell(events)
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
            sleeper.wakers.append(wake)
        try:
            self.mutex.release()
            latch.acquire(timeout=max(nap, 0))
        finally:
            try:
                self._take_back()
            finally:
                if latch in self._sleepers:
                    self._sleepers.remove(latch)
                for sleeper in sleepers:
                    sleeper.wakers.remove(wake)

    def _take_back(self) -> None:
        """The mutex, whoever interrupts us: before we have it, or when we have just got it."""
        interrupt, is_ours = None, False
        while not is_ours:
            try:
                is_ours = self.mutex._is_owned() or self.mutex.acquire()
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


def _new_mutex() -> "Any":
    """Gevent and its like replace the locks of ``threading``, and not those below it."""
    return getattr(sys.modules.get("threading", _thread), "RLock")()  # noqa: B009 (either module has it)
