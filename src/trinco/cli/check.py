"""``trinco check``: the model checker."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trinco.check.replay import as_pytest
from trinco.check.run import Checker, Result
from trinco.check.search import Progress, Verdict
from trinco.check.standard import model_of
from trinco.cli import exits
from trinco.cli.files import write_text, write_trace
from trinco.cli.output import print_facts, print_json, print_timeline
from trinco.cli.parser import add_json, whole
from trinco.cli.progress import progress
from trinco.cli.sizes import check_k
from trinco.core.claims import Network
from trinco.protocols.catalogue import find

EXAMPLES = """examples:
  trinco check ricart-agrawala -n 3 --rounds 2     every run of three processes that enter twice each
  trinco check coordinator -n 4 --rounds forever   no bound on entries, where the states stay finite
  trinco check ricart-agrawala -n 3 --bypass       the claimed bound on overtaking too
  trinco check ricart-agrawala --crashes 1 --beyond-claims --write-test test_crash.py

exit: 0 what was asked holds, 1 a property is violated, 3 a bound ended the search without a verdict
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Check a protocol exhaustively: every order of deliveries, entries, timers and crashes within the bounds. "
        "Looks for two inside together, deadlock, and starvation by fair cycles; a counterexample is a shortest one."
    )
    parser.epilog = EXAMPLES
    parser.add_argument("protocol", help="a name from 'trinco protocols'")
    parser.add_argument("-n", type=whole(1, "n"), default=3, help="how many nodes (3)")
    parser.add_argument("-k", type=whole(1, "k"), help="how many may be inside (what the protocol claims)")
    parser.add_argument("--rounds", type=_rounds, default=2, metavar="R|forever", help="entries per process (2)")
    parser.add_argument("--network", choices=("fifo", "unordered"), help="order of channels (what the protocol claims)")
    parser.add_argument("--crashes", type=whole(0, "the number of crashes"), default=0, help="how many may crash (0)")
    parser.add_argument("--bypass", action="store_true", help="check the claimed bound on overtaking, too")
    parser.add_argument("--symmetry", action="store_true", help="merge states that differ only in who is who")
    parser.add_argument("--no-liveness", action="store_true", help="do not look for starvation")
    parser.add_argument("--no-reductions", action="store_true", help="plain search, whatever the protocol declares")
    parser.add_argument("--beyond-claims", action="store_true", help="allow what the paper does not promise to survive")
    add_bounds(parser)
    add_counterexample(parser)
    add_json(parser)


def add_bounds(parser: argparse.ArgumentParser) -> None:
    bound = whole(1, "the bound on states")
    parser.add_argument(
        "--max-states", type=bound, default=5_000_000, metavar="N", help="give up after so many states (5000000)"
    )
    parser.add_argument(
        "--max-memory",
        type=whole(50, "the bound on memory"),
        default=4096,
        metavar="MB",
        help="give up beyond so much memory (4096)",
    )


