"""Monitors that remember: their memory is part of the state, so what they say holds for every run."""

from dataclasses import replace

import pytest

from tests.check.examples import lease
from tests.check.examples.fencing import Doorkeeper, Visitor
from tests.check.examples.leader import Candidate, LeaderIs
from trinco.check.model import Clocks, Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.monitor import AtMostInside, BoundedBypass, GrantedOnlyIfAsked, Monitor, TokenRises, watch
from trinco.protocols.catalogue import find


def ricart_agrawala(n: int, rounds: int, bound: int) -> Model:
    return replace(model_of(find("ricart-agrawala"), n=n, rounds=rounds), monitors=[BoundedBypass(bound)])


@pytest.mark.parametrize(("n", "rounds", "tight"), [(2, 1, 1), (2, 2, 2), (2, 3, 2), (3, 1, 2)])
def test_nobody_is_overtaken_more_often_than_the_tight_bound(n: int, rounds: int, tight: int) -> None:
    """For two processes it is 2(n-1) = 2, and more rounds do not raise it."""
    assert check(ricart_agrawala(n, rounds, tight)).verdict is Verdict.HOLDS
    result = check(ricart_agrawala(n, rounds, tight - 1))
    assert result.violation is not None
    assert result.violation.kind == "monitor"


def test_of_three_processes_one_can_be_overtaken_four_times() -> None:
    result = check(ricart_agrawala(3, 2, 3))
    assert result.violation is not None
    assert result.violation.text == "p2 waits and was overtaken 4 times, at most 3 are claimed"


def test_the_run_that_a_monitor_complains_of_shows_it_in_its_trace_too() -> None:
    result = check(ricart_agrawala(3, 2, 3))
    assert result.counterexample is not None
    assert result.violation is not None
    complaint = watch([BoundedBypass(3)], result.counterexample.recording.events())
    assert complaint is not None
    assert complaint[1] == result.violation.text


def test_the_memory_of_a_monitor_tells_states_apart() -> None:
    plain = check(model_of(find("ricart-agrawala"), n=2, rounds=2)).progress.states
    assert check(ricart_agrawala(2, 2, 2)).progress.states == 221 > plain


@pytest.mark.parametrize(("rise", "verdict"), [(1, Verdict.HOLDS), (0, Verdict.VIOLATED), (-1, Verdict.VIOLATED)])
def test_a_token_that_does_not_rise_is_found(rise: int, verdict: Verdict) -> None:
    nodes = [Doorkeeper(rise=rise), Visitor(), Visitor()]
    assert check(Model(nodes=nodes, inputs={"acquire": 2}, monitors=[TokenRises()])).verdict is verdict


@pytest.mark.parametrize("monitor", [AtMostInside(), GrantedOnlyIfAsked()], ids=lambda each: type(each).__name__)
def test_a_monitor_sees_a_lease_run_out(monitor: Monitor) -> None:
    model = Model(nodes=lease.system(), clocks=Clocks(), monitors=[monitor])
    assert check(model).violation is None


def test_a_monitor_is_shown_the_same_event_that_the_trace_will_hold() -> None:
    """p1 is elected where p0 should have been: the checker and its own trace must agree on that."""
    result = check(Model(nodes=[Candidate(), Candidate()], inputs={"stand": 1}, monitors=[LeaderIs(expected=0)]))
    assert result.counterexample is not None
    assert result.counterexample.script == ("p1 stand",)
    complaint = watch([LeaderIs(expected=0)], result.counterexample.recording.events())
    assert complaint is not None
    assert result.violation is not None
    assert result.violation.text == complaint[1]


def test_two_monitors_watch_together() -> None:
    nodes = [Doorkeeper(), Visitor(), Visitor()]
    model = Model(nodes=nodes, inputs={"acquire": 2}, monitors=[TokenRises(), BoundedBypass(0)])
    result = check(model)
    assert result.violation is not None
    assert "overtaken" in result.violation.text
