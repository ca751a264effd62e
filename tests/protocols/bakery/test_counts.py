"""Section 5.1 of the paper in numbers: accesses, messages, order, and what becomes of silent and slow clients."""

import dataclasses
from typing import ClassVar

import pytest

from trinco.lab.bakery_campaign import ACCURATE, KINDS
from trinco.lab.exhibits.bakery_automaton import ExitsOnlyFromC, OnlyGetsAtRest
from trinco.protocols.bakery.lying_servers import AnyOf, GrantAll, Mute
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.system import CLAIMS, Bakery
from trinco.sim.faults import Crash, Drift, Restart
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation, run
from trinco.sim.workload import Closed, Scripted, saturated

HASTY = KINDS["hasty"]
WIDE = Links(Uniform(1.0, 110.0))
QUICK = Links(Uniform(0.001, 0.02))


def scenario(build, clients, **options):
    options = {"links": WIDE, "until": 1e6, "max_events": 400_000, **options}
    return Scenario(protocol="bakery", build=build, claims=CLAIMS, n=build.size + clients, **options)


def banned(simulation):
    servers = (host.node for host in simulation.hosts if isinstance(host.node, Server) and host.honest)
    return [server.banned for server in servers if server.banned]


@pytest.mark.parametrize(("f", "messages"), [(1, 24), (2, 42), (3, 60)])
def test_alone_an_entry_takes_2_accesses_an_exit_1_and_servers_do_not_talk(f, messages) -> None:
    """ "Apenas 2 acessos em casos sem concorrência": four message times."""
    script = Scripted(tuple((0, 10.0 * turn, 1.0) for turn in range(1, 4)))
    result = run(scenario(Bakery(f=f), 1, workload=script, links=Links(Constant(0.01))))
    assert result.violation is None
    assert result.metrics.costs[:2] == [messages, messages]
    kinds = result.metrics.messages_by_kind
    assert set(kinds) == {"get", "get-reply", "set", "set-reply", "exit", "exit-reply"}
    assert kinds["get"] == kinds["set"] == 3 * (3 * f + 1)
    assert result.metrics.waiting.max == pytest.approx(4 * 0.01)


@pytest.mark.parametrize("clients", [2, 4, 8, 16])
@pytest.mark.parametrize("think", [0.0, 0.05], ids=["saturated", "light"])
def test_contended_it_takes_at_most_3_accesses_and_45_messages(clients, think) -> None:
    """ "3 acessos no caso geral": each is one message to every server."""
    workload = Closed(20 * clients, think=Exponential(think * clients), hold=Constant(0.02))
    result = run(scenario(Bakery(), clients, workload=workload, links=QUICK))
    assert result.violation is None
    kinds = result.metrics.messages_by_kind
    assert result.metrics.messages_per_entry <= 45
    entries = result.metrics.entries
    assert kinds["get"] == kinds["set"] == 4 * entries
    assert kinds["listen"] <= 4 * entries
    assert "suspect" not in kinds
    if think == 0.0:
        assert result.metrics.bypass <= clients - 1


def test_tokens_rise_across_idle_periods() -> None:
    script = Scripted(tuple((client, 100.0 * turn + client, 0.5) for turn in range(1, 8) for client in (2, 0, 1)))
    result = run(scenario(Bakery(), 3, workload=script, links=Links(Constant(0.01))))
    tokens = [event.token for event in result.recording.events_without_clocks() if event.token is not None]
    assert tokens == [(turn, (turn - 1) % 3) for turn in range(1, 22)]


@pytest.mark.parametrize("liar", [None, Mute, GrantAll, AnyOf], ids=["no-liar", "silent", "grants", "any"])
@pytest.mark.parametrize("build", [ACCURATE, HASTY], ids=["accurate", "hasty"])
def test_whatever_the_timers_all_are_served_and_nobody_correct_is_banned(build, liar) -> None:
    """Messages take up to 110; a hasty server gives a client 25 from GET to SET."""
    for seed in range(25):
        workload = Closed(12, think=Exponential(50.0 * (seed % 2)), hold=Constant(20.0))
        liars = {build.size + 3: liar} if liar else {}
        simulation = Simulation(scenario(build, 4, workload=workload, seed=seed, byzantine=liars, trace=False))
        simulation.run()
        result = simulation.result()
        assert (result.violation, result.finished, result.metrics.entries) == (None, True, 12), seed
        assert not banned(simulation)


def test_a_crashed_holder_is_out_of_the_way_within_its_lease_and_a_little() -> None:
    """D + t_choose + 6 delays, with one server silent."""
    build = Bakery()
    script = Scripted(((0, 1.0, 50.0), (1, 2.0, 0.5), (2, 2.5, 0.5)))
    result = run(
        scenario(build, 3, workload=script, links=Links(Constant(0.05)), faults=(Crash(0, 3.0),), byzantine={6: Mute})
    )
    assert result.violation is None
    assert result.metrics.entries == 3
    assert result.metrics.waiting.max <= 10.0 + 2.0 + 6 * 0.05


