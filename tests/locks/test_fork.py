"""Processes that fork in the middle, and processes that end: by returning, by an error, by a signal."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import trinco
from tests.locks.services import eventually, take, within
from tests.locks.workers import NAME, worker
from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(params=["sqlite", "dir", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis")
        with server.dial() as connection:
            connection.sendall(b"FLUSHALL\r\n")
            connection.recv(16)
        return server.url
    return f"sqlite:///{tmp_path}/locks.db" if request.param == "sqlite" else f"dir://{tmp_path}/locks"


def test_a_forked_child_has_none_of_the_leases(url: str) -> None:
    with worker("fork-while-holding", url) as process:
        assert process.hears() == "child: False forked"
        assert process.hears() == "child: acquired False"
        assert process.hears() == "child: another True"
        assert process.hears() == "child ended: 0"
        assert process.hears() == "parent: True True True"
        process.finish()
        assert process.process.returncode == 0


def test_a_child_that_goes_on_alone_keeps_what_it_holds_when_others_come_and_go(tmp_path: Path) -> None:
    """SQLite removes its log when whoever leaves believes to be the last."""
    url = f"sqlite:///{tmp_path}/locks.db"
    with worker("fork-and-close", url) as process:
        assert process.hears() == "child: holds"
        with trinco.connect(url) as other:
            assert other.inspect(NAME).held
        assert (tmp_path / "locks.db-wal").exists()
        time.sleep(1.1)  # after that it looks whether its files are still there
        process.tell()
        assert process.hears() == "child: True"


@pytest.mark.parametrize("url", ["sqlite", "redis"], indirect=True)
def test_a_fork_amid_waiting_threads_leaves_both_sides_able_to_lock(url: str) -> None:
    with worker("fork-amid-threads", url) as process:
        assert [process.hears() for _ in range(5)] == ["child: 0"] * 5
        assert process.hears() == "parent: 0 still wait"


WAITING_PARENT = """
import os, sys, threading, time, trinco
lock = trinco.connect(sys.argv[1]).lock("door")
waits = threading.Thread(target=lambda: lock.hold().__enter__())
waits.start()
while not lock.inspect().waiters:
    time.sleep(0.01)
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
waits.join()
"""


def backends(server: PostgresServer) -> int:
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'trinco'"
    with server.connect() as connection:
        return sum(int(count) for (count,) in connection.execute(query))


def test_a_waiter_that_was_killed_is_not_taken_for_alive_because_its_child_is(postgres_server: PostgresServer) -> None:
    """The lock would be handed over to nobody, for all of its term."""
    url = f"{postgres_server.url}?fresh=1"
    with trinco.connect(url) as locks:
        theirs = take(locks.lock("door"))
        with subprocess.Popen([sys.executable, "-c", WAITING_PARENT, url], stdout=subprocess.PIPE) as parent:
            assert parent.stdout is not None
            child = int(parent.stdout.readline())
            connected = backends(postgres_server)
            try:
                parent.kill()
                parent.wait()
                eventually(lambda: backends(postgres_server) < connected)
                theirs.release()
                assert locks.lock("door").acquire(timeout=5)
            finally:
                os.kill(child, signal.SIGKILL)


def test_a_child_has_no_lease_though_the_service_was_let_go(tmp_path: Path) -> None:
    """``lease = trinco.connect(url).lock(name).try_acquire()`` keeps the lease and nothing else."""
    with worker("fork-without-the-service", f"sqlite:///{tmp_path}/locks.db") as process:
        assert process.hears() == "child: False"
        assert process.hears() == "held: True"


@pytest.mark.parametrize("how", ["return", "error", "exit"])
def test_a_process_that_ends_releases_what_it_holds(url: str, how: str) -> None:
    with worker("hold-and-end", url, how) as process, trinco.connect(url) as onlooker:
        assert process.hears() == "holding"
        process.process.wait(10)
        assert not onlooker.inspect(NAME).held


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_told_to_end_releases_what_it_holds(url: str, number: signal.Signals) -> None:
    with worker("hold-and-end", url, "wait") as process, trinco.connect(url) as onlooker:
        assert process.hears() == "holding"
        process.process.send_signal(number)
        with within(5):
            process.process.wait(10)
        assert process.process.returncode not in (0, None)
        assert not onlooker.inspect(NAME).held


def test_a_process_that_is_killed_holds_for_its_ttl_and_no_longer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with worker("hold-and-write", url, str(tmp_path / "file")) as process, trinco.connect(url) as next_one:
        process.hears()
        process.process.kill()
        process.process.wait(10)
        killed = time.monotonic()
        with next_one.lock(NAME).hold(timeout=5):
            assert time.monotonic() - killed < 1.3


def test_a_lease_is_released_at_exit_though_the_service_was_let_go(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with worker("hold-without-the-service", url) as process, trinco.connect(url) as onlooker:
        assert process.hears() == "holding"
        process.process.wait(10)
        assert not onlooker.inspect(NAME).held
