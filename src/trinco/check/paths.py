"""The way to a state, step by step, with the names that nodes really have.

The search keeps states only. Under symmetry each of them was renamed when it was found; that is undone here, so that p1
stays p1 from the first step to the last, and so that a property that names a node finds it under that name.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from trinco.check.handlers import Outcome
from trinco.check.search import Search
from trinco.check.steps import Step
from trinco.check.symmetry import Symmetry


class Way(NamedTuple):
    start: tuple[Outcome, ...]
    """How each node started."""
    steps: list[Step]


def way_to(search: Search, state: int) -> Way:
    """A shortest way from a start."""
    states = search.path(state)
    if search.symmetry is None:
        steps = [_step(search, before, after) for before, after in pairwise(states)]
        return Way(search.starts[states[0]], steps)
    nobody_renamed = tuple(range(len(search.model.nodes)))
    steps, ending = _renamed_steps(search, search.symmetry, states, nobody_renamed)
    if search.naming and state == search.state:
        back = {name: node for node, name in enumerate(ending)}
        names = tuple(search.naming[back[node]] for node in nobody_renamed)
        steps, _ = _renamed_steps(search, search.symmetry, states, names)
    return Way(next(iter(search.starts.values())), steps)


def _step(search: Search, before: int, after: int) -> Step:
    return next(step for step in search.steps.of(before) if step.state == after)


def _renamed_steps(
    search: Search, symmetry: Symmetry, states: Sequence[int], names: tuple[int, ...]
) -> tuple[list[Step], tuple[int, ...]]:
    """The steps as they really were if the nodes of the first state are called so, and what they are called in the
    end."""
    steps = []
    for before, after in pairwise(states):
        found = next(step for step in search.steps.of(before) if symmetry.canonical(step.state) == after)
        wanted = symmetry.rename(found.state, names)
        steps.append(_step(search, symmetry.rename(before, names), wanted))
        names = symmetry.undo_canonical(found.state, names)
    return steps, names
