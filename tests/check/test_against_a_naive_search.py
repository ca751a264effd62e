"""The checker against ``naive``, which shares no code with it: every state, every transition, the same verdicts."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.check import naive
from tests.check.examples.table import Reaction, Table, TableDriven
from tests.check.walking import Extent, walk
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.claims import Network
from trinco.lab.exhibits.catalogue import EXHIBITS
from trinco.protocols.catalogue import find

BOTH_NETWORKS = pytest.mark.parametrize(
    "network", [Network.FIFO, Network.UNORDERED], ids=lambda each: each.name.lower()
)


def protocol(name: str, **sizes: int | Network) -> Model:
    return model_of(find(name), beyond_claims=True, **sizes)  # type: ignore[arg-type]


def assert_same_graph(model: Model) -> naive.Graph:
    graph = naive.explore(model)
    assert walk(model) == Extent(len(graph.states), graph.transitions, graph.depth)
    return graph


def assert_same_verdict(model: Model, graph: naive.Graph) -> None:
    """A violation is found where there is one, in as few steps as possible; else the search saw all there is."""
    result = check(model)
    first = naive.depth_of_first_violation(model, graph)
    if first is not None:
        assert result.verdict is Verdict.VIOLATED
        assert result.violation is not None
        assert result.violation.kind in ("safety", "deadlock")
        assert result.progress.depth == first
        return
    explored = result.progress.states, result.progress.transitions, result.progress.depth
    assert explored == (len(graph.states), graph.transitions, graph.depth)
    if result.violation is None or result.violation.kind != "vacuous":
        starves = result.violation is not None and result.violation.kind in ("starvation", "livelock")
        assert starves == naive.can_starve(graph)


@BOTH_NETWORKS
@pytest.mark.parametrize(
    ("name", "n", "rounds"),
    [
        ("ricart-agrawala", 2, 1),
        ("ricart-agrawala", 2, 3),
        ("ricart-agrawala", 3, 1),
        ("coordinator", 2, 3),
        ("coordinator", 3, 2),
        ("coordinator", 4, 1),
        ("token-ring", 2, 3),
        ("token-ring", 3, 2),
        ("token-ring", 4, 1),
    ],
)
def test_a_protocol_has_exactly_the_states_that_a_naive_search_finds(
    name: str, n: int, rounds: int, network: Network
) -> None:
    model = protocol(name, n=n, rounds=rounds, network=network)
    assert_same_verdict(model, assert_same_graph(model))


@BOTH_NETWORKS
@pytest.mark.parametrize("name", ["coordinator", "token-ring"])
def test_entries_without_a_bound_give_exactly_the_states_that_a_naive_search_finds(name: str, network: Network) -> None:
    model = model_of(find(name), n=3, rounds=None, network=network)
    assert_same_verdict(model, assert_same_graph(model))


@BOTH_NETWORKS
@pytest.mark.parametrize(
    ("name", "n", "rounds", "crashes"),
    [
        ("ricart-agrawala", 2, 2, 1),
        ("ricart-agrawala", 3, 1, 1),
        ("coordinator", 3, 1, 1),
        ("coordinator", 3, 1, 2),
        ("token-ring", 3, 1, 1),
    ],
)
def test_crashes_lead_to_exactly_the_states_that_a_naive_search_finds(
    name: str, n: int, rounds: int, crashes: int, network: Network
) -> None:
    model = protocol(name, n=n, rounds=rounds, crashes=crashes, network=network)
    assert_same_verdict(model, assert_same_graph(model))


ARMS_TIMERS = {
    *("slides/S-2", "slides/S-3", "bakery/F4", "bakery/F26", "bakery/F27"),
    *(f"robust-k/F{number}" for number in (1, 2, 3, 4)),
}
TAKES_MINUTES = {"bakery/F2", "forks/F2", "robust-k/F5"}
PLAIN = [
    exhibit
    for exhibit in EXHIBITS
    if "lease/" not in exhibit.name
    and exhibit.breaks in ("safety", "deadlock")
    and exhibit.model().clocks is None
    and not exhibit.model().restarts
    and exhibit.name not in ARMS_TIMERS | TAKES_MINUTES
]
"""What a search without time, timers, restarts and fairness can find."""


@pytest.mark.parametrize("exhibit", PLAIN, ids=lambda each: each.name)
def test_an_exhibit_is_caught_in_as_few_steps_as_a_naive_search_needs(exhibit) -> None:
    model = exhibit.model()
    graph = naive.explore(model)
    assert check(model).progress.depth == naive.depth_of_first_violation(model, graph)


@st.composite
def reactions(draw: st.DrawFn, n: int, most_throws: int) -> Reaction:
    throws = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, 1)), max_size=most_throws))
    return draw(st.integers(0, 1)), tuple(throws), draw(st.booleans())


@st.composite
def tables(draw: st.DrawFn, n: int) -> Table:
    """A ball that comes makes at most one ball go, so there are never more than the inputs threw."""
    throws = {"acquire": 2, "release": 1, 0: 1, 1: 1}
    rows = {(event, mood): draw(_alternatives(n, most)) for event, most in throws.items() for mood in (0, 1)}
    return Table(rows | {("start", 0): draw(_alternatives(n, 1))})


def _alternatives(n: int, most_throws: int) -> st.SearchStrategy[tuple[Reaction, ...]]:
    return st.lists(reactions(n, most_throws), max_size=2).map(tuple)


@st.composite
def models(draw: st.DrawFn) -> Model:
    n = draw(st.integers(1, 2))
    return Model(
        nodes=[TableDriven(draw(tables(n))) for _ in range(n)],
        k=draw(st.integers(1, n)),
        network=draw(st.sampled_from([Network.FIFO, Network.UNORDERED])),
        inputs={"acquire": 1},
        crashes=draw(st.integers(0, 1)),
    )


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(models())
def test_a_random_protocol_has_exactly_the_states_and_the_verdict_that_a_naive_search_finds(model: Model) -> None:
    assert_same_verdict(model, assert_same_graph(model))
