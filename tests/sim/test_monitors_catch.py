"""Each monitor at work: a protocol with one thing broken is caught, for that and nothing else."""

from dataclasses import replace

import pytest

from trinco.core.formula import Formula
from trinco.core.verify import verify
from trinco.protocols.coordinator import CLAIMS as COORDINATOR
from trinco.protocols.permission.ricart_agrawala import CLAIMS as RICART_AGRAWALA
from trinco.sim.simulation import run
from trinco.sim.workload import OneShot, Scripted, saturated
from tests.mutants import coordinator, fencing, ricart_agrawala
from tests.sim.toys import ONE_INSIDE, toy

BOUNDED = replace(COORDINATOR, bypass=Formula("n-2"))
FENCED = replace(ONE_INSIDE, fencing=True)

CAUGHT = [
    (ricart_agrawala.never_defers, RICART_AGRAWALA, OneShot(), "AtMostInside", "are inside together"),
    (coordinator.serves_two, COORDINATOR, OneShot(), "AtMostInside", "are inside together"),
    (ricart_agrawala.enters_unasked, RICART_AGRAWALA, Scripted(((1, 0.0, 1.0),)), "GrantedOnlyIfAsked", "without having"),
    (ricart_agrawala.always_defers, RICART_AGRAWALA, OneShot(), "EveryoneServed", "deadlock: p0, p1, p2, p3"),
    (coordinator.forgets_releases, COORDINATOR, OneShot(), "EveryoneServed", "starvation: p2, p3"),
    (coordinator.ignores_one, COORDINATOR, saturated(20), "EveryoneServed", "starvation: p1 asked"),
    (coordinator.serves_the_last, BOUNDED, saturated(20), "BoundedBypass", "was overtaken 3 times"),
    (ricart_agrawala.chatters, RICART_AGRAWALA, saturated(20), "MessagesPerEntry", "one entry took 7 messages"),
    (fencing.counts_down, FENCED, saturated(5), "TokenRises", "with token -2 after -1"),
    (fencing.repeats_itself, FENCED, saturated(5), "TokenRises", "with token 7 after 7"),
    (fencing.leaves_the_number_out, FENCED, saturated(5), "TokenRises", "without a fencing token"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "claims", "workload", "monitor", "words"), CAUGHT, ids=lambda value: getattr(value, "__name__", ""))  # fmt: skip
def test_a_broken_protocol_is_caught_by_the_monitor_that_should(build, claims, workload, monitor, words):
    violation = run(toy(build, 4, claims, workload=workload)).violation
    assert violation is not None
    assert violation.property == monitor
    assert words in violation.text


@pytest.mark.parametrize(("build", "claims", "workload", "monitor", "words"), CAUGHT, ids=lambda value: getattr(value, "__name__", ""))  # fmt: skip
def test_a_broken_protocol_is_caught_in_its_trace_as_well(build, claims, workload, monitor, words):
    recording = run(toy(build, 4, claims, workload=workload)).recording
    found = verify(recording.header, list(recording.events()), claims)
    assert words in found.violation


@pytest.mark.parametrize("seed", range(3))
def test_the_unbroken_clerk_is_not_complained_about(seed):
    result = run(toy(fencing.counts_up, 4, FENCED, workload=saturated(20), seed=seed))
    assert (result.violation, result.metrics.entries) == (None, 20)
