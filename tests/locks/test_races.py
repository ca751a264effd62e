"""Processes that race for one lock, on every kind of store that processes can share."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.locks.workers import worker
from tests.prove_locks import judged, races
from tests.stores.postgres_server import PostgresServer, make_template, own_folder
from tests.stores.servers import RedisServer


def test_nobody_overlaps_while_one_store_is_killed_again_and_again() -> None:
    """The reduced run of ``tests.prove_locks``."""
    figures = races(400, hold=0.003)
    assert figures["acquisitions"] == 400
    assert figures["restarts_of_one_store"] >= 1
    assert figures["losses"] == 0
    assert figures["seconds"] < 25, figures


@pytest.fixture(params=["sqlite", "four sqlite", "redis", "postgres"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    with ExitStack() as stack:
        if request.param == "redis":
            yield [stack.enter_context(RedisServer()).url]
        elif request.param == "postgres":
            yield [_postgres(stack)]
        else:
            how_many = 4 if request.param == "four sqlite" else 1
            yield [f"sqlite:///{tmp_path}/{number}.db" for number in range(how_many)]


def _postgres(stack: ExitStack) -> str:
    server = PostgresServer(make_template(own_folder()))
    stack.callback(server.stop)
    return f"{server.start().url}?fresh=1"


def test_processes_take_turns(stores: list[str], tmp_path: Path) -> None:
    rounds, processes = 25, 4
    (tmp_path / "counter").write_text("0")
    env = {"TRINCO_KEYS": str(tmp_path / "keys.json")}
    arguments = ("race", str(tmp_path), str(rounds), "0.001", "2", *stores)
    with ExitStack() as stack:
        racers = [stack.enter_context(worker(*arguments, env=env)) for _ in range(processes)]
        for racer in racers:
            assert racer.hears() == "ready"
        for racer in racers:
            racer.tell()
        for racer in racers:
            assert racer.finish() == "finished\n"
    assert judged(tmp_path)["acquisitions"] == rounds * processes
