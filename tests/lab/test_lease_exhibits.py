"""Every erratum of the lease is caught at its smallest instance, and the same instance of the corrected lease holds.

Safety is looked for without, progress with the search for fair cycles.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from trinco.check.replay import replay
from trinco.check.run import Result, check
from trinco.check.search import Verdict
from trinco.lab.exhibits import lease_commits, lease_release, lease_time
from trinco.lab.exhibits.catalogue import LEASE, find
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.leases.nodes.behaviours import GrantAll
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.system import CLAIMS, QuorumLease
from trinco.sim.laws import Exponential
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed

SHORTEST = {
    "lease/E0": 10,
    "lease/E1": 9,
    "lease/E2": 8,
    "lease/E3": 17,
    "lease/E4": 10,
    "lease/E5": 11,
    "lease/E6": 13,
    "lease/E7": 8,
    "lease/E8": 10,
    "lease/E9": 10,
    "lease/E10": 22,
    "lease/E11": 26,
    "lease/E12": 20,
    "lease/E13": 11,
    "lease/E15": 12,
    "lease/E16": 12,
    "lease/E17": 6,
    "lease/E20": 5,
    "lease/E21": 3,
    "lease/E23": 13,
    "lease/E24": 18,
    "lease/E26": 19,
    "lease/E27": 9,
    "lease/two-liars": 10,
}
"""Steps to what must not happen. E22 goes on for ever: its steps are those of a cycle, and no shortest one."""

FOR_EVER = ("livelock", "starvation")

each = pytest.mark.parametrize("exhibit", LEASE, ids=lambda exhibit: exhibit.name)


@cache
def caught(exhibit: Exhibit) -> Result:
    return check(exhibit.model())


def test_every_erratum_that_breaks_something_is_an_exhibit() -> None:
    """The spec's list, but for those that are about the text only (E14, E18, E19, E25)."""
    safety = (0, 1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16, 17, 23, 24, 26, 27)
    liveness = (3, 6, 15, 20, 21, 22)
    names = {f"lease/E{number}" for number in (*safety, *liveness)}
    assert {exhibit.name for exhibit in LEASE} == names | {"lease/two-liars"}


@each
def test_an_erratum_breaks_what_it_is_said_to_break(exhibit: Exhibit) -> None:
    violation = caught(exhibit).violation
    assert violation is not None
    assert violation.kind == exhibit.breaks


@each
def test_its_counterexample_is_the_shortest_and_replays(exhibit: Exhibit) -> None:
    found = caught(exhibit).counterexample
    assert found is not None
    assert replay(exhibit.model(), found.script, found.cycle_from) == caught(exhibit).violation
    if exhibit.breaks in FOR_EVER:
        assert found.cycle_from is not None
    else:
        assert len(found.script) == SHORTEST[exhibit.name]


@each
def test_a_plain_search_catches_it_as_well(exhibit: Exhibit) -> None:
    violation = check(replace(exhibit.model(), reductions=False), max_states=300_000).violation
    assert violation is not None
    assert violation.kind == exhibit.breaks


@each
def test_the_corrected_lease_holds_on_the_same_instance(exhibit: Exhibit) -> None:
    stuck = exhibit.breaks in (*FOR_EVER, "deadlock")
    result = check(exhibit.mended(), liveness=stuck)
    assert result.verdict is Verdict.HOLDS, result.violation
    assert result.liveness == stuck


def test_a_commit_that_counts_for_another_token_is_caught_by_the_order_of_tokens() -> None:
    (exhibit,) = lease_commits.EXHIBITS
    found = caught(exhibit)
    assert found.violation is not None
    assert found.violation.text == "p1 entered with token 2 after 2 had been given out"
    assert check(exhibit.mended(), liveness=False).progress.states == 43_115


def test_a_margin_against_drift_must_be_twice_the_drift() -> None:
    assert check(lease_time._drifting(window=1, margin=1)).verdict is Verdict.VIOLATED
    assert check(lease_time._drifting(window=1, margin=2)).verdict is Verdict.HOLDS


def test_chains_keep_an_older_attempt_from_replacing_a_newer_one_even_where_the_base_does_not() -> None:
    """Two defences against E4: the order of attempts at the base, and one access at a time from the client."""
    unguarded = lease_release._overtaken(lease_release.AnyAttempt())
    chained = [replaced_by(Client, node) for node in unguarded.nodes]
    assert check(replace(unguarded, nodes=chained)).verdict is Verdict.HOLDS


def replaced_by(kind: type[Client], node: object) -> object:
    if not isinstance(node, Client):
        return node
    return kind(node.owner, node.terms, node.algorithms, node.stores, quiet=False)


def seeds_that_overlap(stores: int, f: int, liars: int, seeds: int) -> Iterator[int]:
    """The seeds in which two clients are inside together, while some stores grant everything to everybody."""
    system = QuorumLease(stores=("one-access",) * stores, clients=3, f=f, ttl=5.0, poll=0.1, fenced=False)
    scenario = Scenario(
        protocol="lease/two-liars",
        build=system,
        claims=replace(CLAIMS, fencing=False, deadlock_free=False),
        n=system.n,
        workload=Closed(12, Exponential(0.1), Exponential(0.5)),
        links=Links(Exponential(0.05), ordered=False),
        byzantine=dict.fromkeys(system.store_ids[stores - liars :], GrantAll),
        until=500.0,
        trace=False,
        beyond_claims=True,
    )
    swarm = Swarm(scenario, collect=True)
    swarm.run(range(seeds))
    assert swarm.entries > 5 * seeds
    return (brief.seed for brief in swarm.violations if brief.violation and brief.violation.property == "AtMostInside")


def test_four_stores_do_not_bear_two_liars_and_seven_do() -> None:
    assert len(list(seeds_that_overlap(4, 1, liars=2, seeds=60))) > 20
    assert not list(seeds_that_overlap(7, 2, liars=2, seeds=60))


def test_no_seven_stores_bear_three_liars() -> None:
    assert len(list(seeds_that_overlap(7, 2, liars=3, seeds=60))) >= 3


def test_the_exhibits_are_in_the_order_of_their_numbers() -> None:
    assert [exhibit.name for exhibit in LEASE][:3] == ["lease/E0", "lease/E1", "lease/E2"]
    assert find("lease/e22").breaks == "livelock"
