"""The full counts behind what the docs claim: ``make prove``. Takes minutes and writes ``docs/evidence/*.json``.

Each proof is a name, the command that repeats it, and figures. A proof that fails stops everything with its reason.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import astuple, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests import prove_leases, prove_locks
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.claims import Network
from trinco.core.monitor import BoundedBypass
from trinco.lab.exhibits.catalogue import EXHIBITS
from trinco.protocols.catalogue import ENTRIES, find
from trinco.sim.laws import Constant, Exponential, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workers import process_pool
from trinco.sim.workload import saturated

EVIDENCE = Path(__file__).resolve().parent.parent / "docs" / "evidence"
SEEDS = 10_000

Figures = dict[str, Any]


def exhaustive(protocol: str, n: int, rounds: int | None) -> Figures:
    """Safe, deadlock-free and starvation-free, in every run."""
    result = check(model_of(find(protocol), n=n, rounds=rounds), max_states=20_000_000)
    assert result.verdict is Verdict.HOLDS, result.violation
    assert result.liveness
    words = rounds or "forever"
    return {
        "command": f"trinco check {protocol} -n {n} --rounds {words}",
        "states": result.progress.states,
        "transitions": result.progress.transitions,
        "depth": result.progress.depth,
        "verdict": "safe, deadlock-free, starvation-free",
    }


def overtaking(n: int, rounds: int) -> Figures:
    """The claimed bound on overtaking in Ricart-Agrawala holds, and no smaller one does."""
    model = model_of(find("ricart-agrawala"), n=n, rounds=rounds)
    bound = 2 * (n - 1)
    tight = check(replace(model, monitors=(BoundedBypass(bound - 1),)), liveness=False, max_states=20_000_000)
    holds = check(replace(model, monitors=(BoundedBypass(bound),)), liveness=False, max_states=20_000_000)
    assert holds.verdict is Verdict.HOLDS
    assert tight.verdict is Verdict.VIOLATED
    return {
        "command": f"trinco check ricart-agrawala -n {n} --rounds {rounds} --bypass",
        "bound": bound,
        "states": holds.progress.states,
        "verdict": f"at most {bound}, and {bound} happens",
    }


def exhibits() -> Figures:
    """Every exhibit is caught, with reductions and without."""
    figures = {}
    for exhibit in EXHIBITS:
        found = [check(replace(exhibit.model(), reductions=reductions)) for reductions in (True, False)]
        for result in found:
            assert result.violation is not None, exhibit.name
            assert result.violation.kind == exhibit.breaks, exhibit.name
        steps = [len(result.counterexample.script) for result in found if result.counterexample]
        figures[exhibit.name] = {"breaks": exhibit.breaks, "states": found[0].progress.states, "steps": steps[0]}
    return {"command": "trinco exhibit NAME", "exhibits": figures}


def messages(protocol: str) -> Figures:
    """Messages per entry, measured for n = 4 to 64, beside the claim."""
    entry, figures = find(protocol), {}
    for n in (4, 8, 16, 32, 64):
        scenario = Scenario(
            protocol=protocol, build=entry.build, claims=entry.claims, n=n, workload=saturated(20 * n)
        )  # fmt: skip
        result = run(scenario)
        assert result.violation is None, result.violation
        figures[str(n)] = round(result.metrics.messages / result.metrics.entries, 3)
    return {
        "command": f"trinco sim {protocol} -n N --workload saturated",
        "claimed": str(entry.claims.messages_per_entry),
        "messages_per_entry": figures,
    }


def swarm(protocol: str, law: Any, ordered: bool) -> Figures:
    """Many seeds, delays at random: no violation."""
    entry, links = find(protocol), Links(law, ordered)
    shape: dict[str, Any] = {"protocol": protocol, "build": entry.build, "claims": entry.claims, "n": 6}
    scenario = Scenario(**shape, workload=saturated(60), links=links)
    crowd = Swarm(scenario)
    with process_pool(os.cpu_count() or 1) as executor:
        crowd.run(range(SEEDS), executor)
    assert not crowd.violations, crowd.violations
    assert not crowd.unfinished
    return {
        "command": f"trinco sim {protocol} -n 6 --workload saturated --entries 60 --delay {_written(law)}"
        f"{'' if ordered else ' --unordered'} --seeds {SEEDS}",
        "seeds": crowd.done,
        "entries": crowd.entries,
        "violations": 0,
    }


def _written(law: Any) -> str:
    numbers = ",".join(f"{number:g}" for number in astuple(law))
    return f"{type(law).__name__.lower()}:{numbers}"


def proofs() -> dict[str, Callable[[], Figures]]:
    """What is proven, by name. Ordered as the docs show it."""
    found: dict[str, Callable[[], Figures]] = {}
    cases: list[tuple[str, int, int | None]] = [
        ("ricart-agrawala", 3, 2), ("ricart-agrawala", 3, 3), ("ricart-agrawala", 3, 4), ("ricart-agrawala", 4, 1),
        ("coordinator", 4, 2), ("coordinator", 6, 2), ("coordinator", 4, None), ("coordinator", 7, None),
        ("token-ring", 4, 2), ("token-ring", 7, 2), ("token-ring", 4, None), ("token-ring", 10, None),
    ]  # fmt: skip
    for protocol, n, rounds in cases:
        name = f"check {protocol} n={n} rounds={rounds or 'forever'}"
        found[name] = lambda protocol=protocol, n=n, rounds=rounds: exhaustive(protocol, n, rounds)
    found["overtaking ricart-agrawala n=2"] = lambda: overtaking(2, 4)
    found["overtaking ricart-agrawala n=3"] = lambda: overtaking(3, 3)
    found["exhibits"] = exhibits
    for entry in (entry for entry in ENTRIES if not entry.claims.timed):
        found[f"messages {entry.name}"] = lambda name=entry.name: messages(name)
        ordered = entry.claims.network is Network.FIFO
        for law in (Constant(1.0), Uniform(0.1, 5.0), Exponential(1.0), Lognormal(1.0, 1.0)):
            words = type(law).__name__.lower()
            found[f"seeds {entry.name} {words}"] = lambda name=entry.name, law=law, ordered=ordered: swarm(
                name, law, ordered
            )
    return found


def main() -> None:
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    rooms = {"foundation": proofs, "leases": prove_leases.proofs, "locks": prove_locks.proofs}
    for room in sys.argv[1:] or rooms:
        prove(room, rooms[room]())


def prove(room: str, wanted: dict[str, Callable[[], Figures]]) -> None:
    figures = {}
    for name, proof in wanted.items():
        began = time.perf_counter()
        sys.stderr.write(f"{name} ... ")
        sys.stderr.flush()
        figures[name] = proof()
        sys.stderr.write(f"{time.perf_counter() - began:.1f} s\n")
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    evidence = {"date": date, "command": "make prove", "python": platform.python_version(), "proofs": figures}
    (EVIDENCE / f"{room}.json").write_text(json.dumps(evidence, indent=2) + "\n", encoding="utf-8")
    print(f"{len(figures)} proofs hold; written to docs/evidence/{room}.json")


if __name__ == "__main__":
    main()
