"""A crash takes everything from a node but what it stored, and may cut a multi-send anywhere."""

from tests.check.examples.keeping import Reader, StoresFirst, StoresLast
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.check.view import View
from trinco.core.node import Node
from trinco.protocols.catalogue import find


def publishing(author: Node, **properties: object) -> Model:
    return Model(nodes=[author, Reader(), Reader()], inputs={"publish": 1}, crashes=1, **properties)  # type: ignore[arg-type]


def sent(view: View) -> tuple[bool, bool]:
    """To whom the news got out: it was read, or is on its way."""
    under_way = {to for _, to, _ in view.in_flight()}
    return tuple(to in under_way or (view.alive(to) and view.node(to).read) for to in (1, 2))  # type: ignore[return-value]


def stored(view: View) -> bool:
    return view.local(0).stored == "published"


def test_a_crash_may_fall_between_any_two_sends() -> None:
    def half(view: View) -> bool:
        return not view.alive(0) and sent(view) == (True, False) and view.alive(2)

    assert check(publishing(StoresFirst(), sometimes={"only the first got out": half})).verdict is Verdict.HOLDS


def test_sends_get_out_in_their_order() -> None:
    def wrong_half(view: View) -> bool:
        """the second message got out and the first did not"""
        return not view.alive(0) and sent(view) == (False, True) and view.alive(1)

    assert check(publishing(StoresFirst(), never=[wrong_half])).verdict is Verdict.HOLDS


def test_what_was_stored_before_the_first_send_is_kept_when_nothing_got_out() -> None:
    def silent(view: View) -> bool:
        everybody_else_lives = view.alive(1) and view.alive(2)
        return not view.alive(0) and everybody_else_lives and stored(view) and sent(view) == (False, False)

    assert check(publishing(StoresFirst(), sometimes={"stored, and nothing sent": silent})).verdict is Verdict.HOLDS


def test_what_was_to_be_stored_after_the_last_send_is_not_kept_when_only_the_first_got_out() -> None:
    def too_early(view: View) -> bool:
        """it crashed after the first of its sends and has stored already"""
        return not view.alive(0) and view.alive(2) and stored(view) and sent(view) == (True, False)

    assert check(publishing(StoresLast(), never=[too_early])).verdict is Verdict.HOLDS


def test_a_node_that_has_crashed_gets_no_messages() -> None:
    def delivered_to_the_dead(view: View) -> bool:
        """a message is on its way to a dead node"""
        return any(not view.alive(to) for _, to, _ in view.in_flight())

    assert check(publishing(StoresFirst(), never=[delivered_to_the_dead])).verdict is Verdict.HOLDS


def test_no_more_nodes_crash_than_are_allowed_to() -> None:
    def both(view: View) -> bool:
        """two nodes have crashed"""
        return [view.alive(node) for node in range(3)].count(False) > 1

    assert check(publishing(StoresFirst(), never=[both])).verdict is Verdict.HOLDS


def test_one_crash_stops_ricart_agrawala() -> None:
    result = check(model_of(find("ricart-agrawala"), n=2, crashes=1, beyond_claims=True))
    assert result.violation is not None
    assert result.violation.kind == "deadlock"
    assert result.counterexample is not None
    assert any("crashes" in step for step in result.counterexample.script)
