"""Looking at a lock without touching it: who holds it, for how long, who waits."""

from math import isfinite

from trinco.core.value import Value
from trinco.leases.accesses import List, Listing, Read, Versioned
from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item, Waiter
from trinco.leases.owner import client_of
from trinco.leases.row import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from trinco.leases.row import Row
    from trinco.locks.hub import Hub


STRANGER = (
    "{place!r} in the store is none of Trinco's entries, or a damaged one, and so may be a lease: "
    "remove it if nobody holds the lock"
)
LONGEST_PLACE = 500
ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What comes of looking at things that make no sense."""


class LockInfo(Value):
    """``owner``: who holds it, None if nobody does; the ``owner`` of a lease is this name, a slash, and which of that
    client's handles it is. ``token``: its token, or the last one there was; whoever holds a lease of this token holds
    it. ``remaining``: seconds until it ends unless it is renewed. ``age``: seconds since it was taken, as its holder
    says. ``waiters``: who waits, in order. ``why``: what is odd about it, if anything."""

    __slots__ = ("age", "metadata", "name", "owner", "remaining", "token", "waiters", "why")

    def __init__(
        self,
        name: str,
        owner: str | None = None,
        token: int | None = None,
        remaining: float = 0.0,
        age: float | None = None,
        metadata: str = "",
        waiters: tuple[str, ...] = (),
        why: str = "",
    ) -> None:
        self.name = name
        self.owner = owner
        self.token = token
        self.remaining = remaining
        self.age = age
        self.metadata = metadata
        self.waiters = waiters
        self.why = why

    @property
    def held(self) -> bool:
        """Whether anybody holds it."""
        return self.owner is not None


class Look:
    """One read of one resource at all stores. ``strangers``: the claims of what is there and is no entry of ours."""

    __slots__ = ("failures", "items", "reached", "resource", "silent", "strangers", "t_max", "wakers")

    def __init__(self, hub: "Hub", resource: str) -> None:
        self.resource = resource
        self.t_max = hub.t_max
        self.wakers: list[Callable[[], None]] = []
        self.failures: dict[int, str] = {}
        self.reached: set[int] = set()
        self.items: dict[int, Item] = {}
        self.strangers: set[Any] = set()
        self.silent = set(range(len(hub.stores)))
        for base, store in enumerate(hub.stores):
            hub.send(self, base, List() if store.kind in ("object", "queue") else Read(), None)

    def expect_to_wait(self) -> None:
        """It has no timers: whoever looks knows for how long."""

    def replied(self, base: int, tag: "Any", reply: "Any") -> None:
        try:
            if isinstance(reply, Versioned):
                self.items[base] = item_in(reply)
            elif isinstance(reply, Listing):
                self.items[base] = as_item(reply.rows, self.t_max)
                self.strangers |= {row.named.claim for row in reply.rows if row.named.kind is Kind.UNKNOWN}
        except ODD:
            self.items.pop(base, None)  # whatever a liar says, we only do not hear it
        self._heard(base)

    def lost_touch(self, base: int, tag: "Any") -> None:
        self._heard(base)

    def _heard(self, base: int) -> None:
        self.silent.discard(base)
        for wake in self.wakers:
            wake()

    def holder(self, enough: int) -> Holder | None:
        """Whom enough stores name, so that at least one of them can be trusted."""
        holders = [item.holder for item in self.items.values() if item.holder is not None]
        claims = [holder.claim for holder in holders]
        best = max(claims, key=claims.count, default=None)
        if best is None or claims.count(best) < enough:
            return None
        named = [holder for holder in holders if holder.claim == best]
        tokens = [holder.token for holder in named]
        token = max(tokens, key=tokens.count)
        agreed = next(holder for holder in named if holder.token == token)
        ends = sorted(float(holder.until) for holder in named)
        return agreed.but(token=token if tokens.count(token) >= enough else None, until=ends[len(ends) // 2])

    def info(self, hub: "Hub", enough: int) -> LockInfo:
        waiters = self._waiters(enough)
        holder = self.holder(enough)
        if holder is None:
            return LockInfo(self.resource, token=self._last_token(enough), waiters=waiters)
        remaining = max(float(holder.until), 0.0)
        if holder.claim in self.strangers:
            why = STRANGER.format(place=str(holder.claim.owner)[:LONGEST_PLACE])
            return LockInfo(self.resource, "somebody", holder.token, remaining, waiters=waiters, why=why)
        note = hub.entries.note(self.resource, holder.entry)
        age = None if note.made is None else max((hub.wall_clock() - note.made) / 1e6, 0.0)
        owner = client_of(str(holder.claim.owner)) or "somebody"
        return LockInfo(self.resource, owner, holder.token, remaining, age, note.metadata, waiters, note.why)

    def _last_token(self, enough: int) -> int | None:
        """The largest that enough stores know of. What nobody has committed was never given out: a fresh item starts
        at its store's clock."""
        tokens = sorted((item.token for item in self.items.values() if item.evidence is not None), reverse=True)
        return tokens[enough - 1] if len(tokens) >= enough else None

    def _waiters(self, enough: int) -> tuple[str, ...]:
        ranks: dict[Any, tuple[int, Any]] = {}
        counts: dict[Any, int] = {}
        for item in self.items.values():
            for waiter in item.waiters:
                ranks[waiter.claim.owner] = waiter.rank
                counts[waiter.claim.owner] = counts.get(waiter.claim.owner, 0) + 1
        known = [owner for owner, count in counts.items() if count >= enough]
        return tuple(client_of(str(owner)) for owner in sorted(known, key=lambda owner: ranks[owner]))


def item_in(reply: Versioned) -> Item:
    """What a store says, with durations for times. Raises one of ``ODD`` where it makes no sense: a store may say
    anything."""
    item = reply.item.settled(reply.now).counted_from(reply.now)
    holder, waiters = item.holder, item.waiters
    if not (_is_whole(item.token) and isinstance(waiters, tuple)):
        raise ValueError(f"the item {item!r} makes no sense")
    if holder is not None and not (_is_claim(holder.claim) and _is_whole(holder.token or 0) and isfinite(holder.until)):
        raise ValueError(f"the holder {holder!r} makes no sense")
    for waiter in waiters:
        if not (_is_claim(waiter.claim) and _is_whole(waiter.ticket) and isfinite(waiter.until)):
            raise ValueError(f"the waiter {waiter!r} makes no sense")
    return item


def _is_whole(number: object) -> bool:
    return type(number) is int and number >= 0


def _is_claim(claim: object) -> bool:
    return isinstance(claim, Claim) and isinstance(claim.owner, str) and type(claim.attempt) is int


def as_item(rows: "tuple[Row, ...]", t_max: float) -> Item:
    """What a listing says, in the words of the other stores. Who holds goes before what we cannot read."""
    live = [row for row in rows if not row.is_token and row.is_live(t_max)]
    held = [row for row in live if row.named.kind is not Kind.WAITING]
    tokens = [row.named.token or 0 for row in rows if row.is_token]
    token, evidence = max(tokens, default=0), b"listed" if tokens else None  # what is listed was committed
    holder = None
    if held:
        last = max(held, key=lambda row: (row.named.kind is Kind.HELD, row.remaining(t_max)))
        named = last.named
        holder = Holder(named.claim, last.remaining(t_max), named.ticket, token or None, named.entry)
    waiters = [
        Waiter(row.named.claim, row.remaining(t_max), row.named.ticket or 0, row.named.entry)
        for row in live
        if row.named.kind is Kind.WAITING
    ]
    return Item(token, holder, tuple(sorted(waiters, key=lambda waiter: waiter.rank)), evidence)
