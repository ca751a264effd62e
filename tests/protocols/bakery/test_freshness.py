"""F24: servers forget clients that are gone, and nothing that is that old is worth anything."""

import math

import pytest

from tests.protocols.bakery.desk import LOCK, desk, get, set_ticket
from trinco.core.errors import UsageError
from trinco.core.signed import Signed
from trinco.protocols.bakery.certificates import Highest
from trinco.protocols.bakery.freshness import MICROSECONDS
from trinco.protocols.bakery.messages import Exit, GetReply, Listen, Removed, Set, SetReply
from trinco.protocols.bakery.system import Bakery

H = 240.0


def reply(server, client, at, sid=1):
    return GetReply(sid, Signed(server, Highest(LOCK, client, sid, 0, int(at * MICROSECONDS))), ())


def justified_at(*times, client=0, sid=1):
    return Set(sid, 1, tuple(reply(server, client, at, sid) for server, at in zip((3, 4, 5), times, strict=True)))


def server_at(time, **settings):
    server = desk(3, expiry=H, **settings)
    server.time = time
    return server


def test_an_answer_to_get_says_when_it_was_given() -> None:
    ((_, answer),) = server_at(7.5).receives(0, get(0))
    assert answer.highest.body.issued == 7.5 * MICROSECONDS


def test_where_nothing_is_forgotten_no_clock_is_looked_at() -> None:
    server = desk(3, cap=math.inf)
    server.time = 7.5
    ((_, answer),) = server.receives(0, get(0))
    assert answer.highest.body.issued == 0
    assert server.node.seen == ()


@pytest.mark.parametrize(("times", "answer"), [((900, 890, 880), SetReply), ((900, 890, 879), Removed)])
def test_a_justification_is_good_for_half_of_h(times, answer) -> None:
    server = server_at(1000.0)
    server.receives(0, get(0))
    ((_, told),) = server.receives(0, justified_at(*times))
    assert type(told) is answer
    assert not server.node.banned, "it may be a clock that is wrong"


def test_what_is_from_the_future_is_no_better() -> None:
    server = server_at(1000.0)
    server.receives(0, get(0))
    ((_, told),) = server.receives(0, justified_at(1000, 1000, 1121))
    assert told == Removed(1, ())


def forgotten():
    """A server that has forgotten p0, which had a turn and was gone for H."""
    server = server_at(1000.0)
    for message in (get(0), justified_at(1000, 1000, 1000), Exit(1, ())):
        server.receives(0, message)
    assert server.node.last == ((0, 1),)
    server.time += H + 1
    server.receives(1, get(1))
    assert (server.node.last, server.node.seen) == (((1, 1),), ((1, int(server.time * MICROSECONDS)),))
    return server


def test_who_is_gone_for_h_is_forgotten_and_may_begin_its_turn_again_but_not_with_what_it_had() -> None:
    server = forgotten()
    server.receives(0, get(0))
    ((_, told),) = server.receives(0, justified_at(1000, 1000, 1000))
    assert told == Removed(1, ())
    assert [turn.number for turn in server.node.turns] == [0, 0]


def test_one_hour_less_one_second_is_not_gone() -> None:
    server = server_at(1000.0)
    server.receives(0, get(0))
    server.receives(0, Exit(1, ()))
    server.time += H - 1
    server.receives(1, get(1))
    assert dict(server.node.last) == {0: 1, 1: 1}


def test_whoever_has_a_turn_is_never_forgotten() -> None:
    server = server_at(1000.0)
    server.receives(0, get(0))
    server.receives(0, justified_at(1000, 1000, 1000))
    server.time += 10 * H
    server.receives(1, get(1))
    assert [turn.client for turn in server.node.turns] == [0, 1]


@pytest.mark.parametrize("late", [Listen(1, (), 9), justified_at(1000, 1000, 1000)], ids=["LISTEN", "SET"])
def test_a_sleeper_that_was_forgotten_is_told_that_its_turn_is_over_and_not_banned(late) -> None:
    server = forgotten()
    assert server.receives(0, late) == [(0, Removed(1, ()))]
    assert not server.node.banned


def test_a_ban_ends_too() -> None:
    server = server_at(1000.0)
    server.receives(0, get(0))
    server.receives(0, Set(1, 10**12, ()))
    assert server.node.banned
    server.time += H + 1
    server.receives(1, get(1))
    assert not server.node.banned


def test_a_server_whose_clock_is_wrong_is_left_out_of_the_justification() -> None:
    client = desk(0, expiry=H)
    client.acquire()
    assert client.receives(3, reply(3, 0, 10**9)) == []
    assert client.receives(4, reply(4, 0, 5.0)) == []
    assert client.receives(5, reply(5, 0, 0.0)) == [], "three, and one of them years away"
    sent = client.receives(6, reply(6, 0, 2.0))
    assert {tuple(each.highest.signer for each in message.justification) for _, message in sent} == {(4, 5, 6)}


def test_servers_must_not_forget_too_soon() -> None:
    with pytest.raises(UsageError, match="at least four times the cap, 240, not 100"):
        Bakery(expiry=100.0)


def test_the_default_is_an_hour() -> None:
    assert Bakery().timing.expiry == 3600.0


def test_turns_go_on_as_usual_where_servers_forget() -> None:
    server = server_at(0.0)
    server.receives(0, get(0))
    ((_, told),) = server.receives(0, set_ticket(0))
    assert told.vote is not None
