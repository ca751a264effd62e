"""The centralised algorithm of the slides (seed 001), with a coordinator that may crash.

Everybody is a client and may become the coordinator: the leader is the highest id that is not suspected. Whoever sees
the leader change tells the next one where it stands (not interested, requesting or entered: N, R or E), and the leader
grants nothing before it knows that of everybody it does not suspect. From then on it serves first come, first served.

Assumes: a perfect failure detector and no loss; up to n-1 crashes at any moment. Channels need not be FIFO. Messages
per entry: request, grant and release, or none for the leader's own. A leader's crash costs each survivor but the next
leader one message.

Against the slides: they elect the coordinator once, call it a single point of failure and leave it at that. A leader
that grants before everybody has told it is ``slides/S-9``. Whatever a suspected process still says is not heard: its
grant may come after we have told the next leader that we wait (``coordinator-failover/grant-of-the-dead``). No grant
is ever unexpected, since nobody asks two leaders that live, so none has to be returned.
"""

from dataclasses import dataclass, field

from trinco.core.claims import Claims, Fairness, Network, Payer
from trinco.core.context import INSIDE, WAITING, Context, Phase
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.protocols.detection.perfect import PerfectDetector

CLAIMS = Claims(
    paper="Fundamentos de sistemas distribuídos, Coordenação: algoritmo centralizado, with an election",
    network=Network.UNORDERED,
    messages_per_entry=Formula("0..3"),
    paid_by={"release": Payer.SENDER},
    delay=Formula("0..2"),
    fairness=Fairness.FIFO_BY_ARRIVAL,
    crashes=Formula("n-1"),
)


class Request(Message, tag="request"):
    pass


class Grant(Message, tag="grant"):
    pass


class Release(Message, tag="release"):
    pass


class State(Message, tag="state"):
    phase: Phase


@dataclass(slots=True)
class CoordinatorFailover(Process):
    me: int
    n: int
    awaited: Ids
    """Who has not told us yet where it stands. We tell ourselves only when we lead, so it is never empty before."""
    holder: int | None = None
    queue: tuple[int, ...] = ()
    detector: PerfectDetector = field(default_factory=PerfectDetector)

    @property
    def leader(self) -> int:
        return (everybody(self.n) & ~self.detector.suspects).bit_length() - 1

    def acquire(self, ctx: Context) -> None:
        ctx.send(self.leader, Request())

    def release(self, ctx: Context) -> None:
        ctx.send(self.leader, Release())

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        leader = self.leader
        for dead in self.detector.on_message(ctx, source, message):
            self.forget(dead)
        if self.leader != leader:
            ctx.elected(self.leader)
            ctx.send(self.leader, State(ctx.phase))
        if self.heeds(source, message):
            self.hear(ctx, source, message)
        self._serve_the_first(ctx)

    def heeds(self, source: int, message: Message) -> bool:
        """What the dead had said may come after we have acted on their death."""
        return not self.detector.suspects & bit(source)

    def forget(self, dead: int) -> None:
        self.awaited &= ~bit(dead)
        self.queue = tuple(each for each in self.queue if each != dead)
        if self.holder == dead:
            self.holder = None

    def hear(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.queue = (*self.queue, source)
            case Grant():
                ctx.grant()
            case Release():
                self.learn_that_it_left(source)
            case State() if self.awaited & bit(source):
                self.learn(source, message.phase)

    def learn(self, source: int, phase: Phase) -> None:
        self.awaited &= ~bit(source)
        if phase is WAITING:
            self.queue = (*self.queue, source)
        elif phase is INSIDE:
            self.holder = source

    def learn_that_it_left(self, source: int) -> None:
        """A release may overtake the state "entered". When that comes it is outdated: we no longer await it."""
        self.awaited &= ~bit(source)
        self.holder = None

    def _serve_the_first(self, ctx: Context) -> None:
        if self.may_grant() and self.queue:
            self.holder, *waiting = self.queue
            self.queue = tuple(waiting)
            ctx.send(self.holder, Grant())

    def may_grant(self) -> bool:
        return not self.awaited and self.holder is None


def everybody(n: int) -> Ids:
    return bit(n) - 1


def system(n: int) -> list[Process]:
    """The highest leads from the start, and nobody has to tell it that nobody has asked."""
    followers = [CoordinatorFailover(me, n, awaited=everybody(n)) for me in range(n - 1)]
    return [*followers, CoordinatorFailover(n - 1, n, awaited=NOBODY)]
