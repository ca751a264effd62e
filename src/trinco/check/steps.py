"""Every step out of a state, with its labels: the plain, slow twin of the search's inner loop.

Paths, fairness and pictures are told from here; ``search`` runs over the same moves without the labels. Two kinds
of step are not the move of one cell and are found only here: a tick of the clock that nodes share, and what a liar
does. A liar's message is delivered in the same step (it can delay by not being scheduled, so nothing is lost), which
leaves far fewer states.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from trinco.check.cells import Cells, Label
from trinco.check.environment import SHARED_CLOCK
from trinco.check.handlers import Event, Outcome
from trinco.core.event import Kind
from trinco.core.message import Message

Sends: TypeAlias = tuple[tuple[int, Message], ...]
Action: TypeAlias = tuple[int, Event]


class Step(NamedTuple):
    """One transition: what happened, and where it leads. Only a liar's step has more than one label."""

    labels: tuple[Label, ...]
    state: int


class Steps:
    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._model = cells.model
        self._ticked: dict[int, int] = {}
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
        steady = (cell for node, cell in enumerate(self._cells.unpack(state)) if node not in drifting)
        after = state + sum(map(self._tick, steady))
        told = self._cells.tell(after, ((Kind.TICK, SHARED_CLOCK, None),) if drifting else ())
        if told is not None and told != state:
            yield Step((Label(SHARED_CLOCK, Event("tick"), Outcome(-1)),), told)

    def _tick(self, cell: int) -> int:
        """What one tick adds to the weight of a cell."""
        known = self._ticked.get(cell)
        if known is None:
            node, local, inbox = self._cells.cells[cell]
            after = self._cells.intern(node, self._cells.handlers.ticked(local), inbox)
            known = self._ticked[cell] = self._cells.weights[after] - self._cells.weights[cell]
        return known

    def _lies(self, state: int, liar: int) -> Iterator[Step]:
        """Each thing the liar may do now, with the reactions of those it speaks to."""
        for label, inbox in self._cells.possible(self._cells.at(state, liar)):
            after = self._cells.put(state, liar, label.outcome.local, inbox)
            yield from self._told(after, (), label, label.outcome.sends)

    def _told(self, state: int, before: tuple[Label, ...], label: Label, sends: Sends) -> Iterator[Step]:
        told = self._cells.tell(state, self._cells.environment.news(label))
        if told is not None:
            yield from self._reactions(told, (*before, label), sends)

    def _reactions(self, state: int, labels: tuple[Label, ...], sends: Sends) -> Iterator[Step]:
        """Deliver what the liar sent, one by one, in every way each delivery can go. Another liar is free to look at
        it when it likes."""
        if not sends:
            yield Step(labels, state)
            return
        liar, ((to, message), *rest) = labels[0].node, sends
        cell = self._cells.cells[self._cells.at(state, to)]
        if to in self._model.byzantine or not self._cells.handlers.locals[cell.local].alive:
            sent = self._cells.post(state, liar, Outcome(-1, ((to, message),)))
            yield from self._reactions(sent, labels, tuple(rest))
            return
        event = Event("deliver", "", liar, message)
        for outcome in self._cells.handlers.outcomes(to, cell.local, event):
            after = self._cells.post(self._cells.put(state, to, outcome.local, cell.inbox), to, outcome)
            yield from self._told(after, labels, Label(to, event, outcome), tuple(rest))

    def action(self, step: Step) -> Action | None:
        """What a fair run does again and again as long as it can, whatever its outcome. Nobody has to ask or to crash
        and a liar has to do nothing, so those are None."""
        label = step.labels[0]
        asks = label.event.kind == "input" and label.event.name != "release"
        if asks or label.crashes or label.node in self._model.byzantine:
            return None
        return label.node, label.event
