"""A search that a bound ends says so, and says how far it came."""

import gc

import pytest

from trinco.check.model import Model
from trinco.check.run import Checker, check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.lab.exhibits import catalogue as exhibits
from trinco.protocols.catalogue import find

STATES = 25_674


def ricart_agrawala() -> Model:
    return model_of(find("ricart-agrawala"), n=3, rounds=2)


def test_too_many_states_end_the_search_without_a_verdict() -> None:
    result = check(ricart_agrawala(), max_states=1_000)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.violation is None
    assert result.counterexample is None
    assert not result.liveness
    assert 1_000 < result.progress.states < STATES


def test_a_bound_that_is_not_exceeded_is_no_hindrance() -> None:
    result = check(ricart_agrawala(), max_states=STATES)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, STATES)


def test_too_much_memory_ends_the_search_without_a_verdict() -> None:
    result = check(ricart_agrawala(), max_bytes=1)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.progress.states < STATES


def test_with_many_nodes_the_bounds_are_looked_at_more_often() -> None:
    """A batch of the usual size would hold the whole level, and what follows from it: a hundred thousand states."""
    result = check(model_of(find("ricart-agrawala"), n=40), max_states=3_000)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert 3_000 < result.progress.states < 20_000


def test_a_violation_within_the_bound_is_a_verdict() -> None:
    model = exhibits.find("ricart-agrawala/no-tie-break").model()
    needed = check(model).progress.states
    assert check(model, max_states=needed).verdict is Verdict.VIOLATED


def test_a_listener_hears_of_ever_more_states_and_of_the_second_stage() -> None:
    heard: list[tuple[str, int, int]] = []
    checker = Checker(
        ricart_agrawala(), listener=lambda so_far: heard.append((so_far.stage, so_far.states, so_far.depth))
    )
    checker.run()
    states = [count for _, count, _ in heard]
    assert len(heard) > 10
    assert states == sorted(states)
    assert states[0] < states[-1] == STATES
    assert {stage for stage, _, _ in heard} == {"searching", "looking for fair cycles"}
    assert checker.progress.depth == heard[-1][2] == 36


def test_whoever_interrupts_a_search_can_read_how_far_it_came() -> None:
    class Enough(Exception):
        pass

    def interrupt(so_far: object) -> None:
        if checker.progress.states > 100:
            raise Enough

    checker = Checker(ricart_agrawala(), listener=interrupt)
    with pytest.raises(Enough):
        checker.run()
    assert 100 < checker.progress.states < STATES
    assert gc.isenabled(), "whoever goes on afterwards wants its garbage collected"


def test_far_more_transitions_are_told_than_handlers_run() -> None:
    progress = check(ricart_agrawala()).progress
    assert progress.handler_runs < progress.transitions / 30
    assert progress.memo_hit_rate > 0.97
    assert progress.states_per_second > 0
