"""Liveness by fair cycles: is there a run in which somebody waits for ever although everything that must happen does?

Deadlock is found by the search. What remains are runs that go on for ever, and in a finite graph those end in a
strongly connected component. For each process: take the states in which it waits, cut them into components, and ask of
each whether a run can stay in it *fairly*: every action that must happen (a delivery, a leaving, a timer, a tick) is
either taken inside the component or is not possible in some state of it. With weak fairness this is exact: an action
that is possible in every state of a component and never taken in it is also neglected by every smaller cycle.

So the answer is sound on cyclic graphs. Most graphs with a bound on entries have no cycle at all, which is seen cheaply
and first. ``ctx.choose`` is chosen by an adversary: a random back-off that may lose for ever is reported.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from trinco.check.components import beyond_cycles, components
from trinco.check.search import Search, Violation
from trinco.check.steps import Action, Step
from trinco.check.view import View
from trinco.core.context import WAITING


@dataclass(frozen=True)
class Lasso:
    """A run for ever: the way to a state, and a fair cycle from it back to it."""

    violation: Violation
    stem: list[int]
    cycle: list[int]


def find_starvation(search: Search) -> Lasso | None:
    """A fair run in which some process waits for ever, if there is one. Needs a search that ended without symmetry:
    a renamed process is not the one that waits."""
    assert search.symmetry is None
    recurring = beyond_cycles(search.seen, partial(_successors, search))
    for states in _cycles(search, recurring):
        for process in search.model.processes:
            lasso = _starve(search, states, process)
            if lasso:
                return lasso
    return None


def _starve(search: Search, states: set[int], process: int) -> Lasso | None:
    """A fair cycle among these states in all of which the process waits."""
    cells = search.cells
    waiting = {state for state in states if cells.local(cells.at(state, process)).phase is WAITING}
    for component in _cycles(search, waiting) if waiting != states else [states]:
        region = _Region(search, component)
        if not region.neglected():
            return region.lasso(process)
    return None


def _cycles(search: Search, states: set[int]) -> Iterator[set[int]]:
    """The strongly connected components of these states in which a run can stay for ever."""
    staying = partial(_staying, search, states)
    for component in components(sorted(states), staying):
        if len(component) > 1 or any(state in staying(state) for state in component):
            yield component


def _successors(search: Search, state: int) -> list[int]:
    return search.successors((state,))


def _staying(search: Search, states: set[int], state: int) -> list[int]:
    return [successor for successor in search.successors((state,)) if successor in states]


class _Region:
    """One strongly connected component in which somebody waits all the time."""

    def __init__(self, search: Search, states: set[int]) -> None:
        self._search = search
        self._states = states

    def _actions(self, state: int) -> Iterator[tuple[Action, Step]]:
        """What must happen and can happen in a state."""
        for step in self._search.steps.of(state):
            action = self._search.steps.action(step)
            if action is not None:
                yield action, step

    def neglected(self) -> set[Action]:
        """The actions that are possible all the time and never taken inside."""
        possible = [{action for action, _ in self._actions(state)} for state in self._states]
        taken = {
            action for state in self._states for action, step in self._actions(state) if step.state in self._states
        }
        return set.intersection(*possible) - taken

    def lasso(self, process: int) -> Lasso:
        """The shortest way into the region, and a cycle in it that neglects nothing."""
        first = next(state for level in self._search.levels for state in level if state in self._states)
        cycle = [first]
        for action in {action: None for action, _ in self._actions(first)}:
            cycle += self._attend_to(cycle[-1], action)
        cycle += self._way(cycle[-1], {first}, at_least_one=len(cycle) == 1)
        enters = any(View(self._search.cells, state).believers() for state in cycle)
        kind, rest = ("starvation", "others enter again and again") if enters else ("livelock", "nobody enters")
        text = f"p{process} can wait for ever while {rest}, though everything that must happen does"
        return Lasso(Violation(kind, text), self._search.path(first), cycle)

    def _attend_to(self, start: int, action: Action) -> list[int]:
        """A way to where the action is impossible, or else to where it is taken."""
        enabled = {state for state in self._states if any(each == action for each, _ in self._actions(state))}
        if enabled != self._states:
            return self._way(start, self._states - enabled)
        taking = {
            state: step.state
            for state in sorted(self._states)
            for each, step in self._actions(state)
            if each == action and step.state in self._states
        }
        way = self._way(start, set(taking))
        return [*way, taking[way[-1] if way else start]]

    def _way(self, start: int, targets: set[int], *, at_least_one: bool = False) -> list[int]:
        """The shortest way inside the region from a state to one of the targets, without the start itself."""
        if start in targets and not at_least_one:
            return []
        came_from: dict[int, int] = {}
        queue = deque([start])
        while queue:
            state = queue.popleft()
            for successor in _staying(self._search, self._states, state):
                if successor not in came_from:
                    came_from[successor] = state
                    if successor in targets:
                        return _unwind(came_from, start, successor)
                    queue.append(successor)
        raise AssertionError("in a strongly connected component every state leads to every other")


def _unwind(came_from: dict[int, int], start: int, end: int) -> list[int]:
    way = [end]
    while came_from[way[-1]] != start:
        way.append(came_from[way[-1]])
    return way[::-1]
