"""The services behind the bases, as values: what each kind of store keeps, and what it answers to one access.

``serve(client, access, now)`` gives the service afterwards and its reply. Times that are kept are instants of the
store's own clock; those that travel are durations, counted from the reply (or, in a write, from the read before it:
a client that writes an expiry computes it from the time it was told).
"""

from typing import Any, TypeAlias

from trinco.core.instant import Instant
from trinco.core.value import Value
from trinco.leases import accesses
from trinco.leases.accesses import Access, Done, Reply, Versioned, Written
from trinco.leases.bases.catalogue import RUN_CODE
from trinco.leases.claim import Claim
from trinco.leases.item import NO_LIMITS, Item, Limits
from trinco.leases.operation import Answer, Handed, Release, Request, Yield
from trinco.leases.row import Kind, Named, Row

Served: TypeAlias = "tuple[Service, Reply | Answer]"


class Service(Value):
    __slots__ = ()

    def serve(self, client: int, access: Access, now: Instant) -> Served:
        raise NotImplementedError

    def in_words(self) -> str:
        """For timelines."""
        item = getattr(self, "item", None)
        if isinstance(item, Item):
            return item.in_words()
        kept: tuple[Kept, ...] = getattr(self, "objects", ()) or getattr(self, "messages", ())
        return ", ".join(f"{each.named.kind.value} by {each.named.claim.owner}" for each in kept) or "empty"

    def settled(self, now: Instant) -> "Service":
        """Without what has run out and nobody can see any more."""
        return self

    def speak(self, access: Access, now: Instant) -> "tuple[Service, Handed | Claim | None]":
        """After an access: what is said to somebody who did not ask. A claim is woken."""
        return self, None


class ScriptService(Service):
    """Runs the item's own function, in one access."""

    __slots__ = ("item", "limits")

    def __init__(self, item: Item = Item(), limits: Limits = NO_LIMITS) -> None:
        self.item = item
        self.limits = limits

    def serve(self, client: int, access: Access, now: Instant) -> Served:
        assert isinstance(access, accesses.Apply)
        item, answer, _ = self.item.apply(access.operation, now, self.limits)
        return self.but(item=item), answer

    def settled(self, now: Instant) -> "ScriptService":
        return self.but(item=self.item.settled(now))


class HandingService(ScriptService):
    """Gives what somebody lets go of to the first in line, and says so; and wakes whoever it cannot give it to, and
    whoever should yield."""

    __slots__ = ()

    def speak(self, access: Access, now: Instant) -> "tuple[Service, Handed | Claim | None]":
        assert isinstance(access, accesses.Apply)
        operation = access.operation
        if isinstance(operation, Request):
            return self, next(iter(self.item.who_must_yield(operation)), None)
        if not isinstance(operation, Release | Yield):
            return self, None
        item, handed = self.item.hand_over(now, self.limits)
        return self.but(item=item), handed or next(iter(item.first_in_line()), None)


class Session(Value):
    """One client's read, and in a transaction what it has written since. ``horizon`` is so long after the read that
    whatever counts from it has run out: an instant in the future is exact also in the checker."""

    __slots__ = ("client", "horizon", "item", "version")

    def __init__(self, client: int, horizon: Instant, version: int, item: Item | None = None) -> None:
        self.client = client
        self.horizon = horizon
        self.version = version
        self.item = item


class ConditionalService(Service):
    """Reads, compares and sets. ``sessions`` remember when each client read: durations in its write count from then.
    ``longest`` is the longest of them."""

    __slots__ = ("item", "longest", "sessions", "version")

    def __init__(
        self, item: Item = Item(), version: int = 0, sessions: tuple[Session, ...] = (), longest: float = 60.0
    ) -> None:
        self.item = item
        self.longest = longest
        self.version = version
        self.sessions = sessions

    def serve(self, client: int, access: Access, now: Instant) -> Served:
        if isinstance(access, accesses.Read):
            return self.read(client, now)
        assert isinstance(access, accesses.CompareAndSet)
        session = self.session(client)
        if access.version != self.version or session is None:
            return self, Written(False)
        written = self.but(item=self.placed(access.item, session), version=self.version + 1)
        return written, Written(True, written.version)

    def placed(self, item: Item, session: Session) -> Item:
        """An item whose durations count from what a client read, on our clock."""
        return item.placed_at(session.horizon + -self.longest)

    def read(self, client: int, now: Instant) -> Served:
        seen = self.with_session(Session(client, now + self.longest, self.version))
        return seen, Versioned(self.item.settled(now).counted_from(now), self.version)

    def session(self, client: int) -> Session | None:
        return next((each for each in self.sessions if each.client == client), None)

    def with_session(self, session: Session) -> "ConditionalService":
        others = (each for each in self.sessions if each.client != session.client)
        return self.but(sessions=tuple(sorted((*others, session), key=lambda each: each.client)))

    def settled(self, now: Instant) -> "ConditionalService":
        return self.but(item=self.item.settled(now))


