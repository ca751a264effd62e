"""PostgreSQL: the twin of ``Item.apply`` in SQL, wake-ups, crashes, and what people are told when it goes wrong."""

import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trinco
from tests.stores.postgres_server import PostgresServer, free_port
from trinco.core.errors import Denial, StoreForbidden, StoreUnavailable
from trinco.leases.accesses import Access, Apply, Read, Versioned
from trinco.leases.claim import Claim
from trinco.leases.item import Item, Limits
from trinco.leases.operation import NEXT, Answer, Commit, Extend, Grade, Handed, Operation, Release, Request, Yield
from trinco.leases.owner import owner_name
from trinco.stores.postgres import PostgresStore
from trinco.stores.postgres_calls import COUNT as NEXT_IN_SQL
from trinco.stores.postgres_calls import queries
from trinco.stores.postgres_link import PostgresLink
from trinco.stores.store import Failed, Hint

LIMIT = 10.0
HERE = "a" * 20
THERE = "b" * 20
MICROSECONDS = 1_000_000
ROOT = Path(__file__).parents[2]
fresh_names = (f"lock {number}" for number in count())


def claim(handle: int, attempt: int = 1, address: str = HERE) -> Claim:
    return Claim(owner_name("ana@laptop:4242", address, handle), attempt)


def arrivals(link: PostgresLink, timeout: float = LIMIT) -> list[Any]:
    """What comes next; nothing if nothing comes."""
    readable, _, _ = select.select([link.fileno()], [], [], timeout)
    return link.receive() if readable else []


def replies(link: PostgresLink, how_many: int) -> tuple[list[Any], list[Any]]:
    """So many replies, and what was said besides: what was handed over, and of hints the owners."""
    arrived: list[Any] = []
    end = time.monotonic() + LIMIT
    while sum(not isinstance(each, Hint | Handed) for each in arrived) < how_many:
        assert time.monotonic() < end, f"only {arrived} arrived"
        arrived += arrivals(link)
    said = [each.owner if isinstance(each, Hint) else each for each in arrived if isinstance(each, Hint | Handed)]
    return [each for each in arrived if not isinstance(each, Hint | Handed)], said


def access(link: PostgresLink, resource: str, wanted: Access) -> Any:
    reply = link.send(resource, wanted)
    return reply if reply is not None else replies(link, 1)[0][0]


def ask(link: PostgresLink, resource: str, operation: Operation) -> Any:
    return access(link, resource, Apply(operation))


def read(link: PostgresLink, resource: str) -> Item:
    reply = access(link, resource, Read())
    assert isinstance(reply, Versioned)
    return reply.item


