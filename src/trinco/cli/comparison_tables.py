"""The tables that ``trinco compare`` prints for people."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from trinco.cli.output import number, print_table
from trinco.core.claims import Claims
from trinco.lab.comparison import Compared
from trinco.lab.comparison_measures import Range
from trinco.lab.election_comparison import ElectionCost, ElectionsCompared
from trinco.lab.properties import NAMES, Finding
from trinco.lab.vote_loss import Loss, Measured

NOTES = """\
alone       one process asks again and again, nobody else ever does
in turn     one process after the other, in a random order, each when all is quiet
light       requests at random, one in 10 message times
saturated   everybody asks again as soon as it has left
load        how much of the time requests would fill if they could follow each other at once
parallel    messages to several are sent together; sequential: each after the one before, as the slides count
response    from asking to leaving; everybody stays inside for 1 message time, in the last table for 5
Where a token goes round although nobody asks, the messages of an idle system grow with time."""

Row = Sequence[str]


def print_comparison(compared: Sequence[Compared]) -> None:
    sizes = [f"n={each.n}" for each in compared[0].measures]
    headings = ("protocol", "messages per entry", "delay", "fairness", "overtaken", "survives", "network")
    print_table("Claimed", headings, [_claims_row(each) for each in compared])
    print_table(
        "Messages per entry",
        ("protocol", "load", "claimed", *sizes),
        [row for each in compared for row in _loads(each)],
    )
    print_table(
        "Delay when asking alone, in message times",
        ("protocol", "counted", "claimed", *sizes),
        [row for each in compared for row in _delays(each)],
    )
    print_table(
        f"When many ask, n = {compared[0].measures[-1].n}, in message times",
        ("protocol", "synchronisation delay", "response, light", "response, saturated", "worst bypass", "Jain's index"),
        [_crowd_row(each) for each in compared],
    )
    print_table("Properties", ("protocol", *NAMES, "established"), [_properties_row(each) for each in compared])
    use = compared[0].utilisation
    print_table(
        f"Share of time inside, by offered load, n = {use[0].n}",
        ("protocol", *(f"{each.offered:g}" for each in use)),
        [(each.subject.title, *(f"{some.share:.2f}" for some in each.utilisation)) for each in compared],
    )
    print(NOTES)
    for each in compared:
        for text in each.violations:
            print(f"VIOLATED, {each.subject.title}: {text}")


def _claims_row(each: Compared) -> Row:
    claims = each.subject.entry.claims
    return (
        each.subject.title,
        str(claims.messages_per_entry),
        str(claims.delay),
        claims.fairness.value,
        f"at most {claims.bypass}" if claims.bypass else "no bound",
        _survives(claims),
        claims.network.name.lower(),
    )


def _survives(claims: Claims) -> str:
    faults = [(claims.crashes, "crashes"), (claims.byzantine, "liars")]
    return ", ".join(f"{formula} {what}" for formula, what in faults if formula.text != "0") or "no fault"


def _loads(each: Compared) -> Iterator[Row]:
    """A row for each load; what is said once stands in the first."""
    title, claimed = each.subject.title, str(each.subject.entry.claims.messages_per_entry)
    by_size = [asdict(measures.messages) for measures in each.measures]
    for load in by_size[0]:
        yield title, load.replace("_", " "), claimed, *(number(messages[load]) for messages in by_size)
        title = claimed = ""


def _delays(each: Compared) -> Iterator[Row]:
    claimed = str(each.subject.entry.claims.delay)
    yield each.subject.title, "parallel", claimed, *(_span(measures.delay) for measures in each.measures)
    yield "", "sequential", "", *(_span(measures.sequential_delay) for measures in each.measures)


def _span(delay: Range | None) -> str:
    if delay is None:
        return "-"
    least, most = number(delay.least), number(delay.most)
    return least if least == most else f"{least}..{most}"


def _crowd_row(each: Compared) -> Row:
    measures = each.measures[-1]
    return (
        each.subject.title,
        number(measures.synchronisation_delay),
        number(measures.light_response),
        number(measures.saturated_response),
        f"{measures.bypass}",
        number(measures.jain),
    )


def _properties_row(each: Compared) -> Row:
    properties = each.properties
    return each.subject.title, *(_found(properties.findings[name]) for name in NAMES), properties.established


def _found(finding: Finding) -> str:
    if finding.holds is None:
        return finding.how
    if finding.holds:
        return "yes"
    return "VIOLATED" if finding.claimed else "no"


def print_elections(compared: Sequence[ElectionsCompared]) -> None:
    sizes = list(dict.fromkeys(cost.n for cost in compared[0].costs))
    headings = ("protocol", "who notices", "messages claimed", *(f"n={n}" for n in sizes))
    print_table("Messages of an election", headings, [row for each in compared for row in _by_size(each, sizes)])
    largest = sizes[-1]
    print_table(
        f"By the rank of who notices, n = {largest}",
        ("protocol", "rank", "claimed", "messages", "to the dead", "others", "of which", "time", "leader"),
        [_by_rank(each, cost) for each in compared for cost in each.costs if cost.n == largest],
    )
    print("Only the highest, the leader, has crashed. Ranks count from the lowest. Messages are those that the slides")
    print("name; what goes to the dead is among them, or in brackets where the claim leaves it out, as the ring's does")
    print("(2 for each who notices). Others (acknowledgements) are not among them. Time includes time-outs.")
    for each in compared:
        for cost in each.costs:
            if cost.violation:
                print(f"VIOLATED, {each.subject.title}, n={cost.n}: {cost.violation}")


def _by_size(each: ElectionsCompared, sizes: Sequence[int]) -> Iterator[Row]:
    highest = str(each.subject.entry.claims.messages_per_entry).rpartition("..")[2]
    kinds = (
        ("the lowest, d=1", each.formula.text, 1),
        ("the highest that lives, d=n-1", "", -1),
        ("all", highest, None),
    )
    title = each.subject.title
    for who, claimed, rank in kinds:
        costs = [each.of(n, rank if rank is None else rank % n) for n in sizes]
        yield title, who, claimed, *map(_counted, costs)
        title = ""


def _counted(cost: ElectionCost) -> str:
    """As the claim counts."""
    return f"{cost.messages - cost.unclaimed:,}" + (f" (+{cost.unclaimed:,})" if cost.unclaimed else "")


def _by_rank(each: ElectionsCompared, cost: ElectionCost) -> Row:
    return (
        each.subject.title,
        "all" if cost.rank is None else str(cost.rank),
        number(cost.predicted),
        _counted(cost),
        f"{cost.to_the_dead:,}",
        f"{cost.others:,}",
        ", ".join(f"{kind} {count:,}" for kind, count in cost.by_kind.items()),
        number(cost.time),
        "none" if cost.leader is None else f"p{cost.leader}",
    )


def print_vote_loss(losses: Sequence[Loss], measured: Sequence[Measured]) -> None:
    rates = list(dict.fromkeys(each.p for each in losses))
    sizes = list(dict.fromkeys((each.m, each.v) for each in losses))
    chance = {(each.m, each.v, each.p): each.probability for each in losses}
    print_table(
        "The chance that coordinators which forget let two in",
        ("coordinators", "votes needed", *(f"each reset with p = {rate:.2g}" for rate in rates)),
        [(str(m), str(v), *(f"{chance[m, v, rate]:.2e}" for rate in rates)) for m, v in sizes],
    )
    print_table(
        f"The same, simulated with a p that leaves something to count: p = {measured[0].p:g}",
        ("coordinators", "votes needed", "predicted", "two inside together", "share"),
        [
            (
                str(each.m),
                str(each.v),
                f"{each.predicted:.4f}",
                f"{each.violations} of {each.trials}",
                f"{each.share:.4f}",
            )
            for each in measured
        ],
    )
