"""Rodrigues, Duarte Jr. & Arantes: robust distributed mutual exclusion for k shared resources, its tree (STA).

Whoever has something to tell sends it to the first process of each of its clusters that it does not suspect (see
``detection.clusters``); each of these passes it on within its own smaller clusters, and so on: a spanning tree of the
living, in which nobody is more than ceil(log2 n) hops away. Everybody who hears it acknowledges it to the root, and
until all whom the root does not suspect have done so it is repeated. Messages of one root are sent one after another.

Assumes: a perfect failure detector; its suspects are handed in with every call. Messages may be lost, doubled and
reordered, and up to n-1 processes may crash. If all suspect just the dead, the n living pay n-1 TREE and n-1 ACK.

Against the print (seed 003, algorithm 1): what was heard before is told apart by root and number, and only a higher
number is new; by the process that passed it on, or with "different is new", a repeated message is delivered twice. It
is repeated directly to those who have not acknowledged it; the whole tree again, as printed, goes down the same hole
when a process dies that was to pass it on. And whoever hears it again acknowledges it again, or one lost ACK makes the
root repeat it for ever. TREE's cluster is left out, since nobody reads it. (The prose passes a message on if hops > 1
*after* counting down; the algorithm, and the figure, before.)
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Message, describe
from trinco.protocols.detection.clusters import cluster, dimensions, first_unsuspected

RETRY = "tree/retry"

Body = TypeVar("Body", bound=Message)


class Tree(Message, Generic[Body], tag="tree"):
    root: int
    number: int
    """The root's messages, counted from 1."""
    hops: int
    body: Body

    def in_words(self) -> str:
        return f"tree(p{self.root}'s {self.number}, hops {self.hops}: {describe(self.body)})"


class Ack(Message, tag="ack"):
    number: int


class Retry(Enum):
    """What the root does when not all have acknowledged in time."""

    MISSING = "sends the message directly to those who have not"
    WHOLE_TREE = "sends it down the whole tree again, as printed"
    NEVER = "nothing"


@dataclass(frozen=True)
class Rules:
    """``timeout``: the paper's 2 log2(16) times the delay of a message; (log n + 1) times it is enough."""

    timeout: float = 0.08
    retry: Retry = Retry.MISSING
    acknowledges_again: bool = True
    """Whether a message that was heard before is acknowledged again. As printed it is not."""
    owner_answers: bool = False
    """Whether an answer of the owner's can stand for an ACK. Then the owner acknowledges what it hears first, by its
    answer or by ``acknowledge``."""


@dataclass(slots=True)
class SpanningTree:
    me: int
    n: int
    rules: Rules = Rules()
    queue: tuple[Message, ...] = ()
    """What is still to be told."""
    body: Message | None = None
    """What is being told."""
    number: int = 0
    """Of what is being told, or was last."""
    awaited: Ids = NOBODY
    """Who has not acknowledged it, and is not suspected."""
    heard: tuple[int, ...] = ()
    """Per root: the number of the last message that was delivered."""

    def __post_init__(self) -> None:
        self.heard = self.heard or (0,) * self.n

    def broadcast(self, ctx: Context, body: Message, suspects: Ids) -> None:
        self.queue = (*self.queue, body)
        self._tell_the_next(ctx, suspects)

    def on_message(self, ctx: Context, source: int, message: Message, suspects: Ids) -> Message | None:
        """What is delivered: the body of a message that was not heard before."""
        match message:
            case Tree():
                return self._hear(ctx, source, message, suspects)
            case Ack() if message.number == self.number:
                self._note_acknowledgement(ctx, source, suspects)
        return None

    def on_timer(self, ctx: Context, name: str, suspects: Ids) -> None:
        if self.rules.retry is Retry.WHOLE_TREE:
            self._send_down_the_tree(ctx, suspects)
        else:
            ctx.broadcast(self._message(hops=1), to=members(self.awaited))
        self._set_timer(ctx)

    def forget(self, ctx: Context, crashed: int, suspects: Ids) -> None:
        """A process is newly suspected: nobody waits for it any longer."""
        self._note_acknowledgement(ctx, crashed, suspects)

    def acknowledge(self, ctx: Context, root: int) -> None:
        """Say that the last message of this root has been heard."""
        ctx.send(root, Ack(self.heard[root]))

    def answered(self, ctx: Context, source: int, body: Message, suspects: Ids) -> None:
        """Something came from a process that counts as its acknowledgement of this body."""
        if body == self.body:
            self._note_acknowledgement(ctx, source, suspects)

    # The root

    def _note_acknowledgement(self, ctx: Context, source: int, suspects: Ids) -> None:
        self.awaited &= ~bit(source)
        self._tell_the_next(ctx, suspects)

    def _tell_the_next(self, ctx: Context, suspects: Ids) -> None:
        """Once the last has been acknowledged by all. If it were told earlier it might overtake that one, which would
        then be taken for an old one, and never be delivered."""
        while self.queue and not self.awaited:
            self.body, *later = self.queue
            self.queue = tuple(later)
            self.number += 1
            self.awaited = (bit(self.n) - 1) & ~bit(self.me) & ~suspects
            self._send_down_the_tree(ctx, suspects)
            self._set_timer(ctx)
        if not self.awaited:
            self.body = None
            ctx.cancel_timer(RETRY)

    def _set_timer(self, ctx: Context) -> None:
        if self.rules.retry is not Retry.NEVER:
            ctx.set_timer(RETRY, self.rules.timeout)

    def _send_down_the_tree(self, ctx: Context, suspects: Ids) -> None:
        for s in range(1, dimensions(self.n) + 1):
            self._send_to_cluster(ctx, s, self._message(hops=s), suspects)

    def _message(self, hops: int) -> Tree[Any]:
        assert self.body is not None
        return Tree(self.me, self.number, hops, self.body)

    # The others

    def _hear(self, ctx: Context, source: int, message: Tree[Any], suspects: Ids) -> Message | None:
        is_new = self.first_heard(source, message)
        acknowledges = not self.rules.owner_answers if is_new else self.rules.acknowledges_again
        if acknowledges:
            ctx.send(message.root, Ack(message.number))
        for s in range(message.hops - 1, 0, -1):
            self._send_to_cluster(ctx, s, replace(message, hops=s), suspects)
        return message.body if is_new else None

    def first_heard(self, source: int, message: Tree[Any]) -> bool:
        """Whether this message is heard for the first time. From now on it was."""
        root = message.root
        if message.number <= self.heard[root]:
            return False
        self.heard = (*self.heard[:root], message.number, *self.heard[root + 1 :])
        return True

    # Both

    def _send_to_cluster(self, ctx: Context, s: int, message: Tree[Any], suspects: Ids) -> None:
        head = first_unsuspected(cluster(self.me, s, self.n), suspects)
        if head is not None:
            ctx.send(head, message)
