"""``ctx.choose`` is branched on: every choice of every handler run is explored."""

import pytest

from tests.check.examples.dice import Dice, StartsAnyhow
from trinco.check.model import Model
from trinco.check.replay import replay
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.view import View

ROLLS = [(0,), (1, 0), (1, 1), (1, 2)]


def test_choices_within_choices_are_all_explored_and_no_others() -> None:
    def impossible(view: View) -> bool:
        """something was rolled that the dice do not have"""
        return view.node(0).rolled not in [(), *ROLLS]

    rolled = {str(roll): lambda view, roll=roll: view.node(0).rolled == roll for roll in ROLLS}
    result = check(Model(nodes=[Dice()], sometimes=rolled, never=[impossible]))
    assert result.verdict is Verdict.HOLDS
    assert result.progress.states == 1 + 2 * len(ROLLS)  # before; inside and left with each roll
    assert result.progress.transitions == 2 * len(ROLLS)


def test_a_node_may_choose_how_it_starts() -> None:
    moods = {str(mood): lambda view, mood=mood: view.node(0).mood == mood for mood in range(3)}
    result = check(Model(nodes=[StartsAnyhow()], sometimes=moods))
    assert result.verdict is Verdict.HOLDS
    assert result.progress.states == 3 * 3  # idle, inside and left, in each mood


@pytest.mark.parametrize("roll", ROLLS)
def test_a_script_tells_which_choice_was_made(roll: tuple[int, ...]) -> None:
    def forbidden(view: View) -> bool:
        """the roll that this test waits for"""
        return view.node(0).rolled == roll

    found = check(Model(nodes=[Dice()], never=[forbidden])).counterexample
    assert found is not None
    others = [
        check(Model(nodes=[Dice()], never=[lambda view, r=r: view.node(0).rolled == r])) for r in ROLLS if r != roll
    ]
    assert all(other.counterexample and other.counterexample.script != found.script for other in others)
    assert replay(Model(nodes=[Dice()]), found.script) is None
