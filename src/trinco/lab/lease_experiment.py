"""Mendes, Oliveira & Bessani (seed 004): what a lease over clouds costs and how long it takes, and what we see.

Table 1 is counted and priced (``lease_costs``). Of figures 2 and 3 our copy has only what the text says of them: how
long the base leases take, and ratios. Delays are drawn from laws that are calibrated to that text, one mean per service
(``lease_latency``), so what counts are orders and ratios, under every law. AR, NAR, TR are the paper's composites: four
object stores, four other services, the four fastest; TD and TS are the locks of DepSky and SCFS.
"""

from collections.abc import Iterator
from concurrent.futures import Executor

from trinco.lab.lease_costs import one_of_each_provider, prices
from trinco.lab.lease_findings import TABLE_1, break_even, findings, nearest, progress_of
from trinco.lab.lease_latency import ASSUMPTIONS, COMPOSITES, LAWS
from trinco.lab.lease_latency import QUICK as STEADY
from trinco.lab.lease_measures import CROWDED, Extent, Measured
from trinco.lab.lease_upkeep import RELEASE, RELEASE_RENEWED, RENEW
from trinco.lab.pieces import Listener
from trinco.lab.reproduction import Curve, Panel, Reproduction, Table

SUMMARY = "Mendes, Oliveira & Bessani, leases over clouds: accesses, costs and latency, claim by claim"
PAPER = "Mendes, Oliveira & Bessani: Byzantine fault-tolerant mutual exclusion in the cloud, sections 4.5 and 5"

FULL = Extent(acquisitions=2_000, samples=20_000, laws=tuple(LAWS), clients=(1, 2, 5, 10), seeds=4)
QUICK = Extent(acquisitions=200, samples=2_000, laws=STEADY, clients=(1, 2, 5), seeds=1)

LATENCIES = ("AR", "NAR", "TR", "TD", "TS")
RATIOS = ("AR/NAR", "TR/NAR", "TD/NAR", "TS/NAR")
A_MONTH = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Millions of acquires: as many dollars as one costs micro-dollars, each."""


def reproduce(executor: Executor | None, listener: Listener | None, *, quick: bool) -> Reproduction:
    measured = Measured(QUICK if quick else FULL, executor, listener)
    return Reproduction(PAPER, tuple(tables(measured)), tuple(findings(measured)), tuple(panels(measured)))


def tables(measured: Measured) -> Iterator[Table]:
    yield _table_1(measured)
    yield _composites(measured)
    yield _latency(measured)
    yield _upkeep(measured)
    yield _depsky(measured)
    yield _crowds(measured)


def _table_1(measured: Measured) -> Table:
    services = prices().services
    rows = []
    for service, row in TABLE_1.items():
        asked = measured.accesses(service)
        ours = "subscription" if services[service].by_subscription else f"{measured.cost(service):g}"
        rows.append(
            (f"{services[service].name} ({service})", f"{row.accesses}", f"{sum(asked.values())}",
             ", ".join(f"{count} {what}" for what, count in asked.items()),
             "subscription" if row.cost is None else f"{row.cost:g}", ours,
             row.progress, progress_of(measured, service))
        )  # fmt: skip
    headings = ("service", "accesses, published", "ours", "which", "micro-dollars, published", "by our prices",
                "free of, published", "as we see it")  # fmt: skip
    title = f"Table 1: a lease that nobody else wants; prices of {prices().date}, version {prices().version}"
    return Table(title, headings, tuple(rows))


def _composites(measured: Measured) -> Table:
    mixes = sorted(one_of_each_provider(), key=lambda members: measured.cost(*members))
    named = {
        **COMPOSITES,
        "cheapest of four providers": mixes[0],
        "dearest of four providers": mixes[-1],
        "nearest to the paper's 40": nearest(measured),
    }
    rows = tuple(
        (
            name,
            "+".join(members),
            f"{measured.cost(*members):.4g}",
            f"{break_even(measured, members) / 1e6:.3g} million",
        )
        for name, members in named.items()
    )
    dollars = prices().dollars_for_four_machines_a_month
    headings = ("four services", "which", "micro-dollars for an acquire", f"acquires for {dollars:,g} dollars")
    return Table("What an acquire costs at all four services (DynamoDB's subscription apart)", headings, rows)


def _latency(measured: Measured) -> Table:
    published = ("published", *("-" for _ in LATENCIES), "2", "0.5", "4", "below 1")
    rows = [
        (row["law"], *(f"{row['latency'][name]:.3f}" for name in LATENCIES), *(f"{row[name]:.2f}" for name in RATIOS))
        for row in measured.mixes
    ]
    return Table(
        f"Seconds until a lease is held that nobody else wants, mean of {measured.extent.acquisitions:,}; the means of "
        "single services are our calibration (the paper's Figure 2)",
        ("law of delay", *LATENCIES, *RATIOS),
        (published, *rows),
    )


def _upkeep(measured: Measured) -> Table:
    rows = tuple(
        (what, law, *(f"{means[name]:.3f}" if name in means else "-" for name in LATENCIES))
        for what in (RENEW, RELEASE, RELEASE_RENEWED)
        for law, means in zip(measured.extent.laws, measured.upkeep(what), strict=True)
    )
    title = "Seconds until a lease is renewed, and until it is let go of at a quorum (Figure 2, too)"
    return Table(title, ("what", "law of delay", *LATENCIES), rows)


def _depsky(measured: Measured) -> Table:
    laws = measured.extent.laws
    drawn = {(each["assumption"], each["law"]): each["ratio"] for each in measured.depsky["drawn"]}
    rows = tuple((name, *(f"{drawn[name, law]:.2f}" for law in laws)) for name in ASSUMPTIONS)
    return Table(
        "DepSky's three phases against four object stores by themselves: how many times as long (published: 2)",
        ("assumed", *laws),
        rows,
    )


def _crowds(measured: Measured) -> Table:
    rows = tuple((name, *(f"{wait:.2f}" for wait in measured.waits(name))) for name in CROWDED)
    headings = ("clients", *map(str, measured.extent.clients))
    return Table(
        "Seconds until a lease is held that many want, released at once (the paper's Figure 3)", headings, rows
    )


def panels(measured: Measured) -> Iterator[Panel]:
    clients = tuple(map(float, measured.extent.clients))
    curves = tuple(Curve(name, clients, tuple(measured.waits(name))) for name in CROWDED)
    yield Panel("a lease that many want (the paper's Figure 3)", "clients", "seconds to wait", curves, logarithmic=True)
    machines = prices().dollars_for_four_machines_a_month
    yield Panel(
        "what leases cost in a month",
        "millions of acquires in a month",
        "dollars",
        (
            *(_dollars(name, measured.cost(*COMPOSITES[name])) for name in ("AR", "NAR")),
            Curve("four machines (published)", A_MONTH, (machines,) * len(A_MONTH), measured=False),
        ),
        logarithmic=True,
    )


def _dollars(label: str, each: float) -> Curve:
    return Curve(label, A_MONTH, tuple(millions * each for millions in A_MONTH))
