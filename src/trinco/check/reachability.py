"""Reachability: wherever a run has come to, can it still come to this? (In temporal logic: AG EF.)

It is less than liveness, which asks whether a run *must* come to it. So it needs no fairness and can be asked under
symmetry too. A deadlock has been found by the search; what is found here are traps, in which much may go on for ever,
but never leads there.

A state is good if the property holds in it, or if a step leads from it to a good state; whoever is not good in the end
is in a trap. Nobody remembers predecessors, so all levels are gone over again and again until nothing changes, in each
round only the states that are not good yet. From the last level to the first, since most states have a good successor
one level on; then from the first to the last, for what is good only by going back; and so on in turn.
"""

from collections.abc import Callable
from typing import NamedTuple

from trinco.check.search import Search, Violation
from trinco.check.view import View


class Trap(NamedTuple):
    violation: Violation
    state: int
    """The first state, by levels, in which it is too late."""


def find_trap(search: Search) -> Trap | None:
    """A state from which something that the model wants to be reachable is not. Needs a search that saw all states."""
    for name, holds in search.model.reachable.items():
        search.progress.stage = f"looking for traps without '{name}'"
        search.report()
        trapped = _trapped(search, holds)
        if trapped:
            return Trap(_too_late(name), trapped[0])
    return None


def judge_prospects(search: Search, state: int) -> Violation | None:
    """What can never happen any more from one state on, for a script that ends in it."""
    for name, holds in search.model.reachable.items():
        seen, ahead = {state}, [state]
        while ahead and not any(holds(View(search.cells, each)) for each in ahead):
            ahead = [each for each in set(search.successors(ahead)) if each not in seen]
            seen.update(ahead)
        if not ahead:
            return _too_late(name)
    return None


def _too_late(name: str) -> Violation:
    return Violation("unreachable", f"from here {name} can never happen")


def _trapped(search: Search, holds: Callable[[View], bool]) -> list[int]:
    """All states that are not good, in order of levels."""
    good = {state for state in search.seen if holds(View(search.cells, state))}
    doubtful = [[state for state in level if state not in good] for level in search.levels]
    upwards = True
    while _go_over(search, doubtful[::-1] if upwards else doubtful, good):
        upwards = not upwards
    return [state for level in doubtful for state in level]


def _go_over(search: Search, doubtful: list[list[int]], good: set[int]) -> bool:
    """One round: take what turns out to be good from the doubtful. True if there was any."""
    known = len(good)
    for level in doubtful:
        for state in level:
            if search.leads_into(state, good):
                good.add(state)
        level[:] = [state for state in level if state not in good]
        search.report()
    return len(good) > known
