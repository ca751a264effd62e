"""Robust k-mutual exclusion (``robust_k``) with processes that come back after a crash.

The paper's crashes are for ever: whoever is suspected is not heard any more, and a process that starts anew would use
its old timestamps again. Here a process that comes back has a new *incarnation*, one more than the last, which is all
that it keeps on disk. It tells all that it joins and asks for nothing until everybody who lives has answered with its
clock: from then on its requests are younger than those of all who wait. To them a JOIN is two things: the old
incarnation has crashed, and the new one has asked for nothing yet, so it permits what they ask for.

Assumes what ``robust_k`` does, with Hi-ADSD for a detector, and that whoever comes back finds its incarnation. Some
process must be alive at any time. Messages: a JOIN and its answer for each other process, once. Grants carry no token
to be relied on: if all who knew the highest timestamp crash, nobody tells it to those who come back.

Rules that are easily missed. An answer to JOIN says which incarnation it answers. Clocks, and the numbers of the tree
and of the tests, begin beyond all that an earlier incarnation can have used. Who does not answer a JOIN in time has
crashed, and who joins at the same time answers by that. A JOIN ends a test of that process which goes on, since the
question may have found nobody. Hearsay of a crash says of which incarnation, or it would be taken for the next one's;
and incarnations are hearsay too, since a JOIN may have reached some and not others. (The oracle, ``detection.perfect``,
says it of none, and tells nothing to those who are down: in the checker it will do for one crash, on FIFO channels.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trinco.core.context import WAITING, Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Message
from trinco.protocols.detection.clusters import cluster
from trinco.protocols.detection.hi_adsd import AreYouAlive, HiAdsd, IAmAlive
from trinco.protocols.permission.robust_k import RobustK, replaced

UNANSWERED = "recovery/unanswered"

BOOT = 1 << 32
"""More than an incarnation can count."""


class Join(Message, tag="join"):
    incarnation: int


class JoinAck(Message, tag="join-ack"):
    joiner: int
    """The incarnation that is answered."""
    clock: int
    incarnations: tuple[int, ...]
    """Of each process that the answerer knows of, its own among them."""


class Answer(Message, tag="answer"):
    """I_AM_ALIVE, with the incarnations that it speaks of."""

    nonce: int
    suspects: Ids
    incarnations: tuple[int, ...]


@dataclass(slots=True)
class RecoveringRobustK(RobustK):
    incarnations: tuple[int, ...] = ()
    """Per process: the last one that we know of, our own among them."""
    awaited: Ids = NOBODY
    """Who has not answered our JOIN. While there is anybody, we ask for nothing."""

    def __post_init__(self) -> None:
        RobustK.__post_init__(self)
        self.incarnations = self.incarnations or (0,) * self.n

    # The one that comes back

    def on_restart(self, ctx: Context, stored: Any) -> None:
        incarnation = (stored or 0) + 1
        ctx.store(incarnation)
        self.incarnations = replaced(self.incarnations, self.me, incarnation)
        self.clock = incarnation * BOOT
        if self.tree:
            self.tree.number = incarnation * BOOT
        if isinstance(self.detector, HiAdsd):
            self.detector.nonce = incarnation * BOOT
            ctx.set_timer(UNANSWERED, self.detector.timing.timeout)
        self.awaited = (bit(self.n) - 1) & ~bit(self.me)
        ctx.broadcast(Join(incarnation), to=range(self.n))

    def acquire(self, ctx: Context) -> None:
        if not self.awaited:
            RobustK.acquire(self, ctx)

    def answered(self, ctx: Context, source: int, answer: JoinAck) -> None:
        if answer.joiner == self.incarnations[self.me]:
            self.clock = max(self.clock, answer.clock)
            self.learn_incarnations(ctx, answer.incarnations)
            self.no_longer_await(ctx, bit(source))

    def on_timer(self, ctx: Context, name: str) -> None:
        if name == UNANSWERED and isinstance(self.detector, HiAdsd):
            self.crashed(ctx, self.detector.learn(self.awaited))
        else:
            RobustK.on_timer(self, ctx, name)

    def crashed(self, ctx: Context, dead: Sequence[int]) -> None:
        RobustK.crashed(self, ctx, dead)
        self.no_longer_await(ctx, sum(map(bit, dead)))

    def no_longer_await(self, ctx: Context, processes: Ids) -> None:
        if not self.awaited:
            return
        self.awaited &= ~processes
        if not self.awaited:
            ctx.cancel_timer(UNANSWERED)
            self.on_start(ctx)
            if ctx.phase is WAITING:
                self.acquire(ctx)

    # The others

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Join():
                self.joined(ctx, source, message.incarnation)
            case JoinAck():
                self.answered(ctx, source, message)
            case AreYouAlive():
                ctx.send(source, Answer(message.nonce, self.suspects, self.incarnations))
            case Answer():
                self.heard_of(ctx, source, message)
            case _:
                RobustK.on_message(self, ctx, source, message)

    def joined(self, ctx: Context, source: int, incarnation: int) -> None:
        if incarnation < self.incarnations[source]:
            return
        self.learn_incarnations(ctx, replaced(self.incarnations, source, incarnation))
        ctx.send(source, JoinAck(incarnation, self.clock, self.incarnations))
        self.no_longer_await(ctx, bit(source))

    def learn_incarnations(self, ctx: Context, incarnations: tuple[int, ...]) -> None:
        known = self.incarnations
        self.incarnations = tuple(map(max, known, incarnations))
        for process, incarnation in enumerate(incarnations):
            if incarnation > known[process]:
                self.reborn(ctx, process)

    def reborn(self, ctx: Context, process: int) -> None:
        """Its last incarnation has crashed, and this one permits what we ask for, since it will ask later."""
        self.end_a_test_of(ctx, process)
        self.detector.suspects &= ~bit(process)
        self.granted |= bit(process) if self.timestamp else NOBODY
        RobustK.crashed(self, ctx, (process,))

    def end_a_test_of(self, ctx: Context, process: int) -> None:
        detector = self.detector
        if not isinstance(detector, HiAdsd) or detector.place is None:
            return
        if cluster(self.me, detector.cluster, self.n)[detector.place] == process:
            detector.on_message(ctx, process, IAmAlive(detector.nonce, NOBODY))

    def heard_of(self, ctx: Context, source: int, answer: Answer) -> None:
        """Hearsay, of which that is left out which is about an incarnation long gone."""
        self.learn_incarnations(ctx, answer.incarnations)
        current = (answer.incarnations[each] == self.incarnations[each] for each in range(self.n))
        suspects = answer.suspects & sum(bit(each) for each, is_current in enumerate(current) if is_current)
        self.crashed(ctx, self.detector.on_message(ctx, source, IAmAlive(answer.nonce, suspects)))
