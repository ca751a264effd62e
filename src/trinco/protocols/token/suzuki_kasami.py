"""Suzuki & Kasami 1985: a distributed mutual exclusion algorithm.

Whoever holds the privilege, the one token, may enter; whoever lacks it numbers its request and sends it to everybody
else. The privilege carries the number of the last request of each process that was served (LN) and a queue (Q). Whoever
leaves appends all of whom it has heard of a newer request (RN), and sends the privilege to the head of the queue.

Assumes: no crash, no loss. Channels need not be FIFO. Messages per entry: n-1 requests and the privilege, or none where
the process that asks holds it. How often others enter while a request is on its way has no bound.

Against the paper: nothing but names. RN is ``requested``, LN is ``served``, HavePrivilege is to have it in a field, and
Requesting is the runtime's phase. The numbers rise for ever, so only a number of rounds can be checked.
"""

from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import IDLE, Context
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Process

CLAIMS = Claims(
    paper="Suzuki & Kasami, A distributed mutual exclusion algorithm",
    year=1985,
    network=Network.UNORDERED,
    messages_per_entry=Formula("0..n"),
    delay=Formula("0..2"),
    fairness=Fairness.BY_QUEUE,
)


class Request(Message, tag="request"):
    number: int


class Privilege(Message, tag="privilege"):
    queue: tuple[int, ...]
    served: tuple[int, ...]


@dataclass(slots=True)
class SuzukiKasami(Process):
    me: int
    n: int
    requested: tuple[int, ...]
    privilege: Privilege | None = None

    def acquire(self, ctx: Context) -> None:
        if self.privilege:
            ctx.grant()
            return
        number = self.requested[self.me] + 1
        self.requested = _with(self.requested, self.me, number)
        ctx.broadcast(Request(number), to=range(self.n))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.note(source, message.number)
                if self.privilege and ctx.phase is IDLE and self.is_unserved(self.privilege, source):
                    self._pass_on(ctx, source, self.privilege)
            case Privilege():
                self.privilege = message
                ctx.grant()

    def note(self, source: int, number: int) -> None:
        """An older request may come after a newer one: it changes nothing."""
        self.requested = _with(self.requested, source, max(self.requested[source], number))

    def is_unserved(self, privilege: Privilege, node: int) -> bool:
        """Its newest request came after all that were served. An outdated one must not bring the privilege back."""
        return self.requested[node] == privilege.served[node] + 1

    def release(self, ctx: Context) -> None:
        assert self.privilege is not None
        served = _with(self.privilege.served, self.me, self.requested[self.me])
        self.privilege = Privilege(self.privilege.queue, served)
        queue = self.queue_of(self.privilege)
        if queue:
            self._pass_on(ctx, queue[0], Privilege(queue[1:], served))

    def queue_of(self, privilege: Privilege) -> tuple[int, ...]:
        """The queue, and behind it those who are unserved and not in it, smallest id first."""
        absent = (node for node in range(self.n) if node not in privilege.queue)
        return privilege.queue + tuple(node for node in absent if self.is_unserved(privilege, node))

    def _pass_on(self, ctx: Context, to: int, privilege: Privilege) -> None:
        self.privilege = None
        ctx.send(to, privilege)


def _with(numbers: tuple[int, ...], node: int, number: int) -> tuple[int, ...]:
    return (*numbers[:node], number, *numbers[node + 1 :])


def system(n: int) -> list[Process]:
    """The privilege starts at process 0."""
    nothing = (0,) * n
    first = SuzukiKasami(0, n, nothing, Privilege(queue=(), served=nothing))
    return [first, *(SuzukiKasami(me, n, nothing) for me in range(1, n))]
