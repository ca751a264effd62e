"""The quorum lease: signed leases over n unlike stores of which f may lie (seed 004, "trinco composto").

A client asks all n >= 3f+1 stores for a lease, each by the base algorithm that its kind of service allows. It holds
when q = ceil((n+f+1)/2) of them have granted, until the earliest moment at which one of those might let go. There is no
lock server: the stores know nothing of each other and run no code of ours unless they can.

Assumes: every correct store is linearizable and its clock runs within rho of the clients'; nothing about delays.
Clients may crash: their leases run out. Messages per entry when nobody else asks: to and from every store, for each
access of its base algorithm and for the release; under contention a waiter polls, and there is no bound.

Against the paper: corrections, 24 of them with an exhibit ``lease/E..``; entries that say for which lock and at which
store they count (E19); waiting by priority instead of random back-off; fencing tokens that f liars cannot turn back.
Nodes 0, 1, .. are the clients; the stores follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.node import Node
from trinco.leases.bases import catalogue
from trinco.leases.item import Limits
from trinco.leases.keys import Keyring
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.sealed import SealedClient
from trinco.leases.nodes.services import service
from trinco.leases.nodes.store import Store
from trinco.leases.terms import T_MAX, Policy, Terms

CLAIMS = Claims(
    paper="Mendes, Oliveira & Bessani, Exclusão mútua tolerante a faltas bizantinas na cloud",
    year=2015,
    network=Network.UNORDERED,
    messages_per_entry=Formula("4*s..inf"),
    delay=Formula("2..8"),
    fairness=Fairness.BY_TICKET,
    crashes=Formula("c+f"),
    byzantine=Formula("f"),
    fencing=True,
    timed=True,
    roles={"client": Formula("c"), "store": Formula("s")},
)


@dataclass(frozen=True)
class QuorumLease:
    """``stores`` names the base algorithm on each store. Calling it makes the nodes. ``brief`` is for the checker:
    clients and stores leave out what only people read."""

    stores: tuple[str, ...] = ("one-access",) * 4
    clients: int | None = None
    """None: whoever is not a store."""
    f: int = 1
    ttl: float = 30.0
    granularity: float = 0.0
    sigma: float = 0.0
    rho: float = 4e-4
    wait: float = 10.0
    poll: float = 0.25
    backoff: float = 1.0
    attempt_timeout: float = 5.0
    access_timeout: float = 5.0
    t_max: float = T_MAX
    widen: float = 0.0
    """Above 0: ask a quorum of stores first, the others so much later or when one does not grant."""
    policy: Policy = Policy.PRIORITY
    clock_step: float | None = None
    """How coarse the stores' clocks really are, if not what ``granularity`` allows for."""
    fenced: bool | None = None
    """None: wherever enough stores can keep a token."""
    brief: bool = False
    keyring: Keyring | None = None
    """Sign entries for real, with this one; None: with symbols that nobody can forge."""

    def __post_init__(self) -> None:
        if self.clients is not None and self.clients < 1:
            raise UsageError(f"a lease needs at least one client, not {self.clients}")
        for name in self.stores:
            catalogue.find(name)
        if self.keyring is not None:
            self.keyring.signing_key()
        if self.fenced and not self.can_fence:
            raise UsageError(
                f"a fencing token must be on {self.terms.quorum} stores even when {self.f} fail; "
                f"only {self._keepers} of these can keep one (a queue cannot)"
            )

    @property
    def _keepers(self) -> int:
        return sum(catalogue.find(name).fences for name in self.stores)

    @property
    def can_fence(self) -> bool:
        """Whether the stores that keep a token are still a quorum by themselves when f of them fail. With fewer, one
        silent store would leave the lease without a token, and so nobody would ever get it."""
        return self._keepers - self.f >= self.terms.quorum

    @property
    def terms(self) -> Terms:
        return Terms(
            len(self.stores),
            self.f,
            ttl=self.ttl,
            granularity=self.granularity,
            sigma=self.sigma,
            rho=self.rho,
            wait=self.wait,
            poll=self.poll,
            backoff=self.backoff,
            attempt_timeout=self.attempt_timeout,
            widen=self.widen,
            policy=self.policy,
            t_max=self.t_max,
            access_timeout=self.access_timeout,
            fenced=bool(self.fenced),
        )

    @property
    def n(self) -> int:
        """Of all nodes."""
        return (self.clients or 2) + len(self.stores)

    @property
    def store_ids(self) -> tuple[int, ...]:
        return tuple(range(self.n - len(self.stores), self.n))

    def letters(self, n: int) -> dict[str, float]:
        """What the letters of the claims stand for in a system of n nodes."""
        return {"c": n - len(self.stores), "s": len(self.stores), "f": self.f}

    def __call__(self, n: int) -> Sequence[Node]:
        clients = n - len(self.stores)
        if self.clients is None:
            return replace(self, clients=clients)(n)
        if clients != self.clients:
            raise UsageError(f"{self.clients} clients and {len(self.stores)} stores are {self.n} nodes, not {n}")
        limits = Limits(self.t_max)
        algorithms = tuple(catalogue.find(name)(limits) for name in self.stores)
        terms = self.terms if self.fenced is not None else self.terms.but(fenced=self.can_fence)
        quiet = self.brief and set(self.stores) <= set(catalogue.RUN_CODE)
        nodes: list[Node] = [
            SealedClient(me, terms, algorithms, self.store_ids, self.keyring)
            if self.keyring
            else Client(me, terms, algorithms, self.store_ids, quiet)
            for me in range(clients)
        ]
        step = self.granularity if self.clock_step is None else self.clock_step
        stores = [
            Store(me, service(name, limits, max(self.ttl, self.wait)), step, self.brief)
            for me, name in zip(self.store_ids, self.stores, strict=True)
        ]
        return [*nodes, *stores]
