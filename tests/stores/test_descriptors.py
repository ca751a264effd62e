"""Stores in a process that may open no more files: none of them blames the disk, the path or the server for that."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer
from trinco.core.errors import StoreUnavailable
from trinco.stores import descriptors
from trinco.stores.catalogue import open_store
from trinco.stores.store import Store

ADDRESS = "0" * 20


@contextmanager
def only(how_many: int) -> Iterator[None]:
    """So many more files can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + how_many + 2, hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(how_many):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


def complaints(store: Store) -> list[str]:
    """From none left to as many as it takes to connect. What is loaded at the first contact is there already."""
    store.connect(ADDRESS).close()
    heard: list[str] = []
    while True:
        with only(len(heard)):
            try:
                store.connect(ADDRESS).close()
            except StoreUnavailable as error:
                heard.append(str(error))
            else:
                return heard


def judge(heard: list[str]) -> None:
    assert heard
    assert [line for line in heard if "ulimit -n" not in line] == []


@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_a_file_is_not_blamed_where_no_more_can_be_opened(kind: str, tmp_path: Path) -> None:
    judge(complaints(open_store(f"{kind}:///{tmp_path}/locks")))


def test_a_new_file_is_not_blamed_where_no_more_can_be_opened(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/locks").connect(ADDRESS).close()
    for how_many in (1, 2):
        with only(how_many), pytest.raises(StoreUnavailable, match="ulimit -n"):
            open_store(f"sqlite:///{tmp_path}/another-{how_many}").connect(ADDRESS)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_is_not_blamed_where_no_socket_can_be_opened(
    redis_server: RedisServer, postgres_server: PostgresServer, host: str
) -> None:
    for server in (redis_server, postgres_server):
        judge(complaints(open_store(server.url.replace("127.0.0.1", host))))


def test_how_many_are_left_is_counted_and_none_is_kept() -> None:
    with only(2):
        assert [descriptors.are_used_up(needed) for needed in (1, 2, 3, 2)] == [False, False, True, False]
