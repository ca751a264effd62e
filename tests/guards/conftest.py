"""An empty database for each test, and connections to it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.guards.databases import Database, PostgreSQL, SQLite, prepare
from tests.stores.postgres_server import PostgresServer


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> PostgreSQL:
    """An empty one."""
    with postgres_server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS trinco_fence, effects")
    return PostgreSQL(postgres_server.url)


@pytest.fixture
def sqlite(tmp_path: Path) -> SQLite:
    return SQLite(tmp_path / "app.db")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(request.param)
    prepare(made)
    return made


@pytest.fixture
def connections(database: Database) -> Iterator[Callable[[], Any]]:
    """Makes connections, and closes them."""
    made: list[Any] = []

    def connect() -> Any:
        made.append(database.connect())
        return made[-1]

    yield connect
    for connection in made:
        connection.close()
