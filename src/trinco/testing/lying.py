"""A store that breaks its word: to see what your quorum, your program and your alarms make of it.

    locks = trinco.connect("quorum:?f=1", stores=[a, b, c, LyingStore(d, "grant-all")])

It wraps a store that runs operations itself (memory, SQLite, Redis, PostgreSQL) and stands in its place: the same URL,
the same answers to ``names``, and lies in answer to everything else.
"""

import os
import select
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from threading import Timer
from time import monotonic
from typing import TYPE_CHECKING, Any

from trinco.core.errors import UsageError
from trinco.leases.accesses import Access, Apply, Done, Read, Versioned
from trinco.leases.bases.catalogue import RUN_CODE
from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item
from trinco.leases.operation import Answer, Commit, Extend, Grade, Handed, Operation, Request
from trinco.leases.owner import owner_name
from trinco.stores.clock import boottime, wall_microseconds
from trinco.stores.store import NO_DESCRIPTOR, Hint, Link, Store

if TYPE_CHECKING:
    from trinco.stores.store import Replied, Said

HOUR = 3600.0
NOBODY = Claim(owner_name("nobody@nowhere", "0" * 20, 0), 1)


class Behaviour(Enum):
    """How a store misbehaves."""

    GRANT_ALL = "grant-all"
    """Grants everything to everybody."""
    DENY_ALL = "deny-all"
    """Says that somebody else holds everything, for an hour to come."""
    SILENT = "silent"
    """Takes every question and answers none."""
    FORGET = "forget"
    """Confirms what it is told, and has forgotten it at the next question."""
    REPLAY = "replay"
    """Is honest the first time, and gives the same answer to every question of that sort for ever after."""
    GARBAGE = "garbage"
    """Answers what no store answers."""
    SLOW = "slow"
    """Honest, and late with every answer."""


class LyingStore(Store):
    """``behaviour``: one of :class:`Behaviour`, or its name. ``delay``: how late a slow one is, in seconds."""

    __slots__ = ("behaviour", "delay", "store")

    def __init__(self, store: Store, behaviour: "Behaviour | str", *, delay: float = 0.2) -> None:
        if store.kind not in RUN_CODE:
            known = " or ".join(f"'{kind}'" for kind in RUN_CODE)
            raise UsageError(f"{store.url} is a store of kind '{store.kind}': only those of kind {known} can lie")
        super().__init__(store.url, store.kind, store.domain, local=store.local, t_max=store.t_max)
        self.store = store
        self.behaviour = _behaviour(behaviour)
        self.delay = delay

    def connect(self, address: str, timeout: float = 5.0) -> Link:
        honest = self.store.connect(address, timeout)
        if self.behaviour is Behaviour.SLOW:
            return SlowLink(honest, self.delay)
        if self.behaviour is Behaviour.REPLAY:
            return ReplayingLink(honest)
        if self.behaviour is Behaviour.SILENT:
            return SilentLink(honest)
        return InventingLink(honest, INVENTIONS[self.behaviour])


def _behaviour(behaviour: "Behaviour | str") -> Behaviour:
    try:
        return Behaviour(behaviour)
    except ValueError:
        known = ", ".join(each.value for each in Behaviour)
        raise UsageError(f"there is no behaviour '{behaviour}'; there are {known}") from None


class WrappedLink(Link):
    """What all of them leave to the honest link."""

    __slots__ = ("_honest",)

    def __init__(self, honest: Link) -> None:
        self._honest = honest

    def fileno(self) -> int:
        return self._honest.fileno()

    def receive(self) -> "list[Replied | Said]":
        return self._honest.receive()

    def expect_hints(self, owner: str) -> None:
        self._honest.expect_hints(owner)

    def ignore_hints(self, owner: str) -> None:
        self._honest.ignore_hints(owner)

    def names(self, prefix: str = "") -> Iterator[str]:
        return self._honest.names(prefix)

    def close(self) -> None:
        self._honest.close()


class SilentLink(WrappedLink):
    __slots__ = ()

    def send(self, resource: str, access: Access) -> "Replied | None":
        return None


class InventingLink(WrappedLink):
    """Does not even ask the store: what it says, it has made up."""

    __slots__ = ("_invent",)

    def __init__(self, honest: Link, invent: "Callable[[Access], Any]") -> None:
        super().__init__(honest)
        self._invent = invent

    def send(self, resource: str, access: Access) -> "Replied | None":
        reply: Replied = self._invent(access)
        return reply


