"""Dining philosophers with one rule changed each, to see that the checker notices."""

from trinco.core.context import INSIDE, WAITING
from trinco.core.ids import NOBODY, bit
from trinco.protocols.permission.chandy_misra import Philosopher, Philosophers, Request


class KeepsDirtyForks(Philosopher):
    """Hungry, gives up no fork at all: nobody has precedence, and forks can be held in a circle."""

    __slots__ = ()

    def forks_to_give_up(self, ctx):
        return NOBODY if ctx.phase is WAITING else Philosopher.forks_to_give_up(self, ctx)


class GivesUpCleanForks(Philosopher):
    """Hungry, gives up whatever is asked for: forks go round among the polite and nobody has all of them."""

    __slots__ = ()

    def forks_to_give_up(self, ctx):
        return NOBODY if ctx.phase is INSIDE else self.forks & self.request_tokens


class GivesUpForksWhileEating(Philosopher):
    __slots__ = ()

    def forks_to_give_up(self, ctx):
        return self.dirty & self.request_tokens


class LeavesForksClean(Philosopher):
    """Eating does not make its forks dirty, so it keeps them for good."""

    __slots__ = ()

    def eat_with_all_forks(self, ctx):
        Philosopher.eat_with_all_forks(self, ctx)
        if ctx.phase is INSIDE:
            self.dirty = NOBODY


class DoesNotAskBack(Philosopher):
    """Asks when it gets hungry, for all that is missing, and not for a fork that it gives up later."""

    __slots__ = ()

    def ask_for(self, ctx, missing):
        if missing == self.neighbours & ~self.forks:
            Philosopher.ask_for(self, ctx, missing)


class ForgetsWhoAsked(Philosopher):
    """Loses a request that it cannot serve at once."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        Philosopher.on_message(self, ctx, source, message)
        if isinstance(message, Request) and self.forks & bit(source):
            self.request_tokens &= ~bit(source)


class AsksAsPrinted(Philosopher):
    """R1 to the letter: whenever it is hungry, has the request token and lacks the fork."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        Philosopher.on_message(self, ctx, source, message)
        if ctx.phase is WAITING:
            self.ask_for(ctx, self.request_tokens & ~self.forks)


def all_of(kind, n, graph="complete"):
    return [kind.in_place_of(philosopher) for philosopher in Philosophers(graph)(n)]


def asking_as_printed(n):
    return all_of(AsksAsPrinted, n)


def with_clean_forks(n):
    """Forks are where they should be at the start, but clean: nobody has eaten, so nobody need give them up."""
    return [
        Philosopher(honest.neighbours, forks=honest.forks, dirty=NOBODY, request_tokens=honest.request_tokens)
        for honest in Philosophers()(n)
    ]
