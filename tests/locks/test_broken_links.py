"""Links that break at the wrong moment, or die without anybody being told; processes that run out of files."""

import os
import threading
import time
from collections.abc import Iterator

import pytest

import trinco
from tests.locks.links_between import Between
from tests.locks.services import LIMIT, eventually, take
from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer
from trinco.core.errors import StoreUnavailable
from trinco.leases.terms import Terms


@pytest.fixture(params=["redis", "postgres"])
def ends(
    request: pytest.FixtureRequest, redis_server: RedisServer, postgres_server: PostgresServer
) -> Iterator[tuple[Between, str, str]]:
    """The wire, the URL through it, and the one that leads around it."""
    server = redis_server if request.param == "redis" else postgres_server
    direct = redis_server.url if request.param == "redis" else f"{postgres_server.url}?fresh=1"
    with Between(server.port) as between:
        yield between, direct.replace(f":{server.port}", f":{between.port}"), direct


def test_a_link_that_has_died_unheard_is_replaced(
    ends: tuple[Between, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server, or something between, forgot the connection: nobody will ever say so."""
    monkeypatch.setitem(Terms.__init__.__kwdefaults__ or {}, "access_timeout", 0.3)
    between, through, _ = ends
    with trinco.connect(through) as locks:
        take(locks.lock("warm")).release()
        between.go_deaf()
        began = time.monotonic()
        with locks.lock(f"door {through}").hold(LIMIT) as lease:
            assert lease.valid
        assert time.monotonic() - began < LIMIT
        assert between.accepted > 1


@pytest.mark.parametrize("turned_away", [0, 1], ids=["at once", "when the server can be reached again"])
def test_a_release_that_was_lost_with_its_link_is_made_good(ends: tuple[Between, str, str], turned_away: int) -> None:
    between, through, direct = ends
    name = f"passed on {through}"
    with trinco.connect(through) as ana, trinco.connect(direct) as bruno:
        lease = take(ana.lock(name, ttl=20))
        granted: list[float] = []

        def wait() -> None:
            with bruno.lock(name, ttl=20).hold(LIMIT):
                granted.append(time.monotonic())

        waiter = threading.Thread(target=wait)
        waiter.start()
        eventually(lambda: bruno.inspect(name).waiters)
        between.go_mute()
        between.turned_away = turned_away
        threading.Timer(0.1, between.cut).start()
        began = time.monotonic()
        lease.release()
        waiter.join(LIMIT)
        assert granted
        assert granted[0] - began < 5


def test_a_process_without_a_descriptor_to_spare_says_so_and_connects_later(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trinco.connect(redis_server.url) as locks:
        with monkeypatch.context() as patch:
            patch.setattr(os, "dup", _no_more_files)
            with pytest.raises(StoreUnavailable, match="Too many open files"):
                locks.lock("door").try_acquire()
        eventually(lambda: _can_be_had(locks))


def _no_more_files(descriptor: int) -> int:
    raise OSError(24, "Too many open files")


def _can_be_had(locks: trinco.LockService) -> bool:
    try:
        take(locks.lock("door")).release()
    except StoreUnavailable:
        return False
    return True
