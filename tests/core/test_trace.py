from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.story import Story
from trinco.core import snapshot, trace
from trinco.core.event import Event, Kind
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.signed import Signed


class Note(Message, tag="note"):
    number: int
    text: str = ""


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(slots=True)
class Part:
    count: int = 0


@dataclass(slots=True)
class Whole:
    clock: int = 0
    deferred: Ids = NOBODY
    deadline: Instant | None = None
    part: Part = field(default_factory=Part)
    known: frozenset = frozenset()


def told(*states):
    """A story of one node with one step for each state."""
    story = Story(1, kinds=[Whole])
    for state in states:
        story.step(0, Kind.START, fields=snapshot.fields_of(state))
    return story


def changes(*states):
    return [event.state for event in told(*states).events]


def plain(value):
    return msgspec.json.decode(msgspec.json.encode(value))


@st.composite
def stories(draw):
    """Three nodes that ask, send, receive, enter, leave and crash in any order that respects causality."""
    story = Story(3, seed=draw(st.none() | st.integers(0, 9)), finished=draw(st.booleans()))
    on_the_way = []
    for _ in range(draw(st.integers(0, 12))):
        node = draw(st.integers(0, 2))
        what = draw(st.sampled_from(["acquire", "grant", "release", "send", "receive", "crash"]))
        if what == "send":
            message = Note(draw(st.integers(-(2**40), 2**40)), draw(st.text(max_size=5)))
            on_the_way.append(story.send(node, draw(st.integers(0, 2)), message))
        elif what == "receive":
            if on_the_way:
                story.receive(on_the_way.pop(draw(st.integers(0, len(on_the_way) - 1))))
        elif what == "grant":
            story.grant(node, token=draw(st.none() | st.integers(0, 99)))
        else:
            getattr(story, what)(node)
    return story


@given(story=stories())
def test_a_trace_comes_back_from_its_file_as_it_was(story, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round-trip.ndjson"
    story.recording.write(path)
    header, events = trace.read(path)
    assert header == story.header
    assert [plain(event) for event in events] == [plain(event) for event in story.events]


@given(stories())
def test_clocks_tell_who_could_have_known_of_whom(story):
    """One event is before another, by their clocks, exactly when a chain of steps and messages leads there."""
    events = story.events
    reached = [set() for _ in events]
    latest = {}
    position_of = {}
    for number, event in enumerate(events):
        own = event.clock[event.node]
        position_of[event.node, own] = number
        sources = [latest[event.node]] if event.node in latest else []
        if event.kind is Kind.RECEIVE:
            sources.append(position_of[event.cause])
        for source in sources:
            reached[number] |= reached[source] | {source}
        latest[event.node] = number
    for later, event in enumerate(events):
        for earlier in range(later):
            before = events[earlier]
            knows = event.clock[before.node] >= before.clock[before.node]
            assert knows == (earlier in reached[later])


@given(stories())
def test_the_own_entry_of_a_clock_counts_the_events_of_the_node(story):
    counts = [0, 0, 0]
    for event in story.events:
        counts[event.node] += 1
        assert event.clock[event.node] == counts[event.node]


def test_the_cause_of_a_receive_is_its_send_and_of_an_effect_its_step():
    story = Story(2)
    story.acquire(0)
    story.receive(story.send(0, to=1, message=Note(1)))
    asked, sent, received = story.events
    assert asked.cause is None
    assert sent.cause == (0, 1)
    assert received.cause == (0, 2)


def test_the_first_step_shows_all_fields_and_later_ones_only_what_changed():
    first, second, third = changes(Whole(), Whole(clock=1), Whole(clock=1))
    assert set(first) == {"clock", "deferred", "deadline", "part", "known"}
    assert second == {"clock": 1}
    assert third == {}


def test_a_set_of_ids_is_shown_by_its_members():
    _, after = changes(Whole(), Whole(deferred=bit(0) | bit(5)))
    assert after == {"deferred": [0, 5]}


def test_a_change_within_a_part_is_a_change_of_the_state():
    _, after = changes(Whole(), Whole(part=Part(3)))
    assert set(after) == {"part"}


def test_an_event_that_is_no_step_shows_no_state():
    story = told(Whole())
    story.grant(0)
    assert story.events[-1].state == {}


def test_an_instant_is_written_as_the_time_on_its_clock():
    *_, line = told(Whole(deadline=Instant(2.5))).recording.lines()
    assert msgspec.json.decode(line)["state"]["deadline"] == 2.5


def test_every_line_is_one_json_object_that_ends_with_a_newline():
    for line in told(Whole(), Whole(clock=1)).recording.lines():
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert isinstance(msgspec.json.decode(line), dict)


def test_what_is_not_there_is_not_written():
    *_, written = trace.lines(Story(1).header, [Event(1.0, 0, Kind.CRASH, clock=(1,))])
    assert msgspec.json.decode(written) == {"at": 1.0, "node": 0, "kind": "crash", "clock": [1]}


def test_equal_recordings_have_the_same_hash_and_others_do_not():
    assert told(Whole()).recording.hash() == told(Whole()).recording.hash()
    assert told(Whole()).recording.hash() != told(Whole(clock=1)).recording.hash()


def test_the_header_is_part_of_the_hash():
    assert Story(1, seed=1).recording.hash() != Story(1, seed=2).recording.hash()


def test_the_hash_is_what_sha256sum_says_of_the_file(tmp_path):
    recording = told(Whole()).recording
    recording.write(tmp_path / "run.ndjson")
    assert recording.hash() == sha256((tmp_path / "run.ndjson").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "members",
    [
        [3, 1, 2],
        ["b", "a"],
        [Colour.RED, Colour.BLUE],
        [Signed(0, "yes"), Signed(1, "no")],
        [(1, None), (None, 1)],
        [None, 4],
    ],
    ids=repr,
)
def test_a_set_in_the_state_is_written_the_same_whatever_its_order(members):
    one, other = (told(Whole(known=frozenset(order))).recording for order in (members, members[::-1]))
    assert one.hash() == other.hash()
