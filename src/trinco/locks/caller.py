"""One who asks a single store and waits for each answer: for those who look into a store, not for those who lock.

    caller = Caller(store)                           # a link of its own
    answer = caller.ask("nightly", Request(claim, 30))

Operations run through the base algorithm of the store, as those of a lock do. What is no answer raises: an access that
the store says it could not do, and silence.
"""

import os
from errno import EMFILE, ENFILE
from time import perf_counter

from trinco.core.errors import Denial, StoreUnavailable, TrincoError, unavailable
from trinco.leases.accesses import Begin, List, Listing, Read, Reply, Versioned
from trinco.leases.bases.catalogue import find
from trinco.leases.claim import Claim
from trinco.leases.item import Item, Limits
from trinco.leases.operation import Answer, Grade, Handed, Operation
from trinco.leases.owner import ADDRESS_DIGITS, owner_name
from trinco.leases.plan import Outcome, Plan
from trinco.leases.row import Kind, Row
from trinco.locks.blame import fault, let_alarms_through
from trinco.locks.inspection import ODD, as_item, item_in
from trinco.stores.store import NO_DESCRIPTOR, Failed, Hint, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from trinco.leases.accesses import Access
    from trinco.stores.store import Link, Said

    T = TypeVar("T")

PATIENCE = 5.0
LISTED = ("object", "queue")
"""Kinds of stores that are looked at by listing them."""


class Nonsense(Exception):
    """A store said what no store says; the text is one line for people."""


class LinkBroke(Nonsense):
    """What speaks to the store raised what no link raises: the store's client library failed, or could make nothing of
    what the store said."""

    @property
    def reason(self) -> str:
        return str(self)


class Unable(StoreUnavailable):
    """The store was reached, and says that it could not do it."""


