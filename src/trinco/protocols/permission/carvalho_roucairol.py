"""Carvalho & Roucairol 1983: on mutual exclusion in computer networks.

Any two processes share one permission, and whoever holds that of all its pairs may enter. It keeps them when it leaves,
until somebody asks, so that it need not ask again for what nobody else has wanted meanwhile. Requests are stamped as
Ricart and Agrawala's are: a process that is inside, or that asked earlier, holds its reply back until it has left; one
that waits gives what it already holds to an older request, and asks for it back at once.

Assumes: no crash (whoever held its permission is waited for), no loss; any placing of the permissions at the start, one
to a pair: here the smaller id has it. Channels need not be FIFO: a request that overtakes the reply before it is always
the younger one, and waits. Messages per entry: a request and a reply for each permission that is missing or is given up
while waiting, 0 to 2(n-1); 0 for whoever enters again before anybody else asks, 2 for each of two that take turns.
There is no bound on overtaking: whoever holds all permissions enters for nothing, again and again, while a request
travels to it.
"""

from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network, Payer
from trinco.core.context import INSIDE, WAITING, Context
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Message
from trinco.core.node import Process

CLAIMS = Claims(
    paper="Carvalho & Roucairol, On mutual exclusion in computer networks",
    year=1983,
    network=Network.UNORDERED,
    messages_per_entry=Formula("0..2*(n-1)"),
    paid_by={"request": Payer.SENDER},
    delay=Formula("0..2"),
    fairness=Fairness.FIFO_BY_CLOCK,
)


class Request(Message, tag="request"):
    timestamp: int


class Reply(Message, tag="reply"):
    """Hands over the permission that sender and receiver share."""


@dataclass(slots=True)
class CarvalhoRoucairol(Process):
    me: int
    others: Ids
    permissions: Ids
    """With whom the shared permission is here."""
    clock: int = 0
    timestamp: int = 0
    deferred: Ids = NOBODY

    def acquire(self, ctx: Context) -> None:
        self.clock += 1
        self.timestamp = self.clock
        ctx.broadcast(Request(self.timestamp), to=members(self.others & ~self.permissions))
        self.enter_with_all_permissions(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.clock = max(self.clock, message.timestamp)
                if self.must_wait(ctx, source, message.timestamp):
                    self.deferred |= bit(source)
                else:
                    self.give_up(ctx, bit(source))
            case Reply():
                self.permissions |= bit(source)
                self.enter_with_all_permissions(ctx)

    def must_wait(self, ctx: Context, source: int, timestamp: int) -> bool:
        """Whether we go first: we are inside, or we have asked and our request is the older one."""
        return ctx.phase is INSIDE or (ctx.phase is WAITING and (self.timestamp, self.me) < (timestamp, source))

    def give_up(self, ctx: Context, permissions: Ids) -> None:
        self.permissions &= ~permissions
        ctx.broadcast(Reply(), to=members(permissions))
        if ctx.phase is WAITING:
            ctx.broadcast(Request(self.timestamp), to=members(permissions))

    def enter_with_all_permissions(self, ctx: Context) -> None:
        if self.permissions == self.others:
            ctx.grant()

    def release(self, ctx: Context) -> None:
        deferred, self.deferred = self.deferred, NOBODY
        self.timestamp = 0
        self.give_up(ctx, deferred)


def system(n: int) -> list[Process]:
    return [_starting(me, bit(n) - 1 & ~bit(me)) for me in range(n)]


def _starting(me: int, others: Ids) -> CarvalhoRoucairol:
    """The smaller id of each pair has the permission."""
    return CarvalhoRoucairol(me, others, permissions=others & -bit(me))
