"""A base on an augmented queue (the paper's Algorithm 3, "filas aumentadas").

List, append an entry that the service removes by itself after its term, list again: whoever is first holds. Three
accesses; a fourth deletes the old entry of a renewal. Deadlock-free: of those in the queue exactly one is first. A
listing that is cut short before our own entry refuses, it never grants.

Against the print: the winner deletes only its own older entries (the text lets it delete everybody's: ``lease/E11``);
a renewal appends and deletes by number, it never dequeues (``lease/E12``).

A queue keeps no token: its entries vanish.
"""

from trinco.leases.accesses import Access, Append, Appended
from trinco.leases.bases.listed import Listed, Verdict
from trinco.leases.operation import Extend, Request
from trinco.leases.row import Kind, Named, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Queue(Listed):
    __slots__ = ()

    def add(self, named: Named) -> Access:
        return Append(named, named.ttl)

    def key_of(self, named: Named, reply: "Any") -> "Any":
        return reply.key if isinstance(reply, Appended) else None

    def verdict(self, rows: tuple[Row, ...], key: "Any", request: "Request | Extend") -> Verdict:
        """From the head: the first live entry that holds must be ours."""
        for row in rows:
            if row.key == key:
                return Verdict.WON
            foreign = not row.is_of(request.claim) and row.named.kind in (Kind.HELD, Kind.UNKNOWN)
            if foreign and row.is_live(self.limits.t_max):
                return Verdict.LOST
        return Verdict.LOST
