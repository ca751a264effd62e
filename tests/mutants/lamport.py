"""Lamport 1978 with one rule broken each."""

from dataclasses import dataclass

from trinco.core.context import INSIDE, WAITING
from trinco.core.ids import NOBODY, bit
from trinco.protocols.permission.lamport import Acknowledge, Lamport, Release, Request


class EntersUnanswered(Lamport):
    """Enters as soon as its request stands first, acknowledged or not."""

    __slots__ = ()

    def _enter_when_first(self, ctx):
        if ctx.phase is WAITING and self.queue[0][1] == self.me:
            ctx.grant()


class EntersOutOfTurn(Lamport):
    """Enters as soon as all have acknowledged, wherever its request stands."""

    __slots__ = ()

    def _enter_when_first(self, ctx):
        if ctx.phase is WAITING and self.awaited == 0:
            ctx.grant()


class IgnoresStamps(Lamport):
    """Does not move its clock forward: what it asks for later bears an older stamp than what it has acknowledged."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        clock = self.clock
        Lamport.on_message(self, ctx, source, message)
        self.clock = clock


class HeedsOnlyRequests(Lamport):
    """Moves its clock forward for requests, and for no other message: safe, but requests get out of order."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        clock = self.clock
        Lamport.on_message(self, ctx, source, message)
        if not isinstance(message, Request):
            self.clock = clock


class NoTieBreak(Lamport):
    """Requests of the same time stand in the order in which they came."""

    __slots__ = ()

    def _enqueue(self, timestamp, process):
        self.queue = tuple(sorted((*self.queue, (timestamp, process)), key=lambda queued: queued[0]))


class AcknowledgesOnlyWhenIdle(Lamport):
    """Whoever waits or is inside acknowledges nothing."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Request) and ctx.phase in (WAITING, INSIDE):
            self.clock = max(self.clock, message.timestamp)
            self._enqueue(message.timestamp, source)
        else:
            Lamport.on_message(self, ctx, source, message)


class KeepsDeadRequests(Lamport):
    """Does not remove the request of one that left."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if not isinstance(message, Release):
            Lamport.on_message(self, ctx, source, message)


@dataclass(slots=True)
class TakesLaterRequestsForAnswers(Lamport):
    """Takes later requests for answers, as rule 5 says, and acknowledgements whatever they are for: one that comes
    late, since a later request stood in for it, answers the next request too."""

    answered: int = NOBODY

    def acquire(self, ctx):
        self.answered = NOBODY
        Lamport.acquire(self, ctx)

    def on_message(self, ctx, source, message):
        if isinstance(message, Acknowledge) or self._is_later(ctx, source, message):
            self.answered |= bit(source)
        Lamport.on_message(self, ctx, source, message)

    def _is_later(self, ctx, source, message):
        if ctx.phase is not WAITING or not isinstance(message, Request):
            return False
        ours = next(queued for queued in self.queue if queued[1] == self.me)
        return ours < (message.timestamp, source)

    def _enter_when_first(self, ctx):
        self.awaited = self.n - 1 - self.answered.bit_count()
        Lamport._enter_when_first(self, ctx)


def heeding_only_requests(n):
    return [HeedsOnlyRequests(me, n) for me in range(n)]
