"""``trinco health``: which store is down, slow, or was caught lying."""

import argparse

from trinco.cli import exits
from trinco.cli.output import print_json, print_table
from trinco.cli.parser import add_json
from trinco.cli.services import add_service, open_service
from trinco.core.duration import in_words
from trinco.core.errors import Denial
from trinco.locks.health import BUSY, TOO_SLOW, StoreHealth

EXAMPLES = """examples:
  trinco health
  trinco health -u @backups --json

Each store is challenged on a lock of its own (trinco/health/HOST): two made-up owners try what must not work.

exit: 0 at least one store could be looked at, 69 none, 77 we may use none
"""
SOUND = ("ok", "slow", "busy")
UNJUDGED = {BUSY: "busy", TOO_SLOW: "slow"}
"""They work, and could not be challenged."""
SLOW = 0.1
"""Seconds for one access: locking takes a few of them."""
CLOCKS_AGREE = 10.0
"""Seconds; where tokens begin, wall clocks should be closer than this."""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "What each store of a service is worth: reachable, how quick, and whether it keeps its word."
    parser.epilog = EXAMPLES
    add_service(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    with open_service(options) as service:
        stores = list(service.health())
        f, quorum = service.f, service.desk.quorum
    sound = sum(_state(store) in SOUND for store in stores)
    if options.json:
        print_json({"f": f, "quorum": quorum, "sound": sound, "stores": [_as_dict(store) for store in stores]})
    else:
        print_table(
            "Stores",
            ("store", "state", "latency", "clock", "what is wrong"),
            map(_row, stores),
            whole=("state", "latency"),
        )
        if len(stores) > 1:
            print(f"{sound} of {len(stores)} stores are sound; it takes {quorum}, and {f} may fail in any way")
    if any(store.reachable and not isinstance(store.trouble, Denial) for store in stores):
        return exits.DONE
    return exits.KEYS if all(isinstance(store.trouble, Denial) for store in stores) else exits.UNAVAILABLE


def _state(store: StoreHealth) -> str:
    if store.lies:
        return "LYING"
    if not store.reachable:
        return "down"
    if store.trouble:
        return UNJUDGED.get(store.trouble, "out")
    return "slow" if store.latency is not None and store.latency > SLOW else "ok"


def _as_dict(store: StoreHealth) -> dict[str, object]:
    return {
        "url": store.url,
        "state": _state(store).lower(),
        "reachable": store.reachable,
        "latency": store.latency,
        "clock": store.clock,
        "last_answer": store.last_answer,
        "trouble": store.trouble,
        "lies": list(store.lies),
    }


def _row(store: StoreHealth) -> tuple[str, ...]:
    latency = "-" if store.latency is None else in_words(store.latency)
    wrong = [*store.lies, *filter(None, [store.trouble])]
    if store.clock is not None and abs(store.clock) > CLOCKS_AGREE:
        wrong.append("its clock and ours disagree: set one of them")
    return store.url, _state(store), latency, clock_in_words(store.clock), "; ".join(wrong)


def clock_in_words(offset: float | None) -> str:
    """How far a store's clock is from ours."""
    if offset is None:
        return "-"
    side = "ahead" if offset > 0 else "behind"
    return "as ours" if abs(offset) < 0.001 else f"{in_words(abs(offset))} {side}"
