"""``check(model)``: search, then look for traps and starvation, then say what was found."""

from dataclasses import dataclass

from trinco.check import counterexample, paths
from trinco.check.counterexample import Counterexample
from trinco.check.liveness import find_starvation
from trinco.check.model import Model
from trinco.check.reachability import find_trap
from trinco.check.search import Listener, Progress, Search, Verdict, Violation


@dataclass(frozen=True)
class Result:
    verdict: Verdict
    progress: Progress
    violation: Violation | None = None
    counterexample: Counterexample | None = None
    """Missing only where a violation is that something never happens."""
    liveness: bool = False
    """Whether it is known if somebody can starve: it was looked for in the whole graph."""
    cut_off: bool = False
    """Why it is not known although it was looked for: somebody may still wait when a timer has used up its bound."""


@dataclass
class Checker:
    """One check. ``progress`` can be read while it runs and after it was interrupted."""

    model: Model
    protocol: str = "?"
    liveness: bool = True
    max_states: int = 5_000_000
    max_bytes: int = 4 << 30
    listener: Listener | None = None

    def __post_init__(self) -> None:
        self.search = Search(self.model, self.max_states, self.max_bytes, self.listener)

    @property
    def progress(self) -> Progress:
        return self.search.progress

    def run(self) -> Result:
        search = self.search
        verdict = search.run()
        if verdict is Verdict.INCONCLUSIVE:
            return Result(verdict, search.progress)
        if search.violation and search.state is not None:
            path = paths.way_to(search, search.state)
            violation = search.judge(path.steps[-1].state) if path.steps else None
            found = counterexample.build(search, path, violation or search.violation, self.protocol)
            search.progress.depth = len(found.script)
            return Result(verdict, search.progress, found.violation, found)
        vacuous = self._never_happened()
        if vacuous:
            return Result(Verdict.VIOLATED, search.progress, vacuous)
        trapped = self._trapped()
        if trapped:
            return trapped
        return self._starvation() if self.liveness else Result(verdict, search.progress)

    def _never_happened(self) -> Violation | None:
        """A run in which nobody ever enters proves nothing."""
        if self.search.unmet:
            return Violation("vacuous", f"this never happened: {', '.join(self.search.unmet)}")
        cells = self.search.cells
        entered = {cell.node for number, cell in enumerate(cells.cells) if cells.local(number).believes}
        if self.search.symmetry:
            entered |= {node for group in self.model.symmetric if group & entered for node in group}
        asking = [node for node in self.model.processes if self.model.called is None or node in self.model.called]
        idle = [f"p{node}" for node in asking if node not in entered]
        if idle:
            return Violation("vacuous", f"{', '.join(idle)} never entered in any run")
        return None

    def _trapped(self) -> Result | None:
        trap = find_trap(self.search)
        if trap is None:
            return None
        path = paths.way_to(self.search, trap.state)
        found = counterexample.build(self.search, path, trap.violation, self.protocol)
        self.search.progress.depth = len(found.script)
        return Result(Verdict.VIOLATED, self.search.progress, trap.violation, found)

    def _starvation(self) -> Result:
        search = self.search
        if search.symmetry is not None:
            return Result(Verdict.HOLDS, search.progress)
        search.progress.stage = "looking for fair cycles"
        search.report()
        outlook = find_starvation(search)
        lasso = outlook.lasso
        if lasso is None:
            return Result(Verdict.HOLDS, search.progress, liveness=not outlook.cut_off, cut_off=outlook.cut_off)
        path = paths.way_to(search, lasso.first)
        found = counterexample.build(search, path, lasso.violation, self.protocol, lasso.cycle)
        return Result(Verdict.VIOLATED, search.progress, lasso.violation, found, liveness=True)


def check(model: Model, **options: object) -> Result:
    """Check a model. Options are the fields of :class:`Checker`."""
    return Checker(model, **options).run()  # type: ignore[arg-type]