class TransactionalService(ConditionalService):
    """Serializable: a transaction commits if nobody has committed since it read."""

    __slots__ = ()

    def serve(self, client: int, access: Access, now: Instant) -> Served:
        session = self.session(client)
        match access:
            case accesses.Read():
                return self.read(client, now)
            case accesses.Write() if session is not None:
                return self.with_session(session.but(item=access.item)), Done()
            case accesses.CommitTransaction():
                return self.commit(session)
            case _:  # begin and abort: nothing is written yet, or any more
                return self if session is None else self.with_session(session.but(item=None)), Done()

    def commit(self, session: Session | None) -> Served:
        if session is None or session.item is None or session.version != self.version:
            return self, Written(False)
        written = self.but(item=self.placed(session.item, session), version=self.version + 1)
        return written.with_session(session.but(item=None, version=written.version)), Written(True, written.version)


class Kept(Value):
    """An object or a message, and when its term ends: an instant in the future is exact also in the checker."""

    __slots__ = ("key", "named", "until")

    def __init__(self, named: Named, until: Instant, key: Any) -> None:
        self.named = named
        self.until = until
        self.key = key

    def row(self, now: Instant) -> Row:
        return Row(self.named, self.named.ttl - (self.until - now), self.key)


class ObjectService(Service):
    """Lists, puts and deletes. Nothing disappears by itself. ``granularity`` is of the times in its listings."""

    __slots__ = ("granularity", "objects")

    def __init__(self, granularity: float = 0, objects: tuple[Kept, ...] = ()) -> None:
        self.granularity = granularity
        self.objects = objects

    def serve(self, client: int, access: Access, now: Instant) -> Served:
        match access:
            case accesses.Put(named=named):
                others = (each for each in self.objects if each.key != named)
                kept = Kept(named, now + named.ttl, named)
                return self.but(objects=(*others, kept)), Done()
            case accesses.Delete(key=key):
                return self.but(objects=tuple(each for each in self.objects if each.key != key)), Done()
            case _:
                return self, accesses.Listing(tuple(each.row(now) for each in self.objects), self.granularity)

    def settled(self, now: Instant) -> "ObjectService":
        kept = (each for each in self.objects if each.until > now or each.named.kind is Kind.TOKEN)
        return self.but(objects=tuple(kept))


class QueueService(Service):
    """Lists in order, appends, deletes by number; removes by itself what has outlived its time."""

    __slots__ = ("granularity", "messages", "number", "shows")

    def __init__(
        self, granularity: float = 0, messages: tuple[Kept, ...] = (), number: int = 0, shows: int = 1 << 30
    ) -> None:
        self.granularity = granularity
        self.messages = messages
        self.number = number
        self.shows = shows
        """How many a listing shows at most (Azure: 32)."""

    def serve(self, client: int, access: Access, now: Instant) -> Served:
        service = self.settled(now)
        match access:
            case accesses.Append(named=named, ttl=ttl):
                number = service.number + 1
                kept = Kept(named, now + ttl, number)
                return service.but(messages=(*service.messages, kept), number=number), accesses.Appended(number)
            case accesses.Delete(key=key):
                return service.but(messages=tuple(each for each in service.messages if each.key != key)), Done()
            case _:
                shown = tuple(each.row(now) for each in service.messages[: self.shows])
                return service, accesses.Listing(shown, self.granularity)

    def settled(self, now: Instant) -> "QueueService":
        return self.but(messages=tuple(each for each in self.messages if each.until > now))


SERVICES: dict[str, type[Service]] = {
    "object": ObjectService,
    "queue": QueueService,
    "conditional": ConditionalService,
    "transactional": TransactionalService,
    "one-access": ScriptService,
    "handing-over": HandingService,
}
"""Which service a base algorithm runs on."""


def service(name: str, limits: Limits, longest: float) -> Service:
    """What a base algorithm runs on. ``longest``: no term and no wait takes longer."""
    if name in RUN_CODE:
        return SERVICES[name](limits=limits)  # type: ignore[call-arg]
    if name in ("conditional", "transactional"):
        return SERVICES[name](longest=longest)  # type: ignore[call-arg]
    return SERVICES[name]()
