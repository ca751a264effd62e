"""``trinco doctor``: whether a store can be trusted with locks. One line for each probe."""

import argparse
import os
from itertools import pairwise
from math import gcd
from time import monotonic

from trinco.cli import exits
from trinco.cli.health import CLOCKS_AGREE, SLOW, clock_in_words
from trinco.cli.output import print_json
from trinco.cli.parser import add_json
from trinco.cli.progress import progress
from trinco.core.duration import in_words
from trinco.core.errors import StoreForbidden, TrincoError
from trinco.leases.accesses import Read, Versioned
from trinco.locks.caller import LISTED, Caller, Nonsense, Unable
from trinco.locks.config import find_service
from trinco.locks.health import clock_offset, latency, probe_name, unknown_name
from trinco.stores.catalogue import open_store
from trinco.stores.store import Store
from trinco.testing import conformance
from trinco.testing.bench import TERM, Bench, TooSlow, must

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Probe: TypeAlias = "Callable[[Bench], tuple[str, str]]"

EXAMPLES = """examples:
  trinco doctor redis://localhost:6379/0
  trinco doctor postgresql://host/locks dir:///mnt/locks
  trinco doctor @backups                 every store of a service of trinco.toml
  trinco doctor                          what trinco would use here

Some servers that call themselves compatible ignore preconditions, or are not atomic: two would hold one lock. The
probes use locks of their own (trinco/doctor/HOST-...), which the store keeps; nobody else's are touched. A race takes
16 connections at once: a server with fewer to spare cannot be probed now.

exit: 0 all can be used, 1 a store is unfit, 69 a store cannot be used now or is too slow to tell, 77 we may not use one
"""
FOLDER = "trinco/doctor/"
SLOTS = 64
"""So many names for each host: two doctors at once should not meet, and not every doctor should leave a name behind."""
LOOKS = 16
FEWEST_LOOKS = 3
LOOK_SECONDS = 2.0
OK, WARN, BAD, GONE, NOT_NOW, DENIED = "ok", "warning", "UNFIT", "unreachable", "not now", "forbidden"
UNTOLD = "too slow"
"""One probe has shown nothing, and another may."""
CODES = {BAD: exits.VIOLATED, **dict.fromkeys((GONE, NOT_NOW, UNTOLD), exits.UNAVAILABLE), DENIED: exits.KEYS}
"""The worst first."""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "Probe stores: whether they can be reached, and whether two could ever hold one lock there."
    parser.epilog = EXAMPLES
    parser.add_argument("targets", metavar="URL|@SERVICE", nargs="*", help="the stores, or a service of trinco.toml")
    parser.add_argument("-u", "--url", metavar="URL|@SERVICE", action="append", default=[], help="another of them")
    parser.add_argument("-c", "--config", metavar="FILE", help="a configuration other than trinco.toml")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    verdicts = []
    for store in _stores(options):
        if not options.json:
            print(f"{store.url} ({store.kind})", flush=True)
        verdicts.append((store, examine(store, quiet=options.json)))
    if options.json:
        print_json([{"url": store.url, "kind": store.kind, "probes": _as_dicts(probes)} for store, probes in verdicts])
    found = {state for _, probes in verdicts for _, state, _ in probes}
    return next((code for state, code in CODES.items() if state in found), exits.DONE)


def _stores(options: argparse.Namespace) -> list[Store]:
    urls: list[str] = []
    for target in [*options.targets, *options.url] or [None]:
        urls += find_service(target, options.config).stores
    return [open_store(url) for url in dict.fromkeys(urls)]


def _as_dicts(probes: "list[tuple[str, str, str]]") -> list[dict[str, str]]:
    return [{"probe": name, "state": state.lower(), "says": says} for name, state, says in probes]


def examine(store: Store, *, quiet: bool) -> "list[tuple[str, str, str]]":
    """Name, state and words of every probe. After one that cannot use the store there is no other."""
    name = f"{probe_name(FOLDER)}-{os.getpid() % SLOTS}"
    done: list[tuple[str, str, str]] = []
    with Bench(store, name=lambda: name) as bench:
        for what, probe in PROBES.items():
            with progress(quiet) as tell:
                tell(f"{what} ({len(done) + 1} of {len(PROBES)})")
                state, says = _judged(probe, bench)
            if state != OK:
                bench.close()  # nobody knows what went wrong on its links
            done.append((what, state, says))
            if not quiet:
                print(f"  {what:<24}{state:<12} {says}".rstrip(), flush=True)
            if state in (GONE, NOT_NOW, DENIED):
                break
    return done


