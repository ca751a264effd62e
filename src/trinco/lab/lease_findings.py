"""Mendes, Oliveira & Bessani (seed 004), claim by claim: what the paper says, what we see, and what is left of it.

Safety is not measured but checked: see the exhibits ``lease/E..``.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trinco.lab.lease_costs import one_of_each_provider, prices
from trinco.lab.lease_latency import ACCESSES, ASSUMPTIONS, COMPOSITES, SCFS_ACCESS, SERVICES
from trinco.lab.lease_measures import BY_TURNS, Measured
from trinco.lab.lease_upkeep import RELEASE, RELEASE_RENEWED, RENEW
from trinco.lab.reproduction import Finding, Verdict

OBSTRUCTION, DEADLOCK = "obstruction", "deadlock"
"""What a lease is free of: whoever tries alone succeeds; of several that try, one does."""


@dataclass(frozen=True)
class Row:
    """Of the paper's table 1. ``cost``: micro-dollars; None is by subscription."""

    accesses: int
    cost: float | None
    progress: str


TABLE_1: Mapping[str, Row] = {
    "S3": Row(3, 15, OBSTRUCTION),
    "GS": Row(3, 30, OBSTRUCTION),
    "AS": Row(3, 0.108, OBSTRUCTION),
    "RS": Row(3, 8.640, OBSTRUCTION),
    "AQ": Row(3, 0.15, DEADLOCK),
    "RQ": Row(3, 30.144, DEADLOCK),
    "DDB": Row(2, None, DEADLOCK),
    "GDS": Row(4, 1.2, DEADLOCK),
}
COMPOSITE = 40.0
"""Micro-dollars for an acquire, "cerca de"."""
NEAR = 0.05
"""What counts as about the same cost, and as the third of four latencies."""
SECONDS_A_MONTH = 30 * 24 * 3600


def findings(measured: Measured) -> Iterator[Finding]:
    yield _accesses(measured)
    yield _costs(measured)
    yield _progress(measured)
    yield _composite_progress(measured)
    yield _composite_cost(measured)
    yield _break_even(measured)
    yield _third_of_four(measured)
    yield _near_datastore(measured)
    yield _ratio(measured, "AR/NAR", "four object stores take twice as long as four other services", 2.0)
    yield _ratio(measured, "TR/NAR", "the four fastest take half as long", 0.5)
    yield _depsky(measured)
    yield _scfs(measured)
    yield _upkeep(measured)
    yield _bases_in_a_crowd(measured)
    yield _composites_in_a_crowd(measured)


def _accesses(measured: Measured) -> Finding:
    published = [row.accesses for row in TABLE_1.values()]
    ours = [sum(measured.accesses(service).values()) for service in TABLE_1]
    return Finding(
        "table 1: accesses to acquire a lease that nobody else wants",
        _listed(map(str, published)),
        _listed(map(str, ours)),
        Verdict.HOLDS if ours == published else Verdict.REFUTED,
        "signatures in the names of objects, or each foreign entry takes one more to be read",
    )


def _costs(measured: Measured) -> Finding:
    published = {service: row.cost for service, row in TABLE_1.items() if row.cost is not None}
    ours = {service: measured.cost(service) for service in published}
    same = all(math.isclose(ours[service], published[service]) for service in published)
    return Finding(
        "table 1: what it costs, in micro-dollars",
        _listed(f"{each:g}" for each in published.values()),
        _listed(f"{each:g}" for each in ours.values()),
        Verdict.ONLY_IF if same else Verdict.NOT_REPRODUCED,
        "an access costs what is worked back from these: the paper gives no prices, and only that of S3 is known "
        "otherwise",
    )


def _progress(measured: Measured) -> Finding:
    ours = [progress_of(measured, service) for service in TABLE_1]
    return Finding(
        "table 1: of several that try, one is sure to succeed, but on object stores",
        _listed(service for service, row in TABLE_1.items() if row.progress == DEADLOCK),
        _listed(service for service in TABLE_1 if progress_of(measured, service) == DEADLOCK),
        Verdict.HOLDS if ours == [row.progress for row in TABLE_1.values()] else Verdict.REFUTED,
        "two clients that ask once each, in every order of events",
    )


def progress_of(measured: Measured, service: str) -> str:
    return DEADLOCK if measured.one_is_sure_to_succeed(SERVICES[service].kind) else OBSTRUCTION


