"""What a lease costs that nobody else wants: accesses, counted in the simulator, times prices from a file.

And whether of several that want it one is sure to get it: the checker goes through all that two clients can do who ask
once each.
"""

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, ClassVar, TypeAlias

from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.event import Event, Kind
from trinco.core.monitor import Monitor
from trinco.lab.lease_latency import FOREVER, SERVICES
from trinco.leases import accesses
from trinco.leases.nodes.messages import Access
from trinco.leases.nodes.system import CLAIMS, QuorumLease
from trinco.leases.terms import Policy
from trinco.sim.laws import Constant
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Scripted

ASKED: Mapping[type[accesses.Access], str] = {
    accesses.List: "list",
    accesses.Put: "put",
    accesses.Append: "append",
    accesses.Read: "read",
    accesses.CompareAndSet: "compare and set",
    accesses.Begin: "begin",
    accesses.Write: "write",
    accesses.CommitTransaction: "commit",
}
"""What prices are for."""
HELD = 1_000.0
"""Long enough for the slowest store to have done its part. What comes later is the release."""


@dataclass(frozen=True)
class Price:
    """``access``: micro-dollars, by what is asked. Empty where a subscription pays for all."""

    name: str
    provider: str
    access: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def by_subscription(self) -> bool:
        return not self.access

    def of(self, asked: Mapping[str, int]) -> float:
        return 0.0 if self.by_subscription else sum(self.access[what] * count for what, count in asked.items())


@dataclass(frozen=True)
class Prices:
    version: int
    date: str
    source: str
    note: str
    dollars_for_four_machines_a_month: float
    services: Mapping[str, Price]


@cache
def prices() -> Prices:
    read: dict[str, Any] = tomllib.loads(files("trinco.lab").joinpath("cloud_prices.toml").read_text(encoding="utf-8"))
    services = {name: Price(**value) for name, value in read.items() if isinstance(value, dict)}
    return Prices(**{name: value for name, value in read.items() if name not in services}, services=services)


Accesses: TypeAlias = tuple[Mapping[str, int], ...]
"""How often what was asked, at each store in its order."""


@dataclass(frozen=True)
class Counting:
    """One client, alone, takes a lease over these services."""

    members: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"accesses, {'+'.join(self.members)}"

    def do(self) -> Accesses:
        kinds = tuple(SERVICES[member].kind for member in self.members)
        f = (len(kinds) - 1) // 3
        lease = QuorumLease(stores=kinds, clients=1, f=f, ttl=FOREVER, t_max=FOREVER, fenced=False)
        scenario = Scenario(
            protocol="lease-costs",
            build=lease,
            claims=replace(CLAIMS, fencing=False),
            n=lease.n,
            workload=Scripted(((0, 0.0, HELD),)),
            links=Links(Constant(1.0)),
        )
        simulation = Simulation(scenario)
        simulation.run()
        assert simulation.entries == 1
        assert simulation.recording is not None
        counts: list[Counter[str]] = [Counter() for _ in kinds]
        for at, _, kind, peer, message, *_ in simulation.recording.records:
            if kind is Kind.SEND and isinstance(message, Access) and at < HELD:
                counts[peer - 1][ASKED[type(message.access)]] += 1
        return tuple(map(dict, counts))


def cost(members: Sequence[str], counted: Accesses) -> float:
    """Micro-dollars for an acquire: at all n services, not only at the quorum that was waited for."""
    services = prices().services
    return sum(services[member].of(asked) for member, asked in zip(members, counted, strict=True))


def one_of_each_provider() -> list[tuple[str, ...]]:
    """Every mix of four services of four providers, so that no two fail together."""
    by_provider: dict[str, list[str]] = {}
    for name, price in prices().services.items():
        by_provider.setdefault(price.provider, []).append(name)
    return list(product(*by_provider.values()))


@dataclass(slots=True)
class SomebodyGetsIt(Monitor):
    """Of two that ask once each, not both are refused."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.GRANT, Kind.REFUSE})
    refused: int = 0
    granted: bool = False

    def observe(self, event: Event) -> str | None:
        if event.kind is Kind.GRANT:
            self.granted = True
        else:
            self.refused += 1
        return "both asked, and both were refused" if self.refused == 2 and not self.granted else None


@dataclass(frozen=True)
class Progress:
    """Whether one of two clients of a single store is sure to succeed, in every order of events."""

    kind: str

    @property
    def title(self) -> str:
        return f"progress, {self.kind}"

    def do(self) -> bool:
        lease = QuorumLease(
            stores=(self.kind,), clients=2, f=0, ttl=2, rho=0, policy=Policy.ONCE, poll=0, backoff=0,
            access_timeout=0, fenced=False, brief=True,
        )  # fmt: skip
        model = Model(nodes=lease(lease.n), monitors=[SomebodyGetsIt()], fires=0)
        return check(model, liveness=False).verdict is Verdict.HOLDS
