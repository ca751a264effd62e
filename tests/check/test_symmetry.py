"""Symmetry: fewer states, the same verdicts, and runs that are told with the names they had."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.check.examples.notaries import Notary, SaysYes
from tests.check.examples.notaries import system as notaries
from tests.check.examples.waiting import LastComeFirstServed
from trinco.check.model import Clocks, Model
from trinco.check.replay import replay
from trinco.check.run import check
from trinco.check.search import Search, Verdict
from trinco.check.standard import model_of
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import INSIDE, Context
from trinco.core.errors import UsageError
from trinco.core.message import Message
from trinco.core.monitor import BoundedBypass
from trinco.core.node import Node
from trinco.lab.exhibits.slides import DropsTheOvertaker
from trinco.protocols.catalogue import find
from trinco.protocols.coordinator import Client, Coordinator, Grant, Release, Request

SIZES = [(2, 2), (3, 1), (3, 3), (4, 1), (4, 2), (5, 1), (3, None), (4, None), (5, None)]


class GrantsTwice(Coordinator):
    """Lets the second in line in as soon as there is a third."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        Coordinator.on_message(self, ctx, source, message)
        if isinstance(message, Request) and len(self.queue) == 2:
            ctx.send(self.queue[0], Grant())


class Meddler(Node):
    """Says that it leaves, without having been inside."""

    __slots__ = ()

    def mischief(self, ctx: Context) -> None:
        ctx.send(0, Release())

    def column(self, client: int) -> tuple[object, ...]:
        return ()

    def relabel(self, names: Mapping[int, int]) -> None:
        """It knows nobody but the coordinator."""


def with_clients(server: Coordinator, clients: int, **options: object) -> Model:
    nodes = [server, *(Client(coordinator=0) for _ in range(clients))]
    group = frozenset(range(1, clients + 1))
    return Model(nodes=nodes, symmetric=[group], network=Network.UNORDERED, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("n", "rounds"), SIZES)
def test_the_coordinator_holds_with_and_without_symmetry(n: int, rounds: int | None) -> None:
    plain, merged = (
        check(model_of(find("coordinator"), n=n, rounds=rounds, symmetry=symmetry)) for symmetry in (False, True)
    )
    assert plain.violation is None
    assert merged.violation is None
    assert merged.progress.depth == plain.progress.depth
    assert merged.progress.states < plain.progress.states or n == 2


def test_of_every_kind_of_state_one_is_kept() -> None:
    """Twenty-four renamings of four clients; most states have fewer that differ."""
    plain, merged = (
        check(model_of(find("coordinator"), n=5, rounds=2, symmetry=on), liveness=False) for on in (False, True)
    )
    assert (plain.verdict, merged.verdict) == (Verdict.HOLDS, Verdict.HOLDS)
    assert merged.progress.states < plain.progress.states / 12


@pytest.mark.parametrize(("n", "rounds"), [(3, 2), (4, 2), (4, None)])
def test_every_state_of_the_plain_search_has_a_renaming_that_was_kept(n: int, rounds: int | None) -> None:
    assert_one_of_every_kind_is_kept(model_of(find("coordinator"), n=n, rounds=rounds, symmetry=True))


@pytest.mark.parametrize("clocks", [None, Clocks()], ids=["no clocks", "clocks"])
def test_every_state_around_a_liar_has_a_renaming_that_was_kept(clocks: Clocks | None) -> None:
    honest = with_clients(Coordinator(), 3, k=3, inputs={"acquire": 2, "mischief": 2}, clocks=clocks)
    model = replace(honest, nodes=[*honest.nodes, Meddler()], byzantine=frozenset({4}))
    assert_one_of_every_kind_is_kept(model)


def assert_one_of_every_kind_is_kept(model: Model) -> None:
    search = Search(model)
    search.run()
    symmetry = search.symmetry
    assert symmetry is not None
    renamings = list(symmetry.namings())
    ahead = list(search.cells.first_states())
    reached = set(ahead)
    while ahead:
        fresh = {step.state for step in search.steps.of(ahead.pop())} - reached
        reached |= fresh
        ahead += fresh
    assert search.violation is None
    assert len(reached) > len(search.seen)
    assert search.seen <= reached
    assert all(any(symmetry.rename(state, names) in search.seen for names in renamings) for state in reached)


