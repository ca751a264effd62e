"""The PostgreSQL store and servers that let us in and then say nothing, too much, or what makes no sense."""

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, repeat
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trinco
from tests.locks.services import SlowToConnect
from tests.stores.postgres_fakes import READY, FakePostgres, Stalling, description, message, row, table
from tests.stores.postgres_server import PostgresServer
from tests.stores.test_postgres import LIMIT, arrivals, ask, claim, read, replies, until
from trinco.core.errors import StoreUnavailable
from trinco.leases.accesses import Apply, Read, Versioned
from trinco.leases.operation import NEXT, Answer, Extend, Grade, Operation, Release, Request
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore
from trinco.stores.postgres import CREATION, PostgresStore
from trinco.stores.postgres_calls import GRADES
from trinco.stores.postgres_link import PAGE, PostgresLink
from trinco.stores.store import Failed

HERE = "a" * 20
TOKEN = struct.pack("!q", 800_000_000_000_000)
MAY_BE_READ = 512 << 20
"""Bytes that a server without end gets rid of, at the very most: some of them stand in sockets."""
FUNCTIONS = {
    "request": "text, text, bigint, interval, interval, bigint, bigint, bytea, bigint",
    "extend": "text, text, bigint, interval",
    "release": "text, text, bigint",
}
NULLS = "SELECT null::{schema}.answer"
OF_OTHERS = "SELECT ('perhaps', null, null, false, null, null, now())::{schema}.answer"


def refusal(do: Callable[[], object]) -> str:
    with pytest.raises(StoreUnavailable) as refused:
        do()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def spoil(server: PostgresServer, schema: str, function: str, body: str) -> None:
    """Have a function say something else."""
    with server.connect() as connection:
        where = f"{schema}.{function}"
        if function == "request":
            connection.execute(f"UPDATE {schema}.lease SET until = now() + '1 h' WHERE until IS NULL")
        connection.execute(f"DROP FUNCTION {where}")
        answer = f"RETURNS {schema}.answer LANGUAGE sql AS $$ {body.format(schema=schema)} $$"
        connection.execute(f"CREATE FUNCTION {where}({FUNCTIONS[function]}) {answer}")


# Nonsense

MINE = claim(0)
OPERATIONS: dict[str, Operation] = {
    "request": Request(claim(1), 30, 5, 30, NEXT),
    "extend": Extend(MINE, 30, 1),
    "release": Release(claim(2)),
}


@pytest.mark.parametrize(("kind", "body"), [("nulls", NULLS), ("grade", OF_OTHERS)])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_answer_that_makes_no_sense_fails_in_one_line_and_the_link_goes_on(
    postgres_server: PostgresServer, function: str, kind: str, body: str
) -> None:
    schema = f"odd_{kind}_{function}"
    store = PostgresStore(f"{postgres_server.url}?fresh=1&schema={schema}")
    link = store.connect(HERE)
    assert ask(link, "nightly", Request(MINE, 30, token=NEXT)).grade is Grade.COMMITTED
    spoil(postgres_server, schema, function, body)
    failed = ask(link, "nightly", OPERATIONS[function])
    assert isinstance(failed, Failed)
    assert failed.reason.startswith(f"{store.url} (schema {schema}): its answer makes no sense")
    assert read(link, "nightly").holder is not None
    link.close()


@pytest.mark.parametrize("column", ["token", "held_token", "attempt", "ticket"])
def test_a_column_of_another_type_makes_no_sense(postgres_server: PostgresServer, column: str) -> None:
    link = PostgresStore(f"{postgres_server.url}?fresh=1&schema=other_{column}").connect(HERE)
    ask(link, "nightly", Request(MINE, 30, 5, token=NEXT))
    with postgres_server.connect() as connection:
        connection.execute(f"ALTER TABLE other_{column}.lease ALTER COLUMN {column} TYPE numeric")
    link.send("nightly", Read())
    (failed,), _ = replies(link, 1)
    assert isinstance(failed, Failed)
    link.close()


# Whatever the cells of an answer hold

