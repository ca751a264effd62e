"""The search: breadth first over all states, so that the first violation found is a shortest one.

The inner loop is the one place of the checker that must be fast. All it does is look up the moves of each cell and add
them to the state; see ``cells`` for why that is enough. Everything rare (ticks, liars, news for the environment,
symmetry, a state in which something may be wrong) leaves the loop through one test each.
"""

import gc
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from trinco.check.cells import Cells
from trinco.check.handlers import Handlers, Outcome
from trinco.check.memory import resident_bytes
from trinco.check.model import Model
from trinco.check.steps import Steps
from trinco.check.symmetry import Symmetry
from trinco.check.view import View

CHUNK = 20_000
"""States between two looks at the clock, the memory and the bound."""


class Verdict(Enum):
    HOLDS = "no violation"
    VIOLATED = "violation"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Violation:
    kind: str
    """What is broken: safety, contract, monitor, never, deadlock, starvation, livelock."""
    text: str


@dataclass
class Progress:
    """What has been explored so far. One object, kept up to date: whoever interrupts the search can still read it."""

    states: int = 0
    depth: int = 0
    frontier: int = 0
    handler_runs: int = 0
    transitions: int = 0
    seconds: float = 0.0
    stage: str = "searching"

    @property
    def states_per_second(self) -> float:
        return self.states / self.seconds if self.seconds else 0.0

    @property
    def memo_hit_rate(self) -> float:
        return 1 - self.handler_runs / self.transitions if self.transitions else 0.0


Listener = Callable[[Progress], None]


@dataclass
class Search:
    """One search over one model. ``run`` fills in ``violation`` and ``state``; ``parents`` tells the way there."""

    model: Model
    max_states: int = 5_000_000
    max_bytes: int = 4 << 30
    listener: Listener | None = None
    progress: Progress = field(default_factory=Progress)
    violation: Violation | None = None
    state: int | None = None
    """The state that shows the violation."""

    def __post_init__(self) -> None:
        self.handlers = Handlers(self.model)
        self.cells = Cells(self.model, self.handlers)
        self.steps = Steps(self.cells)
        self.symmetry = Symmetry(self.cells) if self.model.symmetric and self.model.reductions else None
        self.parents: dict[int, int | None] = {}
        self.starts: dict[int, tuple[Outcome, ...]] = {}
        self.unmet = dict(self.model.sometimes)
        self._began = time.perf_counter()

    def run(self) -> Verdict:
        """Search until a violation, the end, or a bound."""
        collecting = gc.isenabled()
        gc.disable()  # states are ints and tables of ints: there are no cycles to find, and looking costs a third
        try:
            return self._levels()
        finally:
            self.report()
            if collecting:
                gc.enable()

    def _levels(self) -> Verdict:
        self.starts = {self._canonical(state): how for state, how in self.cells.first_states().items()}
        self.parents = dict.fromkeys(self.starts)
        frontier = list(self.starts)
        if any(self._is_wrong(state) for state in frontier) or self._look_closer(frontier):
            return Verdict.VIOLATED
        while frontier:
            self.progress.frontier = len(frontier)
            found: list[int] = []
            for start in range(0, len(frontier), CHUNK):
                wrong = self._expand(frontier[start : start + CHUNK], found)
                if wrong:
                    return Verdict.VIOLATED
                self.report()
                if self._out_of_bounds():
                    return Verdict.INCONCLUSIVE
            if self._look_closer(found):
                return Verdict.VIOLATED
            frontier = found
            self.progress.depth += bool(found)
        return Verdict.HOLDS

    def _expand(self, frontier: list[int], found: list[int]) -> bool:
        """Add the unseen successors of some states. True when one of them is wrong; it is then in ``state``."""
        parents, moves, tell = self.parents, self.cells.moves, self.cells.tell
        more, floor = self.steps.has_more_than_moves, self.cells.floor
        canonical = self.symmetry.canonical if self.symmetry else None
        unpack = struct.Struct(f"<{len(self.model.nodes)}I").unpack_from
        size = self.cells.size_in_bytes
        transitions = 0
        for state in frontier:
            cells = unpack(state.to_bytes(size, "little"))
            for cell in cells:
                for difference, arrivals, news in moves[cell]:
                    successor = state + difference
                    for to, arrival in arrivals:
                        successor += arrival[cells[to]]
                    if news:
                        told = tell(successor, news)
                        if told is None:
                            continue
                        successor = told
                    transitions += 1
                    if canonical:
                        successor = canonical(successor)
                    if successor not in parents:
                        parents[successor] = state
                        found.append(successor)
                        if (news or successor < floor) and self._is_wrong(successor):
                            self.progress.transitions += transitions
                            return True
            if more and self._expand_further(state, found):
                return True
        self.progress.transitions += transitions
        return False

    def _expand_further(self, state: int, found: list[int]) -> bool:
        """The same for the steps that are not the move of one cell."""
        for _, reached in self.steps.more_than_moves(state):
            self.progress.transitions += 1
            successor = self._canonical(reached)
            if successor not in self.parents:
                self.parents[successor] = state
                found.append(successor)
                if self._is_wrong(successor):
                    return True
        return False

    def _canonical(self, state: int) -> int:
        return self.symmetry.canonical(state) if self.symmetry else state

    def _is_wrong(self, state: int) -> bool:
        """Whether a state breaks safety or the contract, or is a deadlock; it is then kept."""
        self.violation = self.judge(state)
        if self.violation:
            self.state = state
        return self.violation is not None

    def judge(self, state: int) -> Violation | None:
        """What is wrong with a state, seen by itself."""
        if self.cells.believers(state) > self.model.k:
            return self._unsafe(View(self.cells, state))
        if state < self.cells.floor:
            return self._deadlock(state)
        return None

    def _unsafe(self, view: View) -> Violation:
        complaint = view.broken_contract()
        if complaint:
            return Violation("contract", complaint)
        complaint = view.complaint()
        if complaint:
            return Violation("monitor", complaint)
        inside = " and ".join(f"p{node}" for node in view.believers())
        return Violation("safety", f"{inside} are inside together, at most {self.model.k} may be")

    def _deadlock(self, state: int) -> Violation | None:
        waiting = View(self.cells, state).waiting()
        if not waiting or any(True for _ in self.steps.ticks(state)):
            return None
        names = " and ".join(f"p{node}" for node in waiting)
        return Violation("deadlock", f"{names} wait{'s' if len(waiting) == 1 else ''} and nothing can move")

    def _look_closer(self, states: list[int]) -> bool:
        """The model's own properties, which need to see whole states."""
        if not self.model.never and not self.unmet:
            return False
        for state in states:
            view = View(self.cells, state)
            for name in [name for name, holds in self.unmet.items() if holds(view)]:
                del self.unmet[name]
            for forbidden in self.model.never:
                if forbidden(view):
                    self.state = state
                    self.violation = Violation("never", (forbidden.__doc__ or forbidden.__name__).strip())
                    return True
        return False

    def _out_of_bounds(self) -> bool:
        return len(self.parents) > self.max_states or resident_bytes() > self.max_bytes

    def report(self) -> None:
        self.progress.states = len(self.parents)
        self.progress.handler_runs = self.handlers.runs
        self.progress.seconds = time.perf_counter() - self._began
        if self.listener:
            self.listener(self.progress)

    def path(self, state: int) -> list[int]:
        """The states from a start to this one, as they were found (under symmetry: one of each kind)."""
        return list(self._backwards(state))[::-1]

    def _backwards(self, state: int | None) -> Iterator[int]:
        while state is not None:
            yield state
            state = self.parents[state]
