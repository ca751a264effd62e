"""The Redis store against real servers."""

import os
import time
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stores.redis_caller import ADDRESS, ELSEWHERE, LIMIT_S, Caller, Servers, close_callers, mine, vendor
from tests.stores.servers import RedisServer
from trinco.core.errors import StoreUnavailable
from trinco.leases.accesses import Begin
from trinco.leases.claim import Claim
from trinco.leases.item import Item, Limits
from trinco.leases.operation import NEXT, Answer, Commit, Extend, Grade, Handed, Operation, Release, Request, Yield
from trinco.stores.redis import MOST_AWAITED, RedisLink, RedisStore
from trinco.stores.redis_words import ADVICE, MICRO
from trinco.stores.store import Failed
from trinco.testing.bench import Bench
from trinco.testing.conformance_of_waiting import what_is_let_go_of_is_handed_over_to_the_first_in_line

T_MAX = 60.0
_fresh_names = (f"lock {number} of {os.getpid()}" for number in count())


@pytest.fixture(autouse=True)
def _callers_are_closed() -> Iterator[None]:
    yield
    close_callers()


@pytest.fixture
def caller(redis_server: RedisServer) -> Caller:
    return Caller(redis_server.url)


@pytest.fixture
def name() -> str:
    return next(_fresh_names)


# The twin of Item.apply

OWNERS = [(1, "ana"), (2, "Zoe"), (3, "Éva")]
CLAIMS = st.builds(
    lambda who, attempt: mine(who[0], attempt, who[1]),
    st.sampled_from(OWNERS),
    st.integers(1, 2),
)
TICKETS = st.one_of(st.none(), st.integers(0, 2), st.just(2**52 - 1))
TTLS = st.sampled_from([0.0005, 20.0, 30.0, 59.9999995, 1000.0])
WAITS = st.sampled_from([0, 0.0005, 10.0, 25.0])
GUESSES = st.one_of(st.integers(-2, 2), st.sampled_from([3_000 * MICRO, 4_000 * MICRO, -(10**15)]))
"""Tokens: small ones are distances from the lock's own, large ones from the clock."""
TOKENS = st.one_of(st.none(), st.just(NEXT), GUESSES)
ENTRIES = st.one_of(st.none(), st.binary(max_size=30))
SERIALS = st.one_of(st.none(), st.integers(0, 3))
OPERATIONS = st.one_of(
    st.builds(Request, CLAIMS, TTLS, TICKETS, WAITS, TOKENS, ENTRIES),
    st.builds(Request, CLAIMS, st.just(30.0), TICKETS, st.just(25.0), TOKENS, ENTRIES, SERIALS),
    st.builds(Commit, CLAIMS, GUESSES, ENTRIES),
    st.builds(Commit, CLAIMS, st.integers(0, 1), ENTRIES),
    st.builds(Extend, CLAIMS, TTLS, st.integers(0, 3)),
    st.builds(Yield, CLAIMS, TICKETS, WAITS, ENTRIES),
    st.builds(Release, CLAIMS),
)


def with_real_token(operation: Operation, item: Item | None) -> Operation:
    token, clock = getattr(operation, "token", None), time.time_ns() // 1000
    if type(token) is not int:
        return operation
    return operation.but(token=token + (clock if item is None or abs(token) > 2 else item.token))


def in_microseconds(operation: Operation) -> Operation:
    times = {name: round(getattr(operation, name) * MICRO) for name in ("ttl", "wait") if hasattr(operation, name)}
    return operation.but(**times)


class Model:
    """``Item.apply`` at the very microsecond at which the server did it. ``said``: what it says unasked."""

    def __init__(self) -> None:
        self.item: Item | None = None
        self.said: list[Handed | str] = []

    def at(self, now: int) -> Item:
        return Item(now) if self.item is None else self.item

    def apply(self, operation: Operation, now: int) -> Answer:
        before = self.at(now)
        self.said += blocking(before.settled(now), operation)
        limits = Limits(round(T_MAX * MICRO), 1024, now + 3600 * MICRO, floor=now)
        after, answer, woken = before.apply(in_microseconds(operation), now, limits)
        handed = None
        if woken and after.holder is None:
            after, handed = after.hand_over(now, limits)
        if handed is not None:
            self.said.append(handed.but(beyond=handed.beyond / MICRO))
        else:
            self.said += [each.owner for each in woken]
        if after is not before:
            self.item = after
        return answer.but(remaining=answer.remaining / MICRO)

    def told(self) -> tuple[list[str], list[Handed]]:
        """The hints, and what was handed over."""
        hints = [each for each in self.said if isinstance(each, str)]
        return hints, [each for each in self.said if isinstance(each, Handed)]


