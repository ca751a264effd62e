"""Robust k-mutual exclusion as it is printed (seed 003), flaw by flaw, by their numbers in the spec.

The paper counts what ours keeps in sets and timestamps. ``Counting`` is its algorithm 2 with the counters and without
the flaws; most exhibits put one of them back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trinco.check.model import Clocks, Model, Timers
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import INSIDE, WAITING, Context
from trinco.core.ids import NOBODY, bit
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.broadcast.spanning_tree import Ack, Retry, Rules, SpanningTree, Tree
from trinco.protocols.detection.hi_adsd import HiAdsd, Timing
from trinco.protocols.permission.robust_k import Request, RobustK, replaced
from trinco.protocols.permission.robust_k_recovery import RecoveringRobustK

REPEATS, REPEATS_ALL, NEVER_REPEATS = Rules(), Rules(retry=Retry.WHOLE_TREE), Rules(retry=Retry.NEVER)


class Counted(Message, tag="reply"):
    count: int


@dataclass(slots=True)
class Counting(RobustK):
    """Algorithm 2 with its counters. ``deferred`` is the printed defer_count, and a reply says how many it answers."""

    perm_count: int = 0
    reply_count: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        RobustK.__post_init__(self)
        self.reply_count = self.reply_count or (0,) * self.n

    def acquire(self, ctx: Context) -> None:
        self.stamp()
        self.expect_replies()
        self.tell(ctx, Request(self.timestamp))
        self.enter_if_permitted(ctx)

    def stamp(self) -> None:
        self.clock += 1
        self.timestamp = self.clock

    def expect_replies(self) -> None:
        awaited = set(self.living()) - {self.me}
        self.reply_count = tuple(count + (other in awaited) for other, count in enumerate(self.reply_count))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Counted):
            self.replied(ctx, source, message.count)
        else:
            RobustK.on_message(self, ctx, source, message)

    def requested(self, ctx: Context, source: int, request: Request) -> None:
        self.clock = max(self.clock, request.timestamp)
        if self.suspects & bit(source):
            return
        if self.must_wait(ctx, source, request.timestamp):
            self.deferred = replaced(self.deferred, source, self.deferred[source] + 1)
        else:
            self.reply(ctx, source, 1)

    def reply(self, ctx: Context, to: int, count: int) -> None:
        ctx.send(to, Counted(count))

    def replied(self, ctx: Context, source: int, count: int) -> None:
        if self.suspects & bit(source):
            return
        self.reply_count = replaced(self.reply_count, source, self.reply_count[source] - count)
        if self.timestamp and self.reply_count[source] == 0:
            self.perm_count += 1
            self.enter_if_permitted(ctx)

    def crashed(self, ctx: Context, dead: Sequence[int]) -> None:
        self.discount(dead)
        RobustK.crashed(self, ctx, dead)

    def discount(self, dead: Sequence[int]) -> None:
        if self.timestamp:
            self.perm_count -= sum(self.reply_count[each] == 0 for each in dead)

    def permissions(self) -> int:
        return self.perm_count

    def enter(self, ctx: Context) -> None:
        self.perm_count = 0
        RobustK.enter(self, ctx)


@dataclass(slots=True)
class CountsAfterwards(Counting):
    """Lines 10 and 11 in the order in which they stand: expects replies once everybody has acknowledged the request."""

    telling: bool = False

    def expect_replies(self) -> None:
        self.telling = True

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        Counting.on_message(self, ctx, source, message)
        if self.telling and self.tree and self.tree.body is None:
            self.telling = False
            Counting.expect_replies(self)


class LooksOneAhead(Counting):
    """Line 8: the timestamp is clock + 1, and the clock stays where it is."""

    __slots__ = ()

    def stamp(self) -> None:
        self.timestamp = self.clock + 1


class ChecksFirst(Counting):
    """Lines 29 and 30 after the detector's news has had its effect on line 12."""

    __slots__ = ()

    def crashed(self, ctx: Context, dead: Sequence[int]) -> None:
        RobustK.crashed(self, ctx, dead)
        self.discount(dead)


