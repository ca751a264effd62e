"""Semaphores: k leases, one a slot."""

import pytest

from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.leases.nodes.behaviours import BEHAVIOURS
from trinco.leases.nodes.semaphore import CLAIMS, Semaphore, SlotToken
from trinco.leases.nodes.system import QuorumLease
from trinco.leases.terms import Policy
from trinco.sim.faults import Crash, Restart
from trinco.sim.laws import Constant, Exponential
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.workload import Scripted, saturated


def simulated(k=2, liar=None, **options):
    lease = QuorumLease(clients=options.pop("clients", 5), ttl=5.0, policy=options.pop("policy", Policy.PRIORITY))
    liars = ((lease.n - 1, BEHAVIOURS[liar]),) if liar else ()
    usual = {"workload": saturated(40, Constant(0.5)), "links": Links(Exponential(0.05), ordered=False), "trace": False}
    system = Semaphore(lease, k, liars)
    return run(Scenario(protocol="semaphore", build=system, claims=CLAIMS, n=system.n, **usual | options))


@pytest.mark.parametrize("liar", [None, *BEHAVIOURS])
def test_never_more_than_k_are_inside_and_everybody_is_served_whatever_one_store_does(liar):
    for seed in range(2):
        result = simulated(liar=liar, seed=seed)
        assert (result.violation, result.finished, result.metrics.entries) == (None, True, 40)


def test_k_are_inside_together():
    result = simulated(k=3, clients=3, workload=Scripted(tuple((node, 0.0, 4.0) for node in range(3))), trace=True)
    inside = most = 0
    for event in result.recording.events_without_clocks():
        inside += (event.kind is Kind.GRANT) - (event.kind is Kind.RELEASE)
        most = max(most, inside)
    assert most == 3


def test_a_holder_knows_its_slot_and_no_two_have_the_same():
    result = simulated(k=2, trace=True)
    taken = {}
    for event in result.recording.events_without_clocks():
        if event.kind is Kind.GRANT:
            assert isinstance(event.token, SlotToken)
            assert event.token.slot not in taken.values()
            taken[event.node] = event.token.slot
        elif event.kind is Kind.RELEASE:
            del taken[event.node]


def test_tokens_rise_slot_by_slot_past_crashes_and_a_store_that_shows_old_ones():
    faults = tuple(fault for at in range(3, 30, 6) for fault in (Crash(at % 5, float(at)), Restart(at % 5, at + 1.0)))
    result = simulated(liar="replay-token", faults=faults, workload=saturated(80, Constant(0.2)))
    assert result.violation is None


def test_who_tries_once_is_refused_when_all_slots_are_taken():
    asks = Scripted(((0, 0.0, 3.0), (1, 0.7, 3.0), (2, 1.5, 1.0)))
    result = simulated(k=2, clients=3, policy=Policy.ONCE, workload=asks, trace=True)
    refused = [event.node for event in result.recording.events_without_clocks() if event.kind is Kind.REFUSE]
    assert 2 in refused


def test_a_semaphore_has_at_least_one_unit():
    with pytest.raises(UsageError, match="at least one unit"):
        Semaphore(k=0)
