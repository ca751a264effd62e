"""The two clocks of this host.

Leases are counted on the clock that goes on while the host sleeps: one that stops would still believe in a lease after
a resume, when every store has let it go. The time of day never decides who holds; it only makes tokens that nobody can
have seen before.
"""

import time

_LEASE_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC_RAW", None))


def boottime() -> float:
    """Seconds since this host was started, sleep included where the system can tell."""
    return time.monotonic() if _LEASE_CLOCK is None else time.clock_gettime(_LEASE_CLOCK)


def wall_microseconds() -> int:
    """The time of day, in microseconds since 1970: where tokens start."""
    return time.time_ns() // 1000
