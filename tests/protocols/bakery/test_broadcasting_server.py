"""One server and one client of the bakery over reliable broadcast, by hand: what waits for what, what is remembered."""

import math
from itertools import count

import pytest

from tests.mutants import bakery_broadcasting as mutants
from tests.protocols.bakery.desk import CLIENTS, SERVERS, Desk, desk, get, get_reply, set_reply, set_ticket, suspect
from tests.protocols.bakery.test_broadcasting import size
from trinco.core.ids import bit
from trinco.protocols.bakery.automaton import State
from trinco.protocols.bakery.broadcasting import KEPT, BroadcastServer, Requests
from trinco.protocols.bakery.messages import Exit, ExitReply, Get, GetReply, Go, Listen, SetReply
from trinco.protocols.bakery.turns import turn_of
from trinco.protocols.broadcast.bracha import Echo, Initial, Ready


def ready(server, client, number, request):
    """Two servers are ready for a request, which is then delivered. What the server sends to clients."""
    sent = [each for other in SERVERS[1:3] for each in server.receives(other, Ready(client, number, request))]
    return [type(message) for to, message in sent if to in CLIENTS]


def server_that_heard_of(client, kind=BroadcastServer, requests=Requests, **settings):
    """The first server, which was sent a GET that is not delivered yet."""
    server = desk(SERVERS[0], broadcast="bracha", **settings)
    server.node = kind.in_place_of(server.node)
    server.node.requests = requests(0, 4, 1)
    assert server.receives(client, Initial(1, get(client))) == [
        (other, Echo(client, 1, get(client))) for other in SERVERS[1:]
    ]
    return server


@pytest.mark.parametrize("delivered", [0, 1], ids=["before GET", "before SET"])
def test_a_listen_that_comes_early_waits_for_its_set(delivered) -> None:
    server = server_that_heard_of(0)
    if delivered:
        assert ready(server, 0, 1, get(0)) == [GetReply]
    assert server.receives(0, Listen(1, (), 1)) == []
    if not delivered:
        assert ready(server, 0, 1, get(0)) == [GetReply]
    assert ready(server, 0, 2, set_ticket(0)) == [SetReply, Go]
    assert turn_of(server.node.turns, 0).heartbeat == 1
    assert (server.node.parked, server.node.banned) == ((), 0)


def test_a_listen_that_comes_after_its_exit_is_ignored() -> None:
    server = server_that_heard_of(0)
    ready(server, 0, 1, get(0))
    ready(server, 0, 2, set_ticket(0))
    assert ready(server, 0, 3, Exit(1, ())) == [ExitReply]
    assert server.receives(0, Listen(1, (), 1)) == []
    assert (server.node.parked, server.node.banned) == ((), 0)


def test_a_listen_that_comes_early_for_the_next_turn_is_not_held_against_the_one_that_goes_on() -> None:
    server = server_that_heard_of(0)
    ready(server, 0, 1, get(0))
    ready(server, 0, 2, set_ticket(0))
    assert server.receives(0, Listen(2, (), 1)) == []
    assert turn_of(server.node.turns, 0).state is State.C
    ready(server, 0, 3, Exit(1, ()))
    ready(server, 0, 4, get(0, 2))
    assert ready(server, 0, 5, set_ticket(0, 2)) == [SetReply, Go]


# The order of a client's requests


@pytest.mark.parametrize(("requests", "holds"), [(Requests, True), (mutants.WaitsForNothing, False)])
def test_a_set_is_held_back_until_its_get_is_delivered(requests, holds) -> None:
    server = server_that_heard_of(0, requests=requests, expiry=math.inf)
    early = ready(server, 0, 2, set_ticket(0))
    late = ready(server, 0, 1, get(0))
    assert (early == [] and late == [GetReply, SetReply]) is holds
    assert bool(server.node.banned) is not holds


@pytest.mark.parametrize(("kind", "holds"), [(BroadcastServer, True), (mutants.HoldsOn, False)])
def test_a_get_says_that_the_turn_before_is_over(kind, holds) -> None:
    """Its EXIT comes later, and is old news."""
    server = server_that_heard_of(0, kind)
    ready(server, 0, 1, get(0))
    ready(server, 0, 2, set_ticket(0))
    ready(server, 0, 4, get(0, 2))
    assert ready(server, 0, 3, Exit(1, ())) == []
    assert [turn.sid for turn in server.node.turns] == [2] * holds
    assert bool(server.node.banned) is not holds


def test_an_exit_says_that_its_turn_is_over_even_where_it_never_began() -> None:
    server = server_that_heard_of(0)
    assert ready(server, 0, 3, Exit(1, ())) == [ExitReply]
    assert ready(server, 0, 1, get(0)) == ready(server, 0, 2, set_ticket(0)) == []
    assert server.receives(0, Listen(1, (), 1)) == []
    assert (server.node.turns, server.node.parked, server.node.banned) == ((), (), 0)


