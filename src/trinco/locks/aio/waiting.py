"""Waiting in tasks: the async shell around a hub. The twin of ``locks.waiting``, by the same rule: whoever waits first
waits for the stores, the others wait for whoever takes something in for them.

The poller is a descriptor of its own, readable when any link is, so one wait covers all stores. No task is started for
that, and a task that is cancelled leaves its place to another. Waiting is most of what an acquisition costs, so on
asyncio the loop is told once to watch the poller and not anew for every wait, an alarm that is set early enough serves
several waits, and what has already arrived is taken in without waiting at all.
"""

import asyncio
from functools import partial

import anyio
from anyio.lowlevel import cancel_shielded_checkpoint

from trinco.core.errors import StoreUnavailable
from trinco.locks.agenda import NEVER
from trinco.locks.aio.background import is_trio
from trinco.locks.hub import Hub
from trinco.locks.waiting import CLOSED, GLANCE, LONGEST_SLEEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trinco.locks.waiting import Sleeper


LONGEST_TURN = 0.001
"""Seconds for which a task may go on without letting others run."""


class AsyncWaiting:
    __slots__ = ("_alarm", "_at_poller", "_loop", "_rises_at", "_seen", "_sleepers", "_watched", "_yielded_at", "hub")

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._loop: asyncio.AbstractEventLoop | None = None
        """Which loop watches the poller."""
        self._watched = 0
        """By which descriptor; it is to be forgotten even when the poller is closed."""
        self._seen: asyncio.Future[None] | None = None
        """What to resolve when it sees something."""
        self._alarm: asyncio.TimerHandle | None = None
        """What wakes whoever waits, at the latest. It stays set when a wait is over."""
        self._yielded_at = 0.0
        self._at_poller = False
        self._rises_at = NEVER
        """When whoever is there looks at the timers, at the latest."""
        self._sleepers: list[anyio.Event] = []

    def wake_all(self) -> None:
        """Have everybody look again: time may have passed by another clock than the system's."""
        for event in self._sleepers:
            _set(event)
        self._sleepers = []
        if self._at_poller:
            self.hub.ring()

    async def leave_poller(self) -> None:
        """Have everybody look again, and nobody sleep at the poller."""
        self.wake_all()
        while self._at_poller:
            self.hub.ring()
            await cancel_shielded_checkpoint()
        self.stop_watching()

    async def until(self, done: "Callable[[], bool]", deadline: float = NEVER, *sleepers: "Sleeper") -> bool:
        """Sleep until something is done, or it is too late: then False."""
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
                if self._at_poller:
                    if now >= soon:
                        nap = min(deadline - now, LONGEST_SLEEP)  # the timers are for whoever is at the poller
                        if due < self._rises_at:
                            self._bell()()
                    await self._sleep(nap, sleepers)
                else:
                    await self._poll(nap, sleepers)
                if now < soon:
                    hub.deliver()
                else:
                    hub.pump()
            return True
        finally:
            if self._sleepers and not self._at_poller:
                _set(self._sleepers.pop(0))  # somebody must take our place

    async def be_fair(self) -> None:
        """A loop of acquire and release that never waits must let others run, now and then."""
        if self.hub.clock() - self._yielded_at > LONGEST_TURN:
            await cancel_shielded_checkpoint()
            self._yielded_at = self.hub.clock()

    async def _poll(self, nap: float, sleepers: "tuple[Sleeper, ...]") -> None:
        """Whoever else takes in meanwhile what we wait for wakes us: the poller does not see it any more."""
        hub = self.hub
        hub.start_polling()
        self._at_poller, self._rises_at = True, hub.clock() + nap
        wake = self._bell()
        for sleeper in sleepers:
            sleeper.wakers.append(wake)
        try:
            if is_trio():
                with anyio.move_on_after(max(nap, 0)):
                    await anyio.wait_readable(hub.poller.fileno())
            else:
                await self._watch(max(nap, 0))
        finally:
            self._at_poller = False
            for sleeper in sleepers:
                sleeper.wakers.remove(wake)
        self._yielded_at = hub.clock()
        if hub.poller is not None:  # the service may have been closed meanwhile
            events = hub.poller.poll(0)
            hub.silence_bell(events)
            hub.ready(events)

    async def _watch(self, nap: float) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self.stop_watching()
            self._watched = self.hub.poller.fileno()
            loop.add_reader(self._watched, self._readable)
            self._loop = loop
        self._set_alarm(loop, loop.time() + nap)
        self._seen = seen = loop.create_future()
        try:
            await seen
        finally:
            self._seen = None

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._alarm is not None:
            if self._alarm.when() <= at:
                return
            self._alarm.cancel()
        self._alarm = loop.call_at(at, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._wake()

    def _bell(self) -> "Callable[[], None]":
        """What wakes whoever is at the poller."""
        return self.hub.ring if is_trio() else self._wake

    def _wake(self) -> None:
        if self._seen is not None:
            _resolve(self._seen)

    def _readable(self) -> None:
        if self._seen is None:
            self.stop_watching()  # nobody wants to know: the loop would tell us for ever
        else:
            _resolve(self._seen)

    def stop_watching(self) -> None:
        loop, self._loop = self._loop, None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._watched)

    async def _sleep(self, nap: float, sleepers: "tuple[Sleeper, ...]") -> None:
        event = anyio.Event()
        self._sleepers.append(event)
        wake = partial(_set, event)
        for sleeper in sleepers:
            sleeper.wakers.append(wake)
        try:
            with anyio.move_on_after(max(nap, 0)):
                await event.wait()
        finally:
            if event in self._sleepers:
                self._sleepers.remove(event)
            for sleeper in sleepers:
                sleeper.wakers.remove(wake)


def _resolve(future: "asyncio.Future[None]") -> None:
    try:
        if not future.done():
            future.set_result(None)
    except RuntimeError:  # whatever closed its loop has left it there, and nobody can wake it
        return


def _set(event: anyio.Event) -> None:
    try:
        event.set()
    except RuntimeError:  # the same, as trio says it, too
        return
