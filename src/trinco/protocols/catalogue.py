"""Every protocol by its name: where the command line, the lab, the docs and the tests find them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from trinco.core.claims import Claims, letters_of
from trinco.core.errors import UsageError
from trinco.core.nearest import suggest
from trinco.core.node import Elector, Node, Process
from trinco.leases.nodes import behaviours
from trinco.leases.nodes import system as quorum_lease
from trinco.protocols import coordinator, coordinator_failover
from trinco.protocols.bakery import algorithm2 as bakery_algorithm2
from trinco.protocols.bakery import strategies as bakery_strategies
from trinco.protocols.bakery import system as bakery
from trinco.protocols.election import bully, ring
from trinco.protocols.permission import (
    campos_carvalho,
    carvalho_roucairol,
    chandy_misra,
    lamport,
    maekawa,
    ordered_voting,
    raymond_k,
    ricart_agrawala,
    robust_k,
    robust_k_system,
    units,
    voting,
)
from trinco.protocols.settings import settings_of, with_settings
from trinco.protocols.token import naimi_trehel, raymond_tree, regenerating_ring, suzuki_kasami, token_ring

LARGEST_TRIED = 100


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
    delay: float = 1.0
    """Of a message, where nobody says how long one takes: short, if the protocol's own times are in seconds."""

    @property
    def summary(self) -> str:
        """The first line of the file's docstring."""
        return (self.module.__doc__ or self.name).splitlines()[0].rstrip(".")

    @property
    def settings(self) -> dict[str, Any]:
        """What can be set about it, with the present values."""
        return settings_of(self.build)

    def set(self, *words: str) -> "Entry":
        """The same protocol with some of its settings changed: ``find("chandy-misra").set("graph=ring")``."""
        build = with_settings(self.build, words, self.name)
        return replace(
            self,
            build=build,
            claims=getattr(build, "claims", self.claims),
            interchangeable=getattr(build, "interchangeable", self.interchangeable),
        )

    def letters(self, n: int) -> dict[str, float]:
        """What the letters of the claims stand for, in a system of n nodes."""
        return letters_of(self.build, n)

    def nodes(self, n: int) -> Sequence[Node]:
        if n < self.smallest:
            raise UsageError(f"{self.name} needs at least {self.smallest} nodes, not {n}")
        return self.build(n)

    def contended_size(self, least: int) -> int:
        """The first number of nodes, from ``least`` on, of which more compete than may be inside. Where there is none
        that could be built, the first of all: it says what is wrong."""
        sizes = range(max(least, self.smallest), LARGEST_TRIED)
        return next(filter(self._is_contended, sizes), sizes[0])

    def _is_contended(self, n: int) -> bool:
        try:
            return competitors(self.nodes(n)) > self.claims.k.high(**self.letters(n))
        except UsageError:
            return False


def competitors(nodes: Sequence[Node]) -> int:
    """How many of them want to enter, or to lead: servers do not."""
    return sum(isinstance(node, Process | Elector) for node in nodes)


ENTRIES = (
    Entry(
        "bakery",
        bakery,
        bakery.Bakery(),
        bakery.CLAIMS,
        smallest=5,
        strategies=bakery_strategies.STRATEGIES,
        delay=0.01,
    ),
    Entry("bakery-algorithm2", bakery_algorithm2, bakery_algorithm2.Algorithm2System(), bakery_algorithm2.CLAIMS),
    Entry("bully", bully, bully.BullyElection(), bully.CLAIMS),
    Entry("campos-carvalho", campos_carvalho, campos_carvalho.Forks(), campos_carvalho.CLAIMS, repeats=True),
    Entry("carvalho-roucairol", carvalho_roucairol, carvalho_roucairol.system, carvalho_roucairol.CLAIMS),
    Entry("chandy-misra", chandy_misra, chandy_misra.Philosophers(), chandy_misra.CLAIMS, repeats=True),
    Entry(
        "coordinator",
        coordinator,
        coordinator.system,
        coordinator.CLAIMS,
        repeats=True,
        interchangeable=coordinator.system.interchangeable,
    ),
    Entry(
        "coordinator-failover",
        coordinator_failover,
        coordinator_failover.system,
        coordinator_failover.CLAIMS,
        repeats=True,
    ),
    Entry("lamport", lamport, lamport.system, lamport.CLAIMS),
    Entry("maekawa", maekawa, maekawa.MaekawaSystem(), maekawa.CLAIMS),
    Entry("naimi-trehel", naimi_trehel, naimi_trehel.system, naimi_trehel.CLAIMS, repeats=True),
    Entry("ordered-voting", ordered_voting, ordered_voting.OrderedVotingSystem(), ordered_voting.CLAIMS, smallest=3),
    Entry(
        "quorum-lease",
        quorum_lease,
        quorum_lease.QuorumLease(),
        quorum_lease.CLAIMS,
        smallest=5,
        strategies=behaviours.BEHAVIOURS,
        delay=0.01,
    ),
    Entry("raymond-k", raymond_k, raymond_k.RaymondKSystem(), raymond_k.CLAIMS, smallest=3),
    Entry("raymond-tree", raymond_tree, raymond_tree.Tree(), raymond_tree.CLAIMS, repeats=True),
    Entry("regenerating-ring", regenerating_ring, regenerating_ring.system, regenerating_ring.CLAIMS, repeats=True),
    Entry("ricart-agrawala", ricart_agrawala, ricart_agrawala.system, ricart_agrawala.CLAIMS),
    Entry("ring-election", ring, ring.RingElection(), ring.CLAIMS),
    Entry("robust-k", robust_k, robust_k_system.RobustKSystem(), robust_k.CLAIMS, smallest=3),
    Entry("robust-units", units, units.UnitsSystem(), units.CLAIMS, smallest=3),
    Entry("suzuki-kasami", suzuki_kasami, suzuki_kasami.system, suzuki_kasami.CLAIMS),
    Entry("token-ring", token_ring, token_ring.system, token_ring.CLAIMS, repeats=True),
    Entry("voting", voting, voting.VotingSystem(), voting.CLAIMS),
)


def find(name: str) -> Entry:
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    names = [entry.name for entry in ENTRIES]
    raise UsageError(f"there is no protocol '{name}'{suggest(name, names)} ('trinco protocols' lists them)")
