"""Campos & Carvalho 1988 (seed 002), section 6: what the paper says an entry costs, and what it does cost.

The paper counts sqrt n arbiters for each node. They are m + 1, one of which runs at the node itself, where m is the
order of the plane and n = m**2 + m + 1. So there are m messages where the paper has sqrt n, which is m + 1/2 or so.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from math import isclose, sqrt

from trinco.lab.comparison import Subject
from trinco.lab.forks_measures import (
    APART,
    CONTENDERS,
    FORKS,
    LOADS,
    ORDERS,
    PAUSE,
    Alone,
    Costing,
    Crowded,
    Extent,
    Measured,
)
from trinco.lab.pieces import Listener
from trinco.lab.reproduction import Curve, Finding, Panel, Reproduction, Table, Verdict
from trinco.protocols.quorums.difference_sets import size
from trinco.protocols.quorums.planes import order_for

SUMMARY = "Campos & Carvalho 1988, projective forks: messages per entry, claim by claim"
PAPER = "Campos & Carvalho 1988: mutual exclusion with O(sqrt n) messages of 2 bits"

WORST, AVERAGE = 4.0, 1.5
"""As claimed, of sqrt n."""
TOLERANCE = 1.05
"""For what chance decides."""

FULL = Extent(
    (7, 13, 21, 31, 57, 73, 91, 133),
    (307, 553, 993),
    (10, 32, 92),
    counted=1_000,
    paired=3_000,
    seeds=4,
    rushes=(993, 9_507),
)
QUICK = Extent((7, 13, 21, 31), (), (10, 22), counted=300, paired=3_000, seeds=3)


def reproduce(executor: Executor | None, listener: Listener | None, *, quick: bool) -> Reproduction:
    measured = Measured(QUICK if quick else FULL, executor, listener)
    return Reproduction(PAPER, tuple(tables(measured)), tuple(findings(measured)), tuple(panels(measured)))


def tables(measured: Measured) -> Iterator[Table]:
    for name in LOADS:
        yield _costs(measured, name)
    yield _pairs(measured)
    yield _preempted(measured)
    yield _symmetry(measured)
    if measured.extent.rushes:
        yield _rushes(measured)


def _rushes(measured: Measured) -> Table:
    rows = [(n, order_for(n), measured.rush(n)) for n in measured.extent.rushes]
    return Table(
        "Everybody asks once, all at the same time (time and memory are of this machine)",
        ("n", "order", "entries", "messages per entry", "seconds", "MiB"),
        tuple(
            (f"{n:,}", str(m), f"{run.entries:,}", f"{run.per_entry:.4g}", f"{run.seconds:.1f}", f"{run.mebibytes:.0f}")
            for n, m, run in rows
        ),
    )


def _costs(measured: Measured, name: str) -> Table:
    sizes = measured.sizes_of(FORKS)
    rows = [
        (label, *(_number(measured.cost(each, n, measured.loads[name])) for n in measured.sizes_of(each)))
        for label, each in CONTENDERS.items()
    ]
    counted = "" if name == "saturated" else f" ({measured.extent.counted:,} entries)"
    return Table(
        f"Messages per entry, {name} load: {LOADS[name]}{counted}",
        ("n", *(f"{n:,}" for n in sizes)),
        (
            ("order m of the plane", *(str(order_for(n)) for n in sizes)),
            *((*row, *("-" * (len(sizes) + 1 - len(row)))) for row in rows),
            ("claimed average: 1.5 sqrt n", *(_number(AVERAGE * sqrt(n)) for n in sizes)),
            ("claimed worst: 4 sqrt n", *(_number(WORST * sqrt(n)) for n in sizes)),
        ),
    )


def _pairs(measured: Measured) -> Table:
    rows = [
        (who, order, *(_number(measured.cost(FORKS, n, measured.pair(near, order))) for n in measured.extent.sizes))
        for who, near in (("neighbours", True), ("no neighbours", False))
        for order in ORDERS
    ]
    return Table(
        "Two active nodes: messages per entry; neighbours if one of them is the arbiter of both",
        ("who asks", "how", *(f"n={n}" for n in measured.extent.sizes)),
        tuple(rows),
    )


def _preempted(measured: Measured) -> Table:
    rows = [
        (f"{n}", *map(_number, (with_.per_entry, without.per_entry, with_.most, without.most, WORST * sqrt(n))))
        for n in measured.extent.sizes
        for with_, without in [(measured.preemption(FORKS, n), measured.preemption(APART, n))]
    ]
    return Table(
        f"Forks called back before they were used: messages take 0.01 to 20; the dearest of {measured.extent.seeds} "
        "runs on average, and the dearest entry",
        ("n", "a run", "a run, no piggy-backing", "an entry", "an entry, no piggy-backing", "claimed: 4 sqrt n"),
        tuple(rows),
    )


def _symmetry(measured: Measured) -> Table:
    numbers = sorted((*measured.extent.sizes, *measured.extent.padded))
    rows = [
        (f"{n}", _arrangement(n), *map(_number, (shares.mean, shares.most, shares.most / shares.mean, shares.jain)))
        for n in numbers
        for shares in [measured.shares(n)]
    ]
    return Table(
        "Symmetry: messages sent and received by a node for each entry, when everybody asks all the time",
        ("n", "plane", "mean", "busiest", "ratio", "Jain's index of entries"),
        tuple(rows),
    )


def _arrangement(n: int) -> str:
    order = order_for(n)
    return f"order {order}" + ("" if size(order) == n else f", {size(order) - n} fictitious")


def findings(measured: Measured) -> Iterator[Finding]:
    yield _best(measured)
    yield _first(measured)
    yield _worst(measured)
    yield _worst_on_average(measured)
    yield _average(measured)
    yield _two_active(measured, neighbours=True)
    yield _two_active(measured, neighbours=False)
    yield _one_message(measured)
    yield _symmetric(measured)
    yield _safe(measured)


def _best(measured: Measured) -> Finding:
    costs = [measured.cost(FORKS, n, Alone(again=True)) for n in measured.sizes_of(FORKS)]
    verdict = Verdict.REFUTED if any(costs) else Verdict.HOLDS
    return Finding("best: who is alone asks again", "0", _span(costs), verdict)


def _first(measured: Measured) -> Finding:
    costs = {n: measured.cost(FORKS, n, Alone(again=False)) for n in measured.sizes_of(FORKS)}
    exact = all(cost == 2 * order_for(n) for n, cost in costs.items())
    return Finding(
        "the first entry",
        "2 sqrt n",
        f"{'2m: ' if exact else ''}{_ends(costs)}",
        Verdict.HOLDS if exact else Verdict.REFUTED,
        "m < sqrt n: the arbiter beside the node costs nothing",
    )


def _worst(measured: Measured) -> Finding:
    """4 for each of the m arbiters elsewhere, and 2 for the node's own, whose fork may be elsewhere too."""
    sizes = measured.extent.sizes
    alone = {n: measured.outcomes[Costing(FORKS, n, measured.loads["low"])].most for n in sizes}
    preempted = {n: measured.preemption(FORKS, n).most for n in sizes}
    exactly = "4m + 2: " if all(cost == 4 * order_for(n) + 2 for n, cost in alone.items()) else ""
    return Finding(
        "worst: all forks are elsewhere",
        "4 sqrt n",
        f"one request at a time {exactly}{_ends(alone)}; among others {_ends(preempted)}",
        _only_if(_within(alone, WORST), _within(preempted, WORST)),
        "no fork is called back before it was used: each time costs three messages more",
    )


