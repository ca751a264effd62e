"""What the quorum lease must show in long simulated runs: no overlap, rising tokens, short waits.

Each experiment is one function that returns plain figures; tests run it small, ``make prove`` in full.
"""

import random
from dataclasses import dataclass, replace
from typing import Any

from trinco.core.event import Kind
from trinco.leases.nodes.behaviours import BEHAVIOURS
from trinco.leases.nodes.system import CLAIMS, QuorumLease
from trinco.leases.terms import Policy
from trinco.sim.faults import Crash, Drift, Fault, Restart
from trinco.sim.laws import Constant, Exponential, Law
from trinco.sim.links import Links
from trinco.sim.metrics import Spread
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Closed, saturated

PPM = 1e-6


@dataclass(frozen=True)
class Cloud:
    """One way to a store in a cloud: 20 ms and a bit, and one message in fifty that takes its time."""

    def draw(self, rng: random.Random) -> float:
        tail = Exponential(0.8).draw(rng) if rng.random() < 0.02 else 0.0
        return 0.02 + Exponential(0.03).draw(rng) + tail


def coarse_clocks(terms: int, *, margin: bool = True, n: int = 1, f: int = 0, seed: int = 0) -> dict[str, Any]:
    """Clients that never release: every term ends by running out, while the others ask all the time. The stores' clocks
    show whole seconds, are up to an hour off, and every clock is within 200 ppm of real time."""
    system = QuorumLease(
        stores=("one-access",) * n,
        clients=2,
        f=f,
        ttl=3.0,
        granularity=1.0 if margin else 0.0,
        clock_step=1.0,
        poll=0.05,
        policy=Policy.PRIORITY,
    )
    chance = random.Random(f"{seed}/clocks")
    drifts: list[Fault] = [
        Drift(node, 1 + chance.choice((-200, 200)) * PPM, chance.uniform(0, 3600)) for node in range(system.n)
    ]
    scenario = Scenario(
        protocol="quorum-lease",
        build=system,
        claims=CLAIMS,
        n=system.n,
        seed=seed,
        workload=saturated(terms, Constant(4.0)),
        links=Links(Exponential(0.005), ordered=False),
        faults=tuple(drifts),
        trace=False,
        max_events=10**9,
    )
    overlaps, simulation = _overlaps(scenario)
    return {"terms": simulation.entries, "overlaps": overlaps, "margin": margin, "n": n, "f": f}


def _overlaps(scenario: Scenario) -> tuple[int, Simulation]:
    """How often somebody entered while another believed; the run goes on."""
    simulation = Simulation(scenario)
    simulation.monitors = []
    simulation.run()
    believing: set[int] = set()
    overlaps = 0
    for _, node, kind in simulation.history:
        if kind is Kind.GRANT:
            overlaps += bool(believing)
            believing.add(node)
        elif kind in (Kind.EXPIRE, Kind.RELEASE, Kind.LOST, Kind.CRASH):
            believing.discard(node)
    return overlaps, simulation


def rising_tokens(acquisitions: int, *, liar: str = "replay-token", seed: int = 0) -> dict[str, Any]:
    """Three clients that crash and come back all the time, and a store that grants everything and shows old tokens."""
    system = QuorumLease(clients=3, ttl=3.0, wait=3.0, poll=0.1)
    chance = random.Random(f"{seed}/crashes")
    faults: list[Fault] = []
    for client in range(3):
        at = 0.0
        while at < acquisitions * 0.6:
            at += chance.expovariate(1 / 15)
            faults.append(Crash(client, at))
            at += chance.uniform(0.1, 2.0)
            faults.append(Restart(client, at))
    scenario = Scenario(
        protocol="quorum-lease",
        build=system,
        claims=replace(CLAIMS, deadlock_free=False),
        n=system.n,
        seed=seed,
        workload=saturated(acquisitions, Exponential(0.05)),
        links=Links(Exponential(0.02), ordered=False),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        byzantine={system.n - 1: BEHAVIOURS[liar]},
        trace=False,
        max_events=10**9,
        beyond_claims=True,  # every client crashes, again and again
    )
    simulation = Simulation(scenario)
    simulation.run()
    crashes = sum(kind is Kind.CRASH for _, _, kind in simulation.history)
    violation = simulation.violation
    return {
        "acquisitions": simulation.entries,
        "crashes": crashes,
        "liar": liar,
        "violation": violation.text if violation else None,
    }


def waiting(
    policy: Policy,
    *,
    clients: int = 10,
    each: int = 8,
    liar: str | None = "silent",
    law: Law = Cloud(),
    seeds: int = 2,
    system: QuorumLease = QuorumLease(fenced=True),
) -> dict[str, Any]:
    """Every client acquires and releases at once, again and again: how long does it wait?"""
    waits: list[float] = []
    accesses = entries = 0
    served = True
    system = replace(system, clients=clients, policy=policy, attempt_timeout=3.0)
    for seed in range(seeds):
        scenario = Scenario(
            protocol="quorum-lease",
            build=system,
            claims=replace(CLAIMS, fencing=bool(system.fenced)),
            n=system.n,
            seed=seed,
            workload=Closed(clients * each, Constant(0.0), Constant(0.0)),
            links=Links(law, ordered=False),
            byzantine={system.n - 1: BEHAVIOURS[liar]} if liar else {},
            trace=False,
        )
        simulation = Simulation(scenario)
        simulation.run()
        served &= simulation.violation is None and not simulation.kernel.out_of_bounds
        waits += _waits(simulation)
        entries += simulation.entries
        accesses += sum(count for host in simulation.hosts[:clients] for count in host.sent.values())
    spread = Spread.of(waits)
    assert spread is not None
    return {
        "policy": policy.value,
        "clients": clients,
        "liar": liar or "none",
        "acquisitions": entries,
        "everybody_served": served,
        "mean": spread.mean,
        "p99": spread.p99,
        "accesses_per_acquisition": accesses / entries,
    }


def _waits(simulation: Simulation) -> list[float]:
    asked: dict[int, float] = {}
    waits = []
    for at, node, kind in simulation.history:
        if kind is Kind.ACQUIRE:
            asked[node] = at
        elif kind is Kind.GRANT:
            waits.append(at - asked.pop(node))
    return waits
