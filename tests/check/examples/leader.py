"""The least election there is: whoever starts it wins. And a monitor that knows who must."""

from dataclasses import dataclass
from typing import ClassVar

from trinco.core.context import Context
from trinco.core.event import Event, Kind
from trinco.core.monitor import Monitor
from trinco.core.node import Node


@dataclass(slots=True)
class Candidate(Node):
    def stand(self, ctx: Context) -> None:
        ctx.elected(ctx.me)


@dataclass(slots=True)
class LeaderIs(Monitor):
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.ELECTED})
    expected: int

    def observe(self, event: Event) -> str | None:
        return None if event.peer == self.expected else f"p{event.peer} was elected, not p{self.expected}"
