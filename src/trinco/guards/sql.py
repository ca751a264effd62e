"""Fencing in a database: the largest token is a row, and the effect is in the same transaction.

    with SQLGuard(connection).fenced("nightly", lease.token) as cursor:
        cursor.execute("UPDATE accounts SET ...")

The first statement is ``UPDATE .. SET fence = token WHERE resource = name AND fence <= token``. It takes the row's lock
and keeps it until the transaction ends, so of two transactions the second compares with what the first has committed:

    token 6:  UPDATE (lock) ── effect ── COMMIT
    token 5:        UPDATE waits ............... sees 6: no row matches ── StaleToken, ROLLBACK

What decides is how many rows that statement changed, never something that was read before: a ``SELECT`` may show an
older snapshot, an ``UPDATE`` works on the newest row (READ COMMITTED) or fails (REPEATABLE READ, SERIALIZABLE). The row
also counts these statements, so that it changes when the token does not: some drivers count only rows that changed.

The lock is worth something only until the transaction ends, and the block has the connection in its hands:

    token 5:  UPDATE (lock) ── COMMIT (the block's own) .................... effect ── COMMIT    <- too late
    token 6:                            UPDATE ── effect ── COMMIT

So the first statement is followed by a savepoint, which goes with its transaction: if it is not there at the end of the
block, the guard says so. And the last statement is the first one again: whatever happened in between, the transaction
that is committed has the row's lock, and no larger token came before it.

A resource's first row is inserted within a savepoint; who loses that race goes back to the savepoint and compares with
the winner's row. Rows are never deleted.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any, TypeAlias

from trinco.core.errors import StoreUnavailable, UsageError
from trinco.guards.stale import StaleToken, require_token

Connection: TypeAlias = Any
"""Of any DB-API 2 driver; they share no type."""
Cursor: TypeAlias = Any

TABLE = "trinco_fence"
BLOCK = "trinco_block"
"""The savepoint that shows whether a block's transaction is still the one that began."""
IDLE = 0
"""As PostgreSQL's drivers say that no transaction is open."""
SQLITE_LOCKED = (5, 6)
"""SQLITE_BUSY and SQLITE_LOCKED, each the low byte of several codes."""
SQLSTATES_LOCKED = ("55P03", "57014", "40P01", "40001")
"""A lock or a statement took too long; a deadlock; a conflict with another transaction."""
MYSQL_LOCKED = (1205, 1213)
"""A lock took too long; a deadlock."""
PLACEHOLDERS = {"qmark": "?", "format": "%s", "pyformat": "%s", "numeric": ":{}", "named": ":value{}"}

CREATE = (
    "CREATE TABLE IF NOT EXISTS {table} "
    "(resource VARCHAR(255) NOT NULL PRIMARY KEY, fence BIGINT NOT NULL, effects BIGINT NOT NULL)"
)
RAISE = "UPDATE {table} SET fence = {}, effects = effects + 1 WHERE resource = {} AND fence <= {}"
INSERT = "INSERT INTO {table} (resource, fence, effects) VALUES ({}, {}, 1)"
HIGHEST = "SELECT fence FROM {table} WHERE resource = {}"


