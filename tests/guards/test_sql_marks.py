"""Marks in a database for effects that are elsewhere: committed before the effect, locked while it goes on."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from tests.guards.databases import Database, PostgreSQL, SQLite, prepare, wait_for_a_lock
from trinco.core.errors import StoreUnavailable
from trinco.guards import ConnectingSQLGuard, SQLGuard, StaleToken


def test_a_mark_for_an_effect_elsewhere_is_committed_before_the_effect(database: Database) -> None:
    guard = ConnectingSQLGuard(database.connect)
    connection = database.connect()
    with pytest.raises(ZeroDivisionError), guard.fenced("nightly", 6):
        raise ZeroDivisionError
    assert SQLGuard(connection).highest("nightly") == 6
    connection.close()
    with pytest.raises(StaleToken):
        guard.fenced("nightly", 5).__enter__()


def test_while_an_effect_elsewhere_goes_on_a_larger_token_waits(postgres: PostgreSQL) -> None:
    prepare(postgres)
    guard = ConnectingSQLGuard(postgres.connect)
    order: list[int] = []

    def enter(token: int) -> None:
        with guard.fenced("nightly", token):
            order.append(token)

    with postgres.connect(autocommit=True) as watch, ThreadPoolExecutor() as pool:
        with guard.fenced("nightly", 5):
            later = pool.submit(enter, 6)
            wait_for_a_lock(watch)
            order.append(5)
        later.result(10)
    assert order == [5, 6]


def test_a_block_that_postgres_does_not_let_in_in_time_is_store_unavailable(postgres: PostgreSQL) -> None:
    prepare(postgres)
    guard = ConnectingSQLGuard(lambda: postgres.connect(options="-c lock_timeout=20ms"))
    with guard.fenced("nightly", 5), pytest.raises(StoreUnavailable, match="inside 'nightly'"):
        guard.fenced("nightly", 5).__enter__()
    with guard.fenced("nightly", 6):
        pass


def told(message: str, **more: str) -> Exception:
    """An error as drivers that are not installed here raise it."""
    error = Exception(message)
    vars(error).update(more)
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (told("canceling statement due to lock timeout", pgcode="55P03"), StoreUnavailable),
        (Exception(1205, "Lock wait timeout exceeded; try restarting transaction"), StoreUnavailable),
        (Exception(1213, "Deadlock found when trying to get lock"), StoreUnavailable),
        (Exception(1146, "Table 'trinco_fence' doesn't exist"), Exception),
        (Exception(), Exception),
    ],
)
def test_a_lock_timeout_is_known_by_the_codes_of_other_drivers(error: Exception, expected: type[Exception]) -> None:
    def fail(*call: Any) -> None:
        raise error

    cursor = SimpleNamespace(execute=fail, close=lambda: None)
    connection = SimpleNamespace(cursor=lambda: cursor, rollback=lambda: None, close=lambda: None)
    guard = ConnectingSQLGuard(lambda: connection, paramstyle="format")
    with pytest.raises(Exception) as raised:  # noqa: PT011
        guard.fenced("nightly", 5).__enter__()
    assert type(raised.value) is expected


def test_what_is_no_lock_timeout_on_the_way_in_stays_the_databases_own_error(sqlite: SQLite) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        ConnectingSQLGuard(sqlite.connect).fenced("nightly", 5).__enter__()


def test_a_lock_timeout_inside_a_block_is_the_blocks_own(sqlite: SQLite) -> None:
    prepare(sqlite)
    error = sqlite3.OperationalError("database is locked")
    with pytest.raises(sqlite3.OperationalError) as raised, ConnectingSQLGuard(sqlite.connect).fenced("nightly", 5):
        raise error
    assert raised.value is error
