"""Every step out of a state, with its labels: the plain, slow twin of the search's inner loop.

Paths, fairness and pictures are told from here; ``search`` runs over the same moves without the labels. Two kinds
of step are not the move of one cell: a tick of the clock that nodes share, and what a liar does (see ``lies``).
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from trinco.check.cells import Cells, Label, Move
from trinco.check.environment import SHARED_CLOCK, TICK
from trinco.check.handlers import Event, Outcome
from trinco.check.lies import Lies
from trinco.check.memo import Memo
from trinco.check.model import Timers
from trinco.core.event import Kind

Action: TypeAlias = tuple[int, Event]


class Step(NamedTuple):
    """One transition: what happened, and where it leads. Only a liar's step has more than one label."""

    labels: tuple[Label, ...]
    state: int


class Steps:
    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._model = cells.model
        self._ticked: Memo[int, tuple[int, Outcome]] = Memo(self._tick)
        self.lies = Lies(cells)
        self.tick_differences: Memo[int, int] = Memo(lambda cell: self._ticked[cell][0])
        """What one tick adds to the weight of a cell."""
        clocks = cells.model.clocks
        self._waits_for_quiet = cells.model.timers is Timers.PUNCTUAL
        free = bool(clocks and not clocks.drifting) and not self._waits_for_quiet
        self.tick_is_a_sum = free and not cells.environment.observes(Kind.EXPIRE)
        """Whether a tick of the shared clock is no more than what it does to each cell: nothing forbids it and the
        environment sees nothing of it."""

    def of(self, state: int) -> Iterator[Step]:
        cells = self._cells.unpack(state)
        for cell in cells:
            for move, label in self._cells.labelled_moves[cell]:
                yield from self._step(state, move, (label,))
        for move, labels in self.lies.labelled(cells):
            yield from self._step(state, move, labels)
        yield from self.ticks(state)

    def _step(self, state: int, move: Move, labels: tuple[Label, ...]) -> Iterator[Step]:
        after = self._cells.tell(self._cells.apply(state, move), move[2])
        if after is not None:
            yield Step(labels, after)

    def ticks(self, state: int) -> Iterator[Step]:
        """The tick of the clock that nodes share, where it changes anything."""
        if self._model.clocks and not (self._waits_for_quiet and self._is_busy(state)):
            yield from self._shared_tick(state, self._model.clocks.drifting)

    def _is_busy(self, state: int) -> bool:
        """Whether something is under way or due at one of the nodes."""
        return any(map(self._cells.is_busy, self._cells.unpack(state)))

    def _shared_tick(self, state: int, drifting: frozenset[int]) -> Iterator[Step]:
        """All clocks that do not drift on their own move on together. Where nothing changes, nothing happened."""
        steady = [(node, cell) for node, cell in enumerate(self._cells.unpack(state)) if node not in drifting]
        ticks = [(node, *self._ticked[cell]) for node, cell in steady]
        after = state + sum(difference for _, difference, _ in ticks)
        seen = [each for node, _, outcome in ticks for each in self._cells.environment.visible(node, outcome.news)]
        told = self._cells.tell(after, (*(((SHARED_CLOCK, TICK),) if drifting else ()), *seen))
        if told is not None and told != state:
            yield Step((Label(SHARED_CLOCK, Event("tick"), Outcome(-1)),), told)

    def _tick(self, cell: int) -> tuple[int, Outcome]:
        """What one tick adds to the weight of a cell, and what is to be seen of it."""
        node, local, inbox = self._cells.cells[cell]
        outcome = self._cells.tick(local)
        after = self._cells.intern(node, outcome.local, inbox)
        return self._cells.weights[after] - self._cells.weights[cell], outcome

    def withheld(self, state: int) -> Iterator[Action]:
        """What would happen sooner or later, and the model has no more of: timers that have fired as often as they may.
        What a liar's would do is nobody's to count on."""
        for node, cell in enumerate(self._cells.unpack(state)):
            for name in () if node in self._model.byzantine else self._cells.used_up(cell):
                yield node, Event("timer", name)

    def begun_again(self, step: Step) -> Iterator[Action]:
        """The timers that a step sets, anew or again."""
        return ((label.node, Event("timer", name)) for label in step.labels for name in label.outcome.armed)

    def action(self, step: Step) -> Action | None:
        """What a fair run does again and again as long as it can, whatever its outcome. Nobody has to ask, to crash or
        to come back and a liar has to do nothing, so those are None."""
        label = step.labels[0]
        asks = label.event.kind == "input" and label.event.name != "release"
        if asks or label.event.kind == "restart" or label.crashes or label.node in self._model.byzantine:
            return None
        return label.node, label.event
