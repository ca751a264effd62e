"""Voting over total order with one rule dropped each, to see that the checker notices."""

from trinco.core.context import WAITING
from trinco.protocols.permission.ordered_voting import Client, Ok, Release, Voter


class DeliversAsItArrives(Voter):
    """Holds nothing back."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        self.deliver(ctx, message.origin, message.body)


class VotesForTheLast(Voter):
    """Serves the newest request first."""

    __slots__ = ()

    def deliver(self, ctx, origin, message):
        if isinstance(message, Release):
            waiting = self.queue[1:]
            self.queue = (*waiting[-1:], *waiting[:-1])
            if self.queue:
                self.vote(ctx)
        else:
            Voter.deliver(self, ctx, origin, message)


class KeepsItsVote(Voter):
    """A release frees nothing but the place in the queue."""

    __slots__ = ()

    def deliver(self, ctx, origin, message):
        if isinstance(message, Release):
            self.queue = self.queue[1:]
        else:
            Voter.deliver(self, ctx, origin, message)


class CountsLateVotes(Client):
    """A vote is a vote, whichever turn it was for."""

    __slots__ = ()

    def counts(self, message):
        return isinstance(message, Ok)


class OneVoteIsEnough(Client):
    """Enters with the first vote for its turn."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if ctx.phase is WAITING and self.counts(message):
            ctx.grant()
