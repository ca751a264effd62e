"""How a store can misbehave: subclasses of the honest one, by name. Clients must survive f of them in any mix."""

from typing import Any

from trinco.core.context import Context
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.leases import accesses
from trinco.leases.accesses import Access, Apply, Done, Listing, Reply, Versioned, Written
from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item
from trinco.leases.nodes import messages
from trinco.leases.nodes.messages import INCARNATION
from trinco.leases.nodes.services import Service
from trinco.leases.nodes.store import Store
from trinco.leases.operation import Answer, Commit, Extend, Grade, Handed, Request
from trinco.leases.row import Kind, Named, Row

PHANTOM = Claim("nobody", 0)
HOUR = 3600.0
MANY = 10_000
CROWD: Any = (0,) * MANY
"""Nobody should look at what there is so much of."""


class Garbage(Reply):
    """What no store says."""

    __slots__ = ()


def yes(access: Access) -> Any:
    """The answer of a store that runs code and grants everything to everybody."""
    assert isinstance(access, Apply)
    operation = access.operation
    if isinstance(operation, Request | Commit | Extend):
        token = getattr(operation, "token", None)
        return Answer(Grade.COMMITTED, token if isinstance(token, int) else None)
    return Answer(Grade.DONE)


def no(access: Access) -> Any:
    """Held by somebody else, whatever you ask."""
    match access:
        case Apply(operation=operation):
            return Answer(Grade.REFUSED if isinstance(operation, Request) else Grade.GONE)
        case accesses.Read():
            return Versioned(Item(holder=Holder(PHANTOM, HOUR, None, None, None)), 0)
        case accesses.CompareAndSet() | accesses.CommitTransaction():
            return Written(False)
        case accesses.List():
            return Listing((Row(Named(Kind.UNKNOWN, PHANTOM, HOUR), 0),))
        case accesses.Append():
            return accesses.Appended(0)
        case _:
            return Done()


def hand_over_nothing(ctx: Context, client: int, access: Access) -> None:
    """Say to somebody who stands in line that it is his, although it is not."""
    serial = _serial(access)
    if serial is not None:
        assert isinstance(access, Apply)
        handed = Handed(access.operation.claim, serial, HOUR, yes(access))
        ctx.send(client % INCARNATION, messages.Told(handed))


def _serial(access: Access) -> int | None:
    is_request = isinstance(access, Apply) and isinstance(access.operation, Request)
    return access.operation.serial if is_request else None  # type: ignore[attr-defined]


class Slow(Store):
    """Honest, but answers late: a second, two or three after it was asked."""

    __slots__ = ("pending",)

    def __init__(self, me: int, service: Service, granularity: float = 0, terse: bool = False) -> None:
        Store.__init__(self, me, service, granularity, terse)
        self.pending: tuple[tuple[int, Message], ...] = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, messages.Access)
        self.pending = (
            *self.pending,
            (
                source,
                messages.Reply(
                    message.claim, self.reply(ctx, source + INCARNATION * message.epoch, message.access), message.epoch
                ),
            ),
        )
        if len(self.pending) == 1:
            ctx.set_timer("answer", 1.0 + ctx.choose(3))

    def on_timer(self, ctx: Context, name: str) -> None:
        (client, reply), *self_pending = self.pending
        self.pending = tuple(self_pending)
        ctx.send(client, reply)
        if self.pending:
            ctx.set_timer("answer", 1.0 + ctx.choose(3))


class Silent(Store):
    """Never answers."""

    __slots__ = ()

    def reply(self, ctx: Context, client: int, access: Access) -> Any:
        return None


class GrantAll(Store):
    """Grants everything to everybody: each client sees a store of its own, in which it is alone."""

    __slots__ = ("private",)

    def __init__(self, me: int, service: Service, granularity: float = 0, terse: bool = False) -> None:
        Store.__init__(self, me, service, granularity, terse)
        self.private: tuple[tuple[int, Service], ...] = ()

    def reply(self, ctx: Context, client: int, access: Access) -> Any:
        if isinstance(access, Apply):
            return yes(access)
        own = dict(self.private)
        own[client], reply = own.get(client, self.service).serve(client, access, self.clock(ctx))
        self.private = tuple(sorted(own.items(), key=lambda each: each[0]))
        return reply


class DenyAll(Store):
    """Refuses everything: somebody is always there already."""

    __slots__ = ()

    def reply(self, ctx: Context, client: int, access: Access) -> Any:
        return no(access)


class HandAll(DenyAll):
    """Refuses everything, and then hands over what nobody let go of, to everybody and for ever."""

    __slots__ = ()

    def reply(self, ctx: Context, client: int, access: Access) -> Any:
        hand_over_nothing(ctx, client, access)
        return no(access)


