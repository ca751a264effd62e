"""Anything from anybody at every handler: never an exception, never a grant that q votes do not support, and no more
kept than there are clients and servers.

The liars are client 2 and server 6. They send every class of message with every kind of rubbish in it, under their own
signatures whatever they like, and what others have signed as they have seen it. They cannot forge, so what they achieve
must not depend on whom they claim to be.
"""

import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    set_ticket,
    suspicion,
    ticket_certificate,
    vote,
)
from trinco.core import snapshot
from trinco.core.context import INSIDE, WAITING
from trinco.core.ids import bit
from trinco.core.message import Message
from trinco.core.signed import Signed, signatures_in
from trinco.protocols.bakery import active_set, messages, register
from trinco.protocols.bakery.active_set import Collect, CollectReplica, ListenedReplica, Listener
from trinco.protocols.bakery.algorithm2 import Algorithm2System
from trinco.protocols.bakery.certificates import Begun, Highest, Suspicion, Ticket, Vote
from trinco.protocols.bakery.messages import Exit, Listen, Set
from trinco.protocols.bakery.register import Record, Register, RegisterClient, RegisterReplica
from trinco.protocols.broadcast.bracha import Bracha, Echo, Initial, Ready

LYING_CLIENT, LYING_SERVER = 2, 6
LIARS = (LYING_CLIENT, LYING_SERVER)

BAKERY = [
    kind
    for kind in vars(messages).values()
    if isinstance(kind, type) and issubclass(kind, Message) and kind not in (Message, messages.Proof)
]
BROADCAST = [Initial, Echo, Ready]
OBJECTS = [
    kind
    for module in (register, active_set)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
]

SEEN = [
    *(begun(client, sid) for client in (0, 1) for sid in (1, 2)),
    *(get_reply(server, client, sid).highest for server in (3, 4, 5) for client in (0, 1, 2) for sid in (1, 2)),
    *ticket_certificate(1, (3, 4, 5)),
    *ticket_certificate(2, (4,)),
    vote(3, 0),
    vote(4, 1),
    suspicion(4, 1),
    Signed(0, Record(Register(0, "number"), 1, 1)),
]
"""What the correct ones have signed. Only p3 has voted for p0: with p6 that makes two, and it takes three."""

numbers = st.sampled_from([0, 1, 2, 3, -1, 2**62, 2**70, True])
names = st.sampled_from([*range(8), -1, 2**40])
rubbish = st.one_of(
    st.none(),
    numbers,
    st.just(1.5),
    st.just("text"),
    st.just(b"bytes"),
    st.just(()),
    st.just(((((),),),)),
    st.just([1]),
    st.just({"type": "get"}),
    st.builds(object),
    st.just(Signed),
    st.just(get(0)),
)
bodies = st.one_of(
    st.builds(Begun, st.just(LOCK), names, numbers),
    st.builds(Highest, st.just(LOCK), names, numbers, numbers, numbers),
    st.builds(Ticket, st.sampled_from([LOCK, "other", None]), numbers),
    st.builds(Vote, st.just(LOCK), names, numbers, numbers, numbers),
    st.builds(Suspicion, st.just(LOCK), names, numbers),
    st.builds(Record, st.builds(Register, names, st.sampled_from(["number", "x"])), numbers, numbers),
    rubbish,
)
readers = st.sampled_from([(), (), (0, *SERVERS), (3,), (0,), None])
signatures = st.one_of(
    st.sampled_from(SEEN),
    st.builds(Signed, st.sampled_from(LIARS), bodies, readers),
    st.builds(Signed, st.sampled_from(LIARS), bodies, readers, st.sampled_from([(b"x",), ("x",), None])),
)


