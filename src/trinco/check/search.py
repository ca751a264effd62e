"""The search: breadth first over all states, so that the first violation found is a shortest one.

``_reached`` is the one loop of the checker that must be fast. All it does is look up the moves of each cell and add
them to the state (see ``cells`` for why that is enough), for a batch of states at a time; which of the results are new
is left to sets, and where there is symmetry only what may be new is renamed. No state remembers where it came from:
levels are kept, and the way to a state is found backwards from level to level, once, when it is wanted.
"""

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain

from trinco.check.cells import Cells, Move
from trinco.check.handlers import Handlers, Outcome
from trinco.check.memory import resident_bytes
from trinco.check.model import Model
from trinco.check.steps import Steps
from trinco.check.symmetry import Symmetry
from trinco.check.view import View

BATCH = 20_000
"""States that are expanded together, between two looks at the clock, the memory and the bound."""
BATCH_OF_CELLS = 10_000_000
"""And no more than have so many between them, if every node of each sends to every other: n successors, n messages in
each, and n cells in what one of these adds."""


class Verdict(Enum):
    HOLDS = "no violation"
    VIOLATED = "violation"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Violation:
    kind: str
    """What is broken: safety, contract, monitor, never, deadlock, starvation, livelock, unreachable."""
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
    """One search over one model. ``run`` fills in ``violation`` and ``state``; ``path`` tells the way there."""

    model: Model
    max_states: int = 5_000_000
    max_bytes: int = 4 << 30
    listener: Listener | None = None
    progress: Progress = field(default_factory=Progress)
    violation: Violation | None = None
    state: int | None = None
    """The state that shows the violation."""
    naming: tuple[int, ...] | None = None
    """Under symmetry, how the nodes of that state must be called for a property that names them."""

    def __post_init__(self) -> None:
        self.handlers = Handlers(self.model)
        self.cells = Cells(self.model, self.handlers)
        self.steps = Steps(self.cells)
        self.symmetry = Symmetry(self.cells) if self.model.symmetric and self.model.reductions else None
        self.batch = max(1, min(BATCH, BATCH_OF_CELLS // len(self.model.nodes) ** 3))
        self.seen: set[int] = set()
        self.levels: list[list[int]] = []
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
            if collecting:
                gc.enable()
            self.report()

    def _levels(self) -> Verdict:
        self.starts = {self._canonical(state): how for state, how in self.cells.first_states().items()}
        if self._add(set(self.starts), []):
            return Verdict.VIOLATED
        level = list(self.starts)
        while level:
            self.levels.append(level)
            self.progress.depth, self.progress.frontier = len(self.levels) - 1, len(level)
            found: list[int] = []
            for start in range(0, len(level), self.batch):
                reached = self._reached(level[start : start + self.batch])
                self.progress.transitions += len(reached)
                if self._add(self._kinds(reached), found):
                    self.levels.append([])
                    return Verdict.VIOLATED
                self.report()
                unfinished = found or start + self.batch < len(level)
                if unfinished and self._out_of_bounds():
                    return Verdict.INCONCLUSIVE
            level = found
        return Verdict.HOLDS

    def successors(self, states: Iterable[int]) -> list[int]:
        """Where every step out of these states leads; under symmetry, to the kept state of which kind."""
        reached = self._reached(states)
        return list(map(self.symmetry.canonical, reached)) if self.symmetry else reached

    def leads_into(self, state: int, kept: set[int]) -> bool:
        """Whether a step out of this state leads to one of these, all of which the search has kept. As in ``_kinds``,
        only what is not known by the name it has is renamed."""
        reached = self._reached((state,))
        if not kept.isdisjoint(reached):
            return True
        symmetry, seen = self.symmetry, self.seen
        return symmetry is not None and any(symmetry.canonical(each) in kept for each in reached if each not in seen)

    def _reached(self, states: Iterable[int]) -> list[int]:
        """Where every step out of these states leads, before anything is renamed. What is not the move of one cell
        (a lie, a tick of the shared clock) is as good as one: a look-up and a sum, unless the environment has a say."""
        from_bytes, size, moves_of = self.cells.from_bytes, self.cells.size_in_bytes, self.cells.moves.__getitem__
        lies = self.steps.lies.moves if self.model.byzantine else None
        tick = self.steps.tick_differences.__getitem__ if self.steps.tick_is_a_sum else None
        judged_ticks = self.steps.ticks if self.model.clocks and not tick else None
        reached: list[int] = []
        append = reached.append
        for state in states:
            cells = from_bytes(state.to_bytes(size, "little"))
            possible = map(moves_of, cells)
            for silent, telling_one, telling_many, with_news in chain(possible, lies(cells)) if lies else possible:
                for difference in silent:
                    append(state + difference)
                for difference, to, arrival in telling_one:
                    append(state + difference + arrival[cells[to]])
                for difference, arrivals in telling_many:
                    successor = state + difference
                    for to, arrival in arrivals:
                        successor += arrival[cells[to]]
                    append(successor)
                if with_news:
                    reached += self._told(state, with_news)
            if tick:
                later = state + sum(map(tick, cells))
                if later != state:
                    append(later)
            elif judged_ticks:
                reached += [step.state for step in judged_ticks(state)]
        return reached

    def _kinds(self, reached: list[int]) -> set[int]:
        """What was reached; under symmetry one of each kind, and only of what may be new.

        To rename is dear, so what is known by the name it has is left out first. That is sound whatever renaming would
        make of it, since it is kept already. And it would stay what it is: nodes take their columns along when they are
        renamed, so what is sorted stays sorted, and nodes with equal columns keep their places, as Python's sort is
        stable. (Only with several groups, or names inside columns, may a second sorting find more to do.)"""
        if not self.symmetry:
            return set(reached)
        return set(map(self.symmetry.canonical, set(reached) - self.seen))

    def _told(self, state: int, moves: tuple[Move, ...]) -> Iterator[int]:
        """Where the moves lead of which the environment must know, as far as it allows them."""
        for move in moves:
            successor = self.cells.tell(self.cells.apply(state, move), move[2])
            if successor is not None:
                yield successor

    def _add(self, states: set[int], found: list[int]) -> bool:
        """Take in what is new. True when something is wrong with one of the new states; it is then in ``state``."""
        states -= self.seen
        if not states:
            return False
        self.seen |= states
        found += states
        if min(states) < self.cells.floor or max(states) >= self.cells.ceiling:
            for state in sorted(state for state in states if not self.cells.floor <= state < self.cells.ceiling):
                self.violation = self.judge(state)
                if self.violation:
                    self.state = state
                    return True
        return self._look_closer(states)

    def _canonical(self, state: int) -> int:
        return self.symmetry.canonical(state) if self.symmetry else state

    def judge(self, state: int) -> Violation | None:
        """What is wrong with a state, seen by itself."""
        if state >= self.cells.ceiling:
            return self._unsafe(View(self.cells, state))
        if state < self.cells.floor:
            deadlock = self._deadlock(state)
            if deadlock:
                return deadlock
        return self._forbidden(View(self.cells, state))

    def _forbidden(self, view: View) -> Violation | None:
        for forbidden in self.model.never:
            if forbidden(view):
                return Violation("never", (forbidden.__doc__ or forbidden.__name__).strip())
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

    def _look_closer(self, states: Iterable[int]) -> bool:
        """The model's own properties, which need to see whole states, under every name the nodes may have."""
        if not self.model.never and not self.unmet:
            return False
        for state in sorted(states):
            for names in self.symmetry.namings() if self.symmetry else (None,):
                named = self.symmetry.rename(state, names) if self.symmetry and names else state
                view = View(self.cells, named)
                for name in [name for name, holds in self.unmet.items() if holds(view)]:
                    del self.unmet[name]
                self.violation = self._forbidden(view)
                if self.violation:
                    self.state, self.naming = state, names
                    return True
        return False

    def _out_of_bounds(self) -> bool:
        return len(self.seen) > self.max_states or resident_bytes() > self.max_bytes

    def report(self) -> None:
        self.progress.states = len(self.seen)
        self.progress.handler_runs = self.handlers.runs
        self.progress.seconds = time.perf_counter() - self._began
        if self.listener:
            self.listener(self.progress)

    def path(self, state: int) -> list[int]:
        """The states from a start to this one, as they were found (under symmetry: one of each kind)."""
        path = [state]
        depth = next((number for number, level in enumerate(self.levels) if state in level), len(self.levels) - 1)
        for level in reversed(self.levels[:depth]):
            path.append(self._predecessor(level, path[-1]))
        return path[::-1]

    def _predecessor(self, level: list[int], state: int) -> int:
        for start in range(0, len(level), self.batch):
            batch = level[start : start + self.batch]
            if state in self.successors(batch):
                return next(each for each in batch if state in self.successors([each]))
        raise AssertionError("a state of one level is a successor of one of the level before")
