"""A script is found again by its words; where it cannot be followed, it says so."""

import pytest

from trinco.check.model import Model
from trinco.check.replay import replay
from trinco.check.run import check
from trinco.core.errors import DamagedData
from trinco.lab.exhibits.catalogue import find


def exhibit() -> Model:
    return find("ricart-agrawala/no-tie-break").model()


def script() -> list[str]:
    found = check(exhibit()).counterexample
    assert found is not None
    return list(found.script)


def test_a_script_may_be_text_with_blank_lines_and_indents() -> None:
    text = "\n".join(f"\n    {step}  " for step in script())
    assert replay(exhibit(), text) == replay(exhibit(), script())


@pytest.mark.parametrize("place", [0, 2, -1])
def test_a_step_that_is_not_possible_is_named_with_its_number(place: int) -> None:
    damaged = script()
    damaged[place] = "p7 dances"
    number = range(1, len(damaged) + 1)[place]
    with pytest.raises(DamagedData, match=f"step {number}, 'p7 dances', is not possible here"):
        replay(exhibit(), damaged)


def test_a_damaged_script_is_told_what_would_have_been_possible() -> None:
    with pytest.raises(DamagedData, match="possible: 'p0 acquire', 'p1 acquire'"):
        replay(exhibit(), ["p0 release"])


def test_a_step_taken_out_damages_the_script() -> None:
    whole = script()
    with pytest.raises(DamagedData, match="step 1"):
        replay(exhibit(), [step for step in whole if "acquire" not in step])


def test_two_independent_steps_may_be_swapped() -> None:
    first, second, *rest = script()
    assert {first, second} == {"p0 acquire", "p1 acquire"}
    assert replay(exhibit(), [second, first, *rest]) == replay(exhibit(), [first, second, *rest])


def test_an_empty_script_ends_where_everything_begins() -> None:
    assert replay(exhibit(), "") is None