class Caller:
    """``seconds``: how long each access took. ``heard``: the hints that came along, and what was handed over.
    ``granularity``: how coarse the store said that its clock is."""

    __slots__ = (
        "_algorithm",
        "_attempts",
        "_memories",
        "address",
        "granularity",
        "heard",
        "link",
        "patience",
        "seconds",
        "store",
    )

    def __init__(self, store: Store, patience: float = PATIENCE) -> None:
        self.store = store
        self.patience = patience
        self.address = os.urandom(ADDRESS_DIGITS // 2).hex()
        self.link = self._connect()
        self.seconds: list[float] = []
        self.heard: list[Said] = []
        self.granularity = 0.0
        self._algorithm = find(store.kind)(Limits(store.t_max))
        self._memories: dict[tuple[str, Claim], Any] = {}
        self._attempts = 0

    def _connect(self) -> "Link":
        """Whatever a library raises while it connects, the store has not been heard to say anything."""
        try:
            return self.store.connect(self.address, self.patience)
        except TrincoError as error:
            let_alarms_through(error)
            raise
        except Exception as error:
            if _is_of_this_process(error):
                raise
            raise StoreUnavailable(fault(self.store.url, error)) from error

    @property
    def fences(self) -> bool:
        """Whether the store keeps tokens."""
        return bool(self._algorithm.fences)

    @property
    def counts(self) -> bool:
        """Whether the store can count tokens by itself."""
        return bool(self._algorithm.counts)

    @property
    def hands_over(self) -> bool:
        """Whether the store gives what is let go of to the first in line, and says so."""
        return bool(self._algorithm.hands_over)

    def claim(self, handle: int = 1, client: str = "prober") -> Claim:
        """Of an owner that is nobody else; each call is a later attempt of it."""
        self._attempts += 1
        return Claim(owner_name(client, self.address, handle), self._attempts)

    def ask(self, resource: str, operation: Operation) -> Answer:
        """The answer of the store; ``Nonsense`` where it makes no sense."""
        place = (resource, operation.claim)
        plan = Plan(operation, memory=self._memories.get(place))
        while not isinstance(step := plan.step(self._algorithm), Outcome):
            plan = plan.told(self.access(resource, step))
        self._memories[place] = step.memory
        if not isinstance(step.answer, Answer) or not step.answer.makes_sense() or step.answer.grade is Grade.FAILED:
            raise Nonsense(f"its answer to '{_name(operation)}' makes no sense")
        return step.answer

    def look(self, resource: str) -> Item:
        """What the store has about a resource, with durations for times."""
        reply = self.access(resource, List() if self.store.kind in LISTED else Read())
        try:
            if isinstance(reply, Listing):
                self.granularity = max(self.granularity, reply.granularity)
                return as_item(reply.rows, self.store.t_max)
            return item_in(reply)
        except ODD:
            raise Nonsense("its answer to 'read' makes no sense") from None

    def begin(self, resource: str) -> Versioned:
        """Read what is to be written, in a transaction where the store has them."""
        if self.store.kind == "transactional":
            self.access(resource, Begin())
        reply = self.access(resource, Read())
        if not isinstance(reply, Versioned):
            raise Nonsense("its answer to 'read' makes no sense")
        return reply

    def holders(self, resource: str) -> "set[Claim]":
        """Whose leases are live. Where stores only list, somebody who is about to step back may be among them."""
        if self.store.kind not in LISTED:
            holder = self.look(resource).holder
            return set() if holder is None else {holder.claim}
        reply = self.access(resource, List())
        if not isinstance(reply, Listing):
            raise Nonsense("its answer to 'list' makes no sense")
        return {row.named.claim for row in reply.rows if _is_held(row, self.store.t_max)}

    def access(self, resource: str, access: "Access") -> "Any":
        """One round trip. ``StoreUnavailable`` if the store could not do it, or gave no answer in time;
        ``StoreForbidden`` if it says that we may not."""
        start = perf_counter()
        reply = self._judged(lambda: self.link.send(resource, access))
        if reply is None:
            reply = self._await_reply(start + self.patience)
        self.seconds.append(perf_counter() - start)
        if isinstance(reply, Failed):
            raise unavailable(reply.reason) if isinstance(reply.reason, Denial) else Unable(reply.reason)
        if not isinstance(reply, Reply | Answer):
            raise Nonsense(f"its answer to '{_name(access)}' makes no sense")
        return reply

    def hints(self, patience: float) -> list[str]:
        """The owners of the hints that have come, as soon as there are any or the time is over."""
        return [each.owner for each in self._hear(patience) if isinstance(each, Hint)]

    def handed_over(self, patience: float) -> Handed | None:
        """What was handed over last, as soon as there is anything or the time is over."""
        handed = [each for each in self._hear(patience) if isinstance(each, Handed)]
        return handed[-1] if handed else None

    def _hear(self, patience: float) -> "list[Said]":
        end = perf_counter() + patience
        while not self.heard and perf_counter() < end:
            self._sleep_until_readable(end)
            self._take_in()
        heard, self.heard = self.heard, []
        return heard

    def _await_reply(self, end: float) -> "Any":
        while True:
            replies = self._take_in()
            if replies:
                return replies[0]
            if perf_counter() >= end:
                raise StoreUnavailable(f"the store {self.store.url} gave no answer within {self.patience:g} s")
            self._sleep_until_readable(end)

    def _take_in(self) -> "list[Any]":
        arrived = self._judged(self.link.receive)
        self.heard += [each for each in arrived if isinstance(each, Hint | Handed)]
        return [each for each in arrived if not isinstance(each, Hint | Handed)]

    def _judged(self, use: "Callable[[], T]") -> "T":
        """Use the link. It may be somebody else's, over a library that has errors of its own."""
        try:
            return use()
        except StoreUnavailable as error:
            let_alarms_through(error)
            raise
        except Exception as error:
            if _is_of_this_process(error):
                raise
            raise LinkBroke(fault(self.store.url, error)) from error

    def _sleep_until_readable(self, end: float) -> None:
        import select

        poller = select.poll()
        descriptor = self.link.fileno()
        if descriptor != NO_DESCRIPTOR:
            poller.register(descriptor, select.POLLIN)
        poller.poll(max(end - perf_counter(), 0) * 1000)

    def close(self) -> None:
        self.link.close()

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_held(row: Row, t_max: float) -> bool:
    return row.named.kind in (Kind.HELD, Kind.UNKNOWN) and row.is_live(t_max)


def _is_of_this_process(error: Exception) -> bool:
    """Whether it is we who are short of something: that says nothing about a store."""
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in (EMFILE, ENFILE)


def _name(asked: object) -> str:
    return type(asked).__name__.lower()
