"""How long it takes to renew a lease and to let go of one: what the paper's figure 2 shows besides acquiring.

The same stores and the same calibrated laws as in ``lease_latency``. A renewal takes from its first message until the
lease is renewed; a release, until as many stores as make a quorum have carried it out, which is when the paper returns.
DepSky's lock, as we have it, is held for long and not renewed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from trinco.core.event import Kind
from trinco.lab.lease_latency import (
    COMPOSITES,
    FOREVER,
    QUORUM,
    SCFS_ACCESS,
    SERVICES,
    Figures,
    laws_for,
    run_alone,
)
from trinco.leases.nodes import coordination, depsky, election, system
from trinco.sim.simulation import Simulation

RENEW, RELEASE, RELEASE_RENEWED = "renew", "release", "release, once renewed"
TERM = 30_000.0
"""Renewed after a third of it, when all stores have answered long since."""
RENEWED, NOT_RENEWED = TERM / 2, TERM / 6
"""For how long it is held."""
LONGEST = 60.0
"""The term of SCFS's lock, which is renewed towards its end."""


def upkeep(law: str, acquisitions: int, seed: int = 0) -> Figures:
    """The means of each composite and baseline under one law. What a renewed lease leaves in a store has another name,
    so that stores which keep lists are asked for it before it is deleted."""
    renewed = {name: _composite(members, law, acquisitions, seed, RENEWED) for name, members in COMPOSITES.items()}
    fresh = {name: _composite(members, law, acquisitions, seed, NOT_RENEWED) for name, members in COMPOSITES.items()}
    stores = laws_for(law, [SERVICES[member].access for member in COMPOSITES["AR"]])
    phases = depsky.DepSky(validity=FOREVER)
    fresh["TD"] = run_alone(phases, depsky.CLAIMS, stores, acquisitions, seed, True, NOT_RENEWED)
    lock, service = coordination.Coordination(ttl=LONGEST), laws_for(law, [SCFS_ACCESS])
    renewed["TS"] = run_alone(lock, coordination.CLAIMS, service, acquisitions, seed, True, 1.5 * LONGEST)
    fresh["TS"] = run_alone(lock, coordination.CLAIMS, service, acquisitions, seed, True, LONGEST / 2)
    return {
        RENEW: {name: fmean(_renewals(run)) for name, run in renewed.items()},
        RELEASE: {name: fmean(_releases(run)) for name, run in fresh.items()},
        RELEASE_RENEWED: {name: fmean(_releases(run)) for name, run in renewed.items()},
    }


def _composite(members: Sequence[str], law: str, acquisitions: int, seed: int, hold: float) -> Simulation:
    services = [SERVICES[member] for member in members]
    kinds = tuple(service.kind for service in services)
    lease = system.QuorumLease(stores=kinds, clients=1, ttl=TERM, t_max=TERM, fenced=False)
    laws = laws_for(law, [service.access for service in services])
    candidate = election.Election(lease)  # a client that renews
    return run_alone(candidate, replace(system.CLAIMS, fencing=False), laws, acquisitions, seed, True, hold)


def _renewals(simulation: Simulation) -> Iterator[float]:
    assert simulation.recording is not None
    since = None
    for at, node, kind, _peer, _message, _cause, note, *_ in simulation.recording.records:
        if node == 0 and kind is Kind.TIMER and note == election.RENEW:
            since = at
        elif node == 0 and kind is Kind.RENEW and since is not None:
            yield at - since
            since = None


def _releases(simulation: Simulation) -> Iterator[float]:
    """From each release to the next acquire a store's last answer is the one to the release. (With the last release the
    run ends.)"""
    assert simulation.recording is not None
    since, answered = None, dict[int, float]()
    for at, node, kind, peer, *_ in simulation.recording.records:
        if node != 0:
            continue
        if kind is Kind.RELEASE:
            since, answered = at, {}
        elif kind is Kind.RECEIVE and since is not None:
            answered[peer] = at
        elif kind is Kind.ACQUIRE and since is not None:
            yield sorted(answered.values())[:QUORUM][-1] - since
