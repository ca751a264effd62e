"""Chandy & Misra 1984: the drinking philosophers problem; its dining part, the hygienic solution.

Two philosophers who exclude each other share a fork (garfo), and whoever holds all its forks may eat. Eating makes
forks dirty, sending one makes it clean; a hungry philosopher who is asked gives up a dirty fork and keeps a clean one.
So whoever ate last gives way, and since eating turns all one's forks at once, precedence never runs in a circle.

Assumes: no crash (whoever held the fork is waited for), no loss; forks that start dirty, placed so that precedence has
no circle: at the smaller id. Any conflict graph will do; the complete one is mutual exclusion. Messages per entry: a
request and a fork for each fork that is missing, 0 to 2(n-1), 0 to 2d with d neighbours. No bound on overtaking:
whoever holds the forks eats for nothing while a request travels to it. How many eat together when all are hungry all
the time is settled by where the forks start: by id, one at a time on a ring, where n/2 could.

There are two kinds of messages and nothing in either, so one bit tells them apart (seed 002, ``OneBit``). Even that is
more than needed: from one philosopher to another a fork and a request travel in turn.

Against the print: the paper assumes that channels keep messages in order, and asks (R1) whenever a hungry philosopher
has a request token and no fork. Where messages overtake each other, that sends the token to and fro for as long as the
fork is under way. We ask when we get hungry and when we give up a fork; in order this is the same, and no order is
needed.
"""

from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network, Payer
from trinco.core.context import INSIDE, WAITING, Context
from trinco.core.errors import DamagedData
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Codec, Message
from trinco.core.monitor import Monitor
from trinco.core.neighbours import NoNeighboursInside
from trinco.core.node import Process
from trinco.protocols import conflicts

CLAIMS = Claims(
    paper="Chandy & Misra, The drinking philosophers problem",
    year=1984,
    network=Network.UNORDERED,
    messages_per_entry=Formula("0..2*(n-1)"),
    paid_by={"request": Payer.SENDER},
    delay=Formula("0..2"),
    fairness=Fairness.BY_TURNS,
    k=Formula("k"),
)


class Request(Message, tag="request"):
    pass


class Fork(Message, tag="fork"):
    """Always clean: sending is what cleans it."""


class OneBit(Codec[Request | Fork]):
    """A request is 0, a fork is 1. A byte is the least that a wire takes: seven of its bits are always 0."""

    def __init__(self) -> None:
        Codec.__init__(self, Request, Fork)

    def encode(self, message: Request | Fork) -> bytes:
        return bytes([isinstance(message, Fork)])

    def decode(self, data: bytes) -> Request | Fork:
        match data:
            case b"\x00":
                return Request()
            case b"\x01":
                return Fork()
        raise DamagedData(f"these {len(data)} bytes are neither 0, a request, nor 1, a fork")


@dataclass(slots=True)
class Philosopher(Process):
    """Thinking is idle, hungry is waiting, eating is inside. Every field is a set of neighbours."""

    neighbours: Ids
    forks: Ids
    """Whose shared fork is here."""
    dirty: Ids
    request_tokens: Ids
    """Whose shared request token is here. With the fork: that neighbour asks for it."""

    def acquire(self, ctx: Context) -> None:
        self.ask_for(ctx, self.neighbours & ~self.forks)
        self.eat_with_all_forks(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.request_tokens |= bit(source)
                self.give_up(ctx, self.forks_to_give_up(ctx))
            case Fork():
                self.forks |= bit(source)
                self.eat_with_all_forks(ctx)

    def release(self, ctx: Context) -> None:
        self.give_up(ctx, self.forks_to_give_up(ctx))

    def ask_for(self, ctx: Context, missing: Ids) -> None:
        self.request_tokens &= ~missing
        ctx.broadcast(Request(), to=members(missing))

    def forks_to_give_up(self, ctx: Context) -> Ids:
        return NOBODY if ctx.phase is INSIDE else self.dirty & self.request_tokens

    def give_up(self, ctx: Context, forks: Ids) -> None:
        self.forks &= ~forks
        self.dirty &= ~forks
        ctx.broadcast(Fork(), to=members(forks))
        if ctx.phase is WAITING:
            self.ask_for(ctx, forks)

    def eat_with_all_forks(self, ctx: Context) -> None:
        if self.forks == self.neighbours:
            self.dirty = self.forks
            ctx.grant()


@dataclass(frozen=True)
class Philosophers:
    """``graph``: who excludes whom, ``complete``, ``ring`` (Dijkstra's table), or edges such as ``0-1 1-2``."""

    graph: str = "complete"

    def __call__(self, n: int) -> list[Philosopher]:
        return [_seated(me, neighbours) for me, neighbours in enumerate(conflicts.parse(self.graph, n))]

    def monitors(self, n: int) -> list[Monitor]:
        return [NoNeighboursInside(tuple(conflicts.parse(self.graph, n)))]

    def letters(self, n: int) -> dict[str, float]:
        """``k``: how many can eat together."""
        return {"k": conflicts.largest_independent_set(conflicts.parse(self.graph, n))}


def _seated(me: int, neighbours: Ids) -> Philosopher:
    """Forks start dirty at the smaller id, request tokens at the other end."""
    smaller = neighbours & (bit(me) - 1)
    larger = neighbours & ~smaller
    return Philosopher(neighbours, forks=larger, dirty=larger, request_tokens=smaller)
