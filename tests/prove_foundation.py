"""The full counts behind what the docs claim about the first three algorithms. Part of ``make prove``."""

import os
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any

from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.claims import Network
from trinco.core.monitor import BoundedBypass
from trinco.protocols.catalogue import Entry, find
from trinco.sim.laws import Constant, Exponential, Law, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.swarm import Swarm
from trinco.sim.workers import process_pool
from trinco.sim.workload import saturated

Figures = dict[str, Any]
Proof = Callable[[], Figures]

MOST_STATES = 20_000_000
PROTOCOLS = ("coordinator", "ricart-agrawala", "token-ring")


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A model from the catalogue, small enough to go through all of it. ``rounds`` None: entries without end."""

    protocol: str
    n: int
    rounds: int | None
    crashes: int = 0
    network: Network | None = None
    settings: tuple[str, ...] = ()
    reductions: bool = True

    @property
    def title(self) -> str:
        """The protocol is a word of its own: by that the docs find it."""
        words = [f"n={self.n}", f"rounds={self.rounds or 'forever'}"]
        words += [f"crashes={self.crashes}"] * bool(self.crashes)
        words += [self.network.name.lower()] if self.network else []
        return " ".join(("check", self.protocol, *words, *self.settings))

    @property
    def command(self) -> str:
        words = ["trinco check", self.protocol, f"-n {self.n} --rounds {self.rounds or 'forever'}"]
        words += [f"--crashes {self.crashes}"] * bool(self.crashes)
        words += [f"--network {self.network.name.lower()}"] if self.network else []
        words += [f"--set {setting}" for setting in self.settings]
        words += ["--no-reductions"] * (not self.reductions)
        return " ".join(words)

    @property
    def entry(self) -> Entry:
        return find(self.protocol).set(*self.settings)


def exhaustive(instance: Instance) -> Figures:
    """Safe, deadlock-free and starvation-free, in every run."""
    model = model_of(
        instance.entry,
        n=instance.n,
        rounds=instance.rounds,
        crashes=instance.crashes,
        network=instance.network,
        reductions=instance.reductions,
    )
    result = check(model, max_states=MOST_STATES)
    assert result.verdict is Verdict.HOLDS, result.violation
    assert result.liveness
    return {
        "command": instance.command,
        "states": result.progress.states,
        "transitions": result.progress.transitions,
        "depth": result.progress.depth,
        "verdict": "safe, deadlock-free, starvation-free",
    }


def overtaking(n: int, rounds: int) -> Figures:
    """The claimed bound on overtaking in Ricart-Agrawala holds, and no smaller one does."""
    model = model_of(find("ricart-agrawala"), n=n, rounds=rounds)
    bound = 2 * (n - 1)
    tight = check(replace(model, monitors=(BoundedBypass(bound - 1),)), liveness=False, max_states=MOST_STATES)
    holds = check(replace(model, monitors=(BoundedBypass(bound),)), liveness=False, max_states=MOST_STATES)
    assert holds.verdict is Verdict.HOLDS
    assert tight.verdict is Verdict.VIOLATED
    return {
        "command": f"trinco check ricart-agrawala -n {n} --rounds {rounds} --bypass",
        "bound": bound,
        "states": holds.progress.states,
        "verdict": f"at most {bound}, and {bound} happens",
    }


def swarm(protocol: str, law: Law, seeds: int, entries: int) -> Figures:
    """Many seeds, delays at random, on the weakest network that is claimed: no violation, and everybody served."""
    entry = find(protocol)
    ordered = entry.claims.network is Network.FIFO
    scenario = Scenario(
        protocol=protocol,
        build=entry.build,
        claims=entry.claims,
        n=6,
        workload=saturated(entries),
        links=Links(law, ordered),
    )
    crowd = Swarm(scenario)
    with process_pool(os.cpu_count() or 1) as executor:
        crowd.run(range(seeds), executor)
    assert not crowd.violations, crowd.violations
    assert not crowd.unfinished
    return {
        "command": f"trinco sim {protocol} -n 6 --workload saturated --entries {entries} --delay {_written(law)}"
        f"{'' if ordered else ' --unordered'} --seeds {seeds}",
        "seeds": crowd.done,
        "entries": crowd.entries,
        "violations": 0,
    }


def _written(law: Any) -> str:
    numbers = ",".join(f"{number:g}" for number in astuple(law))
    return f"{type(law).__name__.lower()}:{numbers}"


def _instances() -> Iterator[Instance]:
    cases: list[tuple[str, int, int | None]] = [
        ("ricart-agrawala", 3, 2), ("ricart-agrawala", 3, 3), ("ricart-agrawala", 3, 4), ("ricart-agrawala", 4, 1),
        ("coordinator", 4, 2), ("coordinator", 6, 2), ("coordinator", 4, None), ("coordinator", 7, None),
        ("token-ring", 4, 2), ("token-ring", 7, 2), ("token-ring", 4, None), ("token-ring", 10, None),
    ]  # fmt: skip
    return (Instance(protocol=protocol, n=n, rounds=rounds) for protocol, n, rounds in cases)


def proofs() -> dict[str, Proof]:
    """What is proven, by name. Ordered as the docs show it."""
    found: dict[str, Proof] = {}
    for instance in _instances():
        found[instance.title] = partial(exhaustive, instance)
    found["overtaking ricart-agrawala n=2"] = partial(overtaking, 2, 4)
    found["overtaking ricart-agrawala n=3"] = partial(overtaking, 3, 3)
    for name in PROTOCOLS:
        for law in (Constant(1.0), Uniform(0.1, 5.0), Exponential(1.0), Lognormal(1.0, 1.0)):
            words = type(law).__name__.lower()
            found[f"seeds {name} {words}"] = partial(swarm, name, law, seeds=10_000, entries=60)
    return found
