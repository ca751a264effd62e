"""``trinco wait``: until nobody holds a lock."""

import argparse
import time

from trinco.cli import exits
from trinco.cli.parser import usage
from trinco.cli.services import add_service, open_service
from trinco.cli.streams import say
from trinco.core.duration import in_words, seconds
from trinco.core.errors import StoreUnavailable, UsageError
from trinco.locks.books import GLANCE, LOOK_PATIENCE
from trinco.locks.inspection import LockInfo
from trinco.locks.names import require_name, shown
from trinco.locks.service import LockService

EXAMPLES = """examples:
  trinco wait nightly && ./report.sh      after whoever holds it now; it is not taken
  trinco wait -w 10m nightly              for ten minutes at most

To run something while nobody else does, use 'trinco run': a lock that is free here may be taken a moment later.

exit: 0 nobody holds it, 75 it was held all the time, 69 the store cannot be reached
"""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
"""Seconds between two looks; each is twice as long as the one before."""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "Wait until nobody holds a lock, without taking it."
    parser.epilog = EXAMPLES
    parser.add_argument("name", metavar="NAME", help="the lock")
    parser.add_argument("-w", "--wait", metavar="DUR", type=usage(seconds), help="how long at most (30, 500ms, 2m, 1h)")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not say who held it when the time is over")
    add_service(parser)


def run(options: argparse.Namespace) -> int:
    if options.wait is not None and options.wait < 0:
        raise UsageError("a time to wait is not negative")
    name = require_name(options.name)
    end = float("inf") if options.wait is None else time.monotonic() + options.wait
    pause = SHORTEST_PAUSE
    with open_service(options) as service:
        info = _look(service, name, end, GLANCE if options.wait else LOOK_PATIENCE)
        while info.held:
            left = end - time.monotonic()
            if left <= 0:
                return _gave_up(info, options)
            time.sleep(min(pause, left, info.remaining + SHORTEST_PAUSE))
            pause = min(2 * pause, LONGEST_PAUSE)
            info = _look_again(service, info, end)
    return exits.DONE


def _look(service: LockService, name: str, end: float, least: float) -> LockInfo:
    """A store that says nothing is given no more time than there is, but always as much as an answer takes: who does
    not wait at all (-w 0) wants to know, too."""
    patience = min(max(end - time.monotonic(), least), LOOK_PATIENCE)
    return service.desk.look(name, patience).info(service.desk.hub, service.enough)


def _look_again(service: LockService, before: LockInfo, end: float) -> LockInfo:
    """Whoever waits already waits for the store, too."""
    try:
        return _look(service, before.name, end, GLANCE)
    except StoreUnavailable:
        if time.monotonic() >= end:
            raise
        return before.but(remaining=LONGEST_PAUSE)


def _gave_up(info: LockInfo, options: argparse.Namespace) -> int:
    if not options.quiet:
        waited = f" after {in_words(options.wait)}" if options.wait else ""
        say(f"the lock '{info.name}' is still held by {shown(info.owner)}{waited}")
    return exits.NOT_ACQUIRED
