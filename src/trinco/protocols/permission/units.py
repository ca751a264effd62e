"""Which of the k units is whose: a gap of robust k-mutual exclusion (seed 003), closed.

``robust_k`` lets k processes in and cannot say which unit each of them has, since those who do not reply hide theirs.
Here a process that wants a unit goes through robust mutual exclusion with k = 1 for as long as it takes to choose one.
Every reply says which unit the replier holds, so who has all replies knows what is free, takes the first free unit, and
lets the next one choose. Where nothing is free it waits, next in line, until somebody says that it has left.

Assumes what ``robust_k`` does; up to n-1 crashes, of which each frees a unit for those who are told of it. Requests are
served in the order of (timestamp, id) for any k; a grant's token is (timestamp, id, unit), and rises. Messages per
entry: as ``robust_k`` with all n-1 replies, and up to n-1 that say that somebody has left.

On channels that reorder, "I have left" may overtake the reply that named the unit. It is therefore a reply too, to the
same request and without a unit, and the last word on it: who has left cannot have chosen again before us, since its
next request is younger than ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.event import Event, Kind
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, bit
from trinco.core.monitor import Monitor
from trinco.protocols.permission import robust_k
from trinco.protocols.permission.robust_k import RobustK, replaced
from trinco.protocols.permission.robust_k_system import RobustKSystem

CLAIMS = replace(robust_k.CLAIMS, messages_per_entry=Formula("3*(n-1)..4*(n-1)"), fencing=True)

NONE = -1
"""In place of a unit."""


class Reply(robust_k.Reply, tag="reply"):
    unit: int
    """That the replier holds."""

    def in_words(self) -> str:
        holding = "" if self.unit == NONE else f", I have unit {self.unit}"
        return f"reply({self.timestamp}{holding})"


@dataclass(slots=True)
class UnitHolder(RobustK):
    """``k`` is 1: one at a time chooses."""

    units: int = 1
    unit: int = NONE
    """That we hold."""
    held: tuple[int, ...] = ()
    """Per process: the unit that it holds, as it said when it replied to our request."""
    told: tuple[int, ...] = ()
    """Per process: the timestamp of its request to which we replied that we hold our unit, or 0."""

    def __post_init__(self) -> None:
        RobustK.__post_init__(self)
        self.held = self.held or (NONE,) * self.n
        self.told = self.told or (0,) * self.n

    def must_wait(self, ctx: Context, source: int, timestamp: int) -> bool:
        """Whether we choose first."""
        return self.timestamp > 0 and (self.timestamp, self.me) < (timestamp, source)

    def reply(self, ctx: Context, to: int, timestamp: int) -> None:
        ctx.send(to, Reply(timestamp, self.unit))
        if self.unit != NONE:
            self.told = replaced(self.told, to, timestamp)

    def permitted(self, ctx: Context, source: int, reply: robust_k.Reply) -> None:
        assert isinstance(reply, Reply)
        if reply.timestamp == self.timestamp and (reply.unit == NONE or not self.granted & bit(source)):
            self.held = replaced(self.held, source, reply.unit)
        RobustK.permitted(self, ctx, source, reply)

    def crashed(self, ctx: Context, dead: Sequence[int]) -> None:
        for each in dead:
            self.told = replaced(self.told, each, 0)
        RobustK.crashed(self, ctx, dead)

    def enter(self, ctx: Context) -> None:
        """All have replied: choose, and let the next one choose."""
        free = self.free_units()
        if free:
            token = (self.timestamp, self.me, free[0])
            self.unit = free[0]
            self.timestamp, self.granted, self.held = 0, NOBODY, (NONE,) * self.n
            ctx.grant(token)
            self.reply_to_the_deferred(ctx)

    def free_units(self) -> Sequence[int]:
        held = {self.held[each] for each in self.living()}
        return [unit for unit in range(self.units) if unit not in held]

    def release(self, ctx: Context) -> None:
        self.unit = NONE
        told, self.told = self.told, (0,) * self.n
        for other, timestamp in enumerate(told):
            if timestamp:
                self.reply(ctx, other, timestamp)


@dataclass(slots=True)
class NobodyShares(Monitor):
    """No two processes hold the same unit."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.GRANT, Kind.RELEASE, Kind.CRASH})
    holders: tuple[tuple[int, int], ...] = ()
    """(unit, who)"""

    def observe(self, event: Event) -> str | None:
        self.holders = tuple(each for each in self.holders if each[1] != event.node)
        if event.kind is not Kind.GRANT:
            return None
        unit = event.token[2]
        sharer = dict(self.holders).get(unit)
        self.holders = tuple(sorted((*self.holders, (unit, event.node))))
        return None if sharer is None else f"p{sharer} and p{event.node} both hold unit {unit}"


@dataclass(frozen=True)
class UnitsSystem(RobustKSystem):
    """As for robust-k; ``k`` units, and whoever is let in is told which is its own."""

    def __post_init__(self) -> None:
        RobustKSystem.__post_init__(self)
        if self.recovers:
            raise UsageError("who holds which unit is not known to those who come back: recovers is for robust-k")

    @property
    def fences(self) -> bool:
        return True

    def messages_per_entry(self) -> Formula:
        least = "3*(n-1)" if self.tree and not self.reply_is_ack else "2*(n-1)"
        most = "4*(n-1)" if self.tree else "3*(n-1)"
        return Formula(f"{least}..{'inf' if self.detector == 'hi-adsd' else most}")

    def monitors(self, n: int) -> list[Monitor]:
        return [NobodyShares()]

    def node(self, me: int, n: int) -> UnitHolder:
        return UnitHolder(me, n, 1, *self.parts(me, n), notifies=self.notifies, units=self.k)
