"""What happens to leases when a process forks or ends.

A lease that nobody refers to any more is still held. So whoever holds is remembered here until everything was given
back; at the end of the process, and on SIGTERM, it is. Every lock service is closed then: a daemon thread that goes on
meanwhile must not take anything that nobody will give back.

A forked child has none of the leases, and SIGTERM ends it as if we had never been there. Python forgets in a child
which signals have come, and then nothing would end it, so SIGTERM is held back until the handler is gone:

    parent:  SIGTERM held back ── fork ── let in again
    child:                          └── the signals that came are forgotten ── handler gone ── SIGTERM let in: it ends
    somebody:                             kill ..................................................
"""

import atexit
import os
import signal
import sys
from _thread import get_ident, start_new_thread
from _weakref import ref
from time import monotonic, sleep

import trinco.locks.forking  # noqa: F401 (what it has to do at a fork is done while SIGTERM is held back)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Any

    from trinco.locks.books import Books

holding: "set[Books]" = set()
"""Those with leases."""
_open: "list[ref[Books]]" = []
"""All of them."""
_services: "list[ref[object]]" = []
"""Those that are open."""
_forking: "dict[int, Iterable[int]]" = {}
"""The threads that are about to fork, and which signals were held back from each before."""
_postponed: list[int] = []
"""The signals that came to the main thread meanwhile: another thread may have let them in."""
_ended_by: list[int] = []
"""The thread in which the process ends, when it does."""
_turns_away: list[bool] = []
"""Whether those who wait are turned away when the main thread ends."""
_put_off_since: list[float] = []
"""When SIGTERM came in the middle of an access."""
PUT_OFF, LONGEST_PUT_OFF = 0.001, 1.0
AFTER_A_FORK = 0.05
"""Seconds. Since 3.12 Python warns whoever forks with threads when we have been called, and swallows there, too."""
LAST_WAIT = 5.0
"""Seconds for which a thread that is to end with the process waits for that; somebody may wait for the thread."""


def close_at_exit(books: "Books") -> None:
    _strike(_open, None)
    _open.append(ref(books))


def _strike(those: "list[ref[Any]]", gone: object) -> None:
    """And those that are no more. One by one: a list that was worked out first would lose whom another thread adds
    meanwhile."""
    for each in list(those):
        if each() in (None, gone):
            try:  # noqa: SIM105 (contextlib takes long to load)
                those.remove(each)
            except ValueError:  # another thread was quicker
                pass


def is_ending() -> bool:
    """Whether the process is about to end."""
    return bool(_ended_by)


def time_to_the_end() -> float:
    """How long to wait before telling somebody that it cannot have a lock. Daemon threads are all that is left when a
    process ends, and are ended with it: what they are told before only leaves a traceback."""
    return LAST_WAIT if _ended_by and get_ident() not in _ended_by else 0.0


def _release_all() -> None:
    _ended_by.append(get_ident())
    for books in _everybody():
        try:
            books.shut()
        except Exception:  # the others are to be released all the same
            import logging

            logging.getLogger("trinco").exception("a lock service could not release what it held")


def _forget_all() -> None:
    """In a forked child: the parent's leases are the parent's, and so are its links."""
    for books in _everybody():
        books.forget()
    holding.clear()
    _open.clear()


def _everybody() -> "list[Books]":
    return [books for each in _open if (books := each()) is not None]


def end_on_sigterm(service: object) -> None:
    """Let SIGTERM end the process like ``sys.exit``, so that what is held is released; whoever has a handler of their
    own keeps it."""
    _strike(_services, None)
    _services.append(ref(service))
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    try:
        signal.signal(signal.SIGTERM, _end)
    except ValueError:  # only the main thread may
        return


def leave_sigterm_alone(service: object) -> None:
    """It is closed. Where it was the last, SIGTERM does what it did before: a handler in Python is called only when the
    main thread comes round to it, and a worker of a ``multiprocessing.Pool`` that waits for work may not."""
    _strike(_services, service)
    if not _services and signal.getsignal(signal.SIGTERM) is _end:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        except ValueError:  # only the main thread may
            return
        if _services:  # another thread has connected meanwhile
            signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: "FrameType | None") -> None:
    if _ended_by:
        return  # it is about to end, and to release what it holds
    if get_ident() in _forking or _is_around_a_fork(frame):  # where whatever is raised is swallowed
        _postponed.append(number)
    elif _has_main_thread_ended():  # as it is here: nothing but other threads keeps the process
        _end_without_raising(number)
    elif not (_is_inside(frame) and _is_put_off(number)):
        _have_waiters_turned_away()
        raise SystemExit(128 + number)


def _have_waiters_turned_away() -> None:
    """When the main thread is done Python waits for the others, and one that waits for a lock may never be. Those that
    hold one keep it until they are done."""
    threading: Any = sys.modules.get("threading")
    if threading is None or _turns_away:
        return
    try:
        threading._register_atexit(_turn_away_waiters)
    except (AttributeError, RuntimeError):  # it is not there, or too late
        return
    _turns_away.append(True)


def _turn_away_waiters() -> None:
    for books in _everybody():
        books.turn_away()


def _has_main_thread_ended() -> bool:
    threading = sys.modules.get("threading")
    return threading is not None and not threading.main_thread().is_alive()


def _end_without_raising(number: int) -> None:
    """What was held is given back, and then the signal does what it would without us."""
    _release_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _is_inside(frame: "FrameType | None") -> bool:
    """Whether it interrupts an access: then nobody would know what has been sent, and the link would have to be given
    up. Nobody waits for a lock in there."""
    while frame is not None and not frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    return frame is not None


def _is_put_off(number: int) -> bool:
    """A moment later the access is over; but nobody is kept waiting for long, whatever else goes on."""
    _put_off_since.append(monotonic())
    if _put_off_since[-1] - _put_off_since[0] > LONGEST_PUT_OFF:
        return False
    try:
        start_new_thread(_again, (number, PUT_OFF))
    except RuntimeError:  # this system has no more threads
        return False
    return True


def _again(number: int, pause: float) -> None:
    sleep(pause)
    os.kill(os.getpid(), number)


def _is_around_a_fork(frame: "FrameType | None") -> bool:
    """Whether it interrupts one of those below, before SIGTERM is held back or when it is not any more."""
    while frame is not None and frame.f_code not in _AROUND_A_FORK:
        frame = frame.f_back
    return frame is not None


def _hold_sigterm_back() -> None:
    if signal.getsignal(signal.SIGTERM) is _end:
        _forking[get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let_sigterm_in() -> None:
    held_back_before = _forking.get(get_ident())
    if held_back_before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, held_back_before)
        del _forking[get_ident()]


def _go_on() -> None:
    """In the parent."""
    _let_sigterm_in()
    while _postponed:
        start_new_thread(_again, (_postponed.pop(), AFTER_A_FORK))


def _begin_anew() -> None:
    """In the child."""
    _forget_all()
    _postponed.clear()
    if signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let_sigterm_in()
    _forking.clear()


_HERE = os.path.dirname(__file__)
_INSIDE = (
    *(os.path.join(os.path.dirname(_HERE), room, "") for room in ("leases", "stores")),
    *(os.path.join(_HERE, f"{each}.py") for each in ("agenda", "claimant", "hub", "links", "pool", "quick", "sole")),
)
_AROUND_A_FORK = frozenset((_hold_sigterm_back.__code__, _go_on.__code__))
atexit.register(_release_all)
os.register_at_fork(before=_hold_sigterm_back, after_in_parent=_go_on, after_in_child=_begin_anew)
