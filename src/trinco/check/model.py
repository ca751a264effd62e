"""What is to be checked: the nodes, what the world may do to them, and what must never happen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from trinco.core import contract
from trinco.core.claims import Network
from trinco.core.errors import UsageError
from trinco.core.node import Node, Process

if TYPE_CHECKING:
    from trinco.check.view import View

Monitors = Sequence[Any]
"""Monitors of ``core.monitor`` that remember: their memory becomes part of the state."""


class Timers(Enum):
    ANY = "an armed timer may fire at any time: covers every duration"
    DEADLINE = "an armed timer fires at its deadline or later; needs ticks"
    PUNCTUAL = "messages are quick: time passes only when nothing is under way and no timer is due; needs ticks"


@dataclass(frozen=True)
class Clocks:
    """How time passes. Without drift all clocks tick together; the clocks in ``drifting`` tick on their own, each at
    most ``window`` ahead of the slowest. A margin against drift must then be twice the window: within one term a lead
    can go from +window to -window.
    """

    drifting: frozenset[int] = frozenset()
    window: int = 0

    def __post_init__(self) -> None:
        if self.drifting and self.window < 1:
            raise UsageError("clocks that drift need a window of at least 1: with 0 none of them could move")


@dataclass(frozen=True, kw_only=True)
class Model:
    nodes: Sequence[Node]
    k: int = 1
    network: Network = Network.FIFO
    inputs: Mapping[str, int | None] = field(default_factory=lambda: {"acquire": 1})
    """How often the environment may call each input of a node; None is for ever. Release comes with being inside."""
    called: frozenset[int] | None = None
    """The nodes whose inputs the environment may call; None is everybody's."""
    crashes: int = 0
    restarts: int = 0
    """How many crashed nodes may come back. What was sent to them meanwhile is lost."""
    timers: Timers = Timers.ANY
    fires: int = 3
    """How often one timer may fire: a retransmission without a bound would fill the network for ever."""
    clocks: Clocks | None = None
    byzantine: frozenset[int] = frozenset()
    symmetric: Sequence[frozenset[int]] = ()
    reductions: bool = True
    """Use what the classes declare: ``settle``, ``ignores``, ``column`` and ``relabel``."""
    monitors: Monitors = ()
    never: Sequence["Callable[[View], bool]"] = ()
    sometimes: Mapping[str, "Callable[[View], bool]"] = field(default_factory=dict)
    """What must happen in at least one run, or the check has shown little."""
    reachable: Mapping[str, "Callable[[View], bool]"] = field(default_factory=dict)
    """What must stay possible: from every state a state can be reached in which it holds. Under symmetry it must not
    depend on how nodes of a group are called: it is asked of one state of each kind."""

    def __post_init__(self) -> None:
        if not self.nodes:
            raise UsageError("a model needs at least one node")
        contract.require_nodes(self.nodes)
        contract.require_inputs(self.nodes, self.inputs)
        if self.network is Network.LOSSY:
            raise UsageError("the checker has reliable channels only: FIFO or UNORDERED")
        if self.k < 1:
            raise UsageError(f"k must be at least 1, not {self.k}")
        if self.timers is not Timers.ANY and self.clocks is None:
            raise UsageError("timers that fire at their deadline need clocks: without ticks it never comes")
        if self.timers is Timers.PUNCTUAL and self.clocks and self.clocks.drifting:
            raise UsageError("punctual timers need clocks that tick together")
        if self.crashes < 0 or self.restarts < 0 or self.fires < 0:
            raise UsageError("bounds on crashes, restarts and timers cannot be negative")

    @property
    def processes(self) -> tuple[int, ...]:
        """The ids that compete for the critical section and keep to the protocol."""
        return tuple(me for me, node in enumerate(self.nodes) if isinstance(node, Process) and me not in self.byzantine)
