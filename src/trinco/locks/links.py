"""The links of a hub: bringing them up, watching them, hanging up."""

import os
from _thread import start_new_thread
from collections import deque
from errno import EBADF, ENOENT

from trinco.core.errors import StoreUnavailable
from trinco.stores.store import NO_DESCRIPTOR, Link, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RECONNECT_PAUSE = 1.0
"""Seconds, after a store could not be connected to, or ended two links in a row without having answered anything."""
LOOK_AROUND_AFTER = 0.5


class Links:
    """``links`` has None where a store is not connected; ``troubles`` says why. ``losses``: how many links broke.
    ``poller`` is readable when any link is; the first who has to wait makes it."""

    __slots__ = (
        "_bell",
        "_connecting",
        "_heard_before",
        "_looked",
        "_newcomers",
        "_retry_at",
        "_unanswering",
        "_watched",
        "address",
        "clock",
        "heard",
        "is_closed",
        "links",
        "losses",
        "poll_unit",
        "poller",
        "stores",
        "troubles",
    )

    def __init__(self, stores: "tuple[Store, ...]", address: str, clock: "Callable[[], float]") -> None:
        self.stores = stores
        self.address = address
        self.clock = clock
        self.links: list[Link | None] = [None] * len(stores)
        self.troubles: list[str | None] = [None] * len(stores)
        self.losses = 0
        self.poller: Any = None
        self.poll_unit = 1
        """How many of its units of time a second has."""
        self._retry_at = [0.0] * len(stores)
        self.heard = [0] * len(stores)
        """How often something has come from each store."""
        self._heard_before = list(self.heard)
        """What that was when the present link came up."""
        self._unanswering = [0] * len(stores)
        """How many links in a row, the last of them the present one, had not brought anything when that one came up."""
        self._connecting: set[int] = set()
        self._newcomers: deque[tuple[int, Link | None, str]] = deque()
        self._bell: tuple[int, int] | None = None
        self._watched: dict[int, int] = {}
        self._looked = 0.0
        self.is_closed = False

    # What a hub does

    def greet(self, base: int, link: Link) -> None:
        """A link has come up."""
        raise NotImplementedError

    def send_unsent(self, base: int) -> None:
        """Nobody is connecting to a store any more."""
        raise NotImplementedError

    def receive(self, base: int) -> None:
        """Something has arrived at a link."""
        raise NotImplementedError

    def lose(self, base: int, reason: str) -> None:
        """A link is dead."""
        raise NotImplementedError

    # Connecting

    def connect_missing(self, *, urgently: bool = False) -> None:
        """Bring up every link that is down and may be tried again (or every one: nothing can be done without): what is
        near at once, what is far in a thread of its own, since a stopped server answers neither yes nor no."""
        for base, link in enumerate(self.links):
            if link is None and base not in self._connecting and (urgently or self._retry_at[base] <= self.clock()):
                if self.stores[base].local:
                    self._newcomers.append(_connected(self.stores[base], base, self.address))
                else:
                    self._connect_in_a_thread(base)
        if self._newcomers:
            self._welcome()

    def _connect_in_a_thread(self, base: int) -> None:
        bell = None
        try:
            bell = os.dup(self._ringer())
            start_new_thread(self._connect, (base, bell, self._newcomers))
        except (OSError, RuntimeError) as error:  # this process has too many files open, or too many threads
            if bell is not None:
                os.close(bell)
            self._newcomers.append((base, None, f"{self.stores[base].url}: cannot connect: {error}"))
        else:
            self._connecting.add(base)

    @property
    def is_connecting(self) -> bool:
        return bool(self._connecting)

    def is_connecting_to(self, base: int) -> bool:
        return base in self._connecting

    def can_hear(self, base: int) -> bool:
        """Whether a store is connected, or will perhaps be in a moment."""
        return self.links[base] is not None or base in self._connecting

    def connected(self) -> int:
        return sum(link is not None for link in self.links)

    def _connect(self, base: int, bell: int, newcomers: "deque[tuple[int, Link | None, str]]") -> None:
        """In a thread of its own, where nobody would hear of what is raised."""
        newcomers.append(_connected(self.stores[base], base, self.address))
        from contextlib import suppress

        with suppress(OSError):  # nobody may be listening any more
            os.write(bell, b"!")  # a copy of the bell: the number of a closed one may be somebody else's by now
        os.close(bell)
        if newcomers is not self._newcomers:
            _turn_away(newcomers)

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
                self._retry_at[base] = self.clock() + RECONNECT_PAUSE
                self.send_unsent(base)
            elif self.links[base] is not None:
                link.close()
            else:
                self._adopt(base, link)

    def _adopt(self, base: int, link: Link) -> None:
        self.links[base] = link
        self._unanswering[base] = self._unanswering[base] + 1 if self._is_unheard(base) else 1
        self._heard_before[base] = self.heard[base]
        try:
            self.greet(base, link)
        except StoreUnavailable as error:
            self.lose(base, str(error))
            return
        self.watch(base)

    def _is_unheard(self, base: int) -> bool:
        """Whether the present link has not brought anything."""
        return self.heard[base] == self._heard_before[base]

    def excuse(self, base: int) -> None:
        """Its link is given up through no fault of the store."""
        self._unanswering[base] = 0

    def hang_up(self, base: int, reason: str) -> None:
        """Whoever is interrupted here has it to do again."""
        link = self.links[base]
        self.troubles[base] = reason
        is_hopeless = self._unanswering[base] > 1 and self._is_unheard(base)
        self._retry_at[base] = self.clock() + (RECONNECT_PAUSE if is_hopeless else 0.0)
        if link is not None:
            self._unwatch(base)
            try:
                link.close()
            except Exception as error:
                _fault(self.stores[base], error)  # it is gone all the same
            self.links[base] = None
            self.losses += 1

    # Polling

    def look_around(self) -> None:
        """Notice links that were closed while nobody used them, before something is asked of them."""
        now = self.clock()
        if self.poller is not None and now - self._looked > LOOK_AROUND_AFTER:
            self.ready(self.poller.poll(0))
        self._looked = now

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

            has_epoll = hasattr(select, "epoll")
            self.poller = select.epoll() if has_epoll else select.poll()
            self.poll_unit = 1 if has_epoll else 1000
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
            for base, watched in tuple(self._watched.items()):
                if watched == descriptor:
                    self.receive(base)

    def silence_bell(self, events: "list[tuple[int, int]]") -> None:
        """By who slept at the poller, and nobody else: it was rung for them."""
        for descriptor, _ in events:
            if self._bell is not None and descriptor == self._bell[0]:
                try:
                    os.read(descriptor, 4096)
                except BlockingIOError:  # another thread has read it since
                    return

    def forget(self) -> None:
        """After a fork: nothing here is ours, not even to close."""
        self.links = [None] * len(self.stores)
        self.poller = None
        self._watched = {}
        self._newcomers = deque()
        self._connecting = set()
        self._bell = None

    def close(self) -> None:
        self.is_closed = True
        newcomers, self._newcomers = self._newcomers, deque()
        _turn_away(newcomers)
        for link in self.links:
            if link is not None:
                link.close()
        for descriptor in self._bell or ():
            os.close(descriptor)
        if self.poller is not None and hasattr(self.poller, "close"):
            self.poller.close()
        self.forget()


def _turn_away(newcomers: "deque[tuple[int, Link | None, str]]") -> None:
    """Hang up on those who came too late. A thread that connects may do the same at the same time."""
    while newcomers:
        try:
            link = newcomers.popleft()[1]
        except IndexError:
            return
        if link is not None:
            link.close()


def _connected(store: Store, base: int, address: str) -> "tuple[int, Link | None, str]":
    try:
        return base, store.connect(address), ""
    except StoreUnavailable as error:
        return base, None, error.reason
    except Exception as error:
        return base, None, _fault(store, error)


def _fault(store: Store, error: Exception) -> str:
    from trinco.locks.blame import fault

    return fault(store.url, error)
