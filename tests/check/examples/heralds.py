"""A herald tells everybody; who hears it first tells the others. For liars that speak to several at once."""

from dataclasses import dataclass

from trinco.core.context import Context
from trinco.core.message import Message
from trinco.core.node import Node


class Word(Message, tag="word"):
    pass


class Echo(Message, tag="echo"):
    pass


@dataclass(slots=True)
class Herald(Node):
    audience: tuple[int, ...]

    def mischief(self, ctx: Context) -> None:
        ctx.broadcast(Word(), to=self.audience)


@dataclass(slots=True)
class Relay(Node):
    listeners: tuple[int, ...]

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        ctx.broadcast(Echo(), to=self.listeners)


@dataclass(slots=True)
class Listener(Node):
    first: str = ""

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.first = self.first or type(message).__name__
