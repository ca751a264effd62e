"""Who asks when, and holds how long; or who notices that a leader is gone."""

import random
from dataclasses import dataclass
from typing import Protocol

from trinco.core.errors import UsageError
from trinco.sim.laws import Constant, Exponential, Law


class Desk(Protocol):
    """Where a workload puts in its requests. See ``sim.crowd``."""

    processes: tuple[int, ...]
    rng: random.Random

    def ask(self, node: int, at: float, hold: float) -> None:
        """Let a process ask at this time, or as soon as it is free after it."""


@dataclass(frozen=True)
class Elections:
    """For elections: who notices when that the leader does not answer. Several may notice at once."""

    notices: tuple[tuple[int, float], ...]


class Workload(Protocol):
    def start(self, desk: Desk) -> "Source": ...


class Source(Protocol):
    """A workload at work."""

    def left(self, desk: Desk, node: int, now: float) -> None:
        """A process is idle again: it left, lost the section, was refused, or crashed."""


def _some(entries: int) -> None:
    if entries < 1:
        raise UsageError(f"a run needs at least one entry, not {entries}")


@dataclass(frozen=True)
class Closed:
    """Each process thinks, asks, holds, and thinks again, until all of them together have made ``entries``."""

    entries: int = 100
    think: Law = Exponential(5.0)
    hold: Law = Constant(1.0)

    def __post_init__(self) -> None:
        _some(self.entries)

    def start(self, desk: Desk) -> Source:
        source = _Closed(self, self.entries)
        for node in desk.processes:
            source.left(desk, node, 0.0)
        return source


def saturated(entries: int = 100, hold: Law = Constant(1.0)) -> Closed:
    """Everybody wants in, all the time."""
    return Closed(entries, think=Constant(0.0), hold=hold)


@dataclass
class _Closed:
    law: Closed
    budget: int

    def left(self, desk: Desk, node: int, now: float) -> None:
        if self.budget > 0:
            self.budget -= 1
            desk.ask(node, now + self.law.think.draw(desk.rng), self.law.hold.draw(desk.rng))


class _Silent:
    """For workloads that say everything at the start."""

    def left(self, desk: Desk, node: int, now: float) -> None:
        pass


@dataclass(frozen=True)
class Open:
    """Requests arrive at ``rate`` for the whole system, each at a process drawn at random; they queue up there."""

    entries: int = 100
    rate: float = 0.1
    hold: Law = Constant(1.0)

    def __post_init__(self) -> None:
        _some(self.entries)
        if not self.rate > 0:
            raise UsageError(f"arrivals need a rate above 0, not {self.rate:g}")

    def start(self, desk: Desk) -> Source:
        gap, at = Exponential(1 / self.rate), 0.0
        for _ in range(self.entries):
            at += gap.draw(desk.rng)
            desk.ask(desk.rng.choice(desk.processes), at, self.hold.draw(desk.rng))
        return _Silent()


@dataclass(frozen=True)
class OneShot:
    """Every process asks once, at a time drawn from ``at``."""

    at: Law = Constant(0.0)
    hold: Law = Constant(1.0)

    def start(self, desk: Desk) -> Source:
        for node in desk.processes:
            desk.ask(node, self.at.draw(desk.rng), self.hold.draw(desk.rng))
        return _Silent()


@dataclass(frozen=True)
class Scripted:
    """Exactly these requests: (node, when, held for how long)."""

    asks: tuple[tuple[int, float, float], ...]

    def start(self, desk: Desk) -> Source:
        for node, at, hold in self.asks:
            if node not in desk.processes:
                raise UsageError(f"the script lets node {node} ask, but only {desk.processes} can")
            if at < 0 or hold < 0:
                raise UsageError(f"the script has a negative time for node {node}")
            desk.ask(node, at, hold)
        return _Silent()
