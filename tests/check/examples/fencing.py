"""A coordinator that hands out a fencing token with every grant, counted up; or one that forgets to."""

from dataclasses import dataclass

from trinco.core.context import Context
from trinco.core.message import Message
from trinco.core.node import Node, Process


class Wish(Message, tag="wish"):
    pass


class Pass(Message, tag="pass"):
    token: int


class Leave(Message, tag="leave"):
    pass


@dataclass(slots=True)
class Doorkeeper(Node):
    rise: int = 1
    token: int = 0
    busy: bool = False
    queue: tuple[int, ...] = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Wish():
                self.queue = (*self.queue, source)
            case Leave():
                self.busy = False
        if self.queue and not self.busy:
            first, *rest = self.queue
            self.busy, self.queue, self.token = True, tuple(rest), self.token + self.rise
            ctx.send(first, Pass(self.token))


@dataclass(slots=True)
class Visitor(Process):
    def acquire(self, ctx: Context) -> None:
        ctx.send(0, Wish())

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Pass)
        ctx.grant(token=message.token)

    def release(self, ctx: Context) -> None:
        ctx.send(0, Leave())
