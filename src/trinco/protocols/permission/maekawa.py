"""Maekawa 1985: a sqrt(N) algorithm for mutual exclusion in decentralized systems.

Each process has a quorum, any two of which meet, and enters when all members of its own have locked themselves for its
request. A member is locked for one request at a time and queues the others, the smaller timestamp first. So that none
wait in a circle, a member that is locked for a later request than one it has queued sends INQUIRE to its holder, who
gives the lock back (RELINQUISH) once another member has FAILED it.

Assumes: no crash (one blocks all whose quorum it is in), no loss. Channels need not be FIFO, but an INQUIRE that
overtakes its LOCKED must be kept until that comes. One that is so late that its process asks again already is kept too:
a lock given back without need costs messages and breaks nothing. The clock travels with requests only, so who asks
seldom may lag behind. It then overtakes others again and again until it has caught up, which no bound in n covers.

Messages per entry, with q members of which one is the process itself: 3(q-1) when nobody else asks, about 4(q-1) under
load. The paper's 5(q-1) at most is one short for each member: REQUEST, INQUIRE, RELINQUISH, LOCKED, RELEASE, and LOCKED
again for whoever gave the lock back. And 6(q-1) is on average: one entry may have to give its locks back several times.

Against the print: a request that was foremost in the queue of a member, and is so no longer since an earlier one came,
must be told FAILED. It was not on arrival, and would hold on to its other locks for ever (``maekawa/displaced``): the
published algorithm can deadlock, as Sanders wrote in 1987. And who has given a lock back has failed there, until it
gets it again, just as if it had been told. A process that is a member of its own quorum hears itself at once.
"""

from dataclasses import dataclass
from typing import TypeAlias

from trinco.core.claims import Claims, Fairness, Network, Payer
from trinco.core.context import WAITING, Context
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.protocols.quorums import arrangement
from trinco.protocols.quorums.quorum_set import QuorumSet

CLAIMS = Claims(
    paper="Maekawa, A sqrt(N) algorithm for mutual exclusion in decentralized systems",
    year=1985,
    network=Network.UNORDERED,
    messages_per_entry=Formula("3*(s-1)..6*(q-1)"),
    paid_by={"relinquish": Payer.SENDER, "release": Payer.SENDER},
    amortised=True,
    delay=Formula("2"),
    fairness=Fairness.FIFO_BY_CLOCK,
)


class Request(Message, tag="request"):
    timestamp: int


class Locked(Message, tag="locked"):
    pass


class Failed(Message, tag="failed"):
    pass


class Inquire(Message, tag="inquire"):
    pass


class Relinquish(Message, tag="relinquish"):
    pass


class Release(Message, tag="release"):
    pass


Asked: TypeAlias = tuple[int, int]
"""A request as a member keeps it: its timestamp, and whose it is. The smaller one precedes."""


@dataclass(slots=True)
class Maekawa(Process):
    """A process, and a member of the quorums of others."""

    me: int
    quorum: Ids
    clock: int = 0
    locked: Ids = NOBODY
    """The members that are locked for us, as far as we know."""
    failed: Ids = NOBODY
    """The members that have failed us, or got their lock back, and have not locked themselves for us since."""
    inquired: Ids = NOBODY
    """The members whose inquiry has no answer yet."""
    locking: Asked | None = None
    """The request that we are locked for, as a member."""
    waiting: tuple[Asked, ...] = ()
    """The other requests made to us, the most preceding one first."""

    def acquire(self, ctx: Context) -> None:
        self.clock += 1
        self._tell(ctx, self.quorum, Request(self.clock))

    def release(self, ctx: Context) -> None:
        self._tell(ctx, self.quorum, Release())

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.clock = max(self.clock, message.timestamp)
                self.consider(ctx, (message.timestamp, source))
            case Release():
                self.lock_for_the_first(ctx)
            case Relinquish() if self.locking is not None:
                self.queue(self.locking)
                self.lock_for_the_first(ctx)
            case Locked():
                self.locked |= bit(source)
                self.failed &= ~bit(source)
                self.enter_or_give_back(ctx)
            case Failed() if ctx.phase is WAITING:
                self.failed |= bit(source)
                self.enter_or_give_back(ctx)
            case Inquire() if ctx.phase is WAITING:
                self.inquired |= bit(source)
                self.enter_or_give_back(ctx)

    def consider(self, ctx: Context, request: Asked) -> None:
        """As a member: lock for it, or queue it and tell whoever has to know. Of those in the queue only the first can
        be without a FAILED, and that only while it precedes the locking one, whose process has then been asked."""
        locking, first = self.locking, self.waiting[:1]
        self.queue(request)
        if locking is None:
            self.lock_for_the_first(ctx)
        elif min((locking, *first)) < request:
            self.fail(ctx, request)
        elif first and first[0] < locking:
            self.displace(ctx, first[0])
        else:
            self.inquire(ctx, locking)

    def queue(self, request: Asked) -> None:
        self.waiting = tuple(sorted((*self.waiting, request)))

    def lock_for_the_first(self, ctx: Context) -> None:
        self.locking, self.waiting = (self.waiting[0], self.waiting[1:]) if self.waiting else (None, ())
        if self.locking is not None:
            self._send(ctx, self.locking[1], Locked())

    def fail(self, ctx: Context, request: Asked) -> None:
        self._send(ctx, request[1], Failed())

    def inquire(self, ctx: Context, request: Asked) -> None:
        self._send(ctx, request[1], Inquire())

    def displace(self, ctx: Context, request: Asked) -> None:
        """An earlier request came before it to the head of the queue."""
        self.fail(ctx, request)

    def enter_or_give_back(self, ctx: Context) -> None:
        if self.locked == self.quorum:
            self.locked = self.failed = self.inquired = NOBODY
            ctx.grant()
        elif self.failed:
            self.give_back(ctx, self.locked & self.inquired)

    def give_back(self, ctx: Context, locks: Ids) -> None:
        self.locked &= ~locks
        self.inquired &= ~locks
        self.failed |= locks
        self._tell(ctx, locks, Relinquish())

    def _tell(self, ctx: Context, group: Ids, message: Message) -> None:
        for member in members(group):
            self._send(ctx, member, message)

    def _send(self, ctx: Context, to: int, message: Message) -> None:
        """What goes to ourselves is received at once: so every handler sends last, when its state is complete."""
        if to == self.me:
            self.on_message(ctx, to, message)
        else:
            ctx.send(to, message)


@dataclass(frozen=True)
class MaekawaSystem:
    """``quorums`` names how the processes are arranged: see ``protocols.quorums``."""

    quorums: str = "grid"

    def __post_init__(self) -> None:
        arrangement(self.quorums)

    def letters(self, n: int) -> dict[str, float]:
        """The members of the smallest and of the largest quorum."""
        sizes = [quorum.bit_count() for quorum in arrangement(self.quorums)(n)]
        return {"s": min(sizes), "q": max(sizes)}

    def __call__(self, n: int) -> list[Process]:
        return among(arrangement(self.quorums)(n))


def among(quorums: QuorumSet) -> list[Process]:
    """One process for each quorum."""
    return [Maekawa(me, quorum) for me, quorum in enumerate(quorums)]
