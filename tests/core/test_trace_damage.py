import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.story import Story
from trinco.core import trace
from trinco.core.errors import DamagedData
from trinco.core.message import Message


class Note(Message, tag="note"):
    text: str


def good_lines():
    """A header on line 1; then p0 asks (2), sends (3), p1 receives (4), answers (5), p0 receives (6) and enters (7)."""
    story = Story(2)
    story.acquire(0)
    story.receive(story.send(0, to=1, message=Note("please")))
    story.receive(story.send(1, to=0, message=Note("yes")))
    story.grant(0)
    return list(story.recording.lines())


def rewritten(line, **changes):
    return json.dumps({**json.loads(line), **changes}).encode() + b"\n"


def complaint(tmp_path, lines):
    path = tmp_path / "damaged.ndjson"
    path.write_bytes(b"".join(lines))
    with pytest.raises(DamagedData) as caught:
        trace.read(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_the_undamaged_trace_is_read(tmp_path):
    path = tmp_path / "good.ndjson"
    path.write_bytes(b"".join(good_lines()))
    header, events = trace.read(path)
    assert (header.n, len(events)) == (2, 6)


def test_a_header_alone_is_a_trace_in_which_nothing_happened(tmp_path):
    path = tmp_path / "short.ndjson"
    path.write_bytes(rewritten(good_lines()[0], events=0))
    assert trace.read(path)[1] == []


def test_a_header_that_does_not_say_how_many_events_follow_takes_what_there_is(tmp_path):
    path = tmp_path / "short.ndjson"
    path.write_bytes(b"".join([rewritten(good_lines()[0], events=None), *good_lines()[1:3]]))
    assert len(trace.read(path)[1]) == 2


@pytest.mark.parametrize("before", [0, 1])
def test_a_line_without_an_end_is_not_read_to_it(tmp_path, before):
    """Sparse, so it takes no room: a line that was read whole would."""
    path = tmp_path / "endless.ndjson"
    path.write_bytes(b"".join(good_lines()[:before]))
    os.truncate(path, 2**40)
    with pytest.raises(DamagedData, match=f"line {before + 1} "):
        trace.read(path)


def test_whole_lines_that_are_missing_at_the_end_are_told(tmp_path):
    assert "it should have 6 events and has 3; was it cut off?" in complaint(tmp_path, good_lines()[:4])


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(DamagedData, match=r"missing\.ndjson: cannot be read"):
        trace.read(tmp_path / "missing.ndjson")


def test_a_folder_is_no_trace(tmp_path):
    with pytest.raises(DamagedData, match="cannot be read"):
        trace.read(tmp_path)


@pytest.mark.parametrize(
    "first",
    [b"", b"\n", b"not json\n", b"[]\n", b'{"format": "trinco-trace-1"}\n', b'{"n": 2}\n', b"\xff\xfe\n", b"[" * 10**5],
    ids=lambda first: repr(first[:20]),
)
def test_a_first_line_that_is_no_header_is_told_as_line_1(tmp_path, first):
    assert "line 1 is not the header" in complaint(tmp_path, [first, *good_lines()[1:]])


def test_a_trace_of_another_version_says_which_version_is_read(tmp_path):
    header, *rest = good_lines()
    told = complaint(tmp_path, [rewritten(header, format="trinco-trace-2"), *rest])
    assert "line 1" in told
    assert "trinco-trace-2" in told
    assert trace.FORMAT in told


@pytest.mark.parametrize("n", [0, -1, 10**18, 10**30])
def test_a_number_of_nodes_that_cannot_be_is_told_and_not_blamed_on_the_format(tmp_path, n):
    header, *rest = good_lines()
    told = complaint(tmp_path, [rewritten(header, n=n), *rest])
    assert "line 1" in told
    assert "this version reads" not in told


@pytest.mark.parametrize(
    "damaged",
    [
        b"\n",
        b"garbage\n",
        b"{}\n",
        b"[1, 2]\n",
        b'{"at": 1.0, "node": 0\n',
        b'{"at": 1.0, "node": 0, "kind": "crash", "note": "\xff", "clock": [2, 0]}\n',
        b'{"at": 1.0, "node": 0, "kind": "crash", "token": ' + b"[" * 100_000 + b"\n",
    ],
    ids=lambda damaged: repr(damaged[:50]),
)
def test_a_line_that_is_no_event_is_told_with_its_number(tmp_path, damaged):
    lines = good_lines()
    lines[2] = damaged
    assert "line 3 is damaged" in complaint(tmp_path, lines)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "dance"},
        {"at": "noon"},
        {"node": "zero"},
        {"cause": [0]},
        {"clock": "late"},
        {"state": []},
        {"node": 2},
        {"node": -1},
        {"peer": 2},
        {"peer": -1},
        {"token": {"slot": {}, "token": 1}},
        {"token": {"slot": [1], "token": 1}},
        {"message": {"text": "yes"}},
        {"message": {"type": 7, "text": "yes"}},
        {"clock": [3]},
        {"clock": []},
        {"clock": [3, 2, 0]},
        {"clock": [4, 2]},
        {"clock": [2, 2]},
    ],
    ids=repr,
)
def test_an_event_with_one_wrong_field_is_told_with_its_number(tmp_path, changes):
    lines = good_lines()
    lines[5] = rewritten(lines[5], **changes)
    assert "line 6 is damaged" in complaint(tmp_path, lines)


