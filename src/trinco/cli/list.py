"""``trinco list``: the locks that a service knows of."""

import argparse

from trinco.cli import exits
from trinco.cli.output import print_json, print_table
from trinco.cli.parser import add_json
from trinco.cli.services import OWN_NAMES, PROBES, add_service, ago, lock_as_dict, open_service
from trinco.cli.streams import say
from trinco.core.duration import in_words
from trinco.core.errors import StoreUnavailable, UsageError
from trinco.locks.inspection import LockInfo
from trinco.locks.names import shown
from trinco.locks.service import LockService

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
        locks = [info for info in _known(service, options.prefix) if _is_wanted(info, options)]
    if options.json:
        print_json([lock_as_dict(info) for info in locks])
    elif not locks:
        print("no locks" + (" are held" if options.held else ""))
    else:
        headings = ("lock", "holder", "since", "remaining", "token", "waiting")
        print_table("Locks", headings, map(_row, locks), whole=("token", "remaining", "waiting", "since"))
    return exits.DONE


def _known(service: LockService, prefix: str) -> list[LockInfo]:
    """One lock that cannot be looked at (somebody else's data, a damaged entry) does not hide the others."""
    known, errors = [], []
    for name in service.names(prefix):
        try:
            known.append(service.inspect(name))
        except (StoreUnavailable, UsageError) as error:
            errors.append(error)
            say(f"'{shown(name)}' cannot be looked at: {error}")
    if errors and not known:
        raise errors[0]
    return known


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
        shown(info.owner) if info.held else "(free)",
        ago(info.age) if info.held else "",
        in_words(info.remaining) if info.held else "",
        "-" if info.token is None else str(info.token),
        str(len(info.waiters) or ""),
    )