eight = st.integers(-(2**63), 2**63 - 1).map(struct.Struct("!q").pack)
moments = st.integers(8 * 10**14, 9 * 10**14).map(struct.Struct("!q").pack)
cells = st.one_of(
    st.none(), eight, moments, st.binary(max_size=12), st.sampled_from([*GRADES, b"failed", b"\0", b"\1", b"a/b/1"])
)
sane: "list[st.SearchStrategy[bytes | None]]" = [
    st.sampled_from([*GRADES]), st.none() | moments, st.none() | moments, st.sampled_from([b"\0", b"\1"]),
    st.none() | st.binary(), st.none() | st.binary(), moments,
]  # fmt: skip
looked_up: "list[st.SearchStrategy[bytes | None]]" = [
    moments, moments, moments, st.none() | st.binary(), st.none() | moments, st.just(b"a/b/1"), moments,
    st.none() | moments, st.none() | moments, st.none() | st.binary(), st.just(b"a/b/2"), moments, moments, moments,
    st.none() | st.binary(),
]  # fmt: skip


def damaged(honest: "list[st.SearchStrategy[bytes | None]]") -> "st.SearchStrategy[list[bytes | None]]":
    """Rows with a few odd cells, cut off or too long, or of odd cells only."""
    nearly = st.tuples(*(st.integers(0, 9).flatmap(lambda n, each=each: each if n else cells) for each in honest))
    return st.one_of(nearly.map(list), st.lists(cells, max_size=17), st.tuples(nearly, st.integers(0, 15)).map(_cut))


def _cut(cut: "tuple[tuple[bytes | None, ...], int]") -> "list[bytes | None]":
    return list(cut[0][: cut[1]])


granted: "list[st.SearchStrategy[bytes | None]]" = [moments, st.none()]
GIVEN_BACK = message(b"C", b"UPDATE 1\0") + READY
ACCESSES = {
    "take": (b"trinco_take_counted", granted, Apply(Request(MINE, 30, token=NEXT))),
    "give back": (b"trinco_give_back", [moments, st.none()], Apply(Release(MINE))),
    "ask": (b"trinco_request", sane, Apply(Request(MINE, 30, 5, 30, NEXT))),
    "extend": (b"trinco_extend", sane, Apply(Extend(MINE, 30, 1))),
    "read": (b"trinco_read", looked_up, Read()),
}


@pytest.fixture(scope="module", params=ACCESSES)
def liar(request: pytest.FixtureRequest) -> "Iterator[tuple[str, FakePostgres, PostgresLink]]":
    """Whose answers to one kind of access the test chooses, one by one."""
    with FakePostgres({}) as server:
        link = PostgresStore(server.url).connect(HERE)
        yield request.param, server, link
        link.close()


@settings(max_examples=300)
@given(data=st.data())
def test_nothing_comes_out_but_answers_that_make_sense_and_failures(
    liar: "tuple[str, FakePostgres, PostgresLink]", data: st.DataObject
) -> None:
    kind, server, link = liar
    statement, honest, access = ACCESSES[kind]
    server.answers[statement] = [data.draw(damaged(honest))]
    assert link.send("nightly", access) is None
    (reply,), said = replies(link, 1)
    assert not said
    assert isinstance(reply, (Versioned if kind == "read" else Answer, Failed))
    assert not isinstance(reply, Answer) or reply.makes_sense()


HONEST_GRANT = table([[TOKEN, None]]) + READY
flips = st.lists(st.tuples(st.integers(0, len(HONEST_GRANT) - 1), st.integers(0, 255)), min_size=1, max_size=4)


@settings(max_examples=100)
@given(flips=flips)
def test_whatever_bytes_come_a_link_replies_or_is_lost(flips: "list[tuple[int, int]]") -> None:
    said = bytearray(HONEST_GRANT)
    for place, byte in flips:
        said[place] = byte
    with FakePostgres({b"trinco_take_counted": iter([bytes(said)])}) as server:
        link = PostgresStore(server.url).connect(HERE)
        with suppress(StoreUnavailable):
            assert link.send("nightly", ACCESSES["take"][2]) is None
            for _ in range(3):  # the statement is prepared, and then asked
                assert all(isinstance(each, Answer | Failed) for each in arrivals(link, 0.02))
        link.close()


