"""Elections in the checker: timers that only fire when nothing is under way, nodes that come back, and quiet."""

from dataclasses import replace

import pytest

from tests.check.examples.electing import (
    Alarm,
    Applicant,
    Believer,
    Clerk,
    Correspondent,
    Diarist,
    Doubter,
    NobodyReturns,
    Usurper,
)
from tests.check.walking import walk
from trinco.check.elections import election_model
from trinco.check.model import Clocks, Model, Timers
from trinco.check.replay import replay
from trinco.check.run import Result, check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.errors import UsageError
from trinco.core.node import Elector, Node


def suspects_the_living(view: View) -> bool:
    """p0 took p1 for dead, which runs"""
    return view.node(0).leader == 0 and view.alive(1)


def doubting(patience: float, timers: Timers = Timers.PUNCTUAL, **options: object) -> Result:
    nodes = [Doubter(peer=1, patience=patience), Doubter(peer=0, patience=patience)]
    model = election_model(nodes, noticing=frozenset({0}), **options)  # type: ignore[arg-type]
    return check(replace(model, timers=timers, never=[suspects_the_living]))


# Punctual timers


def test_a_punctual_timer_leaves_messages_the_time_they_need() -> None:
    assert doubting(patience=1).verdict is Verdict.HOLDS


@pytest.mark.parametrize("timers", [Timers.ANY, Timers.DEADLINE])
def test_under_all_other_timers_a_message_may_be_too_slow(timers: Timers) -> None:
    violation = doubting(patience=1, timers=timers).violation
    assert violation is not None
    assert violation.text == "p0 took p1 for dead, which runs"


def test_a_punctual_timer_without_any_patience_fires_while_messages_are_under_way() -> None:
    violation = doubting(patience=0).violation
    assert violation is not None
    assert violation.text == "p0 took p1 for dead, which runs"


def test_a_punctual_timer_fires_where_no_answer_can_come() -> None:
    model = election_model([Doubter(peer=1, patience=1), Doubter(peer=0, patience=1)], crashes=1)
    takes_over = {"p0 leads": lambda view: view.alive(0) and view.node(0).leader == 0 and not view.alive(1)}
    assert check(replace(model, never=(), sometimes=takes_over)).verdict is Verdict.HOLDS


def rang_out_of_turn(view: View) -> bool:
    """the later alarm rang before the earlier one"""
    return view.node(1).rung and not view.node(0).rung


def alarms(*delays: float, **options: object) -> Model:
    nodes = [Alarm(delay) for delay in delays]
    return Model(nodes=nodes, inputs={}, timers=Timers.PUNCTUAL, clocks=Clocks(), **options)  # type: ignore[arg-type]


def test_time_does_not_pass_while_a_punctual_timer_is_due() -> None:
    model = alarms(1, 2, never=[rang_out_of_turn])
    assert check(model).verdict is Verdict.HOLDS
    assert check(replace(model, timers=Timers.DEADLINE)).verdict is Verdict.VIOLATED


def test_punctual_timers_that_are_due_together_fire_in_any_order() -> None:
    assert check(alarms(1, 1, never=[rang_out_of_turn])).verdict is Verdict.VIOLATED


def test_a_part_of_a_tick_is_a_tick() -> None:
    assert check(alarms(4 / 3, 2, never=[rang_out_of_turn])).verdict is Verdict.VIOLATED
    assert check(alarms(1, 4 / 3, never=[rang_out_of_turn])).verdict is Verdict.HOLDS


def test_a_punctual_timer_that_has_used_up_its_bound_does_not_stop_time() -> None:
    model = alarms(1, 2, fires=0, sometimes={"time passed": lambda view: view.local(1).timers[0][1].at == 0})
    assert check(model).verdict is Verdict.HOLDS


@pytest.mark.parametrize("clocks", [None, Clocks(frozenset({0}), window=1)], ids=["no clock", "clocks that drift"])
def test_punctual_timers_need_clocks_that_tick_together(clocks: Clocks | None) -> None:
    with pytest.raises(UsageError):
        Model(nodes=[Alarm(1)], timers=Timers.PUNCTUAL, clocks=clocks)


