"""``trinco elect``: a command that runs where we lead. An election is a lock with a long view, in words of its own."""

import argparse

from trinco.cli.parser import Parser
from trinco.cli.run import Words, add_options, run_with, split

__all__ = ["register", "run", "split"]

EXAMPLES = """examples:
  trinco elect scheduler -- ./scheduler             stand by until we lead, then run; on every host
  trinco elect -n scheduler -- ./scheduler          exit 75 at once if somebody leads

One of all who stand for the same name leads at a time. TRINCO_TOKEN is the leader's term: it rises with every leader.
When the command ends, or this host is cut off from the stores, we step down and another one leads. All else is as in
'trinco run --help'.
"""

LEAD = Words("the election", "is led by", "is won", "is open again")


def register(parser: Parser) -> None:
    parser.description = "Run a command while leading an election: many stand by, one runs."
    parser.epilog = EXAMPLES
    add_options(parser)


def run(options: argparse.Namespace) -> int:
    return run_with(options, LEAD)
