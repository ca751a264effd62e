"""Who falls silent is suspected by one server and removed by q of them; who is only slow is not hurt for good."""

from tests.protocols.bakery.desk import desk, get, set_ticket, suspect, suspicion
from trinco.protocols.bakery.messages import Exit, ExitReply, Get, GetReply, Go, Listen, Removal, Removed, Suspect, Wait

CHOOSE, HOLD, ACCUSED = "muteness/choose/0/1", "muteness/hold/0/1", "muteness/accused/0/1"


def kinds(sent):
    return [(to, type(message)) for to, message in sent]


def tell(server, *suspecters):
    return [each for peer in suspecters for each in server.receives(peer, suspect(peer, 0))]


def test_who_asks_and_sets_no_ticket_is_suspected_not_removed() -> None:
    """F4: one server's mistake must not let two in."""
    server = desk(3)
    server.receives(0, get(0))
    assert server.timers == {CHOOSE: 2.0}
    assert kinds(server.fires(CHOOSE)) == [(4, Suspect), (5, Suspect), (6, Suspect)]
    (turn,) = server.node.turns
    assert turn.dead


def test_who_holds_too_long_is_suspected_and_who_waits_is_not() -> None:
    server = desk(3)
    server.receives(0, get(0))
    server.receives(0, set_ticket(0))
    assert server.timers == {HOLD: 10.0}
    server.receives(1, get(1))
    server.receives(1, set_ticket(1, numbers=(1, 0, 0)))
    assert server.timers == {HOLD: 10.0}, "p1 can do nothing but wait"
    assert (4, Suspect) in kinds(server.fires(HOLD))


def test_a_heartbeat_renews_the_vote_but_not_for_ever() -> None:
    server = desk(3, extension=15.0)
    server.receives(0, get(0))
    server.receives(0, set_ticket(0))
    for heartbeat, time in enumerate((4.0, 8.0, 12.0), 1):
        server.time = time
        assert kinds(server.receives(0, Listen(1, (), heartbeat))) == [(0, Go)]
        assert server.timers == {HOLD: time + 10.0}
    server.time = 16.0
    assert kinds(server.receives(0, Listen(1, (), 4))) == [(0, Wait)]
    assert server.timers == {HOLD: 22.0}


def test_q_suspicions_remove_the_turn_everywhere_and_tell_the_client() -> None:
    server = desk(3)
    server.receives(0, get(0))
    server.receives(1, get(1))
    server.receives(1, set_ticket(1))
    server.receives(1, Listen(1, (), 1))
    server.fires(CHOOSE)
    assert tell(server, 4) == []
    sent = tell(server, 6)
    assert kinds(sent) == [(4, Removal), (5, Removal), (6, Removal), (0, Removed), (1, Go)]
    assert {signed.signer for signed in sent[0][1].certificate} == {3, 4, 6}
    assert [turn.client for turn in server.node.turns] == [1]


def test_a_removal_needs_its_certificate() -> None:
    server = desk(3)
    server.receives(0, get(0))
    two = (suspicion(4, 0), suspicion(5, 0))
    server.receives(4, Removal(0, 1, two))
    assert len(server.node.turns) == 1
    server.receives(4, Removal(0, 1, (*two, suspicion(6, 0))))
    assert server.node.turns == ()


def test_a_removed_turn_may_go_on_talking_and_the_next_is_given_more_time() -> None:
    """F5: a late SET of a removed turn is no crime."""
    server = desk(3)
    server.receives(0, get(0))
    server.fires(CHOOSE)
    tell(server, 4, 5)
    assert kinds(server.receives(0, set_ticket(0))) == [(0, Removed)]
    assert kinds(server.receives(0, Exit(1, ()))) == [(0, ExitReply)]
    assert not server.node.banned
    server.receives(0, get(0, sid=2))
    assert server.timers["muteness/choose/0/2"] - server.time == 4.0


def test_time_is_doubled_up_to_a_limit_only() -> None:
    """F15: or a Byzantine client could make itself as slow as it likes."""
    server = desk(3, cap=5.0)
    for _ in range(40):
        server.node.muteness.was_mistaken(0)
    assert server.node.muteness.patience(0) == 5.0
    assert server.node.muteness.patience(1) == 2.0


def test_a_turn_that_one_server_suspects_and_another_never_heard_of_is_suspected_after_a_while() -> None:
    """F23: a GET to one server only."""
    server = desk(3)
    assert tell(server, 4) == []
    assert server.timers == {ACCUSED: 2.0}
    assert kinds(server.fires(ACCUSED)) == [(4, Suspect), (5, Suspect), (6, Suspect)]


def test_a_turn_that_arrives_after_all_is_not_suspected() -> None:
    server = desk(3)
    tell(server, 4)
    server.receives(0, get(0))
    assert server.timers == {CHOOSE: 2.0}


def test_who_suspected_without_a_record_never_votes_for_that_turn() -> None:
    """F26: the late GET makes a record, and the promise still holds."""
    server = desk(3)
    tell(server, 4)
    server.fires(ACCUSED)
    assert kinds(server.receives(0, get(0))) == [(0, GetReply)]
    ((_, reply),) = server.receives(0, set_ticket(0))
    assert reply.vote is None
    ((_, reply),) = server.receives(0, Listen(1, (), 1))
    assert reply == Wait(1, dead=True)


def test_who_waits_is_co_suspected_when_its_heartbeats_end() -> None:
    """F27. It is given a heartbeat and the time to choose, from each sign of life."""
    server = desk(3)
    for client in (1, 0):
        server.receives(client, get(client))
    server.receives(0, set_ticket(0))
    tell(server, 4)
    assert server.timers[ACCUSED] == 2.5 + 2.0
    server.time = 4.0
    server.receives(0, Listen(1, (), 1))
    assert server.timers[ACCUSED] == 4.0 + 4.5
    assert (4, Suspect) in kinds(server.fires(ACCUSED))


def test_a_turn_that_is_over_here_is_co_signed_at_once_and_only_once() -> None:
    """F25: leapfrog. The answer is no question, or two servers would answer each other for ever."""
    server = desk(3)
    server.receives(0, get(0))
    server.receives(0, Exit(1, ()))
    ((to, answer),) = tell(server, 4)
    assert (to, answer) == (4, suspect(3, 0, asks=False))
    assert server.receives(4, suspect(4, 0, asks=False)) == []


def test_a_liar_cannot_have_a_turn_removed_that_was_never_begun() -> None:
    """A suspicion shows the client's signature: without it servers that know nothing of the turn would join in."""
    server = desk(3)
    invented = Suspect(suspicion(4, 0, sid=7), get(1, 7).turn, True)
    assert server.receives(4, invented) == []
    assert server.timers == {}
    assert isinstance(get(0), Get)