# Nodes that come back


def diary(**options: object) -> Model:
    nodes: list[Node] = [Diarist(peer=1), Correspondent()]
    return Model(nodes=nodes, inputs={"live": 2}, crashes=1, **options)  # type: ignore[arg-type]


def returned(view: View) -> bool:
    return view.alive(0) and view.node(0).read is not None


def test_without_restarts_nobody_comes_back() -> None:
    assert check(diary(never=[returned])).verdict is Verdict.HOLDS


@pytest.mark.parametrize("days", [1, 2])
def test_a_node_that_comes_back_is_handed_what_it_stored_last(days: int) -> None:
    def has_read(view: View) -> bool:
        return returned(view) and view.node(0).read == days

    assert check(diary(restarts=1, sometimes={f"day {days} is read": has_read})).verdict is Verdict.HOLDS


def test_a_node_comes_back_as_new_with_nothing_but_what_it_stored() -> None:
    def remembers(view: View) -> bool:
        """it still counts the days before the crash"""
        return returned(view) and view.node(0).read + view.node(0).days > 2

    goes_on = {"it counts from one again": lambda view: returned(view) and view.node(0).days == 1}
    assert check(diary(restarts=1, never=[remembers], sometimes=goes_on)).verdict is Verdict.HOLDS


def test_a_call_in_the_middle_of_which_a_node_crashed_was_made() -> None:
    def cut_short(view: View) -> bool:
        return returned(view) and view.node(0).read == 1 and view.local(0).left == (("live", 1),)

    def forgotten(view: View) -> bool:
        """a day was begun, and the environment may still call for two"""
        return view.local(0).stored == 1 and view.local(0).left == (("live", 2),)

    sometimes = {"it crashed in the first call": cut_short}
    assert check(diary(restarts=1, never=[forgotten], sometimes=sometimes)).verdict is Verdict.HOLDS


@pytest.mark.parametrize("count", [0, 1, 2])
def test_of_two_messages_a_node_that_was_away_has_missed_none_one_or_both(count: int) -> None:
    def heard(view: View) -> bool:
        both_sent = view.alive(0) and dict(view.local(0).left)["live"] == 0 and not view.in_flight()
        return both_sent and returned_to(view) and view.node(1).heard == count

    def returned_to(view: View) -> bool:
        return view.alive(1) and view.node(0).read is None

    assert check(diary(restarts=1, sometimes={f"{count} heard": heard})).verdict is Verdict.HOLDS


def test_no_more_nodes_come_back_than_are_allowed_to() -> None:
    def returned_twice(view: View) -> bool:
        """both have crashed, and both are back"""
        return returned(view) and view.alive(1)

    both = {"both crashed": lambda view: not view.alive(0) and not view.alive(1)}
    model = replace(diary(restarts=1, sometimes=both), crashes=2)
    assert check(model).verdict is Verdict.HOLDS
    twice = {"p0 came back twice": lambda view: returned(view) and view.local(0).stored == 2}
    assert check(replace(model, restarts=2, sometimes=twice)).verdict is Verdict.HOLDS


def test_a_timer_does_not_survive_a_crash() -> None:
    def rings(view: View) -> bool:
        """an alarm that was set before the crash rings after it"""
        return view.alive(0) and not view.local(0).timers and not view.node(0).rung

    class Waking(Alarm):
        __slots__ = ()

        def on_restart(self, ctx: object, stored: object) -> None:
            """Sets no alarm."""

    model = replace(alarms(2), nodes=[Waking(2)], crashes=1, restarts=1)
    silent = {"it is back, and no alarm is set": rings}
    assert check(replace(model, sometimes=silent)).verdict is Verdict.HOLDS


def test_nobody_has_to_come_back() -> None:
    """The clerk would answer, if it came back: to wait for that is a deadlock all the same."""
    result = check(Model(nodes=[Applicant(clerk=1), Clerk(applicant=0)], crashes=1, restarts=1))
    assert result.violation is not None
    assert (result.violation.kind, result.violation.text) == ("deadlock", "p0 waits and nothing can move")


