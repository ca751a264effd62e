"""Long work on several processes: with a bar for people, and an end when they press Ctrl-C."""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from trinco.cli.parser import whole
from trinco.cli.progress import progress
from trinco.lab.pieces import Listener
from trinco.sim.workers import process_pool

T = TypeVar("T")

MOST_JOBS = 1_000
"""Processes. They are all started at once, whatever there is to do."""


def add_jobs(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    what = "processes (as many as there are processors)"
    parser.add_argument("--jobs", type=whole(1, "the number of jobs", MOST_JOBS), help=what)


def work_on(options: argparse.Namespace, work: Callable[[Executor | None, Listener], T]) -> T | None:
    """None if it was interrupted. ``options``: ``jobs`` and ``json``."""
    done = 0.0
    with progress(quiet=options.json) as tell:

        def listen(title: str, share: float) -> None:
            nonlocal done
            done = share
            tell(title, share)

        jobs = options.jobs or os.cpu_count() or 1
        workers: AbstractContextManager[Executor | None] = process_pool(jobs) if jobs > 1 else nullcontext()
        try:
            with workers as executor:
                return work(executor, listen)
        except KeyboardInterrupt:
            for worker in multiprocessing.active_children():
                worker.terminate()  # what it has in hand may take it long
            sys.stderr.write(f"trinco: interrupted after {done:.0%} of the work\n")
            return None
