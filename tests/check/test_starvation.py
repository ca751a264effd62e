"""Liveness by fair cycles: what must happen does, and still somebody waits for ever."""

import pytest

from tests.check.examples.waiting import Forlorn, Gambler, HopesForAChoice, Juggler, stack
from tests.check.scripts import Walk
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.core.node import Node
from trinco.protocols import coordinator

FOREVER = {"acquire": None}

STARVING = {
    "a stack of three": Model(nodes=stack(3), inputs=FOREVER),
    "a stack of two, whose requests overtake releases": Model(
        nodes=stack(2), inputs=FOREVER, network=Network.UNORDERED
    ),
}
LIVELOCKED = {
    "a gambler": Model(nodes=[Gambler()]),
    "gamblers": Model(nodes=[Gambler(), Gambler()], k=2, inputs=FOREVER),
    "one that hopes, and two jugglers": Model(nodes=[HopesForAChoice(), Juggler(), Juggler()]),
}


@pytest.mark.parametrize("model", STARVING.values(), ids=STARVING.keys())
def test_whoever_can_be_overtaken_for_ever_starves(model: Model) -> None:
    result = check(model)
    assert result.violation is not None
    assert result.violation.kind == "starvation"


@pytest.mark.parametrize("model", LIVELOCKED.values(), ids=LIVELOCKED.keys())
def test_waiting_for_ever_while_things_happen_and_nobody_enters_is_a_livelock(model: Model) -> None:
    result = check(model)
    assert result.violation is not None
    assert result.violation.kind == "livelock"


@pytest.mark.parametrize("model", (STARVING | LIVELOCKED).values(), ids=(STARVING | LIVELOCKED).keys())
def test_the_cycle_returns_to_the_state_it_began_in_and_neglects_nothing(model: Model) -> None:
    found = check(model).counterexample
    assert found is not None
    assert found.cycle_from is not None
    path = Walk(model, found.script)
    begins = found.cycle_from - 1
    assert begins < len(found.script)
    assert path.states[begins] == path.states[-1]
    assert path.neglected(begins) == set()


def test_a_bound_on_entries_bounds_the_overtaking() -> None:
    result = check(Model(nodes=stack(3), inputs={"acquire": 2}))
    assert result.verdict is Verdict.HOLDS
    assert result.liveness


def test_a_stack_of_two_on_ordered_channels_starves_nobody() -> None:
    assert check(Model(nodes=stack(2), inputs=FOREVER)).verdict is Verdict.HOLDS


FAIR = {
    "a message that can be delivered is": [*coordinator.system(3), Juggler()],
    "whoever is inside leaves": [*coordinator.system(4), Juggler(), Juggler()],
    "who need not wait does not": [Forlorn(waits=False), Juggler()],
}


@pytest.mark.parametrize("nodes", FAIR.values(), ids=FAIR.keys())
@pytest.mark.parametrize("inputs", [{"acquire": 1}, FOREVER], ids=["once", "for ever"])
def test_a_juggler_keeps_nobody_from_what_fairness_gives(nodes: list[Node], inputs: dict[str, int | None]) -> None:
    """A cycle in which a message is never delivered although it always can be is no run at all."""
    result = check(Model(nodes=nodes, inputs=inputs))
    assert result.verdict is Verdict.HOLDS
    assert result.liveness


def test_starvation_is_not_looked_for_where_nobody_asked_for_it() -> None:
    result = check(Model(nodes=stack(3), inputs=FOREVER), liveness=False)
    assert result.verdict is Verdict.HOLDS
    assert not result.liveness