class AnyOf(GrantAll):
    """Grants, refuses or hands over, as suits it, each time anew: what the checker branches on.

    It need not choose to be silent, since nothing makes it answer.
    """

    __slots__ = ()

    def reply(self, ctx: Context, client: int, access: Access) -> Any:
        match ctx.choose(2 if _serial(access) is None else 3):
            case 0:
                return GrantAll.reply(self, ctx, client, access)
            case 1:
                return no(access)
            case _:
                hand_over_nothing(ctx, client, access)
                return no(access)


class StaleClock(Store):
    """Its clock shows what it was an hour ago whenever it judges, so that nothing ever runs out."""

    __slots__ = ()

    def clock(self, ctx: Context) -> Instant:
        return Store.clock(self, ctx) + -HOUR * ctx.choose(2)


class FutureClock(Store):
    """Its clock jumps an hour ahead now and then: everything has run out."""

    __slots__ = ()

    def clock(self, ctx: Context) -> Instant:
        return Store.clock(self, ctx) + HOUR * ctx.choose(2)


class Replay(Store):
    """Answers from the past as often as not, as if nothing had been written since; tokens, too."""

    __slots__ = ("past",)

    def __init__(self, me: int, service: Service, granularity: float = 0, terse: bool = False) -> None:
        Store.__init__(self, me, service, granularity, terse)
        self.past = service

    def reply(self, ctx: Context, client: int, access: Access) -> Any:
        match ctx.choose(8):
            case 0 | 1 | 2 | 3:
                _, reply = self.past.serve(client, access, self.clock(ctx))
                return reply
            case 4:
                self.past = self.service
        return Store.reply(self, ctx, client, access)


class ReplayToken(GrantAll):
    """Grants everything to everybody, and shows every one of them the oldest token it was ever given."""

    __slots__ = ("oldest",)

    def __init__(self, me: int, service: Service, granularity: float = 0, terse: bool = False) -> None:
        GrantAll.__init__(self, me, service, granularity, terse)
        self.oldest: Any = None

    def reply(self, ctx: Context, client: int, access: Access) -> Any:
        if isinstance(access, Apply) and isinstance(access.operation, Request):
            if self.oldest is None:
                self.oldest = access.operation.entry
            if ctx.choose(2):
                return Answer(Grade.TENTATIVE, evidence=self.oldest)
        return GrantAll.reply(self, ctx, client, access)


class Hide(Store):
    """Hides everybody else's entries when it is looked at, and writes what it is given."""

    __slots__ = ()

    def reply(self, ctx: Context, client: int, access: Access) -> Any:
        if isinstance(access, Apply):
            item: Item = getattr(self.service, "item", Item())
            if item.holder is not None and item.holder.claim.owner % INCARNATION != client % INCARNATION:
                self.service = self.service.but(item=item.but(holder=None))
        reply = Store.reply(self, ctx, client, access)
        if isinstance(reply, Listing):
            return reply.but(
                rows=tuple(row for row in reply.rows if row.named.claim.owner % INCARNATION == client % INCARNATION)
            )
        holder = reply.item.holder if isinstance(reply, Versioned) else None
        if holder is not None and holder.claim.owner % INCARNATION != client % INCARNATION:
            return reply.but(item=reply.item.but(holder=None))
        return reply


class Malformed(Store):
    """Answers with what no store says."""

    __slots__ = ()

    def reply(self, ctx: Context, client: int, access: Access) -> Any:
        return (Garbage(), Done(), Written(True), Listing(()), "nonsense", 42)[ctx.choose(6)]


class SizeBomb(Store):
    """Answers with more than anybody can read."""

    __slots__ = ()

    def reply(self, ctx: Context, client: int, access: Access) -> Any:
        match access:
            case accesses.List():
                return Listing(CROWD)
            case accesses.Read():
                return Versioned(Item(waiters=CROWD), 0)
            case Apply():
                return Answer(Grade.REFUSED, ticket=CROWD)
            case _:
                return Done()


class Forget(Store):
    """Restarts every five seconds and comes back empty: no leases, no waiters, no tokens."""

    __slots__ = ("empty",)

    def __init__(self, me: int, service: Service, granularity: float = 0, terse: bool = False) -> None:
        Store.__init__(self, me, service, granularity, terse)
        self.empty = service

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if self.service == self.empty:
            ctx.set_timer("restart", 5.0)
        Store.on_message(self, ctx, source, message)

    def on_timer(self, ctx: Context, name: str) -> None:
        self.service = self.empty


BEHAVIOURS: dict[str, type[Store]] = {
    "honest": Store,
    "slow": Slow,
    "silent": Silent,
    "grant-all": GrantAll,
    "deny-all": DenyAll,
    "hand-all": HandAll,
    "any": AnyOf,
    "stale-clock": StaleClock,
    "future-clock": FutureClock,
    "replay": Replay,
    "replay-token": ReplayToken,
    "hide": Hide,
    "malformed": Malformed,
    "size-bomb": SizeBomb,
    "forget": Forget,
}
