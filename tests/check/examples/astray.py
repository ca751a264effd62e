"""A process that writes to an address where nobody lives."""

from dataclasses import dataclass

from trinco.core.context import Context
from trinco.core.message import Message
from trinco.core.node import Process


class Letter(Message, tag="letter"):
    pass


@dataclass(slots=True)
class Misaddressed(Process):
    def acquire(self, ctx: Context) -> None:
        ctx.send(9, Letter())
        ctx.grant()

    def release(self, ctx: Context) -> None:
        """Leaves."""


@dataclass(slots=True)
class EntersTwice(Process):
    """Tells twice that it is inside."""

    def acquire(self, ctx: Context) -> None:
        ctx.grant()
        ctx.grant()

    def release(self, ctx: Context) -> None:
        """Leaves."""


@dataclass(slots=True)
class EntersAfterLeaving(Process):
    def acquire(self, ctx: Context) -> None:
        ctx.grant()

    def release(self, ctx: Context) -> None:
        ctx.grant()
