"""Nobody forks in the middle of something.

A child that is forked while another thread is inside a store's library gets that library as it is, with locks of its
own that nobody there will ever open. So whoever forks first waits, not for long, until every desk is at rest. Our own
locks are opened in the child.
"""

import os
from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from trinco.locks.waiting import Waiting

    AnyLock = TypeVar("AnyLock")

PATIENCE = 1.0
"""Seconds: then it is forked all the same."""
_all: "list[ref[Waiting]]" = []
_resting: "list[Waiting]" = []


def rest_when_forking(waiting: "Waiting") -> None:
    _all[:] = [each for each in _all if each() is not None]
    _all.append(ref(waiting))


def reopened_in_children(lock: "AnyLock") -> "AnyLock":
    """Whoever holds it while another thread forks is not in the child."""
    os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]  # every lock of Python's has
    return lock


def _rest() -> None:
    for waiting in [waiting for each in _all if (waiting := each()) is not None]:
        if not waiting.is_in_use_here() and waiting.mutex.acquire(timeout=PATIENCE):
            _resting.append(waiting)


def _go_on() -> None:
    while _resting:
        _resting.pop().mutex.release()


def _begin_anew() -> None:
    while _resting:
        _resting.pop().reset()


os.register_at_fork(before=_rest, after_in_parent=_go_on, after_in_child=_begin_anew)