def blocking(item: Item, operation: Operation) -> list[str]:
    """Who is rung at to find out whether it lives: the first in line, if it keeps somebody out of what nobody holds."""
    if not isinstance(operation, Request) or item.holder is not None or not item.waiters:
        return []
    first, me, ticket = item.waiters[0], operation.claim.owner, operation.ticket
    return [first.claim.owner] if first.claim.owner != me and (ticket is None or first.rank < (ticket, me)) else []


def in_seconds(item: Item, now: int) -> Item:
    """As it is read: without what only a hand-over needs."""
    read = item.settled(now).counted_from(now)._moved(lambda remaining: remaining / MICRO)
    return read.but(waiters=tuple(each.but(serial=None, ttl=0, token=None) for each in read.waiters))


@settings(max_examples=300)
@given(operations=st.lists(OPERATIONS, min_size=12, max_size=30))
def test_the_script_is_the_twin_of_apply(redis_server: RedisServer, operations: list[Operation]) -> None:
    caller, model, name = Caller(redis_server.url), Model(), next(_fresh_names)
    for number, client in OWNERS:  # all claims have this address, so nobody is taken for dead
        caller.link.expect_hints(mine(number, 1, client).owner)
    for each in operations:
        operation = with_real_token(each, model.item)
        said = caller.ask(name, operation)
        assert said == model.apply(operation, caller.link.store_time), operation
        read = caller.item(name)
        assert read == in_seconds(model.at(caller.link.store_time), caller.link.store_time)
        assert (caller.hints, caller.handed) == model.told()
    close_callers()


class Boastful(RedisStore):
    """Says that what it hands over lasts longer than it does."""

    __slots__ = ()

    def connect(self, address: str, timeout: float = 5.0) -> RedisLink:
        link = super().connect(address, timeout)
        honest = link.receive
        boast = type("BoastfulLink", (RedisLink,), {"__slots__": (), "receive": lambda _: [*map(_boasted, honest())]})
        link.__class__ = boast
        return link


def _boasted(said: object) -> object:
    return said.but(beyond=said.beyond + 9) if isinstance(said, Handed) else said


def test_a_store_that_boasts_of_what_it_hands_over_is_caught(redis_server: RedisServer) -> None:
    with Bench(Boastful(redis_server.url)) as bench, pytest.raises(AssertionError, match="how long what it hands over"):
        what_is_let_go_of_is_handed_over_to_the_first_in_line(bench)


