"""The tree with one rule dropped each, to see that the checker notices."""

from trinco.core.ids import NOBODY
from trinco.protocols.broadcast.spanning_tree import Ack, SpanningTree


class JudgesByForwarder(SpanningTree):
    """Remembers the last message of whoever passed one on, not of its root (F3 of the specification)."""

    __slots__ = ()

    def first_heard(self, source, message):
        by_forwarder = message.root * 100 + message.number
        if by_forwarder == self.heard[source]:
            return False
        self.heard = (*self.heard[:source], by_forwarder, *self.heard[source + 1 :])
        return True


class TakesDifferentForNew(SpanningTree):
    """Remembers the last message of a root, and takes for new whatever is not that one (F4)."""

    __slots__ = ()

    def first_heard(self, source, message):
        root = message.root
        if message.number == self.heard[root]:
            return False
        self.heard = (*self.heard[:root], message.number, *self.heard[root + 1 :])
        return True


class CountsOldAcks(SpanningTree):
    """Takes the acknowledgement of an earlier message for that of the present one."""

    __slots__ = ()

    def on_message(self, ctx, source, message, suspects):
        if isinstance(message, Ack):
            message = Ack(self.number)
        return SpanningTree.on_message(self, ctx, source, message, suspects)


class DoesNotWait(SpanningTree):
    """Tells the next before all have acknowledged the last."""

    __slots__ = ()

    def broadcast(self, ctx, body, suspects):
        self.awaited = NOBODY
        SpanningTree.broadcast(self, ctx, body, suspects)


class AwaitsTheDead(SpanningTree):
    """Looks at the suspects when it starts to tell something, and not again."""

    __slots__ = ()

    def forget(self, ctx, crashed, suspects):
        pass


class CountsDownFirst(SpanningTree):
    """Passes a message on if hops > 1 *after* counting down, as the prose has it (P3): never to a cluster of one."""

    __slots__ = ()

    def _send_to_cluster(self, ctx, s, message, suspects):
        if s > 1 or message.root == self.me:
            SpanningTree._send_to_cluster(self, ctx, s, message, suspects)
