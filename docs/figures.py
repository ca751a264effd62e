"""What the evidence in ``docs/evidence`` says about an algorithm, as tables and lists. ``make prove`` makes it."""

import json
from collections.abc import Callable, Iterator
from math import isinf
from pathlib import Path
from typing import Any

from trinco.core.formula import Formula
from trinco.protocols.catalogue import Entry

ROOMS = Path(__file__).resolve().parent / "evidence"
NONE_YET = "No evidence yet: `make prove` does not cover it."

Figures = dict[str, Any]


def evidence(room: str) -> dict[str, Any]:
    return json.loads((ROOMS / f"{room}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


ALGORITHMS = tuple(evidence(room) for room in ("foundation", "classics", "forks", "robust-k", "bakery"))


def about(name: str) -> Iterator[tuple[Figures, Figures]]:
    """Every proof that names this algorithm, with the evidence that it stands in."""
    for room in ALGORITHMS:
        for title, proof in room["proofs"].items():
            if name in title.split():
                yield room, proof


def proven(name: str) -> bool:
    return any(True for _ in about(name))


def found(name: str) -> str:
    """The evidence about one algorithm, a line each."""
    told = [(room, line) for room, proof in about(name) for line in _told(proof)]
    if not told:
        return NONE_YET
    made = {f"`{room['command']}` on {room['date']}": None for room, _ in told}
    return "\n".join(line for _, line in told) + f"\n\nFrom {' and '.join(made)}."


def _told(proof: Figures) -> Iterator[str]:
    for key, tell in _TELLERS.items():
        if key in proof:
            yield f"- `{proof['command']}`: {tell(proof)}"


_TELLERS: dict[str, Callable[[Figures], str]] = {
    "states": lambda proof: f"{proof['states']:,} states, {proof['verdict']}",
    "seeds": lambda proof: (
        f"{proof['seeds']:,} seeds, {proof['entries']:,} entries, {proof['violations']} violations"
        + ", nobody correct is banned or left waiting" * (proof.get("banned") == 0)
    ),
    "servers_that_lie": lambda proof: (
        f"{proof['entries']:,} entries with long pauses between them, {proof['servers_that_lie']} ways for a server to "
        f"lie: {proof['verdict']}"
    ),
    "ppm": lambda proof: (
        f"{proof['runs']:,} runs with clocks {proof['ppm']:,} ppm slow and fast: {proof['overlaps']} overlaps; "
        f"without the margin in {proof['overlaps_without_the_margin']} of them"
    ),
    "clients_remembered": lambda proof: (
        f"{proof['clients']:,} clients, {proof['entries']:,} entries: {proof['messages_per_entry']:g} messages each; "
        f"in the end servers remember {proof['clients_remembered']} clients and no turn"
    ),
    "schedules": lambda proof: (
        f"{proof['schedules']:,} random crash schedules, {proof['violations']} violations, "
        f"{proof['stuck']} in which somebody waits for ever"
    ),
    "elections_disturbed": lambda proof: (
        f"{proof['elections_disturbed']:,} runs with {proof['crashes']:,} crashes, after "
        f"which {proof['restarts']:,} came back: {proof['violations']} violations"
    ),
    "every_n": lambda proof: (
        f"every n from {proof['every_n']}, {proof['entries']:,} entries, {proof['violations']} violations"
    ),
    "rush": lambda proof: (
        f"{proof['rush']:,} nodes that all ask at once: {proof['messages_per_entry']:g} messages per entry, "
        f"{proof['seconds']:g} s, {proof['mebibytes']} MiB"
    ),
    "raymond_runs": lambda proof: (
        f"{proof['raymond_runs']:,} runs, of those who ask after f crashes at most k-f inside together; "
        f"{proof['with_k_crashes']:,} with k crashes, after which nobody who asks enters"
    ),
    "lossy_runs": lambda proof: (
        f"{proof['lossy_runs']:,} runs in which a tenth of TREE and ACK is lost, {proof['stuck']} in which somebody "
        f"waits for ever; as printed, {proof['stuck_in_a_hundred_as_printed']} of 100"
    ),
    "partitions": lambda proof: f"for every n from {proof['clusters_for_n']} the clusters of a process part the others",
    "trees": lambda proof: (
        f"{proof['trees']:,} trees, for every root and all who may be dead, n from {proof['trees_for_n']}: one copy "
        "for each who lives, in ceil(log2 n) hops at most"
    ),
    "diagnosis": lambda proof: (
        f"{proof['diagnosis']['cases']:,} sets of dead at random for n={proof['diagnosis']['n']}: known to all after "
        f"{max(map(int, proof['diagnosis']['by_latency']))} intervals at worst; claimed: {proof['diagnosis']['bound']}"
    ),
    "intervals_at_worst": lambda proof: (
        "reached: " + ", ".join(f"{most} intervals for n={n}" for n, most in proof["intervals_at_worst"].items())
    ),
    "fault_sets": lambda proof: (
        f"{proof['fault_sets']:,} sets of dead, all test in step: exactly {proof['intervals']} intervals"
    ),
    "readings": lambda proof: (
        f"{proof['readings']} readings of the paper, somebody enters in each 5 of time, also when process 0 is alone"
    ),
    "by_voters": lambda proof: "messages per entry " + ", ".join(f"m={m}: {n}" for m, n in proof["by_voters"].items()),
    "examples": lambda proof: "; ".join(map(_example, proof["examples"])),
}


def _example(example: Figures) -> str:
    noticing = " and ".join(f"p{node}" for node in example["noticing"])
    sent = ", ".join(f"{count} {kind.upper()}" for kind, count in example["sent"].items())
    notices = "notices" if len(example["noticing"]) == 1 else "notice"
    return f"with n={example['n']}, where {noticing} {notices}: {sent}, {example['to_the_dead']} of them to the dead"


def measured(entry: Entry) -> str:
    """The claims for some n beside what was measured. Empty if nothing was."""
    parts = []
    for _, proof in about(entry.name):
        if "measured" in proof:
            parts.append(_loads(entry, proof))
        if "elections" in proof:
            parts.append(_elections(proof))
        if "vote_loss" in proof:
            parts.append(_vote_loss(proof))
    return "\n\n".join(parts)


def _loads(entry: Entry, proof: Figures) -> str:
    rows = "\n".join(_load(entry, int(n), each) for n, each in proof["measured"].items())
    return f"""Messages per entry and delays in message times, by `{proof["command"]}`:

| n | claimed | alone | in turn | light load | all ask | delay claimed | delay measured | hand-over |
|---|---|---|---|---|---|---|---|---|
{rows}

*Alone*: one process asks again and again. *In turn*: one after the other, each when all is quiet. *Light load*: one
request in ten message times. *All ask*: all the time. The *delay* is from asking to entering, in turn; the *hand-over*
is from one process' leaving to the next one's entering, when all ask."""


def _load(entry: Entry, n: int, each: Figures) -> str:
    letters = entry.letters(n)
    messages, delay = each["messages"], each["delay"]
    cells = [
        str(n),
        _range(entry.claims.messages_per_entry, letters),
        *(_number(messages[load]) for load in ("alone", "in_turn", "light", "saturated")),
        _range(entry.claims.delay, letters),
        _span(delay["least"], delay["most"]),
        _number(each["synchronisation_delay"]),
    ]
    return f"| {' | '.join(cells)} |"


def _range(formula: Formula, letters: dict[str, float]) -> str:
    low, high = formula.low(**letters), formula.high(**letters)
    return f"{_number(low)} or more" if isinf(high) else _span(low, high)


def _span(low: float, high: float) -> str:
    return _number(low) if low == high else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


def _elections(proof: Figures) -> str:
    rows = "\n".join(
        f"| {n} | {' | '.join(_election(each[who]) for who in ('highest', 'lowest', 'all'))} |"
        for n, each in proof["elections"].items()
    )
    return f"""Messages of one election, by `{proof["command"]}`: ELECTION, OK and COORDINATOR, as
the slides count. Only the leader, the highest of n, has crashed.

| n | the next highest notices | the lowest notices | all notice |
|---|---|---|---|
{rows}

These are exactly the claimed numbers. *Time* is until everybody knows the leader, in message times, with the timeouts
for whoever does not answer."""


def _election(cost: Figures) -> str:
    """Whether what finds nobody counts is a matter of the claim: the bully's does, the ring's does not."""
    lost = cost["messages"] - cost["predicted"]
    beside = [f"{lost:,.0f} to the dead"] * bool(lost) + [f"{cost['others']:,} acknowledgements"] * bool(cost["others"])
    uncounted = f" (and {', '.join(beside)})" if beside else ""
    return f"{cost['predicted']:,.0f}{uncounted}, time {cost['time']:g}"


def _vote_loss(proof: Figures) -> str:
    table: dict[tuple[int, int], list[str]] = {}
    for row in proof["table"]:
        table.setdefault((row["m"], row["v"]), []).append(f"{row['probability']:.1e}")
    predicted = "\n".join(f"| {m} | {v} | {' | '.join(chances)} |" for (m, v), chances in table.items())
    simulated = "\n".join(
        f"| {row['m']} | {row['v']} | {row['predicted']:.4f} | {row['share']:.4f} |" for row in proof["vote_loss"]
    )
    trials, p = proof["vote_loss"][0]["trials"], proof["vote_loss"][0]["p"]
    return f"""Coordinators that forget their votes, by `{proof["command"]}`: the chance that they let a second
client in, if each is away for 3 or for 30 seconds in every hour. More votes make it as small as you like.

| coordinators | votes needed | 3 s in an hour | 30 s in an hour |
|---|---|---|---|
{predicted}

The same with a chance of {p:g} for each to be reset, so that there is something to count, and as the share of
{trials:,} simulated runs in which two were inside together:

| coordinators | votes needed | predicted | counted |
|---|---|---|---|
{simulated}"""
