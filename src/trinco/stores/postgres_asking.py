"""Asking PostgreSQL something with a limit on everything: before there is a link, and for the names of its locks.

psycopg's cursors wait for ever, and keep as many rows as come. Here libpq is driven as a link drives it, without
blocking, until a deadline; rows are taken one by one, and no more of them than an honest answer has.
"""

from contextlib import contextmanager, suppress
from select import POLLIN, POLLOUT, poll
from time import monotonic

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus

from trinco.core.duration import in_words
from trinco.core.errors import StoreUnavailable
from trinco.stores.postgres_calls import NONSENSE, row_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from psycopg.pq.abc import PGresult

    from trinco.stores.postgres_calls import Row

TEXT, BINARY = 0, 1
MOST_READS = 32
"""From the socket, without anything complete among them. A row of an honest answer has some 20 KB at most; libpq sets
no limit to one message, and where much has come it takes megabytes in one read."""
MOST_BYTES = 32 << 20
"""In one answer. A lock with 256 waiters is read with 3 MiB, if all their entries are as long as they may be; in layout
3 there was room for four times as many."""
ROW_COST = 1000
"""Bytes that a row takes beside its values, or more."""
ENDLESS = "its answer does not end: is it a PostgreSQL server?"
NONSENSICAL = "its answer makes no sense: was its schema changed by hand, or is it no PostgreSQL server?"
BIGGEST = 2**63


class Rows:
    """The rows of one answer as they come."""

    __slots__ = ("_size", "rows")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._size = 0

    def take(self, result: "PGresult") -> bool:
        """Another one. False: no answer of ours has as many."""
        row = row_in(result)
        self.rows.append(row)
        self._size += ROW_COST + sum(len(value) for value in row if value)
        return self._size <= MOST_BYTES


class Asking:
    """Over a connection of psycopg's. ``url``: to name the store. ``timeout``: for all that is asked, in seconds, until
    ``again`` gives as much once more."""

    __slots__ = ("_deadline", "_pgconn", "_timeout", "_url")

    def __init__(self, url: str, connection: "psycopg.Connection[Any]", timeout: float) -> None:
        self._url = url
        self._pgconn = connection.pgconn
        self._pgconn.nonblocking = 1
        self._timeout = timeout
        self.again()

    @property
    def database(self) -> str:
        return self._pgconn.db.decode()

    def again(self) -> None:
        self._deadline = monotonic() + self._timeout

    def rows(self, query: str, *parameters: bytes) -> "list[Row]":
        """What the answer says, as text. Parameters go in libpq's binary format. Without any, ``query`` may be many
        statements. Raises psycopg's errors for the server's, and ``StoreUnavailable``."""
        pgconn = self._pgconn
        if parameters:
            pgconn.send_query_params(query.encode(), parameters, None, [BINARY] * len(parameters), TEXT)
        else:
            pgconn.send_query(query.encode())
        pgconn.set_single_row_mode()
        while pgconn.flush():
            self._wait_for(POLLOUT)
        return self._answer()

    def numbers(self, how_many: int, query: str, *parameters: bytes) -> list[int] | None:
        """So many in the first row. None: there is no row."""
        rows = self.rows(query, *parameters)
        if not rows:
            return None
        try:
            numbers = [int(value) for value in rows[0]]
        except NONSENSE:
            numbers = []
        if len(numbers) != how_many or not all(-BIGGEST <= number < BIGGEST for number in numbers):
            raise self.nonsense()
        return numbers

    @contextmanager
    def transaction(self) -> "Iterator[None]":
        self.rows("BEGIN")
        try:
            yield
        except psycopg.Error:
            with suppress(psycopg.Error):  # what went wrong first is what counts
                self.rows("ROLLBACK")
            raise
        self.rows("COMMIT")

    def text(self, row: "Row") -> str:
        """Its only value."""
        try:
            (value,) = row
            return str(value.decode())
        except NONSENSE:
            raise self.nonsense() from None

    def nonsense(self) -> StoreUnavailable:
        return StoreUnavailable(f"{self._url}: {NONSENSICAL}")

    def _answer(self) -> "list[Row]":
        rows, error, reads = Rows(), None, 0
        while True:
            while self._pgconn.is_busy():
                reads += 1
                if reads > MOST_READS:
                    raise self._endless()
                self._wait_for(POLLIN)
                self._pgconn.consume_input()
            result = self._pgconn.get_result()
            if result is None:
                break
            if result.status == ExecStatus.SINGLE_TUPLE:
                reads = 0
                if not rows.take(result):
                    raise self._endless()
            elif result.status == ExecStatus.FATAL_ERROR:
                error = error or error_from_result(result)
            elif result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
                raise self.nonsense()
        if error is not None:
            raise error
        return rows.rows

    def _wait_for(self, events: int) -> None:
        poller = poll()
        poller.register(self._pgconn.socket, events)
        left = self._deadline - monotonic()
        if left <= 0 or not poller.poll(left * 1000):
            raise StoreUnavailable(
                f"{self._url} does not answer: it let us in, and then nothing came within {in_words(self._timeout)};"
                f" it or the network hangs, or somebody there keeps a lock that this must wait for: look for it in"
                f" pg_stat_activity, and try again"
            )

    def _endless(self) -> StoreUnavailable:
        return StoreUnavailable(f"{self._url}: {ENDLESS}")
