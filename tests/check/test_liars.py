"""Liars: what they may do, what they may not, and who counts."""

import pytest

from tests.check.examples.heralds import Herald, Listener, Relay
from tests.check.examples.notaries import (
    Client,
    Forger,
    Gatecrasher,
    Gossip,
    Greedy,
    Notary,
    Replayer,
    SaysYes,
    Silent,
    TwoFaced,
    system,
)
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.errors import ContractBroken
from trinco.core.monitor import AtMostInside
from trinco.core.node import Node


def with_liar(liar: Node, honest: int = 2, **options: object) -> Model:
    """The last of the notaries lies."""
    nodes = system(*(Notary() for _ in range(honest)), liar)
    return Model(nodes=nodes, byzantine=frozenset({honest}), **options)  # type: ignore[arg-type]


def test_honest_notaries_let_one_client_in() -> None:
    assert check(Model(nodes=system(Notary(), Notary(), Notary()))).verdict is Verdict.HOLDS


def test_of_three_notaries_none_may_vouch_twice() -> None:
    result = check(with_liar(TwoFaced()))
    assert result.violation is not None
    assert result.violation.kind == "safety"


@pytest.mark.parametrize("liar", [SaysYes(), Silent()], ids=["says yes", "silent"])
def test_of_four_notaries_one_may_lie(liar: Node) -> None:
    result = check(with_liar(liar, honest=3))
    assert result.verdict is Verdict.HOLDS
    assert result.liveness


def test_a_liar_that_chooses_does_each_of_its_choices() -> None:
    def holder(view: View) -> int | None:
        return view.node(2).holder

    def tickets(view: View) -> set[int]:
        return {ticket.signer for client in (3, 4) for ticket in view.node(client).tickets}

    outcomes = {
        "follows": lambda view: holder(view) == 3 and 2 in tickets(view),
        "vouches for another": lambda view: holder(view) is None and 2 in tickets(view),
        "silent": lambda view: holder(view) is None and not view.in_flight() and view.phase(3) is not view.phase(4),
    }
    model = with_liar(TwoFaced(), k=2, sometimes=outcomes)
    assert check(model, liveness=False).verdict is Verdict.HOLDS


def test_a_lone_liars_answer_is_never_seen_under_way() -> None:
    def under_way(view: View) -> bool:
        """an answer of the liar is in flight"""
        return any(source == 2 for source, _, _ in view.in_flight())

    honest = Model(nodes=system(Notary(), Notary(), Notary()), never=[under_way])
    assert check(with_liar(SaysYes(), k=2, never=[under_way])).verdict is Verdict.HOLDS
    assert check(honest).verdict is Verdict.VIOLATED


def test_what_a_liar_does_and_what_follows_from_it_is_one_step() -> None:
    found = check(with_liar(TwoFaced())).counterexample
    assert found is not None
    assert any(step.startswith("p2 receives ask from p3") and "; p3 receives vouch" in step for step in found.script)


def test_a_liar_owes_no_answer_so_waiting_for_it_is_a_deadlock() -> None:
    nodes = [*system(Notary(), Silent()), Client((0, 1), 2)]
    result = check(Model(nodes=nodes, byzantine=frozenset({1})))
    assert result.violation is not None
    assert result.violation.kind == "deadlock"


def test_a_forged_signature_breaks_the_contract() -> None:
    with pytest.raises(ContractBroken, match=r"p2 forged .*signer=0"):
        check(with_liar(Forger()))


def test_a_liar_may_replay_what_it_was_shown() -> None:
    learnt = {"it learnt a signature of p0": lambda view: any(each.signer == 0 for each in view.node(2).knows)}
    assert check(with_liar(Replayer(), sometimes=learnt)).verdict is Verdict.HOLDS


@pytest.mark.parametrize(("budget", "verdict"), [(0, Verdict.HOLDS), (1, Verdict.VIOLATED)])
def test_a_liar_speaks_unasked_as_often_as_its_budget_says(budget: int, verdict: Verdict) -> None:
    assert check(with_liar(Gossip(), inputs={"acquire": 1, "mischief": budget})).verdict is verdict


def with_lying_client(kind: type[Client], **options: object) -> Model:
    nodes = system(Notary(), Notary(), Notary(), clients=(Client, kind))
    return Model(nodes=nodes, **options)  # type: ignore[arg-type]


def test_a_lying_client_is_not_counted_inside() -> None:
    assert check(with_lying_client(Greedy)).verdict is Verdict.VIOLATED
    assert check(with_lying_client(Greedy, byzantine=frozenset({4}))).verdict is Verdict.HOLDS


def test_monitors_do_not_see_a_lying_client() -> None:
    model = with_lying_client(Greedy, byzantine=frozenset({4}), monitors=[AtMostInside()])
    assert check(model).verdict is Verdict.HOLDS


def test_a_lying_client_that_says_it_is_inside_without_asking_breaks_nothing() -> None:
    inputs = {"acquire": 1, "mischief": 1}
    model = with_lying_client(Gatecrasher, byzantine=frozenset({4}), inputs=inputs)
    assert check(model).verdict is Verdict.HOLDS


def test_an_honest_client_that_enters_without_asking_breaks_the_contract() -> None:
    result = check(with_lying_client(Gatecrasher, inputs={"acquire": 1, "mischief": 1}))
    assert result.violation is not None
    assert result.violation.kind == "contract"


@pytest.mark.parametrize("byzantine", [frozenset(), frozenset({0})], ids=["honest", "liar"])
def test_what_one_hears_may_travel_faster_than_what_the_other_was_told(byzantine: frozenset[int]) -> None:
    """p0 tells p1 and p2 at once; p1 passes it on to p2, and that may arrive first."""
    model = Model(
        nodes=[Herald(audience=(1, 2)), Relay(listeners=(2,)), Listener()],
        byzantine=byzantine,
        inputs={"mischief": 1},
        sometimes={"the echo comes first": lambda view: view.node(2).first == "Echo"},
    )
    assert check(model).verdict is Verdict.HOLDS


@pytest.mark.parametrize("byzantine", [frozenset(), frozenset({0})], ids=["honest", "liar"])
def test_who_answers_many_may_crash_half_way_whoever_it_answers_to(byzantine: frozenset[int]) -> None:
    def half(view: View) -> bool:
        return not view.alive(1) and view.node(2).first == "Echo" and not view.node(3).first and not view.in_flight()

    model = Model(
        nodes=[Herald(audience=(1,)), Relay(listeners=(2, 3)), Listener(), Listener()],
        byzantine=byzantine,
        inputs={"mischief": 1},
        crashes=1,
        sometimes={"only the first echo got out": half},
    )
    assert check(model).verdict is Verdict.HOLDS


def test_the_trace_says_who_lies_so_that_its_beliefs_are_not_judged_there_either() -> None:
    found = check(with_liar(TwoFaced())).counterexample
    assert found is not None
    assert found.recording.header.byzantine == (2,)
