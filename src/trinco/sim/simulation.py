"""One run of one scenario."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from trinco.core import contract, cost
from trinco.core.context import Phase
from trinco.core.event import Event, Kind
from trinco.core.message import Message
from trinco.core.monitor import Monitor
from trinco.core.node import Node
from trinco.core.trace import FORMAT, Header, Recording
from trinco.protocols.detection import perfect
from trinco.protocols.settings import changed
from trinco.sim.crowd import Crowd
from trinco.sim.electorate import Electorate
from trinco.sim.faults import Crash, Drift, Fault, Partition, Pause, Restart, Slow
from trinco.sim.host import Host
from trinco.sim.kernel import Kernel
from trinco.sim.links import Parting, Wires
from trinco.sim.metrics import Metrics, measure
from trinco.sim.quiet_host import QuietHost
from trinco.sim.scenario import Scenario
from trinco.sim.workload import Elections

TELL_EVERY = 500
"""Entries between two words to the listener."""


@dataclass(frozen=True)
class Violation:
    """What went wrong, in a sentence, and which kind of property it breaks."""

    property: str
    text: str
    at: float


@dataclass(frozen=True)
class Result:
    scenario: Scenario
    violation: Violation | None
    finished: bool
    """False where a bound cut the run off with requests still open."""
    metrics: Metrics
    recording: Recording | None
    seconds: float

    @property
    def trace_hash(self) -> str | None:
        return self.recording.hash() if self.recording else None


def run(scenario: Scenario) -> Result:
    """Run a scenario to its end, its first violation or its bound."""
    simulation = Simulation(scenario)
    simulation.run()
    return simulation.result()


class Simulation:
    """``listener`` is told from time to time how many entries there were; ``entries`` can also be read after an
    interruption."""

    def __init__(self, scenario: Scenario, listener: Callable[[int], None] | None = None) -> None:
        self.scenario = scenario
        self.listener = listener
        self.entries = 0
        self.seconds = 0.0
        self.kernel = Kernel()
        self.chance = _generator(scenario, "choices")
        self.faults = scenario.faults
        if scenario.chaos:
            self.faults += scenario.chaos.draw(_generator(scenario, "faults"), scenario.n)
        steady = not any(isinstance(fault, Slow | Partition) for fault in self.faults)
        self.wires = Wires(scenario.links, _generator(scenario, "network"), steady)
        honest = scenario.build(scenario.n)
        contract.require_nodes(honest)
        nodes = [self._or_liar(me, node) for me, node in enumerate(honest)]
        self.recording = Recording(self._header(nodes), [type(node) for node in nodes]) if scenario.trace else None
        self.monitors: list[Monitor] = scenario.monitors()
        self.violation: Violation | None = None
        self.history: list[tuple[float, int, Kind]] = []
        self.liar_sent: list[Message] = []
        """What the liar whose step is going on has sent in it."""
        self.timer_numbers = count()
        self.told_of_crashes = perfect.listeners(nodes)
        self.hosts = self._make_hosts(nodes)
        self.receive = {host.me: host.receive for host in self.hosts}
        for fault in self.faults:  # before anybody asks: at the same moment, faults come first
            self._schedule_fault(fault)
        self.crowd = self._make_crowd(scenario)

    def _make_crowd(self, scenario: Scenario) -> Crowd | Electorate:
        workload = scenario.workload
        if isinstance(workload, Elections):
            return Electorate(self, workload)
        return Crowd(self, workload, _generator(scenario, "workload"))

    def announce_crash(self, dead: int, position: int | None) -> None:
        """The oracle of ``detection.perfect``: in the dead one's name, and for nothing."""
        now = self.kernel.now
        for to in self.told_of_crashes:
            if to != dead:
                at = self.wires.sure_arrival(dead, to, now)
                self.kernel.schedule(at, self.receive[to], dead, perfect.CRASHED, position)

    def fresh_node(self, me: int) -> Node:
        """A node as it is before it starts."""
        return self._or_liar(me, self.scenario.build(self.scenario.n)[me])

    def _or_liar(self, me: int, node: Node) -> Node:
        """The node, or the liar that takes its place, with the same fields."""
        liar = self.scenario.byzantine.get(me)
        return liar.in_place_of(node) if liar else node

    def _header(self, nodes: list[Node]) -> Header:
        scenario = self.scenario
        return Header(
            format=FORMAT,
            protocol=scenario.protocol,
            n=scenario.n,
            k=int(scenario.claims.k.high(**scenario.values)),
            roles=tuple(type(node).__name__ for node in nodes),
            seed=scenario.seed,
            within_claims=scenario.beyond() is None,
            letters={letter: value for letter, value in scenario.values.items() if letter != "n"},
            byzantine=tuple(sorted(scenario.byzantine)),
            settings=changed(scenario.build),
        )

    def _make_hosts(self, nodes: list[Node]) -> list[Host]:
        delay = self.scenario.links.constant_delay
        if self.recording or self.faults or self.scenario.byzantine or delay is None:
            return [Host(self, me, node, me not in self.scenario.byzantine) for me, node in enumerate(nodes)]
        hosts = [QuietHost(self, me, node, honest=True) for me, node in enumerate(nodes)]
        direct: dict[int, Any] = {host.me: (host.node.on_message, host) for host in hosts}
        for host in hosts:
            host.connect(delay, direct)
        return list(hosts)

    def _schedule_fault(self, fault: Fault) -> None:
        schedule = self.kernel.schedule
        match fault:
            case Crash(node, at, None):
                schedule(at, self.hosts[node].crash)
            case Crash(node, at, after_sends):
                schedule(at, self.hosts[node].crash_after_sends, after_sends)
            case Restart(node, at):
                schedule(at, self._restart, node)
            case Pause(node, at, lasts):
                schedule(at, self.hosts[node].pause)
                schedule(at + lasts, self.hosts[node].resume)
            case Slow(node, at, lasts, factor):
                schedule(at, self.wires.slow_down, node, factor)
                schedule(at + lasts, self.wires.recover, node, factor)
            case Drift(node, rate, offset, 0.0):
                self.hosts[node].drift(rate, offset)
            case Drift(node, rate, offset, at):
                schedule(at, self.hosts[node].drift, rate, offset)
            case Partition(_, at):
                schedule(at, self._part, fault)

    def _restart(self, node: int, _b: Any, _c: Any) -> None:
        self.hosts[node].restart()
        self.crowd.came_back()

    def _part(self, fault: Partition, _b: Any, _c: Any) -> None:
        alone = range(len(fault.groups), len(fault.groups) + self.scenario.n)
        islands = dict(enumerate(alone))
        islands |= {node: island for island, group in enumerate(fault.groups) for node in group}
        self.wires.part(Parting(islands, self.kernel.now + fault.lasts, fault.drops))

    def run(self) -> None:
        began = time.perf_counter()
        for host in self.hosts:
            host.start()
        if self.violation is None:
            self.kernel.run(self.scenario.until, self.scenario.max_events)
        for host in self.hosts:
            contract.forbid_hidden_state(host.me, host.node)
        ended_by_itself = self.violation is None and not self.kernel.out_of_bounds
        if ended_by_itself:
            self._finish()
        if self.recording:
            self.recording.finish(ended_by_itself)
        self.seconds = time.perf_counter() - began

    def observe(self, host: Host, kind: Kind, token: Any = None, peer: int | None = None) -> None:
        """Called for everything that changes where a process stands. What liars believe is nobody's concern."""
        if not host.honest:
            return
        now = self.kernel.now
        self.history.append((now, host.me, kind))
        event = Event(now, host.me, kind, peer, token=token)
        for monitor in self.monitors:
            if kind in monitor.kinds:
                complaint = monitor.observe(event)
                if complaint:
                    self._violated(type(monitor).__name__, complaint)
        self.crowd.seen(host, kind)
        if kind is Kind.GRANT:
            self.entries += 1
            if self.listener and self.entries % TELL_EVERY == 0:
                self.listener(self.entries)
        if kind is Kind.ACQUIRE and self.scenario.patience is not None:
            self.kernel.schedule(now + self.scenario.patience, self._lose_patience, host, len(self.history))

    def _lose_patience(self, host: Host, since: int, _c: Any) -> None:
        """Somebody asked so long ago; if nothing has happened to it since, it waits too long."""
        if host.phase is Phase.WAITING and all(node != host.me for _, node, _ in self.history[since:]):
            self._violated("Patience", f"p{host.me} has waited for {self.scenario.patience:g}, and still does")

    def _violated(self, name: str, complaint: str) -> None:
        if self.violation is None:
            self.violation = Violation(name, complaint, self.kernel.now)
            self.kernel.stop()

    def _finish(self) -> None:
        for monitor in self.monitors:
            complaint = monitor.finish()
            if complaint:
                self._violated(type(monitor).__name__, complaint)

    def result(self) -> Result:
        metrics = measure(self)
        if self.violation is None and not self.kernel.out_of_bounds and self._is_undisturbed():
            excess = self._excess(metrics)
            if excess:
                self._violated("MessagesPerEntry", excess)
        return Result(
            self.scenario, self.violation, not self.kernel.out_of_bounds, metrics, self.recording, self.seconds
        )

    def _excess(self, metrics: Metrics) -> str | None:
        if metrics.messages_per_entry is None:
            return None
        worst = metrics.worst_messages_per_entry
        return cost.beyond_claim(metrics.messages_per_entry, worst, self.scenario.claims, **self.scenario.values)

    def _is_undisturbed(self) -> bool:
        """Claims about cost are made for runs in which nothing goes wrong."""
        links = self.scenario.links
        return not (self.faults or self.scenario.byzantine or links.loss or links.duplication)


def _generator(scenario: Scenario, purpose: str) -> random.Random:
    """Its own chance for each purpose, so that one more fault does not change every delay. A seed that is a string is
    hashed with SHA-512 by ``random``, the same on every Python and under every hash seed."""
    return random.Random(f"{scenario.seed}/{purpose}")
