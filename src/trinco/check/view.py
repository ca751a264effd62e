"""A global state as people and properties see it."""

from typing import Any

from trinco.check.cells import Cells
from trinco.check.handlers import Local
from trinco.core import snapshot
from trinco.core.context import Phase
from trinco.core.message import Message


class View:
    """Read-only. ``view.phase(2)``, ``view.node(0).clock``, ``view.in_flight()``, ``view.believers()``."""

    __slots__ = ("_cells", "_numbers", "_state")

    def __init__(self, cells: Cells, state: int) -> None:
        self._cells = cells
        self._state = state
        self._numbers = cells.unpack(state)

    @property
    def ids(self) -> range:
        """Of all nodes."""
        return range(len(self._numbers))

    @property
    def processes(self) -> tuple[int, ...]:
        """The correct ones that compete."""
        return self._cells.model.processes

    def local(self, node: int) -> Local:
        return self._cells.local(self._numbers[node])

    def phase(self, node: int) -> Phase:
        return self.local(node).phase

    def alive(self, node: int) -> bool:
        return self.local(node).alive

    def node(self, node: int) -> Any:
        """The node itself, rebuilt: change it as you like, the state does not notice."""
        return snapshot.restore(self.local(node).state)

    def believers(self) -> tuple[int, ...]:
        """The correct processes that believe they are inside."""
        return tuple(node for node in self._cells.model.processes if self.local(node).believes)

    def waiting(self) -> tuple[int, ...]:
        return tuple(node for node in self._cells.model.processes if self.phase(node) is Phase.WAITING)

    def in_flight(self) -> tuple[tuple[int, int, Message], ...]:
        """(source, receiver, message) for everything under way."""
        return tuple(
            (source, to, message)
            for to, cell in enumerate(self._numbers)
            for source, message in self._cells.messages_in(cell)
        )

    def quiet(self) -> bool:
        """Whether nothing is under way and no timer is armed: nothing happens any more unless somebody acts."""
        armed = any(local.timers for local in map(self.local, self.ids) if local.alive)
        return not armed and not self.in_flight()

    def broken_contract(self) -> str | None:
        """What a node did that the contract forbids."""
        broken = ((node, self._cells.local(cell).broken) for node, cell in enumerate(self._numbers))
        return next((f"p{node} {what}" for node, what in broken if what), None)

    def complaint(self) -> str | None:
        """What a monitor complains of."""
        return self._cells.environment.worlds[self._cells.environment_of(self._state)].violation