def until(probe: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not probe():
        assert time.monotonic() < end, "it did not happen in time"


@pytest.fixture
def name() -> str:
    return next(fresh_names)


@pytest.fixture(scope="module")
def store(postgres_server: PostgresServer) -> PostgresStore:
    return PostgresStore(postgres_server.url + "?fresh=1")


@pytest.fixture
def link(store: PostgresStore) -> Iterator[PostgresLink]:
    link = store.connect(HERE)
    yield link
    link.close()


@pytest.fixture
def other(store: PostgresStore) -> Iterator[PostgresLink]:
    link = store.connect(THERE)
    yield link
    link.close()


# The twin

claims = st.builds(claim, st.integers(0, 3), st.sampled_from([1, 1, 1, 2]))
tickets = st.sampled_from([1, 2, 2, 3])
waits = st.sampled_from([90, 90, 0, 200])
entries = st.sampled_from([b"one", b"\0two", b"three", b"", None])
steps = st.sampled_from([0, 1, 7, -5])
"""A token, counted from the largest committed one."""
guesses = st.one_of(st.just(NEXT), steps, st.just(2 * 3600 * MICROSECONDS), st.none())
serials = st.one_of(st.none(), st.integers(0, 3))
requests = st.builds(Request, claims, st.sampled_from([50, 100]), tickets, waits, guesses, entries, serials)
plain_requests = st.builds(Request, claims, st.just(50), st.none(), st.just(0), guesses, entries)
releases = st.builds(Release, claims)
commits = st.builds(Commit, claims, steps, entries)
extensions = st.builds(Extend, claims, st.sampled_from([20, 70, 100]), st.just(1))
yields = st.builds(Yield, claims, st.one_of(tickets, st.none()), waits, entries)
operations = st.one_of(requests, plain_requests, releases, requests, plain_requests, commits, extensions, yields)


def with_token(operation: Any, largest: int) -> Any:
    """The operation with a token near the largest one."""
    token = getattr(operation, "token", None)
    return operation.but(token=largest + token) if isinstance(token, int) else operation


def in_microseconds(operation: Any) -> Any:
    durations = {each: getattr(operation, each) * MICROSECONDS for each in ("ttl", "wait") if hasattr(operation, each)}
    return operation.but(**durations)


def without_times(item: Item) -> Item:
    """And without what only a hand-over needs, which a read does not tell."""
    holder = item.holder and item.holder.but(until=0)
    waiters = tuple(each.but(until=0, serial=None, ttl=0, token=None) for each in item.waiters)
    return item.but(holder=holder, waiters=waiters)


class Twin:
    """The same operations on an ``Item``, at the times that the server tells."""

    def __init__(self) -> None:
        self.item: Item | None = None

    def largest(self) -> int:
        return self.item.token if self.item else int(time.time() * MICROSECONDS)

    def moment(self, said: list[Any]) -> int | None:
        """When something was handed over: a release does not tell to the microsecond."""
        first = next((each for each in said if isinstance(each, Handed)), None)
        if first is None or self.item is None:
            return None
        (waiter,) = (each for each in self.item.waiters if each.claim == first.claim)
        until: int = round(first.beyond * MICROSECONDS) + waiter.until
        return until - round(min(waiter.ttl, 60 * MICROSECONDS))

    def apply(self, operation: Operation, now: int, floor: int) -> tuple[Answer, list[Any]]:
        limits = Limits(60 * MICROSECONDS, token=now + 3600 * MICROSECONDS, floor=floor)
        item = self.item or Item(now)
        item, answer, woken = item.apply(in_microseconds(operation), now, limits)
        said: list[Any] = [each.owner for each in woken]
        if woken and item.holder is None:
            item, handed = item.hand_over(now, limits)
            said = said if handed is None else [handed.but(beyond=handed.beyond / MICROSECONDS)]
        if self.item or isinstance(operation, Request):
            self.item = item
        return answer.but(remaining=answer.remaining / MICROSECONDS), said


def granted_at(server: PostgresServer, name: str, operation: Operation) -> int:
    """When an operation was done by a single UPDATE, which does not tell. Of a release it does not matter."""
    if not isinstance(operation, Request):
        return int(time.time() * MICROSECONDS)
    query = "SELECT (extract(epoch FROM until) * 1000000)::bigint FROM trinco.lease WHERE name = %s"
    with server.connect() as connection:
        row = connection.execute(query, (name,)).fetchone()
    assert row is not None
    until: int = row[0]
    return until - round(operation.ttl * MICROSECONDS)


@settings(max_examples=300)
@given(history=st.lists(operations, min_size=12, max_size=40))
def test_the_functions_in_sql_answer_as_the_item_does(
    postgres_server: PostgresServer, twin_link: PostgresLink, history: list[Operation]
) -> None:
    twin, name = Twin(), next(fresh_names)
    for step in history:
        operation = with_token(step, twin.largest())
        twin_link.store_time = 0
        assert twin_link.send(name, Apply(operation)) is None
        (answer,), said = replies(twin_link, 1)
        now = twin.moment(said) or twin_link.store_time or granted_at(postgres_server, name, operation)
        floor = max(each.token or 0 for each in (answer, *(each.answer for each in said if isinstance(each, Handed))))
        assert floor <= max(time.time() * MICROSECONDS, twin.largest() + 1)
        assert (answer, said) == twin.apply(operation, now, floor), operation
    if twin.item:
        assert without_times(read(twin_link, name)) == without_times(twin.item)


@pytest.fixture(scope="module")
def twin_link(store: PostgresStore) -> Iterator[PostgresLink]:
    link = store.connect(HERE)
    for handle in range(4):
        link.expect_hints(claim(handle).owner)
    yield link
    link.close()


def test_a_line_has_room_for_256_and_the_largest_ticket_goes(link: PostgresLink, name: str) -> None:
    ask(link, name, Request(claim(0), 30))
    for ticket in range(2, 259):
        link.send(name, Apply(Request(claim(ticket), 30, ticket, 30)))
    replies(link, 257)
    assert [each.ticket for each in read(link, name).waiters] == list(range(2, 258))
    ask(link, name, Request(claim(1), 30, 1, 30))
    assert [each.ticket for each in read(link, name).waiters] == list(range(1, 257))


# Time


def test_a_lease_that_ran_out_can_be_taken_and_not_before(link: PostgresLink, name: str) -> None:
    first = ask(link, name, Request(claim(0), 0.2, token=NEXT))
    start = time.monotonic()
    refused = ask(link, name, Request(claim(1), 30, token=NEXT))
    assert refused.grade is Grade.REFUSED
    assert 0 < refused.remaining <= 0.2
    until(lambda: ask(link, name, Request(claim(1), 30, token=NEXT)).grade is Grade.COMMITTED)
    assert time.monotonic() - start >= refused.remaining - 0.05
    assert read(link, name).token > first.token
    assert ask(link, name, Extend(claim(0), 30, 1)).grade is Grade.GONE
    assert ask(link, name, Release(claim(0))).grade is Grade.GONE


def test_a_waiter_whose_time_is_up_stands_in_nobodys_way(link: PostgresLink, name: str) -> None:
    ask(link, name, Request(claim(0), 30))
    ask(link, name, Request(claim(1), 30, 1, 0.15))
    ask(link, name, Release(claim(0)))
    assert ask(link, name, Request(claim(2), 30, 2, 30)).smaller
    until(lambda: ask(link, name, Request(claim(2), 30, 2, 30)).grade is Grade.COMMITTED)


def test_no_lease_lasts_longer_than_t_max(postgres_server: PostgresServer, name: str) -> None:
    link = PostgresStore(postgres_server.url + "?fresh=1&t_max=2s").connect(HERE)
    assert ask(link, name, Request(claim(0), 30)).remaining == 2
    assert ask(link, name, Extend(claim(0), 30, 1)).remaining <= 2
    link.close()


def test_a_first_token_is_the_servers_time_so_that_none_comes_back(link: PostgresLink, name: str) -> None:
    before = time.time() * MICROSECONDS
    assert before < ask(link, name, Request(claim(0), 30, token=NEXT)).token < time.time() * MICROSECONDS + 2


def test_a_guess_far_beyond_the_servers_clock_is_not_committed(link: PostgresLink, name: str) -> None:
    for attempt in (1, 2):
        mine, now = claim(0, attempt), int(time.time() * MICROSECONDS)
        assert ask(link, name, Request(mine, 30, token=now + 2 * 3600 * MICROSECONDS)).grade is Grade.TENTATIVE
        ask(link, name, Release(mine))
        assert ask(link, name, Request(mine, 30, token=now + 1800 * MICROSECONDS + attempt)).grade is Grade.COMMITTED
        ask(link, name, Release(mine))


def test_a_read_of_an_unknown_name_is_a_free_item(link: PostgresLink, name: str) -> None:
    item = read(link, name)
    assert (item.holder, item.waiters) == (None, ())
    assert item.token > 1e15


# Wake-ups


def test_a_release_wakes_the_first_in_line(link: PostgresLink, other: PostgresLink, name: str) -> None:
    first, second = claim(1, address=THERE), claim(2, address=THERE)
    for each in (first, second):
        other.expect_hints(each.owner)
    ask(link, name, Request(claim(0), 30))
    ask(other, name, Request(second, 30, 2, 30))
    ask(other, name, Request(first, 30, 1, 30))
    ask(link, name, Release(claim(0)))
    assert arrivals(other) == [Hint(first.owner)]
    assert ask(other, name, Request(first, 30, 1, 30)).grade is Grade.COMMITTED
    assert ask(other, name, Release(first)).grade is Grade.DONE


def test_a_lock_that_was_taken_while_nobody_waited_is_not_released_past_a_waiter(
    link: PostgresLink, other: PostgresLink, name: str
) -> None:
    ask(link, name, Request(claim(0), 30))
    ask(link, name, Release(claim(0)))
    waiter = claim(1, address=THERE)
    other.expect_hints(waiter.owner)
    assert ask(link, name, Request(claim(0, 2), 30)).grade is Grade.COMMITTED
    assert ask(other, name, Request(waiter, 30, 1, 30)).grade is Grade.REFUSED
    assert ask(link, name, Release(claim(0, 2))).grade is Grade.DONE
    assert arrivals(other) == [Hint(waiter.owner)]


def test_who_no_longer_waits_gets_no_hints(link: PostgresLink, other: PostgresLink, name: str) -> None:
    waiter = claim(1, address=THERE)
    other.expect_hints(waiter.owner)
    ask(link, name, Request(claim(0), 30))
    ask(other, name, Request(waiter, 30, 1, 30))
    other.ignore_hints(waiter.owner)
    read(other, name)
    ask(link, name, Release(claim(0)))
    other.send(name, Apply(Request(waiter, 30, 1, 30)))
    (answer,), hints = replies(other, 1)
    assert answer.grade is Grade.COMMITTED
    assert hints == []


def test_a_waiter_whose_connection_is_gone_is_passed_over(
    postgres_server: PostgresServer, store: PostgresStore, link: PostgresLink, name: str
) -> None:
    gone, waiter = store.connect(THERE), claim(2)
    link.expect_hints(waiter.owner)
    ask(link, name, Request(claim(0), 30))
    ask(gone, name, Request(claim(1, address=THERE), 30, 1, 30))
    ask(link, name, Request(waiter, 30, 2, 30))
    with postgres_server.connect() as watching:
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'trinco'"
        before = watching.execute(sessions).fetchone()
        gone.close()
        until(lambda: watching.execute(sessions).fetchone() != before)
    link.send(name, Apply(Release(claim(0))))
    (answer,), hints = replies(link, 1)
    assert (answer.grade, hints) == (Grade.DONE, [waiter.owner])
    assert ask(link, name, Request(waiter, 30, 2, 30)).grade is Grade.COMMITTED


def test_a_waiter_behind_a_pooler_is_not_taken_for_gone(link: PostgresLink, other: PostgresLink, name: str) -> None:
    waiter = claim(1, address=THERE)
    other.expect_hints(waiter.owner)
    ask(link, name, Request(claim(0), 30))
    ask(other, name, Request(waiter, 30, 1, 30))
    other._pgconn.exec_(b"SELECT pg_advisory_unlock_all()")  # it was lent another connection than the one it entered by
    ask(link, name, Release(claim(0)))
    assert arrivals(other) == [Hint(waiter.owner)]
    assert [each.claim for each in read(link, name).waiters] == [waiter]


def test_the_first_in_line_leaves_the_others_behind_it(link: PostgresLink, other: PostgresLink, name: str) -> None:
    waiters = [claim(handle, address=THERE) for handle in (1, 2, 3)]
    ask(link, name, Request(claim(0), 30))
    for ticket, each in enumerate(waiters):
        other.expect_hints(each.owner)
        ask(other, name, Request(each, 30, ticket, 0.1 if ticket == 2 else 30, entry=b"%d" % ticket))
    until(lambda: not read(link, name).waiters[2].until)
    ask(link, name, Release(claim(0)))
    assert arrivals(other) == [Hint(waiters[0].owner)]
    granted = ask(other, name, Request(waiters[0], 30, 0, 30, NEXT))
    assert (granted.grade, granted.smaller, granted.ticket) == (Grade.COMMITTED, False, b"1")
    assert ask(other, name, Release(waiters[0])).grade is Grade.DONE
    assert [each.claim for each in read(link, name).settled(0).waiters] == [waiters[1]]


def woken(link: PostgresLink, other: PostgresLink, name: str) -> Claim:
    """Somebody in line on the other link, with the ticket 5, after a release."""
    waiter = claim(1, 2, address=THERE)
    other.expect_hints(waiter.owner)
    ask(link, name, Request(claim(0), 30))
    ask(other, name, Request(waiter, 30, 5, 30))
    ask(link, name, Release(claim(0)))
    assert arrivals(other) == [Hint(waiter.owner)]
    return waiter


def test_who_was_woken_may_find_that_a_smaller_ticket_was_faster(
    link: PostgresLink, other: PostgresLink, name: str
) -> None:
    waiter = woken(link, other, name)
    assert ask(link, name, Request(claim(0), 30, 4)).grade is Grade.COMMITTED
    assert ask(other, name, Request(waiter, 30, 5, 30)).grade is Grade.REFUSED


def test_an_older_attempt_of_who_was_woken_gets_nothing(link: PostgresLink, other: PostgresLink, name: str) -> None:
    waiter = woken(link, other, name)
    assert ask(other, name, Request(waiter.but(attempt=1), 30, 5, 30)).grade is Grade.REFUSED
    assert ask(other, name, Request(waiter, 30, 5, 30)).grade is Grade.COMMITTED


def test_an_owner_that_cannot_be_notified_does_not_break_a_release(link: PostgresLink, name: str) -> None:
    ask(link, name, Request(claim(0), 30))
    ask(link, name, Request(Claim("\N{PILE OF POO}" * 3000, 1), 30, 1, 30))
    assert ask(link, name, Release(claim(0))).grade is Grade.DONE


# The disk


def test_a_grant_waits_for_the_disk_even_where_the_database_would_not(
    postgres_server: PostgresServer, store: PostgresStore, name: str
) -> None:
    store.connect(HERE).close()
    statements = queries("trinco")
    term, me, you = timedelta(seconds=9), (name, "me", 1), (name, "you", 1)
    calls = [
        ("on", b"trinco_request", [*me, term, timedelta(0), None, NEXT_IN_SQL, None, None]),
        ("off", b"trinco_give_back", me),
        ("on", b"trinco_take_counted", [*me, term, None]),
        ("on", b"trinco_extend", [*me, term]),
        ("off", b"trinco_request", [*you, term, term, 7, NEXT_IN_SQL, None, None]),
        ("off", b"trinco_release", me),
        ("on", b"trinco_request", [*you, term, term, 7, NEXT_IN_SQL, None, None]),
        ("off", b"trinco_request", [*me, term, term, 8, NEXT_IN_SQL, None, 1]),
        ("on", b"trinco_hand_to_last", you),
        ("off", b"trinco_request", [*you, term, term, 9, NEXT_IN_SQL, None, 1]),
        ("on", b"trinco_release", me),  # which hands it over, too
        ("off", b"trinco_release", you),
    ]
    with postgres_server.connect(cursor_factory=psycopg.RawCursor) as connection:
        for expected, statement, parameters in calls:
            opposite = "on" if expected == "off" else "off"
            with connection.transaction():
                connection.execute(f"SET LOCAL synchronous_commit = {opposite}")
                assert connection.execute(statements[statement], parameters).rowcount == 1, statement
                assert connection.execute("SHOW synchronous_commit").fetchone() == (expected,), statement


# Links


def test_answers_come_in_the_order_of_the_accesses(link: PostgresLink, name: str) -> None:
    held = Apply(Request(claim(0), 30, token=NEXT))
    for each in (held, Apply(Request(claim(1), 30)), Read(), Apply(Release(claim(0))), held):
        assert link.send(name, each) is None
    (first, second, third, fourth, fifth), _ = replies(link, 5)
    assert [each.grade for each in (first, second, fourth, fifth)] == [
        Grade.COMMITTED, Grade.REFUSED, Grade.DONE, Grade.COMMITTED,
    ]  # fmt: skip
    assert third.item.holder.claim == claim(0)
    assert fifth.token > first.token


def test_of_eight_who_ask_first_at_once_one_gets_it(store: PostgresStore, name: str) -> None:
    links = [store.connect(HERE) for _ in range(8)]
    for handle, each in enumerate(links):
        each.send(name, Apply(Request(claim(handle), 30, token=NEXT)))
    grades = [replies(each, 1)[0][0].grade for each in links]
    assert sorted(each.value for each in grades) == ["committed"] + ["refused"] * 7
    for each in links:
        each.close()


COUNTING = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.stores.test_postgres import ask, claim, PostgresStore, Grade, Request, Release, NEXT
url, path, me = sys.argv[2], sys.argv[3], claim(int(sys.argv[4]))
link = PostgresStore(url).connect("a" * 20)
for attempt in range(1, 31):
    mine = me.but(attempt=attempt)
    while (answer := ask(link, "counter", Request(mine, 30, token=NEXT))).grade is not Grade.COMMITTED:
        pass
    with open(path) as file:
        lines = file.read()
    with open(path, "w") as file:
        file.write(lines + f"{answer.token}\\n")
    ask(link, "counter", Release(mine))
link.close()
"""


def test_processes_exclude_each_other_and_tokens_rise(postgres_server: PostgresServer, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.touch()
    arguments = [str(ROOT), postgres_server.url + "?fresh=1", str(path)]
    processes = [
        subprocess.Popen([sys.executable, "-c", COUNTING, *arguments, str(number)], cwd=ROOT) for number in range(3)
    ]
    assert [each.wait(30) for each in processes] == [0, 0, 0]
    tokens = [int(line) for line in path.read_text().split()]
    assert len(tokens) == 90
    assert tokens == sorted(set(tokens))


CREATING = """
import sys
from trinco.stores.postgres import PostgresStore
from trinco.stores.postgres_calls import COUNT as NEXT_IN_SQL
from trinco.stores.postgres_calls import queries
store = PostgresStore(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
store.connect("a" * 20).close()
"""


def test_eight_processes_at_once_can_make_the_schema(postgres_server: PostgresServer) -> None:
    url = postgres_server.url + "?fresh=1&schema=at%20%22once%22"
    processes = [
        subprocess.Popen([sys.executable, "-c", CREATING, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(8)
    ]
    for each in processes:
        assert each.stdout is not None
        assert each.stdout.readline() == b"ready\n"
    for each in processes:
        each.communicate(b"go\n", timeout=30)
    assert [each.returncode for each in processes] == [0] * 8


def test_names_may_hold_anything_and_are_listed_in_order(postgres_server: PostgresServer) -> None:
    link = PostgresStore(postgres_server.url + "?fresh=1&schema=names").connect(HERE)
    names = ["100%", "100x", "a'b\"c", "a\\b", "a_b", "axb", "Zürich", "naïve ☂", "日本"]
    for each in names:
        assert ask(link, each, Request(claim(0), 30)).grade is Grade.COMMITTED
    assert list(link.names()) == sorted(names)
    assert list(link.names("100%")) == ["100%"]
    assert list(link.names("a_")) == ["a_b"]
    assert list(link.names("a\\")) == ["a\\b"]
    link.close()


def test_a_name_that_cannot_be_kept_is_refused_in_one_line(link: PostgresLink) -> None:
    for impossible in ("zero\0byte", "lone \ud800 surrogate"):
        reply = ask(link, impossible, Request(claim(0), 30))
        assert isinstance(reply, Failed)
        assert "nothing was" in reply.reason


def test_a_pooler_that_forgets_prepared_statements_does_no_harm(link: PostgresLink, name: str) -> None:
    first = ask(link, name, Request(claim(0), 30, token=NEXT))
    assert ask(link, name, Release(claim(0))).grade is Grade.DONE
    link._pgconn.exec_(b"DEALLOCATE ALL")
    second = ask(link, name, Request(claim(0), 30, token=NEXT))
    assert second.token > first.token
    assert ask(link, name, Release(claim(0))).grade is Grade.DONE
    assert ask(link, name, Request(claim(0), 30, token=NEXT)).token > second.token


def test_an_access_that_takes_too_long_fails_and_changes_nothing(
    postgres_server: PostgresServer, store: PostgresStore, name: str
) -> None:
    link = store.connect(HERE, timeout=0.2)
    ask(link, name, Request(claim(0), 30))
    with postgres_server.connect() as blocking, blocking.transaction():
        blocking.execute("SELECT FROM trinco.lease WHERE name = %s FOR UPDATE", [name])
        reply = ask(link, name, Release(claim(0)))
    assert isinstance(reply, Failed)
    assert "nothing was changed" in reply.reason
    assert read(link, name).holder is not None
    link.close()


# Crashes


@pytest.fixture
def own_server(postgres_template: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(postgres_template)
    try:
        yield server.start()
    finally:
        server.stop()


def lose(link: PostgresLink) -> str:
    """Use a link until it says that it is lost: the process behind it may outlive the server for a moment."""

    def still_answers() -> bool:
        ask(link, "lost", Release(claim(0)))
        return True

    with pytest.raises(StoreUnavailable) as lost:
        until(lambda: not still_answers())
    link.close()
    return str(lost.value)


def test_a_server_without_fsync_stays_out_after_a_crash(own_server: PostgresServer) -> None:
    url = own_server.url + "?t_max=1s"
    link = PostgresStore(url + "&fresh=1").connect(HERE)
    token = ask(link, "nightly", Request(claim(0), 1, token=NEXT)).token
    own_server.kill()
    assert "127.0.0.1" in lose(link)
    own_server.restart()
    link = PostgresStore(url).connect(HERE)
    again = PostgresStore(url).connect(HERE)
    for each in (link, again):
        reply = ask(each, "nightly", Request(claim(1), 1, token=NEXT))
        assert isinstance(reply, Failed)
        assert "fresh=1" in reply.reason
        assert "ms" in reply.reason
    until(lambda: isinstance(ask(link, "nightly", Request(claim(1), 1, token=NEXT)), Answer))
    assert read(link, "nightly").token > token + 1
    link.close()
    again.close()


def test_fresh_opens_a_server_that_stays_out(own_server: PostgresServer) -> None:
    closed = PostgresStore(own_server.url).connect(HERE)
    assert isinstance(ask(closed, "nightly", Request(claim(0), 30)), Failed)
    link = PostgresStore(own_server.url + "?fresh=1").connect(HERE)
    assert ask(link, "nightly", Request(claim(0), 30)).grade is Grade.COMMITTED
    link.close()
    closed.close()


def test_with_fsync_leases_survive_a_crash_and_nobody_stays_out(postgres_template: Path) -> None:
    server = PostgresServer(postgres_template, "fsync=on", "full_page_writes=on")
    try:
        store = PostgresStore(server.start().url)
        link = store.connect(HERE)
        token = ask(link, "nightly", Request(claim(0), 30, token=NEXT)).token
        server.kill()
        lose(link)
        server.restart()
        link = store.connect(HERE)
        assert ask(link, "nightly", Request(claim(1), 30)).grade is Grade.REFUSED
        assert ask(link, "nightly", Extend(claim(0), 30, 1)).token == token
        link.close()
    finally:
        server.stop()


# What people are told


def refusal(url: str) -> str:
    with pytest.raises(StoreUnavailable) as refused:
        PostgresStore(url).connect(HERE, timeout=2)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)
    return str(refused.value)


def denial(url: str) -> str:
    """A refusal that says that we may not."""
    with pytest.raises(StoreForbidden):
        PostgresStore(url).connect(HERE, timeout=2)
    return refusal(url)


@pytest.fixture(scope="module")
def roles(postgres_server: PostgresServer) -> None:
    with postgres_server.connect() as connection:
        connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        connection.execute("CREATE ROLE stranger LOGIN")
        connection.execute("ALTER ROLE stranger SET default_transaction_read_only = off")


def as_role(server: PostgresServer, role: str, path: str = "/postgres") -> str:
    return f"postgresql://{role}@127.0.0.1:{server.port}{path}"


def test_a_server_that_is_not_there_is_named() -> None:
    assert "is the server running" in refusal(f"postgresql://trinco@127.0.0.1:{free_port()}/postgres")


@pytest.mark.usefixtures("roles")
def test_a_wrong_password_is_named_and_not_shown(postgres_server: PostgresServer) -> None:
    assert "check the user and the password" in denial(as_role(postgres_server, "guarded:secret"))


def test_a_missing_database_is_named(postgres_server: PostgresServer) -> None:
    line = refusal(as_role(postgres_server, "trinco", "/nowhere"))
    assert '"nowhere" does not exist' in line


@pytest.mark.usefixtures("roles")
def test_who_may_not_create_the_schema_is_told_what_to_do(postgres_server: PostgresServer) -> None:
    assert "GRANT CREATE ON DATABASE" in denial(as_role(postgres_server, "stranger") + "?schema=theirs")


@pytest.mark.usefixtures("roles")
def test_who_may_not_create_can_use_what_is_there_once_granted(postgres_server: PostgresServer, name: str) -> None:
    PostgresStore(postgres_server.url + "?fresh=1&schema=shared").connect(HERE).close()
    url = as_role(postgres_server, "stranger") + "?schema=shared"
    assert "GRANT USAGE ON SCHEMA" in denial(url)
    with postgres_server.connect() as connection:
        connection.execute("GRANT USAGE ON SCHEMA shared TO stranger")
        connection.execute("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA shared TO stranger")
    link = PostgresStore(url).connect(HERE)
    assert ask(link, name, Request(claim(0), 30)).grade is Grade.COMMITTED
    ask(link, name, Request(claim(1), 30, 1, 30))
    assert ask(link, name, Release(claim(0))).grade is Grade.DONE
    link.close()


@pytest.mark.usefixtures("roles")
def test_a_permission_that_is_missing_in_use_is_a_denial(postgres_server: PostgresServer) -> None:
    PostgresStore(f"{postgres_server.url}?fresh=1&schema=looked_at").connect(HERE).close()
    with postgres_server.connect() as connection:
        connection.execute("GRANT USAGE ON SCHEMA looked_at TO stranger")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA looked_at TO stranger")
    link = PostgresStore(as_role(postgres_server, "stranger") + "?schema=looked_at").connect(HERE)
    refused = ask(link, "nightly", Request(claim(1), 30))
    link.close()
    assert isinstance(refused, Failed)
    assert isinstance(refused.reason, Denial)


def test_a_read_only_server_is_named(postgres_server: PostgresServer) -> None:
    line = refusal(postgres_server.url + "?options=-c%20default_transaction_read_only%3Don")
    assert "primary" in line


def test_a_schema_of_a_later_trinco_is_left_alone(postgres_server: PostgresServer) -> None:
    url = postgres_server.url + "?fresh=1&schema=later"
    PostgresStore(url).connect(HERE).close()
    with postgres_server.connect() as connection:
        connection.execute("UPDATE later.store SET layout = 99")
    assert "later Trinco" in refusal(url)


def test_a_schema_of_an_earlier_trinco_is_brought_up_to_date(postgres_server: PostgresServer, name: str) -> None:
    store = PostgresStore(postgres_server.url + "?fresh=1&schema=earlier")
    link = store.connect(HERE)
    token = ask(link, name, Request(claim(0), 30, token=NEXT)).token
    link.close()
    with postgres_server.connect() as connection:
        connection.execute("UPDATE earlier.store SET layout = 0")
        connection.execute("DROP FUNCTION earlier.release")
    link = store.connect(HERE)
    assert ask(link, name, Release(claim(0))).grade is Grade.DONE
    assert read(link, name).token == token
    link.close()


def test_a_token_is_not_given_out_again_by_a_server_that_lost_its_last_writes(
    postgres_server: PostgresServer, link: PostgresLink, name: str
) -> None:
    """As one does that was restored from a copy, or whose standby lagged behind: by whatever statement it grants."""
    with postgres_server.connect() as connection:
        ask(link, name, Request(claim(0), 30, token=NEXT))
        older = connection.execute("SELECT token FROM trinco.lease WHERE name = %s", [name]).fetchone()
        ask(link, name, Release(claim(0)))
        given = ask(link, name, Request(claim(0, 2), 30, token=NEXT)).token
        for ticket, forget in ((1, "quickly"), (2, "in line")):
            ask(link, name, Request(claim(ticket), 30, ticket, 9, NEXT, serial=1))
            assert older is not None
            connection.execute("UPDATE trinco.lease SET token = %s WHERE name = %s", [older[0], name])
            ask(link, name, Release(claim(ticket - 1, 3 - ticket)))
            after = read(link, name).token
            assert after > given, forget
            given = after


FIRST = ("ticket", "owner", "attempt", "until", "entry", "backend", "serial", "ttl", "token", "channel")
LAYOUT_2 = f"""
    UPDATE {{schema}}.lease
       SET waiters = ROW({", ".join(f"first_{word}" for word in FIRST)})::{{schema}}.waiter || waiters
     WHERE first_owner IS NOT NULL;
    ALTER TABLE {{schema}}.lease DROP COLUMN handed_channel, {", ".join(f"DROP COLUMN first_{word}" for word in FIRST)};
    ALTER TYPE {{schema}}.waiter DROP ATTRIBUTE channel;
    UPDATE {{schema}}.store SET layout = 2;
"""
LAYOUT_1 = (
    LAYOUT_2
    + """
    ALTER TYPE {schema}.waiter DROP ATTRIBUTE serial, DROP ATTRIBUTE ttl, DROP ATTRIBUTE token;
    ALTER TABLE {schema}.lease DROP COLUMN handed_serial, DROP COLUMN handed_wait;
    CREATE FUNCTION {schema}.with_waiter({schema}.lease, text, bigint, timestamptz, bigint, bytea)
        RETURNS {schema}.lease
        LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'this one is of layout 1'; END $$;
    UPDATE {schema}.store SET layout = 1;
"""
)


def test_the_line_of_an_earlier_layout_is_kept(postgres_server: PostgresServer, name: str) -> None:
    """Those in it are woken, since it is not known where they could be told what they are handed."""
    store = PostgresStore(postgres_server.url + "?fresh=1&schema=second")
    link = store.connect(HERE)
    for handle in range(4):
        ask(link, name, Request(claim(handle), 30, handle + 1, 9, serial=handle + 1))
    link.close()
    with postgres_server.connect() as connection:
        connection.execute(LAYOUT_2.format(schema="second"))
    link = store.connect(HERE)
    link.expect_hints(claim(1).owner)
    assert [each.claim for each in read(link, name).waiters] == [claim(1), claim(2), claim(3)]
    ask(link, name, Request(claim(1), 30, 2, 9))  # its process is another one than it was
    link.send(name, Apply(Release(claim(0))))
    _, said = replies(link, 1)
    assert said == [claim(1).owner]
    assert ask(link, name, Request(claim(1), 30, 2, 9)).grade is Grade.COMMITTED
    link.close()


def test_a_schema_in_which_nothing_was_handed_over_learns_it(postgres_server: PostgresServer, name: str) -> None:
    store = PostgresStore(postgres_server.url + "?fresh=1&schema=first")
    link = store.connect(HERE)
    ask(link, name, Request(claim(0), 30, 1, 9))
    ask(link, name, Request(claim(1), 30, 2, 9))
    link.close()
    with postgres_server.connect() as connection:
        connection.execute(LAYOUT_1.format(schema="first"))
    link = store.connect(HERE)
    for handle in (1, 2):
        link.expect_hints(claim(handle).owner)
    assert ask(link, name, Request(claim(1), 30, 2, 9)).grade is Grade.REFUSED
    assert ask(link, name, Request(claim(2), 30, 3, 9, serial=4)).grade is Grade.REFUSED
    assert ask(link, name, Yield(claim(0), 4, 9)).grade is Grade.DONE
    assert ask(link, name, Request(claim(1), 30, 2, 9)).grade is Grade.COMMITTED
    link.send(name, Apply(Release(claim(1))))
    _, said = replies(link, 1)
    assert [(each.claim, each.serial) for each in said if isinstance(each, Handed)] == [(claim(2), 4)]
    link.close()


@pytest.mark.parametrize("what", ["SCHEMA brief", "TABLE brief.lease"])
def test_tables_that_vanish_are_named_and_made_anew(postgres_server: PostgresServer, what: str) -> None:
    url = postgres_server.url + "?fresh=1&schema=brief"
    link = PostgresStore(url).connect(HERE)
    with trinco.connect(url) as locks:
        locks.lock("warm").hold(5).__enter__().release()
        with postgres_server.connect() as connection:
            connection.execute(f"DROP {what} CASCADE")
        with pytest.raises(StoreUnavailable, match="brief"):
            ask(link, "nightly", Request(claim(0), 30))
        assert locks.lock("nightly").hold(5).__enter__().valid
    link.close()


def test_psycopg_is_driven_by_its_c_implementation() -> None:
    assert psycopg.pq.__impl__ in ("c", "binary")
