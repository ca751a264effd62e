"""The full counts behind what the docs claim about leases. Part of ``make prove``."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trinco.check.leases import SMALL, lease_model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.lab import lease_latency
from trinco.lab.lease_runs import coarse_clocks, rising_tokens, waiting
from trinco.leases.bases.catalogue import BASES
from trinco.leases.nodes.behaviours import BEHAVIOURS
from trinco.leases.nodes.system import CLAIMS, QuorumLease
from trinco.leases.terms import Policy
from trinco.sim.laws import Constant, Exponential
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.swarm import Swarm
from trinco.sim.workers import process_pool
from trinco.sim.workload import saturated

Figures = dict[str, Any]
ONE = replace(SMALL, stores=("one-access",), f=0)
PRIORITY = replace(SMALL, policy=Policy.PRIORITY)
FIRST = replace(SMALL, widen=1.0)


def exhaustive(command: str, system: QuorumLease, said: str = "", **options: Any) -> Figures:
    """No violation in any run of this model."""
    result = check(lease_model(system, **options), liveness=False, max_states=30_000_000, max_bytes=12 << 30)
    assert result.verdict is Verdict.HOLDS, (command, result.verdict, result.violation)
    return {
        "command": f"trinco check quorum-lease {command}".strip(),
        "states": result.progress.states,
        "depth": result.progress.depth,
        "seconds": round(result.progress.seconds, 1),
        "verdict": said or "safe",
    }


def broken(command: str, system: QuorumLease, **options: Any) -> Figures:
    """A model that must be violated."""
    result = check(lease_model(system, **options), liveness=False, max_states=30_000_000)
    assert result.verdict is Verdict.VIOLATED, command
    assert result.violation is not None
    return {
        "command": f"trinco check quorum-lease {command}",
        "states": result.progress.states,
        "depth": result.progress.depth,
        "verdict": f"violated, as it must be: {result.violation.text}",
    }


def liars(n: int, f: int, seeds: int) -> Figures:
    """f stores that grant everything to everybody, over many seeds."""
    system = QuorumLease(stores=("one-access",) * n, clients=3, f=f, ttl=3.0)
    scenario = Scenario(
        protocol="quorum-lease",
        build=system,
        claims=CLAIMS,
        n=system.n,
        workload=saturated(40, Constant(0.2)),
        links=Links(Exponential(0.05), ordered=False),
        byzantine={system.n - 1 - each: BEHAVIOURS["grant-all"] for each in range(f)},
        trace=False,
    )
    crowd = Swarm(scenario)
    with process_pool(os.cpu_count() or 1) as executor:
        crowd.run(range(seeds), executor)
    assert not crowd.violations
    assert not crowd.unfinished
    told = " ".join(["--byzantine grant-all"] * f)
    return {
        "command": f"trinco sim quorum-lease -n {n} -f {f} --clients 3 {told} --seeds {seeds}",
        "seeds": crowd.done,
        "entries": crowd.entries,
        "violations": 0,
    }


def clocks() -> Figures:
    """Whole seconds, an hour off, 200 ppm: no overlap; without the margin there are some."""
    found = coarse_clocks(100_000)
    quorum = coarse_clocks(2_000, n=4, f=1)
    without = coarse_clocks(2_000, margin=False)
    assert found["overlaps"] == quorum["overlaps"] == 0 < without["overlaps"]
    assert found["terms"] >= 100_000
    return {
        "command": "lab.lease_runs.coarse_clocks(100_000)",
        "terms": found["terms"],
        "overlaps": 0,
        "terms_of_a_quorum": quorum["terms"],
        "without_margin": f"{without['overlaps']} overlaps in {without['terms']} terms",
    }


def tokens() -> Figures:
    found = rising_tokens(11_000)
    assert found["violation"] is None, found
    assert found["acquisitions"] >= 10_000
    return {"command": "lab.lease_runs.rising_tokens(11_000)", **found}


def waits() -> Figures:
    figures = {}
    for liar in (None, "deny-all", "silent"):
        for clients in (1, 2, 5, 10):
            for policy in (Policy.PRIORITY, Policy.BACKOFF):
                figures[f"{policy.value}, {clients} clients, {liar or 'none'}"] = waiting(
                    policy, clients=clients, liar=liar, seeds=4
                )
    ours, papers = figures["priority, 10 clients, silent"], figures["backoff, 10 clients, silent"]
    assert ours["mean"] * 5 <= papers["mean"]
    assert ours["p99"] <= 4 * ours["mean"]
    assert all(each["everybody_served"] for each in figures.values())
    return {"command": "lab.lease_runs.waiting(policy)", "runs": figures}


def latency() -> Figures:
    """The lease phase takes as long as the third of its four bases; DepSky's phases beside it."""
    order = lease_latency.order_statistic(acquisitions=4_000, samples=50_000)
    assert all(abs(row["deviation"]) <= 0.05 for row in order["rows"])
    depsky = lease_latency.depsky_ratio(acquisitions=2_000, samples=20_000)
    mixes = lease_latency.paper_mixes(acquisitions=2_000)
    assert all(row["TR/NAR"] < 1 < row["AR/NAR"] for row in mixes["rows"])
    return {"command": "lab.lease_latency", "order_statistic": order, "depsky": depsky, "mixes": mixes}


