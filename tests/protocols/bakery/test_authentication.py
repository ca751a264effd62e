"""The bakery with signatures and with MACs, by symbols and by keys."""

import math

import msgspec
import pytest

from tests.protocols.bakery.bench import (
    TAMPERERS,
    TampersForOneReader,
    WithKeys,
    grants,
    simulated,
)
from tests.protocols.bakery.desk import (
    LOCK,
    SERVERS,
    Desk,
    begun,
    desk,
    get,
    get_reply,
    justification,
    set_reply,
    ticket_certificate,
)
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.authentication import Symbolic
from trinco.core.errors import UsageError
from trinco.core.ids import bit
from trinco.core.monitor import TokenRises
from trinco.core.signed import Signed
from trinco.protocols.bakery.automaton import Move
from trinco.protocols.bakery.certificates import Highest, Suspicion, Ticket, Vote
from trinco.protocols.bakery.messages import (
    BadJustification,
    Certified,
    Certify,
    Exit,
    Get,
    GetReply,
    Listen,
    Set,
    SetReply,
    Suspect,
)
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.system import Bakery
from trinco.protocols.bakery.vouching import SLACK

change = msgspec.structs.replace


# One node by hand


MACS = {"authentication": "macs"}


def vouched_reply(server, client, number=0, readers=(*SERVERS,), sid=1):
    said = Symbolic(server).vouch(Highest(LOCK, client, sid, number), (client, *readers))
    return GetReply(sid, said, ())


def vouched_set(client, numbers=(0, 0, 0), blind=None):
    """``blind``: for which server the last of the answers is worth nothing."""
    readers = [SERVERS, SERVERS, tuple(each for each in SERVERS if each != blind)]
    replies = [
        vouched_reply(server, client, number, to)
        for server, number, to in zip((4, 5, 6), numbers, readers, strict=True)
    ]
    return Set(1, 1 + max(numbers), tuple(replies))


def test_a_turn_has_one_signature_where_servers_vouch() -> None:
    server = desk(3, **MACS)
    ((_, reply),) = server.receives(0, get(0))
    assert reply.highest.readers == (0, *SERVERS)
    ((_, reply),) = server.receives(0, vouched_set(0))
    assert reply.ticket.readers == reply.vote.readers == (0,)


def test_a_client_enters_on_votes_that_are_vouched_for_to_it() -> None:
    client = desk(0, **MACS)
    client.acquire()
    for server in SERVERS[:3]:
        client.receives(server, vouched_reply(server, 0))
    for server in SERVERS[:3]:
        ticket, vote = (Symbolic(server).vouch(each, (0,)) for each in (Ticket(LOCK, 1), Vote(LOCK, 0, 1, 1, 0)))
        assert client.grants == []
        client.receives(server, SetReply(1, ticket, vote))
    assert [token for token, _ in client.grants] == [(1, 0)]
    assert client.release()[0][1] == Exit(1, ()), "what only it can verify certifies nothing"


def test_a_server_bans_nobody_for_what_another_has_vouched_for_to_others_only() -> None:
    server = desk(3, **MACS)
    server.receives(0, get(0))
    assert server.receives(0, vouched_set(0, blind=3)) == [(0, BadJustification(1))]
    assert not server.node.banned
    ((_, reply),) = server.receives(0, vouched_set(0))
    assert type(reply) is SetReply, "nothing has changed"


@pytest.mark.parametrize(
    "bad",
    [
        Set(1, 1, ()),
        change(vouched_set(0, blind=3), number=2),
        vouched_set(1),
        change(vouched_set(0), justification=(vouched_reply(4, 0),) * 3),
        Set(1, SLACK + 2, (*justification(0)[:2], get_reply(5, 0, number=SLACK + 1, certificate=()))),
    ],
    ids=["none", "another number", "another's", "one server", "a signed one that no certificate bears out"],
)
def test_it_does_for_what_is_wrong_in_form_or_signed(bad) -> None:
    server = desk(3, **MACS)
    server.receives(0, get(0))
    server.receives(0, bad)
    assert server.node.banned == bit(0)


def test_where_servers_sign_nothing_that_is_only_vouched_for_counts() -> None:
    server, client = desk(3), desk(0)
    server.receives(0, get(0))
    server.receives(0, vouched_set(0))
    assert server.node.banned == bit(0), "no correct client has believed such an answer"
    client.acquire()
    for each in SERVERS:
        assert client.receives(each, vouched_reply(each, 0)) == []