def _composite_progress(measured: Measured) -> Finding:
    shown = measured.by_turns
    return Finding(
        "the composite is only obstruction-free, whatever its bases are",
        "obstruction-free",
        f"{shown.found}, in {shown.steps} steps" if shown.found else "nothing of the kind",
        Verdict.HOLDS if shown.found and shown.mended else Verdict.REFUTED,
        f"two that keep each other out of a quorum for ever (trinco exhibit {BY_TURNS}); waiting by priority does not",
    )


def nearest(measured: Measured) -> tuple[str, ...]:
    """Of four services of four providers, those whose cost is nearest to the paper's."""
    return min(one_of_each_provider(), key=lambda members: abs(measured.cost(*members) - COMPOSITE))


def _composite_cost(measured: Measured) -> Finding:
    members = nearest(measured)
    four = "; ".join(f"{name} {measured.cost(*COMPOSITES[name]):.4g}" for name in COMPOSITES)
    found = measured.cost(*members)
    return Finding(
        "an acquire over four services, in micro-dollars",
        f"about {COMPOSITE:g}",
        f"{four}; {'+'.join(members)} {found:.4g}",
        Verdict.ONLY_IF if abs(found / COMPOSITE - 1) < NEAR else Verdict.NOT_REPRODUCED,
        "these four are meant, of four providers; the paper does not say which, and of its own mixes none costs that. "
        "DynamoDB's subscription is not counted",
    )


def break_even(measured: Measured, members: Sequence[str]) -> float:
    """Acquires in a month that cost as much as four machines."""
    return prices().dollars_for_four_machines_a_month * 1e6 / measured.cost(*members)


def _break_even(measured: Measured) -> Finding:
    most = {name: break_even(measured, COMPOSITES[name]) for name in ("AR", "NAR")}
    dollars = prices().dollars_for_four_machines_a_month
    return Finding(
        "cheaper than four machines that run a lock service",
        f"{dollars:,g} dollars a month, that is {dollars / COMPOSITE:.3g} million acquires",
        "; ".join(f"{name}: up to {each / 1e6:.3g} million acquires" for name, each in most.items()),
        Verdict.ONLY_IF,
        f"fewer than that are made: {most['AR'] / SECONDS_A_MONTH:.2g} a second over AR. Attempts that fail are paid "
        "for too",
    )


def _third_of_four(measured: Measured) -> Finding:
    worst = max(abs(row["lease"] / row["third_in_run"] - 1) for row in measured.thirds)
    drawn = max(abs(row["deviation"]) for row in measured.thirds)
    return Finding(
        "the composite takes as long as its third fastest base",
        "similar",
        f"the same, within {worst:.1%} of it in the same run, {drawn:.1%} of its mean",
        Verdict.HOLDS if worst < NEAR else Verdict.REFUTED,
        f"{len(measured.thirds)} combinations of stores and laws of delay; without a token",
    )


def base_latency(service: str) -> float:
    """On average, alone; by our calibration."""
    return ACCESSES[SERVICES[service].kind] * SERVICES[service].access


def _near_datastore(measured: Measured) -> Finding:
    ratios = [row["latency"]["NAR"] / base_latency("GDS") for row in measured.mixes]
    between = all(
        max(base_latency("DDB"), base_latency("AQ")) < row["latency"]["NAR"] < base_latency("RQ")
        for row in measured.mixes
    )
    return Finding(
        "NAR takes as long as Datastore, longer than DynamoDB and Azure Queue, less than Rackspace Queue",
        "similar",
        f"{_range(ratios)} times Datastore; {'between them' if between else 'not between them'}",
        Verdict.ONLY_IF if between else Verdict.NOT_REPRODUCED,
        "single services are as fast as we take them to be: their means are calibrated to the paper's text",
    )


def _ratio(measured: Measured, name: str, claim: str, published: float) -> Finding:
    ratios = [row[name] for row in measured.mixes]
    right = all((ratio > 1) is (published > 1) for ratio in ratios)
    return Finding(
        claim,
        f"{name} = {published:g}",
        _range(ratios),
        Verdict.ONLY_IF if right else Verdict.NOT_REPRODUCED,
        "the same; the order holds under every law of delay, the ratio rests on the means",
    )


