"""The users of a simulated system: they ask, hold, leave, and ask again as the workload says."""

import random
from typing import TYPE_CHECKING, Any

from trinco.core.context import Phase
from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.node import Process
from trinco.sim.faults import Restart
from trinco.sim.host import Host
from trinco.sim.workload import Workload

if TYPE_CHECKING:
    from trinco.sim.simulation import Simulation


class Crowd:
    def __init__(self, sim: "Simulation", workload: Workload, rng: random.Random) -> None:
        self._sim = sim
        self.rng = rng
        self.processes = tuple(host.me for host in sim.hosts if isinstance(host.node, Process) and host.honest)
        if not self.processes:
            raise UsageError("nobody is left to ask: every process lies, or there is none")
        self._unserved = sum(isinstance(fault, Restart) for fault in sim.faults)
        """Requests that were put in and are not over, and nodes that are to come back and may put in more."""
        self._coming = dict.fromkeys(self.processes, 0)
        """Per process: requests whose time has not come."""
        self._backlog: dict[int, list[float]] = {node: [] for node in self.processes}
        self._holds: dict[int, float] = {}
        self._source = workload.start(self)
        if not self._unserved:
            sim.kernel.schedule(0.0, lambda _a, _b, _c: sim.kernel.stop())

    def ask(self, node: int, at: float, hold: float) -> None:
        self._unserved += 1
        self._coming[node] += 1
        self._sim.kernel.schedule(at, self._turn, node, hold)

    def _turn(self, node: int, hold: float, _c: Any) -> None:
        host = self._sim.hosts[node]
        self._coming[node] -= 1
        if not host.alive:
            self._over(node)
        elif host.phase is not Phase.IDLE or node in self._holds:
            self._backlog[node].append(hold)
        else:
            self._holds[node] = hold
            host.call("acquire")

    def seen(self, host: Host, kind: Kind) -> None:
        """Called for everything that changes where a process stands."""
        node = host.me
        if kind is Kind.GRANT and node in self._holds:
            self._sim.kernel.schedule(self._sim.kernel.now + self._holds[node], self._leave, node, host.term)
        elif kind in _OVER and node in self._holds:
            del self._holds[node]
            self._sim.kernel.schedule(self._sim.kernel.now, self._idle_again, node)
        elif kind is Kind.CRASH:
            self._drop_backlog(node)
        elif kind is Kind.RESTART and self._coming.get(node) == 0:
            self._source.left(self, node, self._sim.kernel.now)

    def _leave(self, node: int, term: int, _c: Any) -> None:
        host = self._sim.hosts[node]
        if host.phase is Phase.INSIDE and host.term == term:
            host.call("release")

    def _idle_again(self, node: int, _b: Any, _c: Any) -> None:
        """The step that ended the turn is over, so the next may begin."""
        if not self._sim.hosts[node].alive:
            self._drop_backlog(node)
        elif self._backlog[node]:
            self._coming[node] += 1
            self._sim.kernel.schedule(self._sim.kernel.now, self._turn, node, self._backlog[node].pop(0))
        self._over(node)

    def _over(self, node: int) -> None:
        if self._sim.hosts[node].alive:
            self._source.left(self, node, self._sim.kernel.now)
        self._one_less()

    def came_back(self) -> None:
        """A node that was to be restarted was."""
        self._one_less()

    def _one_less(self) -> None:
        self._unserved -= 1
        if not self._unserved:
            self._sim.kernel.stop()

    def _drop_backlog(self, node: int) -> None:
        if node in self._backlog:
            self._unserved -= len(self._backlog[node])
            self._backlog[node].clear()


_OVER = frozenset({Kind.RELEASE, Kind.LOST, Kind.REFUSE, Kind.CRASH})
