"""The last moments of a process: finalisers that still have a lease in their hands, and SIGTERM."""

import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE, CompletedProcess, Popen, run

import pytest

import trinco
from tests.locks.services import eventually, take

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


BUSY = """
import sys, trinco
lock = trinco.connect(sys.argv[1]).lock("door")
print("ready", flush=True)
while True:
    with lock.hold():
        pass
"""


@pytest.mark.parametrize("run", range(6))
def test_sigterm_in_the_middle_of_an_access_leaves_nothing_held(run: int, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with Popen([sys.executable, "-c", BUSY, url], stdout=PIPE, stderr=PIPE) as busy:
        assert busy.stdout is not None
        busy.stdout.readline()
        time.sleep(0.003 * run)  # at some moment, which is in the middle of one nearly always
        busy.send_signal(signal.SIGTERM)
        assert (busy.wait(LIMIT), busy.stderr and busy.stderr.read()) == (128 + signal.SIGTERM, b"")
    with trinco.connect(url) as locks:
        assert not locks.inspect("door").held


IN_A_LOOP = """
import os, signal, sys, threading, anyio, trinco
locks = trinco.connect(sys.argv[2])
others = [trinco.connect(sys.argv[2]).lock(name).try_acquire() for name in ("one", "two")]

async def hold():
    async with locks.aio.lock("door").hold(), anyio.create_task_group() as tasks:
        for lease in others:
            tasks.start_soon(locks.aio.lock(lease.name).acquire)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
        await anyio.sleep(60)

anyio.run(hold, backend=sys.argv[1])
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_sigterm_while_all_tasks_sleep_leaves_nothing_held(backend: str, tmp_path: Path) -> None:
    """What it raises goes through the event loop itself: a trio that ended so does not know that it has."""
    url = f"sqlite:///{tmp_path}/locks.db"
    command = [sys.executable, "-W", "ignore", "-c", IN_A_LOOP, backend, url]
    ending = run(command, timeout=LIMIT, capture_output=True, text=True, check=False)
    assert ending.returncode == 128 + signal.SIGTERM
    assert "could not release" not in ending.stderr
    with trinco.connect(url) as locks:
        assert not locks.inspect("door").held


IN_A_THREAD = """
import os, signal, sys, threading, time, trinco
lock = trinco.connect(sys.argv[1]).lock("door")

def hold():
    with lock.hold():
        threading.main_thread().join()
        for _ in range(400):  # Python does not hear one that comes just before it begins to wait
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.05)

threading.Thread(target=hold).start()
"""


def test_sigterm_when_only_threads_are_left_ends_the_process_and_leaves_nothing_held(tmp_path: Path) -> None:
    """What is raised while Python waits for them is swallowed, and the process would count as done."""
    url = f"sqlite:///{tmp_path}/locks.db"
    command = [sys.executable, "-c", IN_A_THREAD, url]
    ending = run(command, timeout=LIMIT, capture_output=True, text=True, check=False)
    assert (ending.returncode, ending.stderr) == (-signal.SIGTERM, "")
    with trinco.connect(url) as locks:
        assert not locks.inspect("door").held


WAITS_IN_A_THREAD = """
import sys, threading, time, trinco
locks = trinco.connect(sys.argv[1])

def work():
    with locks.lock("work", ttl=1).hold() as lease:
        print("ready", flush=True)
        while threading.main_thread().is_alive():
            time.sleep(0.01)
        time.sleep(1.5)
        print("still mine:", lease.valid, flush=True)

def wait():
    try:
        locks.lock("door").acquire()
    except trinco.StoreUnavailable as error:
        print("told:", error, flush=True)

for each in (work, wait):
    threading.Thread(target=each).start()
time.sleep(60)
"""


def test_sigterm_turns_away_who_waits_in_a_thread_and_lets_the_others_finish(tmp_path: Path) -> None:
    """Python waits for its threads, and this one would wait for as long as somebody else holds the lock."""
    url = f"sqlite:///{tmp_path}/locks.db"
    with trinco.connect(url) as locks, take(locks.lock("door")):
        with Popen([sys.executable, "-c", WAITS_IN_A_THREAD, url], stdout=PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                eventually(lambda: locks.inspect("door").waiters)
                process.terminate()
                said, _ = process.communicate(timeout=LIMIT)
            finally:
                process.kill()
        mine, told = sorted(said.splitlines())
        assert mine == "still mine: True"
        assert told.startswith("told: this process was told to end")
        assert process.returncode == 128 + signal.SIGTERM
        assert not locks.inspect("work").held


POOLS = """
import multiprocessing, signal, trinco

def use_a_lock(number):
    with trinco.connect("memory:pool") as locks, locks.lock(f"door-{number}").hold(timeout=20):
        pass

with trinco.connect("memory:"):
    with trinco.connect("memory:"):
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
for _ in range(10):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(use_a_lock, range(4))
"""


def test_when_the_last_service_is_closed_sigterm_is_as_it_was() -> None:
    """Else a worker of a pool, which waits in C for more work, may not hear it, and the pool does not end."""
    assert ended(POOLS).stderr == ""


CROWDED = """
import signal, sys, trinco
from trinco.locks import endings

def connected_and_closed(place):
    # Another thread connects, and lives on, when ours has come so far.
    left, others = place, []

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename == endings.__file__:
            left -= 1
            if left == 0:
                sys.settrace(None)
                others.append(trinco.connect("memory:"))
            return trace

    sys.settrace(trace)
    trinco.connect("memory:").close()
    sys.settrace(None)
    if others:
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL, place
        others.pop().close()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, place
    return left <= 0

place = 1
while connected_and_closed(place):
    place += 1
assert place > 10
"""


def test_sigterm_ends_a_process_in_order_whoever_connects_while_another_thread_does() -> None:
    ended(CROWDED)
