"""Virtual time on a heap. The one loop of the simulator that must be fast, so it knows nothing of nodes.

An appointment is ``(at, order, call, a, b, c)``: at that time ``call(a, b, c)`` is made. ``order`` counts up, so
appointments at the same time are kept in the order they were made, and the heap never compares anything further.
"""

import gc
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count, repeat
from typing import Any, TypeAlias

Call: TypeAlias = Callable[[Any, Any, Any], None]
Appointment: TypeAlias = tuple[float, int, Call, Any, Any, Any]


class Kernel:
    __slots__ = ("heap", "now", "order", "out_of_bounds")

    def __init__(self) -> None:
        self.heap: list[Appointment] = []
        self.order = count()
        self.now = 0.0
        self.out_of_bounds = False
        """Whether a bound ended the run, and not the run itself."""

    def schedule(self, at: float, call: Call, a: Any = None, b: Any = None, c: Any = None) -> None:
        heappush(self.heap, (at, next(self.order), call, a, b, c))

    def stop(self) -> None:
        """Keep no further appointment."""
        self.heap.clear()

    def run(self, until: float, max_events: int) -> None:
        """Keep appointments until there are none left or a bound is reached.

        The cyclic garbage collector is off meanwhile: a kept trace is many small objects and no cycles, and looking
        through them again and again would take half of the time.
        """
        heap, pop = self.heap, heappop
        self.schedule(until, self._run_into_bound)
        collecting = gc.isenabled()
        gc.disable()
        try:
            for _ in repeat(None, max_events):
                if not heap:
                    return
                at, _, call, a, b, c = pop(heap)
                self.now = at
                call(a, b, c)
            self._run_into_bound(None, None, None)
        finally:
            if collecting:
                gc.enable()

    def _run_into_bound(self, _a: Any, _b: Any, _c: Any) -> None:
        self.out_of_bounds = bool(self.heap)
        self.stop()
