"""Failover, broken: a coordinator that is replaced too hastily, a token that is made anew too carelessly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trinco.check.model import Model
from trinco.core.claims import Network
from trinco.core.context import WAITING, Context
from trinco.core.ids import NOBODY, bit
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols import coordinator_failover
from trinco.protocols.coordinator_failover import CoordinatorFailover, Grant
from trinco.protocols.detection.perfect import CRASHED
from trinco.protocols.token import regenerating_ring, token_ring
from trinco.protocols.token.regenerating_ring import Epoch, Query, RegeneratingRing


class GrantsAtOnce(CoordinatorFailover):
    """Grants as soon as it leads, whatever the others have not told it yet."""

    __slots__ = ()

    def may_grant(self) -> bool:
        return self.leader == self.me and self.holder is None


class EntersByAnyGrant(CoordinatorFailover):
    """Whoever waits enters when a grant comes, and does not ask whether the one who gave it still lives."""

    __slots__ = ()

    def heeds(self, source: int, message: Message) -> bool:
        return isinstance(message, Grant) or CoordinatorFailover.heeds(self, source, message)

    def hear(self, ctx: Context, source: int, message: Message) -> None:
        if ctx.phase is WAITING or not isinstance(message, Grant):
            CoordinatorFailover.hear(self, ctx, source, message)


class MakesTheTokenAtOnce(RegeneratingRing):
    """Asks, and does not wait for the answers."""

    __slots__ = ()

    def open_an_epoch(self, ctx: Context) -> None:
        RegeneratingRing.open_an_epoch(self, ctx)
        self.awaited = NOBODY
        self.decide()

    def collect(self, source: int, has_the_token: bool) -> None:
        pass


class AsksWithoutTheDead(RegeneratingRing):
    """Whoever is asked hears of the new epoch, and not of who has crashed."""

    __slots__ = ()

    def answer(self, ctx: Context, coordinator: int, query: Query) -> None:
        RegeneratingRing.answer(self, ctx, coordinator, Query(query.epoch, NOBODY))


class CountsOnly(RegeneratingRing):
    """An epoch is a number, whoever opens it."""

    __slots__ = ()

    def next_epoch(self) -> Epoch:
        return 0, self.epoch[1] + 1


class GoesOnWithoutTheDead(RegeneratingRing):
    """Whoever crashes before all have answered is simply no longer waited for."""

    __slots__ = ()

    def crash_noticed(self, ctx: Context, dead: int) -> None:
        if self.awaited:
            self.awaited &= ~bit(dead)
            self.decide()
        else:
            RegeneratingRing.crash_noticed(self, ctx, dead)


class LooksAtItselfLast(RegeneratingRing):
    """The coordinator looks whether it has the token itself when all others have answered."""

    __slots__ = ()

    def open_an_epoch(self, ctx: Context) -> None:
        RegeneratingRing.open_an_epoch(self, ctx)
        self.found = False

    def decide(self) -> None:
        if not self.awaited:
            self.found |= self.token is not None
        RegeneratingRing.decide(self)


@dataclass(slots=True)
class Gone(Node):
    """Crashed just before the run begins: one crash less to search for."""

    n: int

    def on_start(self, ctx: Context) -> None:
        ctx.broadcast(CRASHED, to=range(self.n))


def _failover(kind: type[Node], network: Network) -> Model:
    nodes = [kind.in_place_of(node) for node in coordinator_failover.system(3)]
    return Model(nodes=nodes, network=network, crashes=1)


def _ring(kind: type[Node], entries: int = 1) -> Model:
    nodes = [kind.in_place_of(node) for node in regenerating_ring.system(3)]
    return Model(nodes=nodes, inputs={"acquire": entries}, crashes=1)


def _two_in_a_ring(system: Callable[[int], Sequence[Node]]) -> Model:
    return Model(nodes=system(2), crashes=1)


def _ring_without_its_first(kind: type[Node], network: Network) -> Model:
    """The token is lost with process 0. There is one more crash, and two processes stay alive."""
    nodes: Sequence[Node] = [Gone(4), *(kind.in_place_of(node) for node in regenerating_ring.system(4)[1:])]
    return Model(nodes=nodes, network=network, crashes=1)


EXHIBITS = (
    Exhibit(
        name="slides/S-6",
        title="a ring whose token is lost with the process that had it",
        printed="slides, algoritmo baseado em anel: 'perca do testemunho' is named, what to do about it is not",
        lesson="Holding the token is the only permission there is, and nobody can tell a token that is lost from one "
        "that is late. Crashes have to be noticed, and a lost token made anew; with care, as the next ones show.",
        breaks="deadlock",
        model=lambda: _two_in_a_ring(token_ring.system),
        mended=lambda: _two_in_a_ring(regenerating_ring.system),
    ),
    Exhibit(
        name="slides/S-9",
        title="a coordinator's successor that grants before everybody has told it where it stands",
        printed="slides, algoritmo centralizado: the coordinator is elected, and nothing is said of what the next one "
        "must know",
        lesson="The dead coordinator's grant may still be under way, or its client inside. Only that client knows; "
        "whoever grants before it has said so grants a second time.",
        breaks="safety",
        model=lambda: _failover(GrantsAtOnce, Network.FIFO),
        mended=lambda: _failover(CoordinatorFailover, Network.FIFO),
    ),
    Exhibit(
        name="coordinator-failover/grant-of-the-dead",
        title="a client that enters by the grant of a coordinator whose crash it has already been told of",
        printed="nowhere; easily forgotten, since on FIFO channels it cannot happen",
        lesson="Once a client has told the next coordinator that it waits, that one may grant to another. A grant of "
        "the dead one that comes later must not be heeded.",
        breaks="safety",
        model=lambda: _failover(EntersByAnyGrant, Network.UNORDERED),
        mended=lambda: _failover(CoordinatorFailover, Network.UNORDERED),
    ),
    Exhibit(
        name="slides/S-10",
        title="a token made anew at the first crash, without waiting for the answers",
        printed="slides, algoritmo baseado em anel: 'perca do testemunho' is named, what to do about it is not",
        lesson="Not every crash takes the token with it. Until everybody has said that it has none, a second one must "
        "not be made.",
        breaks="safety",
        model=lambda: _ring(MakesTheTokenAtOnce),
        mended=lambda: _ring(RegeneratingRing),
    ),
    Exhibit(
        name="slides/S-10a",
        title="regeneration in which the question does not say who is dead",
        printed="nowhere; the first of four traps on the way to a ring that survives crashes",
        lesson="Whoever has answered may pass the token of the new epoch to the very process whose crash opened it, if "
        "it has not been told yet. No other crash follows, so nobody looks for the token again.",
        breaks="deadlock",
        model=lambda: _ring(AsksWithoutTheDead),
        mended=lambda: _ring(RegeneratingRing),
    ),
    Exhibit(
        name="slides/S-10b",
        title="regeneration with epochs that are numbers, whoever opens them",
        printed="nowhere; the second trap",
        lesson="A coordinator whose predecessor died while it asked may open an epoch of the same number. Who has "
        "answered the one takes the other's question for it. FIFO channels and asking lower ids first hide it.",
        breaks="deadlock",
        model=lambda: _ring_without_its_first(CountsOnly, Network.UNORDERED),
        mended=lambda: _ring_without_its_first(RegeneratingRing, Network.UNORDERED),
    ),
    Exhibit(
        name="slides/S-10c",
        title="regeneration that goes on without those who crash while the answers come in",
        printed="nowhere; the third trap",
        lesson="Whoever was asked before the second crash has not been told of it, and passes the token to a dead "
        "process; or the dead one had said that it has the token. Every crash needs an epoch of its own.",
        breaks="deadlock",
        model=lambda: _ring_without_its_first(GoesOnWithoutTheDead, Network.FIFO),
        mended=lambda: _ring_without_its_first(RegeneratingRing, Network.FIFO),
    ),
    Exhibit(
        name="slides/S-10d",
        title="regeneration whose coordinator looks at itself last",
        printed="nowhere; the fourth trap",
        lesson="Between asking and deciding, the coordinator may have passed the token to one that has already said "
        "no. Its own answer is what was true when it asked.",
        breaks="safety",
        model=lambda: _ring(LooksAtItselfLast, entries=2),
        mended=lambda: _ring(RegeneratingRing, entries=2),
    ),
)
