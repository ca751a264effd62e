"""Rodrigues, Duarte Jr. & Arantes: robust distributed mutual exclusion for k shared resources (seed 003).

Raymond's algorithm for k identical units (see ``raymond_k``) over a failure detector. Whoever wants to enter tells its
request to all whom it does not suspect, down a spanning tree, and enters with the permission of n - |suspects| - k of
them: then at most k-1 others that live can be inside or go before it. When a process crashes, its permission no longer
counts and is no longer needed; a unit that it held is free for each observer as soon as that one suspects it.

Assumes: a perfect failure detector (with one that errs too many enter: ``robust-k/eventually-perfect``) and no loss. Up
to n-1 crashes at any moment; channels need not be FIFO. The observers need not agree on whom they suspect. It says how
many may enter, never which unit is whose: ``units`` does. Messages per entry: n-1 each of TREE, ACK and REPLY, of the
last perhaps k-1 fewer. Two improvements are settings: a REPLY that is sent at once stands for the ACK; and requests go
directly to all, which takes no ACK at all (a tree saves no message, it only spares the root). With k above 1 the oldest
request is not always served first; with k = 1 it is, and (timestamp, id) of a grant never falls: a fencing token.

Against the print (algorithm 2; the numbers are those of the exhibits and remarks ``robust-k/F..``): a request advances
the clock (F2) and is one step with what it awaits (F1). Replies say which request they answer, and who has permitted is
a set; the printed counters go wrong by one reply too many (F3, F4), by the order of two lines when a process crashes
(F5), and by stale replies (F12). The older request goes first, as in line 21; the prose has it the other way round
(F7). What a process crashed with is forgotten (F13); one that comes back takes ``robust_k_recovery`` (F16). A third
improvement is the detector's: who finds by its own test that a process has crashed tells all, which they would else
learn one after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trinco.core.claims import Claims, Fairness, Network, Payer
from trinco.core.context import INSIDE, Context
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.protocols.broadcast.spanning_tree import RETRY, Ack, SpanningTree, Tree
from trinco.protocols.detection.hi_adsd import HiAdsd
from trinco.protocols.detection.perfect import PerfectDetector

CLAIMS = Claims(
    paper="Rodrigues, Duarte Jr. & Arantes, Exclusão mútua distribuída e robusta para k recursos compartilhados",
    network=Network.UNORDERED,
    messages_per_entry=Formula("3*n-k-2..3*(n-1)"),
    paid_by={"tree": Payer.CAUSE, "ack": Payer.CAUSE},
    amortised=True,
    delay=Formula("2..ceil(log2(n))+1"),
    fairness=Fairness.FIFO_BY_CLOCK,
    k=Formula("k"),
    crashes=Formula("n-1"),
)


class Request(Message, tag="request"):
    timestamp: int


class Reply(Message, tag="reply"):
    timestamp: int
    """Of the request that it answers."""


class Notice(Message, tag="notice"):
    suspects: Ids


@dataclass(slots=True)
class RobustK(Process):
    me: int
    n: int
    k: int
    detector: PerfectDetector | HiAdsd = field(default_factory=PerfectDetector)
    tree: SpanningTree | None = None
    """None: requests go directly to all."""
    notifies: bool = False
    """Whether we tell all of a crash that our own test has found."""
    clock: int = 0
    timestamp: int = 0
    """Of our request, while we wait."""
    granted: Ids = NOBODY
    """Who has permitted it."""
    deferred: tuple[int, ...] = ()
    """Per process: the timestamp of its newest request that waits for our reply, or 0."""

    def __post_init__(self) -> None:
        self.deferred = self.deferred or (0,) * self.n

    @property
    def suspects(self) -> Ids:
        return self.detector.suspects

    def on_start(self, ctx: Context) -> None:
        if isinstance(self.detector, HiAdsd):
            self.detector.start(ctx)

    def acquire(self, ctx: Context) -> None:
        self.clock += 1
        self.timestamp = self.clock
        self.tell(ctx, Request(self.timestamp))
        self.enter_if_permitted(ctx)

    def tell(self, ctx: Context, request: Request) -> None:
        if self.tree:
            self.tree.broadcast(ctx, request, self.suspects)
        else:
            ctx.broadcast(request, to=self.living())

    def release(self, ctx: Context) -> None:
        self.reply_to_the_deferred(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.requested(ctx, source, message)
            case Tree() | Ack() if self.tree:
                request = self.tree.on_message(ctx, source, message, self.suspects)
                if isinstance(message, Tree) and isinstance(request, Request):
                    self.requested(ctx, message.root, request)
            case Reply():
                self.permitted(ctx, source, message)
            case Notice() if isinstance(self.detector, HiAdsd):
                self.crashed(ctx, self.detector.learn(message.suspects))
            case _:
                self.crashed(ctx, self.detector.on_message(ctx, source, message))

    def on_timer(self, ctx: Context, name: str) -> None:
        if name == RETRY and self.tree:
            self.tree.on_timer(ctx, name, self.suspects)
        elif isinstance(self.detector, HiAdsd):
            found = self.detector.on_timer(ctx, name)
            if found and self.notifies:
                ctx.broadcast(Notice(sum(map(bit, found))), to=self.living())
            self.crashed(ctx, found)

    def requested(self, ctx: Context, source: int, request: Request) -> None:
        self.clock = max(self.clock, request.timestamp)
        if self.suspects & bit(source):
            return
        if not self.must_wait(ctx, source, request.timestamp):
            self.reply(ctx, source, request.timestamp)
            return
        self.deferred = replaced(self.deferred, source, max(request.timestamp, self.deferred[source]))
        if self.tree and self.tree.rules.owner_answers:
            self.tree.acknowledge(ctx, source)

    def must_wait(self, ctx: Context, source: int, timestamp: int) -> bool:
        """Whether we go first: we are inside, or we have asked and our request is the older one."""
        return ctx.phase is INSIDE or (self.timestamp > 0 and (self.timestamp, self.me) < (timestamp, source))

    def reply(self, ctx: Context, to: int, timestamp: int) -> None:
        ctx.send(to, Reply(timestamp))

    def reply_to_the_deferred(self, ctx: Context) -> None:
        deferred, self.deferred = self.deferred, (0,) * self.n
        for other, timestamp in enumerate(deferred):
            if timestamp:
                self.reply(ctx, other, timestamp)

    def permitted(self, ctx: Context, source: int, reply: Reply) -> None:
        if self.tree and self.tree.rules.owner_answers:
            self.tree.answered(ctx, source, Request(reply.timestamp), self.suspects)
        if reply.timestamp == self.timestamp:
            self.granted |= bit(source)
            self.enter_if_permitted(ctx)

    def crashed(self, ctx: Context, dead: Sequence[int]) -> None:
        """The detector has them among its suspects; what they had permitted is not counted from then on."""
        for each in dead:
            self.deferred = replaced(self.deferred, each, 0)
            if self.tree:
                self.tree.forget(ctx, each, self.suspects)
        self.enter_if_permitted(ctx)

    def enter_if_permitted(self, ctx: Context) -> None:
        if self.timestamp and self.permissions() >= self.n - self.suspects.bit_count() - self.k:
            self.enter(ctx)

    def enter(self, ctx: Context) -> None:
        token = (self.timestamp, self.me) if self.k == 1 else None
        self.timestamp, self.granted = 0, NOBODY
        ctx.grant(token)

    def permissions(self) -> int:
        return (self.granted & ~self.suspects).bit_count()

    def ignores(self, message: Message) -> bool:
        """For the checker: a reply to a request that is over is never looked at again."""
        awaited = self.tree is not None and self.tree.rules.owner_answers
        return isinstance(message, Reply) and message.timestamp != self.timestamp and not awaited

    def living(self) -> Sequence[int]:
        """All whom we do not suspect."""
        return tuple(members((bit(self.n) - 1) & ~self.suspects))


def replaced(values: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])
