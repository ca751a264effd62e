"""A lie and the reaction to it are remembered as one move: exactly the lie under way, and then its delivery."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.check.examples.notaries import Gossip, Notary, Replayer, TwoFaced, system
from tests.check.examples.table import TableDriven
from tests.check.test_against_a_naive_search import tables
from trinco.check.cells import Label
from trinco.check.model import Model
from trinco.check.search import Search
from trinco.core.claims import Network
from trinco.core.monitor import BoundedBypass
from trinco.core.node import Node

ENOUGH = 500


def some_states(search: Search) -> set[int]:
    """The first few hundred by labelled steps, past violations."""
    ahead = list(search.cells.first_states())
    reached = set(ahead)
    while ahead and len(reached) < ENOUGH:
        fresh = {step.state for step in search.steps.of(ahead.pop(0))} - reached
        reached |= fresh
        ahead += sorted(fresh)
    return reached


def lies_under_way(search: Search, state: int, liar: int) -> Iterator[tuple[Label, int]]:
    """What the liar may do, with its messages left in flight."""
    cells = search.cells
    for lie, inbox in cells.possible(cells.at(state, liar)):
        move = cells.move(cells.at(state, liar), lie, inbox)
        after = cells.tell(cells.apply(state, move), move[2])
        if after is not None:
            yield lie, after


def heard_later(search: Search, state: int, liar: int) -> Iterator[int]:
    """Where the liar's steps lead if they are taken as two: it speaks, and what is heard at once is delivered."""
    for lie, under_way in lies_under_way(search, state, liar):
        receivers = [to for to, _ in lie.outcome.sends]
        if len(receivers) == 1 and hears(search, state, liar, receivers[0]):
            yield from delivered(search, under_way, liar, receivers[0])
        else:
            yield under_way


def hears(search: Search, state: int, liar: int, receiver: int) -> bool:
    """Honest, alive, and nothing of the liar's is on its way there."""
    cell = search.cells.at(state, receiver)
    sources = {source for source, _ in search.cells.messages_in(cell)}
    return receiver not in search.model.byzantine and search.cells.local(cell).alive and liar not in sources


def delivered(search: Search, state: int, liar: int, receiver: int) -> list[int]:
    """Where it leads when the receiver gets the liar's message; nowhere else, if it is one that nobody looks at."""
    steps = [step for step in search.steps.of(state) if step.labels[0].node == receiver]
    return [step.state for step in steps if step.labels[0].event.source == liar] or [state]


def assert_lies_are_what_they_stand_for(model: Model) -> None:
    search = Search(model)
    for state in some_states(search):
        for liar in model.byzantine:
            at_once = [step.state for step in search.steps.of(state) if step.labels[0].node == liar]
            assert sorted(at_once) == sorted(heard_later(search, state, liar))
        assert sorted(search.successors((state,))) == sorted(step.state for step in search.steps.of(state))


@pytest.mark.parametrize("crashes", [0, 1])
@pytest.mark.parametrize("liar", [TwoFaced, Replayer, Gossip])
def test_what_notaries_lie_is_heard_at_once_as_it_would_be_later(liar: type[Node], crashes: int) -> None:
    nodes = system(Notary(), Notary(), liar())
    inputs = {"acquire": 1, "mischief": 1}
    model = Model(nodes=nodes, byzantine=frozenset({2}), inputs=inputs, crashes=crashes, monitors=[BoundedBypass(2)])
    assert_lies_are_what_they_stand_for(model)


@st.composite
def models_with_liars(draw: st.DrawFn) -> Model:
    """Whoever is thrown a ball may throw one back, to the liar or to itself or to a third."""
    return Model(
        nodes=[TableDriven(draw(tables(3))) for _ in range(3)],
        network=draw(st.sampled_from([Network.FIFO, Network.UNORDERED])),
        inputs={"acquire": 1},
        crashes=draw(st.integers(0, 1)),
        byzantine=draw(st.sampled_from([frozenset({0}), frozenset({2}), frozenset({0, 1})])),
    )


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(models_with_liars())
def test_any_lie_is_heard_at_once_as_it_would_be_later(model: Model) -> None:
    assert_lies_are_what_they_stand_for(model)
