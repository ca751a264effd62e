"""S1, V1 and V2 of the slides, and how each was established: by the checker on the largest small instance that it gets
through, otherwise by random runs.

S1 (safety): never more inside than may be. V1: if some try, one succeeds. V2: everyone who tries succeeds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from trinco.check.run import Checker
from trinco.check.run import Result as Checked
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.claims import Network
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.monitor import EveryoneServed
from trinco.protocols.catalogue import Entry, competitors
from trinco.sim.laws import Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Violation
from trinco.sim.swarm import Swarm
from trinco.sim.workload import saturated

NAMES = ("S1", "V1", "V2")
MOST_STATES = 150_000
"""A few seconds. Bounded by states and not by time: the answer must not depend on the machine."""
LARGEST_N = 9
"""Servers included."""
SEEDS = 40
_BREAKS_V1, _BREAKS_V2 = ("deadlock", "livelock"), ("deadlock", "livelock", "starvation")


@dataclass(frozen=True)
class Finding:
    """``holds``: None where it is not claimed, or where a violation of another property ended the search before."""

    claimed: bool
    holds: bool | None
    how: str


@dataclass(frozen=True)
class Properties:
    findings: dict[str, Finding]
    how: str
    evidence: str
    """The instance that was checked or simulated."""
    violation: str | None = None
    """Of what is claimed."""

    @property
    def established(self) -> str:
        return f"{self.how}: {self.evidence}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def establish(entry: Entry, seed: int = 0, most_states: int = MOST_STATES) -> Properties:
    for n, rounds in _instances(entry):
        model = model_of(entry, n=n, rounds=rounds, reductions=False)
        checked = Checker(model, entry.name, max_states=most_states).run()
        if _says_enough(checked, entry):
            return _from_check(entry, checked, n, rounds)
    return _from_runs(entry, seed)


def _instances(entry: Entry) -> Iterator[tuple[int, int | None]]:
    """(n, entries of each process or None for ever), the most telling first: three processes and then two, and as many
    servers as come with them."""
    for processes in (3, 2):
        sizes = [n for n in range(entry.smallest, LARGEST_N + 1) if _processes(entry, n) == processes]
        if sizes and entry.repeats:
            yield sizes[-1], None
        for rounds in (2, 1) if sizes else ():
            yield sizes[-1], rounds


def _processes(entry: Entry, n: int) -> int:
    try:
        return competitors(entry.nodes(n))
    except UsageError:
        return 0


def _says_enough(checked: Checked, entry: Entry) -> bool:
    """A deadlock ends the search: where it is allowed, nothing is known of the states behind it. Where timers have used
    up their bound, nothing is known of who waits."""
    if checked.violation is None:
        progress_claimed = entry.claims.deadlock_free or entry.claims.starvation_free
        return checked.verdict is Verdict.HOLDS and not (checked.cut_off and progress_claimed)
    return entry.claims.deadlock_free or checked.violation.kind != "deadlock"


def _from_check(entry: Entry, checked: Checked, n: int, rounds: int | None) -> Properties:
    each = {None: "unbounded entries", 1: "1 entry each"}.get(rounds, f"{rounds} entries each")
    found = checked.violation
    known = () if found else NAMES
    searched = ("S1",) if checked.cut_off or (found and checked.liveness) else known
    return _judged(
        entry,
        searched,
        (found.kind, found.text) if found else None,
        "checked exhaustively" if searched else "checked",
        f"n={n}, {each}, {checked.progress.states:,} states",
    )


def _from_runs(entry: Entry, seed: int) -> Properties:
    """With delays so different that messages overtake each other where they may."""
    n = entry.contended_size(5)
    scenario = Scenario(
        protocol=entry.name,
        build=entry.build,
        claims=replace(entry.claims, bypass=None, messages_per_entry=Formula("0..inf")),
        n=n,
        workload=saturated(5 * n),
        links=Links(Uniform(0.1, 5.0), ordered=entry.claims.network is Network.FIFO),
        trace=False,
    )
    swarm = Swarm(scenario)
    swarm.run(range(seed, seed + SEEDS))
    found = swarm.violations[0].violation if swarm.violations else None
    searched = () if found else ("S1",) if swarm.unfinished else NAMES
    return _judged(
        entry,
        searched,
        (_kind(found), found.text) if found else None,
        f"simulated, {swarm.done} seed{'s' * (swarm.done > 1)}",
        f"n={n}, {swarm.entries:,} entries",
    )


def _kind(found: Violation) -> str:
    """As the checker calls it. Who was not served says itself whether others were."""
    return found.text.partition(":")[0] if found.property == EveryoneServed.__name__ else "safety"


def _judged(
    entry: Entry, searched: Sequence[str], found: tuple[str, str] | None, how: str, evidence: str
) -> Properties:
    """``searched``: the properties that would have been found violated if they were. ``found``: the kind of violation
    that was found, and the violation."""
    kind, text = found or (None, None)
    claimed = {"S1": True, "V1": entry.claims.deadlock_free, "V2": entry.claims.starvation_free}
    broken = {
        "S1": kind is not None and kind not in _BREAKS_V2,
        "V1": kind in _BREAKS_V1,
        "V2": kind in _BREAKS_V2,
    }
    findings = {name: _finding(claimed[name], broken[name], name in searched, how) for name in NAMES}
    against = any(claimed[name] and broken[name] for name in NAMES)
    return Properties(findings, how, evidence, text if against else None)


def _finding(claimed: bool, broken: bool, searched: bool, how: str) -> Finding:
    if broken:
        return Finding(claimed, False, how)
    if not claimed:
        return Finding(claimed, None, "not claimed")
    return Finding(claimed, True, how) if searched else Finding(claimed, None, "not established")
