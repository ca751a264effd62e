"""Bessani, Fraga & Lung 2005 (seed 000): what the paper says that the Byzantine bakery costs and does, and what we see.

The paper measures nothing: its numbers are accesses to the servers, orders of growth, and bounds on faults. k is how
many clients ask at the same time, |U| is how many servers there are, 3f+1, and q is a quorum of them, 2f+1.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor

from trinco.lab.bakery_costs import ALGORITHM2, LIVE, OPTIMISED, VARIANTS, Crowd, servers_for
from trinco.lab.bakery_findings import findings, number
from trinco.lab.bakery_measures import PRINTED, Extent, Measured
from trinco.lab.exhibits.catalogue import find
from trinco.lab.pieces import Listener
from trinco.lab.reproduction import Curve, Panel, Reproduction, Table
from trinco.protocols.bakery.quorums import quorum

SUMMARY = "Bessani, Fraga & Lung 2005, the Byzantine bakery: accesses, messages and bounds, claim by claim"
PAPER = "Bessani, Fraga & Lung 2005: the Byzantine bakery (O confeiteiro bizantino)"


FULL = Extent(
    faults=(1, 2, 3, 4),
    crowds=(1, 2, 3, 4, 6, 8, 12, 16),
    crowd_by_f=8,
    rounds=12,
    passing={OPTIMISED: (10, 100, 1_000), ALGORITHM2: (10, 100)},
    seeds=100,
    long=(1_000, 4),
)
QUICK = Extent(
    faults=(1, 2, 3),
    crowds=(1, 2, 4, 8),
    crowd_by_f=4,
    rounds=8,
    passing={OPTIMISED: (10, 100), ALGORITHM2: (10, 100)},
    seeds=20,
    long=(800, 1),
)


def reproduce(executor: Executor | None, listener: Listener | None, *, quick: bool) -> Reproduction:
    measured = Measured(QUICK if quick else FULL, executor, listener)
    return Reproduction(PAPER, tuple(tables(measured)), tuple(findings(measured)), tuple(panels(measured)))


def tables(measured: Measured) -> Iterator[Table]:
    yield _alone(measured)
    yield _crowds(measured)
    yield _by_f(measured)
    yield _passing(measured)
    yield _certificates(measured)
    yield _as_printed(measured)


def _alone(measured: Measured) -> Table:
    rows = [
        (variant, f"{f}", f"{servers_for(f)}", *map(str, cost.accesses), _plus(cost.messages), f"{sum(cost.messages)}",
         f"{cost.between_servers}", f"{cost.delay:g}")
        for variant in VARIANTS
        for f in measured.extent.faults
        for cost in [measured.alone(variant, f)]
    ]  # fmt: skip
    headings = ("protocol", "f", "|U|", "accesses to enter", "to leave", "messages", "together", "between servers",
                "message times to enter")  # fmt: skip
    return Table("One entry that nobody else wants", headings, tuple(rows))


def _crowds(measured: Measured) -> Table:
    shown: Sequence[tuple[str, Callable[[Crowd], float | None]]] = (
        ("messages per entry", lambda crowd: crowd.per_entry),
        ("accesses to enter", lambda crowd: crowd.accesses),
        ("mean wait", lambda crowd: crowd.wait),
        ("overtaken, at worst", lambda crowd: crowd.overtaken),
        ("overtaken with a ticket", lambda crowd: crowd.overtaken_with_ticket),
    )
    crowds = {variant: [measured.crowd(variant, k) for k in measured.extent.crowds] for variant in VARIANTS}
    rows = [
        (variant, what, *(number(value) for value in values))
        for what, read in shown
        for variant in VARIANTS
        for values in [[read(crowd) for crowd in crowds[variant]]]
        if None not in values
    ]
    return Table(
        "k clients ask all the time, f=1; waits in message times, overtaken from asking or from when q servers have "
        "the ticket",
        ("protocol", "", *(f"k={k}" for k in measured.extent.crowds)),
        tuple(rows),
    )


def _by_f(measured: Measured) -> Table:
    rows = [
        (f"{f}", f"{servers_for(f)}", *map(number, (crowd.per_entry, crowd.with_clients,
         8.0 * servers_for(f), crowd.between_servers)))
        for f in measured.extent.faults
        for crowd in [measured.crowd_by_f(f)]
    ]  # fmt: skip
    return Table(
        f"{OPTIMISED} with k={measured.extent.crowd_by_f}: messages per entry",
        ("f", "|U|", "all", "of clients and to them", "8|U|", "between servers"),
        tuple(rows),
    )


def _passing(measured: Measured) -> Table:
    rows = [
        (variant, f"{seen:,}", f"{passed.entries:,}", number(passed.per_entry), number(passed.wait))
        for variant in measured.extent.passing
        for seen, passed in measured.passed(variant).items()
    ]
    return Table(
        f"An open system: {LIVE} clients at any time, f=1",
        ("protocol", "clients that came by", "entries", "messages per entry", "mean wait"),
        tuple(rows),
    )


def _certificates(measured: Measured) -> Table:
    rows = [
        (f"{f}", f"{quorum(servers_for(f), f)}", *(f"{size.signatures} in {size.length:,}" for size in sizes.values()))
        for f in measured.extent.faults
        for sizes in [measured.sizes(f)]
    ]
    return Table(
        "Certificates: signatures in the largest message of a kind, and its bytes with 64 for each signature",
        ("f", "q", *measured.sizes(1)),
        tuple(rows),
    )


def _as_printed(measured: Measured) -> Table:
    rows = [
        (name.partition("/")[2], find(name).title, shown.found or "nothing", f"{shown.steps}", "yes" * shown.mended)
        for name in PRINTED
        for shown in [measured.shown(name)]
    ]
    return Table(
        "The paper's rules as printed, in the smallest instances that break them (trinco exhibit bakery/F1)",
        ("", "what is printed", "what is found", "steps", "holds, mended"),
        tuple(rows),
    )


def panels(measured: Measured) -> Iterator[Panel]:
    title = "k clients ask all the time, f=1"
    yield Panel(title, "k", "messages per entry", _over_k(measured, lambda crowd: crowd.per_entry), logarithmic=True)
    yield Panel(
        title, "k", "mean wait, in message times", _over_k(measured, lambda crowd: crowd.wait), logarithmic=True
    )
    faults = measured.extent.faults
    servers = [servers_for(f) for f in faults]
    alone = [
        _curve(f"{variant}, alone", servers, [sum(measured.alone(variant, f).messages) for f in faults])
        for variant in VARIANTS
    ]
    crowd = [measured.crowd_by_f(f).per_entry for f in faults]
    crowded = _curve(f"{OPTIMISED}, k={measured.extent.crowd_by_f}", servers, crowd)
    yield Panel("fewer than a third of the servers may lie", "|U| = 3f+1", "messages per entry", (*alone, crowded))


def _over_k(measured: Measured, read: Callable[[Crowd], float]) -> tuple[Curve, ...]:
    crowds = measured.extent.crowds
    return tuple(_curve(variant, crowds, [read(measured.crowd(variant, k)) for k in crowds]) for variant in VARIANTS)


def _curve(label: str, xs: Sequence[int], ys: Sequence[float]) -> Curve:
    return Curve(label, tuple(map(float, xs)), tuple(map(float, ys)))


def _plus(pair: tuple[int, int]) -> str:
    return f"{pair[0]} + {pair[1]}"
