"""Locks in memory, on a clock that stands still until a test moves it.

    clock = ManualClock()
    locks = memory_service(clock)

Leases that are renewed in the background are renewed while ``advance`` runs, if they are due and not over yet: two
steps of 10 seconds keep a lease of 30 alive, one step of 40 loses it, as a process loses it that was asleep for so
long. When ``advance`` returns, whatever had to happen by then has happened, ``on_lost`` included; threads that wait for
a lock have been woken to look again. Tasks (``.aio``) do their part as soon as their event loop runs again.
"""

from collections.abc import Callable
from datetime import timedelta

from trinco.core.duration import in_seconds
from trinco.core.errors import UsageError
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore

START = 1000.0
"""Not zero: a deadline of zero is one that has always passed."""


class ManualClock:
    """Seconds that pass when ``advance`` is called. Calling the clock tells the time."""

    def __init__(self, now: float = START) -> None:
        self._now = now
        self._followers: list[Callable[[], None]] = []

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float | timedelta) -> None:
        """Let so much time pass, at once."""
        duration = in_seconds(seconds, "what a clock advances by")
        if duration < 0:
            raise UsageError(f"time passes forwards: advance by 0 or more seconds, not by {seconds!r}")
        self._now += duration
        for follow in list(self._followers):
            follow()

    def follow(self, follower: Callable[[], None]) -> None:
        """Call this whenever time has passed."""
        self._followers.append(follower)


def memory_service(
    clock: ManualClock | None = None, *, ttl: float | None = None, client: str | None = None
) -> LockService:
    """Locks on a store in memory that nobody else has, and whose clock you control."""
    manual = ManualClock() if clock is None else clock
    service = LockService([MemoryStore("test", clock=manual)], ttl=ttl, client=client, clock=manual)
    manual.follow(lambda: catch_up(service))
    return service


def catch_up(service: LockService) -> None:
    """Do what is due by the service's clock: renew, lose, and wake everybody who sleeps by another clock."""
    keeper = service.desk.keeper
    if keeper is not None:
        keeper.catch_up()
    if service._aio is not None:
        service._aio.desk.catch_up()
