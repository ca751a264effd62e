"""A paper's figures, beside ours: what ``trinco reproduce`` shows.

A reproduction is made of tables, of *findings* (one claim of the paper each, with a verdict), and of curves for a
picture. A number that we cannot reproduce is reported as such, with ours beside it.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Protocol

from trinco.lab.pieces import Listener


class Verdict(Enum):
    HOLDS = "holds"
    ONLY_IF = "holds only if"
    REFUTED = "refuted"
    NOT_REPRODUCED = "not reproduced"


@dataclass(frozen=True)
class Finding:
    """``claim``: in a few words; ``published``: the paper's figure; ``ours``: what we measured, as a sentence reads."""

    claim: str
    published: str
    ours: str
    verdict: Verdict
    note: str = ""
    """Under which condition it holds, or which reading of the paper was needed."""


@dataclass(frozen=True)
class Table:
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Curve:
    """Points to be joined, or marked where ``measured``."""

    label: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    measured: bool = True


@dataclass(frozen=True)
class Panel:
    """One picture: curves over one axis."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    logarithmic: bool = False


@dataclass(frozen=True)
class Reproduction:
    paper: str
    tables: tuple[Table, ...] = ()
    findings: tuple[Finding, ...] = ()
    panels: tuple[Panel, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for ``--json``. Curves are left out: their points stand in the tables."""
        return {
            "paper": self.paper,
            "tables": [
                {"title": table.title, "rows": [dict(zip(table.headings, row, strict=True)) for row in table.rows]}
                for table in self.tables
            ],
            "findings": [asdict(finding) | {"verdict": finding.verdict.value} for finding in self.findings],
        }


class Experiment(Protocol):
    """The module of an experiment: ``lab.forks_experiment`` and its siblings."""

    SUMMARY: str

    def reproduce(self, executor: Executor | None, listener: Listener | None, *, quick: bool) -> Reproduction:
        """``quick``: smaller counts, for tests and for the impatient; what differs is said in the titles."""


EXPERIMENTS: dict[str, str] = {
    "bakery": "trinco.lab.bakery_experiment",
    "forks": "trinco.lab.forks_experiment",
    "leases": "trinco.lab.lease_experiment",
    "robust-k": "trinco.lab.robust_k_experiment",
}
"""Name on the command line -> module."""


def names() -> Sequence[str]:
    return sorted(EXPERIMENTS)
