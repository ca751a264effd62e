"""The centralised algorithm of the slides (seed 001, "algoritmo centralizado").

One node, the coordinator (coordenador), serves; the others ask it. It grants the critical section to one process at a
time and keeps everybody else in a queue (fila de espera), first come first served. A request names the resource
(recurso) that is wanted: each has a holder and a queue of its own, and none knows of the others.

Assumes: no crash (the coordinator's loses the queue, a client's inside holds for ever), no loss. Channels need not be
FIFO. Three messages per entry: request, grant, release. In the variant that says NOK, whoever must wait is told so at
once, which makes four.

Against the slides: on a network that reorders, a client's next request may overtake its own release. The coordinator
then sees the holder ask again. Dropping that request hangs the client for ever (``slides/S-1``); it is queued instead.
A NOK may likewise come after the grant, or during a later wait; so it may inform, and nothing may depend on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, bit
from trinco.core.message import Message
from trinco.core.monitor import Monitor
from trinco.core.neighbours import NoNeighboursInside
from trinco.core.node import Node, Process

CLAIMS = Claims(
    paper="Fundamentos de sistemas distribuídos, Coordenação: algoritmo centralizado",
    network=Network.UNORDERED,
    messages_per_entry=Formula("3"),
    delay=Formula("2"),
    fairness=Fairness.FIFO_BY_ARRIVAL,
    roles={"coordinator": Formula("1"), "client": Formula("n-1")},
)
"""For one resource, without NOK. ``CoordinatorSystem.claims`` has those of the variants."""

SOLE = "resource"
"""What the only resource is called; messages about it do not mention it."""


class Request(Message, tag="request", omit_defaults=True):
    resource: str = SOLE


class Grant(Message, tag="grant", omit_defaults=True):
    resource: str = SOLE


class Nok(Message, tag="nok", omit_defaults=True):
    resource: str = SOLE


class Release(Message, tag="release", omit_defaults=True):
    resource: str = SOLE


@dataclass(slots=True)
class Coordinator(Node):
    """Serves one resource."""

    holder: int | None = None
    queue: tuple[int, ...] = ()
    resource: str = SOLE
    says_nok: bool = False

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request():
                self.queue = (*self.queue, source)
                self._serve_the_first(ctx)
                if self.says_nok and source in self.queue:
                    ctx.send(source, Nok(self.resource))
            case Release():
                self.holder = None
                self._serve_the_first(ctx)

    def _serve_the_first(self, ctx: Context) -> None:
        if self.holder is None and self.queue:
            self.holder, *waiting = self.queue
            self.queue = tuple(waiting)
            ctx.send(self.holder, Grant(self.resource))

    def column(self, client: int) -> tuple[object, ...]:
        """All that is held about one client: clients are served by arrival, their ids are never compared."""
        return self.holder == client, tuple(place for place, each in enumerate(self.queue) if each == client)

    def relabel(self, names: Mapping[int, int]) -> None:
        self.holder = None if self.holder is None else names[self.holder]
        self.queue = tuple(names[each] for each in self.queue)


Used: TypeAlias = tuple[str, int | None, tuple[int, ...]]
"""A resource that is in use, its holder, its queue."""


@dataclass(slots=True)
class SharedCoordinator(Node):
    """Serves several resources: it is the coordinator of each in turn, and keeps what the others must remember. A
    resource exists as long as somebody wants it."""

    says_nok: bool = False
    used: tuple[Used, ...] = ()
    """By name."""

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Request | Release)
        coordinator = self._coordinator_of(message.resource)
        coordinator.on_message(ctx, source, message)
        self._keep(coordinator)

    def _coordinator_of(self, resource: str) -> Coordinator:
        for name, holder, queue in self.used:
            if name == resource:
                return Coordinator(holder, queue, name, self.says_nok)
        return Coordinator(None, (), resource, self.says_nok)

    def _keep(self, coordinator: Coordinator) -> None:
        used = [each for each in self.used if each[0] != coordinator.resource]
        if coordinator.holder is not None:
            used.append((coordinator.resource, coordinator.holder, coordinator.queue))
        self.used = tuple(sorted(used))

    def column(self, client: int) -> tuple[object, ...]:
        return tuple((name, self._coordinator_of(name).column(client)) for name, _, _ in self.used)

    def relabel(self, names: Mapping[int, int]) -> None:
        for name, _, _ in self.used:
            coordinator = self._coordinator_of(name)
            coordinator.relabel(names)
            self._keep(coordinator)


@dataclass(slots=True)
class Client(Process):
    coordinator: int
    resource: str = SOLE

    def acquire(self, ctx: Context) -> None:
        ctx.send(self.coordinator, Request(self.resource))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Grant):
            ctx.grant()

    def release(self, ctx: Context) -> None:
        ctx.send(self.coordinator, Release(self.resource))

    def ignores(self, message: Message) -> bool:
        """Late ones can pile up without end; to the checker they are as good as gone."""
        return isinstance(message, Nok)

    def column(self, client: int) -> tuple[object, ...]:
        return ()

    def relabel(self, names: Mapping[int, int]) -> None:
        """A client knows no id but the coordinator's, which keeps its name."""


@dataclass(frozen=True)
class CoordinatorSystem:
    """Node 0 serves, the others ask. Of k resources client i asks for number i mod k, always for the same."""

    resources: tuple[str, ...] = (SOLE,)
    says_nok: bool = False

    def __post_init__(self) -> None:
        if not self.resources or len(set(self.resources)) < len(self.resources):
            raise UsageError(f"a coordinator needs resources, each with a name of its own, not {self.resources}")

    def __call__(self, n: int) -> Sequence[Node]:
        server: Node = SharedCoordinator(self.says_nok)
        if self.resources == (SOLE,):
            server = Coordinator(says_nok=self.says_nok)
        return [server, *(Client(0, self.resources[client % len(self.resources)]) for client in range(1, n))]

    @property
    def claims(self) -> Claims:
        return replace(CLAIMS, messages_per_entry=Formula("3..4" if self.says_nok else "3"), k=Formula("k"))

    def letters(self, n: int) -> dict[str, float]:
        """``k``: one may be inside for each resource."""
        return {"k": len(self.resources)}

    def interchangeable(self, n: int) -> list[frozenset[int]]:
        """The clients of each resource: any renaming of them turns a run into a run."""
        k = len(self.resources)
        return [frozenset(range(number or k, n, k)) for number in range(k)]

    def monitors(self, n: int) -> list[Monitor]:
        """Never two inside for one resource."""
        excluded = [NOBODY] * n
        for group in self.interchangeable(n):
            everybody = sum(map(bit, group))
            for client in group:
                excluded[client] = everybody & ~bit(client)
        return [NoNeighboursInside(tuple(excluded))]


system = CoordinatorSystem()
