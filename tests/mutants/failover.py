"""Coordinator failover and the regenerating ring with one rule dropped each, to see that the checker notices."""

from trinco.core.ids import bit
from trinco.protocols.coordinator_failover import CoordinatorFailover, Request, State
from trinco.protocols.token.regenerating_ring import Have, No, Query, RegeneratingRing, Token


class AwaitsTheDead(CoordinatorFailover):
    """Waits for the state of one that crashed before it could tell it."""

    __slots__ = ()

    def forget(self, dead):
        awaited = self.awaited
        CoordinatorFailover.forget(self, dead)
        self.awaited = awaited


class KeepsTheDeadInLine(CoordinatorFailover):
    """Grants to one that crashed while it was in the queue."""

    __slots__ = ()

    def forget(self, dead):
        queue = self.queue
        CoordinatorFailover.forget(self, dead)
        self.queue = queue


class KeepsTheDeadInside(CoordinatorFailover):
    """Does not take the section back from one that crashed inside."""

    __slots__ = ()

    def forget(self, dead):
        holder = self.holder
        CoordinatorFailover.forget(self, dead)
        self.holder = holder


class HeedsRequestsOfTheDead(CoordinatorFailover):
    """Puts one in line whose request comes after the news of its crash."""

    __slots__ = ()

    def heeds(self, source, message):
        return isinstance(message, Request) or CoordinatorFailover.heeds(self, source, message)


class BelievesAnOutdatedState(CoordinatorFailover):
    """Takes one for the holder whose release overtook the state "entered"."""

    __slots__ = ()

    def hear(self, ctx, source, message):
        if isinstance(message, State):
            self.learn(source, message.phase)
        else:
            CoordinatorFailover.hear(self, ctx, source, message)


class ForgetsTheLine(CoordinatorFailover):
    """Learns who is inside, and not who waits."""

    __slots__ = ()

    def learn(self, source, phase):
        queue = self.queue
        CoordinatorFailover.learn(self, source, phase)
        self.queue = queue


class ForgetsTheHolder(CoordinatorFailover):
    """Learns who waits, and not who is inside."""

    __slots__ = ()

    def learn(self, source, phase):
        holder = self.holder
        CoordinatorFailover.learn(self, source, phase)
        self.holder = holder


class AcceptsOldTokens(RegeneratingRing):
    """Does not look at a token's epoch."""

    __slots__ = ()

    def hear(self, ctx, source, message):
        if isinstance(message, Token):
            self.token = self.epoch
        else:
            RegeneratingRing.hear(self, ctx, source, message)


class DropsEarlyTokens(RegeneratingRing):
    """Takes a token that comes before the question of its epoch for an invalid one."""

    __slots__ = ()

    def hear(self, ctx, source, message):
        if not isinstance(message, Token) or message.epoch == self.epoch:
            RegeneratingRing.hear(self, ctx, source, message)


class UsesEarlyTokens(RegeneratingRing):
    """Passes a token on before it was asked, and so before it knows who is dead."""

    __slots__ = ()

    def hear(self, ctx, source, message):
        if isinstance(message, Token) and message.epoch > self.epoch:
            self.epoch = message.epoch
        if isinstance(message, Query) and message.epoch == self.epoch:
            self.answer(ctx, source, message)
        else:
            RegeneratingRing.hear(self, ctx, source, message)


class SetsTokensBack(RegeneratingRing):
    """Brings every token to the epoch it is asked about, though it may be of a later one already."""

    __slots__ = ()

    def move_to(self, epoch):
        self.token = epoch if self.token is not None else None
        return RegeneratingRing.move_to(self, epoch)


class CountsOldAnswers(RegeneratingRing):
    """Does not look at the epoch of an answer."""

    __slots__ = ()

    def hear(self, ctx, source, message):
        if not isinstance(message, Have | No):
            RegeneratingRing.hear(self, ctx, source, message)
        elif self.awaited & bit(source):
            self.collect(source, isinstance(message, Have))


class NeverAsks(RegeneratingRing):
    """The plain token ring that only skips the dead."""

    __slots__ = ()

    def crash_noticed(self, ctx, dead):
        pass


class CountsFirst(RegeneratingRing):
    """Compares epochs by counter first, then by coordinator."""

    __slots__ = ()

    def next_epoch(self):
        return self.epoch[0] + 1, self.me