def _judged(probe: "Probe", bench: Bench) -> tuple[str, str]:
    try:
        return probe(bench)
    except (AssertionError, Nonsense) as finding:
        return BAD, str(finding)
    except StoreForbidden as error:
        return DENIED, str(error)
    except TooSlow as error:
        return UNTOLD, str(error)
    except Unable as error:
        return NOT_NOW, str(error)
    except TrincoError as error:
        return GONE, str(error)


# The probes


def _reach(bench: Bench) -> tuple[str, str]:
    caller = bench.caller()
    holder = caller.look(bench.name()).holder
    if holder is not None:
        longest = TERM + caller.granularity
        must(holder.until <= longest, f"it says that somebody has a lock of ours for {in_words(holder.until)}")
        raise Unable(
            f"another doctor is at work at {bench.store.url}, for {in_words(holder.until)} at most: try again then"
        )
    bench.take_back(caller)
    return OK, ""


def _clock(bench: Bench) -> tuple[str, str]:
    caller = bench.caller()
    offset = clock_offset(caller)
    if offset is None:
        caller.look(bench.name())
        return OK, f"ages are exact to {in_words(caller.granularity)}"
    tick = _granularity(caller)
    bench.take_back(caller)
    says = f"{clock_in_words(offset)}, in steps of {in_words(tick)}" if tick else f"{clock_in_words(offset)}"
    if abs(offset) > CLOCKS_AGREE:
        return WARN, f"{says}: set one of the clocks, tokens begin there"
    return OK, says


def _granularity(caller: Caller) -> float:
    """What all differences of its times have in common; 0 if it stood still."""
    times = []
    for _ in _looks():
        reply = caller.access(unknown_name(), Read())
        times.append(reply.item.token if isinstance(reply, Versioned) else 0)
    return gcd(*(later - earlier for earlier, later in pairwise(times))) / 1e6


def _looks() -> "Iterator[int]":
    """Sixteen, or a few where each takes long."""
    end = monotonic() + LOOK_SECONDS
    for number in range(LOOKS):
        if number < FEWEST_LOOKS or monotonic() < end:
            yield number


def _check(*checks: "Callable[[Bench], None]") -> "Probe":
    def probe(bench: Bench) -> tuple[str, str]:
        for check in checks:
            check(bench)
        return OK, ""

    return probe


def _race(bench: Bench) -> tuple[str, str]:
    rounds = conformance.rounds_with_one_winner(bench)
    winners = "at most one" if bench.store.kind in LISTED else "one"
    return OK, f"{winners} of {conformance.RACERS} won, {rounds} times"


def _latency(bench: Bench) -> tuple[str, str]:
    caller = bench.caller()
    caller.seconds.clear()  # what a racer waited for is no measure
    for _ in _looks():
        caller.look(bench.name())
    median = latency(caller)
    assert median is not None
    if median > SLOW:
        return WARN, f"{in_words(median)} for one access: every lock takes a few of them"
    return OK, f"{in_words(median)} for one access"


PROBES: "dict[str, Probe]" = {
    "reachable": _reach,
    "clock": _clock,
    "conditional create": _check(
        conformance.a_lock_that_is_held_is_not_granted_to_another,
        conformance.a_lock_that_was_released_is_granted_to_the_next,
        conformance.asking_again_changes_nothing,
    ),
    "stale compare-and-set": _check(
        conformance.a_write_of_what_has_changed_since_fails,
        conformance.a_write_that_compares_with_what_is_gone_fails,
        conformance.an_old_attempt_changes_nothing,
    ),
    "stale delete": _check(
        conformance.a_release_by_another_removes_nothing, conformance.a_release_is_of_exactly_one_claim
    ),
    "end of a term": _check(conformance.a_lease_ends_with_its_term),
    "tokens": _check(conformance.tokens_only_rise),
    "race of creates": _race,
    "latency": _latency,
}
