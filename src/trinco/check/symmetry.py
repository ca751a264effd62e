"""Symmetry: states that differ only in who is who are one state.

Where a protocol does not compare the ids of some nodes, any renaming of them leads from a run to a run. Of all the
states that renamings make of one, the search keeps the one whose *columns* are sorted: the column of node j is all that
anybody holds about j (its own state, what others keep about it, what it has in flight). One renaming a state, not one
for each permutation. Sorting need not tell ties apart to be sound: the outcome is always a renaming of the state.

A class takes part by two methods: ``column(j)``, what it holds about node j, and ``relabel(names)``, which renames the
ids in its fields; a message that carries ids has ``relabel(names)`` too, and returns the renamed message.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations, product
from operator import itemgetter
from typing import Any, TypeAlias

from trinco.check.cells import Cells, Inbox
from trinco.check.memo import Memo
from trinco.core import snapshot
from trinco.core.errors import UsageError
from trinco.core.message import Message

Names: TypeAlias = tuple[int, ...]
"""Node i is called ``names[i]``."""


class Symmetry:
    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._groups = [tuple(sorted(group)) for group in cells.model.symmetric]
        self._orders = [_Order(cells, group) for group in self._groups if len(group) > 1]
        self._nobody_renamed = tuple(range(len(cells.model.nodes)))
        self._renamed: Memo[Names, Memo[int, int]] = Memo(lambda names: Memo(partial(self._renaming, names)))
        """By names and cell: what the renaming adds to the weight of the cell."""
        self._refuse_what_breaks_symmetry()

    def _refuse_what_breaks_symmetry(self) -> None:
        model = self._cells.model
        members = {node for group in self._groups for node in group}
        drifting = model.clocks.drifting if model.clocks else frozenset()
        if members & (model.byzantine | drifting):
            raise UsageError("symmetry needs nodes without liars and drifting clocks")
        if model.monitors and members & set(model.processes):
            raise UsageError("symmetry needs processes that no monitor watches: it may remember who they are")
        for group in self._groups:
            kinds = {type(model.nodes[node]) for node in group}
            if len(kinds) > 1:
                names = " and ".join(sorted(kind.__name__ for kind in kinds))
                raise UsageError(f"{names} are not interchangeable: a symmetric group has one class")
        for node in model.nodes:
            if not (hasattr(node, "column") and hasattr(node, "relabel")):
                raise UsageError(f"symmetry needs column(j) and relabel(names) on {type(node).__name__}")

    def canonical(self, state: int) -> int:
        """The state of its kind that the search keeps."""
        for order in self._orders:
            cells = self._cells.unpack(state)
            names = order.sorting(cells)
            if names:
                state += sum(map(self._renamed[names].__getitem__, cells))
        return state

    def namings(self) -> Iterator[Names]:
        """Every way to call the nodes."""
        for orders in product(*(permutations(group) for group in self._groups)):
            names = list(self._nobody_renamed)
            for group, order in zip(self._groups, orders, strict=True):
                for node, name in zip(group, order, strict=True):
                    names[node] = name
            yield tuple(names)

    def undo_canonical(self, state: int, names: Names) -> Names:
        """If ``names`` turns this state into what really happened, the names that do so for its canonical form."""
        for order in self._orders:
            sorting = order.sorting(self._cells.unpack(state))
            if sorting:
                state = self.rename(state, sorting)
                back = {new: old for old, new in enumerate(sorting)}
                names = tuple(names[back[node]] for node in range(len(names)))
        return names

    def rename(self, state: int, names: Names) -> int:
        """The same state with node i called ``names[i]``."""
        return state + sum(map(self._renamed[names].__getitem__, self._cells.unpack(state)))

    def _renaming(self, names: Names, cell: int) -> int:
        """What it adds to the weight of a cell."""
        return self._cells.weights[self._rename_cell(cell, names)] - self._cells.weights[cell]

    def _rename_cell(self, cell: int, names: Names) -> int:
        node, local, inbox = self._cells.cells[cell]
        state = self._cells.handlers.locals[local]
        if state.alive:
            renamed = snapshot.restore(state.state)
            renamed.relabel(dict(enumerate(names)))
            state = state._replace(state=snapshot.take(renamed))
        return self._cells.intern(names[node], self._cells.handlers.intern(state), self._rename_inbox(inbox, names))

    def _rename_inbox(self, inbox: Inbox, names: Names) -> Inbox:
        meaning = dict(enumerate(names))
        renamed: Inbox = ()
        for source, queue in inbox:
            messages = tuple(
                self._cells.message_number(_relabelled(self._cells.messages[each], meaning)) for each in queue
            )
            renamed = self._cells.with_queue(renamed, names[source], messages)
        return renamed


class _Order:
    """The order of a group of interchangeable nodes: by their own columns first, and where those are equal by all.

    Columns are numbered as they turn up, and nodes sorted by the numbers. A *row* is what one cell says: the numbers of
    its columns about each member. Cells have few rows and states few combinations of them, so the search sorts a
    combination once and from then on looks it up."""

    def __init__(self, cells: Cells, group: tuple[int, ...]) -> None:
        self._cells = cells
        self._group = group
        self._members = itemgetter(*group)
        self._column_numbers: dict[Any, int] = {}
        self._row_numbers: dict[tuple[int, ...], int] = {}
        self._rows: list[tuple[int, ...]] = []
        self._row: Memo[int, int] = Memo(self._row_of)
        """By cell: which of the rows is its own."""
        self._by_own: Memo[tuple[int, ...], Names | None] = Memo(self._sorting_by_own)
        """By the cells of the members; None where own columns do not tell them apart."""
        self._by_all: Memo[tuple[int, ...], Names] = Memo(self._sorting_by_all)
        """By the rows of all cells."""

    def sorting(self, cells: tuple[int, ...]) -> Names:
        """Names that sort the columns of the group; empty where they are in order."""
        names = self._by_own[self._members(cells)]
        return self._by_all[tuple(map(self._row.__getitem__, cells))] if names is None else names

    def _sorting_by_own(self, members: tuple[int, ...]) -> Names | None:
        own = [self._rows[self._row[cell]][place] for place, cell in enumerate(members)]
        return self._names(own) if len(set(own)) == len(own) else None

    def _sorting_by_all(self, rows: tuple[int, ...]) -> Names:
        columns = zip(*(self._rows[row] for row in rows), strict=True)
        return self._names([(column[node], *sorted(column)) for node, column in zip(self._group, columns, strict=True)])

    def _names(self, keys: Sequence[Any]) -> Names:
        order = sorted(range(len(keys)), key=keys.__getitem__)
        if order == list(range(len(keys))):
            return ()
        names = list(range(len(self._cells.model.nodes)))
        for place, member in enumerate(order):
            names[self._group[member]] = self._group[place]
        return tuple(names)

    def _row_of(self, cell: int) -> int:
        numbers = self._column_numbers
        row = tuple(numbers.setdefault(self._content(cell, member), len(numbers)) for member in self._group)
        if row not in self._row_numbers:
            self._row_numbers[row] = len(self._rows)
            self._rows.append(row)
        return self._row_numbers[row]

    def _content(self, cell: int, about: int) -> Any:
        node, local, inbox = self._cells.cells[cell]
        state = self._cells.handlers.locals[local]
        held = snapshot.restore(state.state).column(about) if state.alive else None
        if node != about:
            return node not in self._group and node, held, dict(inbox).get(about, ())
        strangers = tuple((source, queue) for source, queue in inbox if source not in self._group)
        return "own", held, state._replace(state=()), strangers


def _relabelled(message: Message, names: Mapping[int, int]) -> Message:
    relabel = getattr(message, "relabel", None)
    return relabel(names) if relabel else message
