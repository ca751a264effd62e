"""The paper's two baselines: DepSky's lock (TD) and SCFS's (TS), in the same harness as the quorum lease."""

from collections import defaultdict

import pytest

from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.leases.nodes import coordination, depsky
from trinco.leases.nodes.behaviours import BEHAVIOURS
from trinco.leases.nodes.coordination import Coordination
from trinco.leases.nodes.depsky import DepSky
from trinco.sim.faults import Crash, Drift, Pause, Restart
from trinco.sim.laws import Constant, Exponential, Lognormal
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation, run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Scripted, saturated

ORDERED = Links(Exponential(0.1))
UNORDERED = Links(Exponential(0.1), ordered=False)


def td(clients, lock=DepSky(validity=60.0), **given):
    given = {"workload": saturated(20, Exponential(0.5)), "links": ORDERED, "trace": False} | given
    return Scenario(protocol="depsky", build=lock, claims=depsky.CLAIMS, n=clients + lock.stores, **given)


def ts(clients, lock=Coordination(), **given):
    given = {"workload": saturated(20, Exponential(4.0)), "links": UNORDERED, "trace": False} | given
    return Scenario(protocol="coordination", build=lock, claims=coordination.CLAIMS, n=clients + 1, **given)


def swarmed(scenario, seeds):
    swarm = Swarm(scenario)
    swarm.run(range(seeds))
    return swarm


def simulated(scenario):
    simulation = Simulation(scenario)
    simulation.run()
    return simulation


def times_of(simulation, kind, node=0):
    return [at for at, who, what in simulation.history if who == node and what is kind]


# DepSky


@pytest.mark.parametrize("links", [ORDERED, UNORDERED], ids=["ordered", "unordered"])
@pytest.mark.parametrize("clients", [2, 4])
def test_depsky_is_safe_while_the_clients_clocks_agree(links, clients):
    swarm = swarmed(td(clients, links=links), 50)
    assert not swarm.violations
    assert swarm.unfinished == 0
    assert swarm.entries == 50 * 20
    assert swarm.messages / swarm.entries > 36, "they were in each other's way"


@pytest.mark.parametrize("liar", sorted(set(BEHAVIOURS) - {"honest"}))
def test_depsky_survives_a_store_that_lies(liar):
    scenario = td(3, DepSky(validity=20.0), byzantine={6: BEHAVIOURS[liar]}, workload=saturated(10, Constant(0.5)))
    swarm = swarmed(scenario, 5)
    assert not swarm.violations
    assert swarm.unfinished == 0


def test_depsky_clients_that_are_near_different_stores_still_see_each_other():
    """Each has two stores close by: a quorum of two would never meet the other's."""
    near = {(0, 2), (0, 3), (1, 4), (1, 5)}
    links = [(client, store) for client in (0, 1) for store in (2, 3, 4, 5)]
    laws = {link: Exponential(0.02 if link in near else 1.0) for link in links}
    laws |= {(store, client): law for (client, store), law in laws.items()}
    swarm = swarmed(td(2, links=Links(ordered=False, per_link=laws), workload=saturated(20, Constant(2.0))), 20)
    assert not swarm.violations
    assert swarm.unfinished == 0


VALIDITY, HOLD = 60.0, 50.0


def skewed(skew, seed, late=1):
    """One holds for 50 of the 60 seconds that its lock is valid; the other asks all the while."""
    return td(
        2,
        DepSky(validity=VALIDITY),
        workload=Scripted(((0, 0.0, HOLD), (1, 30.0, 1.0))),
        faults=(Drift(late, offset=skew),),
        seed=seed,
    )


@pytest.mark.parametrize("skew", [15.0, 100.0])
def test_depsky_lets_two_in_when_a_reader_is_ahead_by_more_than_validity_less_hold(skew):
    assert skew > VALIDITY - HOLD
    for seed in range(20):
        violation = run(skewed(skew, seed)).violation
        assert violation is not None
        assert violation.property == "AtMostInside"


def test_depsky_lets_two_in_when_the_holder_is_behind_by_as_much():
    violation = run(skewed(-15.0, seed=0, late=0)).violation
    assert violation is not None
    assert violation.text == "p0 and p1 are inside together, at most 1 may be"


@pytest.mark.parametrize("skew", [-100.0, 0.0, 9.0])
def test_depsky_bears_a_skew_of_less_than_validity_less_hold(skew):
    for seed in range(20):
        result = run(skewed(skew, seed))
        assert result.violation is None
        assert result.metrics.entries == 2


def test_the_quorum_lease_does_not_care_what_its_clients_clocks_show():
    from trinco.leases.nodes.system import CLAIMS, QuorumLease

    lease = QuorumLease(stores=("object",) * 4, clients=2, ttl=VALIDITY)
    scenario = skewed(100.0, seed=0).with_changes(build=lease, claims=CLAIMS)
    for seed in range(20):
        result = run(scenario.with_changes(seed=seed))
        assert result.violation is None
        assert result.metrics.entries == 2


def alone(laws, entries, lock=DepSky()):
    per_link = {link: law for store, law in enumerate(laws, start=1) for link in ((0, store), (store, 0))}
    links = Links(ordered=False, per_link=per_link)
    return simulated(td(1, lock, links=links, workload=Closed(entries, think=Constant(100.0)), trace=True))


def test_depsky_alone_takes_three_times_the_third_fastest_store():
    simulation = alone([Constant(delay) for delay in (0.1, 0.4, 0.2, 0.3)], 5)
    (asked, *_), (granted, *_) = times_of(simulation, Kind.ACQUIRE), times_of(simulation, Kind.GRANT)
    assert granted - asked == pytest.approx(3 * 2 * 0.3)


