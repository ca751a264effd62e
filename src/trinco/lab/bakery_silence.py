"""What the bakery makes of servers that are gone, clients that fall silent and clients that are only slow, measured for
``lab.bakery_experiment``; and the paper's own rules, as the exhibits show them.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from trinco.check.run import check
from trinco.core.event import Event, Kind
from trinco.core.monitor import Monitor
from trinco.lab.bakery_costs import HOLD, PATIENT, QUIET, Outcome, complaint, scenario, servers_for, simulated
from trinco.lab.exhibits.catalogue import find
from trinco.protocols.bakery.messages import Suspect
from trinco.protocols.bakery.server import Server
from trinco.sim.faults import Crash
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Closed, Scripted

CLIENTS = 4
SLOW = Links(Uniform(1.0, 110.0))
HASTY = replace(PATIENT, choosing=25.0)
"""Where two messages take up to 220, a client has 25 from GET to SET."""


@dataclass(frozen=True)
class Down(Outcome):
    wait: float | None
    """Of one client that asks alone."""


@dataclass(frozen=True)
class WithoutServers:
    f: int
    crashed: int

    @property
    def title(self) -> str:
        return f"f={self.f}, {self.crashed} servers crashed"

    def do(self) -> Down:
        build, n = replace(PATIENT, f=self.f), servers_for(self.f) + 1
        faults = tuple(Crash(node, 0.0) for node in range(1, 1 + self.crashed))
        script = Scripted(((0, 1.0, HOLD), (0, QUIET, HOLD)))
        simulation = simulated(build, n, script, faults=faults, until=20 * QUIET, beyond_claims=True)
        result = simulation.result()
        waiting = result.metrics.waiting
        return Down(result.metrics.entries, complaint(result), waiting.max if waiting else None)


@dataclass(frozen=True)
class Abandoned(Outcome):
    after: float
    """From the crash of who was inside to the next entry."""
    expected: float
    """D and the time to choose, and six message times."""


@dataclass(frozen=True)
class WithoutHolder:
    """Who is inside crashes, and a server besides."""

    f: int = 1

    @property
    def title(self) -> str:
        return "who is inside crashes"

    def do(self) -> Abandoned:
        build, n, crash = replace(PATIENT, f=self.f), servers_for(self.f) + 2, 50.0
        script = Scripted(((0, 1.0, 10 * QUIET), (1, crash - 1, HOLD)))
        faults = (Crash(0, crash), Crash(2, 0.0))
        simulation = simulated(build, n, script, faults=faults)
        entered = next(at for at, node, kind in simulation.history if (node, kind) == (1, Kind.GRANT))
        result = simulation.result()
        expected = build.hold + build.choosing + 6
        return Abandoned(result.metrics.entries, complaint(result), entered - crash, expected)


@dataclass
class Suspecting(Monitor):
    """Looks on at one simulation: how many suspicions there have been at each entry."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.GRANT})
    simulation: Simulation
    counts: list[int] = field(default_factory=list)

    def observe(self, event: Event) -> str | None:
        self.counts.append(sum(host.sent[Suspect] for host in self.simulation.hosts))
        return None


@dataclass(frozen=True)
class Doubted(Outcome):
    """Of clients that are only slow."""

    unfinished: int
    banned: int
    """Clients that some server takes for Byzantine."""
    given_up: int
    """Turns that had to be begun anew."""
    suspicions: int
    """Messages about them."""
    last_suspected: int
    """How many entries there had been when the last of those was sent, in the run where that was latest."""


@dataclass(frozen=True)
class Slowly:
    """Nobody lies and nobody crashes; timers are far too short."""

    entries: int
    seeds: int

    @property
    def title(self) -> str:
        return f"hasty servers, {self.seeds} runs of {self.entries} entries"

    def do(self) -> Doubted:
        runs = [self._run(seed) for seed in range(self.seeds)]
        return Doubted(
            sum(each.entries for each in runs),
            next((each.violation for each in runs if each.violation), None),
            sum(each.unfinished for each in runs),
            sum(each.banned for each in runs),
            sum(each.given_up for each in runs),
            sum(each.suspicions for each in runs),
            max(each.last_suspected for each in runs),
        )

    def _run(self, seed: int) -> Doubted:
        workload = Closed(self.entries, think=Exponential(50.0), hold=Constant(20.0))
        simulation = Simulation(
            scenario(HASTY, HASTY.size + CLIENTS, workload, links=SLOW, seed=seed, until=1e6, trace=False)
        )
        suspecting = Suspecting(simulation)
        simulation.monitors.append(suspecting)
        simulation.run()
        result, counts = simulation.result(), suspecting.counts
        nodes = [host.node for host in simulation.hosts]
        return Doubted(
            result.metrics.entries,
            complaint(result),
            int(not result.finished),
            sum(node.banned.bit_count() for node in nodes if isinstance(node, Server)),
            sum(getattr(node, "sid", 0) for node in nodes) - result.metrics.entries,
            counts[-1],
            counts.index(counts[-1]),
        )


@dataclass(frozen=True)
class Shown(Outcome):
    found: str | None
    """What breaks as printed, in a sentence."""
    steps: int
    mended: bool
    """Whether the same instance without the flaw holds."""


@dataclass(frozen=True)
class Exhibited:
    """A rule as printed, in the smallest instance that breaks it."""

    name: str

    @property
    def title(self) -> str:
        return f"exhibit {self.name}"

    def do(self) -> Shown:
        exhibit = find(self.name)
        flawed, mended = check(exhibit.model()), check(exhibit.mended())
        found = flawed.violation.text if flawed.violation else None
        steps = len(flawed.counterexample.script) if flawed.counterexample else 0
        return Shown(0, None, found, steps, mended.violation is None)
