"""A process made of parts: a roll call over a list of names, which ask for themselves and tell their owner."""

from dataclasses import dataclass, field

from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Message
from trinco.core.node import Node, Process


class Present(Message, tag="present"):
    question: bool


@dataclass(slots=True)
class Names:
    heard: Ids = NOBODY

    def tick_off(self, node: int) -> None:
        self.heard |= bit(node)


@dataclass(slots=True)
class RollCall:
    """Asks everybody; says when all have answered. Knows nothing of who uses it."""

    everybody: tuple[int, ...]
    names: Names = field(default_factory=Names)

    def start(self, ctx: Context) -> None:
        self.names = Names()
        ctx.broadcast(Present(question=True), to=self.everybody)
        ctx.set_timer("roll/again", 1)

    def on_message(self, ctx: Context, source: int, message: Message) -> bool:
        """Whether everybody is now known to be there."""
        self.names.tick_off(source)
        complete = self.names.heard.bit_count() == len(self.everybody)
        if complete:
            ctx.cancel_timer("roll/again")
        return complete

    def on_timer(self, ctx: Context) -> None:
        missing = (node for node in self.everybody if not self.names.heard & bit(node))
        ctx.broadcast(Present(question=True), to=missing)


@dataclass(slots=True)
class Teacher(Process):
    roll: RollCall
    asking: bool = False

    def acquire(self, ctx: Context) -> None:
        self.asking = True
        self.roll.start(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if self.asking and self.roll.on_message(ctx, source, message):
            self.asking = False
            ctx.grant()

    def on_timer(self, ctx: Context, name: str) -> None:
        part, _ = name.split("/")
        assert part == "roll"
        self.roll.on_timer(ctx)

    def release(self, ctx: Context) -> None:
        """Leaves."""


@dataclass(slots=True)
class Pupil(Node):
    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        ctx.send(source, Present(question=False))


def system() -> list[Node]:
    return [Teacher(RollCall(everybody=(1, 2))), Pupil(), Pupil()]
