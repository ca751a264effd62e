"""Bytes and back: every message of the bakery, what is cut, changed, or too long, and what was never a message."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.bakery.bench import Keyring, Packet, WithKeys, simulated
from tests.protocols.bakery.desk import (
    LOCK,
    begun,
    get,
    get_reply,
    justification,
    set_reply,
    set_ticket,
    suspect,
    suspicion,
    ticket_certificate,
    vote,
)
from trinco.core.errors import DamagedData
from trinco.core.ids import bit
from trinco.core.signed import Signed
from trinco.protocols.bakery import active_set
from trinco.protocols.bakery.active_set import Data
from trinco.protocols.bakery.certificates import Highest, Suspicion, Ticket, Vote
from trinco.protocols.bakery.messages import (
    BadJustification,
    Certified,
    Certify,
    Exit,
    ExitReply,
    Get,
    GetReply,
    Go,
    Listen,
    Removal,
    Removed,
    Set,
    Wait,
)
from trinco.protocols.bakery.quorums import quorum
from trinco.protocols.bakery.system import Bakery
from trinco.protocols.bakery.wire import KINDS, admitted, codec, decode, encode
from trinco.protocols.broadcast.bracha import Echo, Initial, Ready

REMOVAL = tuple(suspicion(server, 0) for server in (3, 4, 5))
EXAMPLES = [
    get(0),
    get_reply(3, 0, number=4),
    set_ticket(0, numbers=(4, 0, 2)),
    set_reply(3, 0),
    set_reply(3, 0, free=False),
    BadJustification(1),
    Listen(1, ticket_certificate(1), 2),
    Wait(1, dead=True),
    Go(1, vote(3, 0)),
    Exit(1, ticket_certificate(1)),
    ExitReply(1),
    Removed(1, REMOVAL),
    Certify(1, justification(0), Signed(3, Ticket(LOCK, 1))),
    Certified(Signed(3, Ticket(LOCK, 1))),
    suspect(3, 0),
    Removal(0, 1, REMOVAL),
    Initial(7, get(0)),
    Echo(0, 7, set_ticket(0)),
    Ready(0, 7, Exit(1, ())),
]


def said(simulation):
    """The bytes of a run, each once."""
    sent = (record[4] for record in simulation.recording.records)
    return sorted({packet.data for packet in sent if isinstance(packet, Packet)})


@pytest.fixture(scope="module", params=["signatures", "macs"])
def packets(request):
    return said(simulated(WithKeys(Bakery(authentication=request.param)), seed=1))


def test_there_is_an_example_of_every_kind() -> None:
    assert {type(each) for each in EXAMPLES} == {getattr(kind, "__origin__", kind) for kind in KINDS}


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda each: type(each).__name__)
def test_a_message_comes_back_as_it_was(message) -> None:
    assert decode(encode(message, 4), 4) == admitted(message, 4) == message


def test_what_real_nodes_say_comes_back_as_it_was(packets) -> None:
    for data in packets:
        assert encode(decode(data, 4), 4) == data


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda each: type(each).__name__)
def test_what_was_cut_off_anywhere_or_goes_on_is_refused(message) -> None:
    data = encode(message, 4)
    for length in range(len(data)):
        with pytest.raises(DamagedData):
            decode(data[:length], 4)
    with pytest.raises(DamagedData):
        decode(data + b"\x00", 4)


def read(data):
    try:
        return decode(data, 4)
    except DamagedData:
        return None


@given(st.sampled_from(EXAMPLES), st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_gives_a_message_of_sound_shape_or_none(message, place, change) -> None:
    data = bytearray(encode(message, 4))
    data[place % len(data)] ^= change
    read_back = read(bytes(data))
    assert read_back is None or admitted(read_back, 4) == read_back


@given(st.binary(max_size=300))
def test_other_bytes_are_refused_in_one_way(data) -> None:
    assert read(data) is None


NESTED = b"\x91" * 100_000

STRANGE = {
    "nothing": b"",
    "deeply nested": NESTED,
    "deeply nested where a body is": encode(get(0), 4).replace(b"\xa6client\x00", b"\xa6client" + NESTED),
    "an extension": b"\xc7\x04\x05abcd",
    "a map that says it is endless": b"\xdf\xff\xff\xff\xff",
    "text that is none": b"\x81\xa4type\xa3\xff\xfe\xfd",
    "a number for a name": b"\x81\x01\x02",
    "JSON": msgspec.json.encode(get(0)),
    "a field too many": msgspec.msgpack.encode({"type": "exit-reply", "sid": 1, "more": 1}),
    "a kind that is none of ours": msgspec.msgpack.encode({"type": "packet", "data": b"x"}),
    "a broadcast of an answer": msgspec.msgpack.encode(Initial(1, ExitReply(1))),
    "a broadcast of a broadcast": msgspec.msgpack.encode(Initial(1, Initial(1, get(0)))),
}


@pytest.mark.parametrize("data", STRANGE.values(), ids=STRANGE)
def test_strange_bytes_are_refused_in_one_way(data) -> None:
    assert read(data) is None


HIGHEST = Highest(LOCK, 0, 1, 0)

WRONG = {
    "no number": ExitReply("1"),
    "nothing": ExitReply(None),
    "a yes": ExitReply(True),
    "a fraction": ExitReply(1.0),
    "less than nothing": ExitReply(-1),
    "more than a wire has": ExitReply(2**70),
    "more digits than one can read": ExitReply(10**5000),
    "a number for a yes": Wait(1, 1),
    "no signature": Get(1, "begun"),
    "a signature under nothing": Get(1, Signed(0, None)),
    "a signature under another kind of body": Go(1, Signed(3, HIGHEST)),
    "a signature under a signature": Go(1, Signed(3, vote(3, 0))),
    "a body with no number in it": Certified(Signed(3, Ticket(LOCK, "1"))),
    "a body with a negative number in it": Certified(Signed(3, Ticket(LOCK, -1))),
    "a body of another lock's type": Certified(Signed(3, Ticket(None, 1))),
    "a signer that is none": Certified(Signed("p3", Ticket(LOCK, 1))),
    "proofs that are no bytes": Certified(Signed(3, Ticket(LOCK, 1), (), (1,))),
    "readers that are no numbers": Certified(Signed(3, Ticket(LOCK, 1), (None,), ())),
    "one signature for many": Listen(1, Signed(3, Ticket(LOCK, 1)), 1),
    "suspicions for tickets": Listen(1, REMOVAL, 1),
    "tickets for suspicions": Removed(1, ticket_certificate(1)),
    "answers that are none": Set(1, 1, (1, 2, 3)),
    "requests for answers": Set(1, 1, (get(0),) * 3),
    "a class": Get(Get, Signed),
    "an object": Get(object(), object()),
    "half a letter": Certified(Signed(3, Ticket("\ud800", 1))),
    "no message": "get",
    "a message of somebody else's": Packet(b""),
}


@pytest.mark.parametrize("message", WRONG.values(), ids=WRONG)
def test_an_object_of_the_wrong_shape_is_refused_at_the_door(message) -> None:
    assert admitted(message, 4) is None


def test_what_passes_the_door_is_what_its_class_says_whatever_was_handed_over() -> None:
    """A list can be changed later, a dictionary is no body."""
    lists = Set(1, 1, list(justification(0)))
    body = {"type": "T", "lock": LOCK, "number": 1}
    assert admitted(lists, 4) == set_ticket(0)
    assert admitted(Certified(Signed(3, body)), 4) == Certified(Signed(3, Ticket(LOCK, 1)))


def test_a_set_of_many_ids_passes_the_door_and_may_be_larger_than_a_number_on_the_wire() -> None:
    assert active_set.ANSWERS.admit(Data(1, bit(200))) == Data(1, bit(200))


TOO_MANY = {
    "answers": Set(1, 1, justification(0)[:1] * 5),
    "answers to certify": Certify(1, justification(0)[:1] * 5, Signed(3, Ticket(LOCK, 1))),
    "answers that are broadcast": Initial(1, Set(1, 1, justification(0)[:1] * 5)),
    "signatures": Exit(1, ticket_certificate(1, range(5))),
    "signatures in an answer": get_reply(3, 0, number=1, certificate=ticket_certificate(1, range(5))),
    "signatures in an answer that is passed on": Set(
        1, 2, (get_reply(3, 0, number=1, certificate=ticket_certificate(1, range(5))),)
    ),
    "suspicions": Removal(0, 1, tuple(suspicion(server, 0) for server in range(5))),
    "readers": Set(1, 1, (GetReply(1, Signed(3, HIGHEST, tuple(range(6))), ()),)),
}


@pytest.mark.parametrize("message", TOO_MANY.values(), ids=TOO_MANY)
def test_more_than_the_servers_can_have_given_is_refused(message) -> None:
    assert admitted(message, 4) is None
    assert read(encode(message, 4)) is None


def test_what_is_too_long_is_not_read() -> None:
    longest = codec(4).most_bytes
    padded = Certified(Signed(3, Ticket("x" * longest, 1)))
    with pytest.raises(DamagedData, match=f"{longest} at most"):
        decode(encode(padded, 4), 4)


@pytest.mark.parametrize("f", [1, 2, 3, 10])
def test_the_longest_message_of_a_correct_node_is_not_too_long(f) -> None:
    """A justification in which every answer is vouched for to everybody and has a full certificate."""
    servers = 3 * f + 1
    lock, far, me = "\N{BLACK CHESS QUEEN}" * 200, 2**63 - 1, Keyring(0, servers + 1)
    ticket = me.sign(Ticket(lock, far))
    highest = me.vouch(Highest(lock, far, far, far, far), range(servers + 1))
    reply = GetReply(far, highest, (ticket,) * servers)
    longest = Initial(far, Set(far, far, (reply,) * quorum(servers, f)))
    assert decode(encode(longest, servers), servers) == longest


def test_bodies_keep_their_kinds_apart() -> None:
    bodies = (begun(0, 1).body, HIGHEST, Ticket(LOCK, 1), Vote(LOCK, 0, 1, 1, 0), Suspicion(LOCK, 0, 1))
    assert len({msgspec.msgpack.encode(each)[:12] for each in bodies}) == len(bodies)
