"""The centralised algorithm of the slides (seed 001, "algoritmo centralizado").

One node, the coordinator (coordenador), serves; the others ask it. It grants the critical section to one process at a
time and keeps everybody else in a queue (fila de espera), first come first served.

Assumes: no crash (the coordinator's loses the queue, a client's inside holds for ever), no loss. Channels need not be
FIFO. Three messages per entry: request, grant, release.

Against the slides: on a network that reorders, a client's next request may overtake its own release. The coordinator
then sees the holder ask again. Dropping that request hangs the client for ever (``slides/S-1``); it is queued instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Node, Process

CLAIMS = Claims(
    paper="Fundamentos de sistemas distribuídos, Coordenação: algoritmo centralizado",
    network=Network.UNORDERED,
    messages_per_entry=Formula("3"),
    delay=Formula("2"),
    fairness=Fairness.FIFO_BY_ARRIVAL,
    roles={"coordinator": Formula("1"), "client": Formula("n-1")},
)


class Request(Message, tag="request"):
    pass


class Grant(Message, tag="grant"):
    pass


class Release(Message, tag="release"):
    pass


@dataclass(slots=True)
class Coordinator(Node):
    holder: int | None = None
    queue: tuple[int, ...] = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.queue = (*self.queue, source)
            case Release():
                self.holder = None
        self._serve_the_first(ctx)

    def _serve_the_first(self, ctx: Context) -> None:
        if self.holder is None and self.queue:
            self.holder, *waiting = self.queue
            self.queue = tuple(waiting)
            ctx.send(self.holder, Grant())

    def column(self, client: int) -> tuple[object, ...]:
        """All that is held about one client: clients are served by arrival, their ids are never compared."""
        return self.holder == client, tuple(place for place, each in enumerate(self.queue) if each == client)

    def relabel(self, names: Mapping[int, int]) -> None:
        self.holder = None if self.holder is None else names[self.holder]
        self.queue = tuple(names[each] for each in self.queue)


@dataclass(slots=True)
class Client(Process):
    coordinator: int

    def acquire(self, ctx: Context) -> None:
        ctx.send(self.coordinator, Request())

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        ctx.grant()

    def release(self, ctx: Context) -> None:
        ctx.send(self.coordinator, Release())

    def column(self, client: int) -> tuple[object, ...]:
        return ()

    def relabel(self, names: Mapping[int, int]) -> None:
        """A client knows no id but the coordinator's, which keeps its name."""


def system(n: int) -> list[Node]:
    """Node 0 serves, the others ask."""
    return [Coordinator(), *(Client(coordinator=0) for _ in range(1, n))]


def interchangeable(n: int) -> list[frozenset[int]]:
    """The clients: any renaming of them turns a run into a run."""
    return [frozenset(range(1, n))]
