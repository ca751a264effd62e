"""A clerk that hands out numbered tickets, as it should be and broken, to see that the token's monitor notices."""

from dataclasses import dataclass

from trinco.core.message import Message
from trinco.core.node import Node, Process


class Ask(Message, tag="ask"):
    pass


class Ticket(Message, tag="ticket"):
    number: int | None


class Done(Message, tag="done"):
    pass


@dataclass(slots=True)
class Clerk(Node):
    """Serves one at a time, first come first served, each with the next number."""

    last: int = 0
    queue: tuple[int, ...] = ()

    def on_message(self, ctx, source, message):
        busy = bool(self.queue)
        self.queue = (*self.queue, source) if isinstance(message, Ask) else self.queue[1:]
        if self.queue and not (busy and isinstance(message, Ask)):
            ctx.send(self.queue[0], Ticket(self.number()))

    def number(self):
        self.last += 1
        return self.last


class CountsDown(Clerk):
    __slots__ = ()

    def number(self):
        self.last -= 1
        return self.last


class RepeatsItself(Clerk):
    __slots__ = ()

    def number(self):
        return 7


class LeavesTheNumberOut(Clerk):
    __slots__ = ()

    def number(self):
        return None


@dataclass(slots=True)
class Customer(Process):
    clerk: int

    def acquire(self, ctx):
        ctx.send(self.clerk, Ask())

    def on_message(self, ctx, source, message):
        ctx.grant(token=message.number)

    def release(self, ctx):
        ctx.send(self.clerk, Done())


def counts_up(n):
    return _under(Clerk(), n)


def counts_down(n):
    return _under(CountsDown(), n)


def repeats_itself(n):
    return _under(RepeatsItself(), n)


def leaves_the_number_out(n):
    return _under(LeavesTheNumberOut(), n)


def _under(clerk, n):
    return [clerk, *(Customer(clerk=0) for _ in range(1, n))]