def _depsky(measured: Measured) -> Finding:
    simulated = [each["ratio"] for each in measured.depsky["simulated"]]
    reading = {
        name: _range([each["ratio"] for each in measured.depsky["drawn"] if each["assumption"] == name])
        for name in list(ASSUMPTIONS)[1:]
    }
    others = "; ".join(f"{name}: {each}" for name, each in reading.items())
    twice = all(abs(ratio / 2 - 1) < 0.25 for ratio in simulated)
    return Finding(
        "DepSky takes twice as long as AR and four times as long as NAR, since it goes by phases",
        "TD/AR = 2, TD/NAR = 4",
        f"TD/AR {_range(simulated)}, TD/NAR {_range([row['TD/NAR'] for row in measured.mixes])}",
        Verdict.HOLDS if twice else Verdict.NOT_REPRODUCED,
        f"phases by themselves do not do it. TD/AR if something else is assumed: {others}",
    )


def _scfs(measured: Measured) -> Finding:
    fastest = all(min(row["latency"], key=row["latency"].__getitem__) == "TS" for row in measured.mixes)
    return Finding(
        "the lock service of SCFS is the fastest",
        "TS",
        f"TS/NAR {_range([row['TS/NAR'] for row in measured.mixes])}",
        Verdict.ONLY_IF if fastest else Verdict.NOT_REPRODUCED,
        f"its machines are near: {SCFS_ACCESS * 1000:g} ms there and back is our figure, the paper has none",
    )


def _upkeep(measured: Measured) -> Finding:
    renewing, releasing, at_once = (measured.upkeep(what) for what in (RENEW, RELEASE_RENEWED, RELEASE))
    in_order = all(row["TR"] < row["NAR"] < row["AR"] for row in (*renewing, *releasing))
    depsky_is_quick = all(
        row["TD"] < min(later["NAR"], later["AR"]) for row, later in zip(at_once, releasing, strict=True)
    )
    return Finding(
        "renewing and releasing come in the same order as acquiring, but for DepSky's releasing",
        "TR, NAR, AR",
        f"to renew AR/NAR {_over(renewing, 'AR')}, TR/NAR {_over(renewing, 'TR')}; to release "
        f"{_over(releasing, 'AR')} and {_over(releasing, 'TR')}",
        Verdict.ONLY_IF if in_order and depsky_is_quick else Verdict.NOT_REPRODUCED,
        "whoever releases lists first what there is to remove, as the paper's bases do and ours after a renewal; "
        "DepSky only deletes. Where all only delete, a transaction takes longest: AR/NAR "
        f"{_over(at_once, 'AR')}",
    )


def _over(rows: Sequence[Mapping[str, float]], name: str) -> str:
    return _range([row[name] / row["NAR"] for row in rows])


def growth(measured: Measured, name: str) -> float:
    """How many times as long the largest crowd waits as one client alone."""
    waits = measured.waits(name)
    return waits[-1] / waits[0]


def _bases_in_a_crowd(measured: Measured) -> Finding:
    growths = {kind: growth(measured, kind) for kind in ("object", "queue", "conditional", "transactional")}
    others = [each for kind, each in growths.items() if kind != "object"]
    return Finding(
        "deadlock-free bases cope better with many clients than object stores",
        "figure 3",
        f"{measured.extent.clients[-1]} clients wait so many times as long as one: "
        + ", ".join(f"{kind} {each:.3g}" for kind, each in growths.items()),
        Verdict.HOLDS if max(others) < growths["object"] else Verdict.NOT_REPRODUCED,
        "here all of them back off for up to a second; in the paper only those on object stores do",
    )


def _composites_in_a_crowd(measured: Measured) -> Finding:
    clients = measured.extent.clients
    last = {name: measured.waits(name) for name in ("NAR", "AR")}
    factor = clients[-1] / clients[1]
    linear = all(waits[-1] / waits[1] < 2 * factor for waits in last.values())
    shown = _listed(f"{name} {waits[-1] / waits[1]:.3g}" for name, waits in last.items())
    by_priority = ", ".join(
        f"{name} {waits[-1] / waits[1]:.3g}" for name in last for waits in [measured.waits(f"{name}, by priority")]
    )
    return Finding(
        "how long clients wait for a composite grows with their number",
        "linearly",
        f"{clients[-1]} clients are {factor:g} times {clients[1]}, and wait so many times as long: {shown}",
        Verdict.HOLDS if linear else Verdict.NOT_REPRODUCED,
        f"the more try, the more often nobody gets a quorum. By priority instead of random back-off: {by_priority}",
    )


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)