class SQLGuard:
    """On one connection, used by one thread at a time. ``paramstyle`` is taken from the driver; say it where the
    connection is a wrapper's."""

    def __init__(self, connection: Connection, table: str = TABLE, paramstyle: str | None = None) -> None:
        self._connection = connection
        self._table = _require_identifier(table)
        self._paramstyle = _require_paramstyle(paramstyle or _paramstyle_of(connection))

    def create_table(self) -> None:
        """Once, by whoever sets the database up. On MySQL choose a binary collation for ``resource`` afterwards, or
        names that differ in capitals only share a row."""
        with self._transaction() as cursor:
            cursor.execute(CREATE.format(table=self._table))

    @contextmanager
    def fenced(self, resource: str, token: int) -> Iterator[Cursor]:
        """A transaction that is this token's, or ``StaleToken`` before its first line. It is committed at the end of
        the block and rolled back when the block fails, with all that the connection did before in that transaction.
        For a second resource call ``check`` with the same cursor: a block within a block is refused."""
        with self._transaction() as cursor:
            self.check(cursor, resource, token)
            cursor.execute(f"SAVEPOINT {BLOCK}")
            yield cursor
            self._require_still_ours(resource, token)

    def check(self, cursor: Cursor, resource: str, token: int) -> None:
        """The same inside a transaction of your own: call it first, do the rest with the same connection, commit; roll
        back when it raises."""
        require_token(token)
        tries = (self._raised, self._inserted, self._raised)
        if not any(attempt(cursor, resource, token) for attempt in tries):
            raise StaleToken(resource, token, self._read(cursor, resource))

    def highest(self, resource: str) -> int | None:
        """The largest token accepted so far, None for a resource that nobody has used."""
        begun = _in_transaction(self._connection)
        cursor = self._connection.cursor()
        try:
            return self._read(cursor, resource)
        finally:
            cursor.close()
            if begun is False:
                self._connection.rollback()

    # The end of a block

    def _require_still_ours(self, resource: str, token: int) -> None:
        """With a cursor of its own: the block may have closed the one it was given."""
        with closing(self._connection.cursor()) as cursor:
            self._require_same_transaction(cursor, resource)
            if not self._raised(cursor, resource, token):
                raise StaleToken(resource, token, self._read(cursor, resource))

    def _require_same_transaction(self, cursor: Cursor, resource: str) -> None:
        """Drivers share no error for a savepoint that is missing, but all databases name it."""
        if _in_transaction(self._connection) is False:
            raise _ended_inside(resource)
        try:
            cursor.execute(f"RELEASE SAVEPOINT {BLOCK}")
        except Exception as error:
            if BLOCK in str(error):
                raise _ended_inside(resource) from error
            raise

    # Statements

    def _raised(self, cursor: Cursor, resource: str, token: int) -> bool:
        self._execute(cursor, RAISE, token, resource, token)
        if _in_transaction(self._connection) is False:
            raise UsageError(
                f"this connection commits every statement by itself, so '{resource}' cannot be fenced: "
                "turn its autocommit off, or begin a transaction"
            )
        return _changed(cursor, resource) == 1

    def _inserted(self, cursor: Cursor, resource: str, token: int) -> bool:
        """Whether ours is the resource's first row."""
        if self._read(cursor, resource) is not None:
            return False
        cursor.execute("SAVEPOINT trinco_first")
        try:
            self._execute(cursor, INSERT, resource, token)
        except self._connection.IntegrityError:
            cursor.execute("ROLLBACK TO SAVEPOINT trinco_first")
            if self._read(cursor, resource) is None:
                raise  # the winner's row is newer than this transaction's snapshot: only a new transaction can tell
            return False
        return True

    def _read(self, cursor: Cursor, resource: str) -> int | None:
        self._execute(cursor, HIGHEST, resource)
        row = cursor.fetchone()
        return None if row is None else _fence_of(row)

    def _execute(self, cursor: Cursor, statement: str, *values: Any) -> None:
        marks = [PLACEHOLDERS[self._paramstyle].format(number) for number in range(1, len(values) + 1)]
        named = {f"value{number}": value for number, value in enumerate(values, 1)}
        cursor.execute(statement.format(*marks, table=self._table), named if self._paramstyle == "named" else values)

    @contextmanager
    def _transaction(self) -> Iterator[Cursor]:
        with _alone(self._connection):
            cursor = self._connection.cursor()
            try:
                yield cursor
                self._connection.commit()
            except BaseException:
                with suppress(Exception):  # a lost connection has rolled back; the first error is the one to tell
                    self._connection.rollback()
                raise
            finally:
                with suppress(Exception):
                    cursor.close()


class ConnectingSQLGuard:
    """Marks for effects that are *not* in the database (see ``http``): a connection of its own for every block.

    The mark is committed before the block begins, for if it were lost in a crash after the effect, an older token could
    follow; then the row is locked again, and stays so until the block ends. So one block is inside at a time, also of
    those with the same token: one that waits for another of its own token, waits for itself.
    """

    def __init__(self, connect: Callable[[], Connection], table: str = TABLE, paramstyle: str | None = None) -> None:
        """``connect`` makes a connection, which is closed after the block. In an ASGI application enter and leave run
        in different threads: with sqlite3 pass ``check_same_thread=False``. And give the marks a SQLite file of their
        own: it is locked as a whole for as long as a block lasts. How long a block waits for another is a setting of
        the connection (sqlite3's ``timeout``, PostgreSQL's ``lock_timeout``, which is for ever by itself)."""
        self._connect = connect
        self._table = table
        self._paramstyle = paramstyle

    @contextmanager
    def fenced(self, resource: str, token: int) -> Iterator[None]:
        """``StaleToken``, or ``StoreUnavailable`` if the database does not let the block in in time."""
        with closing(self._connect()) as connection, ExitStack() as block:
            guard = SQLGuard(connection, self._table, self._paramstyle)
            with _entering(resource):
                with guard.fenced(resource, token):
                    pass
                block.enter_context(guard.fenced(resource, token))
            yield


