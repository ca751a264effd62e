"""Bessani, Fraga & Lung 2005 (seed 000), claim by claim: what the paper says, what we see, and what is left of it.

The paper measures nothing: its numbers are accesses to the servers, orders of growth, and bounds on faults. What it
says of the equivalence of grouped and single accesses (5.1) cannot be measured, and is left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from trinco.lab.bakery_costs import ALGORITHM2, BROADCAST, FIRST, LIVE, ONE_ROUND, OPTIMISED, servers_for
from trinco.lab.bakery_measures import Measured
from trinco.lab.bakery_silence import Shown, WithoutServers
from trinco.lab.reproduction import Finding, Verdict

MOST_MESSAGES = 45
"""Per entry with f=1, as we claim."""
TOLERANCE = 1.1
"""For what chance decides."""


def findings(measured: Measured) -> Iterator[Finding]:
    yield _quorums(measured)
    yield _available(measured)
    yield _reading(measured)
    yield _reads_end(measured)
    yield _exclusive(measured)
    yield _fair(measured)
    yield _transient(measured)
    yield _adaptive_steps(measured)
    yield _adaptive(measured)
    yield _printed_accesses(measured)
    yield _alone_accesses(measured)
    yield _contended_accesses(measured)
    yield _alone_messages(measured)
    yield _contended_messages(measured)
    yield _broadcast_messages(measured)
    yield _reset(measured)
    yield _removal(measured)
    yield _readmitted(measured)
    yield _unerring(measured)
    yield _justified(measured)
    yield _certificate_size(measured)


def _quorums(measured: Measured) -> Finding:
    shown = measured.shown("bakery/F1")
    return Finding(
        "section 2: of |U| >= 3f+1 servers any 2f+1 are a quorum",
        "two share f+1",
        f"with |U|=5, f=1: {shown.found}, in {shown.steps} steps",
        _mended(shown),
        "|U| = 3f+1; in general ceil((|U|+f+1)/2) are (trinco exhibit bakery/F1)",
    )


def _mended(*shown: Shown) -> Verdict:
    """A rule that breaks something, in one way or several, and does not once it is mended."""
    if all(each.found is None for each in shown):
        return Verdict.HOLDS
    return Verdict.ONLY_IF if all(each.mended for each in shown) else Verdict.REFUTED


def _available(measured: Measured) -> Finding:
    faults = measured.extent.faults
    within, beyond = ([measured.down(f, f + more) for f in faults] for more in (0, 1))
    served = all(each.entries and each.wait == measured.alone(OPTIMISED, 1).delay for each in within)
    stuck = not any(each.entries for each in beyond)
    return Finding(
        "section 2: fewer than a third of the servers may fail",
        "f of 3f+1",
        f"f={faults[0]} to {faults[-1]}: with f servers crashed an entry takes {_span([each.wait for each in within])} "
        f"message times, as with none; with f+1 {'nobody enters' if stuck else 'somebody enters'}",
        Verdict.HOLDS if served and stuck else Verdict.REFUTED,
    )


def _reading(measured: Measured) -> Finding:
    """The two reads of an entry, with and without it."""
    more = {
        f: sum(measured.alone(ALGORITHM2, f).messages) - sum(measured.alone(ONE_ROUND, f).messages)
        for f in measured.extent.faults
    }
    return Finding(
        "3.2: reading the active set takes one broadcast more",
        "READ-COMPLETE",
        f"3|U| for 2|U|: two reads make {_listed(more.values())} messages more",
        Verdict.HOLDS if all(count == 2 * servers_for(f) for f, count in more.items()) else Verdict.REFUTED,
        "a reader that takes the union of what q servers show needs neither listeners nor the broadcast",
    )


def _reads_end(measured: Measured) -> Finding:
    shown = measured.shown("bakery/F2")
    return Finding(
        "3.2, 3.3: every read of the active set ends, after at most T sets",
        "always",
        f"T=1, two servers, two clients: {shown.found}",
        _mended(shown),
        "who is sent no more takes the union (trinco exhibit bakery/F2)",
    )


def _exclusive(measured: Measured) -> Finding:
    outcomes = [each for piece, each in measured.outcomes.items() if not isinstance(piece, WithoutServers)]
    violations = [each.violation for each in outcomes if each.violation]
    return Finding(
        "section 4: no two correct clients inside",
        "never",
        violations[0]
        if violations
        else f"{sum(each.entries for each in outcomes):,} entries without liars, no violation",
        Verdict.REFUTED if violations else Verdict.ONLY_IF,
        "the rules are mended: as printed they fail, as the table of exhibits says",
    )


def _fair(measured: Measured) -> Finding:
    crowds = {k: measured.crowd(OPTIMISED, k) for k in measured.contended}
    with_ticket = {k: crowd.overtaken_with_ticket or 0 for k, crowd in crowds.items()}
    served = not any(crowd.violation for crowd in crowds.values())
    bounded = all(count < k for k, count in with_ticket.items())
    most = max(crowds)
    return Finding(
        "section 4: starvation-freedom",
        "everybody, some day",
        f"{'all' if served else 'not all'} served; with k={most} at most {crowds[most].overtaken} enter before "
        f"a client that asks, {with_ticket[most]} once q servers have its ticket",
        Verdict.ONLY_IF if served and bounded else Verdict.REFUTED,
        "one waits for those only who were there when one's ticket was set (as printed: trinco exhibit bakery/F7); "
        "from when q servers have it, k-1 at most: a later GET is told of it",
    )


def _transient(measured: Measured) -> Finding:
    abandoned = measured.abandoned
    return Finding(
        "section 4, premise 1: what the faulty wrote goes back to its initial state",
        "some day",
        f"who is inside crashes: the next enters after {number(abandoned.after)} message times, at most "
        f"D + t + 6 = {number(abandoned.expected)}",
        Verdict.HOLDS if abandoned.after <= abandoned.expected else Verdict.REFUTED,
        "D: what a vote is good for; t: the time that a client has to choose",
    )


def _adaptive_steps(measured: Measured) -> Finding:
    """Six accesses, and for each other client one to read its number and two to wait for it."""
    accesses = {k: measured.crowd(ALGORITHM2, k).accesses for k in measured.extent.crowds}
    linear = all(count <= (6 + 3 * (k - 1)) * TOLERANCE for k, count in accesses.items())
    return Finding(
        "section 4: algorithm 2 is adaptive, O(k) accesses",
        "O(k)",
        f"{_ends(accesses)}; 6 + 3(k-1) when all ask at once",
        Verdict.HOLDS if linear else Verdict.REFUTED,
    )


def _adaptive(measured: Measured) -> Finding:
    costs = {
        variant: [crowd.per_entry for crowd in measured.passed(variant).values()] for variant in measured.extent.passing
    }
    seen = [f"{each:,}" for each in measured.extent.passing[OPTIMISED]]
    return Finding(
        "section 4: only who asks at the same time counts, of infinitely many",
        "k",
        f"{LIVE} at a time of {', '.join(seen)}: "
        + "; ".join(f"{variant} {_span(each)} messages per entry" for variant, each in costs.items()),
        Verdict.HOLDS if all(max(each) <= min(each) * TOLERANCE for each in costs.values()) else Verdict.REFUTED,
    )


def _printed_accesses(measured: Measured) -> Finding:
    costs = [measured.alone(ALGORITHM2, f) for f in measured.extent.faults]
    exact = all(cost.accesses == (6, 2) for cost in costs)
    return Finding(
        "5.1: algorithm 2 alone",
        "6 accesses to enter",
        f"{costs[0].accesses[0]} to enter, {costs[0].accesses[1]} to leave: "
        f"{_listed(sum(cost.messages) for cost in costs)} messages for f={_faults(measured)}",
        Verdict.ONLY_IF if exact else Verdict.REFUTED,
        "its own number is not read from the servers (line 9 does: then 7)",
    )


def _alone_accesses(measured: Measured) -> Finding:
    costs = [measured.alone(OPTIMISED, f) for f in measured.extent.faults]
    exact = all(cost.accesses == (2, 1) and not cost.between_servers for cost in costs)
    return Finding(
        "5.1: the optimised protocol alone",
        "2 accesses to enter, 1 to leave",
        f"{costs[0].accesses[0]} and {costs[0].accesses[1]}; {max(cost.between_servers for cost in costs)} messages "
        "between servers",
        Verdict.HOLDS if exact else Verdict.REFUTED,
    )


def _contended_accesses(measured: Measured) -> Finding:
    accesses = [measured.crowd(OPTIMISED, k).accesses for k in measured.contended]
    return Finding(
        "5.1: the optimised protocol in general",
        "3 accesses to enter",
        f"{_span(accesses)} for k={measured.contended[0]} to {measured.contended[-1]}",
        Verdict.HOLDS if max(accesses) <= 3 else Verdict.REFUTED,
        "heartbeats apart: who waits for longer than D/4 repeats LISTEN",
    )


def _alone_messages(measured: Measured) -> Finding:
    costs = {f: sum(measured.alone(OPTIMISED, f).messages) for f in measured.extent.faults}
    exact = all(cost == 6 * servers_for(f) for f, cost in costs.items())
    return Finding(
        "5.1: messages of an entry, k=1",
        "O(|U|)",
        f"{'6|U|: ' if exact else ''}{_listed(costs.values())} for f={_faults(measured)}",
        Verdict.HOLDS if exact else Verdict.REFUTED,
    )


def _contended_messages(measured: Measured) -> Finding:
    """In k it is even less than claimed; in |U| it is more, for what the servers say to each other."""
    by_k = [measured.crowd(OPTIMISED, k).per_entry for k in measured.contended]
    by_f = [measured.crowd_by_f(f) for f in measured.extent.faults]
    flat = max(by_k) <= min(MOST_MESSAGES, min(by_k) * TOLERANCE)
    clients = [crowd.with_clients for crowd in by_f]
    linear = all(count <= 8 * servers_for(f) for f, count in zip(measured.extent.faults, clients, strict=True))
    return Finding(
        "5.1: messages of an entry",
        "O(k|U|)",
        f"f=1: {_span(by_k)} for k={measured.contended[0]} to {measured.contended[-1]}; of clients and to them at most "
        f"8|U|; between servers {_listed(round(crowd.between_servers) for crowd in by_f)} for f={_faults(measured)}",
        Verdict.ONLY_IF if flat and linear else Verdict.REFUTED,
        "tickets are not certified: then it would be O(|U|), whatever k; but a liar could make tickets huge. Servers "
        "tell each other of a ticket that is asked for before its client brings the certificate: O(|U|^2)",
    )


def _broadcast_messages(measured: Measured) -> Finding:
    """What the paper's own section 3.3 adds to each access: |U| messages more in each of its two rounds, from each."""
    alone = {f: sum(measured.alone(BROADCAST, f).messages) for f in measured.extent.faults}
    exact = all(cost == 6 * servers_for(f) ** 2 for f, cost in alone.items())
    crowds = [measured.crowd(BROADCAST, k).per_entry for k in measured.contended]
    return Finding(
        "5.1 with 3.3: messages of an entry whose requests are broadcast among the servers",
        "O(k|U|)",
        f"alone {'6|U|^2: ' if exact else ''}{_listed(alone.values())} for f={_faults(measured)}; f=1: {_span(crowds)} "
        f"for k={measured.contended[0]} to {measured.contended[-1]}",
        Verdict.REFUTED if exact else Verdict.NOT_REPRODUCED,
        "the paper does not count the broadcast that it asks for; the protocol does without it",
    )


