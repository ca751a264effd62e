"""What must stay possible: from every state a way leads to it, or the shortest run into a trap is told."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, assume, given, settings

from tests.check.examples.table import TableDriven
from tests.check.examples.waiting import Ball, Gambler
from tests.check.test_against_a_naive_search import models
from trinco.check.model import Model
from trinco.check.replay import replay
from trinco.check.run import check
from trinco.check.search import Progress, Search, Verdict
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import IDLE, Context
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.protocols.coordinator import Client, Coordinator, Release


@dataclass(slots=True)
class Wanderer(Process):
    """After it has been inside it goes home, or gets lost and walks in circles."""

    home: bool = True

    def acquire(self, ctx: Context) -> None:
        ctx.grant()

    def release(self, ctx: Context) -> None:
        if ctx.choose(2):
            self.home = False
            ctx.send(ctx.me, Ball())

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        ctx.send(ctx.me, message)


class Distracted(Coordinator):
    """When somebody leaves, it may start to juggle, and serves nobody any more. It is never idle, so it is no deadlock
    that others wait."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Ball):
            ctx.send(ctx.me, message)
        elif isinstance(message, Release) and ctx.choose(2):
            self.holder = ctx.me
            ctx.send(ctx.me, Ball())
        else:
            Coordinator.on_message(self, ctx, source, message)


def everybody_is_home(view: View) -> bool:
    return view.node(0).home


def everybody_was_served(view: View) -> bool:
    return all(view.phase(client) is IDLE and not dict(view.local(client).left)["acquire"] for client in (1, 2, 3))


def everybody_is_idle(view: View) -> bool:
    return not view.in_flight() and all(view.phase(client) is IDLE for client in (1, 2, 3))


def served_by(server: Coordinator, rounds: int | None, name: str, holds: Callable[[View], bool]) -> Model:
    return Model(
        nodes=[server, *(Client(coordinator=0) for _ in range(3))],
        network=Network.UNORDERED,
        inputs={"acquire": rounds},
        symmetric=[frozenset({1, 2, 3})],
        reachable={name: holds},
    )


BOTH_WAYS = pytest.mark.parametrize("symmetry", [True, False], ids=["symmetry", "no symmetry"])


@BOTH_WAYS
def test_a_coordinator_can_always_come_to_serve_everybody(symmetry: bool) -> None:
    model = served_by(Coordinator(), 2, "everybody was served", everybody_was_served)
    assert check(replace(model, reductions=symmetry)).verdict is Verdict.HOLDS


@BOTH_WAYS
def test_where_all_goes_round_for_ever_it_can_come_round_to_the_start(symmetry: bool) -> None:
    model = served_by(Coordinator(), None, "everybody is idle", everybody_is_idle)
    assert check(replace(model, reductions=symmetry), liveness=False).verdict is Verdict.HOLDS


def test_a_trap_need_not_be_a_deadlock() -> None:
    model = Model(nodes=[Wanderer()], reachable={"everybody is home": everybody_is_home})
    assert check(replace(model, reachable={})).verdict is Verdict.HOLDS
    result = check(model)
    assert result.verdict is Verdict.VIOLATED
    assert result.violation is not None
    assert (result.violation.kind, result.violation.text) == (
        "unreachable",
        "from here everybody is home can never happen",
    )
    assert result.counterexample is not None
    assert result.counterexample.script == ("p0 acquire", "p0 release, choosing 1")


@BOTH_WAYS
def test_the_run_into_a_trap_is_a_real_one_and_a_shortest_one(symmetry: bool) -> None:
    model = served_by(Distracted(), 1, "everybody was served", everybody_was_served)
    result = check(replace(model, reductions=symmetry))
    assert result.violation is not None
    assert result.violation.kind == "unreachable"
    assert result.counterexample is not None
    *_, last = script = result.counterexample.script
    assert last.startswith("p0 receives release")
    assert last.endswith("choosing 1")
    assert len(script) == 5
    replay(replace(model, reductions=False), script)


def test_what_can_be_avoided_for_ever_can_still_be_reached() -> None:
    """That is for liveness to say, and it does."""
    model = Model(nodes=[Gambler()], reachable={"it is idle": lambda view: view.phase(0) is IDLE})
    assert check(model, liveness=False).verdict is Verdict.HOLDS
    violation = check(model).violation
    assert violation is not None
    assert violation.kind == "livelock"


def test_of_several_properties_the_one_that_fails_is_named() -> None:
    possible = {"anything": lambda view: True, "everybody is home": everybody_is_home}
    violation = check(Model(nodes=[Wanderer()], reachable=possible)).violation
    assert violation is not None
    assert "everybody is home" in violation.text


def test_a_trap_is_found_again_by_its_script() -> None:
    model = Model(nodes=[Wanderer()], reachable={"everybody is home": everybody_is_home})
    found = check(model).counterexample
    assert found is not None
    assert replay(model, found.script) == found.violation
    assert replay(model, found.script[:-1]) is None


def test_a_search_that_did_not_end_says_nothing() -> None:
    model = served_by(Distracted(), 3, "everybody was served", everybody_was_served)
    result = check(model, max_states=50)
    assert (result.verdict, result.violation) == (Verdict.INCONCLUSIVE, None)


def test_whoever_watches_is_told_what_is_looked_for() -> None:
    stages: set[str] = set()

    def watch(progress: Progress) -> None:
        stages.add(progress.stage)

    check(Model(nodes=[Wanderer()], reachable={"everybody is home": everybody_is_home}), listener=watch)
    assert "looking for traps without 'everybody is home'" in stages


def in_bad_mood(view: View) -> bool:
    node = view.node(0)
    assert isinstance(node, TableDriven)
    return node.mood == 1


def first_trap(model: Model) -> int | None:
    """How many steps it takes to a trap, by following every state forward as far as it goes."""
    search = Search(model)
    search.run()
    onward = {state: {step.state for step in search.steps.of(state)} for state in search.seen}
    for depth, level in enumerate(search.levels):
        for state in level:
            ahead, reached = [state], {state}
            while ahead:
                fresh = onward[ahead.pop()] - reached
                reached |= fresh
                ahead += fresh
            if not any(in_bad_mood(View(search.cells, each)) for each in reached):
                return depth
    return None


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(models())
def test_a_random_protocol_has_the_traps_that_following_every_state_finds(model: Model) -> None:
    nodes = [node for node in model.nodes if isinstance(node, TableDriven)]
    model = replace(model, nodes=nodes, k=len(nodes), crashes=0, reachable={"a bad mood": in_bad_mood})
    result = check(model, liveness=False)
    assume(result.violation is None or result.violation.kind == "unreachable")
    length = None if result.counterexample is None else len(result.counterexample.script)
    assert length == first_trap(model)
