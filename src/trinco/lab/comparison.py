"""The slides' table of algorithms, filled in and measured: messages, delays, fairness, properties, utilisation.

The work is cut into pieces that do not depend on each other, each about one algorithm. They run here or on any
executor, and what comes out depends on the seed alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from math import isinf
from typing import Any

from trinco.core.cost import beyond_claim
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.lab.comparison_measures import Measures, measure
from trinco.lab.pieces import Listener, do_all
from trinco.lab.properties import Properties, establish
from trinco.lab.utilisation import Utilisation, utilisation
from trinco.protocols.catalogue import ENTRIES, Entry, find

OVERLAP = 0.01
"""Where several are inside at a time, what is counted begins and ends in the middle of somebody's entry."""
SIZES = (4, 8, 16, 32, 64, 128)
UTILISATION_SIZE = 32
"""The largest n at which the use of the resource is measured."""


@dataclass(frozen=True)
class Subject:
    """An algorithm by its name and what was set about it: a module cannot be sent to another process, words can."""

    name: str
    settings: tuple[str, ...] = ()

    @property
    def entry(self) -> Entry:
        return find(self.name).set(*self.settings)

    @property
    def title(self) -> str:
        return f"{self.name} ({', '.join(self.settings)})" if self.settings else self.name


def everybody() -> tuple[Subject, ...]:
    """Every mutual exclusion algorithm of the catalogue. Leases are another matter: they count by stores and clocks."""
    return tuple(Subject(entry.name) for entry in ENTRIES if not (entry.claims.elects or entry.claims.timed))


def subjects(names: Sequence[str], settings: Sequence[str] = ()) -> tuple[Subject, ...]:
    """The algorithms of these names, all of them if there are none."""
    if settings and not names:
        raise UsageError("a setting is for certain protocols: name them")
    chosen = tuple(Subject(name, tuple(settings)) for name in dict.fromkeys(names)) or everybody()
    for subject in chosen:
        claims = subject.entry.claims
        if claims.elects:
            raise UsageError(f"{subject.name} is an election: 'trinco compare --elections' compares those")
        if claims.timed:
            raise UsageError(
                f"{subject.name} runs on clocks and stores, not on messages: see 'trinco sim {subject.name}'"
            )
    return chosen


@dataclass(frozen=True)
class Compared:
    """All about one algorithm."""

    subject: Subject
    measures: tuple[Measures, ...]
    """One for each n."""
    properties: Properties
    utilisation: tuple[Utilisation, ...]

    @property
    def violations(self) -> Iterator[str]:
        """Whatever contradicts what the paper claims."""
        if self.properties.violation:
            yield f"{self.properties.evidence}: {self.properties.violation}"
        claims = self.subject.entry.claims
        for each in self.measures:
            yield from (f"n={each.n}: {text}" for text in each.violations)
            letters = self.subject.entry.letters(each.n)
            for load, mean in asdict(each.messages).items():
                edge = OVERLAP if claims.k.high(**letters) > 1 else 0.0
                excess = None if mean is None else beyond_claim(mean * (1 - edge), None, claims, **letters)
                if excess:
                    yield f"n={each.n}, {load.replace('_', ' ')}: {excess}"

    def as_dict(self) -> dict[str, Any]:
        entry = self.subject.entry
        return {
            "protocol": self.subject.name,
            "settings": list(self.subject.settings),
            "claims": entry.claims.as_dict(),
            "properties": self.properties.as_dict(),
            "measured": [each.as_dict() | {"claimed": self._claimed(each.n)} for each in self.measures],
            "utilisation": [asdict(each) for each in self.utilisation],
            "violations": list(self.violations),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """The same as a flat table, a row for each n."""
        told = self.as_dict()
        holds = {name: finding.holds for name, finding in self.properties.findings.items()}
        for measured in told["measured"]:
            used = {f"{each.offered:g}": each.share for each in self.utilisation if each.n == measured["n"]}
            yield flat(
                {
                    "protocol": self.subject.title,
                    **measured,
                    **holds,
                    "established": self.properties.established,
                    "share_at_load": used,
                    "claims": told["claims"],
                }
            )

    def _claimed(self, n: int) -> dict[str, Any]:
        """What the formulas come to."""
        claims, letters = self.subject.entry.claims, self.subject.entry.letters(n)
        return {
            "messages": _bounds(claims.messages_per_entry, letters),
            "delay": _bounds(claims.delay, letters),
            "bypass": None if claims.bypass is None else claims.bypass.high(**letters),
        }


def _bounds(formula: Formula, letters: dict[str, float]) -> dict[str, float | None]:
    """None is without end."""
    high = formula.high(**letters)
    return {"low": formula.low(**letters), "high": None if isinf(high) else high}


def flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """``{"delay": {"mean": 2}}`` as ``{"delay_mean": 2}``, and what is a list as one text."""
    row: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, Mapping):
            row |= flat(value, f"{prefix}{name}_")
        else:
            row[f"{prefix}{name}"] = "; ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return row


@dataclass(frozen=True)
class Measuring:
    subject: Subject
    n: int
    seed: int

    @property
    def title(self) -> str:
        return f"{self.subject.title}, n={self.n}"

    def do(self) -> Measures:
        return measure(self.subject.entry, self.n, self.seed)


@dataclass(frozen=True)
class Establishing:
    subject: Subject
    seed: int

    @property
    def title(self) -> str:
        return f"{self.subject.title}, checked"

    def do(self) -> Properties:
        return establish(self.subject.entry, self.seed)


@dataclass(frozen=True)
class Utilising:
    subject: Subject
    n: int
    seed: int

    @property
    def title(self) -> str:
        return f"{self.subject.title}, offered load"

    def do(self) -> tuple[Utilisation, ...]:
        return utilisation(self.subject.entry, self.n, self.seed)


def compare(
    chosen: Sequence[Subject],
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
    executor: Executor | None = None,
    listener: Listener | None = None,
) -> tuple[Compared, ...]:
    for subject in chosen:
        for n in sizes:
            subject.entry.nodes(n)
    crowd = max((n for n in sizes if n <= UTILISATION_SIZE), default=min(sizes))
    measuring = [Measuring(subject, n, seed) for n in sorted(sizes, reverse=True) for subject in chosen]
    establishing = [Establishing(subject, seed) for subject in chosen]
    utilising = [Utilising(subject, crowd, seed) for subject in chosen]
    done = do_all([*establishing, *measuring, *utilising], executor, listener)
    return tuple(
        Compared(
            subject,
            tuple(done[Measuring(subject, n, seed)] for n in sizes),
            done[Establishing(subject, seed)],
            done[Utilising(subject, crowd, seed)],
        )
        for subject in chosen
    )