def _reset(measured: Measured) -> Finding:
    shown = measured.shown("bakery/F6")
    return Finding(
        "5.2: a server that suspects a client sets its number to 0",
        "the others go on",
        f"{shown.found}, in {shown.steps} steps",
        _mended(shown),
        "a quorum of servers votes: nobody can sign for the dead (trinco exhibit bakery/F6)",
    )


def _removal(measured: Measured) -> Finding:
    shown, stuck = measured.shown("bakery/F4"), measured.shown("bakery/F16")
    return Finding(
        "5.2: a client goes on unless more than f servers have removed it",
        "f",
        f"one server removes p0 by mistake: {shown.found}, in {shown.steps} steps; f servers suspect p0: {stuck.found}",
        _mended(shown, stuck),
        "servers remove nobody but together, by q signatures, and whoever too few can still let in begins anew "
        "(trinco exhibit bakery/F4, bakery/F16)",
    )


def _readmitted(measured: Measured) -> Finding:
    doubted = measured.hasty
    long = measured.hasty_for_long
    entries, runs = measured.extent.long
    stops = 0 < long.last_suspected <= entries / 2
    return Finding(
        "5.2: correct clients that were suspected enter some day; the detector stops erring",
        "some day",
        f"timers of 25, messages of up to 110: {doubted.entries:,} entries, {doubted.given_up:,} turns begun anew, "
        f"{doubted.unfinished} runs unfinished; in {runs} runs of {entries} entries nobody is suspected after the "
        f"first {long.last_suspected}",
        Verdict.HOLDS if stops and not doubted.unfinished else Verdict.REFUTED,
        "the time is doubled for whoever was suspected wrongly",
    )


