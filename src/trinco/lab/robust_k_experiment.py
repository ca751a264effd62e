"""Rodrigues, Duarte Jr. & Arantes (seed 003), section 5: messages and entries while all processes but one crash.

16 processes share 5 units. Processes 0 to 4 ask again and again, hold for 0.8 and pause for 0.1; a message takes 0.01;
process 15 crashes at 5.0, process 14 at 10.0, and so on until process 0 is alone. Raymond's algorithm, which has no
detector, is beside it. Every run is determined by its *reading*: what the paper does not say, and we had to choose.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from trinco.core.claims import Claims
from trinco.core.event import Kind
from trinco.core.node import Node
from trinco.lab.pieces import Listener, do_all
from trinco.lab.reproduction import Curve, Finding, Panel, Reproduction, Table, Verdict
from trinco.protocols.permission import raymond_k
from trinco.protocols.permission.raymond_k import RaymondKSystem
from trinco.protocols.permission.robust_k_system import RobustKSystem
from trinco.sim.faults import Crash
from trinco.sim.laws import Constant
from trinco.sim.links import Links
from trinco.sim.metrics import Spread
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation
from trinco.sim.workload import Desk, Source

SUMMARY = "Rodrigues, Duarte Jr. & Arantes, robust k-mutual exclusion: messages and entries while processes crash"
PAPER = "Rodrigues, Duarte Jr. & Arantes: robust distributed mutual exclusion for k shared resources, section 5"

N, K, DELTA, HOLD, PAUSE, WINDOW = 16, 5, 0.01, 0.8, 0.1, 5.0
REQUESTERS = range(5)
A_MOMENT = 1e-6


@dataclass(frozen=True)
class Reading:
    """What the paper does not say. The values are those under which most of its figures come out."""

    first: float = 0.9
    """When the first requests are made."""
    spread: tuple[float, ...] = (0.0,) * len(REQUESTERS)
    """By how much later each of the requesters makes its own."""
    tests_before_crashes: bool = True
    """Whether a process that crashes when a round of tests begins still takes part in it."""
    until: float = 100.7
    """When the run ends. The round of tests at 100 has to be over by then."""

    def crashes(self) -> tuple[Crash, ...]:
        late = A_MOMENT if self.tests_before_crashes else 0.0
        return tuple(Crash(N - count, WINDOW * count + late) for count in range(1, N))


@dataclass(frozen=True)
class Periodic:
    """Each requester asks, holds, leaves, pauses, and asks again, until the run ends."""

    reading: Reading

    def start(self, desk: Desk) -> Source:
        for node, later in zip(REQUESTERS, self.reading.spread, strict=True):
            desk.ask(node, self.reading.first + later, HOLD)
        return self

    def left(self, desk: Desk, node: int, now: float) -> None:
        desk.ask(node, now + PAUSE, HOLD)


_robust = partial(RobustKSystem, k=K, detector="hi-adsd", delta=DELTA)
_literal = partial(_robust, retry="whole-tree", acknowledges_again=False)

RAYMOND, LITERAL, NO_RETRY = "Raymond", "as printed, mended", "the same, never repeated"
DIRECT, DIRECT_NOTICES = "directly", "directly, notices"

VARIANTS: Mapping[str, Callable[[int], Sequence[Node]]] = {
    RAYMOND: RaymondKSystem(k=K),
    LITERAL: _literal(),
    NO_RETRY: _robust(retry="never"),
    "reply is ack": _literal(reply_is_ack=True),
    "repeated to the missing": _robust(),
    "both": _robust(reply_is_ack=True),
    "both, notices": _robust(reply_is_ack=True, notifies=True),
    DIRECT: _robust(tree=False),
    DIRECT_NOTICES: _robust(tree=False, notifies=True),
    "as printed, one cluster an interval": _literal(schedule="one"),
}
"""``RobustKSystem`` says what the improvements are."""

DIAGNOSIS = ("are-you-alive", "i-am-alive", "notice")

PUBLISHED: Mapping[str, Mapping[str, int]] = {
    RAYMOND: {"request": 1_425, "reply": 1_265},
    LITERAL: {"tree": 3_007, "reply": 2_919, "ack": 2_958, "are-you-alive": 5_100, "i-am-alive": 2_348},
}


@dataclass(frozen=True)
class Row:
    """What one run came to."""

    variant: str
    messages: Mapping[str, int]
    """By kind."""
    entries: int
    most_inside: int
    last_entry: float
    waiting: Spread
    entries_by_window: tuple[int, ...]
    """In each 5.0 of time."""
    messages_by_window: tuple[int, ...]
    """Without those of the diagnosis."""

    @property
    def without_diagnosis(self) -> int:
        return sum(count for kind, count in self.messages.items() if kind not in DIAGNOSIS)


@dataclass(frozen=True)
class Trial:
    """One run that is to be made: the name of a variant, and how the paper is read."""

    variant: str
    reading: Reading = Reading()

    @property
    def title(self) -> str:
        return self.variant

    def scenario(self) -> Scenario:
        build = VARIANTS[self.variant]
        claims: Claims = getattr(build, "claims", raymond_k.CLAIMS)
        return Scenario(
            protocol=self.variant,
            build=build,
            claims=claims,
            n=N,
            workload=Periodic(self.reading),
            links=Links(Constant(DELTA)),
            faults=self.reading.crashes(),
            until=self.reading.until,
            trace=False,
            beyond_claims=True,
        )

    def do(self) -> Row:
        simulation = Simulation(self.scenario())
        sent = _counted_at(simulation, [WINDOW * (window + 1) for window in range(self.windows)])
        simulation.run()
        metrics = simulation.result().metrics
        assert metrics.waiting is not None
        entries = [at for at, _, kind in simulation.history if kind is Kind.GRANT]
        by_window = Counter(int(at / WINDOW) for at in entries)
        sent += [_sent(simulation)] * (self.windows - len(sent))
        return Row(
            self.variant,
            metrics.messages_by_kind,
            len(entries),
            _most_inside(simulation.history),
            entries[-1],
            metrics.waiting,
            tuple(by_window[window] for window in range(self.windows)),
            tuple(later - earlier for earlier, later in pairwise((0, *sent))),
        )

    @property
    def windows(self) -> int:
        return int(self.reading.until / WINDOW)


def _counted_at(simulation: Simulation, times: Sequence[float]) -> list[int]:
    """Will hold how many messages had been sent at each of these times, as far as the run comes."""
    counts: list[int] = []
    for at in times:
        simulation.kernel.schedule(at, lambda _a, _b, _c: counts.append(_sent(simulation)))
    return counts


def _sent(simulation: Simulation) -> int:
    """So far, without those of the diagnosis."""
    by_kind: list[tuple[Any, int]] = [item for host in simulation.hosts for item in host.sent.items()]
    return sum(count for kind, count in by_kind if kind.__struct_config__.tag not in DIAGNOSIS)


def _most_inside(history: Sequence[tuple[float, int, Kind]]) -> int:
    inside: set[int] = set()
    most = 0
    for _, node, kind in history:
        inside = inside | {node} if kind is Kind.GRANT else inside - {node}
        most = max(most, len(inside))
    return most


def measure(
    reading: Reading = Reading(), executor: Executor | None = None, listener: Listener | None = None
) -> dict[str, Row]:
    """All variants, under one reading. The same reading gives the same rows."""
    done = do_all([Trial(variant, reading) for variant in VARIANTS], executor, listener)
    return {variant: done[Trial(variant, reading)] for variant in VARIANTS}


def reproduce(executor: Executor | None, listener: Listener | None, *, quick: bool) -> Reproduction:
    """There is nothing to make smaller: it takes a second."""
    return presented(measure(Reading(), executor, listener))


def presented(rows: Mapping[str, Row]) -> Reproduction:
    return Reproduction(
        PAPER, (_published(rows), _variants(rows), _windows(rows)), tuple(findings(rows)), _panels(rows)
    )


def _published(rows: Mapping[str, Row]) -> Table:
    lines = [
        (variant, kind, f"{count:,}", f"{rows[variant].messages[kind]:,}", f"{rows[NO_RETRY].messages.get(kind, 0):,}")
        for variant, published in PUBLISHED.items()
        for kind, count in published.items()
    ]
    headings = ("algorithm", "messages", "published", "ours", NO_RETRY)
    return Table("Messages", headings, tuple((*line[:4], "-") if line[0] == RAYMOND else line for line in lines))


def _variants(rows: Mapping[str, Row]) -> Table:
    lines = tuple(
        (
            row.variant,
            f"{row.without_diagnosis:,}",
            f"{row.messages.get('notice', 0):,}",
            f"{row.entries}",
            f"{row.without_diagnosis / row.entries:.1f}",
            f"{row.waiting.mean:.3f}",
            f"{row.waiting.max:.2f}",
        )
        for row in rows.values()
    )
    headings = ("variant", "messages", "and notices", "entries", "messages per entry", "mean wait", "longest wait")
    return Table("Improvements; messages without those of the diagnosis", headings, lines)


def _windows(rows: Mapping[str, Row]) -> Table:
    lines = tuple((row.variant, *map(str, row.entries_by_window)) for row in rows.values())
    windows = tuple(f"{WINDOW * window:g}" for window in range(len(lines[0]) - 1))
    return Table(f"Entries in each {WINDOW:g} of time, from", ("variant", *windows), lines)


def findings(rows: Mapping[str, Row]) -> Iterator[Finding]:
    raymond, robust, unrepeated = rows[RAYMOND], rows[LITERAL], rows[NO_RETRY]
    yield _same(
        "messages of the diagnosis",
        LITERAL,
        robust,
        ("are-you-alive", "i-am-alive"),
        "all clusters are tested in each interval, one after the other, and a process that crashes when a round "
        "begins takes part in it; the text says one cluster in an interval",
    )
    yield _same(
        "Raymond's requests", RAYMOND, raymond, ("request",), "the first are made at 0.85 to 1.0; it says nothing"
    )
    yield Finding(
        "messages of the proposed algorithm",
        "8,884",
        f"{robust.without_diagnosis:,} as printed; {unrepeated.without_diagnosis:,} if nothing is ever repeated",
        Verdict.NOT_REPRODUCED,
        "with a timeout of 0.08 and crashes that are known a second later, requests are repeated far more often than "
        "the 49 TREE that the paper has in excess of its ACK allow for",
    )
    yield Finding(
        "Raymond obtains nothing after the fifth crash, at 25",
        "25",
        f"the last entry is at {raymond.last_entry:.2f}",
        Verdict.ONLY_IF,
        "requests made after it are meant: permissions that were there before are still used",
    )
    yield Finding(
        "the proposed algorithm goes on until process 0 is alone",
        "75",
        f"fewest entries in a window up to 75: {min(robust.entries_by_window[:15])}; after it {_after(robust, 75.0)}",
        Verdict.HOLDS if min(robust.entries_by_window) else Verdict.REFUTED,
    )
    yield _overhead(raymond, robust)


def _same(claim: str, variant: str, row: Row, kinds: Sequence[str], note: str) -> Finding:
    published, ours = ([counts[kind] for kind in kinds] for counts in (PUBLISHED[variant], row.messages))
    verdict = Verdict.ONLY_IF if published == ours else Verdict.NOT_REPRODUCED
    return Finding(claim, _listed(published), _listed(ours), verdict, note)


def _listed(counts: Sequence[int]) -> str:
    return " and ".join(f"{count:,}" for count in counts)


def _overhead(raymond: Row, robust: Row) -> Finding:
    """Before the first crash; what was begun then is not quite over."""
    excess = robust.messages_by_window[0] / raymond.messages_by_window[0] - 1
    return Finding(
        "more messages than Raymond at first",
        "50 %",
        f"{excess:.0%}".replace("%", " %"),
        Verdict.HOLDS if abs(excess - 0.5) < 0.02 else Verdict.REFUTED,
        "3(n-1) to 2(n-1); a tree costs as many messages as telling all directly, and its acknowledgements besides",
    )


def _after(row: Row, time: float) -> int:
    return sum(row.entries_by_window[int(time / WINDOW) :])


def _panels(rows: Mapping[str, Row]) -> tuple[Panel, ...]:
    shown = (RAYMOND, LITERAL, NO_RETRY, DIRECT_NOTICES)
    figures: tuple[tuple[str, str, Callable[[Row], tuple[int, ...]]], ...] = (
        ("messages over time (the paper's Figure 6)", "messages", lambda row: row.messages_by_window),
        ("entries over time (the paper's Figure 7)", "entries", lambda row: row.entries_by_window),
    )
    return tuple(
        Panel(title, "time", f"{what} in each {WINDOW:g}", tuple(_curve(name, read(rows[name])) for name in shown))
        for title, what, read in figures
    )


def _curve(label: str, counts: Sequence[int]) -> Curve:
    return Curve(label, tuple(WINDOW * (window + 1) for window in range(len(counts))), tuple(map(float, counts)))