def test_a_turn_that_is_over_before_it_began_is_no_longer_in_the_way_of_those_who_suspect_it() -> None:
    """F25: they wait for this server's word, too."""
    server = server_that_heard_of(0)
    server.receives(SERVERS[1], suspect(SERVERS[1], 0))
    server.receives(SERVERS[1], Ready(0, 2, Exit(1, ())))
    sent = server.receives(SERVERS[2], Ready(0, 2, Exit(1, ())))
    assert (SERVERS[1], suspect(SERVERS[0], 0, asks=False)) in sent
    assert server.node.muteness.suspicions == ()


def test_requests_that_are_not_broadcast_and_broadcasts_of_anything_else_do_nothing() -> None:
    server = desk(SERVERS[0], broadcast="bracha")
    for message in (get(0), set_ticket(0), Exit(1, ()), Initial(1, Listen(1, (), 1)), Echo(0, 1, get(0))):
        assert server.receives(0, message) == []
    assert server.receives(SERVERS[1], Initial(1, get(0))) == []
    assert server.receives(SERVERS[1], Ready(SERVERS[2], 1, get(SERVERS[2]))) == []
    assert server.node == desk(SERVERS[0], broadcast="bracha").node


# What servers remember


def test_a_broadcast_that_was_delivered_is_forgotten() -> None:
    server = server_that_heard_of(0)
    numbers = count(1)
    for turn in range(1, 50):
        for request in (get(0, turn), set_ticket(0, turn), Exit(turn, ())):
            ready(server, 0, next(numbers), request)
    assert server.node.requests.instances == ()
    assert server.node.requests.delivered == ((0, 147),)


@pytest.mark.parametrize(("requests", "bounded"), [(Requests, True), (mutants.KeepsAll, False)])
def test_whatever_numbers_a_client_and_a_server_name_three_votes_of_each_are_kept(requests, bounded) -> None:
    server = server_that_heard_of(0, requests=requests)
    for number in range(2, 80):
        server.receives(0, Initial(2 * number, set_ticket(0)))
        server.receives(SERVERS[1], Echo(0, 3 * number, get(0)))
        server.receives(SERVERS[1], Ready(0, 1000 - number, get(0)))
        server.receives(SERVERS[2], Ready(0, number, set_ticket(0)))
    assert (size(server.node) <= KEPT) is bounded
    assert ready(server, 0, 1001, get(0, 7)) == [GetReply]


def test_clients_that_nobody_has_heard_from_are_not_believed_in() -> None:
    server = desk(SERVERS[0], broadcast="bracha")
    for client in range(100, 200):
        server.receives(SERVERS[1], Echo(client, 1, Exit(1, ())))
        server.receives(SERVERS[1], Ready(client, 1, Get(1, get(0).turn)))
    assert server.node.requests.instances == ()
    server.receives(SERVERS[1], Ready(0, 1, get(0)))
    assert server.node.requests.knows(0), "its signature is shown"


def test_who_was_not_heard_from_for_long_is_forgotten_and_may_come_back() -> None:
    server = server_that_heard_of(0, expiry=240.0)
    for number, request in enumerate((get(0), set_ticket(0), Exit(1, ())), start=1):
        ready(server, 0, number, request)
    server.receives(2, Initial(2, set_ticket(2)))
    server.receives(2, Listen(5, (), 1))
    server.time = 300.0
    server.receives(1, Initial(1, get(1)))
    ready(server, 1, 1, get(1))
    assert server.node.requests.delivered == ((1, 1),)
    assert (server.node.requests.instances, server.node.parked) == ((), ())
    ready(server, 0, 4, get(0, 2))
    assert turn_of(server.node.turns, 0).sid == 2


def test_a_client_that_is_banned_leaves_nothing_behind() -> None:
    server = server_that_heard_of(0)
    server.receives(0, Initial(2, set_ticket(0)))
    ready(server, 0, 1, signed_by_another(get(0)))
    assert server.node.banned == bit(0)
    assert (server.node.requests.instances, server.node.requests.delivered) == ((), ())
    assert server.receives(0, Initial(3, get(0))) == []


def signed_by_another(request):
    """A turn that somebody else has signed."""
    return Get(request.sid, get(1).turn)


# A client


def test_a_number_is_stored_before_its_request_goes_out() -> None:
    client = desk(0, broadcast="bracha")
    sent = client.acquire()
    assert [message.number for _, message in sent] == [1] * 4
    assert client.stored == (1, 1)
    for server in SERVERS[:3]:
        client.receives(server, get_reply(server, 0))
    assert client.stored == (1, 2)
    for server in SERVERS[:3]:
        client.receives(server, set_reply(server, 0))
    assert [type(message.body) for _, message in client.release()] == [Exit] * 4
    assert client.stored == (1, 3)
    again = Desk(0, desk(0, broadcast="bracha").node)
    again.node.on_restart(again, client.stored)
    assert [(message.number, message.body.sid) for _, message in again.sent] == [(4, 1)] * 4
    assert [(message.number, message.body.sid) for _, message in again.acquire()] == [(5, 2)] * 4
