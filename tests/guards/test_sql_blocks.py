"""Blocks that take the transaction of a SQLGuard into their own hands: nothing late is committed, nothing is silent."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
import pytest

from tests.guards.databases import PostgreSQL, do, effect, effects, prepare
from trinco.core.errors import UsageError
from trinco.guards import SQLGuard, StaleToken


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
