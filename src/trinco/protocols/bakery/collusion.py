"""Servers and clients of the bakery that lie together. Neither has to be told of the other: each does its part."""

from dataclasses import dataclass

from trinco.core.context import Context
from trinco.core.message import Message
from trinco.protocols.bakery import lying_clients, lying_servers
from trinco.protocols.bakery.certificates import Begun, Suspicion, Ticket, by_signer
from trinco.protocols.bakery.client import Client
from trinco.protocols.bakery.lying_clients import LyingClient
from trinco.protocols.bakery.lying_servers import MEMORY, Tapped
from trinco.protocols.bakery.messages import Certificate, Certify, Get, Removal, Removed, Set, Suspect
from trinco.protocols.bakery.server import Server


@dataclass(frozen=True)
class Pair:
    server: type[Server]
    client: type[Client]
    what: str


class Informer(Tapped):
    """F26: keeps its suspicions to itself until one more makes a removal certificate, and shows that to whom it likes.

    A server that had it first and told nobody would leave the others waiting for a suspicion that never comes.
    """

    __slots__ = ()

    def _hear_suspicion(self, ctx: Context, source: int, message: Suspect) -> None:
        self.muteness.remember(message)
        client, sid = message.turn.body.client, message.turn.body.sid
        mine = ctx.sign(Suspicion(self.judge.lock, client, sid))
        certificate = by_signer((mine, *self.muteness.certificate(client, sid)))
        if self.judge.removes(ctx, certificate, client, sid):
            ctx.broadcast(Removal(client, sid, certificate), to=self.judge.servers)

    def _see_removal(self, ctx: Context, client: int, sid: int, certificate: Certificate) -> None:
        """The turn stays here."""

    def say(self, ctx: Context, to: int, message: Message) -> None:
        if not isinstance(message, Suspect | Removed) and not (isinstance(message, Removal) and ctx.choose(2)):
            ctx.send(to, message)


@dataclass(slots=True)
class Medium(Tapped):
    """Lets the dead speak: what it was told of turns that are over it says again, to one server or another."""

    past: tuple[Message, ...] = ()

    def _take_in(self, ctx: Context, source: int, message: Message | None) -> None:
        if isinstance(message, Suspect | Removal | Set):
            self.past = (*self.past, self._as_told_by(ctx, message))[-MEMORY:]
        Tapped._take_in(self, ctx, source, message)
        if self.past and source not in self.judge.servers:
            to = self.judge.servers[ctx.choose(len(self.judge.servers))]
            ctx.send(to, self.past[ctx.choose(len(self.past))])

    def _as_told_by(self, ctx: Context, message: Message) -> Message:
        """A suspicion counts from the one who signed it only, and a ticket from a server that asks about it."""
        if isinstance(message, Suspect):
            return self.muteness.suspect(ctx, message.turn)
        if isinstance(message, Set):
            ticket = ctx.sign(Ticket(self.judge.lock, message.number))
            return Certify(message.number, message.justification, ticket)
        return message


WORD: object = "7"
"""Nobody counts turns like this."""


class SignsNonsense(LyingClient):
    """Signs turns that have no number."""

    __slots__ = ()

    def say(self, ctx: Context, to: int, message: Message) -> None:
        if isinstance(message, Get):
            ctx.send(to, Get(message.sid, ctx.sign(Begun(self.judge.lock, ctx.me, WORD))))  # type: ignore[arg-type]
        ctx.send(to, message)


class SuspectsNonsense(Tapped):
    """Suspects clients of turns that have no number, since they have signed some."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Get) and getattr(message.turn.body, "sid", 0) == WORD:
            suspicion = ctx.sign(Suspicion(self.judge.lock, source, WORD))  # type: ignore[arg-type]
            ctx.broadcast(Suspect(suspicion, message.turn, asks=True), to=self.judge.servers)
        Tapped.on_message(self, ctx, source, message)


PAIRS = {
    "open-door": Pair(
        lying_servers.GrantAll, lying_clients.NoJustification, "a ticket from nowhere, and a vote for it all the same"
    ),
    "inflation": Pair(
        lying_servers.Inflate, lying_clients.HugeTicket, "a ticket of 10^12, and a server that signs and reports it"
    ),
    "informer": Pair(
        Informer, lying_clients.PartialSet, "half a turn, and a server that has it removed where that hurts most"
    ),
    "half-exit": Pair(
        Informer, lying_clients.PartialExit, "half an exit, and a server that has it removed where that hurts most"
    ),
    "medium": Pair(Medium, lying_clients.MuteInside, "a holder that dies, and a server that lets it speak on"),
    "two-faced": Pair(
        lying_servers.Equivocate, lying_clients.Equivocate, "two tickets in one turn, from two answers to one question"
    ),
    "accusers": Pair(
        lying_servers.SuspectAll, lying_clients.Leapfrog, "turns begun at one server only, and everybody accused"
    ),
    "nonsense": Pair(SuspectsNonsense, SignsNonsense, "turns that have no number, signed and suspected"),
}
