"""One seed, one trace: under any hash seed and every Python that is here."""

import subprocess

import pytest

from tests import pythons

SCENARIO = """
from trinco.protocols.catalogue import find
from trinco.sim.faults import Chaos
from trinco.sim.laws import Exponential, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Closed

for name in ("coordinator", "ricart-agrawala", "token-ring"):
    for delay in (Uniform(0.1, 3), Exponential(1), Lognormal(1, 0.7)):
        entry = find(name)
        scenario = Scenario(
            protocol=name, build=entry.build, claims=entry.claims, n=6, seed=7, beyond_claims=True,
            workload=Closed(40), links=Links(delay, ordered=False, loss=0.01, duplication=0.02),
            chaos=Chaos(crashes=1, pauses=2, partitions=1), max_events=20_000,
        )
        print(name, run(scenario).trace_hash)
"""


def hashes(python: str, version: str, hash_seed: str) -> str:
    environment = pythons.environment(version, PYTHONHASHSEED=hash_seed)
    told = subprocess.run([python, "-c", SCENARIO], env=environment, capture_output=True, timeout=120, check=True)
    return told.stdout.decode()


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    found = pythons.found()
    assert found, "not even the Python that runs the tests was found"
    missing = [version for version in found if not pythons.library_of(version).exists()]
    assert not missing, f"'make setup' has not prepared Python {missing}"
    return found


def test_the_same_seed_gives_the_same_trace_under_every_hash_seed_and_python(here: dict[str, str]) -> None:
    traces = {(version, seed): hashes(python, version, seed) for version, python in here.items() for seed in "012"}
    assert len(set(traces.values())) == 1, traces
    assert len(set(next(iter(traces.values())).split("\n"))) == 10, "nine scenarios, nine different traces"
