"""How well a resource is used as more and more is asked of it: the share of the time in which somebody is inside.

Requests come at random to random processes and wait there; the offered load is how much of the time they would fill if
they could follow each other at once (where several may be inside, of the time of all places). Messages take a little
more or less than a message time, so nobody keeps step.
"""

from dataclasses import dataclass
from math import fsum

from trinco.core.claims import Network
from trinco.core.event import Kind
from trinco.protocols.catalogue import Entry
from trinco.sim.laws import Constant, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Open

LOADS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
HOLD = 5.0
"""Message times: with 1, what an algorithm needs between two entries would hide all else."""
REQUESTS = 800
"""That come in while it is measured, on average."""


@dataclass(frozen=True)
class Utilisation:
    n: int
    offered: float
    share: float


def utilisation(entry: Entry, n: int, seed: int = 0) -> tuple[Utilisation, ...]:
    return tuple(Utilisation(n, load, _share(entry, n, load, seed)) for load in LOADS)


def _share(entry: Entry, n: int, load: float, seed: int) -> float:
    places = entry.claims.k.high(**entry.letters(n))
    rate = load * places / HOLD
    time = REQUESTS / rate
    simulation = Simulation(
        Scenario(
            protocol=entry.name,
            build=entry.build,
            claims=entry.claims,
            n=n,
            seed=seed,
            workload=Open(2 * REQUESTS, rate, Constant(HOLD)),
            links=Links(Uniform(0.5, 1.5), ordered=entry.claims.network is Network.FIFO),
            until=time,
            trace=False,
        )
    )
    simulation.run()
    return _time_inside(simulation, time) / time / places


def _time_inside(simulation: Simulation, end: float) -> float:
    """Of all processes together. Whoever is inside at the end has been so until then."""
    entered = fsum(end - at for at, _, kind in simulation.history if kind is Kind.GRANT)
    left = fsum(end - at for at, _, kind in simulation.history if kind is Kind.RELEASE)
    return entered - left
