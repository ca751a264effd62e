"""Raymond 1989: a distributed algorithm for multiple entries to a critical section.

Ricart and Agrawala's algorithm for k identical units: at most k processes are inside at once. Whoever wants to enter
asks everybody else and enters with n-k replies, for then at most k-1 others can be inside or go before it. The other
replies come later; so each process counts, per other process, how many of its requests are still unanswered, and only
one that has answered them all permits the present one.

Assumes: no loss. Channels need not be FIFO: replies are counted, and which of them comes first does not matter. Up to
k-1 crashes at any time block nobody, but each takes a unit with it, and after k crashes nobody enters any more. It says
how many may enter, never which unit is whose.

Messages per entry: n-1 requests and up to n-1 replies, of which n-k at least; replies that are held back for several
requests of one process go out as one. That is on average: a reply to one entry may come as late as during the next.
Who asks first is not always first to enter when k is above 1: the reply it lacks may be one that others do not need.

Against the account in spec robust-k: permissions are not counted but read off, as the zeros among the replies that are
due; and a request advances the clock, rather than looking one ahead of it and using the same timestamp twice.
"""

from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import INSIDE, WAITING, Context
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Process

CLAIMS = Claims(
    paper="Raymond, A distributed algorithm for multiple entries to a critical section",
    year=1989,
    network=Network.UNORDERED,
    messages_per_entry=Formula("2*n-k-1..2*(n-1)"),
    amortised=True,
    delay=Formula("2"),
    fairness=Fairness.FIFO_BY_CLOCK,
    k=Formula("k"),
    crashes=Formula("k-1"),
)


class Request(Message, tag="request"):
    timestamp: int


class Reply(Message, tag="reply"):
    count: int
    """How many requests it answers."""


@dataclass(slots=True)
class RaymondK(Process):
    me: int
    n: int
    k: int
    clock: int = 0
    timestamp: int = 0
    reply_count: tuple[int, ...] = ()
    """Per process: how many of our requests it has not yet answered."""
    defer_count: tuple[int, ...] = ()
    """Per process: how many of its requests wait for our answer."""

    def acquire(self, ctx: Context) -> None:
        self.clock += 1
        self.timestamp = self.clock
        self.reply_count = tuple(count + (other != self.me) for other, count in enumerate(self.reply_count))
        ctx.broadcast(Request(self.timestamp), to=range(self.n))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.clock = max(self.clock, message.timestamp)
                if self.must_wait(ctx, source, message.timestamp):
                    self.defer_count = _changed(self.defer_count, source, +1)
                else:
                    ctx.send(source, Reply(1))
            case Reply():
                self.reply_count = _changed(self.reply_count, source, -message.count)
                if ctx.phase is WAITING and self.permissions() >= self.n - self.k:
                    ctx.grant()

    def must_wait(self, ctx: Context, source: int, timestamp: int) -> bool:
        """Whether we go first: we are inside, or we have asked and our request is the older one."""
        return ctx.phase is INSIDE or (ctx.phase is WAITING and (self.timestamp, self.me) < (timestamp, source))

    def permissions(self) -> int:
        """How many others have answered everything. Our own place in the tuple is always 0."""
        return self.reply_count.count(0) - 1

    def release(self, ctx: Context) -> None:
        self.timestamp = 0
        for other, count in enumerate(self.defer_count):
            if count:
                ctx.send(other, Reply(count))
        self.defer_count = (0,) * self.n


def _changed(counts: tuple[int, ...], place: int, by: int) -> tuple[int, ...]:
    return (*counts[:place], counts[place] + by, *counts[place + 1 :])


@dataclass(frozen=True)
class RaymondKSystem:
    """``k`` processes may be inside at once."""

    k: int = 2

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"at least one process must be let in, not {self.k}")

    def letters(self, n: int) -> dict[str, float]:
        return {"k": self.k}

    def __call__(self, n: int) -> list[Process]:
        if self.k >= n:
            raise UsageError(f"with {self.k} units for {n} processes nobody would ever wait: take at most {n - 1}")
        return [RaymondK(me, n, self.k, reply_count=(0,) * n, defer_count=(0,) * n) for me in range(n)]