def require_changed(cursor: Cursor, resource: str, token: int) -> None:
    """For tables of your own that have a ``fence`` column: ``UPDATE job SET .., fence = :token WHERE id = :id AND
    fence <= :token``, and then this. The row may also be missing: that is told as a refusal, too."""
    require_token(token)
    if _changed(cursor, resource) == 0:
        raise StaleToken(resource, token, None)


def _changed(cursor: Cursor, resource: str) -> int:
    """How many rows the last statement did. A driver that does not know says -1 or None: neither yes nor no."""
    changed = cursor.rowcount
    if type(changed) is not int or changed < 0:
        raise UsageError(
            f"the driver does not say how many rows were changed, so '{resource}' cannot be fenced: begin the statement"
            " with UPDATE, fetch what it returns, and leave a pipeline first"
        )
    return changed


# Blocks and their transactions

_in_blocks: set[int] = set()
"""The ids of the connections that are in a block. Not in the guard: one connection may have several guards."""


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """A block within a block would commit the outer one's transaction, and give its lock away."""
    if id(connection) in _in_blocks:
        raise UsageError(
            "this connection is inside a fenced block, whose transaction another one would commit: "
            "call guard.check(cursor, resource, token) to fence a second resource, or use another connection"
        )
    _in_blocks.add(id(connection))
    try:
        yield
    finally:
        _in_blocks.remove(id(connection))


def _ended_inside(resource: str) -> UsageError:
    return UsageError(
        f"the transaction that fences '{resource}' was ended inside the block, by a commit, a rollback or a statement "
        "that commits by itself: what is committed stays, the rest is rolled back. "
        "Look at the data, and leave the transaction to the guard"
    )


@contextmanager
def _entering(resource: str) -> Iterator[None]:
    """Only around the way in: what a database says in the middle of a block is the block's own. Its words are the
    cause and no part of the message, which clients are shown."""
    try:
        yield
    except Exception as error:
        if _is_locked_out(error):
            raise StoreUnavailable(
                f"the database gave up waiting for those who are inside '{resource}' or in its way; try again"
            ) from error
        raise


# Drivers


def _is_locked_out(error: Exception) -> bool:
    """Whether others were in the way, as sqlite3 says it; psycopg; psycopg2; the drivers of MySQL."""
    sqlstate = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return (
        getattr(error, "sqlite_errorcode", 0) & 0xFF in SQLITE_LOCKED
        or sqlstate in SQLSTATES_LOCKED
        or (bool(error.args) and error.args[0] in MYSQL_LOCKED)
    )


def _fence_of(row: Any) -> int:
    """Whatever the connection makes of rows: sequences, mappings, objects, or just the value."""
    if isinstance(row, Mapping):
        return int(next(iter(row.values())))
    return int(row[0] if hasattr(row, "__getitem__") else getattr(row, "fence", row))


def _in_transaction(connection: Connection) -> bool | None:
    """As far as the driver says: sqlite3 and MySQL Connector; psycopg; PyMySQL and mysqlclient."""
    within = getattr(connection, "in_transaction", None)
    if within is not None:
        return bool(within)
    status = getattr(getattr(connection, "info", None), "transaction_status", None)
    if status is not None:
        return bool(status != IDLE)
    autocommit = getattr(connection, "get_autocommit", None)
    return None if autocommit is None or not autocommit() else False


def _paramstyle_of(connection: Connection) -> str | None:
    driver = sys.modules.get(type(connection).__module__.partition(".")[0])
    return getattr(driver, "paramstyle", None)


def _require_paramstyle(paramstyle: str | None) -> str:
    if paramstyle not in PLACEHOLDERS:
        raise UsageError(
            f"the driver's paramstyle is {paramstyle}: say which one it is, paramstyle={' or '.join(PLACEHOLDERS)}"
        )
    return paramstyle


def _require_identifier(table: str) -> str:
    """It becomes part of the statements."""
    if not all(part.isidentifier() and part.isascii() for part in table.split(".")):
        raise UsageError(f"'{table}' is no table's name: letters, digits and _ only, with a schema and a dot if needed")
    return table
