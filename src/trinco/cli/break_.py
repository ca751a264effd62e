"""``trinco break``: take a lock away from whoever holds it."""

import argparse

from trinco.cli import exits
from trinco.cli.output import print_json, print_line
from trinco.cli.parser import add_json, whole
from trinco.cli.services import add_service, lock_as_dict, open_service
from trinco.cli.streams import say
from trinco.locks.inspection import LockInfo
from trinco.locks.names import shown

EXAMPLES = """examples:
  trinco break nightly                         whoever holds it
  trinco break nightly --token 1794810655244   only the holder that 'trinco status' showed

Its holder learns of it at its next renewal, a third of its ttl later at most. Until then it may go on writing: only
what checks the token (trinco.guards) is safe. To end the holder itself, kill its process.

exit: 0 it was taken away, 1 nothing was held (or by another token), 69 the store cannot be reached
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "Take a lock away from whoever holds it."
    parser.epilog = EXAMPLES
    parser.add_argument("name", metavar="NAME", help="the lock")
    parser.add_argument("--token", metavar="N", type=whole(0, "a token"), help="only if its holder has this token")
    add_service(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    with open_service(options) as service:
        info = service.inspect(options.name)
        broken = service.break_(options.name, token=options.token)
    if options.json:
        print_json({"broken": broken, **lock_as_dict(info)})
    elif broken:
        print_line(f"broke '{info.name}', held by {shown(info.owner)} with token {info.token}")
    else:
        say(_why_not(info, options.token))
    return exits.DONE if broken else exits.VIOLATED


def _why_not(info: LockInfo, token: int | None) -> str:
    if info.held and token is not None and token != info.token:
        return f"'{info.name}' is held by {shown(info.owner)} with token {info.token}, not {token}: nothing was broken"
    if info.held and info.why:
        return f"'{info.name}' is still held, and nothing was broken: {info.why}"
    if info.held:
        again = f"{shown(info.owner)} has it again"
        return f"'{info.name}' has changed hands meanwhile, or {again}: nothing was broken; try again"
    return f"nobody holds '{info.name}': nothing was broken"
