"""One client, by hand: what it sends, when it enters and until when, and when it starts over."""

import pytest

from tests.protocols.bakery.desk import SERVERS, desk, get_reply, set_reply, suspicion, vote
from trinco.core.context import IDLE, INSIDE, WAITING
from trinco.core.instant import Instant
from trinco.protocols.bakery.messages import Exit, Get, Go, Listen, Removed, Set, Wait


def kinds(sent):
    return [type(message) for _, message in sent]


def client_with_a_ticket(**settings):
    client = desk(0, **settings)
    client.acquire()
    for server in (3, 4, 5):
        client.receives(server, get_reply(server, 0))
    return client


def listening(**settings):
    client = client_with_a_ticket(**settings)
    for server in (3, 4, 5):
        client.receives(server, set_reply(server, 0, free=False))
    return client


def go(server, heartbeat=1):
    return Go(1, vote(server, 0, heartbeat=heartbeat))


def test_two_accesses_to_enter_and_one_to_leave() -> None:
    client = desk(0)
    assert client.acquire() == [(server, client.sent[0][1]) for server in SERVERS]
    assert type(client.sent[0][1]) is Get
    client.receives(3, get_reply(3, 0))
    client.receives(4, get_reply(4, 0, number=4))
    sent = client.receives(5, get_reply(5, 0, number=2))
    assert kinds(sent) == [Set] * 4
    assert sent[0][1].number == 5
    for server in (3, 4, 6):
        client.receives(server, set_reply(server, 0, number=5))
    assert client.phase is INSIDE
    ((token, until),) = client.grants
    assert token == (5, 0)
    assert until == Instant(10.0 * (1 - 4e-4))
    sent = client.release()
    assert kinds(sent) == [Exit] * 4
    assert len(sent[0][1].certificate) == 2, "f+1 signatures certify the ticket"


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param((5, get_reply(4, 0)), id="another server's"),
        pytest.param((5, get_reply(5, 1)), id="another client's"),
        pytest.param((5, get_reply(5, 0, sid=2)), id="another turn's"),
        pytest.param((5, get_reply(5, 0, number=10**12, certificate=())), id="not certified"),
        pytest.param((1, get_reply(5, 0)), id="through a client"),
        pytest.param((4, get_reply(4, 0)), id="once more"),
    ],
)
def test_a_bad_answer_is_not_counted(reply) -> None:
    client = desk(0)
    client.acquire()
    client.receives(3, get_reply(3, 0))
    client.receives(4, get_reply(4, 0))
    assert client.receives(*reply) == []


def test_somebody_is_in_the_way_so_it_listens() -> None:
    client = client_with_a_ticket()
    assert client.receives(3, set_reply(3, 0)) == []
    assert client.receives(4, set_reply(4, 0, free=False)) == []
    sent = client.receives(5, set_reply(5, 0))
    assert kinds(sent) == [Listen] * 4
    client.receives(6, set_reply(6, 0))
    assert client.phase is INSIDE, "the fourth server made three votes"


def test_f_votes_of_liars_and_votes_for_something_else_do_not_let_in() -> None:
    client = listening()
    for message in (go(3), go(3, 0), Go(1, vote(4, 1)), Go(1, vote(4, 0, number=2)), Go(1, vote(4, 0, sid=2))):
        client.receives(message.vote.signer, message)
    client.receives(4, go(4))
    client.receives(5, Go(1, vote(6, 0, heartbeat=1)))
    assert client.phase is WAITING
    client.receives(6, go(6))
    assert client.phase is INSIDE


def test_the_lease_ends_with_the_oldest_of_the_q_freshest_votes() -> None:
    client = listening(drift=0.0)
    client.fires("heartbeat")
    client.fires("heartbeat")
    assert client.time == 5.0
    for server, heartbeat in ((3, 3), (4, 2), (5, 3)):
        client.receives(server, go(server, heartbeat))
    assert client.grants == [((1, 0), Instant(12.5))]
    client.receives(4, go(4, 3))
    assert client.grants[1:] == [((1, 0), Instant(15.0))], "renewed"


def test_votes_that_have_run_out_do_not_let_in() -> None:
    client = listening()
    client.time = 11.0
    for server in (3, 4, 5):
        client.receives(server, go(server))
    assert client.phase is WAITING
    client.fires("heartbeat")
    for server in (3, 4, 5):
        client.receives(server, go(server, 2))
    assert client.phase is INSIDE


def test_a_lease_that_has_run_out_is_not_renewed() -> None:
    client = listening()
    for server in (3, 4, 5):
        client.receives(server, go(server))
    client.fires("heartbeat")
    client.time = 11.0
    for server in (3, 4, 5):
        client.receives(server, go(server, 2))
    assert len(client.grants) == 1


def test_who_is_removed_while_waiting_starts_over_with_a_new_turn() -> None:
    client = listening()
    sent = client.receives(6, Removed(1, tuple(suspicion(server, 0) for server in (3, 4, 6))))
    assert kinds(sent) == [Exit] * 4 + [Get] * 4
    assert (client.phase, client.node.sid, client.stored) == (WAITING, 2, 2)


def test_who_is_removed_while_inside_has_lost_the_lease() -> None:
    client = client_with_a_ticket()
    for server in (3, 4, 5):
        client.receives(server, set_reply(server, 0))
    client.receives(6, Removed(1, tuple(suspicion(server, 0) for server in (3, 4, 6))))
    assert (client.phase, client.losses) == (IDLE, ["revoked"])


def test_f_removals_without_proof_have_no_effect_and_f_plus_1_do() -> None:
    client = listening()
    assert client.receives(6, Removed(1, ())) == client.receives(6, Removed(1, ())) == []
    assert kinds(client.receives(5, Removed(1, ()))) == [Exit] * 4 + [Get] * 4


def test_when_too_few_servers_can_still_vote_it_starts_over_and_is_more_patient() -> None:
    """F16: two votes, one server that has suspected it, and one that says nothing."""
    client = listening()
    for server in (3, 4):
        client.receives(server, go(server))
    client.receives(5, Wait(1, dead=True))
    sent = client.fires("silence")
    assert kinds(sent) == [Exit] * 4 + [Get] * 4
    assert client.node.silence == 8.0


def test_while_enough_servers_give_signs_of_life_it_waits() -> None:
    client = listening()
    assert client.fires("silence") == []
    client.fires("heartbeat")
    for server in (3, 4, 6):
        client.receives(server, Wait(1, dead=False))
    assert client.fires("silence") == []
    assert kinds(client.fires("silence")) == [Exit] * 4 + [Get] * 4
