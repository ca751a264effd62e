"""Elections by lease: whoever holds it leads, the token is the term."""

from trinco.core.event import Kind
from trinco.leases.nodes.behaviours import BEHAVIOURS
from trinco.leases.nodes.election import Election
from trinco.leases.nodes.system import CLAIMS, QuorumLease
from trinco.sim.faults import Crash, Partition
from trinco.sim.laws import Exponential
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Scripted


def simulated(asks, **options):
    system = Election(QuorumLease(clients=3, ttl=3.0))
    usual = {"links": Links(Exponential(0.02), ordered=False), "byzantine": {system.n - 1: BEHAVIOURS["silent"]}}
    scenario = Scenario(
        protocol="election", build=system, claims=CLAIMS, n=system.n, workload=Scripted(asks), **usual | options
    )
    result = run(scenario)
    assert result.violation is None
    return [event for event in result.recording.events_without_clocks() if event.node < 3]


def test_a_leader_leads_for_as_long_as_it_renews():
    events = simulated(((0, 0.0, 60.0),))
    assert [event.kind for event in events if event.kind in (Kind.EXPIRE, Kind.LOST)] == []
    assert sum(event.kind is Kind.RENEW for event in events) > 40


def test_when_it_crashes_another_is_elected_soon_with_a_higher_term():
    events = simulated(((0, 0.0, 100.0), (1, 1.0, 5.0), (2, 1.0, 5.0)), faults=(Crash(0, 10.0),))
    elected = [(event.at, event.peer) for event in events if event.kind is Kind.ELECTED]
    terms = [event.token for event in events if event.kind is Kind.GRANT]
    assert elected[0][1] == 0
    assert 10.0 < elected[1][0] < 10.0 + 3.0 + 1.5
    assert terms == sorted(set(terms))


def test_a_leader_that_is_cut_off_is_the_first_to_know():
    cut = Partition(((0,), (1, 2, 3, 4, 5, 6)), 10.0, 30.0)
    events = simulated(((0, 0.0, 60.0), (1, 1.0, 5.0)), faults=(cut,))
    ended = next(event.at for event in events if event.node == 0 and event.kind in (Kind.EXPIRE, Kind.LOST))
    follows = next(event.at for event in events if event.node == 1 and event.kind is Kind.GRANT)
    assert 10.0 < ended <= follows