def _unerring(measured: Measured) -> Finding:
    doubted, shown = measured.hasty, [measured.shown(f"bakery/F{number}") for number in (5, 8, 12)]
    mistaken = sum(each.found is not None for each in shown)
    return Finding(
        "5.3: the detector of malicious clients makes no mistakes",
        "never",
        f"as printed it bans a correct client in {mistaken} ways; mended, {doubted.banned} in {measured.extent.seeds} "
        "runs with servers in haste",
        Verdict.REFUTED if doubted.banned else Verdict.ONLY_IF if mistaken else Verdict.HOLDS,
        "the automaton also has what slow links bring about: a late SET of a removed turn, EXIT in E2, LISTEN before "
        "SET (trinco exhibit bakery/F5, bakery/F8, bakery/F12)",
    )


def _justified(measured: Measured) -> Finding:
    shown = measured.shown("bakery/F11")
    return Finding(
        "5.3: the answers to GET justify a ticket",
        "1 + the highest",
        f"with one lying server: {shown.found}",
        _mended(shown),
        "each answer brings f+1 signatures under the ticket that it names (trinco exhibit bakery/F11)",
    )


def _certificate_size(measured: Measured) -> Finding:
    kinds = (FIRST, "SET", "LISTEN")
    first, later, listen = ([measured.sizes(f)[kind].signatures for f in measured.extent.faults] for kind in kinds)
    same = measured.sizes(1) == measured.sizes(1, k=12)
    return Finding(
        "5.3: certificates are linear in the active set and in the quorum",
        "O(k q)",
        f"signatures for f={_faults(measured)}: SET of the first ticket {_listed(first)}, of a later one "
        f"{_listed(later)}; LISTEN and EXIT {_listed(listen)}{'; whatever k' if same else ''}",
        Verdict.HOLDS if all(map(_linear, (first, later, listen))) else Verdict.REFUTED,
        "each answer to GET brings f+1 signatures under its ticket (bakery/F11), q(f+2) in all; a client passes on "
        "those under the highest only, q+f+1",
    )


def _linear(values: Sequence[int]) -> bool:
    return len({after - before for before, after in pairwise(values)}) <= 1


def _faults(measured: Measured) -> str:
    return ", ".join(map(str, measured.extent.faults))


def _ends(counts: Mapping[int, float]) -> str:
    """The first and the last."""
    return ", ".join(f"{number(counts[k])} for k={k}" for k in (min(counts), max(counts)))


def _span(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    least, most = number(min(known)), number(max(known))
    return least if least == most else f"{least} to {most}"


def _listed(counts: Iterable[int]) -> str:
    return ", ".join(f"{count:,}" for count in counts)


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