def test_depsky_alone_takes_the_sum_of_three_quorum_waits():
    simulation = alone([Lognormal(0.1, 1.0)] * 4, 50)
    sent, answered = {}, defaultdict(list)
    for at, node, kind, _, message, *_ in simulation.recording.records:
        if node == 0 and kind is Kind.SEND:
            sent[message.claim.attempt] = at
        elif node == 0 and kind is Kind.RECEIVE:
            answered[message.claim.attempt].append(at)
    waits = [sorted(answered[phase])[2] - at for phase, at in sorted(sent.items()) if phase % 4]
    expected = [sum(waits[first : first + 3]) for first in range(0, len(waits), 3)]
    asked, granted = times_of(simulation, Kind.ACQUIRE), times_of(simulation, Kind.GRANT)
    assert [later - earlier for earlier, later in zip(asked, granted, strict=True)] == pytest.approx(expected)
    assert len(expected) == 50


def test_depsky_alone_asks_each_store_four_times_an_entry():
    simulation = alone([Constant(0.1)] * 4, 5)
    kinds = {kind.__name__: count for kind, count in simulation.hosts[0].sent.items()}
    assert kinds == {"Access": 5 * 4 * 4}


def test_what_a_crashed_client_leaves_blocks_depsky_until_it_has_run_out():
    scenario = td(
        2,
        DepSky(validity=20.0),
        workload=Scripted(((0, 0.0, 5.0), (1, 2.0, 1.0))),
        links=Links(Constant(0.1)),
        faults=(Crash(0, 1.0),),
    )
    (entered,) = times_of(simulated(scenario), Kind.GRANT, node=1)
    assert 20 < entered < 23


def test_a_depsky_client_that_comes_back_may_ask_again():
    faults = (Crash(0, 1.0), Restart(0, 2.0))
    scenario = td(2, DepSky(validity=5.0), workload=saturated(10, Constant(0.5)), faults=faults)
    for seed in range(10):
        simulation = simulated(scenario.with_changes(seed=seed))
        assert simulation.violation is None
        assert any(at > 2.0 for at in times_of(simulation, Kind.GRANT))


def test_a_depsky_that_cannot_be_is_refused():
    with pytest.raises(UsageError, match="at least 4 stores, not 3"):
        DepSky(stores=3)
    with pytest.raises(UsageError, match="valid for some time"):
        DepSky(validity=0)
    with pytest.raises(UsageError, match="at least one client"):
        DepSky()(4)


# SCFS


def test_scfs_takes_one_access_to_acquire_and_one_to_release():
    simulation = simulated(ts(1, workload=Closed(10, hold=Constant(1.0))))
    kinds = {kind.__name__: count for kind, count in simulation.hosts[0].sent.items()}
    assert kinds == {"Access": 10 * 2}


def test_scfs_alone_takes_one_round_trip_and_one_of_the_group():
    simulation = simulated(ts(1, Coordination(round_trip=0.04), links=Links(Constant(0.1)), workload=Closed(200)))
    asked, granted = times_of(simulation, Kind.ACQUIRE), times_of(simulation, Kind.GRANT)
    agreements = [later - earlier - 0.2 for earlier, later in zip(asked, granted, strict=True)]
    assert all(0.02 <= agreement <= 0.06 + 1e-9 for agreement in agreements)
    assert sum(agreements) / 200 == pytest.approx(0.044, rel=0.05), "the third of four even draws lies at three fifths"


@pytest.mark.parametrize("clients", [2, 5])
def test_scfs_is_safe_and_serves_everybody(clients):
    swarm = swarmed(ts(clients), 100)
    assert not swarm.violations
    assert swarm.unfinished == 0
    assert swarm.entries == 100 * 20


def test_scfs_is_safe_when_clients_stop_crash_and_come_back():
    faults = (
        Crash(0, 3.0),
        Restart(0, 4.0),
        Pause(1, 5.0, 12.0),
        Pause(2, 30.0, 7.0),
        Crash(0, 40.0),
        Restart(0, 41.0),
    )
    swarm = swarmed(ts(3, faults=faults), 100)
    assert not swarm.violations
    assert swarm.unfinished == 0


def test_scfs_renews_what_is_held_for_longer_than_a_term():
    simulation = simulated(ts(2, workload=Scripted(((0, 0.0, 30.0), (1, 1.0, 1.0)))))
    assert simulation.violation is None
    assert len(times_of(simulation, Kind.RENEW)) == 6
    assert not times_of(simulation, Kind.LOST)
    assert times_of(simulation, Kind.GRANT, node=1) > times_of(simulation, Kind.RELEASE)


def test_scfs_says_so_when_its_lock_is_lost():
    """The service stops for a minute: nobody renews, so the holder must know before anybody else can be in."""
    script = Scripted(((0, 0.0, 50.0), (1, 1.0, 1.0)))
    scenario = ts(2, workload=script, faults=(Pause(2, 2.0, 60.0),), trace=True)
    for seed in range(20):
        simulation = simulated(scenario.with_changes(seed=seed))
        assert simulation.violation is None
        (lost,) = times_of(simulation, Kind.LOST)
        (entered,) = times_of(simulation, Kind.GRANT, node=1)
        assert lost <= times_of(simulation, Kind.GRANT)[0] + 5.0
        assert entered > 62.0
        notes = [note for _, _, kind, _, _, _, note, *_ in simulation.recording.records if kind is Kind.LOST]
        assert notes == ["the coordination service did not renew the lock in time"]


def test_a_coordination_service_without_clients_is_refused():
    with pytest.raises(UsageError, match="at least one client"):
        Coordination()(1)