def test_turns_and_suspicions_are_signed_in_any_case() -> None:
    """A server must be able to show them to the others."""
    server = desk(3, **MACS)
    only_here = Symbolic(0).vouch(begun(0, 1).body, (3,))
    assert server.receives(0, Get(1, only_here)) == []
    other = Symbolic(4).vouch(Suspicion(LOCK, 1, 1), SERVERS)
    server.receives(4, Suspect(other, begun(1, 1), asks=True))
    assert server.node.muteness.suspicions == ()


def test_a_client_whose_justification_is_doubted_starts_over_with_signatures() -> None:
    client = desk(0, **MACS)
    client.acquire()
    for server in SERVERS[:3]:
        client.receives(server, vouched_reply(server, 0))
    sent = client.receives(6, BadJustification(1))
    assert [type(each) for _, each in sent] == [Exit] * 4 + [Get] * 4
    assert sent[-1][1].transferable
    for server in SERVERS:
        assert client.receives(server, vouched_reply(server, 0, sid=2)) == [], "no more of that"
    for server in SERVERS[:3]:
        sent = client.receives(server, get_reply(server, 0, sid=2))
    assert [type(each) for _, each in sent] == [Set] * 4
    assert client.receives(6, BadJustification(2)) == [], "that it cannot be"


@pytest.mark.parametrize("settings", [{}, MACS], ids=["signatures", "macs"])
def test_doubt_is_ignored_by_who_needs_no_signatures(settings) -> None:
    """Where servers sign there is nothing to doubt; who is inside has no use for another justification."""
    client = desk(0, **settings)
    client.acquire()
    for server in SERVERS[:3]:
        client.receives(server, get_reply(server, 0))
    if settings:
        for server in SERVERS[:3]:
            client.receives(server, set_reply(server, 0))
    assert client.receives(6, BadJustification(1)) == []


def test_a_server_signs_for_a_client_that_asks_for_it() -> None:
    server = desk(3, **MACS)
    ((_, reply),) = server.receives(0, Get(1, begun(0, 1), transferable=True))
    assert reply.highest.readers == ()
    ((_, reply),) = server.receives(0, Set(1, 1, justification(0)))
    assert reply.ticket.readers == reply.vote.readers == ()


# Tickets run ahead of certificates


def test_what_a_server_has_accepted_it_can_tell_though_nobody_else_could_verify_it() -> None:
    """A liar and a client: the justification convinces p3 alone. With a certificate for each ticket p3 could answer
    nobody any more."""
    server, client, other = desk(3, **MACS), desk(0, **MACS), desk(4, **MACS)
    server.receives(2, get(2))
    alone = Set(1, 1, tuple(vouched_reply(each, 2, readers=(3,)) for each in (4, 5, 6)))
    assert [type(each) for _, each in server.receives(2, alone)] == [SetReply]
    ((_, answer),) = server.receives(0, get(0))
    assert answer.highest.body.number == 1
    client.acquire()
    for source, reply in ((3, answer), (4, vouched_reply(4, 0)), (5, vouched_reply(5, 0))):
        sent = client.receives(source, reply)
    other.receives(0, get(0))
    ((_, reply),) = other.receives(0, sent[0][1])
    assert (type(reply), reply.ticket.body.number) == (SetReply, 2)


def test_a_server_is_believed_only_so_far_above_what_is_certified() -> None:
    """F11: or tickets could be made huge at once."""
    client = desk(0, **MACS)
    client.acquire()
    for server in SERVERS:
        client.receives(server, vouched_reply(server, 0, number=SLACK + 1))
    assert client.node.replies == ()
    client.receives(3, vouched_reply(3, 0, number=SLACK))
    assert len(client.node.replies) == 1


def test_a_ticket_that_could_not_be_told_needs_signatures_and_is_certified_by_them() -> None:
    server = desk(3, **MACS)
    server.receives(0, get(0))
    assert server.receives(0, vouched_set(0, numbers=(SLACK, 0, 0))) == [(0, BadJustification(1))]
    server.receives(0, Exit(1, ()))
    server.receives(0, Get(2, begun(0, 2), transferable=True))
    replies = tuple(
        GetReply(2, Signed(each, Highest(LOCK, 0, 2, number)), ()) for each, number in ((4, SLACK), (5, 0), (6, 0))
    )
    sent = server.receives(0, Set(2, SLACK + 1, replies))
    assert SetReply in [type(each) for _, each in sent]
    assert [type(each) for to, each in sent if to != 0] == [Certify] * 3, "it was time"
    assert server.receives(1, get(1)) == [], "nobody would believe it yet"
    ((to, reply),) = server.receives(5, Certified(Signed(5, Ticket(LOCK, SLACK + 1))))
    assert (to, reply.highest.body.number, len(reply.certificate)) == (1, SLACK + 1, 2)


