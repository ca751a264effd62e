"""What Hi-ADSD costs and how long it takes: the published figures, and the bound of log^2 n intervals."""

import random
from dataclasses import replace
from itertools import combinations

import pytest

from trinco.core.errors import UsageError
from trinco.core.ids import bit
from trinco.lab.diagnosis import (
    CLAIMS,
    FOR_EVER,
    PUBLISHED,
    Case,
    Diagnosers,
    bound,
    experiment,
    latency,
    messages,
    survey,
    worst_case,
)
from trinco.protocols.detection.clusters import dimensions
from trinco.protocols.detection.hi_adsd import Schedule
from trinco.sim.faults import Crash
from trinco.sim.laws import Constant
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run


def test_the_experiment_of_the_paper_takes_exactly_the_published_5100_questions_and_2348_answers() -> None:
    assert experiment() == PUBLISHED == {"are-you-alive": 5_100, "i-am-alive": 2_348}


@pytest.mark.parametrize("n", [2, 4, 8, 16, 32, 64])
def test_an_interval_without_crashes_takes_n_log_n_questions_and_as_many_answers(n: int) -> None:
    assert messages(n, until=0.9) == dict.fromkeys(PUBLISHED, n * dimensions(n))


def test_for_sixteen_processes_that_is_64_and_64() -> None:
    assert messages(16, until=0.9) == {"are-you-alive": 64, "i-am-alive": 64}


@pytest.mark.parametrize("n", [5, 12, 24])
def test_where_the_cube_is_not_full_an_interval_takes_one_question_for_each_cluster_that_is_not_empty(n: int) -> None:
    assert messages(n, until=0.9)["are-you-alive"] < n * dimensions(n)


def test_one_cluster_in_an_interval_takes_n_questions() -> None:
    assert messages(16, until=0.9, schedule=Schedule.ONE) == dict.fromkeys(PUBLISHED, 16)


def test_in_the_experiment_the_first_crash_is_known_to_its_tester_at_5_04_and_to_p0_at_6_08() -> None:
    """The spec's reading of the run, for the crash of p15 at 5.0."""
    scenario = Scenario(
        protocol="hi-adsd", build=Diagnosers(), claims=CLAIMS, n=16, workload=FOR_EVER, until=7.0,
        links=Links(Constant(0.01)), faults=(Crash(15, 5.001),),
    )  # fmt: skip
    recording = run(scenario).recording
    assert recording is not None
    known: dict[int, float] = {}
    for event in recording.events_without_clocks():
        if bit(15) in event.state.get("detector", ()):
            known.setdefault(event.node, event.at)
    assert min(known.values()) == pytest.approx(5.04)
    assert known[0] == pytest.approx(6.08)
    assert len(known) == 15


@pytest.mark.parametrize("n", [2, 4, 8])
def test_when_all_test_the_same_cluster_in_each_interval_it_takes_exactly_log_n_intervals_for_any_faults(
    n: int,
) -> None:
    fault_sets = [faulty for count in range(1, n) for faulty in combinations(range(n), count)]
    assert {latency(Case(n, faulty)) for faulty in fault_sets} == {dimensions(n)}


@pytest.mark.parametrize("n", [16, 32])
def test_and_so_it_does_for_more_processes(n: int) -> None:
    chance = random.Random(n)
    cases = [Case(n, tuple(chance.sample(range(n), chance.randrange(1, n)))) for _ in range(40)]
    assert {latency(case) for case in cases} == {dimensions(n)}


@pytest.mark.parametrize("n", [8, 16, 32])
def test_whatever_the_faults_and_phases_it_never_takes_more_than_log_squared_n_intervals(n: int) -> None:
    found = survey(n, cases=50)
    assert sum(found.by_latency.values()) == found.cases == 50
    assert dimensions(n) < found.worst <= found.bound == dimensions(n) ** 2


@pytest.mark.parametrize("n", [5, 6, 12, 24])
def test_nor_where_the_cube_is_not_full(n: int) -> None:
    assert survey(n, cases=30).worst <= bound(n)


@pytest.mark.parametrize(("n", "intervals"), [(2, 1), (4, 4), (8, 9), (16, 16), (32, 25), (64, 36)])
def test_one_crash_and_the_worst_phases_take_exactly_log_squared_n_intervals(n: int, intervals: int) -> None:
    assert latency(worst_case(n)) == bound(n) == intervals


def test_the_worst_phases_are_a_matter_of_log_n_processes() -> None:
    assert worst_case(8) == Case(8, (0,), (1, 2, 1, 3, 1, 1, 1, 1))
    changed = replace(worst_case(8), phases=(3, 2, 3, 3, 2, 3, 2, 1))
    assert latency(changed) == 9


@pytest.mark.parametrize(
    ("case", "intervals"),
    [
        (Case(8, (5, 7), (1, 2, 3, 2, 3, 3, 2, 3)), 9),
        (Case(16, (6, 12, 15), (3, 4, 4, 2, 3, 3, 3, 2, 1, 1, 4, 2, 4, 2, 4, 3)), 16),
    ],
)
def test_schedules_that_a_search_found_reach_the_bound_with_several_faults(case: Case, intervals: int) -> None:
    assert latency(case) == intervals


@pytest.mark.parametrize("n", [4, 8])
def test_with_all_clusters_in_each_interval_the_news_comes_in_the_first_or_the_second(n: int) -> None:
    fault_sets = [faulty for count in range(1, n) for faulty in combinations(range(n), count)]
    assert {latency(Case(n, faulty), Schedule.ALL) for faulty in fault_sets} == {1, 2}


def test_and_among_more_processes_it_may_take_a_third() -> None:
    assert latency(Case(16, (0, 5)), Schedule.ALL) == 3


def test_the_same_seed_gives_the_same_survey_and_another_seed_another() -> None:
    assert survey(8, cases=20) == survey(8, cases=20)
    assert survey(8, cases=20) != survey(8, cases=20, seed=1)


def test_somebody_must_be_left_alive() -> None:
    with pytest.raises(UsageError):
        latency(Case(4, (0, 1, 2, 3)))
