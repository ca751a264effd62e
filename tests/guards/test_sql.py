"""Fencing in a database: SQLite files and a real PostgreSQL, one transaction and many at once."""

import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.rows import class_row, dict_row, kwargs_row, namedtuple_row, scalar_row

from tests.guards.databases import Database, PostgreSQL, SQLite
from tests.stores.postgres_server import PostgresServer
from trinco.core.errors import StoreUnavailable, TrincoError, UsageError
from trinco.guards import ConnectingSQLGuard, SQLGuard, StaleToken, require_changed

ROOT = Path(__file__).resolve().parents[2]


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


def prepare(database: Database) -> None:
    connection = database.connect()
    SQLGuard(connection).create_table()
    serial = "SERIAL" if isinstance(database, PostgreSQL) else "INTEGER"
    connection.cursor().execute(f"CREATE TABLE effects (id {serial} PRIMARY KEY, token BIGINT)")
    connection.commit()
    connection.close()


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


def effect(cursor: Any, token: int) -> None:
    cursor.execute(f"INSERT INTO effects (token) VALUES ({token})")


def do(connection: Any, token: int, resource: str = "nightly") -> bool:
    try:
        with SQLGuard(connection).fenced(resource, token) as cursor:
            effect(cursor, token)
    except StaleToken:
        return False
    return True


def do_and_fail(connection: Any, token: int, before: Callable[[], None] = lambda: None) -> None:
    with SQLGuard(connection).fenced("nightly", token) as cursor:
        effect(cursor, token)
        before()
        raise InterruptedError


def near(connection: Any, chance: random.Random) -> int:
    """A token that may just be too small by the time it is used."""
    return (SQLGuard(connection).highest("nightly") or 10) + chance.randrange(-2, 3)


def effects(connection: Any) -> list[int]:
    """In the order in which they took place: ids are given out under the row's lock."""
    cursor = connection.cursor()
    cursor.execute("SELECT token FROM effects ORDER BY id")
    found = [int(token) for (token,) in cursor.fetchall()]
    connection.rollback()
    return found


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


@pytest.mark.parametrize("paramstyle", ["qmark", "numeric", "named"])
def test_every_paramstyle_that_a_driver_takes_works(paramstyle: str, sqlite: SQLite) -> None:
    prepare(sqlite)
    connection = sqlite.connect()
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


# Blocks that take the transaction into their own hands


def in_block(connection: Any, token: int, *acts: Callable[[Any], object]) -> None:
    with SQLGuard(connection).fenced("nightly", token) as cursor:
        for act in acts:
            act(cursor)


def by_commit(connection: Any, cursor: Any) -> None:
    connection.commit()


def by_rollback(connection: Any, cursor: Any) -> None:
    connection.rollback()


def by_statement(connection: Any, cursor: Any) -> None:
    cursor.execute("COMMIT")


def by_with(connection: Any, cursor: Any) -> None:
    with connection:
        pass


def by_script(connection: Any, cursor: Any) -> None:
    cursor.executescript("SELECT 1")


def by_chain(connection: Any, cursor: Any) -> None:
    cursor.execute("COMMIT AND CHAIN")


@pytest.mark.parametrize(
    ("database", "end"),
    [
        *((database, end) for database in ("sqlite", "postgres") for end in (by_commit, by_rollback, by_statement)),
        *(("sqlite", end) for end in (by_with, by_script)),
        ("postgres", by_chain),
    ],
    indirect=["database"],
)
def test_a_block_that_ends_its_transaction_is_told_so_and_its_late_effect_is_undone(
    connections: Callable[[], Any], end: Callable[[Any, Any], None]
) -> None:
    first, second = connections(), connections()
    acts = (partial(end, first), lambda cursor: do(second, 6), lambda cursor: effect(cursor, 5))
    with pytest.raises(UsageError, match="ended inside the block"):
        in_block(first, 5, *acts)
    assert effects(second) == [6]
    assert SQLGuard(second).highest("nightly") == 6


def test_a_commit_as_the_last_act_of_a_block_is_told_too(connections: Callable[[], Any]) -> None:
    connection = connections()
    with pytest.raises(UsageError, match="what is committed stays"):
        in_block(connection, 5, lambda cursor: effect(cursor, 5), partial(by_commit, connection))
    assert effects(connections()) == [5]


def test_where_only_begin_opens_a_transaction_its_end_inside_a_block_is_told_too(postgres: PostgreSQL) -> None:
    prepare(postgres)
    with postgres.connect(autocommit=True) as connection:
        connection.execute("BEGIN")
        with pytest.raises(UsageError, match="ended inside the block"):
            in_block(connection, 5, partial(by_statement, connection))


@pytest.mark.parametrize("inner", [lambda guard: guard.fenced("weekly", 7).__enter__(), SQLGuard.create_table])
def test_a_block_within_a_block_is_refused_and_the_outer_one_goes_on(
    inner: Callable[[SQLGuard], Any], connections: Callable[[], Any]
) -> None:
    connection = connections()
    with SQLGuard(connection).fenced("nightly", 5) as cursor:
        effect(cursor, 5)
        with pytest.raises(UsageError, match="inside a fenced block"):
            inner(SQLGuard(connection))
        assert effects(connections()) == []
    assert effects(connections()) == [5]
    assert do(connection, 6)


def test_a_block_fences_a_second_resource_by_a_check(connections: Callable[[], Any]) -> None:
    connection = connections()
    guard = SQLGuard(connection)
    with guard.fenced("nightly", 5) as cursor:
        guard.check(cursor, "weekly", 7)
    assert [guard.highest(name) for name in ("nightly", "weekly")] == [5, 7]


def test_a_block_that_lets_a_larger_token_pass_is_refused_at_its_end(connections: Callable[[], Any]) -> None:
    connection = connections()
    guard = SQLGuard(connection)
    with pytest.raises(StaleToken) as refused:
        in_block(connection, 5, lambda cursor: guard.check(cursor, "nightly", 6), lambda cursor: effect(cursor, 5))
    assert refused.value.highest == 6
    assert effects(connections()) == []
    assert guard.highest("nightly") is None


def test_savepoints_of_the_blocks_own_and_a_closed_cursor_are_no_harm(connections: Callable[[], Any]) -> None:
    connection = connections()
    with SQLGuard(connection).fenced("nightly", 5) as cursor:
        effect(cursor, 5)
        cursor.execute("SAVEPOINT mine")
        effect(cursor, 1)
        cursor.execute("ROLLBACK TO SAVEPOINT mine")
        cursor.close()
    assert effects(connections()) == [5]


def fail_unnoticed(cursor: Any) -> None:
    with suppress(psycopg.errors.UndefinedTable):
        cursor.execute("SELECT * FROM nowhere")


def test_a_block_whose_transaction_the_database_has_given_up_does_not_end_well(postgres: PostgreSQL) -> None:
    """PostgreSQL answers COMMIT with a rollback after a statement that failed."""
    prepare(postgres)
    with postgres.connect() as connection:
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            in_block(connection, 5, lambda cursor: effect(cursor, 5), fail_unnoticed)
        assert do(connection, 5)


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


def wait_for_a_lock(watch: Any) -> None:
    end = time.monotonic() + 10
    while not watch.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone():
        assert time.monotonic() < end, "nobody waits"


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
from tests.guards.test_sql import do, near
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


# Marks for effects elsewhere


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
