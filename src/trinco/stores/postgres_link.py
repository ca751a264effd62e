"""A link to PostgreSQL: accesses go out and answers come in without blocking.

Every access is one statement: one round trip. The connection is psycopg's, but accesses are driven through libpq's own
calls (``pgconn``): they do not block, and they are twice as quick as cursors. One is under way at a time; the others
stand in a queue here. Cursors are used only before the link is made: later they would swallow notifications.

Waiters are woken by NOTIFY. It wakes every listening connection of the database, so a link listens only while one of
its owners waits. Behind a pooler that lends connections by the transaction LISTEN does nothing, and the waiters' polls
take its place.
"""

from collections import deque
from select import select
from time import monotonic

import psycopg
from psycopg.pq import ConnStatus, ExecStatus

from trinco.core.duration import in_words
from trinco.core.errors import StoreUnavailable
from trinco.leases.accesses import Access, Apply, Read
from trinco.leases.operation import Answer, Grade
from trinco.stores.postgres_calls import (
    Errand,
    answer_in,
    errand_for,
    error_of,
    item_in,
    one_line,
    queries,
    quick_grant_in,
)
from trinco.stores.store import Failed, Hint, Link, StaysOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from psycopg.pq.abc import PGresult

    from trinco.stores.postgres import PostgresStore
    from trinco.stores.store import Replied

BINARY = 1
FORMATS = [BINARY] * 8
QUICK_LIMIT = 10_000
RELEASED = Answer(Grade.DONE)
UNKNOWN_STATEMENT = "26000"
"""A pooler has given us another connection than the one on which we prepared it. From then on we prepare nothing."""


