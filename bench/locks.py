"""Locks against what people use today, as ratios to a PING of the same run.

    python bench/locks.py [--quick] [--json FILE] [--only NAME,...]

NAME is a part (uncontended, wake, contention, start-up) or a store (memory, sqlite, redis, postgres, quorum-redis,
quorum-sqlite, peers). Real servers are started for it on free ports; nothing is left behind. Five minutes,
``--quick`` under two.
"""

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import locks_contention
import locks_startup
import locks_wake
from locks_contention import FEW, MANY, Crowd
from locks_servers import Servers
from locks_subjects import Opened, Places, Subject, contenders, opened, uncontended, wakers
from yardstick import CROSS, MODES, Loop, Samples, Yardstick, block, median, pin

PARTS = ("uncontended", "wake", "contention", "start-up")
STORES = ("memory", "sqlite", "redis", "postgres", "quorum-redis", "quorum-sqlite", "peers")
TARGET_ADVISORY = 1.5
TARGET_START = 4.0
TARGET_FLAT = 1 / 3
TARGET_JAIN = {"postgres": 0.9}


@dataclass(frozen=True)
class Effort:
    """How much to measure of everything."""

    rounds: int = 7
    block_s: float = 0.06
    ping_s: float = 0.015
    wake_rounds: int = 5
    wakes: int = 42
    crowd_s: float = 4.0
    starts: int = 25


QUICK = Effort(rounds=3, block_s=0.03, ping_s=0.01, wake_rounds=3, wakes=20, crowd_s=1.2, starts=9)


@dataclass
class Figure:
    """One line of the table. ``target``: the comparison and the number; ``detail`` is for those who read the JSON."""

    part: str
    what: str
    value: float
    unit: str
    mode: str = ""
    spread: Sequence[float] = ()
    target: tuple[str, float] | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def is_met(self) -> bool:
        assert self.target is not None
        comparison, number = self.target
        return self.value <= number if comparison == "<=" else self.value >= number

    def verdict(self) -> str:
        if self.target is None:
            return ""
        comparison, number = self.target
        if self.is_met:
            return f"{comparison} {number:.3g}: met"
        gap = f"{abs(self.value - number) / number:.0%}" if number else f"{self.value:g}"
        return f"{comparison} {number:.3g}: MISSED by {gap}"

    def as_row(self) -> dict[str, Any]:
        """In the form of the other benches, and more."""
        where = f", {self.mode}" if self.mode else ""
        row: dict[str, Any] = {"what": f"{self.part}: {self.what}{where}", "value": self.value, "shown": self.shown()}
        if self.target:
            row["target"] = f"target {self.verdict()}"
        return row | {"unit": self.unit, "spread": list(self.spread), **self.detail}

    def shown(self) -> str:
        if self.value == int(self.value) or self.value >= 1000:
            return f"{self.value:,.0f}"
        return f"{self.value:.3g}" if self.unit else f"{self.value:.4f}"


def say(text: str) -> None:
    print(f"\r\x1b[K{text}" if sys.stderr.isatty() else text, end="" if sys.stderr.isatty() else "\n", file=sys.stderr)
    sys.stderr.flush()


# Without rivals


def measure_uncontended(subjects: list[Subject], servers: Servers, effort: Effort) -> list[Figure]:
    return [figure for mode in MODES for figure in _in_mode(subjects, servers, effort, mode)]


def _in_mode(subjects: list[Subject], servers: Servers, effort: Effort, mode: str) -> list[Figure]:
    servers.move(mode)
    pin(*MODES[mode])
    results = [Samples() for _ in subjects]
    with ExitStack() as stack:
        loop = Loop()
        stack.callback(loop.close)
        yardstick = Yardstick(servers.redis[0])
        stack.callback(yardstick.close)
        handles = [_opened(subject, loop, stack) for subject in subjects]
        for each in range(effort.rounds):
            say(f"uncontended, {mode}: round {each + 1} of {effort.rounds}")
            for subject, handle, samples in zip(subjects, handles, results, strict=True):
                ping = yardstick.measure(effort.ping_s)
                took = (loop.block if subject.is_async else block)(handle.once, effort.block_s)
                samples.add(took, ping)
    return [_ratio("uncontended", subject, mode, each) for subject, each in zip(subjects, results, strict=True)]


