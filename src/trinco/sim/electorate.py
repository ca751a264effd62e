"""Those who notice that a leader is gone, in a simulated election. The run ends when nothing is under way any more."""

from typing import TYPE_CHECKING

from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.node import Elector
from trinco.sim.host import Host
from trinco.sim.workload import Elections

if TYPE_CHECKING:
    from trinco.sim.simulation import Simulation


class Electorate:
    """In the place of the crowd, which has nobody to serve here."""

    processes: tuple[int, ...] = ()

    def __init__(self, sim: "Simulation", workload: Elections) -> None:
        for node, at in workload.notices:
            if not isinstance(sim.hosts[node].node, Elector):
                raise UsageError(f"node {node} takes part in no election")
            sim.kernel.schedule(at, sim.hosts[node].call, "elect")

    def seen(self, host: Host, kind: Kind) -> None:
        """Nobody waits for anything."""

    def came_back(self) -> None:
        """Whoever comes back takes part by itself."""
