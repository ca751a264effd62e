"""How benchmarks measure: pinned to one core, subjects taken in turns, the best of several rounds each."""

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any


def pin() -> None:
    """To one core: a process that wanders between cores measures the wandering."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def rates(subjects: Mapping[str, Callable[[], tuple[int, float]]], rounds: int) -> dict[str, float]:
    """Each subject returns how much it did and in how many seconds of CPU; its rate is the best of the rounds."""
    best = dict.fromkeys(subjects, 0.0)
    for _ in range(rounds):
        for name, subject in subjects.items():
            done, seconds = subject()
            best[name] = max(best[name], done / seconds)
    return best


def timed(work: Callable[[], int]) -> Callable[[], tuple[int, float]]:
    def subject() -> tuple[int, float]:
        began = time.process_time()
        done = work()
        return done, time.process_time() - began

    return subject


def report(title: str, figures: Mapping[str, Any], targets: Mapping[str, tuple[str, float]]) -> None:
    """``targets``: per figure the comparison and the number it should reach. JSON with ``--json``."""
    verdicts = {name: _meets(figures[name], *target) for name, target in targets.items() if name in figures}
    if "--json" in sys.argv:
        facts = {"python": platform.python_version(), "figures": dict(figures), "meets": verdicts}
        print(json.dumps({"bench": title, **facts}, indent=2))
        return
    print(title)
    for name, value in figures.items():
        shown = (
            f"{value:,.2f}"
            if isinstance(value, float) and value < 1000
            else f"{value:,.0f}"
            if isinstance(value, float)
            else str(value)
        )
        comparison = (
            f"target {targets[name][0]} {targets[name][1]:g}: {'met' if verdicts[name] else 'MISSED'}"
            if name in targets
            else ""
        )
        print(f"  {name:<58}{shown:>12}   {comparison}".rstrip())


def _meets(value: float, comparison: str, target: float) -> bool:
    return value >= target if comparison == ">=" else value <= target
