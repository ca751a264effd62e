"""An eye on a simulation from beside it: how far it is, and whether it still fits into memory."""

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from threading import Event, Thread
from typing import Any

from trinco.check.memory import resident_bytes, virtual_bytes
from trinco.cli.progress import Teller
from trinco.sim.simulation import Simulation

LOOK_EVERY_SECONDS = 0.2
RESERVED_BYTES = 8 << 20


class TooMuchMemory(Exception):
    def __init__(self, at: float, seconds: float) -> None:
        self.at, self.seconds = at, seconds

    def settle(self, simulation: Simulation) -> None:
        """Leave the run as any other bound does."""
        simulation.kernel.now, simulation.kernel.out_of_bounds = self.at, True
        simulation.seconds = self.seconds
        if simulation.recording:
            simulation.recording.finish(False)


@contextmanager
def bounded_set_up(megabytes: int) -> Iterator[None]:
    """Where every node remembers something of every other, they may fill a host before anything runs. What would take
    more than this is a ``MemoryError``, as if there were no more."""
    least, most = resource.getrlimit(resource.RLIMIT_AS)
    mapped = virtual_bytes()
    bound = mapped + (megabytes << 20)
    is_tighter = mapped and bound < (sys.maxsize if least == resource.RLIM_INFINITY else least)
    if is_tighter:
        resource.setrlimit(resource.RLIMIT_AS, (bound, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (least, most))


def run_watched(simulation: Simulation, megabytes: int, tell: Teller) -> bool:
    """False if it was ended because it took too much memory. The functions here are short: where memory runs out within
    a block of a long one, CPython 3.11 cannot even note where it was, and tries for ever."""
    try:
        with _watched(simulation, megabytes, tell):
            _run_with_reserve(simulation)
    except TooMuchMemory as stopped:
        stopped.settle(simulation)
        return False
    return True


def _run_with_reserve(simulation: Simulation) -> None:
    """With some memory put by: where there is none at all, not even the end can be told."""
    reserve = bytearray(RESERVED_BYTES)
    try:
        simulation.run()
    except MemoryError:
        del reserve
        raise


@contextmanager
def _watched(simulation: Simulation, megabytes: int, tell: Teller) -> Iterator[None]:
    """Beside the run, so that its loop need not look: tells how far it is, and ends it beyond so much memory. It ends
    between two moments, by an appointment at a time before all others, which nobody else makes."""
    is_over, began = Event(), time.perf_counter()

    def look() -> None:
        while not is_over.wait(LOOK_EVERY_SECONDS):
            tell(so_far(simulation))
            if resident_bytes() > megabytes << 20:
                simulation.kernel.schedule(-inf, end, simulation.kernel.now)
                return

    def end(at: float, _b: Any, _c: Any) -> None:
        raise TooMuchMemory(at, time.perf_counter() - began)

    onlooker = Thread(target=look, daemon=True)
    onlooker.start()
    try:
        yield
    finally:
        is_over.set()
        onlooker.join()


def so_far(simulation: Simulation) -> str:
    return f"{simulation.entries:,} entries in {simulation.kernel.now:.6g} units of time"
