"""A semaphore of k units: k leases, one a slot.

A waiter asks for every slot at once, keeps the first it gets and gives the others back. So a holder knows *which* unit
it has, guards are per slot, and with a quorum there are never more than k holders. Counting at the bases would not do:
with k counters a base, of which f lie, up to k(2f+1)/(f+1) clients can each find a quorum of bases with room.
"""

from dataclasses import dataclass, replace
from typing import Any

from trinco.core import snapshot
from trinco.core.authentication import Authenticator
from trinco.core.context import Context, Phase
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.core.value import Value
from trinco.leases.client import Stage
from trinco.leases.nodes import system
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.store import Store
from trinco.leases.nodes.system import QuorumLease

CLAIMS = replace(system.CLAIMS, k=Formula("k"), messages_per_entry=Formula("4*s..inf"))


class OfSlot(Message, tag="slot"):
    """What an access or a reply is about."""

    slot: int
    inner: Message

    def in_words(self) -> str:
        return f"slot {self.slot}: {self.inner.in_words()}"  # type: ignore[attr-defined]


class SlotToken(Value):
    """Tokens rise within a slot; between slots they mean nothing."""

    __slots__ = ("slot", "token")

    def __init__(self, slot: int, token: int | None) -> None:
        self.slot = slot
        self.token = token


class SlotContext(Context):
    """The world as the lease of one slot sees it: the same, but what it gets goes to the semaphore first."""

    __slots__ = ("_whole", "granted", "me", "phase", "refused", "slot")

    def __init__(self, whole: Context, slot: int) -> None:
        self._whole = whole
        self.slot = slot
        self.me = whole.me
        self.phase = Phase.WAITING
        self.granted: tuple[Any, Instant | None] | None = None
        self.refused: str | None = None

    def send(self, to: int, message: Message) -> None:
        self._whole.send(to, OfSlot(self.slot, message))

    def set_timer(self, name: str, delay: float) -> None:
        self._whole.set_timer(f"{self.slot}/{name}", delay)

    def cancel_timer(self, name: str) -> None:
        self._whole.cancel_timer(f"{self.slot}/{name}")

    def choose(self, options: int) -> int:
        return self._whole.choose(options)

    def now(self) -> Instant:
        return self._whole.now()

    def wall_clock(self) -> int:
        return self._whole.wall_clock()

    def store(self, value: Any) -> None:
        """The owner stores all its slots together."""

    @property
    def authenticator(self) -> Authenticator:
        return self._whole.authenticator

    def grant(self, token: Any = None, until: Instant | None = None) -> None:
        self.granted = token, until

    def refuse(self, reason: str) -> None:
        self.refused = reason


class SemaphoreClient(Process):
    """``slots`` holds the state of each slot's lease client, as a value."""

    __slots__ = ("slots", "taken")

    def __init__(self, slots: tuple[Client, ...]) -> None:
        self.slots = tuple(map(snapshot.take, slots))
        self.taken: int | None = None

    def acquire(self, ctx: Context) -> None:
        for slot in range(len(self.slots)):
            if self.taken is None:
                self._run(ctx, slot, "acquire")

    def release(self, ctx: Context) -> None:
        taken, self.taken = self.taken, None
        assert taken is not None
        self._run(ctx, taken, "release")

    def renew(self, ctx: Context) -> None:
        if self.taken is not None:
            self._run(ctx, self.taken, "renew")

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, OfSlot)
        self._run(ctx, message.slot, "on_message", source, message.inner)

    def on_timer(self, ctx: Context, name: str) -> None:
        slot, _, timer = name.partition("/")
        self._run(ctx, int(slot), "on_timer", timer)

    def on_restart(self, ctx: Context, stored: int | None) -> None:
        for slot in range(len(self.slots)):
            client = snapshot.restore(self.slots[slot])
            client.on_restart(ctx, stored)
            self._keep(slot, client)

    def _run(self, ctx: Context, slot: int, what: str, *arguments: Any) -> None:
        """Let one slot's client do something, and act on what came of it."""
        client = snapshot.restore(self.slots[slot])
        own = SlotContext(ctx, slot)
        getattr(client, what)(own, *arguments)
        self._keep(slot, client)
        if own.granted is not None:
            self._granted(ctx, slot, *own.granted)
        elif own.refused is not None and ctx.phase is Phase.WAITING and not self._still_asking():
            ctx.refuse(own.refused)

    def _granted(self, ctx: Context, slot: int, token: Any, until: Instant | None) -> None:
        """The first slot is ours; whatever else was asked for, or comes too, goes back at once."""
        if self.taken is None:
            self.taken = slot
            for other in range(len(self.slots)):
                if other != slot and self._stage(other) is not Stage.IDLE:
                    self._run(ctx, other, "release")
        if self.taken == slot:
            ctx.grant(SlotToken(slot, token), until)
        else:
            self._run(ctx, slot, "release")

    def _keep(self, slot: int, client: Client) -> None:
        self.slots = (*self.slots[:slot], snapshot.take(client), *self.slots[slot + 1 :])

    def _stage(self, slot: int) -> Stage:
        stage: Stage = snapshot.restore(self.slots[slot]).stage
        return stage

    def _still_asking(self) -> bool:
        return any(self._stage(slot) is not Stage.IDLE for slot in range(len(self.slots)))


class SlottedStore(Node):
    """A store that keeps one service a slot."""

    __slots__ = ("slots",)

    def __init__(self, slots: tuple[Node, ...]) -> None:
        self.slots = tuple(map(snapshot.take, slots))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, OfSlot)
        store = snapshot.restore(self.slots[message.slot])
        store.on_message(SlotContext(ctx, message.slot), source, message.inner)
        kept = snapshot.take(store)
        self.slots = (*self.slots[: message.slot], kept, *self.slots[message.slot + 1 :])
        ctx.store(self.slots)

    def on_restart(self, ctx: Context, stored: tuple[snapshot.Snapshot, ...] | None) -> None:
        self.slots = stored or self.slots

    def settle(self, ctx: Context) -> None:
        stores = list(map(snapshot.restore, self.slots))
        for store in stores:
            store.settle(ctx)
        self.slots = tuple(map(snapshot.take, stores))


@dataclass(frozen=True)
class Semaphore:
    """``k`` units over the stores of a quorum lease; ``liars`` are stores that behave otherwise, for every slot."""

    lease: QuorumLease = QuorumLease(clients=3)
    k: int = 2
    liars: tuple[tuple[int, type[Store]], ...] = ()

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"a semaphore has at least one unit, not {self.k}")

    @property
    def n(self) -> int:
        return self.lease.n

    def letters(self, n: int) -> dict[str, float]:
        return {**self.lease.letters(n), "k": self.k}

    def __call__(self, n: int) -> list[Node]:
        nodes: list[Node] = []
        liars = dict(self.liars)
        for me, node in enumerate(self.lease(n)):
            if isinstance(node, Client):
                nodes.append(SemaphoreClient((node,) * self.k))
            else:
                store = liars[me].in_place_of(node) if me in liars else node
                nodes.append(SlottedStore((store,) * self.k))
        return nodes