def test_a_server_that_is_behind_learns_from_a_justification_what_is_certified() -> None:
    server = desk(3, **MACS)
    server.receives(0, get(0))
    replies = tuple(
        change(vouched_reply(each, 0, number=5 * SLACK + 400), certificate=ticket_certificate(5 * SLACK))
        for each in (4, 5, 6)
    )
    ((_, reply),) = server.receives(0, Set(1, 5 * SLACK + 401, replies))
    assert type(reply) is SetReply
    ((_, answer),) = server.receives(1, get(1))
    assert answer.highest.body.number == 5 * SLACK + 401
    assert answer.certificate == ticket_certificate(5 * SLACK)


def test_servers_sign_what_they_have_accepted_on_whose_word_ever() -> None:
    server = desk(3, **MACS)
    server.receives(0, get(0))
    server.receives(0, vouched_set(0, numbers=(6, 0, 0)))
    for number, signs in ((7, True), (5, True), (8, False)):
        sent = server.receives(4, Certify(number, (), Signed(4, Ticket(LOCK, number))))
        assert sent == ([(4, Certified(Signed(3, Ticket(LOCK, number))))] if signs else [])
    assert server.node.tickets.signatures == (), "nothing was asked for"


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(UsageError, match="signatures or macs, not 'trust'"):
        Bakery(authentication="trust")


# The whole


class VouchesToSome(Server):
    """Its answers to GET convince one server less each time, and the next time another one."""

    __slots__ = ()

    def _state(self, ctx, turn, body, *readers):
        if not readers:
            return Server._state(self, ctx, turn, body)
        return ctx.vouch(body, (turn.client, *(each for each in readers if each != readers[turn.sid % 3])))


class Doubts(Server):
    """Cannot verify anything, it says."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Set | Listen):
            ctx.send(source, BadJustification(message.sid))
        else:
            Server.on_message(self, ctx, source, message)


@pytest.mark.parametrize("liar", [None, VouchesToSome, Doubts], ids=["no-liar", "vouches-to-some", "doubts"])
def test_with_macs_all_are_served_and_nobody_correct_is_banned(liar) -> None:
    for seed in range(25):
        simulated(Bakery(**MACS), seed, liar)


class BansInDoubt(Server):
    __slots__ = ()

    def _move_of_set(self, ctx, turn, message):
        move = Server._move_of_set(self, ctx, turn, message)
        return Move.FAULT if move is Move.DOUBT else move


def test_a_server_that_bans_for_what_it_cannot_verify_bans_correct_clients() -> None:
    server = BansInDoubt.in_place_of(desk(3, **MACS).node)
    ctx = Desk(3, server)
    ctx.receives(0, get(0))
    ctx.receives(0, vouched_set(0, blind=3))
    assert server.banned == bit(0), "which p0 could not know"


@pytest.mark.parametrize(
    ("servers", "clients", "rounds", "states"), [(1, 2, 2, 1_623), (1, 3, 1, 4_303), (2, 2, 1, 5_446)]
)
def test_with_macs_it_is_safe_and_nobody_starves_in_exactly_so_many_states(servers, clients, rounds, states) -> None:
    """f=0, timers that never fire; certificates are never due."""
    never = dict.fromkeys(("hold", "extension", "silence", "choosing", "cap"), math.inf)
    system = Bakery(f=0, servers=servers, drift=0.0, **MACS, **never)
    nodes = system(servers + clients)
    result = check(Model(nodes=nodes, inputs={"acquire": rounds}, reductions=False, monitors=[TokenRises()]))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


@pytest.mark.parametrize("authentication", ["signatures", "macs"])
def test_with_keys_and_bytes_the_same_happens_as_with_symbols(authentication) -> None:
    system = Bakery(authentication=authentication)
    for seed in range(3):
        assert grants(simulated(WithKeys(system), seed)) == grants(simulated(system, seed))


@pytest.mark.parametrize("liar", TAMPERERS)
@pytest.mark.parametrize("authentication", ["signatures", "macs"])
def test_who_tampers_with_bits_changes_nothing(authentication, liar) -> None:
    for seed in range(2):
        simulated(WithKeys(Bakery(authentication=authentication), liar), seed)


def test_one_vector_that_one_reader_cannot_verify_makes_clients_ask_for_signatures() -> None:
    simulation = simulated(WithKeys(Bakery(**MACS), TampersForOneReader))
    assert any(host.node.inner.wants_signatures for host in simulation.hosts[:3])