def _worst_on_average(measured: Measured) -> Finding:
    """In the dearest run."""
    sizes = measured.extent.sizes
    together = {n: measured.preemption(FORKS, n).per_entry for n in sizes}
    apart = {n: measured.preemption(APART, n).per_entry for n in sizes}
    return Finding(
        "no run costs more on average",
        "4 sqrt n",
        f"{_most_of_order(together)}m; without piggy-backing {_most_of_order(apart)}m",
        _only_if(_within(together, WORST), _within(apart, WORST)),
        "a fork and a request travel as one message",
    )


def _average(measured: Measured) -> Finding:
    sizes = measured.sizes_of(FORKS)
    costs = {name: {n: measured.cost(FORKS, n, load) for n in sizes} for name, load in measured.loads.items()}
    held = [_within(each, AVERAGE) for each in costs.values()]
    largest = max(sizes)
    ours = ", ".join(f"{name} {_number(each[largest])}" for name, each in costs.items())
    predicted = 4 * order_for(largest) ** 2 / (order_for(largest) + 1)
    return Finding(
        "on average",
        f"1.5 sqrt n ({_number(AVERAGE * sqrt(largest))} at n={largest})",
        f"{ours} at n={largest}",
        Verdict.HOLDS if all(held) else Verdict.ONLY_IF if any(held) else Verdict.REFUTED,
        "it takes i to hold half of its forks; if all ask equally often it holds one in m+1, which makes "
        f"4m*m/(m+1) = {_number(predicted)} under low load, more than Maekawa's 3m from m=4 on",
    )


def _two_active(measured: Measured, *, neighbours: bool) -> Finding:
    claimed = 1 if neighbours else 2
    costs = {
        order: [measured.cost(FORKS, n, measured.pair(neighbours, order)) for n in measured.extent.sizes]
        for order in ORDERS
    }
    in_turn, at_random, saturated = (max(each) <= claimed * TOLERANCE for each in costs.values())
    return Finding(
        f"two active nodes, {'' if neighbours else 'no '}neighbours",
        str(claimed),
        ", ".join(f"{order} {_span(each)}" for order, each in costs.items()),
        _only_if(at_random and saturated, in_turn),
        "they ask at random or all the time: half of the entries find the fork where it is. Strictly in turn, none do",
    )


