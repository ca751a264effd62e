"""SCFS's lock (the seed's TS): one compare-and-set with a time to live, at a coordination service on four machines.

A client asks the service to write its lock if there is none; whoever wrote it holds, and renews before it runs out. The
service is a state machine replicated on 3f+1 = 4 machines, so a request costs one access of the client and, behind it,
one round trip to a quorum of the group.

The group is modelled as *one* linearizable node that answers late: of four round trips between machines, drawn evenly
between half and one and a half times ``round_trip``, it waits for the third shortest. Its own f faults are thereby out
of sight; what the model keeps is what a client sees. Assumes that the service's clock and the clients' run within rho
of each other. Messages per entry: 4 when nobody else asks (request, answer, release, answer), and 2 for each renewal; a
waiter polls.

Against the public code (``LockRenewer``, cloud-of-clouds/SCFS): that one tries to renew four times, gives up and says
nothing, and the holder goes on believing. Ours counts its term from before the request and *says* that it is lost.

Nodes 0, 1, .. are the clients; the service is the last one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context, Phase
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.leases.accesses import Apply
from trinco.leases.claim import Claim
from trinco.leases.nodes.messages import Access, Reply
from trinco.leases.nodes.services import ScriptService
from trinco.leases.nodes.store import Store
from trinco.leases.operation import Answer, Extend, Grade, Operation, Release, Request
from trinco.leases.terms import RHO, Terms

CLAIMS = Claims(
    paper="Bessani, Mendes, Oliveira, Neves, Correia, Pasin & Veríssimo, SCFS: a shared cloud-backed file system",
    year=2014,
    network=Network.UNORDERED,
    messages_per_entry=Formula("4..inf"),
    delay=Formula("2"),
    fairness=Fairness.NONE,
    crashes=Formula("c"),
    starvation_free=False,
    timed=True,
    roles={"client": Formula("c"), "service": Formula("1")},
)

POLL, RENEW, RUN_OUT = "poll", "renew", "run out"
RENEW_AFTER = 0.9
"""The share of a term after which it is renewed, as in the public code."""
MACHINES, QUORUM = 4, 3
STEPS = 1000


class Group(Store):
    """The four machines as one. A request takes effect when a quorum has agreed on it, and is answered then."""

    __slots__ = ("number", "pending", "round_trip")

    def __init__(self, me: int, round_trip: float) -> None:
        Store.__init__(self, me, ScriptService())
        self.round_trip = round_trip
        self.number = 0
        self.pending: tuple[tuple[str, int, Message], ...] = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.number += 1
        timer = f"agreed {self.number}"
        self.pending = (*self.pending, (timer, source, message))
        ctx.set_timer(timer, self.agreement(ctx))

    def agreement(self, ctx: Context) -> float:
        trips = sorted(self.round_trip * (0.5 + ctx.choose(STEPS) / STEPS) for _ in range(MACHINES))
        return trips[QUORUM - 1]

    def on_timer(self, ctx: Context, name: str) -> None:
        agreed = [each for each in self.pending if each[0] == name]
        self.pending = tuple(each for each in self.pending if each[0] != name)
        for _, source, message in agreed:
            Store.on_message(self, ctx, source, message)


@dataclass(slots=True)
class Client(Process):
    service: int
    terms: Terms
    requests: int = 0
    """Counts what was sent: only the answer to the last request counts."""
    attempt: int = 0
    """The request that asked for the lock we hold or wait for."""
    asked: Instant | None = None
    """Before the last request: the term that it brings counts from here."""

    def acquire(self, ctx: Context) -> None:
        self.attempt = self.requests + 1
        self._ask(ctx, Request(self.claim(ctx), self.terms.ttl))

    def release(self, ctx: Context) -> None:
        self._stop(ctx)
        self._ask(ctx, Release(self.claim(ctx)))

    def on_restart(self, ctx: Context, stored: int | None) -> None:
        self.requests = stored or 0

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Reply)
        assert isinstance(message.reply, Answer)
        if message.claim.attempt != self.requests or ctx.phase is Phase.IDLE:
            return
        granted = message.reply.grade is Grade.COMMITTED
        if granted and self._until() - ctx.now() >= self.terms.useful:
            self._hold(ctx)
        elif ctx.phase is Phase.INSIDE:
            self._lose(ctx, "the coordination service says that the lock has run out")
        else:
            ctx.set_timer(POLL, self.terms.poll)

    def on_timer(self, ctx: Context, name: str) -> None:
        if name == POLL:
            self.acquire(ctx)
        elif name == RENEW:
            self._ask(ctx, Extend(self.claim(ctx), self.terms.ttl, self.requests))
        else:
            self._lose(ctx, "the coordination service did not renew the lock in time")

    def claim(self, ctx: Context) -> Claim:
        return Claim(ctx.me, self.attempt)

    def _until(self) -> Instant:
        assert self.asked is not None
        return self.terms.belief(self.asked)

    def _ask(self, ctx: Context, operation: Operation) -> None:
        self.requests += 1
        self.asked = ctx.now()
        ctx.store(self.requests)
        ctx.send(self.service, Access(Claim(ctx.me, self.requests), Apply(operation)))

    def _hold(self, ctx: Context) -> None:
        until, now = self._until(), ctx.now()
        ctx.set_timer(RENEW, until - now - (1 - RENEW_AFTER) * self.terms.ttl)
        ctx.set_timer(RUN_OUT, until - now)
        ctx.grant(until=until)

    def _lose(self, ctx: Context, reason: str) -> None:
        self._stop(ctx)
        ctx.lost(reason)

    def _stop(self, ctx: Context) -> None:
        for timer in (RENEW, RUN_OUT):
            ctx.cancel_timer(timer)


@dataclass(frozen=True)
class Coordination:
    """``ttl``: LOCK_TIME of the public code. ``round_trip``: between two machines of the group. Calling it makes the
    nodes."""

    ttl: float = 5.0
    poll: float = 0.5
    round_trip: float = 0.04
    rho: float = RHO

    def letters(self, n: int) -> dict[str, float]:
        """What the letters of the claims stand for in a system of n nodes."""
        return {"c": n - 1}

    def __call__(self, n: int) -> Sequence[Node]:
        if n < 2:
            raise UsageError(f"the service and at least one client are 2 nodes, not {n}")
        terms = Terms(ttl=self.ttl, poll=self.poll, rho=self.rho, fenced=False)
        clients: list[Node] = [Client(n - 1, terms) for _ in range(n - 1)]
        return [*clients, Group(n - 1, self.round_trip)]