def quorum_first() -> dict[str, Callable[[], Figures]]:
    """As the locks ask: three of four stores first."""
    return {
        "quorum first": lambda: exhaustive("--quorum-first --max-states 30000000", FIRST),
        "quorum first, the liar among them": lambda: exhaustive(
            "--quorum-first --no-time --byzantine 2:any", FIRST, byzantine={2: "any"}, time=False
        ),
        "quorum first, token": lambda: exhaustive(
            "--quorum-first --no-time --token --byzantine 2:grant-all --network fifo --fires 1",
            replace(FIRST, fenced=True),
            "safe; tokens rise",
            byzantine={2: "grant-all"},
            time=False,
            network=Network.FIFO,
            fires=1,
        ),
        "quorum first, priority, silent": lambda: exhaustive(
            "--quorum-first --no-time --policy priority --byzantine 2:silent --network fifo --fires 1",
            replace(FIRST, policy=Policy.PRIORITY),
            "safe; from every state everybody can be served",
            byzantine={2: "silent"},
            time=False,
            network=Network.FIFO,
            fires=1,
        ),
        **{
            f"quorum first, three clients, {liar}": lambda liar=liar: exhaustive(
                f"--quorum-first --clients 3 --no-time --fires 0 --network fifo --byzantine 6:{liar}",
                replace(FIRST, clients=3),
                byzantine={6: liar},
                time=False,
                network=Network.FIFO,
                fires=0,
            )
            for liar in ("silent", "grant-all", "any")
        },
        "quorum first, three clients, token": lambda: exhaustive(
            "--quorum-first --clients 3 --no-time --token --fires 0 --network fifo --byzantine 6:grant-all"
            " --max-states 30000000",
            replace(FIRST, clients=3, fenced=True),
            "safe; tokens rise",
            byzantine={6: "grant-all"},
            time=False,
            network=Network.FIFO,
            fires=0,
        ),
    }


def handing_over() -> dict[str, Callable[[], Figures]]:
    """Stores that give what is let go of to the first in line: Redis and PostgreSQL. Where time passes while messages
    are under way, whoever waits can be unlucky without end: there only safety is looked for."""
    one = replace(ONE, stores=("handing-over",), policy=Policy.PRIORITY)
    four = replace(PRIORITY, stores=("handing-over",) * 4)
    found: dict[str, Callable[[], Figures]] = {
        "handing over, one store, time": lambda: exhaustive(
            "-n 1 -f 0 --stores handing-over --policy priority --no-liveness --fires 1", one, byzantine={}, fires=1
        ),
        "handing over, one store, two polls": lambda: exhaustive(
            "-n 1 -f 0 --stores handing-over --policy priority --no-liveness --fires 2", one, byzantine={}, fires=2
        ),
        "handing over, one store, renewal": lambda: exhaustive(
            "-n 1 -f 0 --stores handing-over --policy priority --no-liveness --fires 1 --ttl 1 --renewals 1",
            replace(one, ttl=1),
            byzantine={},
            fires=1,
            renewals=1,
        ),
        "handing over, one store, three clients, time": lambda: exhaustive(
            "-n 1 -f 0 --stores handing-over --policy priority --no-liveness --fires 0 --ttl 1 --clients 3"
            " --max-states 30000000",
            replace(one, ttl=1, clients=3),
            byzantine={},
            fires=0,
        ),
    }
    for liar in ("silent", "deny-all", "grant-all", "hand-all"):
        found[f"handing over, {liar}"] = lambda liar=liar: exhaustive(
            f"--stores handing-over --policy priority --no-time --fires 0 --network fifo --byzantine {liar}"
            " --max-states 30000000",
            four,
            "safe; from every state everybody can be served, without a poll",
            byzantine={5: liar},
            time=False,
            fires=0,
            network=Network.FIFO,
        )
    return found


