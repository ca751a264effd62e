"""``trinco list``: the locks that a service knows of."""

import argparse

from trinco.cli import exits
from trinco.cli.output import print_json, print_table
from trinco.cli.parser import add_json
from trinco.cli.services import OWN_NAMES, add_service, ago, lock_as_dict, open_service
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
        names = [name for name in service.names(options.prefix) if _is_wanted(name, options.prefix)]
        locks = [info for info in map(service.inspect, names) if info.held or not options.held]
    if options.json:
        print_json([lock_as_dict(info) for info in locks])
    elif not locks:
        print("no locks" + (" are held" if options.held else ""))
    else:
        print_table("Locks", ("lock", "holder", "since", "remaining", "token", "waiting"), map(_row, locks))
    return exits.DONE


def _is_wanted(name: str, prefix: str) -> bool:
    return prefix.startswith(OWN_NAMES) or not name.startswith(OWN_NAMES)


def _row(info: LockInfo) -> tuple[str, ...]:
    return (
        info.name,
        info.owner or "(free)",
        ago(info.age) if info.held else "",
        in_words(info.remaining) if info.held else "",
        "-" if info.token is None else str(info.token),
        str(len(info.waiters) or ""),
    )
