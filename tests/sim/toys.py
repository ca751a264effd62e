"""Small protocols that do one thing each, to look at the simulator through them."""

from dataclasses import dataclass, replace
from functools import partial

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.event import Kind
from trinco.core.formula import Formula
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.protocols import catalogue
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Scripted

ANYTHING_GOES = Claims(
    paper="none",
    network=Network.LOSSY,
    messages_per_entry=Formula("0..inf"),
    delay=Formula("0..inf"),
    fairness=Fairness.NONE,
    k=Formula("n"),
    crashes=Formula("n"),
    byzantine=Formula("n"),
    deadlock_free=False,
)
ONE_INSIDE = replace(ANYTHING_GOES, k=Formula("1"), deadlock_free=True)


def toy(build, n, claims=ANYTHING_GOES, **rest):
    return Scenario(protocol="toy", build=build, claims=claims, n=n, **rest)


def known(name, n, **rest):
    """A scenario with a protocol of the catalogue; of leases, with n clients."""
    entry = catalogue.find(name)
    n = n + 4 if name == "quorum-lease" else max(n, entry.smallest)
    return Scenario(**{"protocol": name, "build": entry.build, "claims": entry.claims, "n": n, **rest})


def events_of(result, kind, node=None):
    return [each for each in result.recording.events() if each.kind is kind and node in (None, each.node)]


def times_of(result, kind, node=None):
    return [event.at for event in events_of(result, kind, node)]


@dataclass(slots=True)
class Alone(Process):
    """Takes no notice of anybody: whoever asks is inside at once."""

    def acquire(self, ctx):
        ctx.grant()

    def release(self, ctx):
        pass


def alone(n):
    return [Alone() for _ in range(n)]


class Numbered(Message, tag="numbered"):
    number: int


@dataclass(slots=True)
class Speaker(Process):
    """Once inside, says 0, 1, 2 ... to its listeners, one number every ``gap``."""

    listeners: tuple[int, ...]
    sayings: int
    gap: float
    said: int = 0

    def acquire(self, ctx):
        ctx.grant()
        ctx.set_timer("speak", 0.0)

    def on_timer(self, ctx, name):
        if self.said < self.sayings:
            ctx.broadcast(Numbered(self.said), to=self.listeners)
            self.said += 1
            ctx.set_timer("speak", self.gap)

    def release(self, ctx):
        ctx.cancel_timer("speak")


def _speakers(n, sayings, gap):
    return [Speaker(tuple(range(n)), sayings, gap) for _ in range(n)]


def speech(n=2, sayings=10, gap=1.0, speakers=(0,), **rest):
    """Some speak to all others, from the start; the run goes on for long after."""
    script = Scripted(tuple((speaker, 0.0, 1000.0) for speaker in speakers))
    return run(toy(partial(_speakers, sayings=sayings, gap=gap), n, workload=script, **rest))


def heard(result, node=1):
    """What a listener heard: (when, number)."""
    return [(event.at, event.message.number) for event in events_of(result, Kind.RECEIVE, node)]


@dataclass(slots=True)
class Watchman(Process):
    """Reads its clock when it starts and every ten seconds by that clock."""

    reading: Instant | None = None

    def on_start(self, ctx):
        self._look(ctx)

    def on_timer(self, ctx, name):
        self._look(ctx)

    def _look(self, ctx):
        self.reading = ctx.now()
        ctx.set_timer("look", 10.0)

    def acquire(self, ctx):
        ctx.grant()

    def release(self, ctx):
        pass


def watchmen(n):
    return [Watchman() for _ in range(n)]


def readings(result):
    """The clock of a watchman: (when it looked, what it read)."""
    return [(event.at, event.state["reading"].at) for event in result.recording.events() if "reading" in event.state]