def _opened(subject: Subject, loop: Loop, stack: ExitStack) -> Opened:
    """And connected: the first acquisition of a process is another matter."""
    handle = opened(subject)
    if subject.is_async:
        stack.callback(loop.run, handle.close)
        loop.run(handle.acquire)
        loop.run(handle.release)
    else:
        stack.callback(handle.close)
        handle.acquire()
        handle.release()
    return handle


def _ratio(part: str, subject: Subject, mode: str, samples: Samples) -> Figure:
    number = subject.target_in(mode)
    target = None if number is None else ("<=", number)
    detail = {
        "micros": median(samples.micros),
        "micros, mean": median(samples.means),
        "PING, micros": median(samples.pings),
    }
    return Figure(part, subject.what, samples.ratio, "x PING", mode, samples.ratios, target, detail)


# Wake-ups


def measure_wake(subjects: list[Subject], servers: Servers, effort: Effort) -> list[Figure]:
    yardstick = Yardstick(servers.redis[0])
    figures: list[Figure] = []
    try:
        for mode in MODES:
            servers.move(mode)
            figures += _wakes_in_mode(subjects, yardstick, effort, mode)
    finally:
        yardstick.close()
    return figures


def _wakes_in_mode(subjects: list[Subject], yardstick: Yardstick, effort: Effort, mode: str) -> list[Figure]:
    results = locks_wake.measure(subjects, mode, yardstick, effort.wake_rounds, effort.wakes, say)
    figures = [_ratio("wake", subject, mode, each) for subject, each in zip(subjects, results, strict=True)]
    by_kind = {
        subject.kind: each for subject, each in zip(subjects, results, strict=True) if subject.store == "postgres"
    }
    if {"advisory", "trinco"} <= by_kind.keys():
        pairs = zip(by_kind["trinco"].micros, by_kind["advisory"].micros, strict=True)
        ratios = [ours / theirs for ours, theirs in pairs]
        target = ("<=", TARGET_ADVISORY)
        figures.append(Figure("wake", "PostgreSQL", median(ratios), "x pg_advisory_lock", mode, ratios, target))
    return figures


# Contention


def measure_contention(subjects: list[Subject], effort: Effort) -> list[Figure]:
    figures: list[Figure] = []
    for subject in subjects:
        crowds: dict[int, Crowd] = {}
        for how_many in (FEW, MANY):
            say(f"contention: {how_many} on {subject.what}")
            crowds[how_many] = locks_contention.measure(subject, how_many, effort.crowd_s)
        figures += _contention_figures(subject, crowds)
    return figures


def _contention_figures(subject: Subject, crowds: dict[int, Crowd]) -> list[Figure]:
    few, many = crowds[FEW], crowds[MANY]
    flat = None if subject.store == "postgres" else (">=", TARGET_FLAT)
    wrongs = {
        "grants from a fallback poll": few.by_poll + many.by_poll,
        "overlaps": few.overlaps + many.overlaps,
        "tokens out of order": few.disorder + many.disorder,
        "increments lost": few.uncounted + many.uncounted,
    }
    name = subject.what
    figures = [
        Figure("contention", f"{name}, {FEW}", few.rate, "grants/s", detail={"jain": few.jain, "polls": few.polls}),
        Figure("contention", f"{name}, {MANY}", many.rate, "grants/s", detail={"polls": many.polls}),
        Figure("contention", f"{name}, {MANY} : {FEW}", many.rate / few.rate, "", target=flat),
        Figure(
            "contention", f"{name}, Jain of {MANY}", many.jain, "", target=(">=", TARGET_JAIN.get(subject.store, 0.99))
        ),
    ]
    return figures + [
        Figure("contention", f"{name}, {what}", count, "", target=("<=", 0)) for what, count in wrongs.items()
    ]