@pytest.mark.parametrize(("n", "rounds"), [(3, 2), (4, 2), (5, 1), (4, None)])
def test_what_is_sorted_stays_as_it_is(n: int, rounds: int | None) -> None:
    search = Search(model_of(find("coordinator"), n=n, rounds=rounds, symmetry=True))
    search.run()
    assert search.symmetry is not None
    assert all(search.symmetry.canonical(state) == state for state in search.seen)


@pytest.mark.parametrize(
    ("server", "clients", "rounds", "kind"),
    [
        (GrantsTwice(), 3, 1, "safety"),
        (GrantsTwice(), 4, 1, "safety"),
        (DropsTheOvertaker(), 1, 2, "deadlock"),
        (DropsTheOvertaker(), 3, 2, "deadlock"),
    ],
)
def test_a_violation_under_symmetry_is_a_real_run_and_a_shortest_one(
    server: Coordinator, clients: int, rounds: int, kind: str
) -> None:
    model = with_clients(server, clients, inputs={"acquire": rounds})
    merged, plain = check(model), check(replace(model, reductions=False))
    assert merged.violation is not None
    assert merged.violation.kind == kind
    assert plain.violation is not None
    assert plain.violation.kind == kind
    assert merged.counterexample is not None
    assert merged.progress.depth == plain.progress.depth
    again = replay(replace(model, reductions=False), merged.counterexample.script)
    assert again is not None
    assert again.kind == kind


def test_a_run_under_symmetry_says_who_was_really_inside() -> None:
    model = with_clients(GrantsTwice(), 4, inputs={"acquire": 1})
    result = check(model)
    assert result.counterexample is not None
    assert replay(model, result.counterexample.script) == result.violation


@pytest.mark.parametrize("client", [1, 2, 3])
def test_a_property_that_names_a_client_is_judged_as_without_symmetry(client: int) -> None:
    def inside(view: View) -> bool:
        """the client that this test names is inside"""
        return view.phase(client) is INSIDE

    model = with_clients(Coordinator(), 3, inputs={"acquire": None}, never=[inside])
    kinds = [violation.kind for on in (False, True) if (violation := check(replace(model, reductions=on)).violation)]
    assert kinds == ["never", "never"]


def test_starvation_is_not_claimed_to_be_absent_where_symmetry_hides_it() -> None:
    model = with_clients(LastComeFirstServed(), 3, inputs={"acquire": None})
    assert not check(model).liveness
    assert check(replace(model, reductions=False)).verdict is Verdict.VIOLATED


def test_a_protocol_that_compares_ids_has_no_symmetry() -> None:
    with pytest.raises(UsageError, match="no symmetry"):
        model_of(find("ricart-agrawala"), n=3, symmetry=True)


def test_classes_that_cannot_be_renamed_are_refused() -> None:
    nodes = model_of(find("token-ring"), n=3).nodes
    with pytest.raises(UsageError, match=r"column.*relabel.*TokenRing"):
        check(Model(nodes=nodes, symmetric=[frozenset({0, 1, 2})]))


REFUSED = {
    "a monitor that remembers ids": {"monitors": [BoundedBypass(9)]},
    "a liar among them": {"byzantine": frozenset({1})},
    "a drifting clock among them": {"clocks": Clocks(drifting=frozenset({1}), window=1)},
}


@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED.keys())
def test_what_tells_the_nodes_apart_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="symmetry needs"):
        check(with_clients(Coordinator(), 2, **options))


def test_symmetry_among_notaries_is_refused_since_signatures_carry_names() -> None:
    nodes = notaries(Notary(), Notary(), SaysYes())
    with pytest.raises(UsageError, match="symmetry needs"):
        check(Model(nodes=nodes, byzantine=frozenset({2}), symmetric=[frozenset({0, 1})]))
