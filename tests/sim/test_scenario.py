from dataclasses import replace

import pytest

from tests.sim.toys import alone, known, toy
from trinco.core.claims import Network
from trinco.core.errors import BeyondClaims, UsageError
from trinco.core.formula import Formula
from trinco.protocols.coordinator import CLAIMS, Client
from trinco.sim.faults import Chaos, Crash, Drift, Partition, Pause, Restart, Slow
from trinco.sim.laws import Constant
from trinco.sim.links import Links
from trinco.sim.simulation import run
from trinco.sim.workload import Scripted


class Liar(Client):
    __slots__ = ()


BEYOND = [
    ({"faults": (Crash(1, 1.0),)}, "1 crash "),
    ({"faults": (Crash(1, 1.0), Crash(2, 2.0))}, "2 crashes "),
    ({"faults": (Crash(1, 1.0, after_sends=1), Restart(1, 5.0))}, "1 crash "),
    ({"chaos": Chaos(crashes=1)}, "1 crash "),
    ({"byzantine": {1: Liar}}, "1 Byzantine node "),
    ({"byzantine": {1: Liar, 2: Liar}}, "2 Byzantine nodes "),
    ({"links": Links(loss=0.1)}, "may lose, duplicate and reorder"),
    ({"links": Links(duplication=0.1)}, "may lose, duplicate and reorder"),
    ({"faults": (Partition(((0, 1), (2,)), 1.0, 1.0, drops=True),)}, "may lose, duplicate and reorder"),
]


@pytest.mark.parametrize(("changes", "words"), BEYOND, ids=repr)
def test_a_fault_beyond_the_claims_is_refused_with_what_it_is(changes, words):
    with pytest.raises(BeyondClaims, match=f"coordinator does not claim to survive .*{words}"):
        known("coordinator", 3, **changes)


@pytest.mark.parametrize(("changes", "words"), BEYOND, ids=repr)
def test_whoever_goes_beyond_the_claims_knowingly_may(changes, words):
    assert words in known("coordinator", 3, beyond_claims=True, **changes).beyond()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"faults": (Pause(1, 1.0, 5.0),)},
        {"faults": (Slow(1, 1.0, 5.0, 9.0),)},
        {"faults": (Drift(1, rate=2.0),)},
        {"faults": (Partition(((0, 1), (2,)), 1.0, 1.0),)},
        {"chaos": Chaos(pauses=3, partitions=3)},
        {"links": Links(ordered=False, reordering=0.5)},
    ],
    ids=repr,
)
def test_what_only_delays_is_within_the_claims(changes):
    assert known("coordinator", 3, **changes).beyond() is None


def test_a_network_out_of_order_is_beyond_a_protocol_that_needs_order():
    with pytest.raises(BeyondClaims, match="worse than 'reliable, first in first out per channel'"):
        known("ricart-agrawala", 3, links=Links(ordered=False))


def test_a_drifting_clock_does_not_excuse_a_network_beyond_the_claims():
    with pytest.raises(BeyondClaims):
        known("coordinator", 3, links=Links(loss=0.1), faults=(Drift(1, rate=2.0),))


def test_as_many_crashes_and_liars_as_claimed_are_fine_and_not_one_more():
    claims = replace(CLAIMS, crashes=Formula("f"), byzantine=Formula("1"), network=Network.LOSSY)
    modest = known("coordinator", 4, claims=claims, letters={"f": 2}, faults=(Crash(1, 1.0), Crash(2, 1.0)))
    assert modest.with_changes(byzantine={3: Liar}, links=Links(loss=0.5)).beyond() is None
    with pytest.raises(BeyondClaims):
        modest.with_changes(faults=(Crash(1, 1.0), Crash(2, 1.0), Crash(3, 1.0)))
    with pytest.raises(BeyondClaims):
        modest.with_changes(byzantine={2: Liar, 3: Liar})


def test_crashes_of_one_node_count_once():
    claims = replace(CLAIMS, crashes=Formula("1"))
    again = (Crash(1, 1.0), Restart(1, 2.0), Crash(1, 3.0))
    assert known("coordinator", 3, claims=claims, faults=again).beyond() is None


def test_a_trace_beyond_the_claims_says_so():
    beyond = run(known("coordinator", 3, links=Links(loss=0.01), beyond_claims=True, until=100.0))
    assert not beyond.recording.header.within_claims
    assert run(known("coordinator", 3)).recording.header.within_claims


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n": 0}, "n must be at least 1"),
        ({"until": 0.0}, "some time and some events"),
        ({"max_events": 0}, "some time and some events"),
        ({"byzantine": {3: Liar}}, "there is no node 3"),
        ({"faults": (Crash(3, 1.0),)}, "there is no node 3"),
    ],
)
def test_a_scenario_that_makes_no_sense_is_refused(changes, words):
    with pytest.raises(UsageError, match=words):
        toy(alone, **{"n": 3, **changes})


def test_a_changed_scenario_leaves_the_first_as_it_was():
    first = toy(alone, 3)
    assert first.with_changes(seed=5).seed == 5
    assert first.seed == 0


def test_a_change_is_held_to_the_claims_too():
    with pytest.raises(BeyondClaims):
        known("coordinator", 3).with_changes(faults=(Crash(1, 1.0),))


def test_nobody_may_wait_longer_than_the_patience_given():
    script = Scripted(((1, 0.0, 50.0), (2, 1.0, 1.0)))
    scenario = known("coordinator", 3, workload=script, links=Links(Constant(1.0)))
    assert run(scenario.with_changes(patience=60.0)).violation is None
    assert run(scenario.with_changes(patience=20.0)).violation is not None
