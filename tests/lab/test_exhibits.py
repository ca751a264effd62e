"""Every exhibit is caught, breaks what it says it breaks, and its honest sibling does not."""

from dataclasses import replace

import pytest

from trinco.check.replay import replay
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.errors import UsageError
from trinco.lab.exhibits.catalogue import EXHIBITS, find
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols import coordinator

SHORTEST = {
    "slides/S-1": 7,
    "slides/S-2": 10,
    "slides/S-3": 15,
    "slides/S-4": 12,
    "slides/S-5": 4,
    "ricart-agrawala/no-tie-break": 6,
    "token-ring/two-tokens": 4,
    "quorum-lease/untagged-commit": 16,
    "quorum-lease/handed-over-late": 18,
    "quorum-lease/handed-over-for-another-request": 19,
    "chandy-misra/cyclic-start": 12,
    "lamport/overtaken-request": 6,
    "carvalho-roucairol/does-not-ask-back": 13,
    "maekawa/no-inquire": 5,
    "maekawa/displaced": 9,
    "slides/S-7": 2,
    "slides/S-8": 2,
    "bully/false-suspicion": 7,
    "bully/hasty-return": 8,
    "slides/S-6": 2,
    "slides/S-9": 8,
    "coordinator-failover/grant-of-the-dead": 10,
    "slides/S-10": 5,
    "slides/S-10a": 8,
    "slides/S-10b": 10,
    "slides/S-10c": 9,
    "slides/S-10d": 10,
    "forks/F1": 10,
    "forks/F2": 15,
    "forks/F3": 4,
    "forks/F4": 10,
    "forks/F5": 9,
    "forks/F6": 13,
    "forks/F7": 42,
    "robust-k/F1": 4,
    "robust-k/F2": 8,
    "robust-k/F3": 26,
    "robust-k/F4": 13,
    "robust-k/F5": 9,
    "robust-k/F6": 6,
    "robust-k/F7": 6,
    "robust-k/F8": 2,
    "robust-k/F9": 6,
    "robust-k/F16": 5,
    "robust-k/eventually-perfect": 4,
    "bakery/F1": 14,
    "bakery/F2": 51,
    "bakery/F4": 8,
    "bakery/F5": 5,
    "bakery/F6": 12,
    "bakery/F7": 25,
    "bakery/F8": 13,
    "bakery/F9": 12,
    "bakery/F10": 18,
    "bakery/F11": 8,
    "bakery/F12": 12,
    "bakery/F13": 10,
    "bakery/F16": 24,
    "bakery/F17": 6,
    "bakery/F18": 12,
    "bakery/F25": 21,
    "bakery/F26": 11,
    "bakery/F27": 10,
}
"""The lease's stand in ``test_lease_exhibits``."""
LATE_FOR_EVER = {"quorum-lease/handed-over-late", "quorum-lease/handed-over-for-another-request"}
"""Here time passes while messages are under way: whoever waits can be unlucky without end."""

CLASSIC = [exhibit for exhibit in EXHIBITS if not exhibit.name.startswith("lease/")]


@pytest.mark.parametrize("exhibit", CLASSIC, ids=lambda exhibit: exhibit.name)
@pytest.mark.parametrize("reductions", [True, False], ids=["reduced", "plain"])
def test_an_exhibit_is_caught_with_its_shortest_counterexample(exhibit: Exhibit, reductions: bool) -> None:
    model = replace(exhibit.model(), reductions=reductions)
    result = check(model)
    assert result.violation is not None
    assert result.violation.kind == exhibit.breaks
    assert result.counterexample is not None
    assert len(result.counterexample.script) == SHORTEST[exhibit.name]
    found = result.counterexample
    assert replay(model, found.script, repeats_from=found.cycle_from) == result.violation


@pytest.mark.parametrize("exhibit", CLASSIC, ids=lambda exhibit: exhibit.name)
def test_the_same_instance_without_the_flaw_holds(exhibit: Exhibit) -> None:
    assert check(exhibit.mended(), liveness=exhibit.name not in LATE_FOR_EVER).verdict is Verdict.HOLDS


def test_every_exhibit_has_a_known_shortest_counterexample() -> None:
    assert {exhibit.name for exhibit in CLASSIC} == set(SHORTEST)


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_the_flaw_is_all_that_tells_an_exhibit_from_its_mended_sibling(exhibit: Exhibit) -> None:
    broken, mended = exhibit.model(), exhibit.mended()
    shared = ("k", "network", "inputs", "crashes", "timers", "fires", "monitors", "never", "sometimes")
    assert [getattr(broken, name) for name in shared] == [getattr(mended, name) for name in shared]
    assert len(broken.nodes) == len(mended.nodes)


def test_names_are_found_whatever_their_case_and_unknown_ones_get_a_suggestion() -> None:
    assert find("slides/s-5").name == "slides/S-5"
    with pytest.raises(UsageError, match="did you mean 'token-ring/two-tokens'"):
        find("token-ring/three-tokens")


def test_the_dropped_request_hangs_simulated_runs_too() -> None:
    """The spec saw 335 of 1,500 runs of a prototype hang; ours must hang often on a network that reorders."""
    from trinco.lab.exhibits.slides import DropsTheOvertaker
    from trinco.sim.laws import Constant, Uniform
    from trinco.sim.links import Links
    from trinco.sim.scenario import Scenario
    from trinco.sim.swarm import Swarm
    from trinco.sim.workload import Closed

    def build(n: int) -> list[coordinator.Node]:
        return [DropsTheOvertaker(), *coordinator.system(n)[1:]]

    links = Links(Uniform(0.1, 5.0), ordered=False)
    workload = Closed(20, think=Constant(0.5))
    scenario = Scenario(
        protocol="slides/S-1", build=build, claims=coordinator.CLAIMS, n=4, links=links, workload=workload
    )
    broken, mended = Swarm(scenario, collect=True), Swarm(scenario.with_changes(build=coordinator.system))
    broken.run(range(100))
    mended.run(range(100))
    assert len(broken.violations) > 10
    assert all(brief.violation and brief.violation.property == "EveryoneServed" for brief in broken.violations)
    assert not mended.violations
