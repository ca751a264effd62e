"""Timers: one that is waited for, one that sends again."""

from dataclasses import dataclass

from trinco.core.context import WAITING, Context
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Node, Process


class Ping(Message, tag="ping"):
    pass


class Pong(Message, tag="pong"):
    pass


@dataclass(slots=True)
class Sleeper(Process):
    """Enters when its timer has run out, three ticks after it asked."""

    awake: Instant | None = None

    def acquire(self, ctx: Context) -> None:
        self.awake = ctx.now() + 3
        ctx.set_timer("sleep", 3)

    def on_timer(self, ctx: Context, name: str) -> None:
        ctx.grant()

    def release(self, ctx: Context) -> None:
        self.awake = None


@dataclass(slots=True)
class Insistent(Process):
    """Asks again and again until an answer comes."""

    server: int

    def acquire(self, ctx: Context) -> None:
        self._ask(ctx)

    def on_timer(self, ctx: Context, name: str) -> None:
        self._ask(ctx)

    def _ask(self, ctx: Context) -> None:
        ctx.send(self.server, Ping())
        ctx.set_timer("again", 1)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if ctx.phase is WAITING:
            ctx.cancel_timer("again")
            ctx.grant()

    def release(self, ctx: Context) -> None:
        """Leaves."""


@dataclass(slots=True)
class Answering(Node):
    """Answers, but not the first few times."""

    misses: int = 0

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if self.misses:
            self.misses -= 1
        else:
            ctx.send(source, Pong())


@dataclass(slots=True)
class Restless(Process):
    """Enters when it has heard nothing for a while, and goes on telling itself something."""

    begins_again: bool

    def acquire(self, ctx: Context) -> None:
        ctx.set_timer("quiet", 1)
        ctx.send(ctx.me, Ping())

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if ctx.phase is WAITING:
            ctx.send(ctx.me, Ping())
            if self.begins_again:
                ctx.set_timer("quiet", 1)

    def on_timer(self, ctx: Context, name: str) -> None:
        ctx.grant()

    def release(self, ctx: Context) -> None:
        """Leaves."""


@dataclass(slots=True)
class AnsweringEverySecond(Node):
    """Has to be asked twice for every answer."""

    asked: bool = False

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if self.asked:
            ctx.send(source, Pong())
        self.asked = not self.asked


@dataclass(slots=True)
class AnsweringOnce(Node):
    """Answers the first, and nobody after that."""

    answered: bool = False

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if not self.answered:
            ctx.send(source, Pong())
        self.answered = True
