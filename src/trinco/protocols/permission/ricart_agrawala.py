"""Ricart & Agrawala 1981: an optimal algorithm for mutual exclusion in computer networks.

Whoever wants to enter stamps its request with a logical clock and sends it to everybody else; it enters when all have
said OK. A process that is inside, or that asked earlier, holds its OK back until it has left. Two requests with the
same stamp are ordered by id, so exactly one of any two gives way.

Assumes: no crash (a single one blocks everybody), no loss. Channels need not be FIFO; see ``Claims.bypass`` for what
FIFO adds. Messages per entry: n-1 requests and n-1 OKs.

Against the slides (seed 001, "algoritmo distribuído"): they compare stamps in a process that "has not yet made the
request"; the rule is for one that *has* made it and is not yet inside. Read literally it deadlocks: ``slides/S-5``.
"""

from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context, Phase
from trinco.core.formula import Formula
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
    awaited: frozenset[int] = frozenset()
    deferred: frozenset[int] = frozenset()

    def acquire(self, ctx: Context) -> None:
        self.clock += 1
        self.timestamp = self.clock
        self.awaited = frozenset(range(self.n)) - {self.me}
        ctx.broadcast(Request(self.timestamp), to=range(self.n))
        self._enter_if_all_agree(ctx)

    def release(self, ctx: Context) -> None:
        deferred, self.deferred = self.deferred, frozenset()
        self.timestamp = 0
        ctx.broadcast(Ok(), to=sorted(deferred))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self._requested(ctx, source, message.timestamp)
            case Ok():
                self.awaited -= {source}
                self._enter_if_all_agree(ctx)

    def _requested(self, ctx: Context, source: int, timestamp: int) -> None:
        self.clock = max(self.clock, timestamp)
        if ctx.phase is Phase.INSIDE or (ctx.phase is Phase.WAITING and self._asked_before(source, timestamp)):
            self.deferred |= {source}
        else:
            ctx.send(source, Ok())

    def _asked_before(self, source: int, timestamp: int) -> bool:
        return (self.timestamp, self.me) < (timestamp, source)

    def _enter_if_all_agree(self, ctx: Context) -> None:
        if not self.awaited:
            ctx.grant()


def system(n: int) -> list[Process]:
    return [RicartAgrawala(me, n) for me in range(n)]
