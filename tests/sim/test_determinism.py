import os
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.toys import known, speech, toy
from trinco.core.node import Process
from trinco.protocols.catalogue import ENTRIES
from trinco.sim.faults import Chaos, Crash, Pause
from trinco.sim.laws import Constant, Exponential, Lognormal, Uniform
from trinco.sim.links import Links
from trinco.sim.simulation import run
from trinco.sim.workload import Closed, OneShot, Open, saturated

NAMES = [entry.name for entry in ENTRIES if not entry.claims.elects]
links = st.sampled_from(
    [
        Links(),
        Links(Constant(0.25)),
        Links(Uniform(0.5, 1.5)),
        Links(Exponential(1.0), ordered=False),
        Links(Lognormal(1.0, 0.5), per_link={(0, 1): Constant(3.0)}),
        Links(loss=0.1, duplication=0.1),
    ]
)
workloads = st.sampled_from([Closed(15), saturated(15), Open(15, rate=0.5), OneShot(Uniform(0.0, 5.0))])
disturbances = st.sampled_from(
    [
        {},
        {"faults": (Pause(1, 3.0, 4.0),)},
        {"faults": (Crash(1, 3.0, after_sends=1),)},
        {"chaos": Chaos(crashes=1, restarts=True, pauses=2, partitions=2, within=20.0)},
    ]
)


@st.composite
def scenarios(draw):
    return known(
        draw(st.sampled_from(NAMES)),
        draw(st.integers(2, 5)),
        seed=draw(st.integers(0, 1000)),
        links=draw(links),
        workload=draw(workloads),
        beyond_claims=True,
        until=200.0,
        **draw(disturbances),
    )


@given(scenarios())
def test_the_same_scenario_gives_the_same_trace(scenario):
    assert run(scenario).trace_hash == run(scenario).trace_hash


def comparable(metrics):
    """Without what only a trace can tell."""
    return replace(metrics, worst_messages_per_entry=None, load=None, costs=[])


@given(scenarios())
def test_with_and_without_a_trace_a_run_is_the_same(scenario):
    traced, quiet = run(scenario), run(scenario.with_changes(trace=False))
    assert comparable(traced.metrics) == comparable(quiet.metrics)
    assert traced.finished == quiet.finished
    if traced.violation is None or traced.violation.property != "MessagesPerEntry":
        assert traced.violation == quiet.violation


@pytest.mark.parametrize("name", ["coordinator", "ricart-agrawala"])
def test_with_and_without_a_trace_a_run_in_which_messages_take_no_time_is_the_same(name):
    scenario = known(name, 4, links=Links(Constant(0.0)), workload=saturated(20))
    traced, quiet = run(scenario), run(scenario.with_changes(trace=False))
    assert comparable(traced.metrics) == comparable(quiet.metrics)


def test_without_a_trace_there_is_no_hash():
    assert run(known("coordinator", 3, trace=False)).trace_hash is None


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_gives_another_trace(name):
    hashes = {run(known(name, 3, seed=seed, workload=Closed(10))).trace_hash for seed in range(10)}
    assert len(hashes) == 10


def test_a_fault_late_in_the_run_does_not_change_what_came_before():
    """Each purpose has its own chance: the delays drawn before the fault are the same."""
    plain = list(speech(links=Links(Uniform(0.0, 5.0))).recording.events())
    faulty = list(speech(links=Links(Uniform(0.0, 5.0)), faults=(Crash(1, 6.0),)).recording.events())
    before = [event for event in plain if event.at < 6.0]
    assert len(before) > 5
    assert faulty[: len(before)] == before


@dataclass(slots=True)
class Dicer(Process):
    """Throws a die with six sides each time it asks."""

    thrown: int | None = None

    def acquire(self, ctx):
        self.thrown = ctx.choose(6)
        ctx.grant()

    def release(self, ctx):
        self.thrown = None


def dicers(n):
    return [Dicer() for _ in range(n)]


def throws(seed):
    events = run(toy(dicers, 1, seed=seed, workload=saturated(60))).recording.events()
    return [event.state["thrown"] for event in events if event.state.get("thrown") is not None]


def test_a_choice_is_drawn_by_the_seed_from_all_options():
    assert throws(1) == throws(1) != throws(2)
    assert set(throws(1)) == set(range(6))


HASHES = """
from trinco.protocols.catalogue import ENTRIES
from trinco.sim.laws import Exponential
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Closed, Elections
for entry in ENTRIES:
    workload = Elections(((0, 1.0), (1, 1.5))) if entry.claims.elects else Closed(20)
    scenario = Scenario(protocol=entry.name, build=entry.build, claims=entry.claims, n=entry.smallest + 3, seed=5,
                        workload=workload, links=Links(Exponential(1.0)), until=1000.0)
    print(run(scenario).trace_hash)
"""


def test_the_trace_does_not_depend_on_how_python_hashes_strings():
    printed = [
        subprocess.run(
            [sys.executable, "-c", HASHES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for seed in ("0", "1")
    ]
    assert len(printed[0]) == len(ENTRIES)
    assert printed[0] == printed[1]
