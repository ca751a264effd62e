"""Every step out of a state, with its labels: the plain, slow twin of the search's inner loop.

Paths, fairness and pictures are told from here; ``search`` runs over the same moves without the labels. Two kinds
of step are not the move of one cell and are found only here: a tick of the clock that nodes share, and what a liar
does. A liar's single answer is delivered in the same step, a reduction that leaves far fewer states: it can delay by
not being scheduled. When it speaks to several at once, its messages travel as everybody's do, since one of them may be
overtaken by what another causes.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from trinco.check.cells import Cells, Label
from trinco.check.environment import SHARED_CLOCK, TICK
from trinco.check.handlers import Event, Outcome

Action: TypeAlias = tuple[int, Event]


class Step(NamedTuple):
    """One transition: what happened, and where it leads. Only a liar's step has more than one label."""

    labels: tuple[Label, ...]
    state: int


class Steps:
    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._model = cells.model
        self._ticked: dict[int, tuple[int, Outcome]] = {}
        self.has_more_than_moves = bool(cells.model.byzantine or cells.model.clocks)

    def of(self, state: int) -> Iterator[Step]:
        for cell in self._cells.unpack(state):
            for move, label in self._cells.labelled_moves(cell):
                after = self._cells.tell(self._cells.apply(state, move), move[2])
                if after is not None:
                    yield Step((label,), after)
        yield from self.more_than_moves(state)

    def more_than_moves(self, state: int) -> Iterator[Step]:
        """The steps that are not the move of one cell."""
        for liar in sorted(self._model.byzantine):
            yield from self._lies(state, liar)
        yield from self.ticks(state)

    def ticks(self, state: int) -> Iterator[Step]:
        """The tick of the clock that nodes share, where it changes anything."""
        if self._model.clocks:
            yield from self._shared_tick(state, self._model.clocks.drifting)

    def _shared_tick(self, state: int, drifting: frozenset[int]) -> Iterator[Step]:
        """All clocks that do not drift on their own move on together. Where nothing changes, nothing happened."""
        steady = [(node, cell) for node, cell in enumerate(self._cells.unpack(state)) if node not in drifting]
        ticks = [(node, *self._tick(cell)) for node, cell in steady]
        after = state + sum(difference for _, difference, _ in ticks)
        seen = [each for node, _, outcome in ticks for each in self._cells.environment.visible(node, outcome.news)]
        told = self._cells.tell(after, (*(((SHARED_CLOCK, TICK),) if drifting else ()), *seen))
        if told is not None and told != state:
            yield Step((Label(SHARED_CLOCK, Event("tick"), Outcome(-1)),), told)

    def _tick(self, cell: int) -> tuple[int, Outcome]:
        """What one tick adds to the weight of a cell, and what is to be seen of it."""
        known = self._ticked.get(cell)
        if known is None:
            node, local, inbox = self._cells.cells[cell]
            outcome = self._cells.tick(local)
            after = self._cells.intern(node, outcome.local, inbox)
            known = self._ticked[cell] = self._cells.weights[after] - self._cells.weights[cell], outcome
        return known

    def _lies(self, state: int, liar: int) -> Iterator[Step]:
        """Each thing the liar may do now, with the reaction of the one it answers."""
        for label, inbox in self._cells.possible(self._cells.at(state, liar)):
            after = self._cells.put(state, liar, label.outcome.local, inbox)
            told = self._cells.tell(after, self._cells.environment.news(label))
            if told is None:
                continue
            if self._is_delivered_at_once(told, label):
                yield from self._reactions(told, label)
            else:
                yield Step((label,), self._cells.post(told, liar, label.outcome))

    def _is_delivered_at_once(self, state: int, label: Label) -> bool:
        """A single answer to somebody honest and alive, with nothing of the liar's on its way there that it must not
        overtake."""
        if not self._model.reductions or len(label.outcome.sends) != 1:
            return False
        to = label.outcome.sends[0][0]
        receiver = self._cells.cells[self._cells.at(state, to)]
        alive = self._cells.handlers.locals[receiver.local].alive
        return to not in self._model.byzantine and alive and label.node not in dict(receiver.inbox)

    def _reactions(self, state: int, lie: Label) -> Iterator[Step]:
        """Deliver the liar's answer in every way that can go."""
        ((to, message),) = lie.outcome.sends
        _, local, inbox = self._cells.cells[self._cells.at(state, to)]
        event = Event("deliver", "", lie.node, message)
        for outcome in self._cells.handlers.outcomes(to, local, event):
            for label in (Label(to, event, outcome), *self._cells.cut_short(to, local, event, outcome)):
                after = self._cells.put(state, to, label.outcome.local, inbox)
                told = self._cells.tell(self._cells.post(after, to, label.outcome), self._cells.environment.news(label))
                if told is not None:
                    yield Step((lie, label), told)

    def action(self, step: Step) -> Action | None:
        """What a fair run does again and again as long as it can, whatever its outcome. Nobody has to ask or to crash
        and a liar has to do nothing, so those are None."""
        label = step.labels[0]
        asks = label.event.kind == "input" and label.event.name != "release"
        if asks or label.crashes or label.node in self._model.byzantine:
            return None
        return label.node, label.event
