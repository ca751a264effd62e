"""Lamport 1978: time, clocks, and the ordering of events in a distributed system.

Every process keeps a copy of one request queue, ordered by logical clock and then by id. Whoever wants to enter puts
its request into all copies and enters when it stands first in its own and everybody has acknowledged; leaving, it has
the request removed from all copies. An acknowledgement says that no older request of its sender is still under way.

Assumes: no crash (a single one blocks everybody), no loss, and FIFO channels: an acknowledgement that overtakes a
request says something false, and two enter (``lamport/overtaken-request``). Messages per entry: n-1 requests, n-1
acknowledgements, n-1 releases. Each other process overtakes us at most twice: what it asks for after its first such
entry is acknowledged behind our request, so when it enters again it knows ours, and asks with a later stamp.

Against the print: rule 5 takes any message that is stamped later than our request for an answer. We wait for the
acknowledgement itself, which is such a message; each sends one, and we do not ask again before all have come. So how
many are missing is all we keep of what was heard from whom. It must be all or nothing: if later requests count as well,
an acknowledgement that they have stood in for comes late, passes for an answer to our next request, and two enter. The
clock ticks for requests only. The other messages are stamped to pass it on: so a request that happened before another
is always granted before it, which is the paper's second condition.
"""

from dataclasses import dataclass
from typing import TypeAlias

from trinco.core.claims import Claims, Fairness, Network, Payer
from trinco.core.context import WAITING, Context
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Process

CLAIMS = Claims(
    paper="Lamport, Time, clocks, and the ordering of events in a distributed system",
    year=1978,
    network=Network.FIFO,
    messages_per_entry=Formula("3*(n-1)"),
    paid_by={"request": Payer.SENDER, "release": Payer.SENDER},
    delay=Formula("2"),
    fairness=Fairness.FIFO_BY_CLOCK,
    bypass=Formula("2*(n-1)"),
)

Queued: TypeAlias = tuple[int, int]
"""A request in the queue: its timestamp, and whose it is."""


class Request(Message, tag="request"):
    timestamp: int


class Acknowledge(Message, tag="acknowledge"):
    timestamp: int


class Release(Message, tag="release"):
    timestamp: int


@dataclass(slots=True)
class Lamport(Process):
    me: int
    n: int
    clock: int = 0
    queue: tuple[Queued, ...] = ()
    """The oldest request first."""
    awaited: int = 0
    """How many have not acknowledged our request."""

    def acquire(self, ctx: Context) -> None:
        self.clock += 1
        self._enqueue(self.clock, self.me)
        self.awaited = self.n - 1
        ctx.broadcast(Request(self.clock), to=range(self.n))
        self._enter_when_first(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Request | Acknowledge | Release)
        self.clock = max(self.clock, message.timestamp)
        match message:
            case Request():
                self._enqueue(message.timestamp, source)
                ctx.send(source, Acknowledge(self.clock))
            case Acknowledge():
                self.awaited -= 1
            case Release():
                self._remove_request_of(source)
        self._enter_when_first(ctx)

    def release(self, ctx: Context) -> None:
        self._remove_request_of(self.me)
        ctx.broadcast(Release(self.clock), to=range(self.n))

    def _enqueue(self, timestamp: int, process: int) -> None:
        self.queue = tuple(sorted((*self.queue, (timestamp, process))))

    def _remove_request_of(self, process: int) -> None:
        self.queue = tuple(queued for queued in self.queue if queued[1] != process)

    def _enter_when_first(self, ctx: Context) -> None:
        """Rule 5: ours is the oldest request, and everybody has answered it."""
        if ctx.phase is WAITING and self.awaited == 0 and self.queue[0][1] == self.me:
            ctx.grant()


def system(n: int) -> list[Process]:
    return [Lamport(me, n) for me in range(n)]
