"""``trinco run`` where the system refuses what it needs: its command is never left alone."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import (
    LIMIT,
    SAY_PID,
    STUBBORN,
    TRINCO,
    Run,
    eventually,
    gone,
    guardian_of,
    is_running,
    number_in,
)
from tests.stores.servers import RedisServer
from trinco.locks.service import connect

Start = Callable[..., Run]
LONG = f"{SAY_PID} exec sleep 60"
BARE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")


def killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    gone(pid)


def test_a_guardian_that_cannot_be_started_again_is_tried_until_it_can(trinco_run: Start, tmp_path: Path) -> None:
    run = trinco_run("x", "--", "sh", "-c", LONG)
    trinco, child = run.process.pid, number_in(tmp_path / "pid")
    few, most = resource.prlimit(trinco, resource.RLIMIT_NOFILE)
    resource.prlimit(trinco, resource.RLIMIT_NOFILE, (3, most))
    killed(eventually(lambda: guardian_of(trinco, child), "a guardian"))
    assert "the guardian was ended and cannot be started again (Too many open files)" in run.process.stderr.readline()
    assert is_running(child)
    resource.prlimit(trinco, resource.RLIMIT_NOFILE, (few, most))
    eventually(lambda: guardian_of(trinco, child), "another guardian")
    run.signal(signal.SIGKILL)
    gone(child)


def test_a_guardian_that_ends_again_and_again_is_not_started_all_the_time(trinco_run: Start, tmp_path: Path) -> None:
    """The first is replaced at once, so that no time is lost; the next a second later."""
    run = trinco_run("x", "--", "sh", "-c", LONG)
    trinco, child = run.process.pid, number_in(tmp_path / "pid")
    starts = []
    for _ in range(3):
        guardian = eventually(lambda: guardian_of(trinco, child), "a guardian")
        starts.append(started(guardian))
        killed(guardian)
    assert starts[2] - starts[1] > 0.9
    run.signal(signal.SIGTERM)
    assert run.code() == 128 + signal.SIGTERM


def started(pid: int) -> float:
    """In seconds since the host was started."""
    ticks = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK")


OUT_OF_MEMORY = """
import os, select, sys
class Poll:
    def __init__(self):
        self.real = usual()
        self.register, self.unregister = self.real.register, self.real.unregister
    def poll(self, milliseconds):
        if os.path.exists("trouble"):
            raise MemoryError
        return self.real.poll(min(milliseconds, 20))
usual, select.poll = select.poll, Poll
from trinco.cli.main import main
main()
"""


@pytest.mark.parametrize("script", [LONG, STUBBORN])
def test_whatever_goes_wrong_within_trinco_the_command_is_ended_first(tmp_path: Path, url: str, script: str) -> None:
    """The guardian has the same trouble here, and can be of no help."""
    call = [sys.executable, "-c", OUT_OF_MEMORY, "run", "--kill-after", "300ms", "x", "--", "sh", "-c", script]
    environment = {**os.environ, "TRINCO_URL": url}
    with subprocess.Popen(call, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        child = number_in(tmp_path / "pid")
        (tmp_path / "trouble").touch()
        _, said = process.communicate(timeout=LIMIT)
    assert not is_running(child)
    assert process.returncode != 0
    assert said.startswith("trinco: out of memory")
    assert said.count("\n") == 1


class Bare:
    """``trinco run`` where these folders are empty, with a lock of its own."""

    def __init__(self, folders: tuple[str, ...], server: RedisServer, name: str) -> None:
        self.name = name
        self._mounts = "".join(f"mount -t tmpfs none {folder} && " for folder in folders)
        self._trinco = " ".join([*TRINCO, "run", "--ttl", "1500ms", "-u", f"'{server.url}'", name])
        if subprocess.run([*BARE, f"{self._mounts} true"], capture_output=True, check=False).returncode:
            pytest.skip("this system lets nobody empty these folders")

    def start(self, script: str) -> "subprocess.Popen[bytes]":
        call = [*BARE, f"{self._mounts} exec {self._trinco} -- sh -c '{script}'"]
        return subprocess.Popen(call, cwd=self.name)


@pytest.fixture(params=[("/dev",), ("/dev", "/proc")], ids=" and ".join)
def bare(request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path: Path) -> Bare:
    return Bare(request.param, redis_server, str(tmp_path))


def test_the_command_has_a_guardian_where_folders_are_bare(
    bare: Bare, redis_server: RedisServer, tmp_path: Path
) -> None:
    with bare.start(LONG) as trinco:
        child = number_in(tmp_path / "pid")
        assert guardian_of(trinco.pid, child)
        trinco.kill()
    with connect(redis_server.url) as locks, locks.lock(bare.name).hold(timeout=LIMIT):
        assert not is_running(child)


def test_the_command_ends_as_ever_where_folders_are_bare(bare: Bare) -> None:
    with bare.start("exit 3") as trinco:
        assert trinco.wait(LIMIT) == 3