def field(annotation):
    """Something that may stand there, or something that may not."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is messages.Natural or annotation is int:
        return st.one_of(numbers, numbers, rubbish)
    if origin is Signed or annotation is Signed or Signed in map(typing.get_origin, inner):
        return st.one_of(signatures, signatures, st.none(), rubbish)
    if origin is tuple:
        return st.one_of(
            st.lists(field(inner[0]), max_size=5).map(tuple),
            field(inner[0]).map(lambda each: (each,) * 50),
            rubbish,
        )
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return st.one_of(made(annotation), rubbish)
    if isinstance(annotation, typing.TypeVar):
        return st.one_of(st.sampled_from(BAKERY).flatmap(made), rubbish)
    return st.one_of(st.booleans(), rubbish)


def made(kind):
    return st.builds(kind, *(field(each.type) for each in msgspec.structs.fields(kind)))


GENUINE = [
    set_ticket(0),
    set_ticket(2),
    Set(1, 2, justification(2)),
    Listen(1, ticket_certificate(1), 2),
    Exit(1, ticket_certificate(1)),
    get(2),
    get(2, sid=2),
    set_reply(3, 0),
    get_reply(6, 0),
    messages.Certified(Signed(LYING_SERVER, Ticket(LOCK, 1))),
    messages.Suspect(Signed(LYING_SERVER, Suspicion(LOCK, 1, 1)), begun(1, 1), True),
    messages.Removed(1, (suspicion(4, 1),)),
    messages.BadJustification(1),
]
"""Sound messages: in the wrong place, by the wrong sender, or once more."""

RUBBISH = st.one_of(st.sampled_from([*BAKERY, *BROADCAST]).flatmap(made), st.sampled_from(GENUINE), rubbish)
MAIL = st.lists(st.tuples(st.sampled_from(LIARS), RUBBISH), min_size=1, max_size=12)
OBJECT_MAIL = st.lists(
    st.tuples(st.integers(0, 6), st.one_of(st.sampled_from(OBJECTS).flatmap(made), rubbish)), min_size=1, max_size=12
)

WAYS = [
    pytest.param({}, id="signatures"),
    pytest.param({"authentication": "macs"}, id="macs"),
    pytest.param({"broadcast": "bracha"}, id="bracha"),
]


def deliver(target, mail):
    for source, message in mail:
        target.receives(source, message)


def size(node):
    return len(repr(snapshot.take(node)))


def busy_server(**ways):
    """p0 is granted the section here, p1 waits for it."""
    server = desk(3, **ways)
    for client, numbers in ((0, (0, 0, 0)), (1, (1, 0, 0))):
        for number, request in enumerate((get(client), set_ticket(client, numbers=numbers)), 1):
            if ways.get("broadcast"):
                for source in (4, 5):
                    server.receives(source, Ready(client, number, request))
                server.receives(client, Initial(number, request))
            else:
                server.receives(client, request)
    return server


@pytest.mark.parametrize("ways", WAYS)
@settings(max_examples=100)
@given(mail=MAIL)
def test_a_server_survives_anything_and_correct_clients_with_it(ways, mail) -> None:
    server = busy_server(**ways)
    before = {turn.client: turn for turn in server.node.turns}
    assert set(before) == {0, 1}
    deliver(server, mail)
    assert server.node.banned & ~bit(LYING_CLIENT) == 0
    after = {turn.client: turn for turn in server.node.turns}
    for client in (0, 1):
        assert (after[client].sid, after[client].number) == (1, client + 1)
    assert after[1].state is before[1].state, "it is p0's turn"
    assert dict(server.node.removed).keys() <= {LYING_CLIENT}
    assert set(after) <= {0, 1, LYING_CLIENT}
    assert size(server.node) < 20_000
    answers = server.receives(1, Listen(1, (), 2))
    assert [type(each) for _, each in answers] == [messages.Wait]


def client_waiting(**ways):
    """p0 has its ticket, and the vote of p3."""
    client = desk(0, **ways)
    client.acquire()
    for server in (3, 4, 5):
        client.receives(server, get_reply(server, 0))
    client.receives(3, set_reply(3, 0))
    return client


@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("ways", WAYS[:2])
def test_an_answer_whose_certificate_claims_more_than_it_certifies_is_none(ways, number) -> None:
    """f+1 have signed 3, and before that stands a liar's signature under something huge."""
    client = desk(0, **ways)
    client.acquire()
    claims = (Signed(LYING_SERVER, Ticket(LOCK, 10**9)), *ticket_certificate(3))
    client.receives(LYING_SERVER, get_reply(LYING_SERVER, 0, number=number, certificate=claims))
    assert client.node.replies == ()
    for server in (3, 4):
        assert client.receives(server, get_reply(server, 0, number=7)) == []
    ((_, request), *_) = client.receives(5, get_reply(5, 0, number=7))
    assert request.number == 8


