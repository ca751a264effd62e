"""``trinco list``: the locks that a service knows of."""

import argparse

from trinco.cli import exits
from trinco.cli.output import print_json, print_table
from trinco.cli.parser import add_json
from trinco.cli.services import OWN_NAMES, PROBES, add_service, ago, lock_as_dict, open_service
from trinco.core.duration import in_words
from trinco.locks.inspection import LockInfo

EXAMPLES = """examples:
  trinco list                       every lock that was ever used
  trinco list --held                those that somebody holds
  trinco list backups/ --json       those that begin with backups/
  trinco list trinco/               what 'trinco health' and 'trinco doctor' probe with

exit: 0 it could be looked at; 69 the store cannot be reached
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "The locks that the stores know of, held or free. A released lock keeps its token."
    parser.epilog = EXAMPLES
    parser.add_argument("prefix", metavar="PREFIX", nargs="?", default="", help="only names that begin with this")
    parser.add_argument("--held", action="store_true", help="only locks that somebody holds")
    add_service(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    with open_service(options) as service:
        known = map(service.inspect, service.names(options.prefix))
        locks = [info for info in known if _is_wanted(info, options)]
    if options.json:
        print_json([lock_as_dict(info) for info in locks])
    elif not locks:
        print("no locks" + (" are held" if options.held else ""))
    else:
        print_table("Locks", ("lock", "holder", "since", "remaining", "token", "waiting"), map(_row, locks))
    return exits.DONE


def _is_wanted(info: LockInfo, options: argparse.Namespace) -> bool:
    """What is held is in somebody's way, whatever it is called. What a probe left behind is free, and only shown to
    whoever asks for it."""
    if info.held:
        return True
    is_left_over = info.name.startswith(PROBES) and not options.prefix.startswith(OWN_NAMES)
    return not options.held and not is_left_over


def _row(info: LockInfo) -> tuple[str, ...]:
    return (
        info.name,
        info.owner or "(free)",
        ago(info.age) if info.held else "",
        in_words(info.remaining) if info.held else "",
        "-" if info.token is None else str(info.token),
        str(len(info.waiters) or ""),
    )
