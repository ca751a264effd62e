import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.core.errors import DamagedData
from trinco.core.instant import Instant
from trinco.core.message import Codec, Message, describe, tag_of


class Ask(Message, tag="ask"):
    timestamp: int


class Answer(Message, tag="answer"):
    timestamp: int


class Tell(Message, tag="tell"):
    who: tuple[int, ...]
    known: frozenset[int]
    text: str
    sure: bool | None = None


class Untagged(Message):
    pass


class Dated(Message, tag="dated"):
    when: Instant


codec = Codec(Ask, Answer, Tell, Untagged)
whole = st.integers(-(2**63), 2**64 - 1)
messages = st.one_of(
    st.builds(Ask, whole),
    st.builds(Answer, whole),
    st.builds(Tell, st.lists(whole).map(tuple), st.frozensets(whole), st.text(), st.none() | st.booleans()),
    st.just(Untagged()),
)


@given(messages)
def test_a_message_comes_back_from_the_wire_as_it_was(message):
    back = codec.decode(codec.encode(message))
    assert back == message
    assert type(back) is type(message)


@given(messages, messages)
def test_equal_messages_are_equal_bytes_and_others_are_not(one, other):
    assert (codec.encode(one) == codec.encode(other)) == (one == other)


def test_messages_of_two_kinds_differ_even_where_their_fields_agree():
    assert Ask(3) != Answer(3)


def test_a_message_cannot_be_changed_in_flight():
    message = Ask(3)
    with pytest.raises(AttributeError):
        message.timestamp = 4


def test_a_message_is_a_value_that_a_set_can_hold():
    assert len({Ask(3), Ask(3), Answer(3)}) == 2


def test_a_kind_is_named_by_its_tag_or_else_by_its_class():
    assert tag_of(Ask(1)) == "ask"
    assert tag_of(Untagged()) == "untagged"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Untagged(), "untagged"),
        (Ask(4), "ask(4)"),
        (Tell((1, 2), frozenset(), "hi"), "tell(who=(1, 2), known=[], text=hi, sure=None)"),
        ({"type": "ask", "timestamp": 4}, "ask(4)"),
        ({"type": "pair", "a": 1, "b": 2}, "pair(a=1, b=2)"),
        ("anything else", "anything else"),
    ],
)
def test_a_message_is_described_by_its_kind_and_fields(message, words):
    assert describe(message) == words


@given(st.binary(max_size=60))
def test_bytes_are_either_a_message_or_refused_as_damaged(data):
    try:
        message = codec.decode(data)
    except DamagedData:
        return
    assert isinstance(message, Message)


@given(messages, st.data())
def test_a_message_cut_short_is_refused(message, data):
    encoded = codec.encode(message)
    with pytest.raises(DamagedData):
        codec.decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


def test_a_message_with_bytes_after_its_end_is_refused():
    with pytest.raises(DamagedData):
        codec.decode(codec.encode(Ask(1)) + b"\x00")


def test_a_message_of_another_protocol_is_refused_with_the_kinds_that_are_known():
    with pytest.raises(DamagedData, match="none of Ask"):
        Codec(Ask).decode(codec.encode(Answer(1)))


@pytest.mark.parametrize(
    "damaged",
    [
        {"timestamp": 1},
        {"type": "ask"},
        {"type": "ask", "timestamp": "1"},
        {"type": "ask", "timestamp": 1.5},
        {"type": "nobody"},
        ["ask", 1],
        None,
    ],
    ids=repr,
)
def test_a_map_that_is_not_quite_a_message_is_refused(damaged):
    with pytest.raises(DamagedData):
        codec.decode(msgspec.msgpack.encode(damaged))


def test_a_message_with_a_field_too_many_is_refused():
    with pytest.raises(DamagedData):
        codec.decode(msgspec.msgpack.encode({"type": "ask", "timestamp": 1, "extra": 2}))


def test_text_that_is_not_utf8_is_refused_as_damaged():
    encoded = codec.encode(Tell((), frozenset(), "abab"))
    with pytest.raises(DamagedData):
        codec.decode(encoded.replace(b"abab", b"\xff\xff\xff\xff"))


def test_bytes_nested_without_end_are_refused_as_damaged():
    nested = b"\x91" * 100_000 + b"\xc0"
    with pytest.raises(DamagedData):
        codec.decode(b"\x83\xa4type\xa3ask\xa9timestamp\x01\xa1x" + nested)


def test_an_instant_cannot_travel():
    with pytest.raises(TypeError):
        Codec(Ask).encode(Dated(Instant(1)))
