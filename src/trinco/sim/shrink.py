"""A failing scenario made small: fewer nodes, fewer entries, fewer faults, the same violation."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from trinco.core.errors import UsageError
from trinco.sim.faults import Fault, Partition
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation, run
from trinco.sim.workload import Closed, Elections, Open, Scripted

SEEDS_A_TRY = 12
"""A smaller system has other runs; the flaw may need another seed to show in it."""


def shrink(
    scenario: Scenario, property_broken: str, max_runs: int = 2000, listener: Callable[[int], None] | None = None
) -> Scenario:
    """The smallest scenario found that breaks the same property. What chaos drew becomes a schedule first."""
    runs = 0
    smallest = _spelt_out(scenario)
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(smallest):
            for seed in (smallest.seed, *range(SEEDS_A_TRY)):
                runs += 1
                if runs > max_runs:
                    return smallest
                if listener:
                    listener(runs)
                attempt = candidate.with_changes(seed=seed)
                violation = run(attempt.with_changes(trace=False)).violation
                if violation and violation.property == property_broken:
                    smallest, progress = attempt, True
                    break
            if progress:
                break
    return smallest


def _spelt_out(scenario: Scenario) -> Scenario:
    if scenario.chaos is None:
        return scenario
    return scenario.with_changes(faults=Simulation(scenario).faults, chaos=None)


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Candidates, the greatest steps first."""
    for n in sorted({scenario.n // 2, scenario.n - 1}):
        if n >= 1:
            yield from _possible(scenario, n=n, faults=tuple(f for f in scenario.faults if _fits(f, n)))
    for workload in _lighter(scenario.workload):
        yield from _possible(scenario, workload=workload)
    for position in range(len(scenario.faults)):
        rest = scenario.faults[:position] + scenario.faults[position + 1 :]
        yield from _possible(scenario, faults=rest)


def _possible(scenario: Scenario, **changes: object) -> Iterator[Scenario]:
    """The changed scenario, if it makes sense: some protocols need more nodes than others."""
    try:
        candidate = scenario.with_changes(**changes)
        candidate.build(candidate.n)
        Simulation(candidate)
    except (UsageError, IndexError):
        return
    yield candidate


def _fits(fault: Fault, n: int) -> bool:
    if isinstance(fault, Partition):
        return all(node < n for group in fault.groups for node in group)
    return fault.node < n


def _lighter(workload: object) -> Iterator[object]:
    if isinstance(workload, Closed | Open):
        for entries in sorted({workload.entries // 2, workload.entries - 1}):
            if entries >= 1:
                yield replace(workload, entries=entries)
    elif isinstance(workload, Scripted):
        for position in range(len(workload.asks)):
            yield Scripted(workload.asks[:position] + workload.asks[position + 1 :])
    elif isinstance(workload, Elections):
        for position in range(len(workload.notices)):
            yield Elections(workload.notices[:position] + workload.notices[position + 1 :])