class PostgresLink(Link):
    """``store_time``: what the server's clock said in the latest answer that told it, in microseconds.

    ``_quick``: the resources that we took by the quick statement and have not given back. It is likely that still
    nobody waits for them; of others we know that somebody did.
    """

    __slots__ = (
        "_channel",
        "_closed_until",
        "_connection",
        "_errands",
        "_expecting",
        "_pgconn",
        "_prepared",
        "_quick",
        "_store",
        "_timeout",
        "store_time",
    )

    def __init__(
        self,
        store: "PostgresStore",
        connection: "psycopg.Connection[Any]",
        address: str,
        timeout: float,
        closed_for: float,
    ) -> None:
        self._store = store
        self._connection = connection
        self._pgconn = connection.pgconn
        self._pgconn.nonblocking = 1
        self._channel = b'"trinco_' + address.replace('"', '""').encode() + b'"'
        self._timeout = timeout
        self._closed_until = monotonic() + closed_for
        self._errands: deque[Errand] = deque()
        self._expecting: set[str] = set()
        self._prepared = True
        self._quick: set[bytes | None] = set()
        self.store_time = 0

    def send(self, resource: str, access: Access) -> "Replied | None":
        closed_for = self._closed_until - monotonic()
        if closed_for > 0 and isinstance(access, Apply):
            return self._stays_out(closed_for)
        try:
            self._enqueue(self._errand(resource.encode(), access))
        except (OverflowError, UnicodeError) as error:
            return Failed(f"{self._store.url} cannot keep this: {one_line(error)}; nothing was sent")
        return None

    def fileno(self) -> int:
        return int(self._pgconn.socket)

    def receive(self) -> "list[Replied | Hint]":
        arrived: list[Replied | Hint] = []
        try:
            self._pgconn.consume_input()
            while self._errands and not self._pgconn.is_busy():
                self._take(self._pgconn.get_result(), arrived)
            while (notification := self._pgconn.notifies()) is not None:
                owner = notification.extra.decode(errors="replace")
                if owner in self._expecting:
                    arrived.append(Hint(owner))
        except psycopg.OperationalError as error:
            raise self._lost(error) from error
        if self._pgconn.status != ConnStatus.OK:
            raise self._lost(self._pgconn.get_error_message())
        return arrived

    def expect_hints(self, owner: str) -> None:
        if not self._expecting:
            self._enqueue(Errand(b"LISTEN " + self._channel))
        self._expecting.add(owner)

    def ignore_hints(self, owner: str) -> None:
        if owner in self._expecting:
            self._expecting.discard(owner)
            if not self._expecting:
                self._enqueue(Errand(b"UNLISTEN " + self._channel))

    def names(self, prefix: str = "") -> "Iterator[str]":
        """Over a connection of its own: a cursor here would swallow notifications."""
        query: Any = f"SELECT name FROM {self._store.identifier}.lease WHERE starts_with(name, %s) ORDER BY name"
        connection = self._store.open(self._timeout)
        try:
            rows = connection.execute(query, [prefix]).fetchall()
        except psycopg.Error as error:
            raise StoreUnavailable(self._store.problem(error.sqlstate, error)) from error
        finally:
            connection.close()
        return (name for (name,) in rows)

    def close(self) -> None:
        self._errands.clear()
        self._connection.close()

    def _stays_out(self, closed_for: float) -> StaysOut:
        return StaysOut(
            f"{self._store.url} was restarted, and without fsync it may have forgotten leases: it gives none out for"
            f" another {in_words(closed_for)}, until they are over; nothing was changed. If it has never held a lock,"
            f" add fresh=1 to its URL",
            closed_for,
        )

    def _errand(self, resource: bytes, access: Access) -> Errand:
        if isinstance(access, Apply):
            return errand_for(resource, access.operation, self._store.t_max, resource in self._quick)
        assert isinstance(access, Read), f"a store of this kind is not asked for {access!r}"
        return Errand(b"trinco_read", [resource])

    def _enqueue(self, errand: Errand) -> None:
        self._errands.append(errand)
        if len(self._errands) == 1:
            self._start(errand)

    def _start(self, errand: Errand) -> None:
        statement, parameters = errand.statement, errand.parameters
        try:
            if parameters is None:
                self._pgconn.send_query(statement)
            elif self._prepared:
                self._pgconn.send_query_prepared(statement, parameters, FORMATS[: len(parameters)], BINARY)
            else:
                query = queries(self._store.identifier)[statement]
                self._pgconn.send_query_params(query, parameters, None, FORMATS[: len(parameters)], BINARY)
            while self._pgconn.flush():
                if not select([], [self.fileno()], [], self._timeout)[1]:
                    raise self._lost(f"it took nothing in for {in_words(self._timeout)}")
        except psycopg.OperationalError as error:
            raise self._lost(error) from error

    def _take(self, result: "PGresult | None", arrived: "list[Replied | Hint]") -> None:
        """A result of the errand under way; None: there are no more of it."""
        if result is None:
            self._errands.popleft()
            if self._errands:
                self._start(self._errands[0])
            return
        errand = self._errands[0]
        if result.status == ExecStatus.TUPLES_OK:
            if result.ntuples or errand.otherwise is None:
                arrived.append(self._reply(errand, result))
            else:
                self._errands.insert(1, errand.otherwise())
        elif result.status != ExecStatus.COMMAND_OK:
            self._take_error(errand, result, arrived)

    def _reply(self, errand: Errand, result: "PGresult") -> "Replied":
        statement = errand.statement
        if statement == b"trinco_read":
            return item_in(result)
        assert errand.parameters is not None
        resource = errand.parameters[0]
        if statement == b"trinco_quick_request":
            answer, self.store_time = quick_grant_in(result)
            if len(self._quick) < QUICK_LIMIT:
                self._quick.add(resource)
            return answer
        self._quick.discard(resource)
        if statement == b"trinco_quick_release":
            return RELEASED
        answer, self.store_time = answer_in(result)
        return answer

    def _take_error(self, errand: Errand, result: "PGresult", arrived: "list[Replied | Hint]") -> None:
        state, message = error_of(result)
        if state.startswith("57P") or not state:
            raise self._lost(message)
        if state == UNKNOWN_STATEMENT and self._prepared:
            self._prepared = False
            self._errands.insert(1, errand)
        elif errand.parameters is not None:
            arrived.append(Failed(f"{self._store.problem(state, message)}; nothing was changed"))

    def _lost(self, error: object) -> StoreUnavailable:
        self._errands.clear()
        return StoreUnavailable(f"the connection to {self._store.url} is lost: {one_line(error)}; connect again")
