"""All that ``lab.bakery_experiment`` measures: which pieces of work there are, and what each came to."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from trinco.lab.bakery_costs import (
    OPTIMISED,
    VARIANTS,
    Alone,
    Certifying,
    Contended,
    Cost,
    Crowd,
    Passed,
    Passing,
    Size,
)
from trinco.lab.bakery_silence import Abandoned, Doubted, Down, Exhibited, Shown, Slowly, WithoutHolder, WithoutServers
from trinco.lab.pieces import Listener, Piece, do_all

PRINTED = tuple(f"bakery/F{number}" for number in (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18))
"""Rules that fail as printed, as exhibits."""
SHORT = 12
"""Entries of each of many runs."""


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    faults: tuple[int, ...]
    """f, in a table of its own."""
    crowds: tuple[int, ...]
    """k, with f=1."""
    crowd_by_f: int
    """k, with each f."""
    rounds: int
    """Entries of each of the k."""
    passing: Mapping[str, tuple[int, ...]]
    """How many clients come by."""
    seeds: int
    """Runs of hasty servers."""
    long: tuple[int, int]
    """Entries of longer runs of them, and how many such runs."""


class Measured:
    """All that is measured."""

    def __init__(self, extent: Extent, executor: Executor | None, listener: Listener | None) -> None:
        self.extent = extent
        self.outcomes: dict[Any, Any] = do_all(list(dict.fromkeys(self._pieces())), executor, listener)

    def _pieces(self) -> Iterator[Piece]:
        extent = self.extent
        for k in sorted(extent.crowds, reverse=True):
            yield from (Contended(variant, 1, k, extent.rounds) for variant in VARIANTS)
        yield from (self.passing_by(variant, seen) for variant in extent.passing for seen in extent.passing[variant])
        yield from (Contended(OPTIMISED, f, extent.crowd_by_f, extent.rounds) for f in extent.faults)
        yield from (Slowly(SHORT, extent.seeds), Slowly(*extent.long))
        yield from map(Exhibited, PRINTED)
        for f in extent.faults:
            yield from (Alone(variant, f) for variant in VARIANTS)
            yield from (WithoutServers(f, crashed) for crashed in (f, f + 1))
            yield Certifying(f, k=3)
        yield from (Certifying(1, k=12), WithoutHolder())

    def alone(self, variant: str, f: int) -> Cost:
        cost: Cost = self.outcomes[Alone(variant, f)]
        return cost

    def crowd(self, variant: str, k: int) -> Crowd:
        crowd: Crowd = self.outcomes[Contended(variant, 1, k, self.extent.rounds)]
        return crowd

    def crowd_by_f(self, f: int) -> Crowd:
        crowd: Crowd = self.outcomes[Contended(OPTIMISED, f, self.extent.crowd_by_f, self.extent.rounds)]
        return crowd

    def passing_by(self, variant: str, seen: int) -> Passing:
        """As many entries however many come by."""
        return Passing(variant, seen, max(self.extent.passing[variant]))

    def passed(self, variant: str) -> dict[int, Passed]:
        return {seen: self.outcomes[self.passing_by(variant, seen)] for seen in self.extent.passing[variant]}

    def sizes(self, f: int, k: int = 3) -> Mapping[str, Size]:
        sizes: Mapping[str, Size] = self.outcomes[Certifying(f, k)].of
        return sizes

    def shown(self, exhibit: str) -> Shown:
        shown: Shown = self.outcomes[Exhibited(exhibit)]
        return shown

    def down(self, f: int, crashed: int) -> Down:
        down: Down = self.outcomes[WithoutServers(f, crashed)]
        return down

    @property
    def abandoned(self) -> Abandoned:
        abandoned: Abandoned = self.outcomes[WithoutHolder()]
        return abandoned

    @property
    def hasty(self) -> Doubted:
        doubted: Doubted = self.outcomes[Slowly(SHORT, self.extent.seeds)]
        return doubted

    @property
    def hasty_for_long(self) -> Doubted:
        doubted: Doubted = self.outcomes[Slowly(*self.extent.long)]
        return doubted

    @property
    def contended(self) -> list[int]:
        return [k for k in self.extent.crowds if k > 1]
