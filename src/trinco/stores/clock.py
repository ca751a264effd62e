"""The two clocks of this host.

Leases are counted on the clock that goes on while the host sleeps: one that stops would still believe in a lease after
a resume, when every store has let it go. The time of day never decides who holds; it only makes tokens that nobody can
have seen before.
"""

import time
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LEASE_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC_RAW", None))

boottime: "Callable[[], float]" = time.monotonic if _LEASE_CLOCK is None else partial(time.clock_gettime, _LEASE_CLOCK)
"""Seconds since this host was started, sleep included where the system can tell. Not a function of ours: an
acquisition looks at the clock a dozen times."""


def wall_microseconds() -> int:
    """The time of day, in microseconds since 1970: where tokens start."""
    return time.time_ns() // 1000
