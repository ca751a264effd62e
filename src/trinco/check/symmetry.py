"""Symmetry: states that differ only in who is who are one state.

Where a protocol does not compare the ids of some nodes, any renaming of them leads from a run to a run. Of all the
states that renamings make of one, the search keeps the one whose *columns* are sorted: the column of node j is all that
anybody holds about j (its own state, what others keep about it, what it has in flight). One renaming a state, not one
for each permutation. Sorting need not tell ties apart to be sound: the outcome is always a renaming of the state.

A class takes part by two methods: ``column(j)``, what it holds about node j, and ``relabel(names)``, which renames the
ids in its fields; a message that carries ids has ``relabel(names)`` too, and returns the renamed message.
"""

from collections.abc import Iterator, Mapping
from itertools import permutations, product
from typing import Any

from trinco.check.cells import Cells, Inbox
from trinco.core import snapshot
from trinco.core.errors import UsageError
from trinco.core.message import Message


class Symmetry:
    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._groups = [tuple(sorted(group)) for group in cells.model.symmetric]
        self._columns: dict[tuple[int, int], int] = {}
        self._column_ids: dict[Any, int] = {}
        self._renamed: dict[tuple[int, tuple[int, ...]], int] = {}
        self._refuse_what_breaks_symmetry()

    def _refuse_what_breaks_symmetry(self) -> None:
        model = self._cells.model
        members = {node for group in self._groups for node in group}
        drifting = model.clocks.drifting if model.clocks else frozenset()
        if members & (model.byzantine | drifting) or model.monitors:
            raise UsageError("symmetry needs nodes without liars, drifting clocks or monitors that remember ids")
        for group in self._groups:
            kinds = {type(model.nodes[node]) for node in group}
            if len(kinds) > 1:
                names = " and ".join(sorted(kind.__name__ for kind in kinds))
                raise UsageError(f"{names} are not interchangeable: a symmetric group has one class")
        for node in model.nodes:
            if not (hasattr(node, "column") and hasattr(node, "relabel")):
                raise UsageError(f"symmetry needs column(j) and relabel(names) on {type(node).__name__}")

    def canonical(self, state: int) -> int:
        for group in self._groups:
            names = self._sorting(state, group)
            if names is not None:
                state = self.rename(state, names)
        return state

    def namings(self) -> Iterator[tuple[int, ...]]:
        """Every way to call the nodes."""
        everybody = range(len(self._cells.model.nodes))
        for orders in product(*(permutations(group) for group in self._groups)):
            names = list(everybody)
            for group, order in zip(self._groups, orders, strict=True):
                for node, name in zip(group, order, strict=True):
                    names[node] = name
            yield tuple(names)

    def undo_canonical(self, state: int, names: tuple[int, ...]) -> tuple[int, ...]:
        """If ``names`` turns this state into what really happened, the names that do so for its canonical form."""
        for group in self._groups:
            sorting = self._sorting(state, group)
            if sorting is not None:
                state = self.rename(state, sorting)
                back = {new: old for old, new in enumerate(sorting)}
                names = tuple(names[back[node]] for node in range(len(names)))
        return names

    def _sorting(self, state: int, group: tuple[int, ...]) -> tuple[int, ...] | None:
        """New names that sort the columns of a group, or None where they are in order."""
        cells = self._cells.unpack(state)
        keys = [tuple(self._column(cell, node) for cell in cells) for node in group]
        keys = [(key[node], *sorted(key)) for key, node in zip(keys, group, strict=True)]
        order = sorted(range(len(group)), key=keys.__getitem__)
        if order == list(range(len(group))):
            return None
        names = list(range(len(cells)))
        for place, member in enumerate(order):
            names[group[member]] = group[place]
        return tuple(names)

    def _column(self, cell: int, about: int) -> int:
        known = self._columns.get((cell, about))
        if known is None:
            content = self._content(cell, about)
            known = self._columns[cell, about] = self._column_ids.setdefault(content, len(self._column_ids))
        return known

    def _content(self, cell: int, about: int) -> Any:
        node, local, inbox = self._cells.cells[cell]
        state = self._cells.handlers.locals[local]
        held = snapshot.restore(state.state).column(about) if state.alive else None
        if node != about:
            return node not in self._mates(about) and node, held, dict(inbox).get(about, ())
        strangers = tuple((source, queue) for source, queue in inbox if source not in self._mates(about))
        return "own", held, state._replace(state=()), strangers

    def _mates(self, node: int) -> tuple[int, ...]:
        return next(group for group in self._groups if node in group)

    def rename(self, state: int, names: tuple[int, ...]) -> int:
        """The same state with node i called ``names[i]``."""
        cells = self._cells.unpack(state)
        moved = sum(self._cells.weights[self._rename_cell(cell, names)] for cell in cells)
        environment = self._cells.environment
        return moved + environment.weight(self._cells.environment_of(state))

    def _rename_cell(self, cell: int, names: tuple[int, ...]) -> int:
        known = self._renamed.get((cell, names))
        if known is None:
            known = self._renamed[cell, names] = self._renamed_anew(cell, names)
        return known

    def _renamed_anew(self, cell: int, names: tuple[int, ...]) -> int:
        node, local, inbox = self._cells.cells[cell]
        state = self._cells.handlers.locals[local]
        if state.alive:
            renamed = snapshot.restore(state.state)
            renamed.relabel(dict(enumerate(names)))
            state = state._replace(state=snapshot.take(renamed))
        return self._cells.intern(names[node], self._cells.handlers.intern(state), self._rename_inbox(inbox, names))

    def _rename_inbox(self, inbox: Inbox, names: tuple[int, ...]) -> Inbox:
        meaning = dict(enumerate(names))
        renamed: Inbox = ()
        for source, queue in inbox:
            messages = tuple(
                self._cells.message_number(_relabelled(self._cells.messages[each], meaning)) for each in queue
            )
            renamed = self._cells.with_queue(renamed, names[source], messages)
        return renamed


def _relabelled(message: Message, names: Mapping[int, int]) -> Message:
    relabel = getattr(message, "relabel", None)
    return relabel(names) if relabel else message
