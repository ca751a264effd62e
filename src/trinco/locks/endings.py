"""What happens to leases when a process forks or ends.

A lease that nobody refers to any more is still held. So whoever holds is remembered here until everything was given
back; at the end of the process, and on SIGTERM, it is.
"""

import atexit
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trinco.locks.books import Books

holding: "set[Books]" = set()
"""Those with leases."""


def _release_all() -> None:
    for books in list(holding):
        books.shut()


def _forget_all() -> None:
    """In a forked child: the parent's leases are the parent's."""
    for books in list(holding):
        books.forget()
    holding.clear()


def end_on_sigterm() -> None:
    """Let SIGTERM end the process like ``sys.exit``, so that what is held is released; whoever has a handler of their
    own keeps it."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    try:
        signal.signal(signal.SIGTERM, end)
    except ValueError:  # only the main thread may
        return


atexit.register(_release_all)
os.register_at_fork(after_in_child=_forget_all)
