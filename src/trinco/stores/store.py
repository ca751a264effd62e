"""What every store is to the locks: a place to connect to, and a link that carries accesses out.

A store file holds the vendor's primitives, the store's clock and its errors; no policy, no retry, no waiting. Whoever
drives a link (a blocking loop, an event loop) is elsewhere, so a link never blocks for long: a store that lives in this
process or on this host answers an access at once, any other is sent the access and gives the answer when its file
descriptor becomes readable.

    link = store.connect(address)
    reply = link.send("nightly", Apply(request))       # a reply, or None: it will come
    ...                                                # wait until link.fileno() is readable
    for arrived in link.receive(): ...                 # replies in the order of the accesses, and what is said unasked
"""

from trinco.core.value import Value
from trinco.leases.accesses import Access, Apply, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from trinco.leases.operation import Answer, Handed, Operation

    Replied: TypeAlias = "Reply | Answer"
    Said: TypeAlias = "Hint | Handed"
    """What comes without having been asked for."""

NO_DESCRIPTOR = -1
EXHAUSTED = "the lock's token cannot grow any more: take another name"


def is_of_the_system(error: OSError) -> bool:
    """Whether the system has said it: then it has a number. What has none is out of the handler of a signal (a time-out
    is an ``OSError``, too), and it is for whoever was interrupted."""
    return error.errno is not None


class Failed(Reply):
    """The store was reached and could not do it; ``reason`` is one line for people. The access may have been carried
    out all the same unless it says that it was not."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class StaysOut(Failed):
    """The store works, and may have forgotten who holds what: it says nothing for so many ``seconds`` more."""

    __slots__ = ("seconds",)

    def __init__(self, reason: str, seconds: float) -> None:
        self.reason = reason
        self.seconds = seconds


class Hint(Value):
    """Something changed that this waiter may want to know: it should ask again. Nothing more is promised, and a lost
    hint costs one poll."""

    __slots__ = ("owner",)

    def __init__(self, owner: str) -> None:
        self.owner = owner


class Store:
    """``url``: for people, without passwords. ``kind``: the base algorithm that its accesses are made for, by its name
    in ``leases.bases.catalogue``. ``domain``: what fails together (two stores of a quorum should not share one).
    ``local``: whether only processes of this host can reach it, so that its clock is ours."""

    __slots__ = ("domain", "kind", "local", "t_max", "url")

    def __init__(self, url: str, kind: str, domain: str, *, local: bool, t_max: float) -> None:
        self.url = url
        self.kind = kind
        self.domain = domain
        self.local = local
        self.t_max = t_max

    def connect(self, address: str, timeout: float = 5.0) -> "Link":
        """A new link; may block for ``timeout`` seconds. ``address``: where to send hints for our owners (see
        ``leases.owner``). Raises ``StoreUnavailable``, which names the store and what to do."""
        raise NotImplementedError


class Link:
    """One connection to one store, used by one thread at a time. Any call may raise ``StoreUnavailable``: then the link
    is dead, what was under way has failed (and may have been carried out), and only ``close`` makes sense."""

    __slots__ = ()

    def send(self, resource: str, access: Access) -> "Replied | None":
        """Carry an access out, or begin to; None if the reply is still to come."""
        raise NotImplementedError

    def apply(self, resource: str, operation: "Operation") -> "Replied | None":
        """The same for an operation, where the store runs code. A link may take a shorter way."""
        return self.send(resource, Apply(operation))

    def fileno(self) -> int:
        """What becomes readable when ``receive`` has something to give; ``NO_DESCRIPTOR`` if nothing ever comes
        later."""
        return NO_DESCRIPTOR

    def receive(self) -> "list[Replied | Said]":
        """What has arrived, without blocking."""
        return []

    def expect_hints(self, owner: str) -> None:
        """This owner begins to wait: from now on hints for it are wanted."""

    def ignore_hints(self, owner: str) -> None:
        """This owner no longer waits."""

    def names(self, prefix: str = "") -> "Iterator[str]":
        """The resources that the store has something about, in order. Blocks."""
        raise NotImplementedError

    def disown(self) -> None:
        """In a forked child, if nobody was in the middle of using it: let go of what stands in the child's way, without
        a word to the store, since the link is the parent's."""

    def close(self) -> None:
        """Idempotent; never raises."""
