"""Totally ordered multicast by a fixed sequencer (seed 001, "difusão totalmente ordenada").

Whoever wants to tell a group something sends it to one node, the sequencer, which numbers whatever arrives and passes
it on to all members. A member delivers by number: what comes early is held back until all that precedes it is there. So
all members deliver the same messages in the same order, whatever the network does to the order in which they arrive.

Assumes: no crash, no loss, no message twice. One message to the sequencer and one to each member; two message times.
Numbers begin again from 0 one day, as fields on a wire do. That is right as long as no more messages are under way to a
member than there are numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from trinco.core.context import Context
from trinco.core.message import Message, describe
from trinco.core.node import Node

NUMBERS = 2**32

Body = TypeVar("Body", bound=Message)


class Numbered(Message, Generic[Body], tag="numbered"):
    number: int
    origin: int
    body: Body

    def in_words(self) -> str:
        return f"numbered({self.number}, p{self.origin}: {describe(self.body)})"


@dataclass(slots=True)
class Sequencer(Node):
    """A node of its own, which passes on to nodes 0 to ``members`` - 1 whatever it is sent."""

    members: int
    numbers: int = NUMBERS
    next: int = 0

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        ctx.broadcast(Numbered(self.next, source, message), to=range(self.members))
        self.next = (self.next + 1) % self.numbers


@dataclass(slots=True)
class HoldBack:
    """The part of a member that puts what arrives into order."""

    numbers: int = NUMBERS
    expected: int = 0
    early: tuple[Numbered[Any], ...] = ()
    """By number."""

    def arrive(self, message: Numbered[Any]) -> list[tuple[int, Message]]:
        """What is delivered now, (who said it, what), in order: nothing, or the message and all that waited for it."""
        held = {each.number: each for each in (*self.early, message)}
        delivered = list(self._in_sequence(held))
        self.early = tuple(held[number] for number in sorted(held))
        return delivered

    def _in_sequence(self, held: dict[int, Numbered[Any]]) -> Iterator[tuple[int, Message]]:
        while self.expected in held:
            message = held.pop(self.expected)
            self.expected = (self.expected + 1) % self.numbers
            yield message.origin, message.body
