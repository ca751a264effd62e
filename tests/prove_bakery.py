"""The full counts for the Byzantine bakery: thousands of seeds against the library of liars, clocks that drift, and the
branching server gone through exhaustively."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise

from tests.check.test_bakery_states import OnTrust, model, untimed
from tests.mutants.bakery import Branching, Patient, Pushes
from tests.protocols.bakery import test_broadcasting
from tests.prove_foundation import Figures, Proof
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.event import Kind
from trinco.lab.bakery_campaign import KINDS, Liars, Survey, survey
from trinco.lab.bakery_open_system import OpenSystem
from trinco.protocols.bakery.collusion import PAIRS
from trinco.protocols.bakery.lying_servers import GrantAll, Mute
from trinco.protocols.bakery.strategies import CLIENTS, SERVERS
from trinco.protocols.bakery.system import CLAIMS, Bakery
from trinco.sim.faults import Drift
from trinco.sim.laws import Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workers import process_pool
from trinco.sim.workload import Closed, Scripted

SEEDS = {"accurate": 5_000, "hasty": 1_500, "f2": 500}
SEEDS_EACH = 500
RUNS_WITH_DRIFT = 300
MOST_STATES = 20_000_000


def _surveyed(kind: str, seeds: Iterable[int], liars: Liars | None = None) -> Survey:
    with process_pool(len(os.sched_getaffinity(0))) as executor:
        found = survey(kind, seeds, executor, liars)
    assert found.is_clean, found
    return found


def campaign(kind: str) -> Figures:
    """Liars drawn by the seed. With accurate timers nobody is overtaken more often than others contend with it."""
    found = _surveyed(kind, range(SEEDS[kind]))
    assert kind == "hasty" or not found.overtaken, found.overtaken
    return {
        "command": f"trinco.lab.bakery_campaign.survey('{kind}', range({SEEDS[kind]}))",
        "seeds": found.seeds,
        "entries": found.entries,
        "violations": 0,
        "unserved": 0,
        "banned": 0,
        "bypass": found.bypass,
        "overtaken": len(found.overtaken),
        "highest_ticket": found.highest,
    }


def each(liars: Mapping[str, Liars]) -> Figures:
    """One strategy at a time."""
    found = {name: _surveyed("accurate", range(SEEDS_EACH), each) for name, each in liars.items()}
    return {
        "command": f"trinco.lab.bakery_campaign.survey('accurate', range({SEEDS_EACH}), liars=...)",
        "seeds": sum(survey.seeds for survey in found.values()),
        "entries": sum(survey.entries for survey in found.values()),
        "violations": 0,
        "unserved": 0,
        "banned": 0,
        "strategies": {name: survey.entries for name, survey in found.items()},
    }


def tokens_over_idle_periods() -> Figures:
    """Nobody is there for a long time between two entries, and one server lies."""
    build, entries = KINDS["accurate"], 0
    script = Scripted(tuple((turn % 3, 3_000.0 * turn, 20.0) for turn in range(40)))
    for kind in SERVERS.values():
        result = run(_scenario(build, 3, workload=script, links=Links(Uniform(1.0, 110.0)), byzantine={6: kind}))
        assert result.violation is None, result.violation
        assert result.recording is not None
        tokens = [event.token for event in result.recording.events_without_clocks() if event.kind is Kind.GRANT]
        assert len(tokens) == 40
        assert all(earlier < later for earlier, later in pairwise(tokens))
        entries += len(tokens)
    return {
        "command": "pytest tests/protocols/bakery/test_counts.py, tokens across idle periods",
        "entries": entries,
        "servers_that_lie": len(SERVERS),
        "verdict": "tokens rise strictly",
    }


def drift() -> Figures:
    """Clients' clocks 1,000 ppm slow and servers' as much fast, holders that stay until the lease ends."""
    with_margin = [_drifting(seed, margin=2e-3) for seed in range(RUNS_WITH_DRIFT)]
    without = [_drifting(seed, margin=0.0) for seed in range(RUNS_WITH_DRIFT)]
    assert not any(with_margin)
    assert any(without)
    return {
        "command": "pytest tests/protocols/bakery/test_counts.py, clocks that drift",
        "runs": RUNS_WITH_DRIFT,
        "ppm": 1_000,
        "overlaps": 0,
        "overlaps_without_the_margin": sum(without),
    }


def _drifting(seed: int, margin: float) -> bool:
    """Whether two were inside together."""
    build = Bakery(hold=400.0, extension=900.0, silence=60.0, choosing=25.0, cap=6000.0, drift=margin)
    clocks = tuple(Drift(node, rate=0.999 if node < 4 else 1.001) for node in range(8))
    workload = Closed(12, think=Exponential(50.0), hold=Uniform(10.0, 2500.0))
    links = Links(Uniform(0.05, 0.1))
    scenario = _scenario(build, 4, workload=workload, links=links, faults=clocks, byzantine={7: GrantAll}, seed=seed)
    violation = run(replace(scenario, trace=False)).violation
    assert violation is None or violation.property == "AtMostInside", violation
    return violation is not None


def _scenario(build: Bakery, clients: int, **options: object) -> Scenario:
    bounds = {"until": 1e6, "max_events": 400_000}
    n = build.size + clients
    return Scenario(protocol="bakery", build=build, claims=CLAIMS, n=n, **{**bounds, **options})  # type: ignore[arg-type]


def branching() -> Figures:
    """f=1, four servers, two clients that enter once each; one server grants, refuses, follows or stays silent,
    each time anew. As in ``tests/check/test_bakery_states.py``: tickets on trust, votes without LISTEN, the honest
    servers merged."""
    honest = model(untimed(f=1, servers=4, kind=OnTrust), Patient, Pushes)
    nodes = [*honest.nodes[:-1], Branching.in_place_of(honest.nodes[-1])]
    liar = len(nodes) - 1
    instance = Model(nodes=nodes, byzantine=frozenset({liar}), symmetric=[frozenset(range(2, liar))])
    result = check(instance, max_states=MOST_STATES)
    assert result.verdict is Verdict.HOLDS, result.violation
    return {
        "command": "pytest tests/check/test_bakery_states.py, with a server that branches",
        "states": result.progress.states,
        "verdict": "safe, deadlock-free" + ", starvation-free" * bool(result.liveness),
    }


def open_system(clients: int, turns: int) -> Figures:
    """Clients that nobody knew before: what is kept of them, and what a turn costs."""
    found = OpenSystem(clients, turns).do()
    assert found.violation is None, found.violation
    assert (found.left.turns, found.left.suspicions) == (0, 0)
    assert found.left.clients <= 100
    assert 23.9 <= found.messages_per_entry <= 45
    return {
        "command": f"trinco.lab.bakery_open_system.OpenSystem({clients}, {turns}).do()",
        "clients": clients,
        "entries": found.entries,
        "messages_per_entry": round(found.messages_per_entry, 2),
        "clients_remembered": found.left.clients,
        "turns_left": 0,
    }


def proofs() -> dict[str, Proof]:
    servers = {name: Liars((kind,)) for name, kind in SERVERS.items()}
    clients = {name: Liars((Mute,), (kind,)) for name, kind in CLIENTS.items()}
    pairs = {name: Liars((pair.server,), (pair.client,)) for name, pair in PAIRS.items()}
    found: dict[str, Proof] = {f"campaign bakery {kind}": partial(campaign, kind) for kind in SEEDS}
    found["each server bakery"] = partial(each, servers)
    found["each client bakery"] = partial(each, clients)
    found["each pair bakery"] = partial(each, pairs)
    found["tokens bakery"] = tokens_over_idle_periods
    found["drift bakery"] = drift
    found["check bakery branching"] = branching
    found["open system bakery"] = partial(open_system, 10_000, 3)
    found["cycles bakery"] = partial(open_system, 100, 1_000)
    found["broadcast bakery"] = partial(test_broadcasting.survey, 600)
    return found