def test_a_lock_has_one_answer_however_often_it_is_given() -> None:
    granted = [[TOKEN, None]]
    with FakePostgres({b"trinco_take_counted": [*granted, *granted]}) as server:
        link = PostgresStore(server.url).connect(HERE)
        link.send("nightly", ACCESSES["take"][2])
        assert "makes no sense" in refusal(lambda: replies(link, 1))
        link.close()


def test_an_answer_without_rows_is_a_failure() -> None:
    with FakePostgres({}) as server:
        link = PostgresStore(server.url).connect(HERE)
        for access in (Read(), Apply(Extend(MINE, 30, 1)), Apply(Release(MINE)), Apply(Request(MINE, 30))):
            link.send("nightly", access)
            (reply,), _ = replies(link, 1)
            assert isinstance(reply, Failed)
        link.close()


@pytest.mark.parametrize("tag", [b"UPDATE", b"UPDATE 2", b"UPDATE one", b"SELECT 1", b"DELETE 1", b""])
def test_a_release_of_more_or_of_something_else_makes_no_sense(tag: bytes) -> None:
    with FakePostgres({b"trinco_give_back": iter([message(b"C", tag + b"\0") + READY])}) as server:
        link = PostgresStore(server.url).connect(HERE)
        link.send("nightly", ACCESSES["give back"][2])
        (reply,), _ = replies(link, 1)
        assert isinstance(reply, Failed)
        link.close()


class InTurn:
    """What is said to one question after the other."""

    def __init__(self, *sayings: bytes) -> None:
        self._left = list(sayings)

    def __iter__(self) -> Iterator[bytes]:
        yield self._left.pop(0)


def test_a_read_that_fails_midway_leaves_the_next_one_nothing() -> None:
    held = [TOKEN, TOKEN, TOKEN, None, struct.pack("!q", 900_000_000_000_000), b"ana/1/1", TOKEN, *[None] * 8]
    cancelled = message(b"E", b"SERROR\0VERROR\0C57014\0Mcanceling statement\0\0")
    first = description(15) + row(held) + cancelled + READY
    with FakePostgres({b"trinco_read": InTurn(first, table([[TOKEN, TOKEN, TOKEN, *[None] * 12]]) + READY)}) as server:
        link = PostgresStore(server.url).connect(HERE)
        link.send("nightly", Read())
        (reply,), _ = replies(link, 1)
        assert isinstance(reply, Failed)
        assert read(link, "weekly").holder is None
        link.close()


def test_a_grant_whose_commit_fails_is_none() -> None:
    """PostgreSQL commits after it has told the rows."""
    fields = b"SERROR\0VERROR\0C53100\0Mno space left\0\0"
    said = table([[TOKEN, None]]) + message(b"E", fields) + READY
    with FakePostgres({b"trinco_take_counted": iter([said])}) as server:
        link = PostgresStore(server.url).connect(HERE)
        link.send("nightly", ACCESSES["take"][2])
        (reply,), _ = replies(link, 1)
        assert isinstance(reply, Failed)
        assert "its disk is full" in reply.reason
        link.close()


@pytest.mark.parametrize("words", [b"pg_catalog.pg_proc", b"SELECT layout", b".entered("])
@pytest.mark.parametrize("odd", [[None], [b"x"], [b"\xff"], [b"9" * 99], [b"9" * 5000], [b"1", b"2", b"3"], []])
def test_odd_words_while_we_connect_are_a_server_that_cannot_be_used(words: bytes, odd: "list[bytes | None]") -> None:
    with FakePostgres({words: [odd]}) as server:
        assert "its answer makes no sense" in refusal(lambda: PostgresStore(server.url).connect(HERE))


@pytest.mark.parametrize("odd", [[[None]], [[b"\xff"]], [[b"b"], [b"a"]], [[b"a", b"b"]]])
def test_odd_names_are_refused(odd: "list[list[bytes | None]]") -> None:
    with FakePostgres({b"SELECT name": odd}) as server:
        link = PostgresStore(server.url).connect(HERE)
        assert "its answer makes no sense" in refusal(lambda: list(link.names()))
        link.close()