class OlderRequestsWait(RobustK):
    """The prose of section 4: permits only what has a greater timestamp than its own request."""

    __slots__ = ()

    def must_wait(self, ctx: Context, source: int, timestamp: int) -> bool:
        return ctx.phase is INSIDE or (self.timestamp > 0 and (self.timestamp, source) > (timestamp, self.me))


class KnowsByTimestamp(SpanningTree):
    """Numbers nothing: a message is told from the one before by the timestamp of its request."""

    __slots__ = ()

    def first_heard(self, source: int, message: Tree[Any]) -> bool:
        return differs(self, message.root, message.body.timestamp)


class KnowsByForwarder(SpanningTree):
    """Remembers the last message that each process has passed on, whoever it comes from."""

    __slots__ = ()

    def first_heard(self, source: int, message: Tree[Any]) -> bool:
        return differs(self, source, message.number * self.n + message.root)


class KnowsTheLast(SpanningTree):
    """Remembers the last message of each root: whatever is different is new."""

    __slots__ = ()

    def first_heard(self, source: int, message: Tree[Any]) -> bool:
        return differs(self, message.root, message.number)


def differs(tree: SpanningTree, place: int, mark: int) -> bool:
    """Line 12: whether what is remembered in this place is different. From now on it is this."""
    different = tree.heard[place] != mark
    tree.heard = replaced(tree.heard, place, mark)
    return different


class NoTimeLeft(Timing):
    """Nobody checks that an answer can come in time."""

    def __post_init__(self) -> None:
        pass


class Mistaken(RobustK):
    """Its detector may take the others for dead, and takes it back later. It answers also those whom it suspects, or a
    mistake would block them for ever."""

    __slots__ = ()

    def suspect(self, ctx: Context) -> None:
        self.detector.suspects = bit(self.n) - 1 - bit(self.me)
        self.enter_if_permitted(ctx)

    def see_the_mistake(self, ctx: Context) -> None:
        self.detector.suspects = NOBODY

    def requested(self, ctx: Context, source: int, request: Request) -> None:
        suspects, self.detector.suspects = self.suspects, NOBODY
        RobustK.requested(self, ctx, source, request)
        self.detector.suspects = suspects


@dataclass(slots=True)
class LosesAnAck(RobustK):
    """The network may lose one ACK on the way here."""

    losses: int = 1

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Ack) and self.losses and ctx.choose(2):
            self.losses -= 1
        else:
            RobustK.on_message(self, ctx, source, message)


@dataclass(slots=True)
class Forwarder(Node):
    """Passes messages on, until it falls silent without anybody knowing."""

    tree: SpanningTree
    silent: bool = False

    def fall_silent(self, ctx: Context) -> None:
        self.silent = True

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if not self.silent:
            self.tree.on_message(ctx, source, message, suspects=NOBODY)


def _told_by_tree(
    kind: type[RobustK], tree: type[SpanningTree], *rules: Rules, network: Network = Network.UNORDERED, entries: int = 1
) -> Model:
    """``rules`` are those of process 0, of process 1, and so on."""
    n = len(rules)
    nodes = [kind(me, n, 1, tree=tree(me, n, rules[me])) for me in range(n)]
    return Model(nodes=nodes, network=network, inputs={"acquire": entries}, fires=1)


def _told_directly(kind: type[RobustK], n: int, crashes: int = 0) -> Model:
    nodes = [kind(me, n, 1) for me in range(n)]
    inputs = {"acquire": 1, "suspect": 1, "see_the_mistake": 1}
    return Model(nodes=nodes, network=Network.UNORDERED, inputs=inputs, crashes=crashes)


def _one_comes_back(kind: type[RobustK]) -> Model:
    return Model(nodes=[kind(me, 2, 1) for me in range(2)], crashes=1, restarts=1)


