"""A node made of parts: fields that are dataclasses are part of its state, to any depth."""

from tests.check.examples.layers import RollCall, Teacher, system
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core import snapshot


def test_a_snapshot_reaches_into_the_parts_of_parts() -> None:
    teacher = Teacher(RollCall(everybody=(1, 2)))
    before = snapshot.take(teacher)
    teacher.roll.names.tick_off(2)
    assert snapshot.take(teacher) != before
    assert snapshot.restore(before).roll.names.heard == 0
    assert snapshot.restore(snapshot.take(teacher)).roll.names.heard == 0b100


def test_two_nodes_from_one_snapshot_share_nothing() -> None:
    taken = snapshot.take(Teacher(RollCall(everybody=(1, 2))))
    one, other = snapshot.restore(taken), snapshot.restore(taken)
    one.roll.names.tick_off(1)
    assert other.roll.names.heard == 0


def test_states_that_differ_deep_in_a_part_are_different_states() -> None:
    def heard(nodes: int) -> dict[str, object]:
        return {f"heard {nodes:b}": lambda view: view.node(0).asking and view.node(0).roll.names.heard == nodes}

    model = Model(nodes=system(), sometimes=heard(0b000) | heard(0b010) | heard(0b100))
    assert check(model).verdict is Verdict.HOLDS


def test_what_a_part_returns_its_owner_acts_on() -> None:
    def too_early(view: View) -> bool:
        """the teacher is inside before everybody answered"""
        return view.believers() == (0,) and view.node(0).roll.names.heard != 0b110

    assert check(Model(nodes=system(), never=[too_early])).verdict is Verdict.HOLDS


def test_the_timer_of_a_part_carries_the_name_of_the_part() -> None:
    def asked_again(view: View) -> bool:
        """the roll was called again"""
        return view.local(0).fired != ()

    found = check(Model(nodes=system(), never=[asked_again])).counterexample
    assert found is not None
    assert found.script == ("p0 acquire", "p0 timer roll/again")
