"""Writes the parts of the docs that are made from the code and from the evidence: ``make docs``. On the pages written
by hand it runs every session that is shown, and puts in what it prints now.

python docs/generate.py            write them
python docs/generate.py --check    say which are out of date, exit 1 if any is
"""

import io
import re
import sys
from pathlib import Path
from textwrap import fill
from types import ModuleType
from typing import Any

from advice import ADVICE
from figures import evidence, found, measured
from remarks import REMARKS, Remark
from rich.console import Console
from rich.text import Text
from sessions import refreshed
from stories import Story, story

from trinco.check.counterexample import Counterexample
from trinco.check.run import check
from trinco.core.claims import Claims
from trinco.lab.exhibits.catalogue import EXHIBITS, find
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols import bakery
from trinco.protocols.catalogue import ENTRIES, Entry
from trinco.view import automaton
from trinco.view.timeline import draw

DOCS = Path(__file__).resolve().parent
LEASE, LEASES = "quorum-lease", evidence("leases")
PICTURED = "ricart-agrawala/no-tie-break"
BAKERY, AUTOMATON = "bakery", "bakery-automaton.svg"


def pages() -> dict[Path, str]:
    """Every generated file and what should stand in it."""
    made = {DOCS / "algorithms" / f"{entry.name}.md": algorithm(entry) for entry in ENTRIES}
    made[DOCS / "algorithms" / "README.md"] = catalogue()
    made[DOCS / "exhibits.md"] = exhibits()
    made[DOCS / "speed.md"] = speed()
    made[DOCS / "assets" / "no-tie-break.svg"] = picture()
    made[DOCS / "assets" / AUTOMATON] = automaton.as_svg()
    by_hand = [DOCS.parent / "README.md", *(page for page in sorted(DOCS.glob("*.md")) if page not in made)]
    return made | {page: refreshed(page.read_text(encoding="utf-8")) for page in by_hand}


