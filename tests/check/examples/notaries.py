"""Notaries vouch for one client at a time, and sign it; a client enters with vouchers of a quorum.

Of s notaries f may lie. Two quorums of s-f meet in s-2f notaries, so one of them is honest when s > 3f: with four
notaries one may lie, with three it may vouch for two clients at once. Each client asks once. Channels are FIFO.
"""

from dataclasses import dataclass

from trinco.core.context import WAITING, Context
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.core.signed import Signed


class Ask(Message, tag="ask"):
    pass


class Vouch(Message, tag="vouch"):
    ticket: Signed


class Deny(Message, tag="deny"):
    pass


class GiveBack(Message, tag="give back"):
    tickets: frozenset[Signed]


def permission(client: int) -> tuple[str, int]:
    return "may enter", client


@dataclass(slots=True)
class Notary(Node):
    holder: int | None = None

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Ask() if self.holder is None:
                self.holder = source
                ctx.send(source, Vouch(ctx.sign(permission(source))))
            case Ask():
                ctx.send(source, Deny())
            case GiveBack() if self.holder == source:
                self.holder = None


@dataclass(slots=True)
class Client(Process):
    notaries: tuple[int, ...]
    quorum: int
    tickets: frozenset[Signed] = frozenset()
    denials: int = 0
    decided: bool = False

    def acquire(self, ctx: Context) -> None:
        ctx.broadcast(Ask(), to=self.notaries)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if self.decided:
            return
        match message:
            case Vouch(ticket) if ctx.verify(ticket) and ticket.body == permission(ctx.me):
                self.tickets |= {ticket}
            case Deny():
                self.denials += 1
        self._decide(ctx)

    def _decide(self, ctx: Context) -> None:
        if len(self.tickets) >= self.quorum:
            self.decided = True
            ctx.grant()
        elif len(self.tickets) + self.denials >= self.quorum:
            self.decided = True
            self._give_back(ctx)
            ctx.refuse("another client was there first")

    def release(self, ctx: Context) -> None:
        self._give_back(ctx)

    def _give_back(self, ctx: Context) -> None:
        ctx.broadcast(GiveBack(self.tickets), to=self.notaries)
        self.tickets, self.denials = frozenset(), 0

    def ignores(self, message: Message) -> bool:
        """A client asks once: when it has decided, nothing matters any more."""
        return self.decided


class TwoFaced(Notary):
    """Follows the protocol, or vouches for anybody, or says nothing."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if not isinstance(message, Ask):
            return
        match ctx.choose(3):
            case 0:
                Notary.on_message(self, ctx, source, message)
            case 1:
                ctx.send(source, Vouch(ctx.sign(permission(source))))


class SaysYes(Notary):
    """Vouches for anybody who asks."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Ask):
            ctx.send(source, Vouch(ctx.sign(permission(source))))


class Silent(Notary):
    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        """Answers nothing."""


class Forger(Notary):
    """Makes up a signature of notary 0, which it was never shown."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        ctx.send(source, Vouch(Signed(0, permission(source))))


@dataclass(slots=True)
class Replayer(Notary):
    """Keeps every signature that it is shown, and hands out again those that fit."""

    knows: frozenset[Signed] = frozenset()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case GiveBack():
                self.knows |= message.tickets
            case Ask():
                for ticket in sorted(self.knows, key=repr):
                    ctx.send(source, Vouch(ticket))


class Gossip(Notary):
    """Vouches for anybody, unasked."""

    __slots__ = ()

    def mischief(self, ctx: Context) -> None:
        client = 3 + ctx.choose(2)
        ctx.send(client, Vouch(ctx.sign(permission(client))))


class Greedy(Client):
    """A client that enters with the first voucher."""

    __slots__ = ()

    def _decide(self, ctx: Context) -> None:
        if self.tickets and ctx.phase is WAITING:
            self.decided = True
            ctx.grant()


class Gatecrasher(Client):
    """A client that says it is inside without having asked."""

    __slots__ = ()

    def mischief(self, ctx: Context) -> None:
        ctx.grant()


def system(*notaries: Node, clients: tuple[type[Client], ...] = (Client, Client)) -> list[Node]:
    """The notaries come first. A client waits for all but one of them."""
    ids = tuple(range(len(notaries)))
    return [*notaries, *(kind(ids, len(ids) - 1) for kind in clients)]
