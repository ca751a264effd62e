"""Flags of ``trinco sim`` that contradict each other, or that were given and would change nothing."""

import argparse

from trinco.core.errors import UsageError
from trinco.protocols.catalogue import Entry

MOST_TRACED = 5_000
"""Nodes. Every line of a trace has the clock of everybody, and everybody begins with a line."""


def refuse_contradictions(options: argparse.Namespace) -> None:
    if options.trace and options.no_trace:
        raise UsageError("--trace and --no-trace contradict each other")
    if options.timeline and options.no_trace:
        raise UsageError("--timeline draws the trace: it contradicts --no-trace")
    if options.timeline and options.json:
        raise UsageError("--timeline draws for people: it contradicts --json")


def refuse_idle_flags(entry: Entry, options: argparse.Namespace) -> None:
    """What was said and would change nothing."""
    if options.seeds > 1:
        _refuse_flags_of_one_run(options)
    else:
        _refuse_flags_of_many(options)
    if options.within and not (options.crashes or options.pauses or options.partitions):
        raise UsageError("--within is for faults at random times: give --crashes, --pauses or --partitions too")
    if entry.claims.elects:
        for flag, is_said in {"-k": options.k, "--patience": options.patience}.items():
            if is_said:
                raise UsageError(
                    f"{entry.name} is an election, in which nobody enters: '{flag}' is for other protocols"
                )


def _refuse_flags_of_one_run(options: argparse.Namespace) -> None:
    if options.timeline:
        raise UsageError("--timeline draws a single run; of many --seeds a violation is drawn anyway")
    if options.max_memory:
        raise UsageError("--max-memory is for a single run; --max-events holds for each of many --seeds")
    if options.no_trace:
        raise UsageError("--no-trace is for a single run; many --seeds keep none")


def _refuse_flags_of_many(options: argparse.Namespace) -> None:
    said = {"--all": options.all, "--jobs": options.jobs, "--no-shrink": options.no_shrink}
    for flag, is_said in said.items():
        if is_said:
            raise UsageError(f"{flag} is for many seeds: give --seeds too, of at least 2")


def refuse_what_n_nodes_cannot(n: int, options: argparse.Namespace) -> None:
    if options.crashes > n:
        raise UsageError(f"--crashes {options.crashes}: there are only {n} nodes, and each crashes once")
    if options.partitions and n < 2:
        raise UsageError(f"--partitions {options.partitions}: a single node cannot be cut off from others")
    if n > MOST_TRACED and options.seeds == 1 and not options.no_trace:
        raise UsageError(
            f"every line of a trace has the clocks of all nodes, which are {n:,} here: give --no-trace "
            f"with more than {MOST_TRACED:,}"
        )