@pytest.mark.parametrize("sends", [1, 2, 3])
def test_a_get_to_some_servers_only_costs_no_more_than_twice_the_time_to_choose(sends) -> None:
    script = Scripted(((0, 1.0, 0.5), (1, 1.2, 0.5)))
    fault = Crash(0, 0.5, after_sends=sends)
    result = run(
        scenario(Bakery(), 2, workload=script, links=Links(Constant(0.05)), faults=(fault,), byzantine={5: Mute})
    )
    assert result.violation is None
    assert result.metrics.entries == 1
    assert result.metrics.waiting.max <= 2 * 2.0 + 6 * 0.05


def test_a_crash_in_the_middle_of_anything_leaves_the_others_served() -> None:
    for seed in range(25):
        faults = (Crash(0, 150.0 + 10 * seed), Crash(1, 300.0 + 5 * seed, after_sends=1 + seed % 3))
        workload = Closed(12, think=Exponential(50.0), hold=Constant(20.0))
        build = (ACCURATE, HASTY)[seed % 2]
        simulation = Simulation(
            scenario(build, 4, workload=workload, seed=seed, faults=faults, byzantine={7: Mute}, trace=False)
        )
        simulation.run()
        result = simulation.result()
        assert (result.violation, result.finished) == (None, True), seed
        assert not banned(simulation)


def test_who_comes_back_from_a_crash_is_not_taken_for_a_liar() -> None:
    for seed in range(20):
        faults = (Crash(0, 200.0 + 20 * seed, after_sends=seed % 4 or None), Restart(0, 1500.0 + 20 * seed))
        workload = Closed(16, think=Exponential(50.0), hold=Constant(20.0))
        simulation = Simulation(scenario(ACCURATE, 4, workload=workload, seed=seed, faults=faults, trace=False))
        simulation.run()
        result = simulation.result()
        assert (result.violation, result.finished) == (None, True), seed
        assert not banned(simulation)


def test_a_holder_that_outlives_its_lease_is_revoked_and_nobody_is_inside_with_it() -> None:
    build = Bakery(hold=400.0, extension=900.0, silence=60.0, choosing=25.0, cap=6000.0)
    for seed in range(10):
        workload = Closed(10, think=Exponential(50.0), hold=Uniform(10.0, 2500.0))
        result = run(scenario(build, 4, workload=workload, seed=seed, byzantine={7: Mute}, trace=False))
        assert (result.violation, result.finished) == (None, True), seed


def test_saturated_at_f_2_everybody_is_served_too() -> None:
    result = run(scenario(Bakery(f=2), 3, workload=saturated(15, Constant(0.01)), links=QUICK))
    assert result.violation is None
    assert result.metrics.entries == 15


class AsPrinted(Bakery):
    """Servers that take the paper at its word."""

    kind: ClassVar = Server

    def __call__(self, n):
        return [self.kind.in_place_of(node) if isinstance(node, Server) else node for node in Bakery.__call__(self, n)]


class WithoutLateSets(AsPrinted):
    kind: ClassVar = OnlyGetsAtRest


class WithoutEarlyExits(AsPrinted):
    kind: ClassVar = ExitsOnlyFromC


@pytest.mark.parametrize("printed", [WithoutLateSets, WithoutEarlyExits])
def test_the_automaton_as_printed_bans_correct_clients(printed) -> None:
    """F5 and F8: "ao contrário do detector de mudez, o DCM é confiável e portanto não comete erros"."""
    build = printed(**dataclasses.asdict(HASTY))
    bans = 0
    for seed in range(20):
        workload = Closed(12, think=Exponential(50.0), hold=Constant(20.0))
        simulation = Simulation(scenario(build, 4, workload=workload, seed=seed, trace=False, until=20_000.0))
        simulation.run()
        bans += bool(banned(simulation))
    assert bans >= 5


class SmallQuorums(Bakery):
    """F1, as printed: 2f+1 of any number of servers."""

    def judge(self, n):
        return dataclasses.replace(Bakery.judge(self, n), quorum=2 * self.f + 1)


@pytest.mark.parametrize(("kind", "holds"), [(Bakery, True), (SmallQuorums, False)])
def test_of_five_servers_three_are_no_quorum_when_one_grants_everything(kind, holds) -> None:
    build = kind(**{**dataclasses.asdict(ACCURATE), "servers": 5})
    workload = Closed(12, think=Exponential(50.0), hold=Constant(20.0))
    runs = [
        run(scenario(build, 4, workload=workload, seed=seed, byzantine={8: GrantAll}, trace=False))
        for seed in range(10, 20)
    ]
    assert all(result.violation is None for result in runs) is holds


@pytest.mark.parametrize(("margin", "holds"), [(2e-3, True), (0.0, False)])
def test_clocks_that_drift_need_the_margin_they_are_given(margin, holds) -> None:
    """The clients' clocks are slow and the servers' are fast, by 1,000 ppm each; holders stay until the lease ends."""
    build = Bakery(hold=400.0, extension=900.0, silence=60.0, choosing=25.0, cap=6000.0, drift=margin)
    clocks = tuple(Drift(node, rate=0.999 if node < 4 else 1.001) for node in range(8))
    workload = Closed(12, think=Exponential(50.0), hold=Uniform(10.0, 2500.0))
    links = Links(Uniform(0.05, 0.1))
    runs = [
        run(scenario(build, 4, workload=workload, seed=seed, links=links, faults=clocks, byzantine={7: GrantAll}))
        for seed in range(17, 23)
    ]
    assert all(result.violation is None for result in runs) is holds
