"""What ``trinco run NAME -- true`` costs in CPU time, guardian and child included, beside ``python -c pass``."""

import os
import statistics
import sys
from pathlib import Path

from yardstick import CORES, pin

TRINCO = str(Path(sys.executable).parent / "trinco")


def cpu_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Of the process and of everything that it waited for."""
    child = os.posix_spawn(command[0], command, environment)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime


def measure(folder: str, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of CPU of ``trinco run``, and of Python doing nothing, in turns."""
    pin(CORES[0])
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["TRINCO_URL"] = f"sqlite:///{folder}/start-up.db"
    ours = [TRINCO, "run", "x", "--", "true"]
    python = [sys.executable, "-c", "pass"]
    cpu_seconds(ours, environment)  # which writes its .pyc files, and makes the database
    cpu_seconds(python, environment)
    pairs = [(cpu_seconds(ours, environment), cpu_seconds(python, environment)) for _ in range(rounds)]
    return [each[0] for each in pairs], [each[1] for each in pairs]


def ratios(ours: list[float], python: list[float]) -> list[float]:
    """To the median of the yardstick: two single runs are both noise."""
    typical = statistics.median(python)
    return [each / typical for each in ours]
