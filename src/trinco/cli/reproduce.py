"""``trinco reproduce``: a paper's tables and figures, beside what we measure."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from trinco.cli import exits
from trinco.cli.files import refuse_unwritable, write_plot
from trinco.cli.output import print_json, print_table
from trinco.cli.work import add_jobs, work_on
from trinco.core.errors import UsageError
from trinco.core.nearest import suggest
from trinco.lab.reproduction import EXPERIMENTS, Reproduction, names

EXAMPLES = """examples:
  trinco reproduce                        what can be reproduced
  trinco reproduce forks                  messages per entry of the projective forks, claim by claim
  trinco reproduce forks --quick
  trinco reproduce robust-k --plot robust-k.png
  trinco reproduce bakery --json
  trinco reproduce leases --quick         accesses, costs and latency of leases over clouds

exit: 0 whenever it ran to its end; a claim that does not hold is a finding, not a failure
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run a paper's experiments again: its figures, ours beside them, and a verdict on each claim."
    parser.epilog = EXAMPLES
    parser.add_argument("experiment", nargs="?", help="which paper; without it, what there is")
    parser.add_argument("--quick", action="store_true", help="smaller counts, for a first look")
    add_jobs(parser)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw its figures (.png or .svg)")
    what = "print JSON instead of text for people: an object, or a list of what there is"
    parser.add_argument("--json", action="store_true", help=what)


def run(options: argparse.Namespace) -> int:
    if options.experiment is None:
        _refuse_without_experiment(options)
        return _list(options.json)
    if options.plot:
        from trinco.view.plots import format_of, need_matplotlib

        format_of(options.plot.name)
        need_matplotlib()
        refuse_unwritable(options.plot)
    experiment = _find(options.experiment)
    made: Reproduction | None = work_on(
        options, lambda executor, listener: experiment.reproduce(executor, listener, quick=options.quick)
    )
    if made is None:
        return exits.INTERRUPTED
    if options.json:
        print_json({"experiment": options.experiment, "quick": options.quick, **made.as_dict()})
    else:
        _show(made)
    if options.plot:
        _draw(made, options.plot)
    return exits.DONE


def _refuse_without_experiment(options: argparse.Namespace) -> None:
    for flag, is_said in {"--plot": options.plot, "--quick": options.quick, "--jobs": options.jobs}.items():
        if is_said:
            raise UsageError(f"{flag} is for an experiment: name one ({', '.join(names())})")


def _list(as_json: bool) -> int:
    known = {name: str(_find(name).SUMMARY) for name in names()}
    if as_json:
        print_json([{"name": name, "summary": summary} for name, summary in known.items()])
    else:
        print_table("What can be reproduced", ("experiment", "what it shows"), list(known.items()))
    return exits.DONE


def _find(name: str) -> Any:
    if name not in EXPERIMENTS:
        known = ", ".join(names())
        raise UsageError(f"there is no experiment '{name}'{suggest(name, EXPERIMENTS)} (there are: {known})")
    return import_module(EXPERIMENTS[name])


def _draw(made: Reproduction, path: Path) -> None:
    from trinco.view.panels import draw_panels

    write_plot(path, draw_panels(made.paper, made.panels))


def _show(made: Reproduction) -> None:
    print(made.paper)
    for table in made.tables:
        print()
        print_table(table.title, table.headings, table.rows)
    print()
    rows = [(each.claim, each.published, each.ours, each.verdict.value, each.note) for each in made.findings]
    print_table("What the paper claims", ("claim", "published", "ours", "verdict", ""), rows)
