"""Small ways to wait: for ever, fairly, unluckily, or not for long."""

from dataclasses import dataclass

from trinco.check.model import Model
from trinco.core.context import Context
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.protocols.coordinator import Client, Coordinator, Grant


class Ball(Message, tag="ball"):
    pass


class LastComeFirstServed(Coordinator):
    """A coordinator that serves the newest request first: whoever came early may be overtaken for ever."""

    __slots__ = ()

    def _serve_the_first(self, ctx: Context) -> None:
        if self.holder is None and self.queue:
            *waiting, self.holder = self.queue
            self.queue = tuple(waiting)
            ctx.send(self.holder, Grant())


def stack(clients: int) -> list[Node]:
    return [LastComeFirstServed(), *(Client(coordinator=0) for _ in range(clients))]


def starving() -> Model:
    """Two clients can overtake the third for ever."""
    return Model(nodes=stack(3), inputs={"acquire": None})


@dataclass(slots=True)
class Gambler(Process):
    """Tosses a coin until it wins: with probability one it enters, but nothing makes it."""

    def acquire(self, ctx: Context) -> None:
        ctx.send(ctx.me, Ball())

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if ctx.choose(2):
            ctx.grant()
        else:
            ctx.send(ctx.me, Ball())

    def release(self, ctx: Context) -> None:
        """Leaves."""


@dataclass(slots=True)
class Juggler(Node):
    """Throws a ball to itself, for ever: something always happens."""

    def on_start(self, ctx: Context) -> None:
        ctx.send(ctx.me, Ball())

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        ctx.send(ctx.me, Ball())


@dataclass(slots=True)
class Forlorn(Process):
    """Asks nobody, so nobody answers, unless it was told not to wait."""

    waits: bool = True

    def acquire(self, ctx: Context) -> None:
        if not self.waits:
            ctx.grant()

    def release(self, ctx: Context) -> None:
        """Leaves."""


@dataclass(slots=True)
class HopesForAChoice(Process):
    """Enters at once, or waits for what never comes."""

    def acquire(self, ctx: Context) -> None:
        if ctx.choose(2):
            ctx.grant()

    def release(self, ctx: Context) -> None:
        """Leaves."""
