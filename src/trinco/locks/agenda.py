"""When to look after whom: the timers of everybody in a hub, in the order in which they are due.

A timer that is set puts whose it is on the agenda. One that is cancelled, or set again, is not looked for there: what
is left of it is passed over when its time has come. So a thousand who wait cost whoever asks for the next one no more
than two do.
"""

from _heapq import heapify, heappop, heappush  # what heapq is made of: all who start ``trinco run`` pay for imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trinco.locks.claimant import Claimant

NEVER = float("inf")
LEFTOVERS = 64
"""So many are not worth tidying up."""
TIMERS_EACH = 4
"""About as many as a claimant has at a time."""


class Agenda:
    """``active``: those whose timers count, by their owners' names."""

    __slots__ = ("_active", "_entries", "_is_sound", "_noted")

    def __init__(self, active: "dict[str, Claimant]") -> None:
        self._active = active
        self._entries: list[tuple[float, int, Claimant]] = []
        self._noted = 0
        """To tell apart what is due at the same time."""
        self._is_sound = True
        """False while somebody looks after those who were taken off it: who finds that was interrupted there."""

    def note(self, due: float, claimant: "Claimant") -> None:
        if len(self._entries) > LEFTOVERS + 2 * TIMERS_EACH * len(self._active):
            self._write_anew()
        self._noted += 1
        heappush(self._entries, (due, self._noted, claimant))

    def note_all(self, claimant: "Claimant") -> None:
        """Of somebody who has just become active."""
        for due in claimant.timers.values():
            self.note(due, claimant)

    def next_due(self) -> float:
        if not self._is_sound:
            self._write_anew()
        entries = self._entries
        while entries and not self._counts(*entries[0]):
            heappop(entries)
        return entries[0][0] if entries else NEVER

    def fire(self, now: float) -> None:
        """Let all timers that are due by now go off."""
        due: dict[Claimant, None] = {}
        self._is_sound = False
        while self._entries and self._entries[0][0] <= now:
            entry = heappop(self._entries)
            if self._counts(*entry):
                due[entry[2]] = None
        for claimant in due:
            claimant.fire(now)
        self._is_sound = True

    def _counts(self, due: float, number: int, claimant: "Claimant") -> bool:
        return due in claimant.timers.values() and self._active.get(claimant.owner) is claimant

    def _write_anew(self) -> None:
        entries = []
        for claimant in self._active.values():
            for due in claimant.timers.values():
                self._noted += 1
                entries.append((due, self._noted, claimant))
        heapify(entries)
        self._entries = entries
        self._is_sound = True


class Timers(dict[str, float]):
    """A claimant's, by name: when each is due."""

    __slots__ = ("_agenda", "_whose")

    def __init__(self, agenda: Agenda, whose: "Claimant") -> None:
        self._agenda = agenda
        self._whose = whose

    def __setitem__(self, name: str, due: float) -> None:
        self._agenda.note(due, self._whose)  # first: whoever is interrupted in between leaves a leftover
        dict.__setitem__(self, name, due)