def _one_message(measured: Measured) -> Finding:
    sizes = measured.extent.sizes
    together = {n: measured.cost(FORKS, n, Crowded()) for n in sizes}
    apart = {n: measured.cost(APART, n, Crowded()) for n in sizes}
    paused = {n: measured.cost(FORKS, n, Crowded(pause=True)) for n in sizes}
    saves = [all(each[n] < apart[n] for n in sizes) for each in (together, paused)]
    return Finding(
        "a fork and a request at once are one message",
        "assumed; no code for it",
        f"saturated: {_most_of_order(together)}m, {_most_of_order(apart)}m if they are two; "
        f"{_most_of_order(paused)}m if whoever leaves asks {PAUSE:g} later",
        Verdict.ONLY_IF if all(saves) else Verdict.REFUTED,
        "the fourth code of each direction, which the print leaves unused, stands for the two together",
    )


def _symmetric(measured: Measured) -> Finding:
    """The busiest node of each system, as a multiple of the mean."""
    planes, padded = (
        [shares.most / shares.mean for shares in map(measured.shares, numbers)]
        for numbers in (measured.extent.sizes, measured.extent.padded)
    )
    held = [max(each) <= TOLERANCE for each in (planes, padded)]
    return Finding(
        "symmetry: every node has the same work",
        "all n",
        f"the busiest node has {_span(planes)} times the mean; with fictitious nodes {_span(padded)} times",
        _only_if(*held),
        "n = m*m + m + 1: else somebody runs the arbiters of fictitious nodes",
    )


def _safe(measured: Measured) -> Finding:
    outcomes = [
        each for piece, each in measured.outcomes.items() if getattr(piece, "subject", FORKS).name == FORKS.name
    ]
    violations = [each.violation for each in outcomes if each.violation]
    return Finding(
        "mutual exclusion, and nobody waits for ever",
        "always",
        violations[0] if violations else f"{sum(each.entries for each in outcomes):,} entries, no violation",
        Verdict.REFUTED if violations else Verdict.ONLY_IF,
        "the rules are mended: as printed they fail (trinco exhibit forks/F1 and those after it)",
    )


def panels(measured: Measured) -> Iterator[Panel]:
    for name, what in LOADS.items():
        curves = _told_apart([_curve(measured, label, each, name) for label, each in CONTENDERS.items()])
        yield Panel(f"{name} load: {what}", "n", "messages per entry", (*curves, *_claimed(measured)), logarithmic=True)


def _told_apart(curves: Sequence[Curve]) -> Iterator[Curve]:
    """A curve that lies beneath a later one says so: it could not be seen."""
    for place, curve in enumerate(curves):
        above = [each.label for each in curves[place + 1 :] if _covers(each, curve)]
        yield replace(curve, label=f"{curve.label}, beneath {above[-1]}") if above else curve


def _covers(above: Curve, beneath: Curve) -> bool:
    return all(isclose(one, other, rel_tol=0.02) for one, other in zip(above.ys, beneath.ys, strict=False))


def _curve(measured: Measured, label: str, subject: Subject, load: str) -> Curve:
    sizes = measured.sizes_of(subject)
    return Curve(label, sizes, tuple(measured.cost(subject, n, measured.loads[load]) for n in sizes))


def _claimed(measured: Measured) -> Sequence[Curve]:
    sizes = measured.sizes_of(FORKS)
    claims = (("claimed worst: 4 sqrt n", WORST), ("claimed average: 1.5 sqrt n", AVERAGE))
    return [Curve(label, sizes, tuple(each * sqrt(n) for n in sizes), measured=False) for label, each in claims]


def _only_if(held: bool, held_otherwise: bool) -> Verdict:
    """A claim under a condition, and without it."""
    return Verdict.REFUTED if not held else Verdict.HOLDS if held_otherwise else Verdict.ONLY_IF


def _within(costs: Mapping[int, float], claimed: float) -> bool:
    return all(cost <= claimed * sqrt(n) for n, cost in costs.items())


def _ends(costs: Mapping[int, float]) -> str:
    """The first and the last."""
    first, last = min(costs), max(costs)
    return f"{_number(costs[first])} at n={first}, {_number(costs[last])} at n={last}"


def _span(costs: Sequence[float]) -> str:
    least, most = _number(min(costs)), _number(max(costs))
    return least if least == most else f"{least} to {most}"


def _most_of_order(costs: Mapping[int, float]) -> str:
    """The dearest, as a multiple of m."""
    return _number(max(cost / order_for(n) for n, cost in costs.items()))


def _number(value: float) -> str:
    return f"{value:.4g}"
