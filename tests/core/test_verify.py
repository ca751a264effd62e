from dataclasses import replace

import pytest

from tests.core.story import Story
from trinco.core import trace
from trinco.core.event import Kind
from trinco.core.formula import Formula
from trinco.core.verify import verify
from trinco.protocols.coordinator import CLAIMS

UNBOUNDED = replace(CLAIMS, messages_per_entry=Formula("0..inf"))


def findings(story, claims=UNBOUNDED):
    return verify(story.header, story.events, claims)


def turn(story, node):
    story.acquire(node)
    story.grant(node)
    story.release(node)


def test_a_faultless_trace_is_counted_and_not_complained_about():
    story = Story(2)
    turn(story, 0)
    turn(story, 1)
    found = findings(story)
    assert (found.events, found.entries, found.violation, found.at) == (6, 2, None, None)


def test_two_inside_are_told_with_the_time_of_the_second():
    story = Story(2)
    for node in (0, 1):
        story.acquire(node)
        story.grant(node)
    found = findings(story)
    assert "p0 and p1 are inside together" in found.violation
    assert found.at == 4.0


def test_the_header_says_how_many_may_be_inside():
    story = Story(2, k=2)
    for node in (0, 1):
        story.acquire(node)
        story.grant(node)
    assert verify(story.header, story.events, None).violation is None


@pytest.mark.parametrize(("finished", "complains"), [(True, True), (False, False)])
def test_whoever_still_waits_proves_something_only_in_a_run_that_finished(finished, complains):
    story = Story(2, finished=finished)
    story.acquire(0)
    found = findings(story)
    assert (found.violation is not None) == complains
    assert found.at == (1.0 if complains else None)


def costly(story):
    story.acquire(0)
    for _ in range(4):
        story.send(0, to=1)
    story.grant(0)
    story.release(0)
    return story


def test_an_entry_that_cost_more_than_claimed_is_told():
    assert findings(costly(Story(2)), CLAIMS).violation == "one entry took 4 messages, 3 = 3 are claimed"


@pytest.mark.parametrize("fault", [Kind.CRASH, Kind.DROP, Kind.PAUSE])
def test_costs_are_not_judged_in_a_run_that_was_disturbed(fault):
    story = costly(Story(2))
    story.effect(1, fault)
    assert findings(story, CLAIMS).violation is None


def test_costs_are_not_judged_beyond_the_claims():
    assert findings(costly(Story(2, within_claims=False)), CLAIMS).violation is None


def test_costs_are_not_judged_in_a_run_that_was_cut_off():
    assert findings(costly(Story(2, finished=False)), CLAIMS).violation is None


def test_an_unknown_protocol_is_watched_for_what_holds_for_every_protocol():
    story = Story(2)
    story.grant(0)
    found = verify(story.header, story.events, None)
    assert found.violation == "p0 entered without having asked"
    assert found.monitors == ("AtMostInside", "GrantedOnlyIfAsked")


def test_an_unknown_protocol_may_leave_somebody_waiting():
    story = Story(2)
    story.acquire(0)
    assert verify(story.header, story.events, None).violation is None


def test_an_empty_trace_has_nothing_wrong():
    assert findings(Story(2)).violation is None


def test_a_trace_is_judged_from_its_file_as_from_memory(tmp_path):
    story = Story(2)
    turn(story, 0)
    story.acquire(1)
    path = tmp_path / "trace.ndjson"
    story.recording.write(path)
    assert verify(*trace.read(path), UNBOUNDED) == findings(story)


def test_a_token_that_does_not_rise_is_told_though_nobody_claims_fencing():
    story = Story(2)
    for node, token in ((0, 2), (1, 1)):
        story.acquire(node)
        story.grant(node, token)
        story.release(node)
    found = verify(story.header, story.events, None)
    assert found.violation == "p1 entered with token 1 after 2 had been given out"


def test_what_the_checker_found_is_repeated_where_no_monitor_can_see_it():
    story = Story(2, finished=False, runtime="checker", violation="deadlock: p0 waits and nothing can move")
    story.acquire(0)
    found = verify(story.header, story.events, None)
    assert found.violation == "the checker found: deadlock: p0 waits and nothing can move"
    assert found.at == 1.0


def test_who_still_waits_at_the_end_is_told():
    story = Story(3, finished=False)
    turn(story, 1)
    story.acquire(2)
    story.acquire(0)
    assert findings(story).waiting == (0, 2)
