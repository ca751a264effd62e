"""Locks in memory, on a clock that stands still until a test moves it.

    clock = ManualClock()
    locks = memory_service(clock)

Leases that are renewed in the background are renewed while ``advance`` runs, if they are due and not over yet: two
steps of 10 seconds keep a lease of 30 alive, one step of 40 loses it, as a process loses it that was asleep for so
long. When ``advance`` returns, whatever had to happen by then has happened, ``on_lost`` included; threads that wait for
a lock have been woken to look again. Tasks (``.aio``) do their part as soon as their event loop runs again.
"""

from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from trinco.core.duration import in_seconds
from trinco.core.errors import UsageError
from trinco.locks.desk import Desk
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore

if TYPE_CHECKING:
    from trinco.locks.aio.desk import AsyncDesk

    AnyDesk: TypeAlias = Desk | AsyncDesk

START = 1000.0
"""Not zero: a deadline of zero is one that has always passed."""


class ManualClock:
    """Seconds that pass when ``advance`` is called. Calling the clock tells the time."""

    def __init__(self, now: float = START) -> None:
        self._now = now
        self._services: WeakKeyDictionary[LockService, None] = WeakKeyDictionary()
        self._desks: WeakKeyDictionary[AnyDesk, None] = WeakKeyDictionary()
        """In the order in which they came, as the services. A lease can outlive its service, and has its desk."""

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float | timedelta) -> None:
        """Let so much time pass, at once."""
        duration = in_seconds(seconds, "what a clock advances by")
        if duration < 0:
            raise UsageError(f"time passes forwards: advance by 0 or more seconds, not by {seconds!r}")
        self._now += duration
        for service in list(self._services):
            self.follow(service)
            if service.desk.is_closed:
                self._services.pop(service, None)
        for desk in list(self._desks):
            _catch_up(desk)
            if desk.hub.is_closed:
                self._desks.pop(desk, None)

    def follow(self, service: LockService) -> None:
        """Have it do what is due whenever time has passed, until it is closed or nobody has it any more."""
        self._services[service] = None
        for desk in _desks_of(service):
            self._desks[desk] = None


def memory_service(
    clock: ManualClock | None = None, *, ttl: float | None = None, client: str | None = None
) -> LockService:
    """Locks on a store in memory that nobody else has, and whose clock you control."""
    manual = ManualClock() if clock is None else clock
    service = LockService([MemoryStore("test", clock=manual)], ttl=ttl, client=client, clock=manual)
    manual.follow(service)
    return service


def catch_up(service: LockService) -> None:
    """Do what is due by the service's clock: renew, lose, and wake everybody who sleeps by another clock."""
    for desk in _desks_of(service):
        _catch_up(desk)


def _desks_of(service: LockService) -> "list[AnyDesk]":
    """That for tasks is made when it is first asked for."""
    return [service.desk] if service._aio is None else [service.desk, service._aio.desk]


def _catch_up(desk: "AnyDesk") -> None:
    keeper = desk.keeper if isinstance(desk, Desk) else desk
    if keeper is not None:
        keeper.catch_up()