def _tested(timing: Timing) -> Model:
    """A tick is more than it takes to ask and to answer."""
    nodes = [RobustK(me, 2, 1, detector=HiAdsd(me, 2, timing)) for me in range(2)]
    return Model(nodes=nodes, timers=Timers.PUNCTUAL, clocks=Clocks(), fires=2)


def _around_a_hole(retry: Retry) -> Model:
    """Process 2 tells process 1 by way of 0. With two units one permission is enough, and 0 gives none."""

    def goes_on(view: View) -> bool:
        return view.phase(2) is not WAITING

    trees = [SpanningTree(me, 3, rules) for me, rules in enumerate((NEVER_REPEATS, NEVER_REPEATS, Rules(retry=retry)))]
    nodes = [Forwarder(trees[0]), RobustK(1, 3, 2, tree=trees[1]), RobustK(2, 3, 2, tree=trees[2])]
    inputs, reachable = {"acquire": 1, "fall_silent": 1}, {"the entry of p2": goes_on}
    return Model(nodes=nodes, k=2, inputs=inputs, fires=1, reachable=reachable)


def _over_loss(rules: Rules) -> Model:
    def goes_on(view: View) -> bool:
        return view.phase(0) is not WAITING

    nodes = [LosesAnAck(me, 2, 1, tree=SpanningTree(me, 2, rules)) for me in range(2)]
    return Model(nodes=nodes, inputs={"acquire": 2}, fires=1, reachable={"the entry of p0": goes_on})


