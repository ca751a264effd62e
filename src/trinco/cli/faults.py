"""Faults and requests as they are written on the command line."""

import re
from collections.abc import Callable

from trinco.core.errors import UsageError
from trinco.sim.faults import Crash, Drift, Fault, Partition, Pause, Restart, Slow

HELP = (
    "crash:NODE@TIME, crash:NODE@TIME/SENDS (dies in a multi-send, after so many), restart:NODE@TIME, "
    "pause:NODE@TIME+LASTS, slow:NODE@TIME+LASTS*FACTOR, drift:NODE*RATE, "
    "partition:0,1|2,3@TIME+LASTS (with ! at the end messages are lost, not held back)"
)

_NUMBER = r"(-?[\d.]+(?:e-?\d+)?)"
_PATTERNS: tuple[tuple[str, Callable[..., Fault]], ...] = (
    (rf"crash:(\d+)@{_NUMBER}", lambda node, at: Crash(int(node), float(at))),
    (rf"crash:(\d+)@{_NUMBER}/(\d+)", lambda node, at, sends: Crash(int(node), float(at), int(sends))),
    (rf"restart:(\d+)@{_NUMBER}", lambda node, at: Restart(int(node), float(at))),
    (rf"pause:(\d+)@{_NUMBER}\+{_NUMBER}", lambda node, at, lasts: Pause(int(node), float(at), float(lasts))),
    (
        rf"slow:(\d+)@{_NUMBER}\+{_NUMBER}\*{_NUMBER}",
        lambda node, at, lasts, factor: Slow(int(node), float(at), float(lasts), float(factor)),
    ),
    (rf"drift:(\d+)\*{_NUMBER}", lambda node, rate: Drift(int(node), float(rate))),
    (
        rf"partition:([\d,|]+)@{_NUMBER}\+{_NUMBER}(!?)",
        lambda groups, at, lasts, drops: Partition(_groups(groups), float(at), float(lasts), bool(drops)),
    ),
)


def parse_fault(text: str) -> Fault:
    for pattern, make in _PATTERNS:
        match = re.fullmatch(pattern, text)
        if match:
            try:
                return make(*match.groups())
            except ValueError:
                break
    raise UsageError(f"'{text}' is not a fault; faults are {HELP}")


def parse_ask(text: str) -> tuple[int, float, float]:
    """One request of a script: who, when, held for how long."""
    match = re.fullmatch(rf"(\d+)@{_NUMBER}\+{_NUMBER}", text)
    if not match:
        raise UsageError(f"'{text}' is not a request: give NODE@TIME+HOLD, for example 1@0.5+2")
    node, at, hold = match.groups()
    return int(node), float(at), float(hold)


def parse_notice(text: str) -> tuple[int, float]:
    """Who notices when that a leader is gone."""
    match = re.fullmatch(rf"(\d+)@{_NUMBER}", text)
    if not match:
        raise UsageError(f"'{text}' says neither who nor when: give NODE@TIME, for example 4@1")
    return int(match[1]), float(match[2])


def _groups(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(node) for node in group.split(",")) for group in text.split("|"))
