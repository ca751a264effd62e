"""Liveness by fair cycles: is there a run in which somebody waits for ever although everything that must happen does?

Deadlock is found by the search. What remains are runs that go on for ever, and in a finite graph those end in a
strongly connected component. For each process: take the states in which it waits, cut them into components, and ask of
each whether a run can stay in it *fairly*: every action that must happen (a delivery, a leaving, a timer, a tick) is
either taken inside the component or is not possible in some state of it. With weak fairness this is exact: an action
that is possible in every state of a component and never taken in it is also neglected by every smaller cycle.

So the answer is sound on cyclic graphs. Mostly there is no cycle at all in which somebody waits, which is seen cheaply
and first. ``ctx.choose`` is chosen by an adversary: a random back-off that may lose for ever is reported.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from trinco.check.components import beyond_cycles, components
from trinco.check.search import Search, Violation
from trinco.check.steps import Action, Step
from trinco.check.view import View
from trinco.core.context import WAITING


@dataclass(frozen=True)
class Lasso:
    """A run for ever: a state, and a fair cycle from it back to it."""

    violation: Violation
    first: int
    cycle: list[Step]


def find_starvation(search: Search) -> Lasso | None:
    """A fair run in which some process waits for ever, if there is one. Needs a search that ended without symmetry:
    a renamed process is not the one that waits."""
    assert search.symmetry is None
    waiting = _with_somebody_waiting(search)
    recurring = beyond_cycles(waiting, partial(_staying, search, waiting))
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


def _with_somebody_waiting(search: Search) -> set[int]:
    """Only among these can there be a cycle in which somebody waits all the time, and they are far fewer than all."""
    cells, processes = search.cells, set(search.model.processes)
    waits = [cell.node in processes and cells.local(number).phase is WAITING for number, cell in enumerate(cells.cells)]
    return {state for state in search.seen if any(waits[cell] for cell in cells.unpack(state))}


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
        """A cycle in the region that neglects nothing, from the first of its states that the search found."""
        first = next(state for level in self._search.levels for state in level if state in self._states)
        cycle: list[Step] = []
        for action in {action: None for action, _ in self._actions(first)}:
            cycle += self._attend_to(_end(first, cycle), action)
        cycle += self._way(_end(first, cycle), {first}, at_least_one=not cycle)
        return Lasso(starving(self._search, cycle, process), first, cycle)

    def _attend_to(self, start: int, action: Action) -> list[Step]:
        """A way to where the action is impossible, or else to where it is taken."""
        enabled = {state for state in self._states if any(each == action for each, _ in self._actions(state))}
        if enabled != self._states:
            return self._way(start, self._states - enabled)
        taking = {
            state: step
            for state in sorted(self._states)
            for each, step in self._actions(state)
            if each == action and step.state in self._states
        }
        way = self._way(start, set(taking))
        return [*way, taking[_end(start, way)]]

    def _way(self, start: int, targets: set[int], *, at_least_one: bool = False) -> list[Step]:
        """The shortest way inside the region from a state to one of the targets."""
        if start in targets and not at_least_one:
            return []
        came_by: dict[int, tuple[int, Step]] = {}
        queue = deque([start])
        while queue:
            state = queue.popleft()
            for step in self._search.steps.of(state):
                if step.state in self._states and step.state not in came_by:
                    came_by[step.state] = state, step
                    if step.state in targets:
                        return _unwind(came_by, start, step.state)
                    queue.append(step.state)
        raise AssertionError("in a strongly connected component every state leads to every other")


def starving(search: Search, cycle: Sequence[Step], process: int) -> Violation:
    """What is wrong with a fair cycle in which a process waits all the time."""
    enters = any(View(search.cells, step.state).believers() for step in cycle)
    kind, rest = ("starvation", "others enter again and again") if enters else ("livelock", "nobody enters")
    return Violation(kind, f"p{process} can wait for ever while {rest}, though everything that must happen does")


def judge_cycle(search: Search, cycle: Sequence[Step]) -> Violation | None:
    """What is wrong with going round this cycle for ever: nothing, unless it is fair and somebody waits all along."""
    states = {step.state for step in cycle}
    possible = [{search.steps.action(step) for step in search.steps.of(state)} for state in states]
    neglected = set.intersection(*possible) - {search.steps.action(step) for step in cycle} - {None}
    waiting = [set(View(search.cells, state).waiting()) for state in states]
    starved = set.intersection(*waiting)
    return starving(search, cycle, min(starved)) if starved and not neglected else None


def _end(start: int, way: Sequence[Step]) -> int:
    return way[-1].state if way else start


def _unwind(came_by: dict[int, tuple[int, Step]], start: int, end: int) -> list[Step]:
    way: list[Step] = []
    state = end
    while not way or state != start:
        state, step = came_by[state]
        way.append(step)
    return way[::-1]
