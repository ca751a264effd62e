"""What an election costs: messages against n, and against the rank of the process that notices.

Only the leader, the highest of n, has crashed. The d-th lowest process notices, or all do at once. The slides count
what they name, ELECTION, OK and COORDINATOR, also if it goes to the dead; what a protocol sends beyond that, such as
acknowledgements, is counted apart.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import Any

from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.core.formula import Formula
from trinco.core.message import kind_of
from trinco.lab.comparison import Subject, flat
from trinco.lab.pieces import Listener, do_all
from trinco.protocols.catalogue import ENTRIES, Entry
from trinco.sim.faults import Crash
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Elections

NAMED = ("election", "ok", "coordinator")
CRASH, NOTICE = 0.5, 1.0


@dataclass(frozen=True)
class ElectionCost:
    n: int
    rank: int | None
    """Of the process that notices, from the lowest, 1; None: all notice at once."""
    predicted: float
    messages: int
    """Of the kinds that the slides name."""
    to_the_dead: int
    """How many of those went to the leader that has crashed."""
    others: int
    by_kind: dict[str, int]
    time: float
    """Until everybody knows the new leader, in message times; the time-outs for those who do not answer included."""
    leader: int | None
    violation: str | None

    @property
    def unclaimed(self) -> int:
        """What went to the dead, where the claim leaves it out: the bully counts it, the ring passes the dead over."""
        is_left_out = self.messages > self.predicted >= self.messages - self.to_the_dead
        return self.to_the_dead if is_left_out else 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class ElectionsCompared:
    subject: Subject
    costs: tuple[ElectionCost, ...]

    @property
    def formula(self) -> Formula:
        return by_rank(self.subject.entry)

    def of(self, n: int, rank: int | None) -> ElectionCost:
        return next(each for each in self.costs if (each.n, each.rank) == (n, rank))

    def ranks(self, n: int) -> list[int]:
        """Those detectors that were tried alone."""
        return [each.rank for each in self.costs if each.n == n and each.rank is not None]

    def rows(self) -> Iterator[dict[str, Any]]:
        """As a flat table, a row for each n and rank."""
        for each in self.costs:
            yield flat({"protocol": self.subject.title, **each.as_dict(), "rank": each.rank or "all"})

    def as_dict(self) -> dict[str, Any]:
        return {
            "protocol": self.subject.name,
            "settings": list(self.subject.settings),
            "claims": self.subject.entry.claims.as_dict(),
            "messages_by_rank": self.formula.text,
            "measured": [each.as_dict() for each in self.costs],
        }


def by_rank(entry: Entry) -> Formula:
    """Messages over n and the detector's rank d. An algorithm says so where d matters; otherwise one detector costs
    the least that is claimed."""
    known: Formula | None = getattr(entry.module, "MESSAGES", None)
    return known or Formula(entry.claims.messages_per_entry.text.partition("..")[0])


def elections(names: Sequence[str], settings: Sequence[str] = ()) -> tuple[Subject, ...]:
    """The elections of these names, all of them if there are none."""
    if settings and not names:
        raise UsageError("a setting is for certain protocols: name them")
    every = tuple(entry.name for entry in ENTRIES if entry.claims.elects)
    chosen = tuple(Subject(name, tuple(settings)) for name in dict.fromkeys(names or every))
    for subject in chosen:
        if not subject.entry.claims.elects:
            raise UsageError(f"{subject.name} is no election; the elections are {', '.join(every)}")
    return chosen


def ranks(n: int) -> tuple[int, ...]:
    """Which detectors to try: the lowest, the highest that lives, and some between."""
    doubling = {2**power for power in range(n.bit_length())}
    quarters = {n // 4, n // 2, 3 * n // 4}
    return tuple(sorted(rank for rank in doubling | quarters | {n - 1} if 1 <= rank < n))


@dataclass(frozen=True)
class Electing:
    subject: Subject
    n: int
    rank: int | None

    @property
    def title(self) -> str:
        return f"{self.subject.title}, n={self.n}"

    def do(self) -> ElectionCost:
        return elect(self.subject.entry, self.n, self.rank)


def compare_elections(
    chosen: Sequence[Subject],
    sizes: Sequence[int],
    executor: Executor | None = None,
    listener: Listener | None = None,
) -> tuple[ElectionsCompared, ...]:
    for subject in chosen:
        for n in sizes:
            subject.entry.nodes(n)
    detectors = {n: (*ranks(n), None) for n in sizes}
    pieces = {subject: [Electing(subject, n, rank) for n in sizes for rank in detectors[n]] for subject in chosen}
    longest_first = sorted((each for some in pieces.values() for each in some), key=lambda each: -each.n)
    done = do_all(longest_first, executor, listener)
    return tuple(ElectionsCompared(subject, tuple(done[each] for each in pieces[subject])) for subject in chosen)


def elect(entry: Entry, n: int, rank: int | None) -> ElectionCost:
    detectors = range(n - 1) if rank is None else (rank - 1,)
    simulation = Simulation(
        Scenario(
            protocol=entry.name,
            build=entry.build,
            claims=entry.claims,
            n=n,
            workload=Elections(tuple((detector, NOTICE) for detector in detectors)),
            faults=(Crash(n - 1, CRASH),),
        )
    )
    simulation.run()
    assert simulation.recording is not None
    sent = [(kind_of(record[4]), record[3]) for record in simulation.recording.records if record[2] is Kind.SEND]
    by_kind = Counter(kind for kind, _ in sent)
    named = sum(by_kind[kind] for kind in NAMED)
    elected = [(at, peer) for at, _, kind, peer, *_ in simulation.recording.records if kind is Kind.ELECTED]
    letters = entry.letters(n)
    claim = entry.claims.messages_per_entry
    return ElectionCost(
        n=n,
        rank=rank,
        predicted=claim.high(**letters) if rank is None else by_rank(entry).high(d=rank, **letters),
        messages=named,
        to_the_dead=sum(to == n - 1 for kind, to in sent if kind in NAMED),
        others=by_kind.total() - named,
        by_kind=dict(sorted(by_kind.items())),
        time=max((at for at, _ in elected), default=NOTICE) - NOTICE,
        leader=elected[-1][1] if elected else None,
        violation=simulation.violation.text if simulation.violation else None,
    )
