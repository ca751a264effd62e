"""Timers: any time, or from their deadline on; and a bound on how often one fires."""

import pytest

from tests.check.examples.timers import Answering, AnsweringEverySecond, AnsweringOnce, Insistent, Restless, Sleeper
from tests.check.examples.waiting import Juggler
from trinco.check.model import Clocks, Model, Timers
from trinco.check.replay import replay
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.errors import UsageError
from trinco.core.node import Node


def woken_early(view: View) -> bool:
    """the sleeper is inside before its time"""
    return view.believers() == (0,) and view.node(0).awake.at > 0


def in_flight(count: int) -> dict[str, object]:
    return {f"{count} messages under way": lambda view: len(view.in_flight()) == count}


def more_than(count: int) -> object:
    def forbidden(view: View) -> bool:
        """too many messages are under way"""
        return len(view.in_flight()) > count

    return forbidden


def test_a_timer_that_may_fire_at_any_time_fires_before_its_deadline_too() -> None:
    result = check(Model(nodes=[Sleeper()], clocks=Clocks(), timers=Timers.ANY, never=[woken_early]))
    assert result.violation is not None
    assert result.violation.kind == "never"


def test_a_timer_with_a_deadline_fires_not_before_it() -> None:
    model = Model(nodes=[Sleeper()], clocks=Clocks(), timers=Timers.DEADLINE, never=[woken_early])
    assert check(model).verdict is Verdict.HOLDS


def test_a_timer_with_a_deadline_needs_a_clock() -> None:
    with pytest.raises(UsageError):
        check(Model(nodes=[Sleeper()], timers=Timers.DEADLINE))


@pytest.mark.parametrize("fires", [0, 1, 3])
def test_a_retransmission_timer_fires_no_more_often_than_its_bound(fires: int) -> None:
    model = Model(
        nodes=[Insistent(server=1), Answering()],
        fires=fires,
        sometimes=in_flight(1 + fires),
        never=[more_than(1 + fires)],
    )
    assert check(model).verdict is Verdict.HOLDS


def test_more_firings_reach_what_fewer_do_not() -> None:
    verdicts = [check(Model(nodes=[Insistent(server=1), Answering(misses=2)], fires=fires)).verdict for fires in (1, 2)]
    assert verdicts == [Verdict.VIOLATED, Verdict.HOLDS]


def test_waiting_for_a_timer_that_used_up_its_bound_is_no_deadlock() -> None:
    result = check(Model(nodes=[Insistent(server=1), Answering(misses=2)], fires=1))
    assert result.violation is not None
    assert result.violation.kind == "vacuous"


CUT_OFF = {
    "it would wait for ever": Model(nodes=[Insistent(server=1), AnsweringOnce()], inputs={"acquire": 2}),
    "it would wait for ever, and somebody always moves": Model(
        nodes=[Insistent(server=1), AnsweringOnce(), Juggler()], inputs={"acquire": 2}
    ),
    "it would get in": Model(nodes=[Insistent(server=1), AnsweringEverySecond()], inputs={"acquire": None}, fires=1),
    "it would get in, and somebody always moves": Model(
        nodes=[Insistent(server=1), AnsweringEverySecond(), Juggler()], inputs={"acquire": None}, fires=1
    ),
}


@pytest.mark.parametrize("model", CUT_OFF.values(), ids=CUT_OFF.keys())
def test_of_whoever_waits_for_a_timer_that_used_up_its_bound_nothing_is_said(model: Model) -> None:
    result = check(model)
    assert (result.verdict, result.violation) == (Verdict.HOLDS, None)
    assert (result.liveness, result.cut_off) == (False, True)


@pytest.mark.parametrize("more", [[], [Juggler()]], ids=["alone", "while somebody always moves"])
def test_a_timer_that_used_up_its_bound_and_is_not_needed_takes_nothing_from_the_verdict(more: list[Node]) -> None:
    result = check(Model(nodes=[Insistent(server=1), AnsweringEverySecond(), *more], inputs={"acquire": 2}, fires=2))
    assert result.verdict is Verdict.HOLDS
    assert (result.liveness, result.cut_off) == (True, False)


def test_a_timer_that_is_set_anew_each_time_before_it_fires_helps_nobody() -> None:
    model = Model(nodes=[Restless(begins_again=True)])
    result = check(model)
    assert result.violation is not None
    assert result.violation.kind == "livelock"
    assert result.counterexample is not None
    script, repeats_from = result.counterexample.script, result.counterexample.cycle_from
    assert replay(model, script, repeats_from=repeats_from) == result.violation


def test_a_timer_that_goes_on_fires_some_day() -> None:
    result = check(Model(nodes=[Restless(begins_again=False)]))
    assert (result.verdict, result.liveness) == (Verdict.HOLDS, True)


def test_a_cancelled_timer_never_fires() -> None:
    def asks_again(view: View) -> bool:
        """a process that is inside asks again"""
        return view.believers() == (0,) and bool(view.local(0).timers)

    assert check(Model(nodes=[Insistent(server=1), Answering()], never=[asks_again])).verdict is Verdict.HOLDS
