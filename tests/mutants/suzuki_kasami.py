"""Suzuki & Kasami with one rule dropped each."""

from trinco.core.context import Context
from trinco.core.message import Message
from trinco.protocols.token.suzuki_kasami import Privilege, Request, SuzukiKasami


class ServesTheOutdated(SuzukiKasami):
    """Passes the privilege on for every request it gets or remembers, served or not."""

    __slots__ = ()

    def is_unserved(self, privilege: Privilege, node: int) -> bool:
        return self.requested[node] > 0


class QueuesTwice(SuzukiKasami):
    """Appends the unserved without looking whether they stand in the queue."""

    __slots__ = ()

    def queue_of(self, privilege: Privilege) -> tuple[int, ...]:
        return privilege.queue + tuple(node for node in range(self.n) if self.is_unserved(privilege, node))


class TakesTheLastForTheNewest(SuzukiKasami):
    """Keeps the number that came last, not the largest."""

    __slots__ = ()

    def note(self, source: int, number: int) -> None:
        self.requested = (*self.requested[:source], number, *self.requested[source + 1 :])


class DoesNotSayThatItWasServed(SuzukiKasami):
    """Leaves without writing its request's number into the privilege."""

    __slots__ = ()

    def release(self, ctx: Context) -> None:
        assert self.privilege is not None
        queue, served = self.queue_of(self.privilege), self.privilege.served
        if queue:
            self.privilege = None
            ctx.send(queue[0], Privilege(queue[1:], served))


class GivesItAwayWhileInside(SuzukiKasami):
    """Sends the privilege to whoever asks for it, needed or not."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        SuzukiKasami.on_message(self, ctx, source, message)
        if isinstance(message, Request) and self.privilege and self.is_unserved(self.privilege, source):
            privilege, self.privilege = self.privilege, None
            ctx.send(source, privilege)

    def release(self, ctx: Context) -> None:
        if self.privilege:
            SuzukiKasami.release(self, ctx)


class TearsUpTheQueue(SuzukiKasami):
    """Serves the smallest id that waits; who else waited is not written down."""

    __slots__ = ()

    def queue_of(self, privilege: Privilege) -> tuple[int, ...]:
        return SuzukiKasami.queue_of(self, privilege)[:1]


def system_of(kind: type[SuzukiKasami], n: int) -> list[SuzukiKasami]:
    nothing = (0,) * n
    return [kind(me, n, nothing, Privilege((), nothing) if me == 0 else None) for me in range(n)]


def tears_up_the_queue(n: int) -> list[SuzukiKasami]:
    return system_of(TearsUpTheQueue, n)
