"""The last moments of a process: finalisers that still have a lease in their hands."""

import sys
from pathlib import Path
from subprocess import CompletedProcess, run

import pytest

LIMIT = 20.0

FINALISED = """
import sys, trinco
from trinco import TrincoError
locks = trinco.connect(sys.argv[1])
lock = locks.lock("door")

class Job:
    def __init__(self):
        self.lease = lock.try_acquire()

    def __del__(self):
        lease = self.lease
        try:
            {call}
        except TrincoError as error:
            print(type(error).__name__)
        print("done")

job = Job()
"""

SUSPENDED = """
import sys, trinco
locks = trinco.connect(sys.argv[1])

def body():
    with locks.lock("door").hold():
        yield

suspended = body()
next(suspended)
"""


def ended(script: str, *arguments: str) -> "CompletedProcess[str]":
    """A process that ran this and ended by itself."""
    command = [sys.executable, "-c", script, *arguments]
    return run(command, timeout=LIMIT, capture_output=True, text=True, check=True)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("lease.release()", ["done"]),
        ("lease.check()", ["LeaseLost", "done"]),
        ("lease.renew()", ["LeaseLost", "done"]),
        ("lock.try_acquire()", ["StoreUnavailable", "done"]),
        ("locks.inspect('door')", ["StoreUnavailable", "done"]),
        ("locks.close()", ["done"]),
    ],
)
def test_a_finaliser_at_the_end_of_the_process_waits_for_nobody(call: str, says: list[str], tmp_path: Path) -> None:
    """By then a thread of ours may have been ended while it had the mutex."""
    ending = ended(FINALISED.format(call=call), f"sqlite:///{tmp_path}/locks.db")
    assert (ending.stdout.split(), ending.stderr) == (says, "")


def test_a_generator_that_is_suspended_within_a_hold_lets_the_process_end(tmp_path: Path) -> None:
    assert ended(SUSPENDED, f"sqlite:///{tmp_path}/locks.db").stderr == ""


WAITING = """
import sys, threading, anyio, trinco
from trinco.locks import endings
locks, others = trinco.connect(sys.argv[1]), trinco.connect(sys.argv[1])
tasks = locks.aio
locks.inspect("door")  # they come first, and so they are closed first
others.lock("door").try_acquire()

async def wait_in_a_loop():
    async with tasks.lock("door").hold():
        pass

def wait():
    if sys.argv[2] == "task":
        anyio.run(wait_in_a_loop)
    else:
        with locks.lock("door").hold():
            pass

endings.LAST_WAIT = float(sys.argv[3])
thread = threading.Thread(target=wait, daemon=True)
thread.start()
while not others.inspect("door").waiters:
    pass
"""
JOINED_LAST = "import atexit\natexit.register(lambda: thread.join())\n"
"""What is registered first is called last: the lock services are closed by then."""


@pytest.mark.parametrize("who", ["thread", "task"])
@pytest.mark.parametrize("store", ["memory:", "sqlite"])
def test_a_daemon_that_waits_ends_with_its_process_and_says_nothing(store: str, who: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db" if store == "sqlite" else store
    done = ended(WAITING, url, who, "5")
    assert (done.stdout, done.stderr) == ("", "")


def test_a_daemon_that_somebody_joins_at_the_end_is_sent_away_after_a_while(tmp_path: Path) -> None:
    done = ended(JOINED_LAST + WAITING, f"sqlite:///{tmp_path}/locks.db", "thread", "0.1")
    assert "this lock service was closed" in done.stderr
