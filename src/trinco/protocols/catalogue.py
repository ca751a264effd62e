"""Every protocol by its name: where the command line, the lab, the docs and the tests find them."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

from trinco.core.claims import Claims, letters_of
from trinco.core.errors import UsageError
from trinco.core.node import Node
from trinco.leases.nodes import behaviours
from trinco.leases.nodes import system as quorum_lease
from trinco.protocols import coordinator
from trinco.protocols.permission import ricart_agrawala
from trinco.protocols.token import token_ring


@dataclass(frozen=True)
class Entry:
    name: str
    module: ModuleType
    build: Callable[[int], Sequence[Node]]
    claims: Claims
    smallest: int = 2
    """The fewest nodes that make sense."""
    repeats: bool = False
    """Whether the states stay finite however often processes enter: then it can be checked without a bound."""
    interchangeable: Callable[[int], Sequence[frozenset[int]]] | None = None
    """Groups of nodes whose ids are never compared."""
    strategies: Mapping[str, type[Node]] = field(default_factory=dict)
    """Byzantine behaviours by name: subclasses of the honest class."""

    @property
    def summary(self) -> str:
        """The first line of the file's docstring."""
        return (self.module.__doc__ or self.name).splitlines()[0].rstrip(".")

    def letters(self, n: int) -> dict[str, float]:
        """What the letters of the claims stand for, in a system of n nodes."""
        return letters_of(self.build, n)

    def nodes(self, n: int) -> Sequence[Node]:
        if n < self.smallest:
            raise UsageError(f"{self.name} needs at least {self.smallest} nodes, not {n}")
        return self.build(n)


ENTRIES = (
    Entry(
        "coordinator",
        coordinator,
        coordinator.system,
        coordinator.CLAIMS,
        repeats=True,
        interchangeable=coordinator.interchangeable,
    ),
    Entry(
        "quorum-lease",
        quorum_lease,
        quorum_lease.QuorumLease(),
        quorum_lease.CLAIMS,
        smallest=5,
        strategies=behaviours.BEHAVIOURS,
    ),
    Entry("ricart-agrawala", ricart_agrawala, ricart_agrawala.system, ricart_agrawala.CLAIMS),
    Entry("token-ring", token_ring, token_ring.system, token_ring.CLAIMS, repeats=True),
)


def find(name: str) -> Entry:
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    names = [entry.name for entry in ENTRIES]
    raise UsageError(f"there is no protocol '{name}'{suggest(name, names)} ('trinco protocols' lists them)")


def suggest(name: str, names: Iterable[str]) -> str:
    """``, did you mean 'ricart-agrawala'?`` for the nearest name, if there is any."""
    near = difflib.get_close_matches(name.lower(), list(names), n=1, cutoff=0.0)
    return f", did you mean '{near[0]}'?" if near else ""
