"""A link to PostgreSQL: accesses go out and answers come in without blocking.

Every access is one statement: one round trip. What is taken while it is free and given back by its holder is done by a
single UPDATE; if that finds no row, a function does it (``postgres_calls.py``). The connection is psycopg's, but
accesses are driven through libpq's own calls (``pgconn``): they do not block, and they are twice as quick as cursors.
One is under way at a time; the others stand in a queue here.

A server may say anything, and each access gets exactly one reply all the same, when PostgreSQL says that all of its
answer has come: an error at the very end (the commit has failed) counts. Nobody fills our memory who sends without
end: the rows of a read, which are many, come one by one, and what else comes must be complete after some reads.

Waiters are woken by NOTIFY. It wakes every listening connection of the database, so a link listens only while one of
its owners waits. Behind a pooler that lends connections by the transaction LISTEN does nothing, and the waiters' polls
take its place.
"""

import os
from collections import deque
from contextlib import suppress
from select import POLLIN, POLLOUT, poll
from time import monotonic

import psycopg
from psycopg.pq import ConnStatus, ExecStatus

from trinco.core.duration import in_words
from trinco.core.errors import Denial, StoreUnavailable
from trinco.leases.accesses import Access, Apply, Read
from trinco.leases.operation import Answer, Request
from trinco.stores.postgres_asking import BINARY, ENDLESS, MOST_READS, NONSENSICAL, Asking, Rows
from trinco.stores.postgres_calls import (
    GIVES_BACK,
    HANDED,
    HANDS_OVER,
    NOT_ALLOWED,
    READS,
    RELEASES,
    Errand,
    error_of,
    handed_in,
    item_in,
    next_errand,
    one_line,
    queries,
    quick_errand,
    reply_in,
)
from trinco.stores.store import Failed, Hint, Link, StaysOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from psycopg.pq.abc import PGresult

    from trinco.stores.postgres import PostgresStore
    from trinco.stores.store import Replied, Said

TUPLES_OK, COMMAND_OK = int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK)
SINGLE_TUPLE = int(ExecStatus.SINGLE_TUPLE)
MOST_SHARED = 1024
FORMATS = [[BINARY] * parameters for parameters in range(10)]
REMOVED = ("3F000", "42P01", "42883")
"""Our schema, its tables or its functions: the next link makes them anew."""
UNKNOWN_STATEMENT = "26000"
"""A pooler has given us another connection than the one on which we prepared it. From then on we prepare nothing."""
PAGE = 1000
"""Names that are asked for at a time."""


