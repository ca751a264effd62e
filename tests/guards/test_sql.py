"""Fencing in a database: SQLite files and a real PostgreSQL, one transaction and many at once."""

import random
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.rows import class_row, dict_row, kwargs_row, namedtuple_row, scalar_row

from tests.guards.databases import Database, PostgreSQL, SQLite, do, effect, effects, prepare, wait_for_a_lock
from trinco.core.errors import TrincoError, UsageError
from trinco.guards import SQLGuard, StaleToken, require_changed

ROOT = Path(__file__).resolve().parents[2]


def do_and_fail(connection: Any, token: int, before: Callable[[], None] = lambda: None) -> None:
    with SQLGuard(connection).fenced("nightly", token) as cursor:
        effect(cursor, token)
        before()
        raise InterruptedError


def near(connection: Any, chance: random.Random) -> int:
    """A token that may just be too small by the time it is used."""
    return (SQLGuard(connection).highest("nightly") or 10) + chance.randrange(-2, 3)


# One after the other


def test_a_token_passes_until_a_larger_one_has(connections: Callable[[], Any]) -> None:
    connection = connections()
    assert [do(connection, token) for token in (5, 5, 7, 6, 7, 8)] == [True, True, True, False, True, True]
    assert effects(connections()) == [5, 5, 7, 7, 8]


def as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip([column[0] for column in cursor.description], row, strict=True))