def test_a_new_lock_starts_above_every_token_that_this_server_can_have_given(caller: Caller, name: str) -> None:
    before = caller.item(name).token
    assert abs(before - time.time_ns() // 1000) < 60 * MICRO
    assert caller.ask(name, Request(mine(), 30, token=NEXT)).token > before


def test_tokens_grow_and_stay_when_the_lock_is_free(caller: Caller, name: str) -> None:
    first = caller.ask(name, Request(mine(), 30, token=NEXT)).token
    assert caller.ask(name, Release(mine())).grade is Grade.DONE
    assert caller.item(name) == Item(token=first)
    assert caller.ask(name, Request(mine(2), 30, token=NEXT)).token > first


def test_a_lease_that_has_run_out_is_free_for_others_and_gone_for_its_owner(caller: Caller, name: str) -> None:
    granted = caller.ask(name, Request(mine(), 0.05))
    end = caller.link.store_time + round(granted.remaining * MICRO)
    while (refused := caller.ask(name, Request(mine(2), 30))).grade is Grade.REFUSED:
        assert refused.remaining > 0
        assert caller.link.store_time < end
    assert refused.grade is Grade.COMMITTED
    assert caller.link.store_time >= end
    assert caller.ask(name, Extend(mine(), 30, 1)).grade is Grade.GONE


def test_a_release_that_comes_too_late_is_told_so(caller: Caller, name: str) -> None:
    caller.ask(name, Request(mine(), 0.05))
    limit = time.monotonic() + LIMIT_S
    while caller.item(name).holder is not None:
        assert time.monotonic() < limit
    assert caller.ask(name, Release(mine())).grade is Grade.GONE


def test_a_guess_far_beyond_the_servers_clock_is_not_committed(caller: Caller, name: str) -> None:
    for attempt in (1, 2):
        claim, now = mine(attempt=attempt), time.time_ns() // 1000
        assert caller.ask(name, Request(claim, 30, token=now + 2 * 3600 * MICRO)).grade is Grade.TENTATIVE
        caller.ask(name, Release(claim))
        assert caller.ask(name, Request(claim, 30, token=now + 1800 * MICRO + attempt)).grade is Grade.COMMITTED
        caller.ask(name, Release(claim))


def test_no_lease_counts_for_longer_than_t_max(redis_server: RedisServer, name: str) -> None:
    caller = Caller(redis_server.url + "&t_max=2s")
    assert caller.ask(name, Request(mine(), 1000)).remaining == 2
    assert caller.ask(name, Extend(mine(), 1000, 1)).remaining <= 2


CROWD = """
local time = redis.call('TIME')
local ends = (time[1] + 50) * 1000000
for number = 1, 1024 do
  redis.call('ZADD', KEYS[1] .. ':line', 2 * number, 'w' .. number)
  redis.call('HSET', KEYS[1] .. ':waiters', 'w' .. number, cmsgpack.pack(1, ends, 2 * number, ARGV[1]))
end
redis.call('SET', KEYS[1], cmsgpack.pack(3, 5, nil, 'h', 1, ends, nil, nil, nil, 1024))
"""


def test_of_too_many_waiters_the_largest_ticket_is_forgotten(
    redis_server: RedisServer, caller: Caller, name: str
) -> None:
    with vendor(redis_server) as connection:
        connection.eval(CROWD, 1, f"trinco:{{{name}}}", b"x" * 4096)
    assert caller.ask(name, Request(mine(1), 30, ticket=5, wait=60)).grade is Grade.REFUSED
    assert caller.ask(name, Request(mine(2), 30, ticket=9999, wait=60)).grade is Grade.REFUSED
    tickets = [each.ticket for each in caller.item(name).waiters]
    assert tickets == [2, 4, 5, *range(6, 2048, 2)]
    assert caller.ask(name, Request(mine(1), 30, ticket=5, wait=60)).grade is Grade.REFUSED
    assert [each.ticket for each in caller.item(name).waiters] == tickets, "who is there already takes nobody's place"


@pytest.mark.parametrize(
    "operation",
    [
        Request(mine(1), 30),
        Request(mine(1), 30, ticket=5, wait=60, serial=1),
        Request(mine(1), 30, ticket=9999, wait=60, serial=1),
        Release(mine(1)),
        Release(Claim("h", 1)),
    ],
    ids=["a try", "a poll", "a poll at the end", "somebody leaves", "the holder leaves"],
)
def test_a_long_line_costs_no_more_than_a_short_one(redis_servers: Servers, name: str, operation: Operation) -> None:
    server = redis_servers()
    caller = Caller(server.url)
    with vendor(server) as connection:
        connection.eval(CROWD, 1, f"trinco:{{{name}}}", b"")
        connection.config_resetstat()
        caller.ask(name, operation)
        stats = connection.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 1
    assert sum(each["calls"] for each in stats.values()) < 40, stats


WITH_LIST = "redis.call('SET', KEYS[1], cmsgpack.pack(2, 5, nil, 'h', 1, %s, nil, nil, nil, {{owner = 'w'}}))"


@pytest.mark.parametrize(("ends", "grade"), [("1", Grade.COMMITTED), ("9e15", Grade.REFUSED)], ids=["free", "held"])
def test_a_lock_of_the_format_before_is_taken_over_without_its_line(
    redis_server: RedisServer, caller: Caller, name: str, ends: str, grade: Grade
) -> None:
    with vendor(redis_server) as connection:
        connection.eval(WITH_LIST % ends, 1, f"trinco:{{{name}}}")
    assert caller.ask(name, Request(mine(1), 30, ticket=1, wait=60)).grade is grade
    assert [each.claim.owner for each in caller.item(name).waiters] in ([], [mine(1).owner])


def test_a_line_outlives_its_item(redis_server: RedisServer, caller: Caller, name: str) -> None:
    """Somebody deleted the key: who waits is served in order all the same."""
    caller.link.expect_hints(mine(2).owner)
    caller.ask(name, Request(mine(1), 30))
    caller.ask(name, Request(mine(2), 30, ticket=1, wait=60))
    with vendor(redis_server) as connection:
        connection.delete(f"trinco:{{{name}}}")
    assert caller.ask(name, Request(mine(3), 30, ticket=2, wait=60)).grade is Grade.REFUSED
    assert caller.ask(name, Request(mine(2), 30, ticket=1, wait=60)).grade is Grade.COMMITTED


def test_nothing_of_a_line_is_left_when_it_is_empty(redis_server: RedisServer, caller: Caller, name: str) -> None:
    caller.ask(name, Request(mine(1), 30))
    caller.ask(name, Request(mine(2), 30, ticket=1, wait=60))
    caller.ask(name, Release(mine(2)))
    with vendor(redis_server) as connection:
        assert connection.keys(f"trinco:{{{name}}}*") == [f"trinco:{{{name}}}".encode()]


def test_an_entry_of_any_bytes_comes_back_as_it_was(caller: Caller, name: str) -> None:
    entry = bytes(range(256)) * 16
    caller.ask(name, Request(mine(), 30, ticket=1, token=NEXT, entry=entry))
    holder = caller.item(name).holder
    assert holder is not None
    assert holder.entry == entry
    assert caller.item(name).evidence == entry
    assert caller.ask(name, Request(mine(2), 30)).ticket == entry
    tentative = caller.ask(name, Request(mine(1, 2), 30, token=5, entry=b""))
    assert (tentative.grade, tentative.evidence) == (Grade.TENTATIVE, entry)


def test_the_largest_numbers_are_exact(caller: Caller, name: str) -> None:
    large = 2**53 - 1
    caller.ask(name, Request(mine(), 30, ticket=large))
    assert caller.ask(name, Commit(mine(), large)).token == large
    assert caller.item(name).token == large
    beyond = caller.ask(name, Request(mine(1, 2), 30, token=NEXT))
    assert isinstance(beyond, Failed)
    assert "take another name" in beyond.reason
    for operation in (Commit(mine(), 2**53), Request(mine(), 30, ticket=-1)):
        assert isinstance(caller.ask(name, operation), Failed)


def test_what_only_other_kinds_of_store_can_do_fails(caller: Caller, name: str) -> None:
    assert isinstance(caller.ask(name, Begin()), Failed)


def test_names_come_in_order_and_by_prefix(redis_servers: Servers) -> None:
    caller = Caller(redis_servers().url)
    for name in ("b*", "a", "b{x}", "bc", "é"):
        caller.ask(name, Request(mine(), 30))
    assert list(caller.link.names()) == ["a", "b*", "bc", "b{x}", "é"]
    assert list(caller.link.names("b*")) == ["b*"]


def test_who_waits_already_is_written_again_only_when_half_the_time_is_over(caller: Caller, name: str) -> None:
    caller.ask(name, Request(mine(1), 50))
    for wait, remembered in ((10, 10), (19, 10), (21, 21)):
        caller.ask(name, Request(mine(2), 30, ticket=1, wait=wait))
        assert round(caller.item(name).waiters[0].until) == remembered


def test_a_token_that_is_not_larger_is_not_committed(caller: Caller, name: str) -> None:
    token = caller.ask(name, Request(mine(1), 50, token=NEXT, entry=b"first")).token
    caller.ask(name, Release(mine(1)))
    assert caller.ask(name, Request(mine(2), 50, ticket=5, token=token)).grade is Grade.TENTATIVE
    assert caller.ask(name, Commit(mine(2), token)) == Answer(Grade.REFUSED, evidence=b"first")
    caller.ask(name, Request(mine(3), 50, ticket=1, wait=60))
    assert caller.ask(name, Commit(mine(2), token + 1)) == Answer(Grade.COMMITTED, token + 1, smaller=True)


# Hints


def test_a_release_wakes_the_first_in_line(redis_server: RedisServer, caller: Caller, name: str) -> None:
    waiter, owner = Caller(redis_server.url, ELSEWHERE), mine(7, address=ELSEWHERE)
    caller.ask(name, Request(mine(), 30))
    waiter.link.expect_hints(owner.owner)
    waiter.ask(name, Request(owner, 30, ticket=1, wait=60))
    caller.ask(name, Release(mine()))
    assert waiter.hint() == owner.owner
    assert waiter.ask(name, Request(owner, 30, ticket=1, wait=60)).grade is Grade.COMMITTED


def test_a_yield_wakes_the_first_in_line(caller: Caller, name: str) -> None:
    caller.link.expect_hints(mine(2).owner)
    caller.ask(name, Request(mine(1), 30, ticket=9))
    caller.ask(name, Request(mine(2), 30, ticket=1, wait=60))
    caller.ask(name, Yield(mine(1), 9, 60))
    assert caller.hint() == mine(2).owner


def test_hints_for_those_who_do_not_wait_any_more_are_kept_back(caller: Caller, name: str) -> None:
    for each in (mine(1), mine(2)):
        caller.link.expect_hints(each.owner)
    caller.link.ignore_hints(mine(1).owner)
    caller.ask(name, Request(mine(3), 30))
    caller.ask(name, Request(mine(1), 30, ticket=1, wait=60))
    caller.ask(name, Request(mine(2), 30, ticket=2, wait=60))
    caller.ask(name, Release(mine(3)))
    caller.ask(name, Release(mine(1)))
    assert caller.hint() == mine(2).owner
    assert caller.hints == []


def test_a_waiter_whose_process_is_gone_is_passed_over(redis_server: RedisServer, caller: Caller, name: str) -> None:
    dead, owner = Caller(redis_server.url, ELSEWHERE), mine(7, address=ELSEWHERE)
    dead.link.expect_hints(owner.owner)
    dead.ask(name, Request(mine(1), 30))
    dead.ask(name, Request(owner, 30, ticket=1, wait=60))
    caller.link.expect_hints(mine(2).owner)
    caller.ask(name, Request(mine(2), 30, ticket=2, wait=60))
    dead.link.close()
    wait_until_nobody_listens(redis_server, ELSEWHERE)
    caller.ask(name, Release(mine(1)))
    assert caller.hint() == mine(2).owner
    assert [each.claim for each in caller.item(name).waiters] == [mine(2)]


@pytest.mark.parametrize("ticket", [None, 2], ids=["without a ticket", "in line"])
def test_a_waiter_that_died_together_with_the_holder_keeps_nobody_out(
    redis_server: RedisServer, caller: Caller, name: str, ticket: int | None
) -> None:
    dead, owner = Caller(redis_server.url, ELSEWHERE), mine(7, address=ELSEWHERE)
    dead.link.expect_hints(owner.owner)
    dead.ask(name, Request(mine(1), 0.05))
    dead.ask(name, Request(owner, 30, ticket=1, wait=60))
    dead.link.close()
    wait_until_nobody_listens(redis_server, ELSEWHERE)
    time.sleep(0.06)
    caller.link.expect_hints(mine(2).owner)
    assert caller.ask(name, Request(mine(2), 30, ticket=ticket, wait=60 if ticket else 0)).grade is Grade.COMMITTED
    assert caller.item(name).waiters == ()


def test_a_waiter_that_lives_is_told_that_nobody_holds_and_keeps_its_place(caller: Caller, name: str) -> None:
    for each in (mine(2), mine(3)):
        caller.link.expect_hints(each.owner)
    caller.ask(name, Request(mine(1), 0.05))
    caller.ask(name, Request(mine(2), 30, ticket=1, wait=60))
    time.sleep(0.06)
    assert caller.ask(name, Request(mine(3), 30, ticket=2, wait=60)).grade is Grade.REFUSED
    assert caller.hint() == mine(2).owner
    assert [each.claim for each in caller.item(name).waiters] == [mine(2), mine(3)]


def wait_until_nobody_listens(server: RedisServer, address: str) -> None:
    limit = time.monotonic() + LIMIT_S
    with vendor(server) as connection:
        while connection.pubsub_numsub(f"trinco:wake:{address}")[0][1]:
            assert time.monotonic() < limit


def test_a_waiter_whose_name_has_no_address_is_not_taken_for_dead(caller: Caller, name: str) -> None:
    caller.ask(name, Request(mine(1), 30))
    caller.ask(name, Request(Claim("somebody", 1), 30, ticket=1, wait=60))
    caller.ask(name, Release(mine(1)))
    assert [each.claim.owner for each in caller.item(name).waiters] == ["somebody"]


def test_a_user_who_may_not_subscribe_still_gets_answers_in_order(redis_servers: Servers, name: str) -> None:
    server = redis_servers()
    with vendor(server) as connection:
        rules = ("ACL", "SETUSER", "ana", "on", ">pass", "~*", "resetchannels", "+@all")
        connection.execute_command(*rules)
    caller = Caller(server.url.replace("redis://", "redis://ana:pass@"))
    caller.link.expect_hints(mine().owner)
    assert caller.ask(name, Request(mine(), 30)).grade is Grade.COMMITTED
    caller.ask(name, Request(mine(2), 30, ticket=1, wait=60))
    assert caller.ask(name, Release(mine())).grade is Grade.DONE
    assert len(caller.item(name).waiters) == 1, "what could not be published proves nobody dead"


def test_the_rights_that_we_ask_for_are_enough(redis_servers: Servers, name: str) -> None:
    server = redis_servers()
    rights = [each for each in ADVICE["NOPERM"].split() if each[0] in "+~&"]
    with vendor(server) as connection:
        connection.execute_command("ACL", "SETUSER", "ana", "on", ">pass", "resetkeys", "resetchannels", *rights)
    caller = Caller(server.url.replace("redis://", "redis://ana:pass@"))
    caller.link.expect_hints(mine(2).owner)
    caller.ask(name, Request(mine(1), 30))
    caller.ask(name, Request(mine(2), 30, ticket=1, wait=60))
    caller.ask(name, Request(mine(3), 30, ticket=1, wait=60))
    assert caller.ask(name, Release(mine(3))).grade is Grade.DONE
    assert caller.ask(name, Release(mine(1))).grade is Grade.DONE
    assert caller.hint() == mine(2).owner
    assert list(caller.link.names()) == [name]


# The connection


def test_a_server_that_has_lost_the_script_is_given_it_again(redis_servers: Servers, name: str) -> None:
    server = redis_servers()
    caller = Caller(server.url)
    caller.ask(name, Request(mine(), 30))
    with vendor(server) as connection:
        connection.script_flush()
    for handle in (1, 2, 3):
        caller.send(f"{name} {handle}", Request(mine(handle), 30 + handle))
    assert [round(caller.reply().remaining) for _ in range(3)] == [31, 32, 33]


def test_a_server_that_pauses_answers_everything_in_order_afterwards(redis_servers: Servers, name: str) -> None:
    server = redis_servers()
    caller = Caller(server.url)
    server.pause()
    for number in range(30):
        caller.send(f"{name} {number}", Request(mine(), 10 + number, entry=b"x" * 4096))
    assert caller.link.receive() == []
    server.resume()
    assert [round(caller.reply().remaining) for _ in range(30)] == list(range(10, 40))


def test_a_server_that_hangs_is_given_up_after_many_accesses(redis_servers: Servers, name: str) -> None:
    server = redis_servers()
    caller = Caller(server.url)
    assert caller.ask(name, Request(mine(), 30)).grade is Grade.COMMITTED
    server.pause()
    for _ in range(MOST_AWAITED):
        caller.send(name, Extend(mine(), 30, 1))
    with pytest.raises(StoreUnavailable, match=f"{MOST_AWAITED} accesses are without an answer"):
        caller.send(name, Extend(mine(), 30, 1))
    server.resume()


def test_a_killed_server_is_noticed_and_named(redis_servers: Servers, name: str) -> None:
    server = redis_servers()
    caller = Caller(server.url)
    caller.ask(name, Request(mine(), 30))
    server.kill()
    with pytest.raises(StoreUnavailable, match=f"redis://127.0.0.1:{server.port}/0: the .*connection"):
        caller.reply()
    caller.link.close()
    caller.link.close()  # and again
    with pytest.raises(StoreUnavailable, match=r"cannot connect: .*is the server running"):
        RedisStore(server.url).connect(ADDRESS)


def test_a_unix_socket_will_do(redis_servers: Servers, name: str) -> None:
    path = f"/tmp/trinco-redis-{os.getpid()}.sock"
    redis_servers("--unixsocket", path)
    caller = Caller(f"unix://{path}?db=3&fresh=1")
    assert caller.ask(name, Request(mine(), 30)).grade is Grade.COMMITTED