@pytest.mark.parametrize("cause", [[1, 9], [0, 0], [7, 1], [-1, 1], [0, 3]], ids=repr)
def test_a_cause_that_has_not_happened_before_is_told_with_the_number_of_the_line(tmp_path, cause):
    """Line 6 is the third event of p0: even itself has not happened before it."""
    lines = good_lines()
    lines[5] = rewritten(lines[5], cause=cause)
    told = complaint(tmp_path, lines)
    assert "line 6 is damaged" in told
    assert "has not happened yet" in told


def test_a_missing_line_is_told_where_the_gap_shows(tmp_path):
    lines = good_lines()
    del lines[2]
    told = complaint(tmp_path, lines)
    assert "line 3 is damaged" in told
    assert "has not happened yet" in told


def test_lines_out_of_order_are_told_at_the_first_that_is_early(tmp_path):
    lines = good_lines()
    lines[1], lines[2] = lines[2], lines[1]
    told = complaint(tmp_path, lines)
    assert "line 2 is damaged" in told
    assert "missing or out of order" in told


def test_a_line_that_stands_twice_is_told(tmp_path):
    lines = good_lines()
    lines.insert(3, lines[2])
    told = complaint(tmp_path, lines)
    assert "line 4 is damaged" in told
    assert "missing or out of order" in told


def test_a_last_line_that_is_cut_off_is_told_with_its_number(tmp_path):
    lines = good_lines()
    lines[-1] = lines[-1][:-10]
    assert "line 7 is cut off" in complaint(tmp_path, lines)


def damage_told(path):
    try:
        trace.read(path)
    except DamagedData as damage:
        return str(damage)
    return None


@given(st.data())
def test_a_trace_with_any_byte_changed_is_read_or_told_as_damaged(tmp_path_factory, data):
    raw = bytearray(b"".join(good_lines()))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed.ndjson"
    path.write_bytes(raw)
    assert damage_told(path) is None or "line " in damage_told(path)


@given(st.data())
def test_a_trace_cut_anywhere_but_at_the_end_of_a_line_is_told_as_damaged(tmp_path_factory, data):
    raw = b"".join(good_lines())
    cut = data.draw(st.integers(0, len(raw) - 1).filter(lambda at: raw[at - 1 : at + 1].count(b"\n") == 0))
    path = tmp_path_factory.getbasetemp() / "cut.ndjson"
    path.write_bytes(raw[:cut])
    with pytest.raises(DamagedData, match="line "):
        trace.read(path)


def test_a_file_that_lost_whole_lines_at_its_end_is_not_taken_for_a_shorter_run(tmp_path):
    story = Story(2)
    for node in (0, 1):
        story.acquire(node)
        story.grant(node)
        story.release(node)
    path = tmp_path / "trace.ndjson"
    story.recording.write(path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    with pytest.raises(DamagedData, match="should have 6 events and has 3"):
        trace.read(path)


def test_a_file_that_does_not_say_how_many_lines_it_has_can_be_read(tmp_path):
    story = Story(1)
    story.acquire(0)
    path = tmp_path / "trace.ndjson"
    path.write_bytes(b"".join(story.recording.lines()))
    assert trace.read(path) == (story.header, story.events)