def as_value(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Any:
    return row[0]


def as_object(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> SimpleNamespace:
    return SimpleNamespace(**as_dict(cursor, row))


@pytest.mark.parametrize("make", [as_dict, as_value, as_object, sqlite3.Row])
def test_a_mark_is_read_from_rows_of_any_kind_in_sqlite(sqlite: SQLite, make: Callable[..., Any]) -> None:
    prepare(sqlite)
    connection = sqlite.connect()
    connection.row_factory = make
    assert_marks_work(connection)


@pytest.mark.parametrize(
    "make", [dict_row, namedtuple_row, scalar_row, kwargs_row(SimpleNamespace), class_row(SimpleNamespace)]
)
def test_a_mark_is_read_from_rows_of_any_kind_in_postgres(postgres: PostgreSQL, make: Any) -> None:
    prepare(postgres)
    assert_marks_work(postgres.connect(row_factory=make))


def assert_marks_work(connection: Any) -> None:
    try:
        assert [do(connection, token) for token in (5, 7, 6)] == [True, True, False]
        assert SQLGuard(connection).highest("nightly") == 7
    finally:
        connection.close()


def test_resources_and_slots_have_marks_of_their_own(connections: Callable[[], Any]) -> None:
    connection = connections()
    assert do(connection, 9, "gpu/0")
    assert do(connection, 3, "gpu/1")
    guard = SQLGuard(connection)
    assert [guard.highest(name) for name in ("gpu/0", "gpu/1", "gpu/2")] == [9, 3, None]


def test_a_refusal_comes_before_the_first_line_and_rolls_back_what_was_done_before(
    connections: Callable[[], Any],
) -> None:
    connection = connections()
    do(connection, 6)
    effect(connection.cursor(), 1)
    with pytest.raises(StaleToken) as refused, SQLGuard(connection).fenced("nightly", 5):
        pytest.fail("the block must not run")
    assert (refused.value.resource, refused.value.token, refused.value.highest) == ("nightly", 5, 6)
    assert isinstance(refused.value, TrincoError)
    assert effects(connections()) == [6]


def test_a_block_that_fails_leaves_neither_effect_nor_mark(connections: Callable[[], Any]) -> None:
    connection = connections()
    do(connection, 5)
    with pytest.raises(InterruptedError):
        do_and_fail(connection, 9)
    assert SQLGuard(connections()).highest("nightly") == 5
    assert effects(connections()) == [5]


def test_a_block_that_fails_on_a_lost_connection_tells_the_first_error(connections: Callable[[], Any]) -> None:
    connection = connections()
    with pytest.raises(InterruptedError):
        do_and_fail(connection, 9, connection.close)


def test_a_check_works_inside_a_transaction_of_ones_own(connections: Callable[[], Any]) -> None:
    connection = connections()
    cursor = connection.cursor()
    guard = SQLGuard(connection)
    guard.check(cursor, "nightly", 5)
    effect(cursor, 5)
    assert SQLGuard(connections()).highest("nightly") is None
    connection.commit()
    assert SQLGuard(connections()).highest("nightly") == 5


def test_the_highest_leaves_no_transaction_open(postgres: PostgreSQL) -> None:
    prepare(postgres)
    with postgres.connect() as connection:
        SQLGuard(connection).highest("nightly")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_connection_that_commits_by_itself_is_refused(sqlite: SQLite, postgres: PostgreSQL) -> None:
    for database in (sqlite, postgres):
        prepare(database)
    alone = sqlite3.connect(sqlite.path, isolation_level=None)
    for connection in (alone, postgres.connect(autocommit=True)):
        with pytest.raises(UsageError, match="commits every statement by itself"):
            SQLGuard(connection).fenced("nightly", 5).__enter__()
        connection.close()


def test_in_a_transaction_a_connection_that_else_commits_by_itself_will_do(postgres: PostgreSQL) -> None:
    prepare(postgres)
    with postgres.connect(autocommit=True) as connection:
        with connection.transaction(), connection.cursor() as cursor:
            SQLGuard(connection).check(cursor, "nightly", 5)
        assert SQLGuard(connection).highest("nightly") == 5


@pytest.mark.parametrize("token", [None, -1, 2**53, True, 1.5, "7"])
def test_what_is_no_token_is_refused(token: Any, sqlite: SQLite) -> None:
    prepare(sqlite)
    connection = sqlite.connect()
    with pytest.raises(UsageError):
        SQLGuard(connection).fenced("nightly", token).__enter__()
    connection.close()


@pytest.mark.parametrize("table", ["fence; DROP TABLE x", "", "a b", "a-b", "a."])
def test_a_tables_name_cannot_carry_a_statement(table: str, sqlite: SQLite) -> None:
    connection = sqlite.connect()
    with pytest.raises(UsageError, match="no table's name"):
        SQLGuard(connection, table)
    connection.close()


class Numeric(sqlite3.Connection):
    """A driver whose placeholders are numbers: SQLite itself takes ?1 for what others call :1."""

    def cursor(self, *_: Any) -> sqlite3.Cursor:
        return super().cursor(NumericCursor)


class NumericCursor(sqlite3.Cursor):
    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        return super().execute(re.sub(r":(\d)", r"?\1", statement), values)


@pytest.mark.parametrize(
    ("paramstyle", "kind"), [("qmark", sqlite3.Connection), ("numeric", Numeric), ("named", sqlite3.Connection)]
)
def test_every_paramstyle_that_a_driver_takes_works(
    paramstyle: str, kind: type[sqlite3.Connection], sqlite: SQLite
) -> None:
    prepare(sqlite)
    connection = sqlite3.connect(sqlite.path, factory=kind)
    guard = SQLGuard(connection, paramstyle=paramstyle)
    with guard.fenced("nightly", 6):
        pass
    with pytest.raises(StaleToken):
        guard.fenced("nightly", 5).__enter__()
    connection.close()


def test_a_driver_that_does_not_say_its_paramstyle_must_be_told() -> None:
    with pytest.raises(UsageError, match="say which one"):
        SQLGuard(object())


def test_a_table_of_ones_own_is_fenced_by_one_clause(connections: Callable[[], Any]) -> None:
    cursor = connections().cursor()
    cursor.execute("CREATE TEMPORARY TABLE job (id INT, state VARCHAR(9), fence BIGINT)")
    cursor.execute("INSERT INTO job VALUES (1, 'new', 5)")
    cursor.execute("UPDATE job SET state = 'run', fence = 6 WHERE id = 1 AND fence <= 6")
    require_changed(cursor, "job 1", 6)
    cursor.execute("UPDATE job SET state = 'bad', fence = 5 WHERE id = 1 AND fence <= 5")
    with pytest.raises(StaleToken):
        require_changed(cursor, "job 1", 5)


@pytest.mark.parametrize("fence", [5, 6])
def test_a_driver_that_does_not_say_whether_a_row_was_changed_is_not_believed(fence: int) -> None:
    """sqlite3 does not know it of a statement that begins with WITH."""
    with closing(sqlite3.connect(":memory:")) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE job (id INT, fence BIGINT)")
        cursor.execute("INSERT INTO job VALUES (1, ?)", [fence])
        cursor.execute("WITH mine AS (SELECT 1) UPDATE job SET fence = 5 WHERE id IN mine AND fence <= 5")
        with pytest.raises(UsageError, match="does not say how many rows"):
            require_changed(cursor, "job 1", 5)


def test_in_a_pipeline_no_token_is_called_stale(postgres: PostgreSQL) -> None:
    prepare(postgres)
    with postgres.connect() as connection, connection.pipeline(), pytest.raises(UsageError, match="leave a pipeline"):
        SQLGuard(connection).fenced("nightly", 5).__enter__()


@given(tokens=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), max_size=25))
def test_in_any_order_the_accepted_tokens_never_go_down(tokens: list[tuple[int, int]]) -> None:
    """Three writers, some of which give up half-way: what they leave is nothing."""
    connection = sqlite3.connect(":memory:")
    guard = SQLGuard(connection)
    guard.create_table()
    accepted: list[int] = []
    for writer, token in tokens:
        expected = token >= max(accepted, default=0)
        try:
            with guard.fenced("nightly", token):
                assert expected
                if writer == 0:
                    raise InterruptedError
                accepted.append(token)
        except StaleToken:
            assert not expected
            assert guard.highest("nightly") == max(accepted)
        except InterruptedError:
            pass
    assert accepted == sorted(accepted)
    connection.close()


