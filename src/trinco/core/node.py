"""What a protocol is: a small class. The world comes in as ``ctx``; effects go out through ``ctx``.

State is ints, bools, enums, strings, tuples, frozensets, None, Instants and parts (fields that are dataclasses), each
assigned and never mutated in place, so that a runtime can take a snapshot, compare it and put it back.
"""

from typing import Any

from trinco.core import snapshot
from trinco.core.context import Context
from trinco.core.message import Message


class Node:
    """Anything that receives messages: a server, a store, a liar. Override what the paper needs."""

    __slots__ = ()

    @classmethod
    def in_place_of(cls, honest: "Node") -> "Node":
        """A node of this class, a liar, with the fields of the honest one that it replaces."""
        liar: Node = snapshot.restore((cls, *snapshot.fields_of(honest)))
        return liar

    def on_start(self, ctx: Context) -> None:
        """Called once, before anything else happens."""

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        """The paper's "upon receiving"."""

    def on_timer(self, ctx: Context, name: str) -> None:
        """A timer that this node armed has run out."""

    def on_restart(self, ctx: Context, stored: Any) -> None:
        """Called on a fresh node after a crash, with what ``ctx.store`` kept last, or None."""
        self.on_start(ctx)


class Elector(Node):
    """A node that takes part in elections. Its runtime calls ``elect`` when it notices that the leader does not answer;
    it says ``ctx.elected(leader)`` whenever it learns who leads, and remembers it in a field ``leader``."""

    __slots__ = ()
    leader: int | None

    @property
    def electing(self) -> bool:
        """Whether an election has not ended for this node."""
        raise NotImplementedError

    def elect(self, ctx: Context) -> None:
        raise NotImplementedError


class Process(Node):
    """A node that competes for the critical section. Its runtime calls ``acquire`` when somebody wants to enter and
    ``release`` when they leave; it answers with ``ctx.grant()``, at once or later. Only processes are counted inside.
    """

    __slots__ = ()

    def acquire(self, ctx: Context) -> None:
        raise NotImplementedError

    def release(self, ctx: Context) -> None:
        raise NotImplementedError
