"""The command that ``trinco run`` runs: its process group, its terminal, and the signals that reach us in its place."""

import os
import signal
from errno import ENOENT, ENOEXEC

from trinco.cli.descendants import Descendants, is_alive, members, send_to_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""These are for all descendants, too, in whichever group they are."""
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
BY_SIGNAL = 128
NOT_STARTED = 127


class Child:
    """``code``: the exit code that its end stands for, None before it was reaped. ``stopped_by``: the signal that
    stopped it, 0 while it runs."""

    __slots__ = ("_descendants", "_group", "_is_told_to_end", "_reader", "code", "pid", "stopped_by")

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        descendants: Descendants,
        first: "Callable[[], None]" = lambda: None,
    ) -> None:
        """Raises ``OSError`` if there is no such command. Its group has its number. ``first`` is called in the child
        before it becomes the command: what has to be settled by then cannot wait for us, who may be killed at any
        moment."""
        program = located(command[0], environment.get("PATH", os.defpath))
        self._reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _become(program, command, descendants.marked(environment), first, writer)
        os.close(writer)
        self._group = self.pid
        self._descendants = descendants
        self._is_told_to_end = False
        self.code: int | None = None
        self.stopped_by = 0

    def trouble(self) -> OSError | None:
        """Why it could not become the command; waits until it is clear. Call it once, before all else."""
        number = os.read(self._reader, 16)
        os.close(self._reader)
        return OSError(int(number), os.strerror(int(number))) if number else None

    def has_ended(self) -> bool:
        """It is not reaped by this: as long as it is not, nobody else gets its number."""
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return self.code is None and os.waitid(os.P_PID, self.pid, look) is not None

    def reap(self) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.code = BY_SIGNAL - code if code < 0 else code
        self._is_told_to_end |= code < 0  # by somebody else, who has not told its descendants
        self.stopped_by = 0

    def notice_stops(self) -> bool:
        """Whether it has stopped since the last look."""
        before = self.stopped_by
        while self.code is None:
            try:
                news = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)
            except ChildProcessError:  # it has ended since we looked: another SIGCHLD is on its way
                break
            if news is None:
                break
            self.stopped_by = news.si_status if news.si_code == os.CLD_STOPPED else 0
        return bool(self.stopped_by) and not before

    def send(self, number: int) -> None:
        """A signal to all of its group; one that ends, to all of its descendants."""
        if number in ENDING or number == signal.SIGKILL:
            self._is_told_to_end = True
            self._descendants.send(number, self._group)
        else:
            send_to_group(self._group, number)

    def leaves_others(self) -> bool:
        """Whether somebody else is alive: of its group if it ended by itself (the usual case, which has to be fast),
        else of all its descendants. Only after it was reaped."""
        try:
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass  # as process 1 of a container we inherit its orphans
        except ChildProcessError:
            pass
        if not is_alive(self._group):
            self._group = 0  # from here on its number may be somebody else's
        return bool(self._group) or (self._is_told_to_end and self._descendants.are_alive())


def located(program: str, path: str) -> str:
    """The file that a program's name stands for. ``os.execvpe`` would try all of them, in the child, one by one, and
    that takes a millisecond."""
    if "/" in program:
        return program
    places = [os.path.join(folder, program) for folder in path.split(os.pathsep)]
    files = [place for place in places if os.path.isfile(place)]
    if not files:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), program)
    return next((file for file in files if os.access(file, os.X_OK)), files[0])


def _become(
    program: str, command: list[str], environment: dict[str, str], first: "Callable[[], None]", writer: int
) -> None:
    """In the child. ``writer`` closes by itself when it has become the command."""
    try:
        os.setpgid(0, 0)
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        first()
        for number in IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        _execute(program, command, environment)
    except OSError as error:
        os.write(writer, b"%d" % (error.errno or 0))
    finally:
        os._exit(NOT_STARTED)


def _execute(program: str, command: list[str], environment: dict[str, str]) -> None:
    """What has no first line that names an interpreter is a shell's, as everywhere."""
    try:
        os.execve(program, command, environment)
    except OSError as error:
        if error.errno != ENOEXEC:
            raise
        os.execve("/bin/sh", ["sh", program, *command[1:]], environment)


class Terminal:
    """The terminal, if we have it in the foreground: the child's group gets it, so that Ctrl-C reaches that group and
    its reads are not refused. The child takes it, before it becomes the command; later we give it and take it. Nobody
    else's is touched: the shell may have put all of us in the background. Where our group is not ours alone (``trinco
    run ... | less``), the others need it, and the child gets it only when it asks for it."""

    __slots__ = ("_is_shared", "_ours")

    def __init__(self) -> None:
        self._ours = os.getpgrp()
        self._is_shared = self.is_ours() and len(members(self._ours)) > 1

    def is_ours(self) -> bool:
        return _hand_over(self._ours, self._ours)

    def give_first(self, group: int) -> None:
        """When the child starts."""
        if not self._is_shared:
            self.give(group)

    def give(self, group: int) -> bool:
        """Whether we had it to give."""
        return _hand_over(self._ours, group)

    def take_back(self, group: int) -> bool:
        """Whether that group had it."""
        return _hand_over(group, self._ours)


def _hand_over(before: int, after: int) -> bool:
    """Whether it was ``before`` who had it."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # there is none, or it was hung up
        return False
    try:
        if os.tcgetpgrp(terminal) != before:
            return False
        if after != before:
            _put_in_foreground(terminal, after)
    except OSError:
        return False
    finally:
        os.close(terminal)
    return True


def _put_in_foreground(descriptor: int, group: int) -> None:
    usual = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # else whoever is in the background is stopped by this
    try:
        os.tcsetpgrp(descriptor, group)
    finally:
        signal.signal(signal.SIGTTOU, usual)


class Interrupted(KeyboardInterrupt):
    """A signal came while there was no child that could have it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """What reaches us. It is kept until somebody takes it, and ``descriptor`` becomes readable. What was ignored when
    we were started stays so (nohup)."""

    def __init__(self) -> None:
        self._is_anybody_there = False
        self._arrived: list[int] = []
        self.descriptor, self._writer = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._arrives)
        signal.signal(signal.SIGCHLD, self._arrives)
        self._mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def unmask(self) -> None:
        """In the child: what was blocked when we were started is blocked again."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def keep(self) -> None:
        """From here on there is, or will be, somebody to forward them to."""
        self._is_anybody_there = True
        for number in (signal.SIGTSTP, signal.SIGCONT):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._arrives)

    def _arrives(self, number: int, frame: "FrameType | None") -> None:
        self._arrived.append(number)

    def interrupt(self) -> None:
        """Raise ``Interrupted``, once, if there was a signal and nobody who could have it."""
        arrived = [] if self._is_anybody_there else [number for number in self.take() if number in FORWARDED]
        if arrived:
            self._is_anybody_there = True
            raise Interrupted(arrived[0])

    def take(self) -> list[int]:
        try:
            while os.read(self.descriptor, 4096):
                pass
        except BlockingIOError:
            pass
        arrived, self._arrived = self._arrived, []
        return arrived
