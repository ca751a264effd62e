"""The whole graph of a model by the plain, labelled steps: it does not stop at a violation, as the search does."""

from typing import NamedTuple

from trinco.check.model import Model
from trinco.check.search import Search


class Extent(NamedTuple):
    states: int
    transitions: int
    depth: int


def walk(model: Model) -> Extent:
    search = Search(model)
    level = set(search.cells.first_states())
    seen: set[int] = set()
    transitions, depth = 0, -1
    while level:
        depth += 1
        seen |= level
        successors = [after for state in level for _, after in search.steps.of(state)]
        transitions += len(successors)
        level = set(successors) - seen
    return Extent(len(seen), transitions, depth)
