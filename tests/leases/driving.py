"""Ways to drive the lease core by hand: a shell around one store, a runtime of which the test is the world, and the
systems that the simulator and the checker run."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from trinco.check.model import Clocks, Model
from trinco.core.claims import Network
from trinco.core.instant import Instant
from trinco.core.node import Node
from trinco.leases.accesses import Access, Apply
from trinco.leases.bases.catalogue import BASES, find
from trinco.leases.bases.one_access import OneAccess
from trinco.leases.claim import Claim
from trinco.leases.client import LeaseClient
from trinco.leases.item import Limits
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.services import SERVICES, Service, service
from trinco.leases.nodes.store import Store
from trinco.leases.nodes.system import CLAIMS, QuorumLease
from trinco.leases.operation import Answer, Grade, Operation
from trinco.leases.plan import Outcome, Plan
from trinco.leases.terms import Policy, Terms
from trinco.sim.faults import Fault
from trinco.sim.laws import Constant, Exponential, Law
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.workload import Workload, saturated

KINDS = tuple(BASES)


LOST = object()
"""A reply that never comes: the runtime ends the plan."""


class Desk:
    """One store and those who use it. ``at`` is the store's clock; ``accesses`` counts round trips."""

    def __init__(self, kind: str, service: Service | None = None, algorithm: Any = None) -> None:
        self.kind = kind
        self.service = SERVICES[kind]() if service is None else service
        self.algorithm = find(kind)() if algorithm is None else algorithm
        self.at = 0.0
        self.accesses: list[Access] = []
        self.memory: dict[Any, Any] = {}

    def serve(self, client: int, access: Access) -> Any:
        self.accesses.append(access)
        self.service, reply = self.service.serve(client, access, Instant(self.at))
        return reply

    def do(self, operation: Operation, between: Callable[[Access], None] = lambda access: None) -> Answer:
        """An operation from its first access to its outcome. ``between`` is called before every access."""
        client = operation.claim.owner
        steps = self.stepwise(operation)
        access = next(steps)
        while isinstance(access, Access):
            between(access)
            access = steps.send(self.serve(client, access))
        return access

    def stepwise(self, operation: Operation) -> "Iterator[Any] | Any":
        """Yields accesses, is sent replies, ends with the answer."""
        client = operation.claim.owner
        plan = Plan(operation, None, self.memory.get(client))
        while isinstance(step := plan.step(self.algorithm), Access):
            reply = yield step
            if reply is LOST:
                step = Outcome(Answer(Grade.FAILED))
                break
            plan = plan.told(reply)
        self.memory[client] = step.memory
        yield step.answer

    def cost(self, operation: Operation) -> int:
        """How many accesses an operation takes."""
        before = len(self.accesses)
        self.do(operation)
        return len(self.accesses) - before


class Hand:
    """A runtime without a network: the test is the world. It writes down what the client does."""

    def __init__(self) -> None:
        self.at = 0.0
        self.wall = 100
        self.timers: dict[str, float] = {}
        self.news: list[tuple[Any, ...]] = []
        self.choice = 0

    def now(self) -> Instant:
        return Instant(self.at)

    def wall_clock(self) -> int:
        return self.wall

    def set_timer(self, name: str, delay: float) -> None:
        self.timers[name] = self.at + delay

    def cancel_timer(self, name: str) -> None:
        self.timers.pop(name, None)

    def choose(self, options: int) -> int:
        return self.choice % options

    def grant(self, token: Any = None, until: Instant | None = None) -> None:
        assert until is not None
        self.news.append(("granted", token, until.at))

    def refuse(self, reason: str) -> None:
        self.news.append(("refused",))


class Sent:
    """One access of a client by hand: to which base, what for, and what the client believed at that moment."""

    def __init__(self, base: int, operation: Operation, believed: bool) -> None:
        self.base = base
        self.operation = operation
        self.believed = believed

    @property
    def kind(self) -> str:
        return type(self.operation).__name__


