"""Whoever outlives ``trinco run``: a forked process that ends the child when we cannot.

The child must not outlive the lease, even when trinco is killed with -9 or stopped. The guardian sleeps on a pipe, on
which trinco says, after each renewal, until when the lease may be believed; when the other end closes, trinco is gone.

    trinco        spawn    renew              renew    kill -9
                    │ until=30 │ until=40          │ until=50 ╳
    guardian      ──┴──────────┴───────────────────┴──────────┤ SIGTERM at once, SIGKILL after kill-after, or at 50
    child         ────────────────────────────────────────────╴╴╴╴╴╴

It is relieved by SIGKILL. It never signals a group that may be somebody else's: the number of a group is free when its
first process was reaped *and* its last one is gone. Trinco reaps the child only after saying so; from then on (and when
trinco is gone, since somebody else reaps the child then) the guardian looks every few milliseconds, and a group that it
has not seen for long is not touched. Alone, it ends when all descendants of the child have.
"""

import os
import select
import signal

from trinco.cli.child import FORWARDED
from trinco.cli.descendants import Descendants, is_alive, send_to_group
from trinco.stores.clock import boottime

DYING = 0.05
"""A killed process takes some time to be gone; so much before the end of belief it is killed."""
GRACE = 0.1
"""So much later than trinco does the guardian act, where trinco could act itself."""
LONGEST_NAP = 1.0
"""Naps are counted on a clock that stands while the host sleeps; leases are not."""
CLOSE_WATCH = 0.02
TRUSTED = 2.0
"""So long after it was seen last, a group whose first process is gone is still the same."""
MOST_DESCRIPTORS = 4096
"""Where the system allows very many, nobody uses them, and to close them all would take long."""


class Guardian:
    """Trinco's end of it."""

    __slots__ = ("_pid", "_writer")

    def __init__(
        self,
        kill_after: float,
        first: int,
        descendants: Descendants,
        known: "tuple[int, float, bool, bool] | None" = None,
    ) -> None:
        """``first`` is the signal that asks the child to end. ``known``: what to ``tell`` it, if there is a child
        already; before it is made, since we may be killed right after. Raises ``OSError`` if the system refuses."""
        reader, self._writer = os.pipe()
        if known is not None:
            self.tell(*known)
        try:
            self._pid = os.fork()
        except OSError:
            os.close(reader)
            os.close(self._writer)
            raise
        if self._pid == 0:
            try:
                os.close(self._writer)
                _leave_everything(reader)
                _Watch(reader, kill_after, first, descendants).keep()
            finally:
                os._exit(0)
        os.close(reader)
        os.set_blocking(self._writer, False)

    def tell(self, child: int, until: float, asked: bool, ended: bool) -> None:
        """``asked``: the child was told to end. ``ended``: it has, and will be reaped; others of its group may live."""
        try:
            os.write(self._writer, b"%d %.6f %d %d %.6f\n" % (child, until, asked, ended, boottime()))
        except OSError:  # it is stopped or gone; who looks at is_gone starts another
            return

    def is_gone(self) -> bool:
        """Somebody ended it."""
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._close()
        return not self._pid

    def relieve(self) -> None:
        if self._pid and not self.is_gone():
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._close()

    def _close(self) -> None:
        """What is told from here on goes nowhere, and not to a file that has got the number."""
        self._pid = 0
        os.close(self._writer)
        self._writer = -1


def _leave_everything(reader: int) -> None:
    """Nothing of trinco's is to be kept open by us but stderr, and no signal is meant for us. This asks for nothing in
    /dev or /proc: both may be bare."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (*FORWARDED, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(0, 2)
    os.closerange(3, reader)
    os.closerange(reader + 1, min(os.sysconf("SC_OPEN_MAX"), MOST_DESCRIPTORS))


class _Watch:
    """The guardian's end of it."""

    def __init__(self, reader: int, kill_after: float, first: int, descendants: Descendants) -> None:
        self._reader = reader
        self._kill_after = kill_after
        self._first = first
        self._descendants = descendants
        self._child = 0
        self._until = 0.0
        self._asked = False
        self._ended = False
        self._is_alone = False
        self._kill_at = 0.0
        self._handle: int | None = None
        self._seen = 0.0

    def keep(self) -> None:
        poller = select.poll()
        poller.register(self._reader, select.POLLIN)
        while True:
            if poller.poll(max(self._nap(), 0.0) * 1000):
                self._listen()
                if self._is_alone:
                    poller.unregister(self._reader)
            if self._child and self._is_needed():
                self._act()
            elif self._is_alone:
                return

    def _nap(self) -> float:
        if self._is_alone or self._ended:
            return CLOSE_WATCH
        if not self._child:
            return LONGEST_NAP
        return min(LONGEST_NAP, (self._kill_at if self._asked else self._ask_at) - boottime())

    @property
    def _ask_at(self) -> float:
        return min(self._until - self._kill_after + GRACE, self._kill_at)

    def _listen(self) -> None:
        said = os.read(self._reader, 65536)
        if not said:
            self._is_alone = True
            self._kill_at = min(self._kill_at, boottime() + self._kill_after)
            return
        child, until, asked, ended, sent = said.splitlines()[-1].split()
        if not self._child:
            self._child = int(child)
            self._open_handle()
        self._until = float(until)
        self._kill_at = self._until - DYING
        self._asked = self._asked or asked == b"1"
        self._ended = ended == b"1"
        self._seen = float(sent)

    def _open_handle(self) -> None:
        try:
            self._handle = os.pidfd_open(self._child)
        except (AttributeError, OSError):  # another system, or an old kernel
            self._handle = None

    def _is_needed(self) -> bool:
        """As long as trinco is there, and then as long as anybody lives. The group is to be seen often, either way."""
        group = self._group()
        return not self._is_alone or is_alive(group) or self._descendants.are_alive()

    def _group(self) -> int:
        """The child's, 0 unless it is that beyond doubt."""
        now = boottime()
        if not self._is_unreaped() and not (now - self._seen < TRUSTED and send_to_group(self._child, 0)):
            return 0
        self._seen = now
        return self._child

    def _is_unreaped(self) -> bool:
        if self._handle is None:
            return False
        try:
            signal.pidfd_send_signal(self._handle, 0)
        except OSError:
            return False
        return True

    def _act(self) -> None:
        now = boottime()
        if now >= self._kill_at:
            self._descendants.send(signal.SIGKILL, self._group())
            self._asked = True
            self._kill_at = now + LONGEST_NAP
        elif not self._asked and (self._is_alone or now >= self._ask_at):
            self._asked = True
            self._descendants.send(self._first, self._group())
