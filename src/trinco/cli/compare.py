"""``trinco compare``: the algorithms side by side, claimed and measured."""

import argparse
import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from trinco.cli import exits
from trinco.cli.comparison_tables import print_comparison, print_elections, print_vote_loss
from trinco.cli.files import refuse_unwritable, write_plot, write_text
from trinco.cli.output import print_json
from trinco.cli.parser import add_json, add_settings, whole
from trinco.cli.sizes import tell_if_alone
from trinco.cli.work import add_jobs, work_on
from trinco.core.errors import UsageError
from trinco.core.trace import MOST_NODES
from trinco.lab import vote_loss
from trinco.lab.comparison import SIZES, compare, subjects
from trinco.lab.election_comparison import compare_elections, elections

EXAMPLES = """examples:
  trinco compare                                    every algorithm, n = 4 to 128
  trinco compare --plot compare.png                 and a picture: formulas as lines, measurements as points
  trinco compare lamport maekawa -n 4,16            two of them
  trinco compare voting --set doublings=1 -n 32     short back-offs: the use of the resource falls as the load grows
  trinco compare --elections --plot elections.svg   messages against n, and against the rank of who notices
  trinco compare --vote-loss                        what coordinators that forget may do to voting
  trinco compare --csv compare.csv --json

exit: 0 done, 1 something measured contradicts what is claimed
"""

T = TypeVar("T")


def register(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compare algorithms: messages per entry, delays, fairness, properties and the use of the resource, each as "
        "claimed and as measured, over a sweep of n."
    )
    parser.epilog = EXAMPLES
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help="names from 'trinco protocols' (all)")
    sizes = ",".join(map(str, SIZES))
    parser.add_argument("-n", type=_sizes, metavar="N,N,...", help=f"numbers of nodes ({sizes})")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--elections", action="store_true", help="compare elections instead")
    instead.add_argument(
        "--vote-loss", action="store_true", help="how likely it is that lost votes let two in, instead"
    )
    add_settings(parser)
    parser.add_argument("--seed", type=whole(0, "the seed"), help="decides everything that is random (0)")
    add_jobs(parser)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write all figures as a table")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture: .png or .svg")
    add_json(parser)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({whole(2, "n", MOST_NODES)(each.strip()) for each in text.split(",")}))


def run(options: argparse.Namespace) -> int:
    _refuse_in_vain(options)
    options.seed = options.seed or 0
    if options.vote_loss:
        return _vote_loss(options)
    return _elections(options) if options.elections else _compare(options)


def _refuse_in_vain(options: argparse.Namespace) -> None:
    """What could only fail after minutes of work."""
    if options.vote_loss and (options.protocols or options.n or options.set or options.plot or options.jobs):
        raise UsageError("--vote-loss takes no protocols, no -n, no --set, no --plot and no --jobs")
    if options.elections and options.seed is not None:
        raise UsageError("nothing is random in what --elections compares: it takes no --seed")
    if options.plot:
        from trinco.view.plots import format_of, need_matplotlib

        format_of(options.plot.name)
        need_matplotlib()
    refuse_unwritable(options.csv, options.plot)


def _compare(options: argparse.Namespace) -> int:
    chosen = subjects(options.protocols, options.set)
    sizes = options.n or SIZES
    for subject in chosen:
        for n in sizes:
            tell_if_alone(subject.entry, subject.entry.nodes(n))
    compared = work_on(options, lambda executor, tell: compare(chosen, sizes, options.seed, executor, tell))
    if compared is None:
        return exits.INTERRUPTED
    if options.json:
        told = [each.as_dict() for each in compared]
        print_json({"seed": options.seed, "sizes": list(sizes), "protocols": told})
    else:
        print_comparison(compared)
    if options.csv:
        _write_csv(options.csv, [row for each in compared for row in each.rows()])
    if options.plot:
        from trinco.view.comparison_plot import draw_comparison

        write_plot(options.plot, draw_comparison(compared))
    return exits.VIOLATED if any(list(each.violations) for each in compared) else exits.DONE


def _elections(options: argparse.Namespace) -> int:
    chosen = elections(options.protocols, options.set)
    sizes = options.n or SIZES
    compared = work_on(options, lambda executor, tell: compare_elections(chosen, sizes, executor, tell))
    if compared is None:
        return exits.INTERRUPTED
    if options.json:
        print_json({"sizes": list(sizes), "elections": [each.as_dict() for each in compared]})
    else:
        print_elections(compared)
    if options.csv:
        _write_csv(options.csv, [row for each in compared for row in each.rows()])
    if options.plot:
        from trinco.view.comparison_plot import draw_elections

        write_plot(options.plot, draw_elections(compared))
    return exits.VIOLATED if any(cost.violation for each in compared for cost in each.costs) else exits.DONE


def _vote_loss(options: argparse.Namespace) -> int:
    losses, measured = vote_loss.table(), vote_loss.simulate(seed=options.seed)
    predicted = [asdict(each) for each in losses]
    simulated = [asdict(each) | {"share": each.share} for each in measured]
    if options.json:
        print_json({"seed": options.seed, "predicted": predicted, "simulated": simulated})
    else:
        print_vote_loss(losses, measured)
    if options.csv:
        _write_csv(options.csv, [*predicted, *simulated])
    return exits.DONE


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())