@pytest.mark.parametrize("begins", [desk, client_waiting], ids=["idle", "waiting"])
@pytest.mark.parametrize("ways", WAYS)
@settings(max_examples=60)
@given(mail=MAIL)
def test_a_client_survives_anything_and_nothing_lets_it_in(begins, ways, mail) -> None:
    client = desk(0, **ways) if begins is desk else client_waiting(**ways)
    phase = client.phase
    deliver(client, mail)
    assert (client.grants, client.phase) == ([], phase)
    assert size(client.node) < 10_000
    voters = {signed.signer for signed in signatures_in(client.node.votes)}
    assert voters <= {3, LYING_SERVER}


@pytest.mark.parametrize("ways", WAYS)
@settings(max_examples=60)
@given(mail=MAIL)
def test_a_client_inside_stays_inside_whatever_one_liar_says(ways, mail) -> None:
    client = client_waiting(**ways)
    for server in (4, 5):
        client.receives(server, set_reply(server, 0))
    assert client.phase is INSIDE
    deliver(client, mail)
    assert client.phase is INSIDE
    assert client.losses == []
    assert len(client.grants) == 1


@settings(max_examples=60)
@given(mail=st.lists(st.tuples(st.integers(0, 6), RUBBISH), max_size=12))
def test_whoever_it_is_said_to_come_from(mail) -> None:
    """Messages of clients from servers and of servers from clients, all from everybody: no exception, that is all."""
    server, client = busy_server(), client_waiting()
    deliver(server, mail)
    deliver(client, mail)


# The objects underneath


class Ground(Desk):
    """For parts: what they return is not looked at."""

    def receives(self, source, message):
        return self.node.on_message(self, source, message)


def reading():
    part = RegisterClient(4, 3)
    part.read(Ground(0, part), Register(5, "number"))
    return part


def writing():
    part = RegisterClient(4, 3)
    part.write(Ground(0, part), "number", 1)
    return part


def collecting(kind):
    part = kind(4, 3)
    part.get_set(Ground(0, part))
    return part


PARTS = {
    "register": RegisterReplica,
    "reader": reading,
    "writer": writing,
    "collected set": CollectReplica,
    "listened set": ListenedReplica,
    "collector": lambda: collecting(Collect),
    "listener": lambda: collecting(Listener),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@settings(max_examples=60)
@given(mail=OBJECT_MAIL)
def test_the_objects_survive_anything(part, mail) -> None:
    target = Ground(0, part())
    deliver(target, mail)
    assert size(target.node) < 20_000


@settings(max_examples=60)
@given(mail=st.lists(st.tuples(st.integers(0, 6), st.sampled_from(BROADCAST).flatmap(made)), max_size=12))
def test_bracha_survives_anything(mail) -> None:
    target = Ground(0, Bracha(0, 4, 1))
    deliver(target, mail)
    for source in range(1, 4):
        target.receives(source, Ready(4, 1, get(4)))
    accepted = {instance.number for instance in target.node.instances if instance.origin == 4}
    assert accepted or dict(target.node.delivered).get(4), "the others' word counts as before"


@pytest.mark.parametrize("active", ["listener", "collect"])
@settings(max_examples=60)
@given(mail=OBJECT_MAIL)
def test_algorithm_2_survives_anything_and_lets_nobody_in(active, mail) -> None:
    nodes = Algorithm2System(f=1, active_set=active)(6)
    server, client = Desk(0, nodes[0]), Desk(5, nodes[5])
    deliver(server, mail)
    client.acquire()
    deliver(client, [(3, message) for _, message in mail])
    assert (client.phase, client.grants) == (WAITING, [])
    assert size(client.node) < 10_000


def test_with_two_more_votes_it_would_have_been_let_in() -> None:
    """Or the tests above would show nothing."""
    client = client_waiting()
    for server in (4, 5):
        client.receives(server, set_reply(server, 0))
    assert client.phase is INSIDE
