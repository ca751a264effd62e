"""Ricart & Agrawala 1981: an optimal algorithm for mutual exclusion in computer networks.

Whoever wants to enter stamps its request with a logical clock and sends it to everybody else; it enters when all have
said OK. A process that is inside, or that asked earlier, holds its OK back until it has left. Two requests with the
same stamp are ordered by id, so exactly one of any two gives way.

Assumes: no crash (a single one blocks everybody), no loss. Channels need not be FIFO for safety or liveness, but the
bound on overtaking needs it: at most twice by each other process; without it, three processes overtake five times.
Messages per entry: n-1 requests and n-1 OKs.

Against the slides (seed 001, "algoritmo distribuído"): they compare stamps in a process that "has not yet made the
request"; the rule is for one that *has* made it and is not yet inside. Read literally it deadlocks: ``slides/S-5``.
"""

from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import INSIDE, WAITING, Context
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Message
from trinco.core.node import Process

CLAIMS = Claims(
    paper="Ricart & Agrawala, An optimal algorithm for mutual exclusion in computer networks",
    year=1981,
    network=Network.FIFO,
    messages_per_entry=Formula("2*(n-1)"),
    delay=Formula("2"),
    fairness=Fairness.FIFO_BY_CLOCK,
    bypass=Formula("2*(n-1)"),
)


class Request(Message, tag="request"):
    timestamp: int


class Ok(Message, tag="ok"):
    pass


@dataclass(slots=True)
class RicartAgrawala(Process):
    me: int
    n: int
    clock: int = 0
    timestamp: int = 0
    awaited: int = 0
    deferred: Ids = NOBODY

    def acquire(self, ctx: Context) -> None:
        self.clock += 1
        self.timestamp = self.clock
        self.awaited = self.n - 1
        ctx.broadcast(Request(self.timestamp), to=range(self.n))
        if self.n == 1:
            ctx.grant()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.clock = max(self.clock, message.timestamp)
                if self.must_wait(ctx, source, message.timestamp):
                    self.deferred |= bit(source)
                else:
                    ctx.send(source, Ok())
            case Ok():
                self.awaited -= 1
                if self.awaited == 0:
                    ctx.grant()

    def must_wait(self, ctx: Context, source: int, timestamp: int) -> bool:
        """Whether we go first: we are inside, or we have asked and our request is the older one."""
        return ctx.phase is INSIDE or (ctx.phase is WAITING and (self.timestamp, self.me) < (timestamp, source))

    def release(self, ctx: Context) -> None:
        deferred, self.deferred = self.deferred, NOBODY
        self.timestamp = 0
        ctx.broadcast(Ok(), to=members(deferred))


def system(n: int) -> list[Process]:
    return [RicartAgrawala(me, n) for me in range(n)]