# At the same time


def test_a_smaller_token_waits_for_the_larger_one_and_is_then_refused(postgres: PostgreSQL) -> None:
    prepare(postgres)
    with postgres.connect() as first, postgres.connect() as second, postgres.connect(autocommit=True) as watch:
        do(first, 1)
        with ThreadPoolExecutor() as pool:
            with SQLGuard(first).fenced("nightly", 6) as cursor:
                late = pool.submit(do, second, 5)
                wait_for_a_lock(watch)
                effect(cursor, 6)
            assert late.result(10) is False
        assert effects(watch) == [1, 6]


def test_of_two_first_uses_at_once_the_smaller_token_is_refused(postgres: PostgreSQL) -> None:
    prepare(postgres)
    with postgres.connect() as first, postgres.connect() as second, postgres.connect(autocommit=True) as watch:
        with ThreadPoolExecutor() as pool:
            with SQLGuard(first).fenced("nightly", 6):
                late = pool.submit(do, second, 5)
                wait_for_a_lock(watch)
            assert late.result(10) is False
        assert effects(watch) == []
        assert second.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_of_two_first_uses_at_once_the_larger_token_comes_second(postgres: PostgreSQL) -> None:
    prepare(postgres)
    with postgres.connect() as first, postgres.connect() as second, postgres.connect(autocommit=True) as watch:
        with ThreadPoolExecutor() as pool:
            with SQLGuard(first).fenced("nightly", 5) as cursor:
                late = pool.submit(do, second, 6)
                wait_for_a_lock(watch)
                effect(cursor, 5)
            assert late.result(10) is True
        assert effects(watch) == [5, 6]


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
@pytest.mark.parametrize("used_before", [True, False])
def test_at_stricter_levels_the_second_transaction_fails_whatever_its_token(
    level: psycopg.IsolationLevel, used_before: bool, postgres: PostgreSQL
) -> None:
    """Its snapshot is older than the first one's commit. It may be tried again; it never slips through."""
    prepare(postgres)
    with postgres.connect() as first, postgres.connect() as second, postgres.connect(autocommit=True) as watch:
        for connection in (first, second):
            connection.isolation_level = level
        if used_before:
            do(first, 1)
        with ThreadPoolExecutor() as pool:
            with SQLGuard(first).fenced("nightly", 5):
                late = pool.submit(do, second, 6)
                wait_for_a_lock(watch)
            with pytest.raises((psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation)):
                late.result(10)
        assert do(second, 6)
        assert do(first, 5) is False


def test_many_transactions_at_once_never_go_down(database: Database, connections: Callable[[], Any]) -> None:
    start = threading.Barrier(6)

    def writer(number: int) -> list[int]:
        connection = connections()
        chance = random.Random(number)
        start.wait(10)
        return [token for _ in range(25) if do(connection, token := near(connection, chance))]

    with ThreadPoolExecutor(6) as pool:
        accepted = [token for tokens in pool.map(writer, range(6)) for token in tokens]
    in_order = effects(connections())
    assert in_order == sorted(in_order)
    assert sorted(accepted) == in_order
    assert 25 <= len(accepted) < 6 * 25


WRITER = """
import sqlite3, sys, random
from tests.guards.databases import do
from tests.guards.test_sql import near
connection = sqlite3.connect(sys.argv[1], timeout=20)
chance = random.Random(int(sys.argv[2]))
print(sum(do(connection, near(connection, chance)) for _ in range(40)))
"""


def test_processes_on_one_sqlite_file_never_go_down(sqlite: SQLite) -> None:
    prepare(sqlite)
    call = [sys.executable, "-c", WRITER, str(sqlite.path)]
    processes = [subprocess.Popen([*call, str(seed)], cwd=ROOT, stdout=subprocess.PIPE, text=True) for seed in range(4)]
    accepted = sum(int(process.communicate(timeout=60)[0]) for process in processes)
    connection = sqlite.connect()
    in_order = effects(connection)
    connection.close()
    assert in_order == sorted(in_order)
    assert accepted == len(in_order) >= 40
