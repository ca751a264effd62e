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
            if not 0 <= node < len(sim.hosts) or not isinstance(sim.hosts[node].node, Elector):
                raise UsageError(f"node {node} takes part in no election")
            if at < 0:
                raise UsageError(f"node {node} cannot notice anything before the run starts")
            sim.kernel.schedule(at, sim.hosts[node].call, "elect")

    def seen(self, host: Host, kind: Kind) -> None:
        """Nobody waits for anything."""

    def came_back(self) -> None:
        """Whoever comes back takes part by itself."""
