"""Storing and sending in one step, in both orders, for crashes in between."""

from dataclasses import dataclass

from trinco.core.context import Context
from trinco.core.message import Message
from trinco.core.node import Node


class News(Message, tag="news"):
    pass


@dataclass(slots=True)
class StoresFirst(Node):
    def publish(self, ctx: Context) -> None:
        ctx.store("published")
        ctx.broadcast(News(), to=(1, 2))


@dataclass(slots=True)
class StoresLast(Node):
    def publish(self, ctx: Context) -> None:
        ctx.broadcast(News(), to=(1, 2))
        ctx.store("published")


@dataclass(slots=True)
class Reader(Node):
    read: bool = False

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.read = True