def proofs() -> dict[str, Callable[[], Figures]]:
    """What is proven, by name. Ordered as the docs show it."""
    found: dict[str, Callable[[], Figures]] = {
        "quorum-lease, default": lambda: exhaustive("", SMALL),
        "quorum-lease, renewal": lambda: exhaustive("--no-time --renewals 1", SMALL, time=False, renewals=1),
        "one store, renewal, time": lambda: exhaustive(
            "-n 1 -f 0 --rounds 2 --renewals 1 --ttl 3", replace(ONE, ttl=3), byzantine={}, rounds=2, renewals=1
        ),
        "one store, drift": lambda: exhaustive(
            "-n 1 -f 0 --drift 1", replace(ONE, ttl=4, sigma=2), byzantine={}, drift=1
        ),
        "one store, drift, margin too small": lambda: broken(
            "-n 1 -f 0 --drift 1 --ttl 4 --sigma 1", replace(ONE, ttl=4, sigma=1), byzantine={}, drift=1
        ),
        "quorum-lease, drift": lambda: exhaustive(
            "--drift 1 --drifting 1 --ttl 3 --sigma 2 --byzantine grant-all --max-states 30000000",
            replace(SMALL, ttl=3, sigma=2),
            byzantine={5: "grant-all"},
            drift=1,
            drifting=1,
        ),
        "quorum-lease, drift, margin too small": lambda: broken(
            "--drift 1 --drifting 1 --ttl 3 --sigma 1 --byzantine grant-all",
            replace(SMALL, ttl=3, sigma=1),
            byzantine={5: "grant-all"},
            drift=1,
            drifting=1,
        ),
        **quorum_first(),
        **handing_over(),
        "two liars of four": lambda: broken(
            "--no-time --byzantine grant-all --byzantine grant-all --beyond-claims",
            SMALL,
            byzantine={4: "grant-all", 5: "grant-all"},
            time=False,
            beyond_claims=True,
        ),
        "two liars of seven": lambda: liars(7, 2, 2_000),
        "one liar of four": lambda: liars(4, 1, 2_000),
    }
    for kind in BASES:
        found[f"base {kind}"] = lambda kind=kind: exhaustive(
            f"-n 1 -f 0 --stores {kind} --renewals 1", replace(ONE, stores=(kind,)), byzantine={}, renewals=1
        )
    for liar in ("grant-all", "deny-all", "silent"):
        found[f"priority, {liar}"] = lambda liar=liar: exhaustive(
            f"--policy priority --no-time --byzantine {liar}",
            PRIORITY,
            "safe; from every state everybody can be served",
            byzantine={5: liar},
            time=False,
        )
    found["token, one attempt"] = lambda: exhaustive(
        "--token --no-time", replace(SMALL, fenced=True), "safe; tokens rise", time=False
    )
    found["token, two stores, priority"] = lambda: exhaustive(
        "-n 2 -f 0 --token --policy priority --no-time --rounds 2",
        replace(PRIORITY, stores=("one-access",) * 2, f=0, fenced=True),
        "safe; tokens rise; from every state everybody can be served",
        byzantine={},
        time=False,
        rounds=2,
    )
    found["clocks"] = clocks
    found["tokens"] = tokens
    found["waiting"] = waits
    found["latency"] = latency
    return found
