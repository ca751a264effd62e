"""A store as a node of the contract: a service with a clock of its own."""

from collections.abc import Mapping
from typing import Any

from trinco.core.context import Context
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.core.value import Value
from trinco.leases import accesses
from trinco.leases.nodes.messages import INCARNATION, Access, Reply, Told
from trinco.leases.nodes.services import Service


class Store(Node):
    """Keeps to the protocol.

    ``granularity``: its clock shows whole multiples of this, rounded down. What it keeps survives a crash.
    """

    __slots__ = ("granularity", "me", "service", "terse")

    def __init__(self, me: int, service: Service, granularity: float = 0, terse: bool = False) -> None:
        self.me = me
        self.service = service
        self.granularity = granularity
        self.terse = terse
        """Leaves out of its answers what only people read, and stores nothing, since in the checker nobody restarts:
        that leaves fewer states to tell apart."""

    @classmethod
    def in_place_of(cls, honest: Node) -> "Store":
        assert isinstance(honest, Store)
        return cls(honest.me, honest.service, honest.granularity, honest.terse)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Access)
        session = source + INCARNATION * message.epoch
        reply = self.reply(ctx, session, message.access)
        if reply is not None and not message.quiet:
            ctx.send(source, Reply(message.claim, reply, message.epoch))

    def reply(self, ctx: Context, client: int, access: accesses.Access) -> Any:
        """What an honest store answers; a liar answers otherwise, and None is silence."""
        now = self.clock(ctx)
        self.service, reply = self.service.serve(client, access, now)
        self.service, said = self.service.speak(access, now)
        if not self.terse:
            ctx.store(self.service)
        if said is not None:
            ctx.send(said.owner % INCARNATION, Told(said))
        if self.terse and hasattr(reply, "remaining"):
            reply = reply.but(remaining=0)
        return reply

    def clock(self, ctx: Context) -> Instant:
        now = ctx.now()
        return Instant(now.at // self.granularity * self.granularity) if self.granularity else now

    def on_restart(self, ctx: Context, stored: Any) -> None:
        if stored is not None:
            self.service = stored

    def settle(self, ctx: Context) -> None:
        self.service = self.service.settled(ctx.now())

    def column(self, store: int) -> Value | None:
        return self.service if store == self.me else None

    def relabel(self, names: Mapping[int, int]) -> None:
        self.me = names[self.me]
