"""How a lock is to be held: its ttl and what goes with it, checked once."""

from trinco.core.duration import in_seconds
from trinco.core.errors import UsageError
from trinco.leases.terms import Policy, Terms
from trinco.locks.entries import require_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from typing import Any, TypedDict

    from trinco.locks.hub import Hub

    class LockOptions(TypedDict, total=False):
        """What ``lock``, ``semaphore`` and ``election`` take besides a name."""

        ttl: float | timedelta | None
        auto_renew: bool
        max_hold: float | timedelta | None
        on_lost: Callable[[Any], object] | None
        metadata: str | None
        reentrant: bool


SHORTEST_TTL = 1.0
DEFAULT_TTL = 30.0
WAIT_FAR, WAIT_NEAR = 10.0, 3.0
WIDEN = 0.005
"""How long a quorum of stores may take before the others are asked as well."""


NAMES = ("ttl", "auto_renew", "max_hold", "on_lost", "metadata", "reentrant")


def require_known(given: "LockOptions") -> None:
    odd = next((name for name in given if name not in NAMES), None)
    if odd is not None:
        from trinco.core.nearest import nearest

        close = nearest(odd, NAMES)
        meant = f"; did you mean {close}?" if close else ""
        raise TypeError(f"a lock has no option '{odd}'{meant} (there are {', '.join(NAMES)})")


class Options:
    """What ``lock()`` and its relatives take, and the terms that follow from it on these stores."""

    __slots__ = ("auto_renew", "info", "max_hold", "on_lost", "once", "reentrant", "ttl", "wait")

    def __init__(
        self,
        hub: "Hub",
        f: int,
        *,
        ttl: "float | timedelta | None" = None,
        auto_renew: bool = True,
        max_hold: "float | timedelta | None" = None,
        on_lost: "Callable[[Any], object] | None" = None,
        metadata: str | None = None,
        reentrant: bool = False,
    ) -> None:
        self.ttl = min(DEFAULT_TTL, hub.t_max) if ttl is None else require_ttl(in_seconds(ttl, "ttl"), hub.t_max)
        self.auto_renew = _yes_or_no(auto_renew, "auto_renew")
        self.max_hold = None if max_hold is None else _above_zero(in_seconds(max_hold, "max_hold"), "max_hold")
        self.on_lost = _callable(on_lost)
        self.info = require_metadata(metadata)
        self.reentrant = _yes_or_no(reentrant, "reentrant")
        self.once = _terms(hub, f, self.ttl, Policy.ONCE)
        self.wait = _terms(hub, f, self.ttl, Policy.PRIORITY)


def require_timeout(timeout: "float | timedelta | None") -> float | None:
    """How long to wait; None and the number -1 stand for ever, as in ``threading``. A ``timedelta`` is no such word:
    one below zero was worked out, from a deadline that is over."""
    if timeout is None:
        return None
    amount = in_seconds(timeout, "timeout")
    if timeout == -1:
        return None
    if amount < 0:
        raise UsageError(f"a timeout is at least 0 seconds (None: for ever), not {amount:g}")
    return amount


def require_ttl(ttl: float, t_max: float) -> float:
    shortest = min(SHORTEST_TTL, t_max)
    if not shortest <= ttl <= t_max:
        raise UsageError(
            f"a ttl is {shortest:g} to {t_max:g} seconds, not {ttl:g}: it is how long the lock outlives a crash, "
            f"and a living holder renews it"
        )
    return ttl


def _above_zero(amount: float, what: str) -> float:
    if not amount > 0:
        raise UsageError(f"{what} must be above 0 seconds, not {amount:g}")
    return amount


def _yes_or_no(given: bool, what: str) -> bool:
    """A text such as "no" would count as yes."""
    if not isinstance(given, bool):
        raise UsageError(f"{what} is True or False, not {given!r}")
    return given


def _callable(on_lost: "Callable[[Any], object] | None") -> "Callable[[Any], object] | None":
    if on_lost is not None and not callable(on_lost):
        raise UsageError(f"on_lost is called with the lease that was lost: it takes a function, not {on_lost!r}")
    return on_lost


def refuse_coroutines(called: "Callable[[Any], object] | None", what: str) -> None:
    """Where there is no event loop, nobody would await what they return."""
    if called is None:
        return
    from inspect import iscoroutinefunction

    if iscoroutinefunction(called) or iscoroutinefunction(type(called).__call__):
        raise UsageError(f"{what} is a plain function: where it is 'async def', use the service's .aio")


def _terms(hub: "Hub", f: int, ttl: float, policy: Policy) -> Terms:
    n = len(hub.stores)
    keepers = sum(algorithm.fences for algorithm in hub.algorithms)
    quorum = (n + f + 2) // 2
    return Terms(
        n,
        f,
        ttl=ttl,
        wait=WAIT_NEAR if all(store.local for store in hub.stores) else WAIT_FAR,
        policy=policy,
        fenced=keepers - f >= quorum,
        t_max=hub.t_max,
        widen=WIDEN if n > quorum else 0.0,
    )
