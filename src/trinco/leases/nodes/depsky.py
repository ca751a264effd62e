"""DepSky's lock (the seed's TD): list, write, list over n object stores, each time waiting for n-f of them.

A client lists the locks at all stores; if it sees no live one of somebody else, it writes its own, an object whose name
has the client, the time and the validity; then it lists again. Of two that write, the later one to finish sees the
other, since two sets of n-f stores share a correct one; it deletes its own and backs off for 1 to 2 seconds.

Assumes n >= 3f+1 stores, of which f may lie (names are signed), and *clients whose clocks agree*: the time in the name
is the writer's, and every reader judges it by its own clock. A holder that needs T of the validity delta is safe only
while no two clocks differ by more than delta - T:

    p0, on time         writes "p0, 0 s, valid 60 s" ── holds ─────────────────────────── 50 s: still inside
    p1, 15 s ahead                              46 s: its clock says 61 s, the lock has run out ── enters

Messages per entry when nobody else asks: 8n, to and from every store for list, write, list and delete. Obstruction-free
only: two can keep each other out. What a crashed client leaves blocks the others until it has run out, and so does a
write that its own delete overtook on a network that reorders.

This is the algorithm as published. The public code (``LocalDepSkySClient``, cloud-of-clouds/depsky) differs, and we do
not reproduce it: ``verifyLock`` overwrites its verdict entry by entry, so that the last cloud listed wins and a live
lock on another is overlooked; both listings wait for all n clouds (operation -1 falls through to "more than n-f
replies"), so that a silent one stops everybody; the lock that was written is then read back from one cloud after the
other. The last two are what it costs in time: see ``lab.lease_latency``.

Nodes 0, 1, .. are the clients; the stores follow. For the simulator: in the checker no clock shows the time of day.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.core.signed import Signed
from trinco.core.value import Value
from trinco.leases import accesses
from trinco.leases.accesses import Delete, Done, List, Listing, Put
from trinco.leases.claim import Claim
from trinco.leases.nodes.messages import Access, Reply
from trinco.leases.nodes.services import ObjectService
from trinco.leases.nodes.store import Store
from trinco.leases.row import Kind, Named, Row

CLAIMS = Claims(
    paper="Bessani, Correia, Quaresma, André & Sousa, DepSky: dependable and secure storage in a cloud-of-clouds",
    year=2013,
    network=Network.UNORDERED,
    messages_per_entry=Formula("8*s..inf"),
    delay=Formula("6"),
    fairness=Fairness.NONE,
    crashes=Formula("c+f"),
    byzantine=Formula("f"),
    deadlock_free=False,
    starvation_free=False,
    timed=True,
    roles={"client": Formula("c"), "store": Formula("s")},
)

RETRY = "retry"
BACKOFF_STEPS = 1000
MICROSECONDS = 1_000_000


class Stage(Enum):
    IDLE = "idle"
    LOOKING = "looking"
    WRITING = "writing"
    LOOKING_AGAIN = "looking again"
    HOLDING = "holding"
    RESTING = "resting"

    __hash__ = object.__hash__


EXPECTED: dict[Stage, type[accesses.Reply]] = {
    Stage.LOOKING: Listing,
    Stage.WRITING: Done,
    Stage.LOOKING_AGAIN: Listing,
}
"""What a store says in each phase; whatever else it says is not counted."""


class Lock(Value):
    """What the name of a lock object says, under the writer's signature: whose it is, when it was written by the
    writer's clock, and for how long it is valid; in microseconds."""

    __slots__ = ("client", "time", "validity")

    def __init__(self, client: int, time: int, validity: int) -> None:
        self.client = client
        self.time = time
        self.validity = validity

    def is_live(self, now: int) -> bool:
        """``now`` is the reader's clock. Both times are rounded down, so the last microsecond still counts."""
        return self.time + self.validity >= now


