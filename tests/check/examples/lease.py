"""A lease on one store: whoever holds it may be inside until it runs out, by its own clock.

The store counts from when it gets the request, the tenant from before it sends it: so the tenant's belief always ends
first. Time is counted in ticks. Channels are FIFO.
"""

from dataclasses import dataclass

from trinco.core.context import Context, Phase
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Node, Process


class Ask(Message, tag="ask"):
    ttl: int


class Answer(Message, tag="answer"):
    granted: bool


class GiveBack(Message, tag="give back"):
    pass


@dataclass(slots=True)
class Store(Node):
    owner: int | None = None
    until: Instant | None = None

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Ask():
                free = self.until is None or self.until <= ctx.now() or self.owner == source
                if free:
                    self.owner, self.until = source, ctx.now() + message.ttl
                ctx.send(source, Answer(free))
            case GiveBack() if self.owner == source:
                self.owner = self.until = None

    def settle(self, ctx: Context) -> None:
        if self.until is not None and self.until <= ctx.now():
            self.owner = self.until = None


@dataclass(slots=True)
class Tenant(Process):
    store: int
    ttl: int
    margin: int = 0
    deadline: Instant | None = None

    def acquire(self, ctx: Context) -> None:
        self.deadline = ctx.now() + (self.ttl - self.margin)
        ctx.send(self.store, Ask(self.ttl))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Answer)
        until, self.deadline = self.end_of_belief(ctx), None
        if message.granted and until > ctx.now():
            ctx.grant(until=until)
        else:
            ctx.refuse("held by another" if not message.granted else "the answer came too late")

    def end_of_belief(self, ctx: Context) -> Instant:
        assert self.deadline is not None
        return self.deadline

    def release(self, ctx: Context) -> None:
        ctx.send(self.store, GiveBack())


class CountsFromTheReturn(Tenant):
    """Counts the term from when the answer came: the store may by then have counted for a while."""

    __slots__ = ()

    def end_of_belief(self, ctx: Context) -> Instant:
        return ctx.now() + (self.ttl - self.margin)


class Renewing(Tenant):
    """Asks again while inside, and believes for another term when the store agrees."""

    __slots__ = ()

    def renew(self, ctx: Context) -> None:
        Tenant.acquire(self, ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if ctx.phase is not Phase.IDLE:  # it may have left since it asked for more
            Tenant.on_message(self, ctx, source, message)


def system(kind: type[Tenant] = Tenant, *, ttl: int = 2, margin: int = 0) -> list[Node]:
    return [Store(), kind(store=0, ttl=ttl, margin=margin), kind(store=0, ttl=ttl, margin=margin)]