# Starting


def measure_start(folder: str, effort: Effort) -> list[Figure]:
    say("start-up")
    ours, python = locks_startup.measure(folder, effort.starts)
    ratios = locks_startup.ratios(ours, python)
    detail = {"CPU ms": 1000 * median(ours), "python -c pass, CPU ms": 1000 * median(python)}
    spread = sorted(ratios)
    return [
        Figure(
            "start-up",
            "trinco run x -- true, SQLite",
            median(ratios),
            "x python -c pass",
            "",
            spread,
            ("<=", TARGET_START),
            detail,
        )
    ]


# All of it


def measured(only: set[str], effort: Effort) -> list[Figure]:
    parts = only & set(PARTS) or set(PARTS)
    stores = only & set(STORES) or set(STORES)
    with ExitStack() as stack:
        say("starting servers")
        servers = Servers()
        stack.callback(servers.stop)
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = (
            servers.folder
        )  # nothing of the user's is touched
        os.environ.pop("TRINCO_URL", None)
        places = Places(servers.redis, servers.postgres, servers.folder)
        figures: list[Figure] = []
        if "uncontended" in parts:
            figures += measure_uncontended(_of(stores, uncontended(places)), servers, effort)
        if "wake" in parts:
            figures += measure_wake(_of(stores, wakers(places)), servers, effort)
        servers.move(CROSS)
        if "contention" in parts:
            figures += measure_contention(_of(stores, contenders(places)), effort)
        if "start-up" in parts and "sqlite" in stores:
            figures += measure_start(servers.folder, effort)
        return figures


def _of(stores: set[str], subjects: list[Subject]) -> list[Subject]:
    return [subject for subject in subjects if subject.store in stores]


def show(figures: list[Figure]) -> None:
    part = ""
    for figure in figures:
        if figure.part != part:
            part = figure.part
            print(f"\n{part}")
        spread = f"{min(figure.spread):.3g} .. {max(figure.spread):.3g}" if figure.spread else ""
        micros = f"{figure.detail['micros']:,.0f} us" if "micros" in figure.detail else ""
        name = f"{figure.what}, {figure.mode}" if figure.mode else figure.what
        value = f"{figure.shown()} {figure.unit}".strip()
        print(f"  {name:<50}{value:>26}  {spread:<16}{micros:>10}  {figure.verdict()}".rstrip())
    pings = [figure.detail["PING, micros"] for figure in figures if "PING, micros" in figure.detail]
    if pings:
        print(f"\nPING: {min(pings):.0f} .. {max(pings):.0f} us. Spread: smallest and largest block.")
    judged = [figure for figure in figures if figure.target]
    print(f"{sum(figure.is_met for figure in judged)} of {len(judged)} targets met.")


def keep(figures: list[Figure], path: str, seconds: float) -> None:
    kept = {
        "bench": "locks",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "seconds": round(seconds),
        "figures": [figure.as_row() for figure in figures],
    }
    Path(path).write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Locks against what people use today, as ratios to PING.")
    parser.add_argument("--quick", action="store_true", help="less of everything: under two minutes")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--only", metavar="NAME,...", default="", help=f"of {', '.join(PARTS + STORES)}")
    given = parser.parse_args()
    only = {name for name in given.only.split(",") if name}
    if unknown := only - {*PARTS, *STORES}:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(PARTS + STORES)}")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    began = time.monotonic()
    figures = measured(only, QUICK if given.quick else Effort())
    took = time.monotonic() - began
    say(f"done in {took:.0f} s")
    show(figures)
    if given.json:
        keep(figures, given.json, took)


if __name__ == "__main__":
    main()
