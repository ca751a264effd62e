"""Liveness by fair cycles: is there a run in which somebody waits for ever although everything that must happen does?

Deadlock is found by the search. What remains are runs that go on for ever, and in a finite graph those end in a
strongly connected component. For each process: take the states in which it waits, cut them into components, and ask of
each whether a run can stay in it *fairly*: every action that must happen (a delivery, a leaving, a timer, a tick) is
either taken inside the component or is not possible in some state of it. With weak fairness this is exact: an action
that is possible in every state of a component and never taken in it is also neglected by every smaller cycle.

So the answer is sound on cyclic graphs. Mostly there is no cycle at all in which somebody waits, which is seen cheaply
and first. ``ctx.choose`` is chosen by an adversary: a random back-off that may lose for ever is reported.

A timer that is set anew is not neglected: the time for which it had been set is forgotten. One that has fired as often
as the model lets it would fire again in the real world. Where somebody waits and a run
neglects nothing but that, nobody can say what would become of it: it is neither starvation nor a proof of the contrary.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from trinco.check.components import beyond_cycles, components
from trinco.check.search import Search, Violation
from trinco.check.steps import Action, Step, Steps
from trinco.check.view import View
from trinco.core.context import WAITING


@dataclass(frozen=True)
class Lasso:
    """A run for ever: a state, and a fair cycle from it back to it."""

    violation: Violation
    first: int
    cycle: list[Step]


@dataclass(frozen=True)
class Outlook:
    """Whether somebody can wait for ever: there is a run in which it does, there is none, or it cannot be told."""

    lasso: Lasso | None = None
    cut_off: bool = False
    """Whether somebody may wait where nothing is left that must happen but timers that have used up their bound."""


def find_starvation(search: Search) -> Outlook:
    """A fair run in which some process waits for ever, if there is one. Needs a search that ended without symmetry:
    a renamed process is not the one that waits."""
    assert search.symmetry is None
    waiting = _with_somebody_waiting(search)
    cut_off = _stops_at_a_bound(search, waiting)
    recurring = beyond_cycles(waiting, partial(_staying, search, waiting))
    for states in _cycles(search, recurring):
        for process in search.model.processes:
            for region in _regions(search, states, process):
                neglected = region.neglected()
                if not neglected:
                    return Outlook(region.lasso(process))
                cut_off = cut_off or region.is_cut_off(neglected)
    return Outlook(cut_off=cut_off)


def _regions(search: Search, states: set[int], process: int) -> Iterator["_Region"]:
    """Where, among these states, a run can go round for ever while the process waits."""
    cells = search.cells
    waiting = {state for state in states if cells.local(cells.at(state, process)).phase is WAITING}
    for component in _cycles(search, waiting) if waiting != states else [states]:
        yield _Region(search, component)


def _stops_at_a_bound(search: Search, waiting: set[int]) -> bool:
    """Whether, in one of these states, nothing must happen but what timers that have used up their bound would do."""
    cells, steps = search.cells, search.steps
    used_up = {number for number in range(len(cells.cells)) if cells.used_up(number)}
    if not used_up:
        return False
    resting = {number for number in range(len(cells.cells)) if not cells.owes(number)}
    return any(
        resting.issuperset(here)
        and not used_up.isdisjoint(here)
        and any(steps.withheld(state))
        and not any(map(steps.action, steps.of(state)))
        for state, here in ((state, cells.unpack(state)) for state in waiting)
    )


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

    def _owed(self, state: int) -> set[Action]:
        """What must happen sooner or later, whether the model has any of it left or not."""
        steps = self._search.steps
        return _actions(steps, state) | {*steps.withheld(state)}

    def _inside(self, state: int) -> Iterator[Step]:
        return (step for step in self._search.steps.of(state) if step.state in self._states)

    def neglected(self) -> set[Action]:
        """What is owed all the time and never done inside."""
        done = {
            each for state in self._states for step in self._inside(state) for each in _done(self._search.steps, step)
        }
        return set.intersection(*map(self._owed, self._states)) - done

    def is_cut_off(self, neglected: set[Action]) -> bool:
        """Whether what is neglected is only what the model has no more of. That is the same all over the region."""
        return neglected <= {*self._search.steps.withheld(next(iter(self._states)))}

    def lasso(self, process: int) -> Lasso:
        """A cycle in the region that neglects nothing, from the first of its states that the search found."""
        first = next(state for level in self._search.levels for state in level if state in self._states)
        cycle: list[Step] = []
        steps = self._search.steps
        owed = (*map(steps.action, steps.of(first)), *steps.withheld(first))
        for action in dict.fromkeys(each for each in owed if each is not None):
            cycle += self._attend_to(_end(first, cycle), action)
        cycle += self._way(_end(first, cycle), {first}, at_least_one=not cycle)
        return Lasso(starving(self._search, cycle, process), first, cycle)

    def _attend_to(self, start: int, action: Action) -> list[Step]:
        """A way to where the action is not owed, or else to where it is done."""
        owing = {state for state in self._states if action in self._owed(state)}
        if owing != self._states:
            return self._way(start, self._states - owing)
        doing = {
            state: step
            for state in sorted(self._states)
            for step in self._inside(state)
            if action in _done(self._search.steps, step)
        }
        way = self._way(start, set(doing))
        return [*way, doing[_end(start, way)]]

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
    steps, states = search.steps, {step.state for step in cycle}
    owed = [_actions(steps, state) | {*steps.withheld(state)} for state in states]
    neglected = set.intersection(*owed) - {each for step in cycle for each in _done(steps, step)}
    waiting = [set(View(search.cells, state).waiting()) for state in states]
    starved = set.intersection(*waiting)
    return starving(search, cycle, min(starved)) if starved and not neglected else None


def _actions(steps: Steps, state: int) -> set[Action]:
    """What must happen sooner or later, and can happen in a state."""
    return {action for action in map(steps.action, steps.of(state)) if action is not None}


def _done(steps: Steps, step: Step) -> Iterator[Action]:
    """What nobody can say is neglected where this step is taken: itself, and timers that it sets anew, since the time
    for which they had been set is forgotten."""
    action = steps.action(step)
    if action is not None:
        yield action
    yield from steps.begun_again(step)


def _end(start: int, way: Sequence[Step]) -> int:
    return way[-1].state if way else start


def _unwind(came_by: dict[int, tuple[int, Step]], start: int, end: int) -> list[Step]:
    way: list[Step] = []
    state = end
    while not way or state != start:
        state, step = came_by[state]
        way.append(step)
    return way[::-1]
