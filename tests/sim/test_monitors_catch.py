"""Each monitor at work: a protocol with one thing broken is caught, for that and nothing else."""

from dataclasses import replace

import pytest

from tests.mutants import coordinator, fencing, ricart_agrawala
from tests.sim.toys import ONE_INSIDE, toy
from trinco.core.formula import Formula
from trinco.core.verify import verify
from trinco.protocols.coordinator import CLAIMS as COORDINATOR
from trinco.protocols.permission.ricart_agrawala import CLAIMS as RICART_AGRAWALA
from trinco.sim.simulation import run
from trinco.sim.workload import OneShot, Scripted, saturated

BOUNDED = replace(COORDINATOR, bypass=Formula("n-2"))
FENCED = replace(ONE_INSIDE, fencing=True)

ONE_ASKS = Scripted(((1, 0.0, 1.0),))


def broken(build, claims, workload, monitor, words):
    return pytest.param(toy(build, 4, claims, workload=workload), monitor, words, id=build.__name__)


each_mutant = pytest.mark.parametrize(
    ("scenario", "monitor", "words"),
    [
        broken(ricart_agrawala.never_defers, RICART_AGRAWALA, OneShot(), "AtMostInside", "are inside together"),
        broken(coordinator.serves_two, COORDINATOR, OneShot(), "AtMostInside", "are inside together"),
        broken(ricart_agrawala.enters_unasked, RICART_AGRAWALA, ONE_ASKS, "GrantedOnlyIfAsked", "without having asked"),
        broken(ricart_agrawala.always_defers, RICART_AGRAWALA, OneShot(), "EveryoneServed", "deadlock: p0, p1, p2, p3"),
        broken(coordinator.forgets_releases, COORDINATOR, OneShot(), "EveryoneServed", "starvation: p2, p3"),
        broken(coordinator.ignores_one, COORDINATOR, saturated(20), "EveryoneServed", "starvation: p1 asked"),
        broken(coordinator.serves_the_last, BOUNDED, saturated(20), "BoundedBypass", "was overtaken 3 times"),
        broken(ricart_agrawala.chatters, RICART_AGRAWALA, saturated(20), "MessagesPerEntry", "entry took 7 messages"),
        broken(fencing.counts_down, FENCED, saturated(5), "TokenRises", "with token -2 after -1"),
        broken(fencing.repeats_itself, FENCED, saturated(5), "TokenRises", "with token 7 after 7"),
        broken(fencing.leaves_the_number_out, FENCED, saturated(5), "TokenRises", "without a fencing token"),
    ],
)


@each_mutant
def test_a_broken_protocol_is_caught_by_the_monitor_that_should(scenario, monitor, words):
    violation = run(scenario).violation
    assert violation is not None
    assert violation.property == monitor
    assert words in violation.text


@each_mutant
def test_a_broken_protocol_is_caught_in_its_trace_as_well(scenario, monitor, words):
    recording = run(scenario).recording
    assert words in verify(recording.header, list(recording.events()), scenario.claims).violation


@pytest.mark.parametrize("seed", range(3))
def test_the_unbroken_clerk_is_not_complained_about(seed):
    result = run(toy(fencing.counts_up, 4, FENCED, workload=saturated(20), seed=seed))
    assert (result.violation, result.metrics.entries) == (None, 20)
