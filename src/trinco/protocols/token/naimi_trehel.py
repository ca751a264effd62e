"""Naimi & Trehel 1987, with Arnold 1996: a log(N) distributed mutual exclusion algorithm based on path reversal.

The processes form a tree by their fathers; its root is the last that asked. A request is passed on from father to
father up to the root, and everybody on its way takes the one that asks for its new father: that is path reversal. The
old root sends the token to its ``next`` as soon as it needs it no more: a queue with one link at each process.

Assumes: no crash, no loss. Channels need not be FIFO. Messages per entry: none for whoever has the token, else at most
n-1 requests and the token; on average H(n-1) = 1 + 1/2 + .. + 1/(n-1), when one asks at a time, anybody with the same
chance (Lavault 1992). How often a request on its way is overtaken has no bound. The claim is twice the paper's n, since
``core.cost`` charges a request that is passed on to a process that waits to that process.

Against the paper: Requesting_CS is the runtime's phase, and Token_present is not kept: a process has the token when it
is inside, or idle and a root.
"""

from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network, Payer
from trinco.core.context import IDLE, Context
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Process

CLAIMS = Claims(
    paper="Naimi, Trehel & Arnold, A log(N) distributed mutual exclusion algorithm based on path reversal",
    year=1996,
    network=Network.UNORDERED,
    messages_per_entry=Formula("0..n"),
    paid_by={"request": Payer.CAUSE},
    delay=Formula("0..n"),
    fairness=Fairness.BY_QUEUE,
)


class Request(Message, tag="request"):
    requester: int


class Token(Message, tag="token"):
    pass


@dataclass(slots=True)
class NaimiTrehel(Process):
    father: int | None
    """Whose request was the last to pass here; None for a root."""
    next: int | None = None
    """To whom the token goes from here, when it is no longer needed."""

    def acquire(self, ctx: Context) -> None:
        if self.father is None:
            ctx.grant()
        else:
            ctx.send(self.father, Request(ctx.me))
            self.father = None

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.serve(ctx, message)
                self.father = message.requester
            case Token():
                ctx.grant()

    def serve(self, ctx: Context, request: Request) -> None:
        if self.father is not None:
            ctx.send(self.father, request)
        elif ctx.phase is IDLE:
            ctx.send(request.requester, Token())
        else:
            self.next = request.requester

    def release(self, ctx: Context) -> None:
        if self.next is not None:
            ctx.send(self.next, Token())
            self.next = None


def system(n: int) -> list[Process]:
    """Process 0 has the token and is everybody else's father."""
    return [NaimiTrehel(father=None), *(NaimiTrehel(father=0) for _ in range(1, n))]
