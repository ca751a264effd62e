import pytest

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.event import Event, Kind
from trinco.core.formula import Formula
from trinco.core.monitor import (
    AtMostInside,
    BoundedBypass,
    EveryoneServed,
    GrantedOnlyIfAsked,
    TokenRises,
    claimed,
    watch,
)


def story(*words):
    """``"0 acquire"`` is an event; ``"0 grant 7"`` one with a token."""
    events = []
    for at, each in enumerate(words):
        node, kind, *token = each.split()
        events.append(Event(float(at), int(node), Kind(kind), token=int(token[0]) if token else None))
    return events


def complaint(monitor, *words):
    found = watch([monitor], story(*words))
    return found[1] if found else monitor.finish()


def test_two_inside_together_are_told_by_name():
    assert complaint(AtMostInside(), "0 grant", "2 grant") == "p0 and p2 are inside together, at most 1 may be"


@pytest.mark.parametrize("leaving", ["release", "lost", "expire", "crash"])
def test_whoever_left_lost_expired_or_crashed_is_no_longer_inside(leaving):
    assert complaint(AtMostInside(), "0 grant", f"0 {leaving}", "1 grant") is None


def test_k_may_be_inside_and_not_one_more():
    assert complaint(AtMostInside(k=2), "0 grant", "1 grant") is None
    assert complaint(AtMostInside(k=2), "0 grant", "1 grant", "2 grant") is not None


def test_somebody_elses_leaving_frees_no_place():
    assert complaint(AtMostInside(), "0 grant", "1 release", "2 grant") is not None


def test_entering_without_having_asked_is_noticed():
    assert complaint(GrantedOnlyIfAsked(), "0 acquire", "1 grant") == "p1 entered without having asked"


def test_entering_twice_for_one_request_is_noticed():
    assert complaint(GrantedOnlyIfAsked(), "0 acquire", "0 grant", "0 release", "0 grant") is not None


@pytest.mark.parametrize("ending", ["refuse", "crash"])
def test_a_request_that_was_refused_or_died_gives_no_right_to_enter(ending):
    assert complaint(GrantedOnlyIfAsked(), "0 acquire", f"0 {ending}", "0 grant") is not None


def test_leaving_without_having_been_inside_is_noticed():
    assert complaint(GrantedOnlyIfAsked(), "0 acquire", "0 release") == "p0 left without having been inside"


def test_leaving_after_the_section_was_lost_is_noticed():
    assert complaint(GrantedOnlyIfAsked(), "0 acquire", "0 grant", "0 lost", "0 release") is not None


def test_whose_lease_ran_out_may_still_say_that_it_leaves():
    assert complaint(GrantedOnlyIfAsked(), "0 acquire", "0 grant", "0 expire", "0 release") is None


def test_the_plain_course_of_things_is_no_complaint():
    turn = ("0 acquire", "0 grant", "0 release")
    assert complaint(GrantedOnlyIfAsked(), *turn, *turn) is None


def test_being_overtaken_once_too_often_is_told_with_the_count():
    words = ("0 acquire", "1 acquire", "1 grant", "1 acquire", "1 grant")
    assert complaint(BoundedBypass(2), *words) is None
    assert complaint(BoundedBypass(1), *words) == "p0 waits and was overtaken 2 times, at most 1 are claimed"


def test_entries_before_the_asking_do_not_count_as_overtaking():
    assert complaint(BoundedBypass(0), "1 acquire", "1 grant", "0 acquire", "0 grant") is None


@pytest.mark.parametrize("ending", ["refuse", "crash", "grant"])
def test_nobody_is_overtaken_who_no_longer_waits(ending):
    assert complaint(BoundedBypass(0), "0 acquire", f"0 {ending}", "1 acquire", "1 grant") is None


def test_the_count_of_overtakings_begins_anew_with_each_request():
    words = ("0 acquire", "1 acquire", "1 grant", "0 grant", "0 acquire", "1 acquire", "1 grant", "0 grant")
    assert complaint(BoundedBypass(1), *words) is None


def test_a_token_that_falls_is_noticed():
    assert complaint(TokenRises(), "0 grant 7", "1 grant 6") == "p1 entered with token 6 after 7 had been given out"


def test_a_token_given_out_twice_is_noticed():
    assert complaint(TokenRises(), "0 grant 7", "1 grant 7") is not None


def test_an_entry_without_a_token_is_noticed():
    assert complaint(TokenRises(), "0 grant 7", "1 grant") == "p1 entered without a fencing token"


def test_tokens_that_rise_with_gaps_are_fine():
    assert complaint(TokenRises(), "0 grant 1", "1 grant 2", "0 grant 9") is None


def test_waiting_for_ever_while_nobody_enters_is_called_a_deadlock():
    assert complaint(EveryoneServed(), "0 acquire", "1 acquire") == "deadlock: p0, p1 asked and never entered"


def test_waiting_for_ever_while_others_enter_is_called_starvation():
    words = ("0 acquire", "1 acquire", "1 grant", "1 release")
    assert complaint(EveryoneServed(), *words) == "starvation: p0 asked and never entered"


def test_entries_before_the_longest_waiting_process_asked_do_not_make_a_deadlock_starvation():
    words = ("0 acquire", "1 acquire", "1 grant", "1 release", "2 acquire", "0 refuse")
    assert complaint(EveryoneServed(), *words) == "deadlock: p2 asked and never entered"


@pytest.mark.parametrize("ending", ["grant", "refuse", "crash"])
def test_whoever_entered_was_refused_or_crashed_is_not_left_waiting(ending):
    assert complaint(EveryoneServed(), "0 acquire", f"0 {ending}") is None


def test_a_monitor_is_shown_only_what_it_asks_for():
    assert watch([EveryoneServed(), TokenRises()], story("0 start", "0 send", "0 pause", "0 tick")) is None


def test_the_first_complaint_comes_with_its_event():
    events = story("0 grant", "1 grant", "2 grant")
    event, _ = watch([AtMostInside(), GrantedOnlyIfAsked()], events)
    assert event is events[0]


def promise(**changes):
    return Claims(
        paper="A paper",
        network=Network.FIFO,
        messages_per_entry=Formula("1"),
        delay=Formula("1"),
        fairness=Fairness.NONE,
        **changes,
    )


def test_what_is_watched_follows_from_what_is_claimed():
    modest = promise(deadlock_free=False)
    assert {type(each) for each in claimed(modest, n=3)} == {AtMostInside, GrantedOnlyIfAsked}
    proud = promise(bypass=Formula("n-1"), fencing=True)
    assert {type(each) for each in claimed(proud, n=3)} == {
        AtMostInside,
        GrantedOnlyIfAsked,
        BoundedBypass,
        TokenRises,
        EveryoneServed,
    }


def test_the_bounds_of_the_monitors_come_from_the_formulas():
    monitors = claimed(promise(k=Formula("k"), bypass=Formula("2*(n-1)")), n=4, k=3)
    assert AtMostInside(3) in monitors
    assert BoundedBypass(6) in monitors
