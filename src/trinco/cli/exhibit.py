"""``trinco exhibit``: flaws kept alive."""

import argparse
from dataclasses import replace

from trinco.cli import exits
from trinco.cli.check import add_bounds, add_counterexample, checker_of, conclude
from trinco.cli.files import refuse_unwritable
from trinco.cli.output import print_json, print_table
from trinco.core.errors import UsageError
from trinco.lab.exhibits.catalogue import EXHIBITS, find

EXAMPLES = """examples:
  trinco exhibit                                    list them
  trinco exhibit slides/S-5                         find and draw its shortest counterexample
  trinco exhibit slides/S-5 --write-test test_s5.py keep it as a test

exit: 1, since every exhibit violates something (0 for the list)
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "A flaw as it was printed or built. Finds its shortest counterexample and draws it."
    parser.epilog = EXAMPLES
    parser.add_argument("exhibit", nargs="?", metavar="NAME", help="which one; without a name, all are listed")
    parser.add_argument("--no-reductions", action="store_true", help="plain search, whatever the protocol declares")
    add_bounds(parser)
    add_counterexample(parser)
    what = "print JSON instead of text for people: an object, or a list if all are listed"
    parser.add_argument("--json", action="store_true", help=what)


def run(options: argparse.Namespace) -> int:
    if options.exhibit is None:
        _refuse_without_exhibit(options)
        return _list(options.json)
    exhibit = find(options.exhibit)
    refuse_unwritable(options.trace, options.write_test)
    model = replace(exhibit.model(), reductions=not options.no_reductions)
    checker = checker_of(model, exhibit.name, options)
    if not options.json:
        print(f"{exhibit.title}\nprinted: {exhibit.printed}\n{exhibit.lesson}\n")
    shown = {"exhibit": exhibit.name, "protocol": exhibit.name, "n": len(model.nodes)}
    imports = ["from trinco.lab.exhibits.catalogue import find"]
    return conclude(checker, options, shown, f"find({exhibit.name!r}).model()", imports)


def _refuse_without_exhibit(options: argparse.Namespace) -> None:
    for path in filter(None, (options.trace, options.write_test)):
        raise UsageError(f"nothing can be written to {path}: name the exhibit")
    said = {
        "--no-reductions": options.no_reductions,
        "--max-states": options.max_states,
        "--max-memory": options.max_memory,
    }
    for flag, is_said in said.items():
        if is_said:
            raise UsageError(f"{flag} is for the search of an exhibit: name one")


def _list(as_json: bool) -> int:
    if as_json:
        names = ("name", "title", "printed", "lesson", "breaks")
        print_json([{name: getattr(exhibit, name) for name in names} for exhibit in EXHIBITS])
    else:
        rows = [(exhibit.name, exhibit.breaks, exhibit.title) for exhibit in EXHIBITS]
        print_table("Exhibits: 'trinco exhibit NAME' shows one", ("name", "breaks", "what it is"), rows)
    return exits.DONE
