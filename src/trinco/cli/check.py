"""``trinco check``: the model checker."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

from trinco.check.elections import election_model
from trinco.check.leases import lease_model
from trinco.check.model import Model
from trinco.check.replay import as_pytest
from trinco.check.run import Checker, Result
from trinco.check.search import Progress, Verdict
from trinco.check.standard import model_of, stay_within
from trinco.cli import exits
from trinco.cli.check_flags import (
    UNSAID,
    has_timers,
    refuse_idle_drifting,
    refuse_idle_fires,
    refuse_idle_flags,
    refuse_too_many_crashes,
)
from trinco.cli.files import refuse_unwritable, write_text, write_trace
from trinco.cli.leases import NAME as LEASE
from trinco.cli.leases import add_lease_options, liars, quorum_lease, refuse_lease_options
from trinco.cli.output import print_facts, print_json, print_timeline
from trinco.cli.parser import add_json, add_settings, whole
from trinco.cli.progress import progress
from trinco.cli.protocols import refuse_lease_settings
from trinco.cli.sizes import asked_n, check_k, check_size, chosen, tell_if_alone, tell_if_client_is_alone
from trinco.core.claims import Claims, Network
from trinco.core.errors import BeyondClaims, UsageError
from trinco.core.trace import MOST_NODES
from trinco.leases.nodes.system import QuorumLease
from trinco.protocols.catalogue import Entry

USUAL_N = 3
FIRES, FIRES_IN_ELECTIONS = 3, 8
MAX_STATES, MAX_MEGABYTES = 5_000_000, 4096

EXAMPLES = """examples:
  trinco check ricart-agrawala -n 3 --rounds 2     every run of three processes that enter twice each
  trinco check coordinator -n 4 --rounds forever   no bound on entries, where the states stay finite
  trinco check ricart-agrawala -n 3 --bypass       the claimed bound on overtaking too
  trinco check bully -n 3 --crashes 1 --restarts 1 an election, one crash, one recovery
  trinco check quorum-lease                        leases over four stores of which one lies, with time
  trinco check quorum-lease --policy priority --byzantine deny-all --no-time
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
    parser.add_argument("-n", type=whole(1, "n", MOST_NODES), help="how many nodes (3, or as many as let two compete)")
    parser.add_argument("-k", type=whole(1, "k"), help="how many may be inside (what the protocol claims)")
    parser.add_argument("--rounds", type=_rounds, default=UNSAID, metavar="R|forever", help="entries per process (2)")
    parser.add_argument("--network", choices=("fifo", "unordered"), help="order of channels (what the protocol claims)")
    parser.add_argument("--crashes", type=whole(0, "the number of crashes"), default=0, help="how many may crash (0)")
    parser.add_argument(
        "--fires", type=whole(0, "fires"), metavar="N", help="how often one timer may fire (3; in an election 8)"
    )
    parser.add_argument("--bypass", action="store_true", help="check the claimed bound on overtaking, too")
    parser.add_argument(
        "--symmetry",
        action=argparse.BooleanOptionalAction,
        help="merge states that differ only in who is who (no; for quorum-lease: the stores, yes)",
    )
    parser.add_argument("--no-liveness", action="store_true", help="do not look for starvation")
    parser.add_argument("--no-reductions", action="store_true", help="plain search, whatever the protocol declares")
    parser.add_argument("--beyond-claims", action="store_true", help="allow what the paper does not promise to survive")
    parser.add_argument(
        "--byzantine",
        action="append",
        default=[],
        metavar="[NODE:]BEHAVIOUR",
        help="let a store lie; for quorum-lease one does 'any' thing: grants, denies or is silent",
    )
    parser.add_argument("--restarts", type=whole(0, "the number of restarts"), default=0, help="how many come back (0)")
    parser.add_argument(
        "--notices", type=whole(1, "the number of notices"), help="of an election: how often each may start one (1)"
    )
    add_settings(parser)
    add_lease_options(parser, small=True)
    add_bounds(parser)
    add_counterexample(parser)
    add_json(parser)