@dataclass(slots=True)
class Client(Process):
    stores: tuple[int, ...]
    quorum: int
    validity: float
    backoff: float
    stage: Stage = Stage.IDLE
    round: int = 0
    """Counts phases: what answers an earlier one comes too late."""
    answered: Ids = NOBODY
    sees_another: bool = False
    own: Named | None = None
    until: Instant | None = None

    def acquire(self, ctx: Context) -> None:
        self._ask_all(ctx, Stage.LOOKING, List())

    def release(self, ctx: Context) -> None:
        self._delete(ctx)

    def on_timer(self, ctx: Context, name: str) -> None:
        self.acquire(ctx)

    def on_restart(self, ctx: Context, stored: int | None) -> None:
        self.round = stored or 0

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Reply)
        reply, expected = message.reply, EXPECTED.get(self.stage)
        if message.claim.attempt != self.round or expected is None or not isinstance(reply, expected):
            return
        self.answered |= bit(source)
        if isinstance(reply, Listing):
            self.sees_another |= any(self._is_in_the_way(ctx, row) for row in reply.rows)
        if self.answered.bit_count() >= self.quorum:
            self._phase_is_over(ctx)

    def _phase_is_over(self, ctx: Context) -> None:
        if self.stage is Stage.WRITING:
            self._ask_all(ctx, Stage.LOOKING_AGAIN, List())
        elif self.stage is Stage.LOOKING and not self.sees_another:
            self._write(ctx)
        elif self.stage is Stage.LOOKING_AGAIN and not self.sees_another and self._is_valid(ctx):
            self.stage = Stage.HOLDING
            ctx.grant(until=self.until)
        else:
            self._back_off(ctx)

    def _write(self, ctx: Context) -> None:
        lock = Lock(ctx.me, ctx.wall_clock(), int(self.validity * MICROSECONDS))
        self.until = ctx.now() + self.validity
        self.own = Named(Kind.HELD, Claim(ctx.me, self.round), self.validity, entry=ctx.sign(lock))
        self._ask_all(ctx, Stage.WRITING, Put(self.own))

    def _is_valid(self, ctx: Context) -> bool:
        return self.until is not None and self.until > ctx.now()

    def _is_in_the_way(self, ctx: Context, row: Any) -> bool:
        """A genuine lock of somebody else that is live by our own clock."""
        entry = row.named.entry if isinstance(row, Row) else None
        if not (isinstance(entry, Signed) and ctx.verify(entry) and isinstance(entry.body, Lock)):
            return False
        lock = entry.body
        return entry.signer == lock.client != ctx.me and lock.is_live(ctx.wall_clock())

    def _back_off(self, ctx: Context) -> None:
        if self.stage is Stage.LOOKING_AGAIN:
            self._delete(ctx)
        self.stage = Stage.RESTING
        ctx.set_timer(RETRY, self.backoff * (1 + ctx.choose(BACKOFF_STEPS) / BACKOFF_STEPS))

    def _delete(self, ctx: Context) -> None:
        self._ask_all(ctx, Stage.IDLE, Delete(self.own))
        self.own = self.until = None

    def _ask_all(self, ctx: Context, stage: Stage, access: accesses.Access) -> None:
        self.stage = stage
        self.round += 1
        self.answered = NOBODY
        self.sees_another = False
        ctx.store(self.round)
        ctx.broadcast(Access(Claim(ctx.me, self.round), access), self.stores)


@dataclass(frozen=True)
class DepSky:
    """``validity`` is delta, the same for everybody. Calling it makes the nodes: whoever is not a store is a client."""

    stores: int = 4
    f: int = 1
    validity: float = 400.0
    backoff: float = 1.0

    def __post_init__(self) -> None:
        if self.stores < 3 * self.f + 1:
            raise UsageError(f"to survive f={self.f} it takes at least {3 * self.f + 1} stores, not {self.stores}")
        if not self.validity > 0:
            raise UsageError(f"a lock must be valid for some time, not for {self.validity:g} s")

    def letters(self, n: int) -> dict[str, float]:
        """What the letters of the claims stand for in a system of n nodes."""
        return {"c": n - self.stores, "s": self.stores, "f": self.f}

    def __call__(self, n: int) -> Sequence[Node]:
        clients = n - self.stores
        if clients < 1:
            raise UsageError(f"{self.stores} stores and at least one client are more than {n} nodes")
        stores = tuple(range(clients, n))
        quorum = self.stores - self.f
        nodes: list[Node] = [Client(stores, quorum, self.validity, self.backoff) for _ in range(clients)]
        return [*nodes, *(Store(me, ObjectService()) for me in stores)]
