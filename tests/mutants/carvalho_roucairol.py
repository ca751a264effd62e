"""Carvalho & Roucairol 1983 with one rule broken each."""

from trinco.core.context import IDLE, INSIDE, WAITING
from trinco.core.ids import NOBODY
from trinco.protocols.permission.carvalho_roucairol import CarvalhoRoucairol


class KeepsWhatItHolds(CarvalhoRoucairol):
    """Waiting, gives up nothing, not even to an older request: permissions can be held in a circle."""

    __slots__ = ()

    def must_wait(self, ctx, source, timestamp):
        return ctx.phase is not IDLE


class GivesToEverybody(CarvalhoRoucairol):
    """Waiting, gives up whatever is asked for, to younger requests too: the polite pass it to and fro."""

    __slots__ = ()

    def must_wait(self, ctx, source, timestamp):
        return ctx.phase is INSIDE


class GivesWhileInside(CarvalhoRoucairol):
    __slots__ = ()

    def must_wait(self, ctx, source, timestamp):
        return ctx.phase is WAITING and CarvalhoRoucairol.must_wait(self, ctx, source, timestamp)


class NoTieBreak(CarvalhoRoucairol):
    """Gives way to none of the same time: three that ask together can wait for each other in a circle."""

    __slots__ = ()

    def must_wait(self, ctx, source, timestamp):
        return ctx.phase is INSIDE or (ctx.phase is WAITING and self.timestamp <= timestamp)


class KeepsACopy(CarvalhoRoucairol):
    """Hands its permission over and goes on as if it had not."""

    __slots__ = ()

    def give_up(self, ctx, permissions):
        CarvalhoRoucairol.give_up(self, ctx, permissions)
        self.permissions |= permissions


class ForgetsWhoAsked(CarvalhoRoucairol):
    """Loses the requests that it could not grant at once."""

    __slots__ = ()

    def release(self, ctx):
        self.deferred = NOBODY
        CarvalhoRoucairol.release(self, ctx)


class IgnoresStamps(CarvalhoRoucairol):
    """Does not move its clock forward: its next request is older than one that it has granted, and if it overtakes
    that reply, it is granted by a process that has nothing to give."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        clock = self.clock
        CarvalhoRoucairol.on_message(self, ctx, source, message)
        self.clock = clock