def add_bounds(parser: argparse.ArgumentParser) -> None:
    states, memory = whole(1, "the bound on states"), whole(50, "the bound on memory")
    parser.add_argument("--max-states", type=states, metavar="N", help=f"give up after so many states ({MAX_STATES})")
    parser.add_argument(
        "--max-memory", type=memory, metavar="MB", help=f"give up beyond so much memory ({MAX_MEGABYTES})"
    )


def checker_of(model: Model, name: str, options: argparse.Namespace, *, liveness: bool = True) -> Checker:
    """Within the bounds that were asked for."""
    states, megabytes = options.max_states or MAX_STATES, options.max_memory or MAX_MEGABYTES
    return Checker(model, name, liveness=liveness, max_states=states, max_bytes=megabytes << 20)


def add_counterexample(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write the counterexample as a trace")
    parser.add_argument(
        "--write-test", type=Path, metavar="FILE", help="write the counterexample as a pytest file that replays it"
    )


def _rounds(text: str) -> int | None:
    return None if text == "forever" else whole(1, "the number of rounds")(text)


def run(options: argparse.Namespace) -> int:
    refuse_lease_settings(options)
    entry = chosen(options)
    refuse_lease_options(entry, options)
    refuse_idle_flags(entry, options)
    refuse_unwritable(options.trace, options.write_test)
    if entry.claims.elects:
        return _check_election(entry, options)
    return _check_lease(entry, options) if entry.name == LEASE else _check(entry, options)


def _check(entry: Entry, options: argparse.Namespace) -> int:
    n = asked_n(entry, options, USUAL_N)
    check_size(n)
    refuse_too_many_crashes(n, options)
    rounds = 2 if options.rounds == UNSAID else options.rounds
    check_k(entry, n, options.k)
    asked: dict[str, Any] = {
        "n": n,
        "rounds": rounds,
        "network": Network[options.network.upper()] if options.network else None,
        "crashes": options.crashes,
        "restarts": options.restarts,
        "fires": _or_else(options.fires, FIRES),
        "symmetry": bool(options.symmetry),
        "bypass": options.bypass,
        "reductions": not options.no_reductions,
        "beyond_claims": options.beyond_claims,
    }
    with _naming_the_way_out():
        model = model_of(entry, **asked)
    refuse_idle_fires(entry, model, options)
    tell_if_alone(entry, model.nodes)
    checker = checker_of(model, entry.name, options, liveness=not options.no_liveness)
    network = checker.model.network.name.lower()
    shown = {
        "protocol": entry.name,
        "n": n,
        "rounds": rounds or "forever",
        "network": network,
        "crashes": options.crashes,
        **_bound_on_timers(model),
    }
    wanted = ", ".join(
        f"{name}={_source(value)}" for name, value in asked.items() if value not in (None, False, 0) or name == "rounds"
    )
    imports = ["from trinco.check.standard import model_of", "from trinco.protocols.catalogue import find"]
    if asked["network"]:
        imports.append("from trinco.core.claims import Network")
    return conclude(checker, options, shown, f"model_of({_found(entry, options)}, {wanted})", imports, entry.claims)


@contextmanager
def _naming_the_way_out() -> Iterator[None]:
    try:
        yield
    except BeyondClaims as error:
        raise BeyondClaims(f"{error}; to see what happens, go beyond the claims with --beyond-claims") from None


def _or_else(said: int | None, usual: int) -> int:
    return usual if said is None else said


def _bound_on_timers(model: Model) -> dict[str, int]:
    """How often a timer may fire, where there are any."""
    return {"fires": model.fires} if has_timers(model) else {}


def _found(entry: Entry, options: argparse.Namespace) -> str:
    """Python that finds this entry again."""
    settings = f".set({', '.join(map(repr, options.set))})" if options.set else ""
    return f"find({entry.name!r}){settings}"


def _check_election(entry: Entry, options: argparse.Namespace) -> int:
    n = asked_n(entry, options, USUAL_N)
    check_size(n)
    refuse_too_many_crashes(n, options)
    asked: dict[str, Any] = {
        "notices": options.notices or 1,
        "crashes": options.crashes,
        "restarts": options.restarts,
        "fires": _or_else(options.fires, FIRES_IN_ELECTIONS),
        "network": Network[options.network.upper()] if options.network else entry.claims.network,
        "reductions": not options.no_reductions,
    }
    if not options.beyond_claims:
        with _naming_the_way_out():
            stay_within(entry, n, asked["network"], options.crashes)
    checker = checker_of(election_model(entry.nodes(n), **asked), entry.name, options, liveness=False)
    wanted = ", ".join(f"{name}={_source(value)}" for name, value in asked.items())
    imports = [
        "from trinco.check.elections import election_model",
        "from trinco.core.claims import Network",
        "from trinco.protocols.catalogue import find",
    ]
    shown = {"protocol": entry.name, "n": n, **asked, "network": asked["network"].name.lower()}
    return conclude(
        checker, options, shown, f"election_model({_found(entry, options)}.nodes({n}), {wanted})", imports, entry.claims
    )


def _check_lease(entry: Entry, options: argparse.Namespace) -> int:
    system = quorum_lease(options, small=True)
    check_size(system.n)
    refuse_too_many_crashes(system.n, options)
    if options.rounds is None or options.bypass or options.k not in (None, 1):
        raise UsageError(
            f"{LEASE} counts its attempts and bounds no overtaking: give a number of rounds, no --bypass, no -k"
        )
    if options.drifting is not None:
        refuse_idle_drifting(options, system)
    usual = ["any"] * min(system.f, 1)
    byzantine = {
        node: name for node, name in liars(entry, options.byzantine or usual, system).items() if name != "honest"
    }
    asked: dict[str, Any] = {
        "byzantine": byzantine,
        "rounds": 1 if options.rounds == UNSAID else options.rounds,
        "renewals": options.renewals or 0,
        "time": not options.no_time,
        "drift": options.drift or 0,
        "drifting": options.drifting,
        "crashes": options.crashes,
        "fires": _or_else(options.fires, FIRES),
        "network": Network[options.network.upper()] if options.network else Network.UNORDERED,
        "symmetry": options.symmetry is not False,
        "reductions": not options.no_reductions,
        "beyond_claims": options.beyond_claims,
    }
    with _naming_the_way_out():
        model = lease_model(system, **asked)
    tell_if_client_is_alone(len(model.nodes) - len(system.stores))
    checker = checker_of(model, entry.name, options, liveness=not options.no_liveness)
    told = ", ".join(f"p{node} {name}" for node, name in byzantine.items()) or "none"
    shown = {
        "protocol": entry.name,
        "n": len(system.stores),
        "f": system.f,
        "clients": system.clients,
        "stores": ",".join(dict.fromkeys(system.stores)),
        "ttl": system.ttl,
        "policy": system.policy.value,
        "liars": told,
        "rounds": asked["rounds"],
        "renewals": asked["renewals"],
        "drift": asked["drift"],
        "time": "yes" if asked["time"] else "no",
        **_bound_on_timers(model),
    }
    wanted = ", ".join(f"{name}={_source(value)}" for name, value in asked.items())
    imports = [
        "from trinco.check.leases import lease_model",
        "from trinco.core.claims import Network",
        "from trinco.leases.nodes.system import QuorumLease",
        "from trinco.leases.terms import Policy",
    ]
    return conclude(checker, options, shown, f"lease_model({_source(system)}, {wanted})", imports, entry.claims)


def _source(value: Any) -> str:
    """Python that makes this value again."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, QuorumLease):
        inner = ", ".join(f"{each.name}={_source(getattr(value, each.name))}" for each in fields(value))
        return f"QuorumLease({inner})"
    return repr(value)


def conclude(
    checker: Checker,
    options: argparse.Namespace,
    shown: dict[str, Any],
    expression: str,
    imports: Sequence[str],
    claims: Claims | None = None,
) -> int:
    """Run a check and tell what it found. ``expression`` is what makes the model again, for a test that replays."""
    with progress(quiet=options.json) as tell:
        checker.search.listener = lambda so_far: tell(explored(so_far))
        try:
            result = checker.run()
        except KeyboardInterrupt:
            sys.stderr.write(f"trinco: interrupted: {explored(checker.progress)}, no violation so far\n")
            return exits.INTERRUPTED
    if options.json:
        print_json(shown | as_dict(result))
    else:
        show(result, shown, claims)
    found = result.counterexample
    if found and options.trace:
        write_trace(options.trace, found.recording)
    if found and options.write_test:
        command = " ".join(["trinco", *sys.argv[1:]])
        write_text(options.write_test, as_pytest(found, expression, imports, command))
    if not found:
        _tell_what_was_not_written(options)
    return {Verdict.HOLDS: exits.DONE, Verdict.VIOLATED: exits.VIOLATED}.get(result.verdict, exits.INCONCLUSIVE)


def _tell_what_was_not_written(options: argparse.Namespace) -> None:
    for path in filter(None, (options.trace, options.write_test)):
        sys.stderr.write(f"trinco: {path} was not written: there is no counterexample\n")


def explored(so_far: Progress) -> str:
    return (
        f"{so_far.stage}: {so_far.states:,} states, depth {so_far.depth}, {so_far.states_per_second:,.0f} states/s, "
        f"memo hits {so_far.memo_hit_rate:.2%}"
    )


def as_dict(result: Result) -> dict[str, Any]:
    so_far, found = result.progress, result.counterexample
    kind = result.violation.kind if result.violation else None
    conclusive = result.verdict is not Verdict.INCONCLUSIVE and not result.cut_off
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


def show(result: Result, shown: dict[str, Any], claims: Claims | None) -> None:
    what = ", ".join(f"{name} {value}" for name, value in shown.items() if name not in ("protocol", "exhibit"))
    print(f"{shown.get('exhibit') or shown['protocol']}: {what}")
    so_far = result.progress
    size = f"{so_far.states:,} states, {so_far.transitions:,} transitions, depth {so_far.depth}"
    speed = f"in {so_far.seconds:.2f} s ({so_far.states_per_second:,.0f} states/s)"
    print_facts([("explored", f"{size}, {speed}"), ("verdict", _verdict(result, claims))])
    found = result.counterexample
    if found:
        print()
        print_timeline(found.recording.events(), found.recording.header.n, steps=True, repeats_from=found.cycle_from)


def _verdict(result: Result, claims: Claims | None) -> str:
    if result.violation:
        return f"VIOLATED, {result.violation.kind}: {result.violation.text}"
    if result.verdict is Verdict.INCONCLUSIVE:
        return (
            "INCONCLUSIVE: no violation so far, and a bound ended the search; raise --max-states or --max-memory, or "
            "make the model smaller: fewer nodes (-n), --rounds or --fires"
        )
    if claims and claims.elects:
        return "no violation: one leader, known to all whenever nothing is under way; the election can always end"
    free = (claims is None or claims.deadlock_free) and not result.cut_off
    deadlock = "deadlock-free" if free else "no deadlock within these bounds"
    return f"no violation: safe, {deadlock}{_starvation(result, claims)}"


def _starvation(result: Result, claims: Claims | None) -> str:
    """What is known of starvation where none was found."""
    if result.cut_off:
        return (
            "; starvation cannot be told: somebody may still wait when a timer has fired as often as it may (--fires)"
        )
    if not result.liveness:
        return "; starvation not looked for"
    free = claims is None or claims.starvation_free
    return ", starvation-free" if free else ", no starvation within these bounds"
