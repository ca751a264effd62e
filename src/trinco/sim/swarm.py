"""Many seeds of one scenario, on any executor: processes here, Dask or Ray where one machine is too small."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from itertools import islice

from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Violation, run

BATCH = 8
"""Seeds a task: enough to make sending it worth while, few enough to stop soon."""
TASKS_AHEAD = 16


@dataclass(frozen=True)
class Brief:
    """What one seed came to. Small, since it travels between processes."""

    seed: int
    violation: Violation | None
    finished: bool
    entries: int
    messages: int


@dataclass
class Swarm:
    """Runs seeds until the first violation, or through all of them with ``collect``. The counts can be read while it
    runs and after it was interrupted. Results are taken in the order of the seeds, so what is found does not depend on
    which worker was quicker. No trace is kept: the seed of a violation brings it back."""

    scenario: Scenario
    collect: bool = False
    done: int = 0
    unfinished: int = 0
    entries: int = 0
    messages: int = 0
    violations: list[Brief] = field(default_factory=list)

    def run(
        self, seeds: Iterable[int], executor: Executor | None = None, listener: Callable[[int], None] | None = None
    ) -> None:
        """``listener`` is told how many seeds are done."""
        for brief in self._briefs(seeds, executor):
            self._note(brief)
            if listener:
                listener(self.done)
            if self.violations and not self.collect:
                return

    def _briefs(self, seeds: Iterable[int], executor: Executor | None) -> Iterator[Brief]:
        source = iter(seeds)
        batches = iter(lambda: tuple(islice(source, BATCH)), ())
        if executor is None:
            for batch in batches:
                for seed in batch:
                    yield from run_batch(self.scenario, (seed,))
            return
        pending: deque[Future[list[Brief]]] = deque()
        try:
            for batch in batches:
                pending.append(executor.submit(run_batch, self.scenario, batch))
                if len(pending) >= TASKS_AHEAD:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        finally:
            for task in pending:
                task.cancel()

    def _note(self, brief: Brief) -> None:
        self.done += 1
        self.unfinished += not brief.finished
        self.entries += brief.entries
        self.messages += brief.messages
        if brief.violation:
            self.violations.append(brief)


def run_batch(scenario: Scenario, seeds: Iterable[int]) -> list[Brief]:
    """What a worker does."""
    briefs = []
    for seed in seeds:
        result = run(scenario.with_changes(seed=seed, trace=False))
        metrics = result.metrics
        briefs.append(Brief(seed, result.violation, result.finished, metrics.entries, metrics.messages))
    return briefs
