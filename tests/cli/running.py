"""``trinco run`` in tests. No command of a test outlives it: what is left behind is found by its environment."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

TRINCO = [sys.executable, "-m", "trinco"]
LIMIT = 15.0
LOST = 76


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/locks.db"


@pytest.fixture
def trinco_run(url: str, tmp_path: Path) -> Iterator[Callable[..., "Run"]]:
    """Start ``trinco run``; at the end of the test nothing of it may be left."""
    started: list[Run] = []

    def start(*arguments: str, **options: Any) -> Run:
        started.append(Run(arguments, url, tmp_path, **options))
        return started[-1]

    yield start
    for each in started:
        each.clear()
    try:
        eventually(lambda: not processes_with(str(tmp_path)), "everything that the test started ends", 2.0)
    finally:
        for pid in processes_with(str(tmp_path)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Run:
    """One ``trinco run`` under way. Its environment names the test's folder, and so does that of all it starts."""

    def __init__(
        self, arguments: tuple[str, ...], url: str, folder: Path, *, verb: str = "run", **options: Any
    ) -> None:
        environment = {**os.environ, "TRINCO_URL": url, "TEST_FOLDER": str(folder)}
        call = [*TRINCO, verb, *arguments]
        pipe = subprocess.PIPE
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "cwd": folder}
        self.process = subprocess.Popen(call, env=environment, text=True, **(given | options))
        self.folder = folder

    def end(self) -> tuple[int, str, str]:
        """Exit code and what was said on stdout and stderr."""
        out, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out, err

    def code(self) -> int:
        return self.end()[0]

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def clear(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LIMIT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def processes_with(folder: str) -> list[int]:
    """Living processes whose environment names this folder."""
    wanted = f"TEST_FOLDER={folder}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                state = (process / "stat").read_bytes().rpartition(b")")[2].split()[0]
                if state not in b"ZX" and wanted in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
    return found


def eventually(happened: Callable[[], Any], what: str, limit: float = LIMIT) -> Any:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        result = happened()
        if result:
            return result
        time.sleep(0.005)
    raise AssertionError(f"not within {limit} s: {what}")


def number_in(path: Path) -> int:
    """A process number that a command writes into a file, as soon as it is there."""
    return int(eventually(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text(), f"{path}"))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state not in b"ZX"


def gone(pid: int) -> None:
    eventually(lambda: not is_running(pid), f"process {pid} ends")


SAY_PID = "echo $$ > pid;"
STUBBORN = 'trap "" TERM; ' + SAY_PID + " while :; do sleep 0.05; done"
"""Both fit between single quotes: between double ones $$ would be the shell around."""


def guardian_of(parent: int, child: int) -> int | None:
    """The other process that trinco started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return next((int(pid) for pid in children if int(pid) != child and is_running(int(pid))), None)