class PostgresLink(Link):
    """``store_time``: what the server's clock said in the latest answer that told it, in microseconds.

    ``_prepared``: the statements that the server knows by their names, None where it forgets them. ``_shared``: the
    locks that somebody waited for when they were last given back, and how that is best done. ``_outcome``: what has
    come of the errand under way, a reply or what to do instead; ``_rows``: what a read has brought. ``_looks``: how
    often we have looked since anything was complete, ``_reads``: how often there was something, of those after the
    first few.
    """

    __slots__ = (
        "_channel",
        "_closed_until",
        "_connection",
        "_errands",
        "_expecting",
        "_looks",
        "_outcome",
        "_pgconn",
        "_prepared",
        "_queries",
        "_reads",
        "_rows",
        "_shared",
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
        self._closed_until = monotonic() + closed_for if closed_for else 0.0
        self._errands: deque[Errand] = deque()
        self._outcome: Replied | Errand | None = None
        self._rows = Rows()
        self._looks = self._reads = 0
        self._expecting: set[str] = set()
        self._queries = queries(store.identifier)
        self._prepared: set[bytes] | None = set()
        self._shared: dict[bytes, bytes] = {}
        self.store_time = 0

    def send(self, resource: str, access: Access) -> "Replied | None":
        if self._closed_until and isinstance(access, Apply):
            closed_for = self._closed_until - monotonic()
            if closed_for > 0:
                return self._stays_out(closed_for)
            self._closed_until = 0.0
        try:
            place = resource.encode()
            if isinstance(access, Apply):
                operation = access.operation
                if isinstance(operation, Request) and operation.ticket is not None:
                    self._be_ready_for(HANDS_OVER)
                errand = quick_errand(place, operation, self._store.t_max, self._shared.get(place, GIVES_BACK))
            else:
                assert isinstance(access, Read), f"a store of this kind is not asked for {access!r}"
                errand = Errand(READS, [place])
            self._enqueue(errand)
        except (OverflowError, UnicodeError) as error:
            return Failed(f"{self._store.url} cannot keep this: {one_line(error)}; nothing was sent")
        return None

    def fileno(self) -> int:
        return int(self._pgconn.socket)

    def receive(self) -> "list[Replied | Said]":
        arrived: list[Replied | Said] = []
        pgconn, errands = self._pgconn, self._errands
        if self._looks > MOST_READS:
            self._notice_endless()
        try:
            pgconn.consume_input()
            while errands and not pgconn.is_busy():
                result = pgconn.get_result()
                if result is not None:
                    self._take(errands[0], result)
                else:  # that was all of the one under way
                    self._finish(arrived)
            if self._expecting or not arrived:
                self._hear(arrived)
        except psycopg.OperationalError as error:
            raise self._lost(error) from error
        if not arrived:
            self._looks += 1
            if pgconn.status != ConnStatus.OK:
                raise self._lost(pgconn.get_error_message())
        return arrived

    def _notice_endless(self) -> None:
        """Looked at often, in vain: the server may be busy, since we are called whenever anybody asks for something.
        But what comes and comes must be complete at some time."""
        if _is_ready(self.fileno(), POLLIN, 0):
            self._reads += 1
            if self._reads > MOST_READS:
                raise self._lost(ENDLESS)

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
        connection = self._store.open(self._timeout)
        asking = Asking(self._store.url, connection, self._timeout)
        try:
            page = self._page(asking, prefix, "")
            while page:
                yield from page
                asking.again()
                page = self._page(asking, prefix, page[-1]) if len(page) == PAGE else []
        except psycopg.Error as error:
            raise StoreUnavailable(self._store.problem(error.sqlstate, error)) from error
        finally:
            connection.close()

    def _page(self, asking: Asking, prefix: str, last: str) -> list[str]:
        """The names after that one."""
        query = (
            f"SELECT name FROM {self._store.identifier}.lease WHERE starts_with(name, $1) AND name > $2"
            f" ORDER BY name LIMIT {PAGE}"
        )
        rows = asking.rows(query, prefix.encode(), last.encode())
        names = [asking.text(row) for row in rows]
        if len(names) > PAGE or [last, *names] != sorted({last, *names}):
            raise asking.nonsense()
        return names

    def disown(self) -> None:
        """psycopg leaves a parent's connection open in its children. As long as one of them lived, the server would
        take the parent for alive, and hand locks over to it. Something has to stand in the socket's place: whoever
        closes it by its number later must not close another's."""
        with suppress(psycopg.OperationalError):  # it is closed already
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, self._pgconn.socket, inheritable=False)
            os.close(nowhere)

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

    def _enqueue(self, errand: Errand) -> None:
        self._errands.append(errand)
        if len(self._errands) == 1:
            self._start(errand)

    def _start(self, errand: Errand) -> None:
        statement, parameters, pgconn, prepared = errand.statement, errand.parameters, self._pgconn, self._prepared
        try:
            if parameters is None:
                pgconn.send_query(statement)
            elif prepared is None:
                query = self._queries[statement]
                pgconn.send_query_params(query, parameters, None, FORMATS[len(parameters)], BINARY)
            elif statement in prepared:
                pgconn.send_query_prepared(statement, parameters, FORMATS[len(parameters)], BINARY)
            else:
                self._errands.appendleft(self._preparation(statement))
                pgconn.send_query(self._errands[0].statement)
            if statement == READS:
                pgconn.set_single_row_mode()
            while pgconn.flush():
                if not _is_ready(self.fileno(), POLLOUT, self._timeout):
                    raise self._lost(f"it took nothing in for {in_words(self._timeout)}")
        except psycopg.OperationalError as error:
            raise self._lost(error) from error

    def _preparation(self, statement: bytes) -> Errand:
        """A statement is prepared when it is first used: most links use two of a dozen."""
        assert self._prepared is not None
        self._prepared.add(statement)
        return Errand(b"PREPARE " + statement + b" AS " + self._queries[statement])

    def _be_ready_for(self, statement: bytes) -> None:
        """What a waiter needs when it has it is prepared before it gets in line: then it will be in a hurry."""
        if self._prepared is not None and statement not in self._prepared:
            self._enqueue(self._preparation(statement))

    def _take(self, errand: Errand, result: "PGresult") -> None:
        status = result.status
        if status == TUPLES_OK:
            rows = result.ntuples
            if rows > 1 or self._outcome is not None:
                raise self._lost(NONSENSICAL)
            self._outcome = self._told(errand, reply_in(result, errand)) if rows else self._without_row(errand)
        elif status == SINGLE_TUPLE:
            self._take_row(result)
        elif status != COMMAND_OK:
            self._take_error(errand, result)

    def _take_row(self, result: "PGresult") -> None:
        self._looks = self._reads = 0
        if not self._rows.take(result):
            raise self._lost(ENDLESS)

    def _told(self, errand: Errand, told: "tuple[Replied, int] | None") -> "Replied":
        if told is None:
            return self._nonsense()
        reply, self.store_time = told
        return self._ended(errand, reply) if errand.statement in (HANDS_OVER, RELEASES) else reply

    def _without_row(self, errand: Errand) -> "Replied | Errand | None":
        """What comes of it where there is none, or where all those of a read have come."""
        if errand.statement == READS:
            rows, self._rows = self._rows.rows, Rows()
            return self._told(errand, item_in(rows))
        return None if errand.otherwise is None else next_errand(errand, self._store.t_max)

    def _finish(self, arrived: "list[Replied | Said]") -> None:
        """Go on to the next errand."""
        errands = self._errands
        errand, outcome = errands.popleft(), self._outcome
        self._outcome = None
        self._looks = self._reads = 0
        if self._rows.rows:  # of a read that failed: the next one must not begin with them
            self._rows = Rows()
        if isinstance(outcome, Errand):
            errands.appendleft(outcome)
        elif errand.parameters is not None:
            arrived.append(outcome or self._nonsense())
        if errands:
            self._start(errands[0])

    def _nonsense(self) -> Failed:
        return Failed(f"{self._store.url} (schema {self._store.schema}): {NONSENSICAL}")

    def _ended(self, errand: Errand, answer: "Any") -> Answer:
        """The answer to a release of what others wait for, or did. How it was done is likely to be how it is best done
        the next time."""
        resource: bytes = errand.parameters[0]  # type: ignore[index]
        if not (errand.statement == HANDS_OVER or answer.smaller):
            self._shared.pop(resource, None)
        elif len(self._shared) < MOST_SHARED:
            self._shared[resource] = errand.statement
        released: Answer = answer.but(smaller=False) if answer.smaller else answer
        return released

    def _hear(self, arrived: "list[Replied | Said]") -> None:
        while (notification := self._pgconn.notifies()) is not None:
            words = notification.extra
            said = handed_in(words) if words[:1] == HANDED else Hint(words.decode(errors="replace"))
            if said is not None and said.owner in self._expecting:
                arrived.append(said)

    def _take_error(self, errand: Errand, result: "PGresult") -> None:
        state, message = error_of(result)
        if state.startswith("57P") or not state or state in REMOVED:
            raise self._lost(message)
        if errand.parameters is None:
            return
        if state == UNKNOWN_STATEMENT and self._prepared is not None:
            self._prepared = None
            self._outcome = errand
        else:
            words = f"{self._store.problem(state, message)}; nothing was changed"
            self._outcome = Failed(Denial(words) if state == NOT_ALLOWED else words)

    def _lost(self, error: object) -> StoreUnavailable:
        self._errands.clear()
        return StoreUnavailable(f"the connection to {self._store.url} is lost: {one_line(error)}; connect again")


def _is_ready(descriptor: int, events: int, seconds: float) -> bool:
    poller = poll()
    poller.register(descriptor, events)
    return bool(poller.poll(seconds * 1000))
