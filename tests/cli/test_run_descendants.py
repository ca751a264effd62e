"""``trinco run`` ends all that its command has started, in whichever process group that is by then.

GNU timeout makes one of its own, unless it is the first of a group already.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import (
    LIMIT,
    LOST,
    SAY_PID,
    STUBBORN,
    TRINCO,
    Run,
    eventually,
    is_running,
    number_in,
    processes_with,
)
from trinco.cli.descendants import RUNS, Descendants
from trinco.locks.service import connect

Start = Callable[..., Run]

LONG = f"{SAY_PID} exec sleep 60"
QUICK = ("--ttl", "1500ms", "--kill-after", "300ms")


def terminate(run: Run) -> None:
    run.signal(signal.SIGTERM)


def kill(run: Run) -> None:
    run.signal(signal.SIGKILL)


def stop(run: Run) -> None:
    run.signal(signal.SIGSTOP)


def let_time_pass(run: Run) -> None:
    """Until --max-hold is over."""


def free(url: str, pid: int) -> None:
    """Whoever has the lock next finds that process gone."""
    with connect(url) as locks, locks.lock("x").hold(timeout=LIMIT):
        assert not is_running(pid)


@pytest.mark.parametrize("end", [terminate, kill, stop, let_time_pass])
def test_a_command_that_makes_a_group_of_its_own_is_ended_too(
    trinco_run: Start, url: str, tmp_path: Path, end: Callable[[Run], None]
) -> None:
    limit = ("--max-hold", "1s") if end is let_time_pass else ()
    run = trinco_run(*QUICK, *limit, "x", "--", "sh", "-c", f"timeout 60 sh -c '{LONG}'; echo done")
    pid = number_in(tmp_path / "pid")
    end(run)
    free(url, pid)


def test_a_broken_lock_ends_a_group_of_its_own_too(trinco_run: Start, url: str, tmp_path: Path) -> None:
    run = trinco_run(*QUICK, "x", "--", "sh", "-c", f"timeout 60 sh -c '{STUBBORN}'; echo done")
    pid = number_in(tmp_path / "pid")
    with connect(url) as locks:
        assert locks.break_("x")
    assert run.code() == LOST
    assert not is_running(pid)


@pytest.mark.parametrize("end", [terminate, kill, stop])
def test_who_does_not_want_to_end_is_killed_in_a_group_of_its_own_too(
    trinco_run: Start, url: str, tmp_path: Path, end: Callable[[Run], None]
) -> None:
    run = trinco_run(*QUICK, "x", "--", "sh", "-c", f"timeout 60 sh -c '{STUBBORN}'; echo done")
    pid = number_in(tmp_path / "pid")
    end(run)
    free(url, pid)


@pytest.mark.parametrize("end", [terminate, kill])
def test_who_has_lost_its_parent_is_found(
    trinco_run: Start, url: str, tmp_path: Path, end: Callable[[Run], None]
) -> None:
    run = trinco_run(*QUICK, "x", "--", "sh", "-c", f"(timeout 60 sh -c '{STUBBORN}' &); sleep 60")
    pid = number_in(tmp_path / "pid")
    end(run)
    free(url, pid)


@pytest.mark.parametrize("end", [terminate, kill])
def test_who_has_lost_its_environment_is_found(
    trinco_run: Start, url: str, tmp_path: Path, end: Callable[[Run], None]
) -> None:
    script = f"env -i PATH=$PATH timeout 60 sh -c '{LONG}'; echo done"
    run = trinco_run(*QUICK, "x", "--", "sh", "-c", script)
    pid = number_in(tmp_path / "pid")
    end(run)
    free(url, pid)


def test_a_command_that_somebody_else_has_killed_leaves_nobody_behind(
    trinco_run: Start, url: str, tmp_path: Path
) -> None:
    script = f"echo $$ > command; timeout 60 sh -c '{LONG}'; echo done"
    run = trinco_run(*QUICK, "x", "--", "sh", "-c", script)
    pid = number_in(tmp_path / "pid")
    os.kill(number_in(tmp_path / "command"), signal.SIGKILL)
    free(url, pid)
    assert run.code() == 128 + signal.SIGKILL


def test_who_has_a_session_of_its_own_goes_on(trinco_run: Start, tmp_path: Path) -> None:
    run = trinco_run(*QUICK, "x", "--", "sh", "-c", f"setsid sh -c '{LONG}' > /dev/null 2>&1 & sleep 60")
    pid = number_in(tmp_path / "pid")
    run.signal(signal.SIGTERM)
    assert run.code() == 128 + signal.SIGTERM
    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_clean_up_that_the_end_has_started_is_let_do_its_work(trinco_run: Start, tmp_path: Path) -> None:
    """It is asked once: what a command starts when it is asked to end is not asked."""
    clean_up = "timeout 60 sh -c 'sleep 0.3; echo clean > clean'"
    script = f'trap "{clean_up}; exit 7" TERM; {SAY_PID} while :; do sleep 0.02; done'
    run = trinco_run("x", "--", "sh", "-c", script)
    number_in(tmp_path / "pid")
    run.signal(signal.SIGTERM)
    assert run.code() == 7
    assert (tmp_path / "clean").exists()


def test_a_run_within_a_run_ends_with_it_however_much_time_it_was_given(
    trinco_run: Start, url: str, tmp_path: Path
) -> None:
    inner = [*TRINCO, "run", "--kill-after", "5s", "y", "--", "sh", "-c", STUBBORN]
    run = trinco_run(*QUICK, "x", "--", *inner)
    pid = number_in(tmp_path / "pid")
    run.signal(signal.SIGKILL)
    free(url, pid)
    eventually(lambda: not processes_with(str(tmp_path)), "both guardians end")


def test_what_runs_within_a_run_carries_the_marks_of_both(trinco_run: Start) -> None:
    show = f"import os; print(os.environ['{RUNS}'])"
    inner = [*TRINCO, "run", "y", "--", sys.executable, "-c", show]
    code, out, _ = trinco_run("x", "--", sys.executable, "-c", f"{show}; os.execv({inner[0]!r}, {inner})").end()
    assert code == 0
    outer, both = out.splitlines()
    assert both.split()[0] == outer
    assert len(set(both.split())) == 2


def test_one_that_has_got_the_number_of_a_descendant_is_not_signalled() -> None:
    descendants = Descendants("the mark of this test")
    first = subprocess.Popen(["sleep", "60"], env=descendants.marked(dict(os.environ)))
    next_tick = time.monotonic() + 2 / os.sysconf("SC_CLK_TCK")
    eventually(descendants.are_alive, "the first is found")
    eventually(lambda: time.monotonic() > next_tick, "starts are told apart")
    first.kill()
    first.wait(LIMIT)
    second = with_number(first.pid)
    try:
        assert not descendants.are_alive()
        descendants.send(signal.SIGKILL, 0)
        assert second.poll() is None
    finally:
        second.kill()
        second.wait(LIMIT)


def with_number(pid: int) -> "subprocess.Popen[bytes]":
    """A process with a number of our choice, if the system lets us choose it, and nobody else is faster."""
    for _ in range(20):
        try:
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        except OSError:
            pytest.skip("the next process number cannot be chosen here")
        process = subprocess.Popen(["sleep", "60"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait(LIMIT)
    pytest.skip("somebody else always gets the number")