def test_monitors_see_who_comes_back() -> None:
    result = check(diary(restarts=1, monitors=[NobodyReturns()]))
    assert result.violation is not None
    assert (result.violation.kind, result.violation.text) == ("monitor", "p1 is back")


def test_a_run_in_which_a_node_comes_back_is_told_and_replayed() -> None:
    def back(view: View) -> bool:
        """it is back"""
        return returned(view)

    model = diary(restarts=1, never=[back])
    found = check(model).counterexample
    assert found is not None
    assert found.script == ("p0 live, and crashes after 0 of its sends, having stored", "p0 restarts")
    assert replay(model, found.script) == found.violation
    assert [str(event.kind) for event in found.recording.events() if event.node == 0][-2:] == ["crash", "restart"]


def test_a_number_of_restarts_cannot_be_negative() -> None:
    with pytest.raises(UsageError):
        diary(restarts=-1)


# Elections


def usurpers(n: int, **options: object) -> Model:
    return election_model([Usurper(n) for _ in range(n)], **options)  # type: ignore[arg-type]


def test_two_that_tell_each_other_that_they_lead_disagree_when_all_is_quiet() -> None:
    result = check(usurpers(2))
    assert result.violation is not None
    assert result.violation.text == "nothing is under way, somebody leads, and not everybody knows it"
    assert result.counterexample is not None
    assert len(result.counterexample.script) == 4


def test_one_that_tells_everybody_else_is_agreed_upon() -> None:
    assert check(usurpers(3, noticing=frozenset({1}))).verdict is Verdict.HOLDS


def test_only_those_who_may_notice_do() -> None:
    result = check(usurpers(3, noticing=frozenset()))
    assert result.violation is not None
    assert result.violation.text == "this never happened: a leader is elected"


def test_who_was_not_told_disagrees_too() -> None:
    """The crash of the one that tells leaves a leader that is dead, which is for somebody to notice; but if it comes
    back and leads again, whoever has not heard of it is told nothing any more."""
    assert check(usurpers(3, noticing=frozenset({1}), crashes=1)).verdict is Verdict.HOLDS
    assert check(usurpers(3, noticing=frozenset({1}), crashes=1, restarts=1)).verdict is Verdict.VIOLATED


def test_an_election_that_waits_for_the_dead_never_ends() -> None:
    believers: list[Elector] = [Believer(peer=1, patience=1), Believer(peer=0, patience=1)]
    model = election_model(believers, noticing=frozenset({0}))
    assert check(model).verdict is Verdict.HOLDS
    violation = check(replace(model, crashes=1)).violation
    assert violation is not None
    assert (violation.kind, violation.text) == ("unreachable", "from here the election ends can never happen")


def test_a_state_is_quiet_when_nothing_is_under_way_and_no_timer_is_armed() -> None:
    seen: set[tuple[bool, bool, bool]] = set()

    def look(view: View) -> bool:
        seen.add((bool(view.in_flight()), bool(view.local(0).timers), view.quiet()))
        return False

    model = election_model([Doubter(peer=1, patience=1), Doubter(peer=0, patience=1)], noticing=frozenset({0}))
    check(replace(model, crashes=1, never=[look]))
    assert seen == {(True, True, False), (True, False, False), (False, True, False), (False, False, True)}


def test_the_timers_of_the_dead_disturb_no_quiet() -> None:
    def at_rest(view: View) -> bool:
        return not view.alive(0) and view.quiet()

    assert check(alarms(5, crashes=1, sometimes={"quiet": at_rest})).verdict is Verdict.HOLDS


@pytest.mark.parametrize("restarts", [0, 1])
def test_the_fast_loop_and_the_labelled_steps_find_the_same_elections(restarts: int) -> None:
    nodes = [Doubter(peer=1, patience=1), Doubter(peer=0, patience=2)]
    model = replace(election_model(nodes, crashes=1, restarts=restarts), never=(), reachable={})
    result = check(model)
    assert walk(model) == (result.progress.states, result.progress.transitions, result.progress.depth)
