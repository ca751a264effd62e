"""Virtual time. The one loop of the simulator that must be fast, so it knows nothing of nodes.

An appointment is ``(call, a, b, c)``: when its time comes ``call(a, b, c)`` is made. All appointments of one moment
stand in one list, in the order they were made, and only the moments themselves are in a heap: when a process tells
forty-nine others, that is one entry in the heap and forty-nine appends. Whatever is arranged for the present moment
makes it come once more.
"""

import gc
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeAlias

Call: TypeAlias = Callable[[Any, Any, Any], None]
Appointment: TypeAlias = tuple[Call, Any, Any, Any]


class Kernel:
    __slots__ = ("_present", "_stopped", "_times", "moments", "now", "out_of_bounds")

    def __init__(self) -> None:
        self._times: list[float] = []
        self._present: list[Appointment] = []
        self._stopped = False
        self.moments: dict[float, list[Appointment]] = {}
        """The appointments of each moment to come."""
        self.now = 0.0
        self.out_of_bounds = False
        """Whether a bound ended the run, and not the run itself."""

    def schedule(self, at: float, call: Call, a: Any = None, b: Any = None, c: Any = None) -> None:
        moment = self.moments.get(at)
        if moment is None:
            self.moments[at] = [(call, a, b, c)]
            heappush(self._times, at)
        else:
            moment.append((call, a, b, c))

    def schedule_all(self, at: float, appointments: list[Appointment]) -> None:
        """Several for one moment. The list is the kernel's from now on."""
        moment = self.moments.get(at)
        if moment is not None:
            moment += appointments
        elif appointments:
            self.moments[at] = appointments
            heappush(self._times, at)

    def stop(self) -> None:
        """Keep no further appointment, not even those that are still to be made."""
        self._stopped = True
        self._present.clear()

    def run(self, until: float, max_events: int) -> None:
        """Keep appointments until there are none left, or a bound is passed (seen at the end of a moment).

        The cyclic garbage collector is off meanwhile: a kept trace is many small objects and no cycles, and looking
        through them again and again would take half of the time.
        """
        collecting = gc.isenabled()
        gc.disable()
        try:
            self._keep(until, max_events)
        finally:
            if collecting:
                gc.enable()

    def _keep(self, until: float, max_events: int) -> None:
        """Apart from what cleans up behind it: without any memory, Python 3.11 never gets out of a long function that
        does."""
        times, moments, events = self._times, self.moments, 0
        while times and events < max_events and times[0] <= until and not self._stopped:
            self.now = now = heappop(times)
            self._present = present = moments.pop(now)
            for call, a, b, c in present:
                call(a, b, c)
            events += len(present)
        self.out_of_bounds = bool(times) and not self._stopped