def add_counterexample(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write the counterexample as a trace")
    parser.add_argument(
        "--write-test", type=Path, metavar="FILE", help="write the counterexample as a pytest file that replays it"
    )


def _rounds(text: str) -> int | None:
    return None if text == "forever" else whole(1, "the number of rounds")(text)


def run(options: argparse.Namespace) -> int:
    entry = find(options.protocol)
    check_k(entry, options.n, options.k)
    asked: dict[str, Any] = {
        "n": options.n,
        "rounds": options.rounds,
        "network": Network[options.network.upper()] if options.network else None,
        "crashes": options.crashes,
        "symmetry": options.symmetry,
        "bypass": options.bypass,
        "reductions": not options.no_reductions,
        "beyond_claims": options.beyond_claims,
    }
    checker = Checker(
        model_of(entry, **asked),
        entry.name,
        liveness=not options.no_liveness,
        max_states=options.max_states,
        max_bytes=options.max_memory << 20,
    )
    network = checker.model.network.name.lower()
    shown = {
        "protocol": entry.name,
        "n": options.n,
        "rounds": options.rounds or "forever",
        "network": network,
        "crashes": options.crashes,
    }
    wanted = ", ".join(
        f"{name}={_source(value)}" for name, value in asked.items() if value not in (None, False) or name == "rounds"
    )
    imports = ["from trinco.check.standard import model_of", "from trinco.protocols.catalogue import find"]
    if asked["network"]:
        imports.append("from trinco.core.claims import Network")
    return conclude(checker, options, shown, f"model_of(find({entry.name!r}), {wanted})", imports)


def _source(value: Any) -> str:
    return f"Network.{value.name}" if isinstance(value, Network) else repr(value)


def conclude(
    checker: Checker, options: argparse.Namespace, shown: dict[str, Any], expression: str, imports: Sequence[str]
) -> int:
    """Run a check and tell what it found. ``expression`` is what makes the model again, for a test that replays."""
    with progress(quiet=options.json) as tell:
        checker.search.listener = lambda so_far: tell(explored(so_far))
        try:
            result = checker.run()
        except KeyboardInterrupt:
            sys.stderr.write(f"trinco: interrupted: {explored(checker.progress)}, no violation so far\n")
            return exits.INTERRUPTED
    found = result.counterexample
    if found and options.trace:
        write_trace(options.trace, found.recording)
    if found and options.write_test:
        command = " ".join(["trinco", *sys.argv[1:]])
        write_text(options.write_test, as_pytest(found, expression, imports, command))
    if options.json:
        print_json(shown | as_dict(result))
    else:
        show(result, shown)
    return {Verdict.HOLDS: exits.DONE, Verdict.VIOLATED: exits.VIOLATED}.get(result.verdict, exits.INCONCLUSIVE)


def explored(so_far: Progress) -> str:
    return (
        f"{so_far.stage}: {so_far.states:,} states, depth {so_far.depth}, {so_far.states_per_second:,.0f} states/s, "
        f"memo hits {so_far.memo_hit_rate:.2%}"
    )


def as_dict(result: Result) -> dict[str, Any]:
    so_far, found = result.progress, result.counterexample
    kind = result.violation.kind if result.violation else None
    conclusive = result.verdict is not Verdict.INCONCLUSIVE
    stuck = ("starvation", "livelock")
    return {
        "verdict": result.verdict.value,
        "violation": {"kind": kind, "text": result.violation.text} if result.violation else None,
        "deadlock_free": kind != "deadlock" if conclusive and kind in (None, "deadlock", *stuck) else None,
        "starvation_free": kind not in stuck if result.liveness else None,
        "states": so_far.states,
        "transitions": so_far.transitions,
        "depth": so_far.depth,
        "handler_runs": so_far.handler_runs,
        "memo_hit_rate": round(so_far.memo_hit_rate, 6),
        "states_per_second": round(so_far.states_per_second),
        "seconds": round(so_far.seconds, 3),
        "counterexample": list(found.script) if found else None,
        "repeats_from_step": found.cycle_from if found else None,
    }


def show(result: Result, shown: dict[str, Any]) -> None:
    what = ", ".join(f"{name} {value}" for name, value in shown.items() if name not in ("protocol", "exhibit"))
    print(f"{shown.get('exhibit') or shown['protocol']}: {what}")
    so_far = result.progress
    size = f"{so_far.states:,} states, {so_far.transitions:,} transitions, depth {so_far.depth}"
    speed = f"in {so_far.seconds:.2f} s ({so_far.states_per_second:,.0f} states/s)"
    print_facts([("explored", f"{size}, {speed}"), ("verdict", _verdict(result))])
    found = result.counterexample
    if found:
        print()
        print_timeline(found.recording.events(), found.recording.header.n, steps=True, repeats_from=found.cycle_from)


def _verdict(result: Result) -> str:
    if result.violation:
        return f"VIOLATED, {result.violation.kind}: {result.violation.text}"
    if result.verdict is Verdict.INCONCLUSIVE:
        return "INCONCLUSIVE: a bound ended the search; raise --max-states or --max-memory, or make the model smaller"
    freedom = "deadlock-free, starvation-free" if result.liveness else "deadlock-free; starvation not looked for"
    return f"no violation: safe, {freedom}"
