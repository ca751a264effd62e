"""A protocol without a meaning: what a node does in each mood, on each event, is looked up in a table."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from trinco.core.context import WAITING, Context
from trinco.core.message import Message
from trinco.core.node import Process

Reaction: TypeAlias = tuple[int, tuple[tuple[int, int], ...], bool]
"""The next mood; (to, colour) for each ball that is thrown; whether to enter, if it waits."""


class Table:
    """(event, mood) -> alternatives: an event is an input's name, or the colour of the ball that came."""

    def __init__(self, rows: dict[tuple[str | int, int], tuple[Reaction, ...]]) -> None:
        self.rows = rows

    def __deepcopy__(self, memo: Any) -> "Table":
        """A table never changes, so a copy of a node may share it."""
        return self

    def __repr__(self) -> str:
        return f"Table({self.rows!r})"


class Ball(Message, tag="ball"):
    colour: int


@dataclass(slots=True)
class TableDriven(Process):
    table: Table
    mood: int = 0

    def on_start(self, ctx: Context) -> None:
        self._react(ctx, "start")

    def acquire(self, ctx: Context) -> None:
        self._react(ctx, "acquire")

    def release(self, ctx: Context) -> None:
        self._react(ctx, "release")

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Ball)
        self._react(ctx, message.colour)

    def _react(self, ctx: Context, event: str | int) -> None:
        alternatives = self.table.rows.get((event, self.mood))
        if not alternatives:
            return
        chosen = ctx.choose(len(alternatives)) if len(alternatives) > 1 else 0
        self.mood, throws, enters = alternatives[chosen]
        for to, colour in throws:
            ctx.send(to, Ball(colour))
        if enters and ctx.phase is WAITING:
            ctx.grant()
