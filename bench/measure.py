"""How benchmarks measure: pinned to one core, subjects taken in turns, the best of several rounds each."""

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

EVIDENCE = Path(__file__).resolve().parent.parent / "docs" / "evidence"


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
    """``targets``: per figure the comparison and the number it should reach. Prints a table, or JSON with ``--json``,
    and keeps the figures in ``docs/evidence`` for the docs."""
    rows = [_row(name, value, targets.get(name)) for name, value in figures.items()]
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    kept = {"bench": title, "date": date, "python": platform.python_version(), "figures": rows}
    (EVIDENCE / f"bench-{title}.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    if "--json" in sys.argv:
        print(json.dumps(kept, indent=2))
        return
    print(title)
    for row in rows:
        print(f"  {row['what']:<58}{row['shown']:>12}   {row.get('target', '')}".rstrip())


def _row(name: str, value: float | str, target: tuple[str, float] | None) -> dict[str, Any]:
    if isinstance(value, str):
        return {"what": name, "value": value, "shown": value}
    shown = f"{value:,.2f}" if value < 1000 else f"{value:,.0f}"
    row: dict[str, Any] = {"what": name, "value": value, "shown": shown}
    if target:
        comparison, number = target
        met = value >= number if comparison == ">=" else value <= number
        row["target"] = f"target {comparison} {number:g}: {'met' if met else 'MISSED'}"
    return row
