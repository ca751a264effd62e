"""All that ``lab.lease_experiment`` measures: which pieces of work there are, and what each came to."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from trinco.lab.bakery_silence import Exhibited, Shown
from trinco.lab.lease_costs import Counting, Progress, cost, one_of_each_provider
from trinco.lab.lease_latency import COMPOSITES, SERVICES, Figures, depsky_ratio, order_statistic, paper_mixes
from trinco.lab.lease_runs import waiting
from trinco.lab.lease_upkeep import upkeep
from trinco.lab.pieces import Listener, Piece, do_all
from trinco.leases.nodes.system import QuorumLease
from trinco.leases.terms import Policy

KINDS = ("object", "queue", "conditional", "transactional")
BY_TURNS = "lease/E22"
"""Two clients that keep each other out of a quorum for ever."""


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    acquisitions: int
    """Of a free lease, for each latency."""
    samples: int
    """Draws from a law, where nothing is simulated."""
    laws: tuple[str, ...]
    clients: tuple[int, ...]
    """How many want the lease at once."""
    seeds: int
    """Runs of each such crowd."""


@dataclass(frozen=True)
class Mixed:
    """The paper's composites and baselines under one law."""

    law: str
    acquisitions: int

    @property
    def title(self) -> str:
        return f"latency, {self.law}"

    def do(self) -> Figures:
        (row,) = paper_mixes(acquisitions=self.acquisitions, laws=(self.law,))["rows"]
        return dict(row)


@dataclass(frozen=True)
class Kept:
    """The same, renewed and let go of, under one law."""

    law: str
    acquisitions: int

    @property
    def title(self) -> str:
        return f"renewing and releasing, {self.law}"

    def do(self) -> Figures:
        return upkeep(self.law, self.acquisitions)


@dataclass(frozen=True)
class Thirds:
    """The composite against the third fastest of its four bases, under one law."""

    law: str
    acquisitions: int
    samples: int

    @property
    def title(self) -> str:
        return f"the third of four, {self.law}"

    def do(self) -> list[Figures]:
        return list(order_statistic(0, self.acquisitions, self.samples, (self.law,))["rows"])


@dataclass(frozen=True)
class Phased:
    """DepSky against the composite."""

    acquisitions: int
    samples: int
    laws: tuple[str, ...]

    @property
    def title(self) -> str:
        return "DepSky"

    def do(self) -> Figures:
        return depsky_ratio(0, self.acquisitions, self.samples, self.laws)


@dataclass(frozen=True)
class Wanted:
    """Several clients take a lease and let go of it at once, again and again."""

    stores: tuple[str, ...]
    policy: Policy
    clients: int
    seeds: int

    @property
    def title(self) -> str:
        return f"{self.clients} clients, {self.policy.value}, {'+'.join(self.stores)}"

    def do(self) -> float:
        lease = QuorumLease(stores=self.stores, f=(len(self.stores) - 1) // 3, fenced=False)
        mean: float = waiting(self.policy, clients=self.clients, liar=None, seeds=self.seeds, system=lease)["mean"]
        return mean


def kinds_of(members: Sequence[str]) -> tuple[str, ...]:
    return tuple(SERVICES[member].kind for member in members)


CROWDED: dict[str, tuple[tuple[str, ...], Policy]] = {
    **{kind: ((kind,), Policy.BACKOFF) for kind in KINDS},
    **{name: (kinds_of(COMPOSITES[name]), Policy.BACKOFF) for name in ("NAR", "AR")},
    **{f"{name}, by priority": (kinds_of(COMPOSITES[name]), Policy.PRIORITY) for name in ("NAR", "AR")},
}
"""What several clients want at once. As in the paper, whoever is refused tries again after a random time of up to a
second, but for the last two."""


class Measured:
    """All that is measured."""

    def __init__(self, extent: Extent, executor: Executor | None, listener: Listener | None) -> None:
        self.extent = extent
        self.outcomes: dict[Any, Any] = do_all(list(self._pieces()), executor, listener)

    def _pieces(self) -> Iterator[Piece]:
        extent = self.extent
        for clients in sorted(extent.clients, reverse=True):
            yield from (self.crowd(name, clients) for name in reversed(CROWDED))
        yield Phased(extent.acquisitions, extent.samples, extent.laws)
        yield from (Thirds(law, extent.acquisitions, extent.samples) for law in extent.laws)
        yield from (Mixed(law, extent.acquisitions) for law in extent.laws)
        yield from (Kept(law, extent.acquisitions) for law in extent.laws)
        yield from (Counting((service,)) for service in SERVICES)
        yield from map(Counting, dict.fromkeys((*COMPOSITES.values(), *one_of_each_provider())))
        yield from map(Progress, KINDS)
        yield Exhibited(BY_TURNS)

    def accesses(self, service: str) -> Mapping[str, int]:
        (asked,) = self.outcomes[Counting((service,))]
        return dict(asked)

    def cost(self, *members: str) -> float:
        """Micro-dollars for an acquire."""
        return cost(members, self.outcomes[Counting(members)])

    def one_is_sure_to_succeed(self, kind: str) -> bool:
        return bool(self.outcomes[Progress(kind)])

    @property
    def mixes(self) -> list[Figures]:
        return [self.outcomes[Mixed(law, self.extent.acquisitions)] for law in self.extent.laws]

    def upkeep(self, what: str) -> list[dict[str, float]]:
        """The means of each composite and baseline, for each law."""
        return [self.outcomes[Kept(law, self.extent.acquisitions)][what] for law in self.extent.laws]

    @property
    def thirds(self) -> list[Figures]:
        extent = self.extent
        return [row for law in extent.laws for row in self.outcomes[Thirds(law, extent.acquisitions, extent.samples)]]

    @property
    def depsky(self) -> Figures:
        extent = self.extent
        figures: Figures = self.outcomes[Phased(extent.acquisitions, extent.samples, extent.laws)]
        return figures

    def crowd(self, name: str, clients: int) -> Wanted:
        return Wanted(*CROWDED[name], clients, self.extent.seeds)

    def waits(self, name: str) -> list[float]:
        """Seconds, for each number of clients."""
        return [self.outcomes[self.crowd(name, clients)] for clients in self.extent.clients]

    @property
    def by_turns(self) -> Shown:
        shown: Shown = self.outcomes[Exhibited(BY_TURNS)]
        return shown
