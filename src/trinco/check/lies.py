"""What liars do, with what follows from it at once.

A liar's single answer is delivered in the same step, a reduction that leaves far fewer states: it can delay by not
being scheduled. When it speaks to several at once, its messages travel as everybody's do, since one of them may be
overtaken by what another causes.

So a lie depends on two cells, the liar's and that of the one it answers, and is remembered for the two of them as a
move like any other: what it makes of both is one difference, also where the answer is answered to the liar at once,
and only what others receive is left to be looked up in the state.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeAlias

from trinco.check.cells import Cells, Inbox, Label, Move, Moves, by_effort
from trinco.check.handlers import Event
from trinco.check.memo import Memo

LabelledLie: TypeAlias = tuple[Move, tuple[Label, ...]]
"""The labels are the liar's step and, where its answer was delivered at once, the reaction."""


class Lies:
    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._liars = tuple(sorted(cells.model.byzantine))
        self._labelled: Memo[int, tuple[tuple[int, Memo[int, tuple[LabelledLie, ...]]], ...]] = Memo(self._lies)
        """By the liar's cell: for each thing it may do, on whose cell it depends (its own, if on nobody else's), and by
        that cell how it can go."""
        self._moves: Memo[int, tuple[tuple[int, Memo[int, Moves]], ...]] = Memo(self._by_witness)
        """The same for all that depends on one cell together, without the labels."""

    def moves(self, cells: Sequence[int]) -> list[Moves]:
        """All lies that are possible in a state of these cells."""
        moves = self._moves
        return [possible[cells[witness]] for liar in self._liars for witness, possible in moves[cells[liar]]]

    def labelled(self, cells: Sequence[int]) -> Iterator[LabelledLie]:
        for liar in self._liars:
            for witness, possible in self._labelled[cells[liar]]:
                yield from possible[cells[witness]]

    def _by_witness(self, number: int) -> tuple[tuple[int, Memo[int, Moves]], ...]:
        witnesses = dict.fromkeys(witness for witness, _ in self._labelled[number])
        return tuple((witness, Memo(partial(self._moves_seen_by, number, witness))) for witness in witnesses)

    def _moves_seen_by(self, number: int, witness: int, seen_from: int) -> Moves:
        lies = (possible[seen_from] for each, possible in self._labelled[number] if each == witness)
        return by_effort([move for ways in lies for move, _ in ways])

    def _lies(self, number: int) -> tuple[tuple[int, Memo[int, tuple[LabelledLie, ...]]], ...]:
        return tuple(
            (self._witness(label), Memo(partial(self._ways, number, label, inbox)))
            for label, inbox in self._cells.possible(number)
        )

    def _witness(self, lie: Label) -> int:
        """The one honest node that a lie is told to. The liar itself, where nobody hears it at once."""
        receivers = [to for to, _ in lie.outcome.sends]
        alone = len(receivers) == 1 and receivers[0] not in self._cells.model.byzantine
        return receivers[0] if alone and self._cells.model.reductions else lie.node

    def _ways(self, number: int, lie: Label, inbox: Inbox, witness: int) -> tuple[LabelledLie, ...]:
        if self._is_heard_at_once(lie, witness):
            return tuple(self._reactions(number, lie, inbox, witness))
        return ((self._cells.move(number, lie, inbox), (lie,)),)

    def _is_heard_at_once(self, lie: Label, witness: int) -> bool:
        """By somebody honest and alive, with nothing of the liar's on its way there that it must not overtake."""
        node, local, inbox = self._cells.cells[witness]
        return node != lie.node and self._cells.handlers.locals[local].alive and lie.node not in dict(inbox)

    def _reactions(self, number: int, lie: Label, inbox: Inbox, witness: int) -> Iterator[LabelledLie]:
        """Deliver the liar's answer in every way that can go."""
        to, local, _ = self._cells.cells[witness]
        event = Event("deliver", "", lie.node, lie.outcome.sends[0][1])
        after = self._cells.intern(lie.node, lie.outcome.local, inbox)
        for outcome in self._cells.handlers.outcomes(to, local, event):
            for label in (Label(to, event, outcome), *self._cells.cut_short(to, local, event, outcome)):
                yield self._both(number, after, witness, lie, label), (lie, label)

    def _both(self, before: int, after: int, witness: int, lie: Label, reaction: Label) -> Move:
        """The lie and the reaction as one move. What the witness sends finds the liar's cell as the lie has left it."""
        weights, environment = self._cells.weights, self._cells.environment
        difference, arrivals, news = self._cells.move(witness, reaction, self._cells.cells[witness].inbox)
        difference += weights[after] - weights[before]
        difference += sum(arrival[after] for to, arrival in arrivals if to == lie.node)
        others = tuple((to, arrival) for to, arrival in arrivals if to != lie.node)
        return difference, others, (*environment.news(lie), *news)
