"""The yardstick of the locks' bench: the median round trip of redis-py's PING, sampled in turns with the subjects.

A PING takes about 40 us when client and server share a core, and two or three times that on two cores. So everything
is pinned, and measured in both modes: ``same`` (servers and client on the first core) and ``cross`` (the servers on the
first, the client on the second). In a third, ``free``, nobody is pinned: four servers may overlap there, and a PING is
of either kind, as the system likes. A subject's figure is its block of operations over the block of PINGs right before
it; of these ratios the median counts, and the smallest and the largest stand beside it.
"""

import asyncio
import ctypes
import os
import signal
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns

import redis

WARM_UP = 3
FEWEST = 20
"""Operations in a block, however slow they are."""
PR_SET_PDEATHSIG = 1
CORES = sorted(os.sched_getaffinity(0))[:2]
SAME, CROSS, FREE = "same", "cross", "free"
MODES = {SAME: CORES[:1], CROSS: CORES[1:], FREE: CORES} if len(CORES) > 1 else {SAME: CORES}
"""By mode, where the client runs."""


def home_of_servers(mode: str) -> list[int]:
    return CORES if mode == FREE else CORES[:1]


def pin(*cores: int) -> None:
    """This thread, and whatever it starts from now on."""
    os.sched_setaffinity(0, cores)


def end_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends, however it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass
class Samples:
    """``ratios``: one for each block. ``micros`` and ``pings``: the blocks' medians. ``means``: the same with rare
    costs (a checkpoint, a preemption) in it."""

    ratios: list[float] = field(default_factory=list)
    micros: list[float] = field(default_factory=list)
    means: list[float] = field(default_factory=list)
    pings: list[float] = field(default_factory=list)

    def add(self, took: Sequence[int], ping: float) -> None:
        """One block: nanoseconds of each operation, and the PING beside it in microseconds."""
        self.micros.append(median(took) / 1000)
        self.means.append(statistics.fmean(took) / 1000)
        self.pings.append(ping)
        self.ratios.append(self.micros[-1] / ping)

    @property
    def ratio(self) -> float:
        return median(self.ratios)


class Yardstick:
    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url.partition("?")[0])

    def measure(self, seconds: float) -> float:
        """A block of PINGs; microseconds of its median."""
        return median(block(self._client.ping, seconds)) / 1000

    def close(self) -> None:
        self._client.close()


def median(numbers: Sequence[float]) -> float:
    return float(statistics.median(numbers))


def block(operation: Callable[[], object], seconds: float) -> list[int]:
    """Nanoseconds of each operation, for that many seconds."""
    for _ in range(WARM_UP):
        operation()
    took: list[int] = []
    end = perf_counter_ns() + int(seconds * 1e9)
    while (began := perf_counter_ns()) < end or len(took) < FEWEST:
        operation()
        took.append(perf_counter_ns() - began)
    return took


async def async_block(operation: Callable[[], Awaitable[object]], seconds: float) -> list[int]:
    """The same in a task."""
    for _ in range(WARM_UP):
        await operation()
    took: list[int] = []
    end = perf_counter_ns() + int(seconds * 1e9)
    while (began := perf_counter_ns()) < end or len(took) < FEWEST:
        await operation()
        took.append(perf_counter_ns() - began)
    return took


class Loop:
    """One event loop for all blocks of a mode: connections stay open between them."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def block(self, operation: Callable[[], Awaitable[object]], seconds: float) -> list[int]:
        return self._runner.run(async_block(operation, seconds))

    def run(self, work: Callable[[], Awaitable[object]]) -> None:
        async def wrapped() -> None:
            await work()

        self._runner.run(wrapped())

    def close(self) -> None:
        self._runner.close()
