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
import struct
from collections import deque
from contextlib import suppress
from select import POLLIN, POLLOUT, poll
from time import monotonic

import psycopg
from psycopg.pq import ConnStatus, ExecStatus

from trinco.core.duration import in_words
from trinco.core.errors import Denial, StoreUnavailable
from trinco.leases.accesses import Access, Apply, Read
from trinco.leases.operation import Answer, Operation
from trinco.stores.postgres_asking import BINARY, ENDLESS, MOST_READS, NONSENSICAL, Asking, Rows
from trinco.stores.postgres_calls import (
    ASKS,
    GIVES_BACK,
    GRANTS,
    HANDED,
    HANDING,
    HANDS_OVER,
    HANDS_TO_LAST,
    NONSENSE,
    NOT_ALLOWED,
    READS,
    RELEASED,
    RELEASES,
    Errand,
    answer_in,
    error_of,
    grant_in,
    handed_in,
    item_in,
    next_errand,
    one_line,
    queries,
    quick_errand,
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
    """``_prepared``: the statements that the server knows by their names. ``_forgets``: it does not, since a pooler is
    in between. ``_shared``: the locks that somebody waited for when they were last given back, and how that is best
    done. ``_outcome``: what has come of the errand under way, a reply or what to do instead; ``_rows``: what a read has
    brought. ``_looks``: how often we have looked since anything was complete, ``_reads``: how often there was
    something, of those after the first few.
    """

    __slots__ = (
        "_channel",
        "_closed_until",
        "_connection",
        "_errands",
        "_expecting",
        "_forgets",
        "_looks",
        "_outcome",
        "_pgconn",
        "_prepared",
        "_queries",
        "_reads",
        "_rows",
        "_shared",
        "_store",
        "_t_max",
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
        is_durable: bool,
    ) -> None:
        self._store = store
        self._t_max = store.t_max
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
        self._queries = queries(store.identifier, is_durable=is_durable)
        self._forgets = False
        self._prepared: set[bytes] = set()
        self._shared: dict[bytes, bytes] = {}
        self.store_time = 0
        """What the server's clock said in the latest answer that told it, in microseconds."""

    def send(self, resource: str, access: Access) -> "Replied | None":
        if isinstance(access, Apply):
            return self.apply(resource, access.operation)
        assert isinstance(access, Read), f"a store of this kind is not asked for {access!r}"
        try:
            errand = Errand(READS, [resource.encode()])
        except UnicodeError as error:
            return self._not_kept(error)
        self._enqueue(errand)
        return None

    def apply(self, resource: str, operation: Operation) -> "Replied | None":
        if self._closed_until:
            closed_for = self._closed_until - monotonic()
            if closed_for > 0:
                return self._stays_out(closed_for)
            self._closed_until = 0.0
        try:
            place = resource.encode()
            errand = quick_errand(place, operation, self._t_max, self._shared.get(place, GIVES_BACK))
        except (struct.error, OverflowError, UnicodeError) as error:
            return self._not_kept(error)
        if errand.statement is ASKS:
            self._be_ready_for(HANDS_TO_LAST)
            self._be_ready_for(HANDS_OVER)
        self._enqueue(errand)
        return None

    def _not_kept(self, error: Exception) -> Failed:
        return Failed(f"{self._store.url} cannot keep this: {one_line(error)}; nothing was sent")

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
                if result is None:  # that was all of the one under way
                    self._finish(arrived)
                elif self._outcome is None and result.status == TUPLES_OK and result.ntuples == 1:
                    self._outcome = self._told(errands[0], result)
                else:
                    self._take(errands[0], result)
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
        errands = self._errands
        errands.append(errand)
        if len(errands) == 1:
            self._start(errand)

    def _start(self, errand: Errand) -> None:
        statement, pgconn = errand.statement, self._pgconn
        try:
            if statement in self._prepared:
                parameters: Any = errand.parameters
                pgconn.send_query_prepared(statement, parameters, FORMATS[len(parameters)], BINARY)
            else:
                self._start_unprepared(errand)
            if statement is READS:
                pgconn.set_single_row_mode()
            while pgconn.flush():
                if not _is_ready(self.fileno(), POLLOUT, self._timeout):
                    raise self._lost(f"it took nothing in for {in_words(self._timeout)}")
        except psycopg.OperationalError as error:
            raise self._lost(error) from error

    def _start_unprepared(self, errand: Errand) -> None:
        statement, parameters, pgconn = errand.statement, errand.parameters, self._pgconn
        if parameters is None:
            pgconn.send_query(statement)
        elif self._forgets:
            query = self._queries[statement]
            pgconn.send_query_params(query, parameters, None, FORMATS[len(parameters)], BINARY)
        else:
            self._errands.appendleft(self._preparation(statement))
            pgconn.send_query(self._errands[0].statement)

    def _preparation(self, statement: bytes) -> Errand:
        """A statement is prepared when it is first used: most links use two of a dozen."""
        self._prepared.add(statement)
        return Errand(b"PREPARE " + statement + b" AS " + self._queries[statement])

    def _be_ready_for(self, statement: bytes) -> None:
        """What a waiter needs when it has it is prepared before it gets in line: then it will be in a hurry."""
        if not self._forgets and statement not in self._prepared:
            self._enqueue(self._preparation(statement))

    def _take(self, errand: Errand, result: "PGresult") -> None:
        """What is not a single row."""
        status = result.status
        if status == TUPLES_OK:
            if result.ntuples or self._outcome is not None:
                raise self._lost(NONSENSICAL)
            self._outcome = self._without_row(errand)
        elif status == SINGLE_TUPLE:
            self._take_row(result)
        elif status != COMMAND_OK:
            self._take_error(errand, result)
        elif errand.statement is GIVES_BACK:
            self._outcome = self._given_back(errand, result.command_status)

    def _take_row(self, result: "PGresult") -> None:
        self._looks = self._reads = 0
        if not self._rows.take(result):
            raise self._lost(ENDLESS)

    def _told(self, errand: Errand, result: "PGresult") -> "Replied":
        try:
            if errand.statement in GRANTS:
                return grant_in(result, errand)
            if errand.statement in HANDING:
                return self._ended(errand, RELEASED)
            answer, self.store_time = answer_in(result)
        except NONSENSE:
            return self._nonsense()
        return self._ended(errand, answer) if errand.statement is RELEASES else answer

    def _given_back(self, errand: Errand, status: bytes | None) -> "Replied | Errand | None":
        if status == b"UPDATE 1":
            return RELEASED
        return self._without_row(errand) if status == b"UPDATE 0" else self._nonsense()

    def _without_row(self, errand: Errand) -> "Replied | Errand | None":
        """What comes of it where there is none, or where all those of a read have come."""
        if errand.statement is READS:
            rows, self._rows = self._rows.rows, Rows()
            return item_in(rows) or self._nonsense()
        return None if errand.otherwise is None else next_errand(errand, self._store.t_max)

    def _finish(self, arrived: "list[Replied | Said]") -> None:
        """Go on to the next errand."""
        errands = self._errands
        errand, outcome = errands.popleft(), self._outcome
        self._outcome = None
        if self._looks:
            self._looks = self._reads = 0
        if isinstance(outcome, Errand):
            errands.appendleft(outcome)
        elif errand.parameters is not None:
            arrived.append(outcome or self._nonsense())
        if errands:
            self._start(errands[0])

    def _nonsense(self) -> Failed:
        return Failed(f"{self._store.url} (schema {self._store.schema}): {NONSENSICAL}")

    def _ended(self, errand: Errand, answer: Answer) -> Answer:
        """The answer to a release of what others wait for, or did. How it was done is likely to be how it is best done
        the next time."""
        resource: bytes = errand.parameters[0]  # type: ignore[index]
        if not (errand.statement in HANDING or answer.smaller):
            self._shared.pop(resource, None)
        elif len(self._shared) < MOST_SHARED:
            self._shared[resource] = errand.statement
        return answer.but(smaller=False) if answer.smaller else answer

    def _hear(self, arrived: "list[Replied | Said]") -> None:
        while (notification := self._pgconn.notifies()) is not None:
            words = notification.extra
            said = handed_in(words) if words[:1] == HANDED else Hint(words.decode(errors="replace"))
            if said is not None and said.owner in self._expecting:
                arrived.append(said)

    def _take_error(self, errand: Errand, result: "PGresult") -> None:
        if errand.statement is READS:
            self._rows = Rows()  # the next one must not begin with what came of this one
        state, message = error_of(result)
        if state.startswith("57P") or not state or state in REMOVED:
            raise self._lost(message)
        if errand.parameters is None:
            return
        if state == UNKNOWN_STATEMENT and not self._forgets:
            self._forgets = True
            self._prepared.clear()
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
