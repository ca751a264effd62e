from dataclasses import replace

import pytest

from tests.mutants.coordinator import ignores_one
from tests.mutants.ricart_agrawala import always_defers, chatters, never_defers
from tests.sim.toys import known, toy
from trinco.core.formula import Formula
from trinco.protocols.coordinator import CLAIMS as COORDINATOR
from trinco.protocols.permission.ricart_agrawala import CLAIMS as RICART_AGRAWALA
from trinco.sim.faults import Chaos, Crash, Pause
from trinco.sim.shrink import shrink
from trinco.sim.simulation import run
from trinco.sim.workload import Closed, OneShot, Open, Scripted, saturated


def size(scenario):
    workload = scenario.workload
    requests = len(workload.asks) if isinstance(workload, Scripted) else getattr(workload, "entries", 0)
    return scenario.n, requests, len(scenario.faults)


FLAWED = [
    toy(never_defers, 6, RICART_AGRAWALA, workload=Closed(40)),
    toy(never_defers, 6, RICART_AGRAWALA, workload=Open(40, rate=1.0)),
    toy(never_defers, 6, RICART_AGRAWALA, workload=Scripted(tuple((node, 0.1 * node, 2.0) for node in range(6)))),
    toy(always_defers, 5, RICART_AGRAWALA, workload=saturated(20)),
    toy(ignores_one, 5, COORDINATOR, workload=saturated(20)),
    toy(never_defers, 5, RICART_AGRAWALA, workload=Closed(20), faults=(Pause(4, 3.0, 2.0), Pause(0, 9.0, 1.0))),
]


def described(scenario):
    return f"{scenario.build.__name__}-{type(scenario.workload).__name__}-{len(scenario.faults)}"


@pytest.mark.parametrize("scenario", FLAWED, ids=described)
def test_a_shrunk_scenario_is_smaller_and_breaks_the_same_property(scenario):
    broken = run(scenario).violation.property
    small = shrink(scenario, broken)
    assert run(small).violation.property == broken
    assert all(after <= before for after, before in zip(size(small), size(scenario), strict=True))
    assert size(small) != size(scenario)


def test_a_flaw_of_two_is_shrunk_to_two_nodes_and_two_requests_without_faults():
    small = shrink(FLAWED[-1], "AtMostInside")
    assert size(small) == (2, 2, 0)


def test_shrinking_keeps_the_fault_that_the_flaw_needs():
    """Nothing is wrong with the protocol; only a crash leaves the others waiting."""
    scenario = known(
        "ricart-agrawala", 4, workload=Closed(20), beyond_claims=True, faults=(Pause(2, 1.0, 1.0), Crash(0, 8.0))
    )
    broken = run(scenario).violation.property
    small = shrink(scenario, broken)
    assert [type(fault) for fault in small.faults] == [Crash]
    assert run(small.with_changes(faults=())).violation is None


def test_what_chaos_drew_becomes_a_schedule_with_the_same_run():
    scenario = known(
        "ricart-agrawala", 3, workload=Closed(20), beyond_claims=True, chaos=Chaos(crashes=1, pauses=2, within=10.0)
    )
    broken = run(scenario).violation
    spelt_out = shrink(scenario, broken.property, max_runs=0)
    assert spelt_out.chaos is None
    assert len(spelt_out.faults) == 3
    assert run(spelt_out).trace_hash == run(scenario).trace_hash


def test_a_property_that_is_not_broken_leaves_the_scenario_as_it_is():
    sound = known("coordinator", 3, workload=Closed(4))
    assert shrink(sound, "AtMostInside", max_runs=100) == sound


def test_shrinking_stops_after_so_many_runs():
    told = []
    shrink(FLAWED[0], "AtMostInside", max_runs=7, listener=told.append)
    assert told == list(range(1, 8))


def test_shrinking_never_goes_beyond_the_claims_by_itself():
    claims = replace(RICART_AGRAWALA, crashes=Formula("n-3"))
    scenario = toy(never_defers, 5, claims, workload=OneShot(), faults=(Crash(4, 50.0), Crash(3, 60.0)))
    small = shrink(scenario, "AtMostInside")
    assert small.beyond() is None
    assert small.n < 5


def test_a_protocol_that_sends_too_many_messages_is_shrunk_as_any_other():
    scenario = toy(chatters, 5, RICART_AGRAWALA, workload=Closed(10))
    broken = run(scenario).violation.property
    small = shrink(scenario, broken, max_runs=300)
    assert size(small) < size(scenario)
    assert run(small).violation.property == broken
