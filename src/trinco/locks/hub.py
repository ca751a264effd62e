"""The stores of a lock service as one process sees them, and everybody in it who asks for something.

One link to each store carries the accesses of all claimants. The hub does no waiting: ``send`` puts an access on its
way, ``receive`` takes in what has arrived at a link, ``pump`` hands replies and due timers to the claimants until
nothing is left to do. A shell (``locks.waiting`` for threads, ``locks.aio`` for tasks) sleeps until a link becomes
readable or the next timer is due, and calls these.

                 threads or tasks            claimants (the proven code)             stores
                 acquire ─────────────────▶  request ──────────── send ───────────▶  b0 b1 b2 b3
                 sleep on the poller  ◀───── granted ◀─ pump ◀─── receive ◀──────── replies, hints
"""

import os
from _thread import start_new_thread
from collections import deque
from errno import EBADF, ENOENT

from trinco.core.errors import StoreUnavailable
from trinco.leases.accesses import Reply
from trinco.leases.bases.catalogue import find
from trinco.leases.item import Limits
from trinco.leases.operation import Answer
from trinco.leases.owner import owner_name
from trinco.leases.terms import Terms
from trinco.locks.claimant import Claimant
from trinco.stores.clock import boottime, wall_microseconds
from trinco.stores.store import NO_DESCRIPTOR, Failed, Hint, Link, StaysOut, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from trinco.leases.accesses import Access
    from trinco.locks.entries import PlainEntries, SealedEntries

    class Caller(Protocol):
        """Whoever sends accesses: a claimant, or somebody who only looks."""

        resource: str
        failures: dict[int, str]
        reached: set[int]

        def replied(self, base: int, tag: Any, reply: Any) -> None: ...

        def lost_touch(self, base: int, tag: Any) -> None: ...


MAX_POOLED = 64
RECONNECT_PAUSE = 1.0
LOOK_AROUND_AFTER = 0.5
NEVER = float("inf")
HINT = object()


