"""The fast loop of the search and the labelled steps are two ways to say the same."""

from collections.abc import Callable

import pytest

from tests.check.examples import lease
from tests.check.examples.dice import Dice, StartsAnyhow
from tests.check.examples.fencing import Doorkeeper, Visitor
from tests.check.examples.notaries import Gossip, Notary, SaysYes
from tests.check.examples.notaries import system as notaries
from tests.check.examples.timers import Answering, Insistent
from tests.check.walking import walk
from trinco.check.model import Clocks, Model
from trinco.check.run import check
from trinco.check.search import Search
from trinco.check.standard import model_of
from trinco.core.monitor import AtMostInside, BoundedBypass, TokenRises
from trinco.protocols.catalogue import find

MODELS: dict[str, Callable[[], Model]] = {
    "ricart-agrawala": lambda: model_of(find("ricart-agrawala"), n=3),
    "ricart-agrawala, a crash": lambda: Model(nodes=model_of(find("ricart-agrawala"), n=3).nodes, k=3, crashes=1),
    "coordinator": lambda: model_of(find("coordinator"), n=4),
    "token-ring, for ever": lambda: model_of(find("token-ring"), n=4, rounds=None),
    "lease": lambda: Model(nodes=lease.system(), clocks=Clocks(), inputs={"acquire": 2}),
    "lease, a crash": lambda: Model(nodes=lease.system(), clocks=Clocks(), crashes=1),
    "lease that drifts": lambda: Model(
        nodes=lease.system(ttl=4, margin=2), clocks=Clocks(drifting=frozenset({1, 2}), window=1)
    ),
    "lease under watch": lambda: Model(nodes=lease.system(), clocks=Clocks(), monitors=[AtMostInside()]),
    "lease that drifts under watch": lambda: Model(
        nodes=lease.system(ttl=4, margin=2),
        clocks=Clocks(drifting=frozenset({1}), window=1),
        monitors=[AtMostInside()],
    ),
    "liar": lambda: Model(nodes=notaries(Notary(), Notary(), SaysYes()), byzantine=frozenset({2}), k=2),
    "liar that speaks unasked": lambda: Model(
        nodes=notaries(Notary(), Notary(), Gossip()),
        byzantine=frozenset({2}),
        k=2,
        inputs={"acquire": 1, "mischief": 1},
    ),
    "monitors": lambda: Model(
        nodes=[Doorkeeper(), Visitor(), Visitor()],
        inputs={"acquire": 2},
        monitors=[TokenRises(), BoundedBypass(2)],
    ),
    "timers": lambda: Model(nodes=[Insistent(server=1), Answering(misses=1)]),
    "choices": lambda: Model(nodes=[Dice(), StartsAnyhow()], k=2),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
def test_every_state_has_the_same_successors_in_the_fast_loop_and_by_labelled_steps(make: Callable[[], Model]) -> None:
    search = Search(make())
    search.run()
    assert search.seen
    for state in search.seen:
        assert sorted(search.successors((state,))) == sorted(step.state for step in search.steps.of(state))


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
def test_a_walk_along_labelled_steps_finds_what_the_search_counts(make: Callable[[], Model]) -> None:
    explored = check(make(), liveness=False)
    if explored.counterexample is None:
        assert walk(make()) == (explored.progress.states, explored.progress.transitions, explored.progress.depth)
    else:
        assert walk(make()).states >= explored.progress.states
