"""The perfect detector, as an oracle: everybody who crashes is suspected by all, sooner or later, and nobody else is.

No algorithm stands behind it; the runtime plays it. When a node falls silent, every node that has this part is sent
``crashed`` in the dead one's name. It arrives any time later, on FIFO channels after whatever the dead one had sent
before. Nobody pays for it: it counts as no message.

Use it where a paper says "a perfect failure detector" and does not care how; in the checker it stands in for detectors
with timers of their own, which have the same surface: ``on_message`` returns the newly suspected, ``suspects`` has all.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from trinco.core import snapshot
from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Message
from trinco.core.node import Node


class Crashed(Message, tag="crashed"):
    pass


CRASHED = Crashed()


@dataclass(slots=True)
class PerfectDetector:
    suspects: Ids = NOBODY

    def on_message(self, ctx: Context, source: int, message: Message) -> tuple[int, ...]:
        """Who is newly suspected."""
        if not isinstance(message, Crashed) or self.suspects & bit(source):
            return ()
        self.suspects |= bit(source)
        return (source,)


def listeners(nodes: Iterable[Node]) -> tuple[int, ...]:
    """The nodes that have this detector among their parts, and so are told of crashes."""
    return tuple(me for me, node in enumerate(nodes) if any(map(_is_detector, _fields(node))))


def _is_detector(value: object) -> bool:
    return isinstance(value, PerfectDetector)


def _fields(node: Node) -> Iterable[object]:
    kind: Any = type(node)
    return (getattr(node, name) for name in snapshot.field_names(kind))
