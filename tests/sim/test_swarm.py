from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.mutants.ricart_agrawala import chatters, never_defers
from tests.sim.toys import known, toy
from trinco.protocols.permission.ricart_agrawala import CLAIMS
from trinco.sim.laws import Exponential
from trinco.sim.links import Links
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, saturated

SOUND = known("ricart-agrawala", 3, workload=Closed(6))
FLAWED = toy(never_defers, 3, CLAIMS, workload=Closed(3), links=Links(Exponential(1.0)))


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


def first_violating_seed():
    return next(seed for seed in range(100) if run(FLAWED.with_changes(seed=seed)).violation)


def swarmed(scenario, seeds, executor=None, collect=False):
    swarm = Swarm(scenario, collect=collect)
    swarm.run(seeds, executor)
    return swarm


def test_a_swarm_adds_up_what_its_seeds_came_to():
    runs = [run(SOUND.with_changes(seed=seed)) for seed in range(20)]
    swarm = swarmed(SOUND, range(20))
    assert swarm.done == 20
    assert swarm.entries == sum(each.metrics.entries for each in runs) == 120
    assert swarm.messages == sum(each.metrics.messages for each in runs)
    assert (swarm.unfinished, swarm.violations) == (0, [])


def test_a_swarm_stops_at_the_first_violating_seed():
    first = first_violating_seed()
    assert first > 0, "a flaw that every seed shows would prove nothing here"
    swarm = swarmed(FLAWED, range(100))
    assert [brief.seed for brief in swarm.violations] == [first]
    assert swarm.done == first + 1


def test_a_swarm_that_collects_goes_through_all_seeds():
    violating = [seed for seed in range(30) if run(FLAWED.with_changes(seed=seed)).violation]
    swarm = swarmed(FLAWED, range(30), collect=True)
    assert swarm.done == 30
    assert [brief.seed for brief in swarm.violations] == violating
    assert len(violating) > 1


def test_the_seed_of_a_violation_brings_it_back():
    brief = swarmed(FLAWED, range(100)).violations[0]
    assert run(FLAWED.with_changes(seed=brief.seed)).violation == brief.violation


@pytest.mark.parametrize("scenario", [SOUND, FLAWED], ids=["sound", "flawed"])
@pytest.mark.parametrize("collect", [False, True], ids=["first", "all"])
def test_a_swarm_on_other_processes_finds_exactly_the_same(processes, scenario, collect):
    assert swarmed(scenario, range(50), processes, collect) == swarmed(scenario, range(50), collect=collect)


def test_seeds_without_end_are_tried_until_one_violates(processes):
    def endless():
        seed = 0
        while True:
            yield seed
            seed += 1

    assert swarmed(FLAWED, endless()) == swarmed(FLAWED, endless(), processes)


def test_the_listener_hears_after_every_seed_how_many_are_done():
    told = []
    Swarm(SOUND).run(range(10), listener=told.append)
    assert told == list(range(1, 11))


def test_runs_that_a_bound_cut_off_are_counted():
    swarm = swarmed(known("ricart-agrawala", 3, workload=saturated(50), until=5.0), range(4))
    assert (swarm.done, swarm.unfinished) == (4, 4)


def test_a_swarm_catches_a_protocol_that_sends_too_many_messages():
    scenario = toy(chatters, 3, CLAIMS, workload=Closed(6))
    assert run(scenario).violation.property == "MessagesPerEntry"
    assert swarmed(scenario, range(3)).violations