class ByHand(LeaseClient):
    """A client of stores that answer in one access, and whose signatures are plain tuples (token, ticket)."""

    __slots__ = ("hand", "sent")

    def __init__(self, terms: Terms, owner: Any = "me", algorithm: Any = None) -> None:
        super().__init__(owner, terms, (algorithm or OneAccess(),) * terms.n)
        self.hand = Hand()
        self.sent: list[Sent] = []

    def access(self, ctx: Any, base: int, access: Access) -> None:
        assert isinstance(access, Apply)
        self.sent.append(Sent(base, access.operation, self.until is not None))

    def signed(self, ctx: Any, claim: Claim) -> Any:
        return ("signed", self.guess, self.ticket)

    def token_in(self, ctx: Any, evidence: Any) -> int:
        return evidence[1] if isinstance(evidence, tuple) and evidence[0] == "signed" else 0

    def ticket_in(self, ctx: Any, evidence: Any) -> int:
        return evidence[2] or 0 if isinstance(evidence, tuple) and evidence[0] == "signed" else 0

    # What the world does

    def outstanding(self, base: int) -> Operation:
        """What waits for an answer at a base."""
        return self.bases[base].chain[0].operation

    def hears(self, base: int, answer: Any) -> None:
        self.answered(self.hand, base, answer)

    def hears_yes(self, *bases: int) -> None:
        """Committed, with the token that was asked for."""
        for base in bases:
            token = getattr(self.outstanding(base), "token", None)
            self.hears(base, Answer(Grade.COMMITTED, self.guess if token is None else token))

    def hears_no(self, *bases: int) -> None:
        for base in bases:
            self.hears(base, Answer(Grade.REFUSED))

    def fires(self, name: str) -> None:
        """A timer runs out, at its time."""
        self.hand.at = max(self.hand.at, self.hand.timers.pop(name))
        self.on_timer(self.hand, name)

    def starts(self) -> "ByHand":
        self.acquire(self.hand)
        return self

    @property
    def news(self) -> list[tuple[Any, ...]]:
        return self.hand.news

    def sent_of(self, kind: str) -> list[int]:
        """The bases to which accesses of a kind went, in order."""
        return [sent.base for sent in self.sent if sent.kind == kind]


def exactly(**changes: Any) -> Terms:
    """Four bases, one of which may lie; ten seconds without margins; an answer may take for ever."""
    usual = {"n": 4, "f": 1, "ttl": 10.0, "rho": 0.0, "policy": Policy.ONCE, "access_timeout": 0.0}
    return Terms(**(usual | changes))


@dataclass(frozen=True)
class Stragglers:
    """A law of delays: short, but for one message in ten, which may take for many terms."""

    def draw(self, rng: random.Random) -> float:
        return rng.expovariate(20.0) if rng.random() > 0.1 else rng.expovariate(1 / 1.5)


def scenario(
    system: QuorumLease,
    *,
    liars: dict[int, type[Store]] | None = None,
    seed: int = 0,
    entries: int = 12,
    hold: Law = Constant(0.2),
    delay: Law = Exponential(0.05),
    workload: Workload | None = None,
    faults: tuple[Fault, ...] = (),
    **rest: Any,
) -> Scenario:
    """``liars`` are by position among the stores. Without a trace: there are many."""
    fenced = system.can_fence if system.fenced is None else system.fenced
    return Scenario(
        protocol="quorum-lease",
        build=system,
        claims=replace(CLAIMS, fencing=fenced),
        n=system.n,
        seed=seed,
        workload=saturated(entries, hold) if workload is None else workload,
        links=Links(delay, ordered=False),
        faults=faults,
        byzantine={system.store_ids[position]: liar for position, liar in (liars or {}).items()},
        **({"trace": False, "max_events": 100_000} | rest),
    )


class Renewing(Client):
    """A client that renews every third of a term for as long as it is inside."""

    __slots__ = ()

    def on_message(self, ctx: Any, source: int, message: Any) -> None:
        before = self.until
        Client.on_message(self, ctx, source, message)
        if self.until is not None and self.until is not before:
            ctx.set_timer("renew", self.terms.ttl / 3)

    def on_timer(self, ctx: Any, name: str) -> None:
        if name != "renew":
            Client.on_timer(self, ctx, name)
        elif self.until is not None:
            self.renew(ctx)
            ctx.set_timer("renew", self.terms.ttl / 3)


class RenewedLease(QuorumLease):
    def __call__(self, n: int) -> list[Node]:
        return [Renewing.in_place_of(node) if type(node) is Client else node for node in super().__call__(n)]


def one_store(
    kind: str, fenced: bool = False, access_timeout: float = 0, quiet: bool | None = None, **options: Any
) -> Model:
    """Two clients and one store, in the checker: time passes, and a client may give up at any moment."""
    terms = Terms(1, 0, ttl=2, rho=0, policy=Policy.ONCE, poll=0, fenced=fenced, access_timeout=access_timeout)
    quiet = kind == "one-access" if quiet is None else quiet
    clients = [Client(me, terms, (find(kind)(),), (2,), quiet) for me in (0, 1)]
    nodes = [*clients, Store(2, service(kind, Limits(), longest=2), terse=True)]
    return Model(nodes=nodes, network=Network.UNORDERED, clocks=Clocks(), **options)


class NeverRenews(Client):
    """A client without that input, so that in the checker only the other one renews."""

    __slots__ = ()

    @property
    def renew(self) -> Any:  # type: ignore[override]
        raise AttributeError("renew")


def one_store_one_renews(kind: str, **options: Any) -> Model:
    model = one_store(kind, inputs={"acquire": 1, "renew": 1}, **options)
    renewing, other, store = model.nodes
    return replace(model, nodes=[renewing, NeverRenews.in_place_of(other), store])
