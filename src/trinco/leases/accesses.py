"""The store interfaces of the paper, as values: what is asked of a store in one access, and what it answers.

Four kinds: an *object store* lists, puts and deletes; an *augmented queue* lists, appends with a time to live and
deletes; a *conditional* store reads and compares-and-sets; a *transactional* one begins, looks up, writes and commits.
A fifth kind, most of what is in use today, runs ``Item.apply`` itself, in one access.

Times in an answer are the store's own, in that very answer: ages and remaining seconds counted from it, never a time of
day. ``granularity`` is how coarse its clock is (HTTP dates: one second); the client takes it off what it believes.
"""

from trinco.core.value import Value
from trinco.leases.item import Item
from trinco.leases.operation import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.leases.row import Named, Row


class Access(Value):
    """One round trip to a store."""

    __slots__ = ()


class Reply(Value):
    """What a store says to one access."""

    __slots__ = ()


class Done(Reply):
    """It is done; there is nothing to tell."""

    __slots__ = ()


# Stores that run code: one access for everything.


class Apply(Access):
    __slots__ = ("operation",)

    def __init__(self, operation: Operation) -> None:
        self.operation = operation


# Object stores and queues


class List(Access):
    __slots__ = ()


class Put(Access):
    """Into an object store, under a name of its own."""

    __slots__ = ("named",)

    def __init__(self, named: "Named") -> None:
        self.named = named


class Append(Access):
    """To a queue. After ``ttl`` seconds the service removes it by itself."""

    __slots__ = ("named", "ttl")

    def __init__(self, named: "Named", ttl: float) -> None:
        self.named = named
        self.ttl = ttl


class Delete(Access):
    """``key``: the name of an object, or the number that a queue gave."""

    __slots__ = ("key",)

    def __init__(self, key: "Any") -> None:
        self.key = key


class Listing(Reply):
    """Everything there is about one lock; a queue's in its order."""

    __slots__ = ("granularity", "rows")

    def __init__(self, rows: "tuple[Row, ...]", granularity: float = 0) -> None:
        self.rows = rows
        self.granularity = granularity


class Appended(Reply):
    __slots__ = ("key",)

    def __init__(self, key: "Any") -> None:
        self.key = key


# Conditional and transactional stores


class Read(Access):
    __slots__ = ()


class CompareAndSet(Access):
    """Write the item if nobody has since that version. Durations in it are counted from the read before."""

    __slots__ = ("item", "version")

    def __init__(self, version: int, item: Item) -> None:
        self.version = version
        self.item = item


class Begin(Access):
    __slots__ = ()


class Write(Access):
    __slots__ = ("item",)

    def __init__(self, item: Item) -> None:
        self.item = item


class CommitTransaction(Access):
    __slots__ = ()


class Abort(Access):
    __slots__ = ()


class Versioned(Reply):
    """``now`` is what the times in the item are compared with: zero where they are durations."""

    __slots__ = ("granularity", "item", "now", "version")

    def __init__(self, item: Item, version: int, now: "Any" = 0, granularity: float = 0) -> None:
        self.item = item
        self.version = version
        self.now = now
        self.granularity = granularity


class Written(Reply):
    """Whether a conditional write or a transaction took effect."""

    __slots__ = ("ok", "version")

    def __init__(self, ok: bool, version: int = 0) -> None:
        self.ok = ok
        self.version = version
