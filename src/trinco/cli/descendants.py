"""Whoever has to end with the command: its process group, and what it has started besides.

A signal to the group misses those who made a group of their own (``timeout`` does, and shells with job control). They
are looked for in /proc when the command is to end, and only then: by their parents, and, since a chain of parents
breaks where one of them ends, by a mark in the environment that everybody inherits.

    trinco ── sh ── timeout ── sleep       sh has ended:       1 ── timeout ── sleep
              └────── by parents                                    └ by the mark

A process is remembered together with the moment of its start, so that nobody is signalled who has got its number since.
Who has a session of its own (``setsid``, a daemon) left on purpose, and is let go. Where there is no /proc, there is
still the group.
"""

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

RUNS = "TRINCO_RUNS"
"""The variable with the marks of all runs around a process, the outermost first: a run within ours keeps our mark."""
MOST_LOOKS = 20
"""Whoever is killed may have started others while we looked; but nobody looks for ever."""


class Process:
    """What /proc says of one. The dead whom nobody has reaped are not alive."""

    __slots__ = ("group", "is_alive", "parent", "session", "started")

    def __init__(self, number: "int | str") -> None:
        """Raises ``OSError`` if there is none."""
        with open(f"/proc/{number}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        self.is_alive = fields[0] not in (b"Z", b"X")
        self.parent, self.group, self.session = map(int, fields[1:4])
        self.started = int(fields[19])


def processes() -> dict[int, Process]:
    """All of this host; nobody where that cannot be found out."""
    found: dict[int, Process] = {}
    try:
        numbers = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return found
    for number in numbers:
        try:
            found[int(number)] = Process(number)
        except OSError:  # it has just ended
            continue
    return found


def members(group: int) -> list[Process]:
    return [process for process in processes().values() if process.group == group]


def is_alive(group: int) -> bool:
    """Whether a process of this group can still do something."""
    if not send_to_group(group, 0):
        return False
    seen = members(group)
    return not seen or any(process.is_alive for process in seen)


def send_to_group(group: int, number: int) -> bool:
    """Whether there is such a group. 0 stands for one that is gone (and, for the system, for our own)."""
    try:
        if group:
            os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody is there, under another user
        return True
    return bool(group)


class Descendants:
    """Of one command, in the session that we are in. ``mark`` is like no other."""

    __slots__ = ("_known", "_mark", "_session")

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._session = os.getsid(0)
        self._known: dict[int, int] = {}

    def marked(self, environment: dict[str, str]) -> dict[str, str]:
        """An environment for the command."""
        return environment | {RUNS: f"{environment.get(RUNS, '')} {self._mark}".lstrip()}

    def send(self, number: int, group: int) -> None:
        """A signal that ends, to everybody, also to who is stopped. ``group``: the command's, as long as that number
        cannot be somebody else's. Nobody escapes SIGKILL by starting others meanwhile."""
        self._search(group)
        for each in (number, signal.SIGCONT):
            send_to_group(group, each)
            self._deliver(each, self._known, group)
        for _ in range(MOST_LOOKS if number == signal.SIGKILL else 0):
            late = self._search(group)
            if not late:
                break
            self._deliver(number, late)

    def are_alive(self) -> bool:
        """Look at all the host only when nobody whom we know is left."""
        return any(map(self._is_alive, self._known)) or bool(self._search())

    def _search(self, group: int = 0) -> list[int]:
        """Those who are alive and whom we did not know."""
        here = {pid: each for pid, each in processes().items() if each.is_alive and each.session == self._session}
        found = {pid for pid, each in here.items() if self._is_one(pid, each, group)}
        more = found
        while more:
            more = {pid for pid, each in here.items() if each.parent in found} - found
            found |= more
        late = [pid for pid in found if self._known.get(pid) != here[pid].started]
        self._known.update((pid, here[pid].started) for pid in late)
        return late

    def _is_one(self, pid: int, process: Process, group: int) -> bool:
        is_known = self._known.get(pid) == process.started
        return is_known or 0 < group == process.group or self._has_mark(pid)

    def _has_mark(self, pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return self._mark.encode() in file.read()
        except OSError:  # it has just ended, or is another user's
            return False

    def _is_alive(self, pid: int) -> bool:
        process = self._seen(pid)
        return process is not None and process.is_alive

    def _deliver(self, number: int, to: "Iterable[int]", except_in: int = 0) -> None:
        """Who is in the group has had it, and may take a second one for haste."""
        for pid in to:
            process = self._seen(pid)
            if process is not None and process.group != except_in:
                try:
                    os.kill(pid, number)
                except OSError:  # it has just ended, or is another user's
                    continue

    def _seen(self, pid: int) -> Process | None:
        """One whom we know, as long as it is the same."""
        try:
            process = Process(pid)
        except OSError:
            return None
        return process if process.started == self._known[pid] else None