def test_a_quorum_holds_and_renews_though_one_of_four_answers_nonsense(postgres_server: PostgresServer) -> None:
    url = f"{postgres_server.url}?fresh=1&schema=one_of_four"
    PostgresStore(url).connect(HERE).close()
    there = Event()
    there.set()
    stores = [SlowToConnect(MemoryStore(f"beside {number}"), there) for number in range(3)]
    with LockService([*stores, PostgresStore(url)], f=1) as locks:
        held = locks.lock("nightly", ttl=1).hold(10).__enter__()
        for function in FUNCTIONS:
            spoil(postgres_server, "one_of_four", function, NULLS)
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            held.check()
            time.sleep(0.05)
        held.release()
        with locks.lock("weekly").hold(10) as lease:
            assert lease.valid


# Silence


@pytest.mark.parametrize("words", [b"pg_catalog.pg_proc", b"SELECT layout", b".entered("])
def test_a_server_that_falls_silent_after_the_login_is_given_up(words: bytes) -> None:
    with FakePostgres({words: iter([])}) as server:
        start = time.monotonic()
        assert "does not answer" in refusal(lambda: PostgresStore(server.url).connect(HERE, 0.4))
        assert time.monotonic() - start < LIMIT


def test_a_server_that_dribbles_gets_no_longer() -> None:
    def dribble() -> "Iterator[bytes]":
        while True:
            time.sleep(0.05)
            yield message(b"S", b"TimeZone\0UTC\0")

    with FakePostgres({b".entered(": dribble()}) as server:
        assert "does not answer" in refusal(lambda: PostgresStore(server.url).connect(HERE, 0.4))


def test_somebody_who_keeps_the_lock_of_creation_is_waited_for_no_longer_than_that(
    postgres_server: PostgresServer,
) -> None:
    with postgres_server.connect() as other:
        other.execute("SELECT pg_advisory_lock(%s)", [CREATION])
        store = PostgresStore(f"{postgres_server.url}?schema=of_slow&options=-c%20lock_timeout%3D0")
        assert "pg_stat_activity" in refusal(lambda: store.connect(HERE, 0.4))


def test_names_that_do_not_come_are_given_up() -> None:
    with FakePostgres({b"SELECT name": iter([])}) as server:
        link = PostgresStore(server.url).connect(HERE, 0.4)
        assert "does not answer" in refusal(lambda: list(link.names()))
        link.close()


def test_a_service_whose_reconnect_stalled_once_comes_back(postgres_server: PostgresServer) -> None:
    with Stalling(postgres_server.port) as front, trinco.connect(f"{front.url}&fresh=1&schema=back") as locks:
        assert locks.lock("nightly").acquire(timeout=LIMIT)
        front.stalls = True
        front.cut()
        with pytest.raises(StoreUnavailable):
            locks.lock("weekly").try_acquire()
        front.stalls = False

        def comes_back() -> bool:
            with suppress(StoreUnavailable):
                return locks.lock("weekly").acquire(timeout=1)
            return False

        until(comes_back)


# Too much


def endless_rows(cells: "list[bytes | None]") -> "Iterator[bytes]":
    return chain([description(len(cells))], repeat(50 * row(cells)))


def endless_row() -> "Iterator[bytes]":
    """One that claims to have a GiB."""
    return chain([description(1), b"D" + struct.pack("!ihi", 1 << 30, 1, (1 << 30) - 10)], repeat(bytes(1 << 16)))


ENDLESS: "dict[str, Callable[[], Iterator[bytes]]]" = {
    "small rows": lambda: endless_rows([bytes(8)]),
    "large rows": lambda: endless_rows([bytes(8000)]),
    "one row": endless_row,
    "notices": lambda: repeat(message(b"N", b"SNOTICE\0Mmore\0\0")),
    "answers": lambda: repeat(table([])),
}


@pytest.mark.parametrize("words", [b"pg_catalog.pg_proc", b".entered("])
@pytest.mark.parametrize("endless", ENDLESS)
def test_what_does_not_end_while_we_connect_is_not_read_for_ever(words: bytes, endless: str) -> None:
    with FakePostgres({words: ENDLESS[endless]()}) as server:
        assert "does not end" in refusal(lambda: PostgresStore(server.url).connect(HERE, 60.0))
        assert server.sent < MAY_BE_READ


