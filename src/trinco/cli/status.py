"""``trinco status``: who holds a lock, since when, and who waits."""

import argparse

from trinco.cli import exits
from trinco.cli.output import print_facts, print_json
from trinco.cli.parser import add_json
from trinco.cli.services import add_service, ago, lock_as_dict, open_service
from trinco.core.duration import in_words
from trinco.core.printable import shortened
from trinco.locks.entries import MAX_METADATA_BYTES
from trinco.locks.inspection import LockInfo
from trinco.locks.names import shown

EXAMPLES = """examples:
  trinco status nightly
  trinco status -u redis://localhost nightly --json

exit: 0 it could be looked at, held or not; 69 the store cannot be reached
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "Who holds a lock, since when, for how long, and who waits. Nothing is changed."
    parser.epilog = EXAMPLES
    parser.add_argument("name", metavar="NAME", help="the lock; a unit of a semaphore is NAME[0]")
    add_service(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    with open_service(options) as service:
        info = service.inspect(options.name)
    if options.json:
        print_json(lock_as_dict(info))
    else:
        print_facts(_facts(info))
    return exits.DONE


def _facts(info: LockInfo) -> list[tuple[str, str]]:
    facts = [("lock", info.name)]
    if info.held:
        facts += [
            ("state", "held"),
            ("holder", shown(info.owner)),
            ("since", ago(info.age)),
            ("remaining", f"{in_words(info.remaining)}, unless it is renewed"),
        ]
    else:
        facts += [("state", "free")]
    facts += [("token" if info.held else "last token", "-" if info.token is None else str(info.token))]
    if info.metadata:
        facts.append(("metadata", shortened(info.metadata, MAX_METADATA_BYTES)))
    facts.append(("waiting", ", ".join(map(shown, info.waiters)) or "nobody"))
    if info.why:
        facts.append(("note", info.why))
    return facts
