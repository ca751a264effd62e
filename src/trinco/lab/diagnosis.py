"""How many messages Hi-ADSD costs, and after how many intervals all the living know of all the dead.

Nodes with nothing but the detector run in the simulator, with the delays of the paper's experiment (seed 003): 0.01 for
a message, 0.04 for a test, 1.0 between two rounds, which all begin together. *Phases* say which cluster each process
tests first; the published latency, log n to log^2 n intervals, is for one cluster in an interval, and depends on them.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import WAITING, Context
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.protocols.detection.clusters import dimensions
from trinco.protocols.detection.hi_adsd import HiAdsd, Schedule, Timing
from trinco.sim.faults import Crash
from trinco.sim.laws import Constant
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, run
from trinco.sim.workload import OneShot, Workload

CLAIMS = Claims(
    paper="Duarte & Nanya, A hierarchical adaptive distributed system-level diagnosis algorithm",
    year=1998,
    network=Network.UNORDERED,
    messages_per_entry=Formula("0..inf"),
    delay=Formula("0..inf"),
    fairness=Fairness.NONE,
    k=Formula("n"),
    crashes=Formula("n-1"),
)


@dataclass(slots=True)
class Diagnoser(Process):
    """Has only a detector. Whoever asks it to enter is let in as soon as it suspects so many."""

    faults: int
    detector: HiAdsd

    def on_start(self, ctx: Context) -> None:
        self.detector.start(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.detector.on_message(ctx, source, message)
        self._enter_if_all_are_known(ctx)

    def on_timer(self, ctx: Context, name: str) -> None:
        self.detector.on_timer(ctx, name)
        self._enter_if_all_are_known(ctx)

    def acquire(self, ctx: Context) -> None:
        self._enter_if_all_are_known(ctx)

    def _enter_if_all_are_known(self, ctx: Context) -> None:
        if ctx.phase is WAITING and self.detector.suspects.bit_count() == self.faults:
            ctx.grant()

    def release(self, ctx: Context) -> None:
        pass


@dataclass(frozen=True)
class Diagnosers:
    """``phases``: the cluster that each process tests first, 1 to log n; without any, all begin with cluster 1."""

    timing: Timing = Timing()
    faults: int = 0
    phases: tuple[int, ...] = ()

    def __call__(self, n: int) -> Sequence[Process]:
        first = self.phases or (1,) * n
        return [Diagnoser(self.faults, HiAdsd(me, n, self.timing, first[me])) for me in range(n)]

    def run(self, n: int, crashes: Iterable[Crash], workload: Workload, until: float) -> Result:
        scenario = Scenario(
            protocol="hi-adsd",
            build=self,
            claims=CLAIMS,
            n=n,
            workload=workload,
            links=Links(Constant(self.timing.delta)),
            faults=tuple(crashes),
            until=until,
            trace=False,
        )
        return run(scenario)


FOR_EVER = OneShot(hold=Constant(1e9))
"""All enter and stay, so that a run goes on while somebody is alive."""


def messages(n: int, until: float, crashes: Iterable[Crash] = (), schedule: Schedule = Schedule.ALL) -> dict[str, int]:
    """By kind. With ``until=0.9``: of the first interval."""
    return Diagnosers(Timing(schedule=schedule)).run(n, crashes, FOR_EVER, until).metrics.messages_by_kind


PUBLISHED = {"are-you-alive": 5_100, "i-am-alive": 2_348}


def experiment() -> dict[str, int]:
    """The messages of the paper's experiment: p15 crashes at 5.0, p14 at 10.0, ..., p1 at 75.0.

    The paper says neither when it ends nor whether a process that crashes when a round begins still takes part in it.
    Its counts come out if it does (so ours crash a moment later) and if the round at 100 is the last.
    """
    a_moment = 0.001
    crashes = (Crash(16 - count, 5.0 * count + a_moment) for count in range(1, 16))
    return messages(16, until=100.9, crashes=crashes)


@dataclass(frozen=True)
class Case:
    """Who is dead from the start, and ``phases`` as in ``Diagnosers``."""

    n: int
    faulty: tuple[int, ...]
    phases: tuple[int, ...] = ()


def latency(case: Case, schedule: Schedule = Schedule.ONE) -> int:
    """The interval, counted from 1, in which the last of the living learns of the last of the dead."""
    timing = Timing(schedule=schedule)
    build = Diagnosers(timing, len(case.faulty), case.phases)
    crashes = (Crash(node, 0.0) for node in case.faulty)
    far_beyond = 2 * bound(case.n) * timing.interval
    result = build.run(case.n, crashes, OneShot(hold=Constant(0.0)), until=far_beyond)
    assert result.finished, f"somebody has not learned of a crash after {far_beyond:g}"
    assert result.metrics.waiting is not None
    return int(result.metrics.waiting.max / timing.interval) + 1


def bound(n: int) -> int:
    """log^2 n intervals: log n hops, and the next one is tested at most log n intervals later."""
    return dimensions(n) ** 2


def worst_case(n: int) -> Case:
    """For n a power of two. Process 0 is dead. The news goes to 1, 3, 7, 15, ..., since each of these learns of it from
    the one before alone; and each asks that one in the very interval in which it learns of it, a moment too early."""
    d = dimensions(n)
    last_to_test = {2**s - 1: s for s in range(1, d + 1)}
    return Case(n, (0,), tuple(last_to_test.get(me, 0) % d + 1 for me in range(n)))


@dataclass(frozen=True)
class Survey:
    """How many of some cases at random took how many intervals."""

    n: int
    cases: int
    bound: int
    by_latency: dict[int, int]

    @property
    def worst(self) -> int:
        return max(self.by_latency)


def survey(n: int, cases: int, seed: int = 0) -> Survey:
    """One cluster in an interval; any number of faults, in any processes, any phases. The same seed gives the same
    cases."""
    chance = random.Random(f"{seed}/{n}")
    counted = Counter(latency(_any_case(n, chance)) for _ in range(cases))
    return Survey(n, cases, bound(n), dict(sorted(counted.items())))


def _any_case(n: int, chance: random.Random) -> Case:
    faulty = chance.sample(range(n), chance.randrange(1, n))
    return Case(n, tuple(sorted(faulty)), tuple(chance.randint(1, dimensions(n)) for _ in range(n)))
