"""Raymond's algorithm, which has no detector, beside the robust one: each crash takes a unit from it."""

import random
from collections import Counter

import pytest

from tests.protocols.test_robust_k import entries, told
from trinco.core.event import Kind
from trinco.protocols.permission import raymond_k
from trinco.protocols.permission.raymond_k import RaymondKSystem
from trinco.protocols.permission.robust_k_system import RobustKSystem
from trinco.sim.faults import Crash, Fault
from trinco.sim.laws import Exponential
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Closed, Scripted


def raymond(n: int, k: int, workload: Scripted | Closed, *faults: Fault, **options: object) -> Simulation:
    simulation = Simulation(
        Scenario(
            protocol="raymond-k",
            build=RaymondKSystem(k),
            claims=raymond_k.CLAIMS,
            n=n,
            workload=workload,
            faults=faults,
            beyond_claims=True,
            **options,  # type: ignore[arg-type]
        )
    )
    simulation.run()
    return simulation


FIGURE_1 = Scripted(((0, 0.0, 20.0), (1, 10.0, 5.0)))


def entered(simulation: Simulation) -> list[tuple[float, int]]:
    return [(at, node) for at, node, kind in simulation.history if kind is Kind.GRANT]


def test_figure_1_without_crashes_the_second_enters_while_the_first_is_inside() -> None:
    """ "p_1 deve aguardar por no mínimo n - k = 8 - 5 = 3 respostas" """
    assert entered(raymond(8, 5, FIGURE_1)) == [(2.0, 0), (12.0, 1)]


def test_figure_1_with_four_dead_the_second_waits_for_the_first_although_four_units_are_free() -> None:
    """ "apenas após a liberação do recurso por p_0 [...] mesmo havendo quatro recursos livres" """
    dead = [Crash(node, 5.0) for node in (4, 5, 6, 7)]
    assert entered(raymond(8, 5, FIGURE_1, *dead)) == [(2.0, 0), (23.0, 1)]


def test_with_a_detector_it_enters_at_once_since_no_more_than_k_are_alive() -> None:
    dead = tuple(Crash(node, 5.0) for node in (4, 5, 6, 7))
    assert entries(told(RobustKSystem(k=5, tree=False), 8, *FIGURE_1.asks, crashes=dead)) == [(2.0, 0), (10.0, 1)]


def inside_at_most(simulation: Simulation, since: float) -> int:
    inside: set[int] = set()
    most = 0
    for at, node, kind in simulation.history:
        inside = inside | {node} if kind is Kind.GRANT else inside - {node}
        most = max(most, len(inside)) if at > since else most
    return most


@pytest.mark.parametrize("seed", range(20))
def test_each_crash_takes_a_unit_from_raymond_and_after_k_nobody_who_asks_enters(seed: int) -> None:
    """Those die who hold nothing; what was asked for before may still be permitted."""
    rng = random.Random(seed)
    k = rng.randint(1, 4)
    n = 2 * k + rng.randint(1, 4)
    dead = rng.randint(1, k)
    crashes = [Crash(node, 0.0) for node in rng.sample(range(n), dead)]
    simulation = raymond(n, k, Closed(20, think=Exponential(5.0)), *crashes, seed=seed)
    assert inside_at_most(simulation, since=0.0) <= k - dead
    assert bool(entered(simulation)) == (dead < k)


def crashing(seed: int) -> Simulation:
    """Two to five units, and up to k processes that crash while the others ask again and again."""
    rng = random.Random(seed)
    k = rng.randint(2, 5)
    n = 2 * k + rng.randint(1, 4)
    crashes = [Crash(node, rng.uniform(0.0, 60.0)) for node in rng.sample(range(n), rng.randint(1, k))]
    workload = Closed(30 * n, think=Exponential(rng.choice((0.1, 5.0))), hold=Exponential(4.0))
    return raymond(n, k, workload, *crashes, seed=seed, trace=False)


def inside_together(simulation: Simulation) -> Counter[int]:
    """Per number of crashes: how many were inside together, at most, of those who asked when so many had crashed."""
    crashed: set[int] = set()
    asked_after: dict[int, int] = {}
    inside: set[int] = set()
    most: Counter[int] = Counter()
    for _, node, kind in simulation.history:
        inside = inside | {node} if kind is Kind.GRANT else inside - {node}
        crashed = crashed | {node} if kind is Kind.CRASH else crashed
        if kind is Kind.ACQUIRE:
            asked_after[node] = len(crashed)
        for crashes in range(1, len(crashed) + 1):
            most[crashes] = max(most[crashes], sum(asked_after[each] >= crashes for each in inside))
    return most


def units(simulation: Simulation) -> int:
    return int(simulation.scenario.build.k)  # type: ignore[attr-defined]


def test_of_those_who_ask_after_f_crashes_at_most_k_minus_f_are_inside_together_and_so_many_are() -> None:
    """Whenever the crashes come. What was asked for earlier may still be permitted. Of k crashes: nobody is."""
    seen: Counter[str] = Counter()
    for simulation in map(crashing, range(60)):
        for crashes, most in inside_together(simulation).items():
            spare = units(simulation) - crashes - most
            assert spare >= 0, simulation.scenario.seed
            seen["as many as claimed"] += spare == 0
            seen["none"] += crashes == units(simulation)
    assert min(seen["as many as claimed"], seen["none"]) > 10


def test_nothing_that_is_asked_for_after_the_k_th_crash_is_granted_by_raymond() -> None:
    late = Scripted(((0, 0.0, 1.0), (0, 10.0, 1.0), (1, 11.0, 1.0)))
    assert entered(raymond(5, 2, late, Crash(3, 5.0), Crash(4, 6.0))) == [(2.0, 0)]
    assert len(entries(told(RobustKSystem(k=2), 5, *late.asks, crashes=(Crash(3, 5.0), Crash(4, 6.0))))) == 3
