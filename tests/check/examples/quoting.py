"""A message whose text has everything in it that a script, or Python, might take for its own."""

from dataclasses import dataclass

from trinco.check.model import Model
from trinco.core.context import Context
from trinco.core.message import Message
from trinco.core.node import Process

TEXT = 'a\\n"quoted"\\\\ """text"""\nof two lines'


class Letter(Message, tag="letter"):
    text: str


@dataclass(slots=True)
class Writer(Process):
    """Enters when its own letter has come back, and does not look who is there."""

    def acquire(self, ctx: Context) -> None:
        ctx.send(ctx.me, Letter(TEXT))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        ctx.grant()

    def release(self, ctx: Context) -> None:
        """Leaves."""


def model() -> Model:
    return Model(nodes=[Writer(), Writer()])