class ReplayingLink(WrappedLink):
    """``_first``: the first answer to each sort of question; ``_asked``: what the store itself has yet to answer."""

    __slots__ = ("_asked", "_first")

    def __init__(self, honest: Link) -> None:
        super().__init__(honest)
        self._first: dict[tuple[str, type], Replied] = {}
        self._asked: deque[tuple[str, type]] = deque()

    def send(self, resource: str, access: Access) -> "Replied | None":
        sort = (resource, type(access.operation if isinstance(access, Apply) else access))
        if sort in self._first:
            return self._first[sort]
        reply = self._honest.send(resource, access)
        if reply is None:
            self._asked.append(sort)
        else:
            self._first[sort] = reply
        return reply

    def receive(self) -> "list[Replied | Said]":
        arrived = self._honest.receive()
        for each in arrived:
            if not isinstance(each, Hint | Handed):
                self._first.setdefault(self._asked.popleft(), each)
        return arrived


class SlowLink(WrappedLink):
    """Keeps every answer back for a while. One descriptor stands for two: the honest link's, and a pipe that a timer
    writes to."""

    __slots__ = ("_bell", "_delay", "_either", "_kept", "_watched")

    def __init__(self, honest: Link, delay: float) -> None:
        super().__init__(honest)
        self._delay = delay
        self._kept: deque[tuple[float, Replied | Said]] = deque()
        self._bell = os.pipe()
        os.set_blocking(self._bell[0], False)
        self._either = select.epoll()
        self._either.register(self._bell[0], select.EPOLLIN)
        self._watched = NO_DESCRIPTOR

    def send(self, resource: str, access: Access) -> "Replied | None":
        reply = self._honest.send(resource, access)
        if reply is not None:
            self._keep([reply])
        self._watch()
        return None

    def fileno(self) -> int:
        return self._either.fileno()

    def receive(self) -> "list[Replied | Said]":
        self._keep(self._honest.receive())
        self._watch()
        _drain(self._bell[0])
        due = []
        while self._kept and self._kept[0][0] <= monotonic():
            due.append(self._kept.popleft()[1])
        return due

    def expect_hints(self, owner: str) -> None:
        super().expect_hints(owner)
        self._watch()

    def close(self) -> None:
        self._either.close()
        for each in self._bell:
            os.close(each)
        super().close()

    def _keep(self, arrived: "list[Replied | Said]") -> None:
        """A timer that goes off a little early would leave its answer lying: so it is set a little late."""
        due = monotonic() + self._delay
        for each in arrived:
            self._kept.append((due, each))
            timer = Timer(self._delay + 0.001, _ring, (os.dup(self._bell[1]),))
            timer.daemon = True
            timer.start()

    def _watch(self) -> None:
        descriptor = self._honest.fileno()
        if descriptor != self._watched:
            if descriptor != NO_DESCRIPTOR:
                self._either.register(descriptor, select.EPOLLIN)
            self._watched = descriptor


def _ring(bell: int) -> None:
    try:
        os.write(bell, b"!")
    except OSError:
        pass  # the link was closed meanwhile: nobody reads any more
    finally:
        os.close(bell)


def _drain(descriptor: int) -> None:
    try:
        os.read(descriptor, 4096)
    except BlockingIOError:
        return


# What the others make up


def _yes(access: Access) -> Any:
    if not isinstance(access, Apply):
        return _nothing_known(access)
    operation = access.operation
    if not isinstance(operation, Request | Commit | Extend):
        return Answer(Grade.DONE)
    token = getattr(operation, "token", None)
    return Answer(
        Grade.COMMITTED, wall_microseconds() if isinstance(token, str) else token, getattr(operation, "ttl", 0)
    )


def _no(access: Access) -> Any:
    if not isinstance(access, Apply):
        return Versioned(Item(wall_microseconds(), Holder(NOBODY, HOUR, None, None, None)), 1)
    return Answer(Grade.REFUSED, remaining=HOUR) if isinstance(access.operation, Request) else Answer(Grade.GONE)


def _forgetful(access: Access) -> Any:
    if not isinstance(access, Apply):
        return _nothing_known(access)
    return _on_an_empty_item(access.operation)


def _on_an_empty_item(operation: Operation) -> Answer:
    _, answer, _ = Item(wall_microseconds() - 1_000_000).apply(operation, boottime())
    return answer


def _nothing_known(access: Access) -> Any:
    assert isinstance(access, Read), access
    return Versioned(Item(wall_microseconds()), 0)


def _garbage(access: Access) -> Any:
    rubbish: tuple[Any, ...] = (
        Answer("yes", -1, float("nan")),  # type: ignore[arg-type]
        Done(),
        Versioned("item", -1),  # type: ignore[arg-type]
        "rubbish",
    )
    return rubbish[wall_microseconds() % len(rubbish)]


INVENTIONS: "dict[Behaviour, Callable[[Access], Any]]" = {
    Behaviour.GRANT_ALL: _yes,
    Behaviour.DENY_ALL: _no,
    Behaviour.FORGET: _forgetful,
    Behaviour.GARBAGE: _garbage,
}
