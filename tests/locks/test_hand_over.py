"""Stores that hand over, as processes see it: what is handed to somebody who does not hear of it in time."""

import os
import signal
import time

import pytest

import trinco
from tests.locks.services import in_line
from tests.locks.workers import LIMIT, NAME, Worker, worker
from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer


@pytest.fixture(params=["redis", "postgres"])
def url(request: pytest.FixtureRequest, redis_server: RedisServer, postgres_server: PostgresServer) -> str:
    return redis_server.url if request.param == "redis" else f"{postgres_server.url}?fresh=1"


def in_line_behind(lease: trinco.Lease, waiter: Worker, onlooker: trinco.LockService) -> None:
    assert waiter.hears() == "ready"
    in_line(onlooker, NAME, 1)
    lease.check()


def test_who_is_handed_a_lock_while_it_is_stopped_does_not_believe_it_afterwards(url: str) -> None:
    with worker("wait-and-say", url) as waiter, trinco.connect(url) as ana, trinco.connect(url) as bruno:
        with ana.lock(NAME, ttl=1).hold(LIMIT) as lease:
            in_line_behind(lease, waiter, bruno)
            os.kill(waiter.process.pid, signal.SIGSTOP)
        with bruno.lock(NAME, ttl=1).hold(LIMIT) as lease:
            os.kill(waiter.process.pid, signal.SIGCONT)
            time.sleep(0.3)  # in which it must not come in
            lease.check()
            token, released = lease.token, time.monotonic()
        moment, later_token = waiter.hears().split()
        assert released <= float(moment) <= released + 0.6
        assert token is not None
        assert int(later_token) > token


def test_who_was_killed_in_line_is_passed_over_at_once(url: str) -> None:
    with worker("wait-and-say", url) as first, worker("wait-and-say", url) as second, trinco.connect(url) as ana:
        with ana.lock(NAME, ttl=1).hold(LIMIT) as lease:
            in_line_behind(lease, first, ana)
            assert second.hears() == "ready"
            in_line(ana, NAME, 2)
            first.process.kill()
            first.process.wait(LIMIT)
            time.sleep(0.05)  # for the server to notice
            released = time.monotonic()
        assert float(second.hears().split()[0]) - released < 0.6
