"""Who leads: a lock with a long view. The term of a leader is its fencing token."""

from trinco.core.errors import StoreUnavailable, UsageError, of_one_process
from trinco.locks.inspection import LockInfo
from trinco.locks.options import refuse_coroutines, require_timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from typing import NoReturn, TypeVar

    from trinco.locks.lease import Lease
    from trinco.locks.lock import Hold, Lock

    Result = TypeVar("Result")

POLL = 0.25


class Election:
    """Whoever holds the lock of this name leads. ``lead()`` is for a ``with`` block, ``run`` calls you when your turn
    comes."""

    def __init__(self, lock: "Lock") -> None:
        self._lock = lock
        self.name = lock.name

    def __reduce__(self) -> "NoReturn":
        raise of_one_process("election", "make another where it is needed: trinco.connect(...).election(name)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    def leader(self) -> LockInfo | None:
        """Who leads: its ``owner``, its term (``token``) and what it says of itself; None if nobody does."""
        info = self._lock.inspect()
        return info if info.held else None

    def wait_for_leader(self, timeout: "float | timedelta | None" = None) -> LockInfo | None:
        """The leader, if there is one or one comes within ``timeout``; else None. It is looked for four times a second:
        whoever leads for less may be missed."""
        from time import sleep

        patience = require_timeout(timeout)
        clock = self._lock.clock
        deadline = None if patience is None else clock() + patience
        leader = self.leader
        while leader is None:
            if deadline is not None and clock() >= deadline:
                return None
            sleep(POLL if deadline is None else min(POLL, deadline - clock()))
            try:
                leader = self.leader
            except StoreUnavailable:
                leader = None  # an outage while we wait: there may be a leader after it
        return leader

    def lead(self, timeout: "float | timedelta | None" = None) -> "Hold":
        """Wait until it is our turn, and lead as long as the block lasts."""
        return self._lock.hold(timeout)

    def run(self, callback: "Callable[[Lease], Result]", timeout: "float | timedelta | None" = None) -> "Result":
        """Wait for our turn, call ``callback`` with the lease, and step down when it returns. ``LeaseLost`` if we were
        not the leader all the time: ``lease.check()`` in the callback tells it sooner."""
        if not callable(callback):
            raise UsageError(f"run() calls you when it is your turn: it takes a function, not {callback!r}")
        refuse_coroutines(callback, "what a blocking election calls")
        with self.lead(timeout) as lease:
            result = callback(lease)
            if not lease.valid and not lease.released:
                raise lease.loss()
            return result
