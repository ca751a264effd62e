"""Robust k-mutual exclusion under random crash schedules, and with a tenth of what the tree sends lost."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from tests.protocols.test_robust_k import scenario
from trinco.core.context import Context
from trinco.core.event import Kind
from trinco.core.message import Message
from trinco.core.monitor import TokenRises
from trinco.core.node import Node
from trinco.protocols.broadcast.spanning_tree import Ack, Tree
from trinco.protocols.permission.robust_k import RobustK
from trinco.protocols.permission.robust_k_system import RobustKSystem
from trinco.protocols.settings import with_settings
from trinco.sim.faults import Crash, Fault, Restart
from trinco.sim.laws import Constant, Exponential, Law, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, Simulation, run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, saturated

# Loss of what the tree sends


class Leaky(RobustK):
    """One in ten TREE and ACK is lost on the way here."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if not isinstance(message, Tree | Ack) or ctx.choose(10):
            RobustK.on_message(self, ctx, source, message)


@dataclass(frozen=True)
class InPlaceOf:
    """The same system with nodes of another class."""

    kind: type[Node]
    system: RobustKSystem

    def __call__(self, n: int) -> list[Node]:
        return [self.kind.in_place_of(node) for node in self.system(n)]

    def letters(self, n: int) -> dict[str, float]:
        return self.system.letters(n)


def leaking(seed: int, acknowledges_again: bool = True, n: int = 6) -> Result:
    system = RobustKSystem(k=min(1 + seed % 3, n - 1), delta=1.0, acknowledges_again=acknowledges_again)
    crashes, workload = (Crash(seed % n, 20.0),), saturated(3 * n)
    return run(
        scenario(system, n, seed=seed, workload=workload, faults=crashes, until=2_000.0, trace=False).with_changes(
            build=InPlaceOf(Leaky, system)
        )
    )


def test_a_tenth_of_the_tree_s_messages_may_be_lost() -> None:
    results = [leaking(seed, n=2 + seed % 15) for seed in range(60)]
    assert all(result.finished and not result.violation for result in results)


def test_unless_duplicates_are_not_acknowledged_again() -> None:
    """F9: sooner or later an ACK is lost, and that root never gets on."""
    assert sum(not leaking(seed, acknowledges_again=False).finished for seed in range(10)) == 10


# Many runs of larger systems

VARIANTS = ("", "reply_is_ack=yes", "retry=whole-tree", "retry=whole-tree acknowledges_again=no", "tree=no")
DETECTORS = ("detector=perfect", "detector=hi-adsd", "detector=hi-adsd schedule=one", "detector=hi-adsd notifies=yes")
BOUNDED: tuple[Law, ...] = (Uniform(0.05, 1.0), Uniform(0.9, 1.0), Constant(1.0))
WIDE: tuple[Law, ...] = (Uniform(0.1, 10.0), Exponential(3.0), Lognormal(1.0, 1.5))


def schedule(seed: int, recovers: bool = False, kind: type[Node] | None = None) -> Scenario:
    """Two to sixteen processes, one unit to all but one, and up to all but one of the processes crash, some of them in
    the middle of a multi-send, and come back perhaps, several times; light or heavy load; any variant and detector.
    Messages take at most 1, which is delta, where a detector relies on it. ``kind``: another class for the nodes."""
    rng = random.Random(f"{seed}/{recovers}")
    n = rng.randint(2, 16)
    k = rng.randint(1, n - 1) if rng.random() < 0.5 else 1
    detector = rng.choice(DETECTORS[1:3] if recovers else DETECTORS)
    words = f"k={k} delta=1 {detector} {rng.choice(VARIANTS)} {'recovers=yes' * recovers}".split()
    system: RobustKSystem = with_settings(RobustKSystem(), words, "robust-k")
    within = rng.choice((20.0, 100.0, 300.0))
    faults = [
        fault
        for node in rng.sample(range(n), rng.randint(1, n - 1))
        for fault in (_lives(rng, node, within) if recovers else [_crash(rng, node, rng.uniform(0.0, within))])
    ]
    law = rng.choice(BOUNDED if system.detector == "hi-adsd" else WIDE)
    return Scenario(
        protocol="robust-k",
        build=InPlaceOf(kind, system) if kind else system,
        claims=system.claims,
        n=n,
        seed=seed,
        workload=Closed(6 * n, think=rng.choice((Constant(0.0), Exponential(20.0))), hold=Exponential(3.0)),
        links=Links(law, ordered=rng.random() < 0.3),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        until=20_000.0,
        trace=False,
    )


def _crash(rng: random.Random, node: int, at: float) -> Crash:
    return Crash(node, at, after_sends=rng.choice((None, None, 0, 1, 2)))


def _lives(rng: random.Random, node: int, within: float) -> Iterator[Fault]:
    """Crashes and comes back up to four times, mostly soon."""
    at = rng.uniform(0.0, within)
    for _ in range(rng.randint(1, 4)):
        yield _crash(rng, node, at)
        at += rng.uniform(0.0, rng.choice((3.0, 10.0, 200.0)))
        yield Restart(node, at)
        at += rng.uniform(0.0, rng.choice((3.0, 10.0, 200.0)))


def schedules(count: int, recovers: bool = False) -> Iterator[Simulation]:
    """So many, each run to its end."""
    for seed in range(count):
        simulation = Simulation(schedule(seed, recovers))
        simulation.run()
        yield simulation


def failures(simulations: Iterable[Simulation]) -> list[int]:
    """The seeds of those in which something was violated or somebody was left waiting."""
    results = (simulation.result() for simulation in simulations)
    return [each.scenario.seed for each in results if each.violation or not each.finished]


@pytest.mark.parametrize("recovers", [False, True], ids=["for ever", "coming back"])
def test_no_random_crash_schedule_breaks_it_or_leaves_anybody_waiting(recovers: bool) -> None:
    assert failures(schedules(150, recovers)) == []


def test_the_schedules_are_hard() -> None:
    """All but one die, holders inside, processes in the middle of a multi-send."""
    all_but_one = inside = mid_send = 0
    for simulation in schedules(40):
        dead = [host for host in simulation.hosts if not host.alive]
        all_but_one += len(dead) == simulation.scenario.n - 1
        last: dict[int, Kind] = {}
        for _, node, kind in simulation.history:
            inside += kind is Kind.CRASH and last.get(node) is Kind.GRANT
            last[node] = kind
        died = {host.me for host in dead}
        mid_send += sum(bool(fault.after_sends) and fault.node in died for fault in simulation.faults)  # type: ignore[union-attr]
    assert min(all_but_one, inside, mid_send) > 3


def test_tokens_rise_whoever_crashes() -> None:
    seen = [each for each in schedules(40) if each.scenario.claims.fencing]
    assert len(seen) > 15
    assert all(any(isinstance(monitor, TokenRises) for monitor in each.monitors) for each in seen)
    assert failures(iter(seen)) == []


@pytest.mark.parametrize("think", [Constant(0.0), Exponential(30.0)], ids=["saturated", "light"])
@pytest.mark.parametrize("tree", [True, False], ids=["tree", "direct"])
def test_wide_delays_alone_break_nothing(think: Law, tree: bool) -> None:
    links = Links(Lognormal(1.0, 1.5), ordered=False)
    swarm = Swarm(scenario(RobustKSystem(k=2, tree=tree, delta=1e6), 6, workload=Closed(30, think=think), links=links))
    swarm.run(range(50))
    assert (swarm.done, swarm.violations, swarm.unfinished) == (50, [], 0)
