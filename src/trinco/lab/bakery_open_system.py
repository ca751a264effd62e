"""The Byzantine bakery as an open system: clients that nobody knew before come, have a few turns, and are gone.

What a turn costs may depend on who is there at the time, not on how many have ever been; and what servers keep of those
who are gone must not grow for ever.
"""

from dataclasses import dataclass

from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.system import CLAIMS, Bakery
from trinco.sim.laws import Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Scripted

DELAY = Uniform(0.001, 0.02)
HOLD = 0.05
PAUSE = 30.7
FIRST = 0


@dataclass(frozen=True)
class Tables:
    """What the server has to keep that has the most."""

    turns: int
    clients: int
    suspicions: int


@dataclass(frozen=True)
class Visit:
    entries: int
    messages_per_entry: float
    longest_wait: float
    left: Tables
    """When all have gone and the first one is back, whose own turn is not counted."""
    violation: str | None


@dataclass(frozen=True)
class OpenSystem:
    """Every ``gap`` seconds some arrive ``together``; each has ``turns`` turns, half a minute apart. With the usual gap
    those of one arrival never meet those of another."""

    clients: int
    turns: int = 3
    together: int = 1
    gap: float = 2.0
    system: Bakery = Bakery(expiry=240.0)
    seed: int = 0

    @property
    def title(self) -> str:
        return f"{self.clients:,} clients"

    def do(self) -> Visit:
        arrivals = [(client, self.gap * (client // self.together)) for client in range(self.clients)]
        asks = ((client, at + PAUSE * turn) for client, at in arrivals for turn in range(self.turns))
        ends = self.gap * self.clients + PAUSE * (self.turns + 1)
        back = (FIRST, ends)  # so that the run lasts until everything of the others has arrived
        script = Scripted(tuple((client, at, HOLD) for client, at in (*asks, back)))
        simulation = Simulation(
            Scenario(
                protocol="bakery",
                build=self.system,
                claims=CLAIMS,
                n=self.clients + self.system.size,
                seed=self.seed,
                workload=script,
                links=Links(DELAY),
                trace=False,
            )
        )
        simulation.run()
        result = simulation.result()
        metrics = result.metrics
        return Visit(
            entries=metrics.entries,
            messages_per_entry=metrics.messages_per_entry or 0.0,
            longest_wait=metrics.waiting.max if metrics.waiting else 0.0,
            left=tables(simulation),
            violation=str(result.violation) if result.violation else None,
        )


def tables(simulation: Simulation) -> Tables:
    servers = [host.node for host in simulation.hosts if isinstance(host.node, Server)]
    return Tables(
        turns=max(sum(turn.client != FIRST for turn in server.turns) for server in servers),
        clients=max(len({*dict(server.last), *dict(server.removed), *dict(server.seen)}) for server in servers),
        suspicions=max(len(server.muteness.suspicions) for server in servers),
    )
