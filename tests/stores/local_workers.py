"""Processes of their own for the tests of the SQLite store and of the memory store: they wait, fork, and are killed."""

import os
import signal
import subprocess
import sys
import time
from random import Random

from tests.stores.local_stores import apply, claim, hints_within, is_granted, stand_in_line, take
from trinco.core.errors import StoreForbidden, StoreUnavailable
from trinco.leases.operation import Release
from trinco.stores.clock import boottime
from trinco.stores.memory import MemoryStore
from trinco.stores.sqlite import SQLiteStore
from trinco.stores.store import Link

TTL = 0.5
WORKERS = 8


def start_worker(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stores.local_workers", *arguments], stdout=subprocess.PIPE, text=True
    )


def run_worker(*arguments: str) -> list[str]:
    """What it says, line by line; it must end well."""
    with start_worker(*arguments) as worker:
        said, _ = worker.communicate(timeout=25)
    assert worker.returncode == 0, said
    return said.splitlines()


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def wait_in_line(path: str, address: str, ticket: str) -> None:
    """Until a hint comes; then ask again, and hold for ever."""
    link = SQLiteStore(path).connect(address)
    mine = claim("waiter", address)
    stand_in_line(link, mine, int(ticket), wait=1000)
    say("waiting")
    hints = hints_within(link, 20)
    say(f"hints: {len(hints)}")
    say("granted" if is_granted(stand_in_line(link, mine, int(ticket))) else "refused")
    link.close()


def _say_whether_granted(who: str, link: Link) -> None:
    try:
        say(f"{who}: granted" if is_granted(take(link, claim())) else f"{who}: not granted")
    except StoreUnavailable as error:
        say(f"{who}: refused" if "fork" in str(error) else str(error))


def _in_a_child(store: "SQLiteStore | MemoryStore", link: Link) -> None:
    _say_whether_granted("child", link)
    link.close()
    try:
        own = store.connect("b" * 20)
        _say_whether_granted("child", own)
        own.close()
    except StoreUnavailable:
        say("child: refused")


def _fork(store: "SQLiteStore | MemoryStore") -> None:
    link = store.connect("a" * 20)
    link.expect_hints("")
    _say_whether_granted("parent", link)
    if not (child := os.fork()):
        _in_a_child(store, link)
        del link
        sys.exit(0)
    os.waitpid(child, 0)
    _say_whether_granted("parent", link)
    if isinstance(store, SQLiteStore):
        say(f"parent: {len(os.listdir(store.url.removeprefix('sqlite:///') + '-wake'))} socket")
    link.close()


def fork_memory() -> None:
    _fork(MemoryStore())


def fork_sqlite(path: str) -> None:
    _fork(SQLiteStore(path))


def arrive_together(path: str) -> None:
    """Eight processes that all open a file which does not exist yet; exactly one is granted."""
    children = []
    for number in range(WORKERS):
        if not (child := os.fork()):
            address = f"{number:020x}"
            link = SQLiteStore(path).connect(address)
            say("granted" if is_granted(take(link, claim("child", address))) else "refused")
            os._exit(0)
        children.append(child)
    for each in children:
        os.waitpid(each, 0)


def take_as_nobody(path: str) -> None:
    """Modes do not stop root."""
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        take(SQLiteStore(path).connect("a" * 20), claim())
    except StoreForbidden as error:
        say(str(error))


def torture(path: str, seconds: str) -> None:
    """Workers that take turns, and are killed at any moment; each killed one is replaced."""
    random = Random(7)
    end = time.monotonic() + float(seconds)
    workers: list[int] = []
    kills = 0
    while time.monotonic() < end:
        while len(workers) < WORKERS:
            workers.append(_forked_worker(path, kills * WORKERS + len(workers)))
        time.sleep(random.uniform(0, 0.04))
        _kill(workers.pop(random.randrange(WORKERS)))
        kills += 1
    for each in workers:
        _kill(each)
    say(str(kills))


def _kill(worker: int) -> None:
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)


def _forked_worker(path: str, number: int) -> int:
    worker = os.fork()
    if worker:
        return worker
    try:
        _take_turns(path, f"{number:020x}")
    finally:
        os._exit(1)
    raise AssertionError


def _take_turns(path: str, address: str) -> None:
    log = os.open(f"{path}-log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    counter = os.open(f"{path}-counter", os.O_RDWR | os.O_CREAT)
    link = SQLiteStore(path).connect(address)
    for attempt in range(1_000_000):
        mine = claim("worker", address, attempt=attempt)
        ticket = time.time_ns() // 1000
        start = boottime()
        while not is_granted(answer := take(link, mine, TTL, ticket=ticket, wait=1.0)):
            hints_within(link, max(0.001, min(answer.remaining, 0.1)))
            start = boottime()
        count = int.from_bytes(os.pread(counter, 8, 0), "big")
        granted = boottime()
        if granted - start < TTL / 2:  # the lease is believed
            os.pwrite(counter, (count + 1).to_bytes(8, "big"), 0)
            os.write(log, f"{answer.token} {count + 1} {start} {granted}\n".encode())
        apply(link, Release(mine))


def main() -> None:
    command, *arguments = sys.argv[1:]
    globals()[command.replace("-", "_")](*arguments)


if __name__ == "__main__":
    main()
