"""Choices within choices."""

from dataclasses import dataclass

from trinco.core.context import Context
from trinco.core.node import Process


@dataclass(slots=True)
class Dice(Process):
    """Tosses a coin; on tails it rolls a die with three sides, too."""

    rolled: tuple[int, ...] = ()

    def acquire(self, ctx: Context) -> None:
        coin = ctx.choose(2)
        self.rolled = (coin, ctx.choose(3)) if coin else (coin,)
        ctx.grant()

    def release(self, ctx: Context) -> None:
        """Leaves, and keeps what it rolled."""


@dataclass(slots=True)
class StartsAnyhow(Process):
    """Begins in one of three moods."""

    mood: int = -1

    def on_start(self, ctx: Context) -> None:
        self.mood = ctx.choose(3)

    def acquire(self, ctx: Context) -> None:
        ctx.grant()

    def release(self, ctx: Context) -> None:
        """Leaves."""