EXHIBITS = (
    Exhibit(
        name="robust-k/F1",
        title="replies that are expected only after the request has been told to all",
        printed="Rodrigues, Duarte Jr. & Arantes, algorithm 2, lines 10 and 11: STA(...), then reply_count++",
        lesson="If telling ends when everybody has acknowledged, replies are there before they are expected. The count "
        "goes from 0 to -1 and back to 0, no permission is counted, and the first request of all waits for ever.",
        breaks="deadlock",
        model=lambda: _told_by_tree(CountsAfterwards, SpanningTree, NEVER_REPEATS, NEVER_REPEATS),
        mended=lambda: _told_by_tree(Counting, SpanningTree, NEVER_REPEATS, NEVER_REPEATS),
    ),
    Exhibit(
        name="robust-k/F2",
        title="two requests with the same timestamp, of which the second is taken for a duplicate",
        printed="the same, algorithm 2, line 8: last = clock + 1, and the clock is not advanced",
        lesson="Where nobody else asks, the next request bears the timestamp of the last. To Raymond that is no harm; "
        "here the tree tells messages apart by it, drops the second, and nobody ever replies to it.",
        breaks="deadlock",
        model=lambda: _told_by_tree(LooksOneAhead, KnowsByTimestamp, NEVER_REPEATS, NEVER_REPEATS, entries=2),
        mended=lambda: _told_by_tree(Counting, KnowsByTimestamp, NEVER_REPEATS, NEVER_REPEATS, entries=2),
    ),
    Exhibit(
        name="robust-k/F3",
        title="a tree that remembers the last message by who passed it on",
        printed="the same, algorithm 1, lines 12 and 13: last_msg is indexed by the sender j, not by the root r",
        lesson="Messages of two roots that come by way of the same process displace each other. One that is repeated "
        "is then delivered and answered a second time; the count of replies goes below 0 and never comes back.",
        breaks="deadlock",
        model=lambda: _told_by_tree(
            Counting, KnowsByForwarder, NEVER_REPEATS, NEVER_REPEATS, REPEATS_ALL, network=Network.FIFO
        ),
        mended=lambda: _told_by_tree(
            Counting, SpanningTree, NEVER_REPEATS, NEVER_REPEATS, REPEATS_ALL, network=Network.FIFO
        ),
    ),
    Exhibit(
        name="robust-k/F4",
        title="a tree that takes whatever differs from the last message for new",
        printed="the same, algorithm 1, line 12: last_msg != msg",
        lesson="A repeated copy of one request that arrives after the next is different from that, so it is answered "
        "once more. The request after it is then permitted by a reply that was never meant for it.",
        breaks="safety",
        model=lambda: _told_by_tree(Counting, KnowsTheLast, REPEATS, NEVER_REPEATS, entries=2),
        mended=lambda: _told_by_tree(Counting, SpanningTree, REPEATS, NEVER_REPEATS, entries=2),
    ),
    Exhibit(
        name="robust-k/F5",
        title="a crash that lowers what is needed before it lowers what is there",
        printed="the same, algorithm 2, lines 29 and 30, which do not say that they come before line 12 is looked at",
        lesson="The dead process no longer has to permit anything, but its permission is still counted in place of one "
        "that lives and is inside. Kept as sets, from which the dead are taken away, there is no order to get wrong.",
        breaks="safety",
        model=lambda: _told_directly(ChecksFirst, 3, crashes=1),
        mended=lambda: _told_directly(Counting, 3, crashes=1),
    ),
    Exhibit(
        name="robust-k/F6",
        title="a detector whose timeout leaves no time for the answer",
        printed="the same, section 3.1, which needs a perfect detector and checks no timeout",
        lesson="Two processes test each other, hear nothing in time, and each believes that it is alone. A timeout has "
        "to exceed what a question and its answer can take.",
        breaks="safety",
        model=lambda: _tested(NoTimeLeft(interval=2.0, timeout=0.0)),
        mended=lambda: _tested(Timing(interval=2.0, timeout=1.0, delta=0.1)),
    ),
    Exhibit(
        name="robust-k/F7",
        title="permission for the younger request",
        printed="the same, section 4, prose: 'ela só será dada caso o relógio de p_j tenha um valor maior'",
        lesson="Whoever asks later has seen the older request and permitted it. If the older one permits it too, both "
        "enter. Line 21 of the algorithm has it the right way round.",
        breaks="safety",
        model=lambda: _told_directly(OlderRequestsWait, 2),
        mended=lambda: _told_directly(RobustK, 2),
    ),
    Exhibit(
        name="robust-k/F8",
        title="a request that is repeated down the same hole",
        printed="the same, algorithm 1, lines 5 to 10: the whole tree is repeated until all have acknowledged",
        lesson="If a process dies that was to pass a message on, the next attempt goes to it again, and so on until it "
        "is suspected. Repeated directly to those who have not acknowledged, the message arrives.",
        breaks="unreachable",
        model=lambda: _around_a_hole(Retry.WHOLE_TREE),
        mended=lambda: _around_a_hole(Retry.MISSING),
    ),
    Exhibit(
        name="robust-k/F9",
        title="a duplicate that is not acknowledged again",
        printed="the same, algorithm 1, lines 12 to 15: ACK is sent only for what is new",
        lesson="If one ACK is lost, the root repeats its message for ever, and who has heard it already is silent. The "
        "next request stays behind it.",
        breaks="unreachable",
        model=lambda: _over_loss(Rules(acknowledges_again=False)),
        mended=lambda: _over_loss(Rules()),
    ),
    Exhibit(
        name="robust-k/F16",
        title="a process that comes back, and that nobody listens to any more",
        printed="the same, algorithm 2, lines 20 and 25: whoever is suspected is ignored, and suspects only grow",
        lesson="A crash is for ever in the paper. A process that starts anew knows nothing of that: it asks all, and "
        "those who suspect it never answer. It has to join as somebody new, and to learn the clocks of all before it "
        "asks.",
        breaks="deadlock",
        model=lambda: _one_comes_back(RobustK),
        mended=lambda: _one_comes_back(RecoveringRobustK),
    ),
    Exhibit(
        name="robust-k/eventually-perfect",
        title="a detector that errs for a while",
        printed="nowhere; the paper says that a perfect detector is necessary, and this is why",
        lesson="As long as two processes take each other for dead, neither waits for the other. That they see it later "
        "does not help: eventually perfect is enough for consensus, not for mutual exclusion.",
        breaks="safety",
        model=lambda: _told_directly(Mistaken, 2),
        mended=lambda: _told_directly(RobustK, 2),
    ),
)
