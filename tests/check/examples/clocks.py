"""Clocks read in other ways: strictly, and through a value that holds the instant."""

from dataclasses import dataclass

import msgspec

from trinco.core.context import Context
from trinco.core.instant import Instant
from trinco.core.node import Node, Process


@dataclass(frozen=True)
class Entry:
    """A plain value, as a store would keep it."""

    owner: int
    until: Instant


class SlimEntry:
    """The same without ``dataclasses``, as code that must start quickly writes it."""

    __slots__ = ("deadline", "owner")

    def __init__(self, owner: int, until: Instant) -> None:
        self.owner = owner
        self.deadline = until

    @property
    def until(self) -> Instant:
        return self.deadline

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlimEntry) and (self.owner, self.deadline) == (other.owner, other.deadline)

    def __hash__(self) -> int:
        return hash((SlimEntry, self.owner, self.deadline))


class StructEntry(msgspec.Struct, frozen=True):
    owner: int
    until: Instant


@dataclass(slots=True)
class Shelf(Node):
    """Keeps an entry for two ticks, and notes when it is looked at after that."""

    kind: type = Entry
    entry: Entry | SlimEntry | StructEntry | None = None
    found_expired: bool = False

    def on_start(self, ctx: Context) -> None:
        self.entry = self.kind(1, ctx.now() + 2)

    def look(self, ctx: Context) -> None:
        assert self.entry is not None
        self.found_expired = self.entry.until <= ctx.now()


@dataclass(slots=True)
class Stopwatch(Node):
    """Keeps when it began, and wants to know whether that was two ticks ago."""

    counts_on: bool
    began: Instant | None = None
    over: bool = False

    def on_start(self, ctx: Context) -> None:
        self.began = ctx.now()

    def look(self, ctx: Context) -> None:
        assert self.began is not None
        self.over = self.began + 2 <= ctx.now() if self.counts_on else ctx.now() - self.began >= 2


@dataclass(slots=True)
class Hourglass(Node):
    """Notes when it is looked at strictly after its deadline."""

    deadline: Instant | None = None
    found_late: bool = False

    def on_start(self, ctx: Context) -> None:
        self.deadline = ctx.now() + 2

    def look(self, ctx: Context) -> None:
        assert self.deadline is not None
        self.found_late = ctx.now() > self.deadline


@dataclass(slots=True)
class Holder(Process):
    """Is inside for four ticks, counted down."""

    def acquire(self, ctx: Context) -> None:
        ctx.grant(until=ctx.now() + 4)

    def release(self, ctx: Context) -> None:
        """Leaves."""