@pytest.mark.parametrize("kind", ACCESSES)
@pytest.mark.parametrize("endless", [*ENDLESS, "items"])
def test_an_answer_that_does_not_end_loses_the_link(kind: str, endless: str) -> None:
    statement, _, access = ACCESSES[kind]
    pieces = endless_rows([TOKEN] * 15) if endless == "items" else ENDLESS[endless]()
    with FakePostgres({statement: pieces}) as server:
        link = PostgresStore(server.url).connect(HERE)
        link.send("nightly", access)
        line = refusal(lambda: replies(link, 1))
        assert "does not end" in line or "makes no sense" in line
        assert server.sent < MAY_BE_READ
        link.close()


def test_names_without_end_are_not_read_for_ever() -> None:
    with FakePostgres({b"SELECT name": endless_rows([b"nightly"])}) as server:
        link = PostgresStore(server.url).connect(HERE)
        assert "does not end" in refusal(lambda: list(link.names()))
        assert server.sent < MAY_BE_READ
        link.close()


def test_who_is_sent_words_that_do_not_end_while_it_asks_nothing_loses_the_link() -> None:
    begun = [message(b"N", b"")[:1] + struct.pack("!i", 1 << 30)]
    with FakePostgres({b"trinco_give_back": chain([GIVEN_BACK], begun, repeat(bytes(1 << 16)))}) as server:
        link = PostgresStore(server.url).connect(HERE)
        link.send("nightly", Apply(Release(MINE)))
        (reply,), _ = replies(link, 1)
        assert reply == Answer(Grade.DONE)
        assert "does not end" in refusal(lambda: replies(link, 1))
        assert server.sent < MAY_BE_READ
        link.close()


def test_a_server_that_is_busy_may_be_looked_at_often(postgres_server: PostgresServer) -> None:
    """Whoever asks for something looks at every link that owes an answer."""
    link = PostgresStore(f"{postgres_server.url}?fresh=1&schema=busy").connect(HERE)
    ask(link, "nightly", Request(MINE, 30, 0, token=NEXT, entry=b"e"))
    with postgres_server.connect() as connection, connection.transaction():
        connection.execute("SELECT FROM busy.lease FOR UPDATE")
        link.send("nightly", Apply(Release(MINE)))
        assert [link.receive() for _ in range(1000)] == [[]] * 1000
    (reply,), _ = replies(link, 1)
    assert reply == Answer(Grade.DONE)
    link.close()


def test_a_long_line_with_long_entries_is_read_whole(postgres_server: PostgresServer) -> None:
    link = PostgresStore(f"{postgres_server.url}?fresh=1&schema=long").connect(HERE)
    ask(link, "nightly", Request(MINE, 30, 0, token=NEXT, entry=bytes(4096)))
    with postgres_server.connect() as connection:
        connection.execute(
            "UPDATE long.lease SET waiters = ARRAY("
            "   SELECT ROW(n, 'ana/' || n, 1, now() + '1 h', %s, 1, NULL, NULL, NULL, NULL)::long.waiter"
            "     FROM generate_series(1, 1024) AS n)",
            [bytes(4096)],
        )
    waiters = read(link, "nightly").waiters
    assert [each.ticket for each in waiters] == list(range(1, 1025))
    assert {each.entry for each in waiters} == {bytes(4096)}
    link.close()


def test_names_come_page_by_page_and_in_order(postgres_server: PostgresServer) -> None:
    link = PostgresStore(f"{postgres_server.url}?fresh=1&schema=pages").connect(HERE)
    with postgres_server.connect() as connection:
        for count in (PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 500):
            connection.execute("DELETE FROM pages.lease")
            connection.execute(
                "INSERT INTO pages.lease (name, token) SELECT 'lock ' || n, 1 FROM generate_series(1, %s) AS n", [count]
            )
            assert list(link.names("lock")) == sorted(f"lock {number}" for number in range(1, count + 1))
    assert list(link.names("unlock")) == []
    link.close()
