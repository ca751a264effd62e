"""Duarte & Nanya 1998: a hierarchical adaptive distributed system-level diagnosis algorithm (Hi-ADSD).

A failure detector with few tests. Process i walks along its cluster C(i,s) from the head and asks one after the other:
are you alive? Whoever does not answer in time is suspected; whoever answers says whom it suspects itself, is believed
for the rest of that cluster, and ends the walk. So news of a crash comes to everybody in hops over the hypercube.

Assumes: no loss, and a message takes at most ``delta``, so who does not answer within ``timeout`` has crashed: then the
detector is perfect. Up to n-1 crashes, for ever: nobody is unsuspected again. Messages: while nobody crashes, one
question and one answer for each of the ceil(log2 n) clusters of each of n processes. With one cluster in an interval,
all know of all crashes after log n intervals if all test cluster s at the same time, else after log^2 n at most: see
``lab.diagnosis``.

The paper that we take it from (Rodrigues, Duarte Jr. & Arantes, seed 003) tests one cluster in each interval; the
messages that it counted are those of *all* clusters in each interval, one after the other (``Schedule.ALL``, ours
unless told otherwise). It checks no timeout. One that leaves no time for the answer makes the living suspect each
other, so we refuse it. A round that outlasts its interval is finished, and the next begins an interval later.
"""

from dataclasses import dataclass
from enum import Enum

from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Message
from trinco.protocols.detection.clusters import cluster, dimensions

ROUND = "detector/round"
TIMEOUT = "detector/timeout"


class AreYouAlive(Message, tag="are-you-alive"):
    nonce: int


class IAmAlive(Message, tag="i-am-alive"):
    nonce: int
    suspects: Ids


class Schedule(Enum):
    """Which clusters are tested in an interval."""

    ALL = "all, one after the other"
    ONE = "one, and the next in the next interval"


@dataclass(frozen=True)
class Timing:
    """When to test: the values of the paper's experiment. ``delta``: how long a message takes at most."""

    interval: float = 1.0
    timeout: float = 0.04
    delta: float = 0.01
    schedule: Schedule = Schedule.ALL

    def __post_init__(self) -> None:
        if not self.interval > 0:
            raise UsageError(f"between two rounds of tests there must be some time, not {self.interval:g}")
        if not self.timeout > 2 * self.delta:
            raise UsageError(
                f"a question and its answer can take {2 * self.delta:g}; with a timeout of {self.timeout:g} the living "
                f"would be suspected: give more than {2 * self.delta:g}"
            )


@dataclass(slots=True)
class HiAdsd:
    me: int
    n: int
    timing: Timing = Timing()
    cluster: int = 1
    """The one that is tested, or will be next: 1 to log n."""
    place: int | None = None
    """Where in the cluster the process stands that was asked and has not answered; None between two walks."""
    nonce: int = 0
    suspects: Ids = NOBODY

    def start(self, ctx: Context) -> None:
        if self.n > 1:
            ctx.set_timer(ROUND, 0.0)

    def on_timer(self, ctx: Context, name: str) -> tuple[int, ...]:
        """Who is newly suspected, by our own test."""
        if name == ROUND:
            ctx.set_timer(ROUND, self.timing.interval)
            if self.place is None:
                self._test_from(ctx, 0)
            return ()
        assert self.place is not None
        silent = self._walk[self.place]
        self._test_from(ctx, self.place + 1)
        return self.learn(bit(silent))

    def on_message(self, ctx: Context, source: int, message: Message) -> tuple[int, ...]:
        """Who is newly suspected, by hearsay."""
        match message:
            case AreYouAlive():
                ctx.send(source, IAmAlive(message.nonce, self.suspects))
            case IAmAlive() if message.nonce == self.nonce and self.place is not None:
                of_this_cluster = sum(map(bit, self._walk))
                self._finish_the_cluster(ctx)
                return self.learn(message.suspects & of_this_cluster)
        return ()

    def learn(self, suspects: Ids) -> tuple[int, ...]:
        """Suspect these too. Which of them are new?"""
        new = suspects & ~self.suspects
        self.suspects |= new
        return tuple(members(new))

    @property
    def _walk(self) -> tuple[int, ...]:
        return cluster(self.me, self.cluster, self.n)

    def _test_from(self, ctx: Context, place: int) -> None:
        """Ask the process at this place of the cluster, suspected or not. Behind the last one the walk is over."""
        if place == len(self._walk):
            self._finish_the_cluster(ctx)
            return
        self.place = place
        self.nonce += 1
        ctx.send(self._walk[place], AreYouAlive(self.nonce))
        ctx.set_timer(TIMEOUT, self.timing.timeout)

    def _finish_the_cluster(self, ctx: Context) -> None:
        self.place = None
        ctx.cancel_timer(TIMEOUT)
        was_the_last = self.cluster == dimensions(self.n)
        self.cluster = 1 if was_the_last else self.cluster + 1
        if self.timing.schedule is Schedule.ALL and not was_the_last:
            self._test_from(ctx, 0)
