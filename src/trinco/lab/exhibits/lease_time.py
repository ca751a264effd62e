"""The composite lease, broken where it trusts clocks, terms and its own speed."""

from dataclasses import dataclass, replace

from trinco.check.model import Clocks, Model
from trinco.check.view import View
from trinco.core.context import Context
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.lab.exhibits.lease_instance import lease, terms
from trinco.leases.bases.one_access import OneAccess
from trinco.leases.chains import Base
from trinco.leases.item import NO_LIMITS, Limits
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.messages import Reply
from trinco.leases.nodes.services import ScriptService
from trinco.leases.nodes.store import Store
from trinco.leases.operation import Grade


class CountsFromTheReturn(Client):
    """Counts the term from when enough stores have answered."""

    __slots__ = ()

    def end_of_belief(self, ctx: Context, votes: list[Base]) -> Instant:
        return self.terms.belief(ctx.now())


COARSE = 2


class CoarseStore(Store):
    """Its clock shows every second tick. In the checker, where only durations are known, the phase is chosen anew each
    time: that covers all it can show."""

    __slots__ = ()

    def clock(self, ctx: Context) -> Instant:
        return ctx.now() + -ctx.choose(COARSE)


def _coarse(granularity: int) -> Model:
    return lease(terms(ttl=3, granularity=granularity), store=CoarseStore)


def _drifting(window: int, margin: int) -> Model:
    """p0's clock runs on its own, at most ``window`` ticks away from that of the store and p1."""
    return lease(terms(ttl=3, sigma=margin), clocks=Clocks(frozenset({0}), window))


class Write(Message, tag="write"):
    token: int


class Writer(Client):
    """Looks whether it still holds the lease, then writes. Anything may happen to a message in between, as anything
    may to a process between two lines."""

    __slots__ = ()

    def write(self, ctx: Context) -> None:
        if self.believes(ctx):
            ctx.send(self.stores[-1] + 1, Write(self.token))


@dataclass(slots=True)
class Resource(Node):
    """What the lock protects. Accepts nothing older than what it has accepted."""

    highest: int = 0
    went_back: bool = False

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Write)
        if self.accepts(message.token):
            self.went_back = message.token < self.highest
            self.highest = max(self.highest, message.token)

    def accepts(self, token: int) -> bool:
        return token >= self.highest


class Unfenced(Resource):
    """Does not look at tokens."""

    __slots__ = ()

    def accepts(self, token: int) -> bool:
        return True


def late_write(view: View) -> bool:
    """a write with a smaller token was accepted after one with a larger"""
    return bool(view.node(3).went_back)


def _protected(resource: Resource) -> Model:
    protocol = lease(terms(fenced=True), client=Writer, inputs={"acquire": 1, "write": 1}, never=[late_write])
    return replace(protocol, nodes=[*protocol.nodes, resource])


T_MAX, FOR_EVER = 2, 9


def blocked_too_long(view: View) -> bool:
    """somebody is refused by a lease that goes on for longer than any may"""
    replies = (message.reply for _, _, message in view.in_flight() if isinstance(message, Reply))
    return any(reply.grade is Grade.REFUSED and reply.remaining > T_MAX for reply in replies)


def _greedy(limits: Limits) -> Model:
    """p0 is a client that lies: it asks for as long as it likes."""
    clients = [Client(me, terms(ttl=ttl), (OneAccess(),), (2,), True) for me, ttl in enumerate((FOR_EVER, T_MAX))]
    store = Store(2, ScriptService(limits=limits))
    return Model(nodes=[*clients, store], byzantine=frozenset({0}), clocks=Clocks(), never=[blocked_too_long])


EXHIBITS = (
    Exhibit(
        name="lease/E2",
        title="a term that is counted from the return of the call",
        printed="Mendes et al., Algorithm 1, line 15, returns true and no time; CHARON sets its clock after the call",
        lesson="The stores count from when they were asked. An answer that took a tick leaves a tick less to believe.",
        breaks="safety",
        model=lambda: lease(terms(), client=CountsFromTheReturn),
        mended=lambda: lease(terms()),
    ),
    Exhibit(
        name="lease/E7",
        title="a store with a coarse clock, and no margin for it",
        printed="Mendes et al., section 4: times are the cloud's; those in HTTP answers are whole seconds, rounded "
        "down",
        lesson="The entry is stamped with a time that was already a while ago, and runs out that much earlier than "
        "its owner believes.",
        breaks="safety",
        model=lambda: _coarse(0),
        mended=lambda: _coarse(COARSE),
    ),
    Exhibit(
        name="lease/E13",
        title="a client whose clock drifts, and no margin for it",
        printed="Mendes et al., section 2.1, assumes bounds on time 'só' for liveness; equation 3 takes C(t) + T for "
        "C(t + T)",
        lesson="A clock that runs slower than the store's still shows the old term when the store's shows the next "
        "holder's. A clock that may lead or trail by one tick needs a margin of two.",
        breaks="safety",
        model=lambda: _drifting(1, 0),
        mended=lambda: _drifting(1, 2),
    ),
    Exhibit(
        name="lease/E16",
        title="a pause between looking at the clock and writing",
        printed="Mendes et al. have no tokens: whoever believes, acts",
        lesson="The look was in time, the write is late, and somebody else was in between. No lock can help here; a "
        "resource that compares tokens can.",
        breaks="never",
        model=lambda: _protected(Unfenced()),
        mended=lambda: _protected(Resource()),
    ),
    Exhibit(
        name="lease/E21",
        title="a term without a limit",
        printed="Mendes et al., Algorithms 2 to 5: a reader believes whatever T an entry says",
        lesson="A client that lies, or has a bug, asks for a very long term and keeps everybody out.",
        breaks="never",
        model=lambda: _greedy(NO_LIMITS),
        mended=lambda: _greedy(Limits(t_max=T_MAX)),
    ),
    Exhibit(
        name="lease/E27",
        title="a clock that stops while the host sleeps",
        printed="nowhere; what time.monotonic() does on Linux and macOS",
        lesson="No margin is wide enough: the host wakes up and believes what it believed, however long it slept.",
        breaks="safety",
        model=lambda: _drifting(3, 2),
        mended=lambda: _drifting(1, 2),
    ),
)
