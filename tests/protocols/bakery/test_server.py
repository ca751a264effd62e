"""One server, by hand: what it answers, whom it lets in, and whom it takes for a liar."""

import pytest

from tests.protocols.bakery.desk import (
    begun,
    desk,
    get,
    get_reply,
    justification,
    set_ticket,
    ticket_certificate,
)
from trinco.core.ids import bit
from trinco.core.signed import Signed
from trinco.protocols.bakery.certificates import Ticket
from trinco.protocols.bakery.messages import (
    Certified,
    Certify,
    Exit,
    ExitReply,
    Get,
    GetReply,
    Go,
    Listen,
    Set,
    SetReply,
)

LOCK = "lock/0"


def server_with(*joined):
    server = desk(3)
    for client in joined:
        server.receives(client, get(client))
    return server


def test_an_uncontended_turn_takes_two_accesses_and_tells_no_other_server() -> None:
    server = desk(3)
    ((to, reply),) = server.receives(0, get(0))
    assert (to, type(reply), reply.highest.body.number) == (0, GetReply, 0)
    ((to, reply),) = server.receives(0, set_ticket(0))
    assert (to, type(reply)) == (0, SetReply)
    assert reply.vote is not None
    assert [type(each) for _, each in server.receives(0, Exit(1, ()))] == [ExitReply]
    assert server.node.turns == ()


def test_whoever_chooses_is_waited_for() -> None:
    server = server_with(0, 1)
    ((_, reply),) = server.receives(1, set_ticket(1))
    assert reply.vote is None
    server.receives(1, Listen(1, ticket_certificate(1), 1))
    sent = server.receives(0, set_ticket(0, numbers=(0, 1, 0)))
    assert [(to, type(each)) for to, each in sent] == [(0, SetReply), (1, Go)], "p0 took a later ticket"


def test_of_equal_tickets_the_smaller_name_is_first() -> None:
    server = server_with(0, 1)
    server.receives(1, set_ticket(1))
    server.receives(1, Listen(1, (), 1))
    ((to, reply),) = server.receives(0, set_ticket(0))
    assert to == 0
    assert reply.vote is not None
    assert [(to, type(each)) for to, each in server.receives(0, Exit(1, ()))] == [(0, ExitReply), (1, Go)]


def test_whom_one_waits_for_is_fixed_when_the_ticket_is_set() -> None:
    """F7: those who come and go later hold up nobody."""
    server = server_with(0)
    server.receives(0, set_ticket(0))
    server.receives(1, get(1))
    server.receives(1, set_ticket(1, numbers=(1, 0, 0)))
    server.receives(1, Listen(1, (), 1))
    server.receives(2, get(2))
    assert (1, Go) in [(to, type(each)) for to, each in server.receives(0, Exit(1, ()))]


def test_the_highest_ticket_outlives_its_client() -> None:
    """F9: tickets do not restart when everybody has left."""
    server = server_with(0)
    server.receives(0, set_ticket(0))
    server.receives(0, Exit(1, ticket_certificate(1)))
    ((_, reply),) = server.receives(0, get(0, sid=2))
    assert reply.highest.body.number == 1


def test_a_ticket_nobody_has_certified_is_not_told_but_certified_first() -> None:
    server = server_with(0)
    server.receives(0, set_ticket(0))
    sent = server.receives(1, get(1))
    assert [(to, type(each)) for to, each in sent] == [(4, Certify), (5, Certify), (6, Certify)]
    ((to, reply),) = server.receives(5, Certified(Signed(5, Ticket(LOCK, 1))))
    assert (to, reply.highest.body.number) == (1, 1)
    assert {signed.signer for signed in reply.certificate} == {3, 5}


def test_a_server_signs_only_what_is_justified() -> None:
    server = desk(3)
    forged = Certify(10**12, justification(0), Signed(4, Ticket(LOCK, 10**12)))
    assert server.receives(4, forged) == []
    ((to, reply),) = server.receives(4, Certify(1, justification(0), Signed(4, Ticket(LOCK, 1))))
    assert (to, type(reply)) == (4, Certified)
    assert server.node.tickets.certified == 1, "two have signed, and that is enough"


FAULTS = {
    "SET without GET": [get(0), Exit(1, ()), set_ticket(0, sid=2)],
    "SET without justification": [get(0), Set(1, 1, ())],
    "SET with a short one": [get(0), Set(1, 1, justification(0)[:2])],
    "SET with a server twice": [get(0), Set(1, 1, (*justification(0)[:2], get_reply(4, 0)))],
    "SET of another turn": [get(0), Set(1, 1, justification(0, sid=2))],
    "SET with a low ticket": [get(0), Set(1, 1, justification(0, numbers=(4, 4, 4)))],
    "SET with a huge ticket": [get(0), Set(1, 10**15, justification(0))],
    "another ticket": [get(0), set_ticket(0), set_ticket(0, numbers=(5, 0, 0))],
    "a second turn at once": [get(0), get(0, sid=2)],
    "GET of an old turn": [get(0, sid=2), Exit(2, ()), get(0, sid=1)],
    "GET in another's name": [Get(1, begun(1, 1))],
    "LISTEN of a turn to come": [get(0), Exit(1, ()), Listen(2, (), 1)],
    "a justification once more": [get(0), set_ticket(0), Exit(1, ()), get(0, sid=2), Set(2, 1, justification(0))],
}


@pytest.mark.parametrize("messages", FAULTS.values(), ids=FAULTS)
def test_who_does_what_no_correct_client_does_is_banned_and_out_of_the_way(messages) -> None:
    server = desk(3)
    for message in messages:
        assert not server.node.banned
        server.receives(0, message)
    assert server.node.banned == bit(0)
    assert server.node.turns == ()
    assert server.receives(0, get(0, sid=9)) == [], "ignored for ever"
    server.receives(1, get(1))
    assert [turn.client for turn in server.node.turns] == [1], "others are not affected"


def test_listen_before_set_or_after_exit_bans_nobody() -> None:
    server = server_with(0)
    server.receives(0, Listen(1, (), 1))
    server.receives(0, set_ticket(0))
    server.receives(0, Exit(1, ()))
    assert server.receives(0, Listen(1, (), 2)) == []
    assert not server.node.banned


def test_who_comes_back_from_a_crash_may_leave_a_turn_that_never_arrived() -> None:
    server = desk(3)
    assert server.receives(0, Exit(4, ())) == [(0, ExitReply(4))]
    server.receives(0, get(0, sid=5))
    assert [turn.sid for turn in server.node.turns] == [5]
    assert not server.node.banned


@pytest.mark.parametrize("before", [[get(0)], [get(0), set_ticket(0)]], ids=["GET", "SET"])
def test_the_same_once_more_is_answered_once_more(before) -> None:
    server = desk(3)
    answers = [server.receives(0, message) for message in before]
    assert server.receives(0, before[-1]) == answers[-1]
    assert not server.node.banned


def test_other_servers_cannot_act_as_clients() -> None:
    server = desk(3)
    assert server.receives(4, get(4)) == []
    assert server.node.turns == ()