def algorithm(entry: Entry) -> str:
    parts = [
        f"# {entry.name}\n\n{_doc(entry.module)}",
        _source(entry),
        _section("When to use it", ADVICE.get(entry.name, "")),
        _section("One election" if entry.claims.elects else "One contended entry", told(entry)),
        _section("What a server believes of a client", judged() if entry.name == BAKERY else ""),
        _section("What is claimed", _table(_claimed(entry.claims))),
        _section("Claimed and measured", measured(entry)),
        _section("What we found", found_of_leases() if entry.name == LEASE else found(entry.name)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _doc(module: ModuleType) -> str:
    return (module.__doc__ or "").strip().replace("``", "`")


def _source(entry: Entry) -> str:
    source = "src/" + entry.module.__name__.replace(".", "/") + ".py"
    if entry.name != BAKERY:
        return f"The whole algorithm is one file: [`{source}`](../../{source})."
    folder = source.rpartition("/")[0]
    return f"It is a folder: [`{folder}`](../../{folder}).\n\n## What it is made of\n\n{_doc(bakery)}"


def judged() -> str:
    return f"""The paper's figure 3, of which our copy has only the words, drawn from the table that the servers go by
([`automaton.py`](../../src/trinco/protocols/bakery/automaton.py)):

![The states R, E1, E2, C and byz, and what leads from one to the other](../assets/{AUTOMATON})

```
{chr(10).join(automaton.as_text())}
```"""


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text else ""


def _table(rows: list[tuple[str, str]]) -> str:
    return "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows)


def _claimed(claims: Claims) -> list[tuple[str, str]]:
    """Nobody enters in an election: it has no fairness, and its delay is another."""
    general = [
        ("paper", claims.paper + (f" ({claims.year})" if claims.year else "")),
        ("network", claims.network.value),
        ("crashes survived", f"`{claims.crashes}`"),
    ]
    if claims.elects:
        return [
            *general,
            ("messages per election", f"`{claims.messages_per_entry}`, if only the leader has crashed"),
            ("everybody knows the leader after", f"`{claims.delay}` message times, if only the leader has crashed"),
        ]
    return [
        *general,
        ("messages per entry", f"`{claims.messages_per_entry}`{', on average' * claims.amortised}"),
        ("delay", f"`{claims.delay}` message times from asking alone to entering"),
        ("inside together", f"at most `{claims.k}`"),
        ("fairness", claims.fairness.value),
        ("overtaking", f"at most `{claims.bypass}`" if claims.bypass else "no bound claimed"),
        ("deadlock-free, starvation-free", f"{_yes(claims.deadlock_free)}, {_yes(claims.starvation_free)}"),
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def told(entry: Entry) -> str:
    """A small run of it, with the command that draws it again."""
    scene = story(entry)
    if scene is None:
        return ""
    strokes = "" if entry.claims.elects else " A line `┆` is a process that waits, `║` one that is inside."
    rows = " What one sends to all, or all send to one, is one row." if scene.gathered else ""
    return f"""{fill(f"{scene.text} Every message takes 1.{strokes}{rows}", 120)}

```
{scene.drawn(entry)}
```

{_drawn_by(scene, entry)}"""


def _drawn_by(scene: Story, entry: Entry) -> str:
    """In so many words that whoever types the command sees what is said."""
    how = "With a row for each message, by" if scene.gathered else "Drawn by"
    fields = ", ".join(f"`{name}`" for name in scene.left_out(entry))
    more = f"; it shows {fields}, too" if fields else ""
    return f"{how} `{scene.command(entry)}`{more}."


def found_of_leases() -> str:
    """The evidence about leases: what was checked exhaustively, and what was simulated."""
    proofs = LEASES["proofs"]
    checked = [
        f"| {title} | {proof['states']:,} | {proof['verdict']} | `{proof['command']}` |"
        for title, proof in proofs.items()
        if "states" in proof
    ]
    clocks, tokens, waits = proofs["clocks"], proofs["tokens"], proofs["waiting"]["runs"]
    waiting = [
        f"| {run['liar']} | {run['clients']} | {_wait(run)} | {_wait(waits[name.replace('backoff', 'priority')])} |"
        for name, run in waits.items()
        if run["policy"] == "backoff"
    ]
    swarms = [proof for proof in proofs.values() if "seeds" in proof]
    seeds = [f"- `{each['command']}`: {each['entries']:,} entries, {each['violations']} violations" for each in swarms]
    return f"""Checked exhaustively, every order of every event:

| model | states | verdict | command |
|---|---|---|---|
{chr(10).join(checked)}

Simulated:

{chr(10).join(seeds)}
- {clocks["terms"]:,} terms with store clocks that show whole seconds, up to an hour off, every clock within 200 ppm
  of real time: {clocks["overlaps"]} overlaps. Without the margin for granularity: {clocks["without_margin"]}.
- {tokens["acquisitions"]:,} acquisitions with {tokens["crashes"]:,} client crashes and a store that grants everything
  and shows old tokens: every token larger than the one before.

Waiting time in seconds, mean / 99th percentile (accesses per acquisition), one way to a store 20 ms + Exp(30 ms) with a
tail of 2 % + Exp(0.8 s), released at once:

| liar | clients | back-off, as in the paper | priority |
|---|---|---|---|
{chr(10).join(waiting)}

{_latency(proofs["latency"])}

From `{LEASES["command"]}` on {LEASES["date"]}."""


def _wait(run: dict[str, Any]) -> str:
    return f"{run['mean']:.2f} / {run['p99']:.1f} ({run['accesses_per_acquisition']:.0f})"


def _latency(proof: dict[str, Any]) -> str:
    rows = proof["order_statistic"]["rows"]
    worst = max(abs(row["deviation"]) for row in rows)
    tokens = {kind: [row["lease_and_token"] / row["lease"] for row in rows if row["stores"] == kind] for kind in
              dict.fromkeys(row["stores"] for row in rows)}  # fmt: skip
    with_token = "; ".join(f"{kind} {min(each):.2f} to {max(each):.2f}" for kind, each in tokens.items())
    mixes = proof["mixes"]["rows"]
    ratios = ", ".join(
        f"{name} {min(row[name] for row in mixes):.2f} to {max(row[name] for row in mixes):.2f} (paper: {printed:g})"
        for name, printed in proof["mixes"]["paper"].items()
    )
    return f"""Latency when nobody else asks, over {len(rows)} combinations of stores and laws of delay: the lease phase
takes as long as the third of its four bases, within {worst:.1%}. With the token it takes so many times as long:
{with_token}. The paper's mixes of clouds under our calibration: {ratios}.

DepSky's lock over the same stores. {proof["depsky"]["verdict"]} The paper explains its factor 2 by the phases; we
cannot bear that out."""


def catalogue() -> str:
    entering = "\n".join(
        f"| {_link(entry)} | `{entry.claims.messages_per_entry}` | `{entry.claims.delay}` "
        f"| {entry.claims.network.value} | `{entry.claims.crashes}` | {entry.claims.fairness.value} |"
        for entry in ENTRIES
        if not entry.claims.elects
    )
    electing = "\n".join(
        f"| {_link(entry)} | `{entry.claims.messages_per_entry}` | `{entry.claims.delay}` "
        f"| {entry.claims.network.value} | `{entry.claims.crashes}` |"
        for entry in ENTRIES
        if entry.claims.elects
    )
    return f"""# The algorithms

What each claims; its page says what we found. [Which algorithm?](../which-algorithm.md) answers by need, and `trinco
compare` measures them side by side.

## Mutual exclusion

| | messages per entry | delay | network | crashes | fairness |
|---|---|---|---|---|---|
{entering}

## Elections

| | messages per election | until everybody knows | network | crashes |
|---|---|---|---|---|
{electing}
"""


def _link(entry: Entry) -> str:
    return f"[{entry.name}]({entry.name}.md)"


def exhibits() -> str:
    return f"""# Exhibits

Flaws as they were printed or built, kept alive. `trinco exhibit NAME` finds the shortest counterexample of one and
draws it; that each is caught, by the checker and in every test run, is our proof that green means something.

{chr(10).join(f"{shown(exhibit)}{chr(10)}" for exhibit in EXHIBITS)}
## Flaws that are no exhibit

By them nothing breaks, or only a text or a cost is wrong.

| | what is wrong | what we do | shown by |
|---|---|---|---|
{chr(10).join(remarked(name, remark) for name, remark in REMARKS.items())}
"""


def remarked(name: str, remark: Remark) -> str:
    file, _, test = remark.test.partition("::")
    link = f"[`{test}`](../tests/{file})" if test else ""
    wrong, instead = (text.replace("|", r"\|") for text in (remark.wrong, remark.instead))
    return f"| {name} | {wrong} | {instead} | {link} |"


def shown(exhibit: Exhibit) -> str:
    """With the figures of the search that draws it."""
    result = check(exhibit.model())
    assert result.counterexample is not None, exhibit.name
    return f"""## {exhibit.name}

*{exhibit.title}.* Printed: {exhibit.printed}.

{exhibit.lesson}

Breaks: {exhibit.breaks}, in {len(result.counterexample.script)} steps, after {result.progress.states} states.

```
{timeline(result.counterexample)}
```"""


def speed() -> str:
    pinned = {
        "locks": "processes pinned but for *free*",
        "simulator": "pinned to one core",
        "checker": "pinned to one core",
    }
    tables = []
    for title, how in pinned.items():
        kept = evidence(f"bench-{title}")
        rows = "\n".join(f"| {row['what']} | {row['shown']} | {row.get('target', '')} |" for row in kept["figures"])
        about = f"`bench/{title}.py` on {kept['date']}, Python {kept['python']}, {how}."
        tables.append(f"## The {title}\n\n{about}\n\n| | | |\n|---|---|---|\n{rows}\n")
    return f"""# Speed

Ratios to something measured in the same run; absolute numbers are of one small machine and mean little. `make bench`
measures again.

Locks are measured in PINGs of redis-py, sampled between them. *Same*: client and servers on one core, where a PING
takes 37 us and everything else looks its worst, since programs that take turns on a core find it cold each time.
*Cross*: servers on one core, the client on the other, as on two hosts. *Free*: nobody is pinned, and a PING is of
either kind. The target of a quorum of servers is for servers that work at the same time, so it is not judged where five
processes share a core.

Two bare statements to PostgreSQL take nearly 2 PINGs when nothing runs between them, a whole lock in memory takes half
of one, and both together take almost 4 (*the same, a lock in memory beside them*): programs that take turns on a core
find it cold each time. So a lock on PostgreSQL is as quick as it is short, on both sides. On one core `try_acquire` is
some 3 % below its target and `hold` is on it: nine runs of one day had 3.35 to 3.49 and 3.43 to 3.56. The wake-up there
was at 1.46 to 1.49.

SimPy runs twice: as its documentation sends a message with a delay, and tuned as far as it goes. Spin
runs with its defaults, safety only and without partial-order reduction, on the same model with the same states; its
fixed costs weigh on the small instances, so the largest is the one to judge by.

{chr(10).join(tables)}"""


def timeline(found: Counterexample) -> str:
    return "\n".join(draw(found.recording.events(), found.recording.header.n, repeats_from=found.cycle_from))


def picture() -> str:
    """The README's picture: the timeline as a drawing of a terminal."""
    counterexample = check(find(PICTURED).model()).counterexample
    assert counterexample is not None
    lines = timeline(counterexample).splitlines()
    console = Console(record=True, width=max(map(len, lines)) + 2, file=io.StringIO())
    for line in lines:
        console.print(Text(line))
    svg = console.export_svg(title=f"trinco exhibit {PICTURED}", unique_id="trinco")
    return re.sub(r" *@font-face {.*?}\n", "", svg, flags=re.DOTALL)  # any monospaced font will do


def main() -> int:
    wanted = pages()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(DOCS.parent)} is out of date: run 'make docs'")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
        print(f"wrote {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
