"""Safety where not everybody excludes everybody."""

from dataclasses import dataclass
from typing import ClassVar

from trinco.core.event import Event, Kind
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.monitor import AtMostInside, Monitor


@dataclass(slots=True)
class NoNeighboursInside(Monitor):
    """Never two neighbours of a conflict graph inside together. ``neighbours``: whom each node excludes."""

    kinds: ClassVar[frozenset[Kind]] = AtMostInside.kinds
    neighbours: tuple[Ids, ...]
    inside: Ids = NOBODY

    def observe(self, event: Event) -> str | None:
        if event.kind not in (Kind.GRANT, Kind.RENEW):
            self.inside &= ~bit(event.node)
            return None
        self.inside |= bit(event.node)
        beside = self.inside & self.neighbours[event.node]
        return f"p{event.node} is inside together with its neighbour p{next(members(beside))}" if beside else None