class Hub:
    """``links`` has None where a store is not connected; ``troubles`` says why. ``connector`` brings links up without
    holding the others up (a thread, for stores that are far away). ``preferred``: the bases, quickest first."""

    def __init__(
        self,
        stores: "tuple[Store, ...]",
        entries: "PlainEntries | SealedEntries",
        *,
        client: str,
        address: str,
        chance: "Callable[[], float]",
        clock: "Callable[[], float]" = boottime,
    ) -> None:
        self.stores = stores
        self.entries = entries
        self.client = client
        self.address = address
        self.chance = chance
        self.clock = clock
        self.wall_clock = wall_microseconds
        self.t_max = min(store.t_max for store in stores)
        self.algorithms = tuple(find(store.kind)(Limits(self.t_max)) for store in stores)
        self.preferred = list(range(len(stores)))
        self.links: list[Link | None] = [None] * len(stores)
        self.troubles: list[str | None] = [None] * len(stores)
        self.retry_at = [0.0] * len(stores)
        self._connecting: set[int] = set()
        self._newcomers: deque[tuple[int, Link | None, str]] = deque()
        self._bell: tuple[int, int] | None = None
        self.active: dict[str, Claimant] = {}
        self.poller: Any = None
        self._watched: dict[int, int] = {}
        self._outstanding: list[deque[tuple[Caller, Any]]] = [deque() for _ in stores]
        self._inbox: deque[tuple[Any, int, Any, Any]] = deque()
        self._pool: dict[str, list[Claimant]] = {}
        self._pooled = 0
        self._handles = 0
        self._looked = 0.0
        self.losses = 0
        """How many links broke."""

    # Claimants

    def claimant(self, resource: str, terms: Terms, info: str) -> Claimant:
        """Somebody to ask for this resource, whom nobody else uses."""
        waiting = self._pool.get(resource)
        if waiting:
            self._pooled -= 1
            claimant = waiting.pop()
            if not waiting:
                del self._pool[resource]
        else:
            self._handles += 1
            claimant = Claimant(self, owner_name(self.client, self.address, self._handles), resource, terms)
        claimant.prepare(terms, info)
        self.active[claimant.owner] = claimant
        return claimant

    def retire(self, claimant: Claimant) -> None:
        """It has given everything back, or there is nothing more that it could do."""
        if claimant.hinting:
            claimant.hinting = False
            for link in self.links:
                if link is not None:
                    link.ignore_hints(claimant.owner)
        if claimant.is_busy:
            return  # it stays until its last release is answered
        if self.active.pop(claimant.owner, None) is None:
            return
        claimant.timers.clear()
        if self._pooled < MAX_POOLED:
            self._pooled += 1
            self._pool.setdefault(claimant.resource, []).append(claimant)

    # Sending and receiving

    def send(self, caller: "Caller", base: int, access: "Access", tag: "Any") -> None:
        """Put an access on its way. Its reply comes with its tag, from ``pump`` and never within this call."""
        link = self.links[base]
        reply: Any = None
        if link is None:
            caller.failures[base] = self.troubles[base] or f"{self.stores[base].url}: not connected"
        else:
            try:
                reply = link.send(caller.resource, access)
            except StoreUnavailable as error:
                self.lose(base, str(error))
                caller.failures[base] = str(error)
            else:
                if reply is None:
                    self._outstanding[base].append((caller, tag))
                    return
        self._inbox.append((caller, base, tag, reply))

    def receive(self, base: int) -> None:
        """Take in what has arrived at a link."""
        link = self.links[base]
        if link is None:
            return
        try:
            arrived = link.receive()
        except StoreUnavailable as error:
            self.lose(base, str(error))
            return
        outstanding = self._outstanding[base]
        hints = []
        for each in arrived:
            if isinstance(each, Hint):
                hints.append(self.active.get(each.owner))
            elif outstanding:
                caller, tag = outstanding.popleft()
                self._inbox.append((caller, base, tag, each))
        for waiter in hints:
            if waiter is not None:
                self._inbox.append((waiter, base, HINT, None))  # a refusal that came with it may be older

    def pump(self) -> None:
        """Hand out what has come in, and what comes of that, until there is nothing left; then due timers."""
        inbox = self._inbox
        while True:
            while inbox:
                caller, base, tag, reply = inbox.popleft()
                if tag is HINT:
                    caller.hinted(caller.world, base)
                else:
                    caller.replied(base, tag, self._judged(caller, base, reply))
            if self._newcomers:
                self._welcome()
            now = self.clock()
            due = [each for each in self.active.values() if each.timers and min(each.timers.values()) <= now]
            if not due:
                return
            if self.poller is not None:
                self.ready(self.poller.poll(0))  # what has arrived in time must not be taken for late
                if inbox:
                    continue
            for claimant in due:
                claimant.fire(now)
            self.connect_missing()

    def _judged(self, caller: "Caller", base: int, reply: "Any") -> "Any":
        """The reply, or None where the store could not do it."""
        if isinstance(reply, Failed):
            caller.failures[base] = self.troubles[base] = reply.reason
            if isinstance(reply, StaysOut):
                caller.reached.add(base)  # it works, and it will do again
            return None
        if isinstance(reply, Reply | Answer):
            caller.reached.add(base)
            caller.failures.pop(base, None)
            self.troubles[base] = None
            return reply
        return None

    def look_around(self) -> None:
        """Notice links that were closed while nobody used them, before something is asked of them."""
        now = self.clock()
        if self.poller is not None and now - self._looked > LOOK_AROUND_AFTER:
            self.ready(self.poller.poll(0))
        self._looked = now

    def next_due(self) -> float:
        """When something has to be done although nothing arrives."""
        return min((min(each.timers.values()) for each in self.active.values() if each.timers), default=NEVER)

    # Links

    def connect_missing(self) -> None:
        """Bring up every link that is down and may be tried again: what is near at once, what is far in a thread of
        its own, since a stopped server answers neither yes nor no."""
        for base, link in enumerate(self.links):
            if link is None and base not in self._connecting and self.retry_at[base] <= self.clock():
                if self.stores[base].local:
                    self._newcomers.append(_connected(self.stores[base], base, self.address))
                else:
                    self._connecting.add(base)
                    start_new_thread(self._connect, (base, self._ringer()))
        if self._newcomers:
            self._welcome()

    @property
    def is_connecting(self) -> bool:
        return bool(self._connecting)

    def connected(self) -> int:
        return sum(link is not None for link in self.links)

    def _connect(self, base: int, bell: int) -> None:
        """In a thread of its own."""
        self._newcomers.append(_connected(self.stores[base], base, self.address))
        try:
            os.write(bell, b"!")
        except OSError:  # the hub was closed meanwhile
            return

    def ring(self) -> None:
        """Wake whoever sleeps at the poller."""
        os.write(self._ringer(), b"!")

    def _ringer(self) -> int:
        """Where a thread rings to say that it is done."""
        self.start_polling()
        if self._bell is None:
            self._bell = os.pipe()
            os.set_blocking(self._bell[0], False)
            self.poller.register(self._bell[0], 1)
        return self._bell[1]

    def _welcome(self) -> None:
        while self._newcomers:
            base, link, trouble = self._newcomers.popleft()
            self._connecting.discard(base)
            self.troubles[base] = trouble or None
            if link is None:
                self.retry_at[base] = self.clock() + RECONNECT_PAUSE
            elif self.links[base] is not None:
                link.close()
            else:
                self.links[base] = link
                for claimant in list(self.active.values()):
                    if claimant.hinting:
                        link.expect_hints(claimant.owner)
                self.watch(base)

    def lose(self, base: int, reason: str) -> None:
        """A link is dead, and so is what was under way on it."""
        link, self.links[base] = self.links[base], None
        self.troubles[base] = reason
        self.retry_at[base] = self.clock()
        if link is not None:
            self.losses += 1
            self._unwatch(base)
            link.close()
        outstanding, self._outstanding[base] = self._outstanding[base], deque()
        for caller, tag in outstanding:
            caller.failures[base] = reason
            caller.lost_touch(base, tag)

    def expect_hints(self, claimant: Claimant) -> None:
        for base, link in enumerate(self.links):
            if link is not None:
                try:
                    link.expect_hints(claimant.owner)
                except StoreUnavailable as error:
                    self.lose(base, str(error))
                else:
                    self.watch(base)

    def watch(self, base: int) -> None:
        """Have the poller look at a link's descriptor, which may have come or changed."""
        link = self.links[base]
        descriptor = NO_DESCRIPTOR if link is None else link.fileno()
        if self.poller is None or self._watched.get(base, NO_DESCRIPTOR) == descriptor:
            return
        self._unwatch(base)
        if descriptor != NO_DESCRIPTOR:
            self.poller.register(descriptor, 1)  # POLLIN and EPOLLIN
            self._watched[base] = descriptor

    def start_polling(self) -> None:
        """The first who has to wait makes the poller; who never waits never does."""
        if self.poller is None:
            import select

            self.poller = select.epoll() if hasattr(select, "epoll") else select.poll()
            for base in range(len(self.links)):
                self.watch(base)

    def _unwatch(self, base: int) -> None:
        descriptor = self._watched.pop(base, None)
        if descriptor is None:
            return
        try:
            self.poller.unregister(descriptor)
        except (KeyError, OSError) as error:
            if getattr(error, "errno", ENOENT) not in (EBADF, ENOENT):
                raise

    def ready(self, events: "list[tuple[int, int]]") -> None:
        """Take in what the poller saw."""
        for descriptor, _ in events:
            for base, watched in list(self._watched.items()):
                if watched == descriptor:
                    self.receive(base)
            if self._bell is not None and descriptor == self._bell[0]:
                os.read(descriptor, 4096)

    def forget(self) -> None:
        """After a fork: nothing here is ours, not even to close."""
        self.links = [None] * len(self.stores)
        self.active = {}
        self._pool = {}
        self._pooled = 0
        self.poller = None
        self._watched = {}
        self._outstanding = [deque() for _ in self.stores]
        self._inbox = deque()
        self._newcomers = deque()
        self._connecting = set()
        self._bell = None

    def close(self) -> None:
        while self._newcomers:
            self.links.append(self._newcomers.popleft()[1])
        for link in self.links:
            if link is not None:
                link.close()
        for descriptor in self._bell or ():
            os.close(descriptor)
        if self.poller is not None and hasattr(self.poller, "close"):
            self.poller.close()
        self.forget()


def _connected(store: Store, base: int, address: str) -> "tuple[int, Link | None, str]":
    try:
        return base, store.connect(address), ""
    except StoreUnavailable as error:
        return base, None, str(error)
