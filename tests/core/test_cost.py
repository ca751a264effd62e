from tests.core.story import Story
from trinco.core.claims import Claims, Fairness, Network
from trinco.core.cost import beyond_claim, messages_per_entry
from trinco.core.event import Kind
from trinco.core.formula import Formula


def cost(story):
    return messages_per_entry(story.events)


def test_what_a_process_sends_when_it_asks_is_for_its_own_entry():
    story = Story(3)
    story.acquire(1)
    story.acquire(0)
    story.send(0, to=1)
    story.send(0, to=2)
    assert cost(story) == [0, 2]


def test_an_answer_to_a_waiting_process_is_for_its_entry():
    story = Story(2)
    story.acquire(0)
    story.receive(story.send(0, to=1))
    story.send(1, to=0)
    assert cost(story) == [2]


def test_an_answer_held_back_until_the_release_is_still_for_the_one_who_waits():
    story = Story(2)
    story.acquire(1)
    story.grant(1)
    story.acquire(0)
    story.receive(story.send(0, to=1))
    story.release(1)
    story.send(1, to=0)
    assert cost(story) == [0, 2]


def test_a_release_and_what_follows_from_it_is_for_the_entry_that_ends():
    story = Story(3)
    story.acquire(0)
    story.grant(0)
    story.release(0)
    story.receive(story.send(0, to=1))
    story.send(1, to=2)
    assert cost(story) == [2]


def test_a_message_that_nobody_asked_for_is_charged_to_nobody():
    story = Story(2)
    story.step(0, Kind.START)
    story.send(0, to=1)
    story.acquire(1)
    assert cost(story) == [0]


def test_messages_to_oneself_are_free():
    story = Story(2)
    story.acquire(0)
    story.send(0, to=0)
    story.send(0, to=1)
    assert cost(story) == [1]


def test_each_of_one_process_entries_has_its_own_cost():
    story = Story(2)
    for _ in range(2):
        story.acquire(0)
        story.send(0, to=1)
        story.grant(0)
        story.release(0)
    story.send(0, to=1)
    assert cost(story) == [1, 2]


def test_nobody_pays_for_what_is_sent_to_a_process_that_crashed_while_it_waited():
    story = Story(3)
    story.acquire(0)
    story.crash(0)
    story.acquire(1)
    story.grant(1)
    story.release(1)
    story.send(1, to=0)
    assert cost(story) == [0, 1]


def claim(formula):
    return Claims(
        paper="A paper",
        network=Network.FIFO,
        messages_per_entry=Formula(formula),
        delay=Formula("1"),
        fairness=Fairness.NONE,
    )


def test_costs_as_claimed_are_no_complaint():
    assert beyond_claim(4, 4, claim("2*(n-1)"), n=3) is None
    assert beyond_claim(2, 4, claim("0..2*(n-1)"), n=3) is None


def test_one_entry_above_the_claim_is_told_with_the_formula():
    complaint = beyond_claim(4, 5, claim("2*(n-1)"), n=3)
    assert complaint == "one entry took 5 messages, 2*(n-1) = 4 are claimed"


def test_an_exact_claim_must_be_met_on_average_too():
    assert "3.5 messages on average" in beyond_claim(3.5, 4, claim("2*(n-1)"), n=3)


def test_without_a_trace_the_average_alone_is_judged():
    assert beyond_claim(4, None, claim("2*(n-1)"), n=3) is None
    assert "4.5 messages on average" in beyond_claim(4.5, None, claim("0..2*(n-1)"), n=3)


def test_below_the_lower_end_of_a_range_is_no_complaint_as_entries_may_share_messages():
    assert beyond_claim(1, 1, claim("2..4"), n=3) is None
