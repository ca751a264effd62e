"""Ricart & Agrawala with one thing broken each, to see that the monitors notice."""

from trinco.core.context import WAITING
from trinco.core.message import Message
from trinco.protocols.permission.ricart_agrawala import Request, RicartAgrawala


class Aside(Message, tag="aside"):
    """Means nothing to anybody."""


class NeverDefers(RicartAgrawala):
    """Says OK even while inside: two get in."""

    __slots__ = ()

    def must_wait(self, ctx, source, timestamp):
        return False


class AlwaysDefers(RicartAgrawala):
    """Whoever has asked makes everybody wait: two that ask together wait for each other."""

    __slots__ = ()

    def must_wait(self, ctx, source, timestamp):
        return ctx.phase is WAITING or RicartAgrawala.must_wait(self, ctx, source, timestamp)


class EntersUnasked(RicartAgrawala):
    """Takes another's request for an invitation."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Request):
            ctx.grant()
        else:
            RicartAgrawala.on_message(self, ctx, source, message)


class Chatters(RicartAgrawala):
    """Sends a message too many with each request."""

    __slots__ = ()

    def acquire(self, ctx):
        RicartAgrawala.acquire(self, ctx)
        ctx.send((self.me + 1) % self.n, Aside())


def never_defers(n):
    return [NeverDefers(me, n) for me in range(n)]


def always_defers(n):
    return [AlwaysDefers(me, n) for me in range(n)]


def enters_unasked(n):
    return [EntersUnasked(me, n) for me in range(n)]


def chatters(n):
    return [Chatters(me, n) for me in range(n)]
