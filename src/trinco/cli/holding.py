"""A lock in the hands of a command: renewed while it runs, given back when all of it is gone.

One thread, one loop. It sleeps until a signal arrives (the child's end among them), a store answers, or something is
due: the next renewal, or the moment from which on the child has to end.

    granted        renew      renew                        ask it to end          kill it
       ├─────────────┼──────────┼ ╴╴╴ no store answers ╴╴╴╴╴╴╴╴╴╴╴┼──────────────────────┤ end of belief
                                                                 ╰───── kill-after ─────╯
"""

import gc
import os
import select
import signal
import time

from trinco.cli import exits
from trinco.cli.child import Child, Signals, Terminal
from trinco.cli.descendants import Descendants
from trinco.cli.guardian import CLOSE_WATCH, DYING, GRACE, LONGEST_NAP, Guardian
from trinco.cli.streams import say
from trinco.core.duration import in_words
from trinco.locks.books import is_renewing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trinco.locks.desk import Desk
    from trinco.locks.lease import Lease

TERM, KILL, IGNORE = "term", "kill", "ignore"


class Holding:
    """``what``: what is held, in words. ``on_lost``: term, kill or ignore. ``is_lost``: the command was ended, or let
    go on, without the lock. ``is_cut_off``: because the stores were silent. ``is_owed``: they have not confirmed
    that it was given back."""

    def __init__(
        self,
        desk: "Desk",
        lease: "Lease",
        signals: Signals,
        *,
        what: str,
        on_lost: str,
        kill_after: float,
        verbose: bool,
    ) -> None:
        self._desk = desk
        self._lease = lease
        self._signals = signals
        self._what = what
        self._on_lost = on_lost
        self._first = signal.SIGKILL if on_lost == KILL else signal.SIGTERM
        self._kill_after = kill_after
        self._verbose = verbose
        self._until = lease.until
        self._is_renewing = False
        self._is_asked = False
        self._kill_at: float | None = None
        self._terminal = Terminal()
        self._descendants = Descendants(desk.hub.address)
        self._guardian: Guardian | None = None
        self._guard_at = 0.0
        self._is_told_of_guardian = False
        self.is_lost = False
        self.is_cut_off = False
        self.is_owed = False

    def start(self, command: list[str], environment: dict[str, str]) -> None:
        """Raises ``OSError`` if it cannot be started; then nothing is left of it."""
        self._guard()
        try:
            self._child = Child(command, environment, self._descendants, self._prepare)
            trouble = self._child.trouble()
            if trouble is not None:
                self._terminal.take_back(self._child.pid)
                self._child.reap()
                raise trouble
        except OSError:
            self._relieve()
            raise

    def wait(self) -> int:
        """The exit code, when nothing of the command is left."""
        gc.freeze()
        gc.enable()  # ``main`` has put it off until there is time
        try:
            self._loop()
        except BaseException:
            self._end_unattended()
            raise
        self._relieve()
        code = self._child.code or 0
        return exits.LOST if self.is_lost and self._on_lost != IGNORE else code

    def _prepare(self) -> None:
        """In the child, before it becomes the command."""
        if self._guardian is not None:
            self._guardian.tell(os.getpid(), self._until, asked=False, ended=False)
        self._terminal.give_first(os.getpid())
        self._signals.unmask()

    def _loop(self) -> None:
        child = self._child
        while child.code is None or child.leaves_others():
            self._sleep()
            self._judge_belief()  # before anything is renewed: we may have been stopped for long
            self._renew()
            self._judge_belief()
            self._watch_for_news()
            self._replace_guardian()
            self._kill_if_due()

    def _end_unattended(self) -> None:
        """Whatever is wrong with us, the command is not left alone. Only what is needed for that is used here."""
        self._end(self._first)
        while self._child.code is None or self._child.leaves_others():
            time.sleep(CLOSE_WATCH)
            self._kill_if_due()
            if self._child.has_ended():
                self._child.reap()

    def _kill_if_due(self) -> None:
        if self._kill_at is not None and self._now >= self._kill_at:
            self._child.send(signal.SIGKILL)
            self._kill_at = self._now + LONGEST_NAP

    @property
    def _now(self) -> float:
        return self._desk.hub.clock()

    # Sleeping

    def _sleep(self) -> None:
        poller = select.poll()
        poller.register(self._signals.descriptor, select.POLLIN)
        stores = self._desk.hub.poller
        if stores is not None and hasattr(stores, "fileno"):
            poller.register(stores.fileno(), select.POLLIN)
        poller.poll(max(self._nap(), 0.0) * 1000)

    def _nap(self) -> float:
        if self._child.code is not None:
            return CLOSE_WATCH
        due = [self._now + LONGEST_NAP, self._desk.hub.next_due()]
        if self._lease.valid and not self._is_renewing:
            due.append(self._lease.renew_at)
        if self._kill_at is not None:
            due.append(self._kill_at)
        elif not self.is_lost:
            due.append(self._turning_point)
        return min(due) - self._now

    # The lease

    def _renew(self) -> None:
        desk, lease = self._desk, self._lease
        with desk.waiting.mutex:
            if desk.hub.poller is not None:
                desk.hub.ready(desk.hub.poller.poll(0))
            if not self._is_renewing and lease.valid and self._now >= lease.renew_at:
                self._is_renewing = True
                desk.start_renewal(lease)
            desk.hub.pump()
            if self._is_renewing and not is_renewing(lease):
                self._is_renewing = False
                desk.judge_renewal(lease)
        if lease.until > self._until:
            self._until = lease.until
            self._inform(ended=self._child.code is not None)

    @property
    def _turning_point(self) -> float:
        """When to act, if no renewal succeeds: before the guardian does."""
        return self._until if self._on_lost == IGNORE else self._until - max(self._kill_after, DYING + GRACE)

    def _judge_belief(self) -> None:
        if self.is_lost or self._child.code is not None:
            return
        if self._lease.reason is not None:
            self._lose(self._lease.explanation())
        elif self._now >= self._turning_point:
            self._lose(self._why())

    def give_back(self) -> None:
        """Wait for the stores to confirm it, unless they have been silent for so long that it was lost."""
        if self.is_cut_off:
            self._desk.lose(self._lease)
            return
        remaining, claimant = self._lease.remaining, self._lease.claimant
        self._lease.release()
        if len(claimant.unconfirmed()) > self._desk.f:
            why = "; ".join(dict.fromkeys(claimant.failures.values())) or "no answer in time"
            say(f"{self._what} could not be released ({why}); it is free in {in_words(remaining)} at the latest")
            self.is_owed = True

    def _why(self) -> str:
        lease = self._lease
        if lease.ends is not None and self._until >= lease.ends:
            return f"it may be held for {in_words(lease.options.max_hold or 0)} (--max-hold)"
        self.is_cut_off = True
        failures = "; ".join(dict.fromkeys(lease.claimant.failures.values()))
        told = f"could not be renewed ({failures})" if failures else "was not renewed in time"
        return f"its term of {in_words(lease.options.ttl)} {told}"

    def _lose(self, why: str) -> None:
        self.is_lost = True
        if self._on_lost == IGNORE:
            say(f"{self._what} WAS LOST: {why}. The command goes on without it (--on-lost ignore)")
            return
        say(f"{self._what} was lost: {why}; the command is ended")
        self._end(self._first)

    def _end(self, number: int) -> None:
        """Ask everybody to end; kill whoever is there after kill-after, or when belief ends."""
        self._is_asked = True
        self._kill_at = min(self._now + self._kill_after, self._until - DYING)
        self._inform(ended=self._child.code is not None)
        self._child.send(number)

    # The child

    def _watch_for_news(self) -> None:
        for number in self._signals.take():
            if number == signal.SIGCHLD:
                self._look_at_children()
            elif number == signal.SIGCONT or (number == signal.SIGTSTP and self._child.stopped_by):
                self._let_go_on()
            elif self._child.code is None:
                self._child.send(number)
        if self._child.stopped_by in (signal.SIGTTIN, signal.SIGTTOU):
            self._let_go_on_in_foreground()

    def _look_at_children(self) -> None:
        if self._child.has_ended():
            self._judge_belief()  # we may have been stopped since, and the guardian has acted
            self._inform(ended=True)
            had_terminal = self._terminal.take_back(self._child.pid)
            self._child.reap()
            if had_terminal and self._child.code == exits.INTERRUPTED:
                os.killpg(0, signal.SIGINT)  # Ctrl-C was meant for the script around us, too
            self._end_others()
        elif self._child.notice_stops():
            self._tell_of_stop()

    def _end_others(self) -> None:
        """What the command has left behind would go on without the lock."""
        if not self._is_asked and self._child.leaves_others():
            if self._verbose:
                say("the command ended and left processes behind: they are ended, and then the lock is released")
            self._end(signal.SIGTERM)

    def _tell_of_stop(self) -> None:
        if self._terminal.take_back(self._child.pid):
            say(f"the command is stopped and {self._what} stays held; Ctrl-Z again lets it go on, Ctrl-C ends it")

    def _let_go_on(self) -> None:
        self._terminal.give(self._child.pid)
        self._child.send(signal.SIGCONT)

    def _let_go_on_in_foreground(self) -> None:
        """It was stopped because it asked for the terminal in the background; by now the shell may have given it us."""
        if self._terminal.give(self._child.pid):
            self._child.send(signal.SIGCONT)

    # The guardian

    def _guard(self, known: "tuple[int, float, bool, bool] | None" = None) -> None:
        if self._on_lost != IGNORE:
            self._guardian = Guardian(self._kill_after, self._first, self._descendants, known)

    def _replace_guardian(self) -> None:
        """Somebody has ended it. One that ends again and again, or cannot be started, is not tried all the time."""
        if self._guardian is None or self._child.code is not None or not self._guardian.is_gone():
            return
        if self._now < self._guard_at:
            return
        self._guard_at = self._now + LONGEST_NAP
        try:
            self._guard((self._child.pid, self._until, self._is_asked, False))
        except OSError as error:
            self._tell_of_guardian(error)

    def _tell_of_guardian(self, error: OSError) -> None:
        if not self._is_told_of_guardian:
            self._is_told_of_guardian = True
            why = f"the guardian was ended and cannot be started again ({error.strerror})"
            say(f"{why}; it is tried every second. Until then nobody ends the command if trinco is killed")

    def _inform(self, *, ended: bool) -> None:
        if self._guardian is not None:
            self._guardian.tell(self._child.pid, self._until, self._is_asked, ended)

    def _relieve(self) -> None:
        if self._guardian is not None:
            self._guardian.relieve()
