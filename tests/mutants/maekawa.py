"""Maekawa 1985 with one rule broken each."""

from trinco.core.context import INSIDE
from trinco.core.ids import bit
from trinco.protocols.permission.maekawa import Inquire, Maekawa, Relinquish


class NeverFails(Maekawa):
    """Leaves those it makes wait without an answer: they give nothing back."""

    __slots__ = ()

    def fail(self, ctx, request):
        pass


class ForgetsWhatItGaveBack(Maekawa):
    """Takes only a FAILED for a failure, not a lock that it gave back itself."""

    __slots__ = ()

    def give_back(self, ctx, locks):
        failed = self.failed
        Maekawa.give_back(self, ctx, locks)
        self.failed = failed


class GivesBackWhatItLacks(Maekawa):
    """Answers an INQUIRE that has overtaken its LOCKED; the LOCKED then counts all the same."""

    __slots__ = ()

    def give_back(self, ctx, locks):
        Maekawa.give_back(self, ctx, self.inquired)


class DropsEarlyInquiries(Maekawa):
    """Takes an INQUIRE about a lock that it does not have for a late one."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if not isinstance(message, Inquire) or self.locked & bit(source):
            Maekawa.on_message(self, ctx, source, message)


class GivesBackInside(Maekawa):
    """Answers an INQUIRE while it is inside."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Inquire) and ctx.phase is INSIDE:
            self._send(ctx, source, Relinquish())
        else:
            Maekawa.on_message(self, ctx, source, message)


class QueuesByArrival(Maekawa):
    """Serves its queue first come, first served."""

    __slots__ = ()

    def queue(self, request):
        self.waiting = (*self.waiting, request)


class ForgetsWhoGaveBack(Maekawa):
    """Does not queue the request again whose process gave the lock back."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Relinquish):
            self.lock_for_the_first(ctx)
        else:
            Maekawa.on_message(self, ctx, source, message)


class LocksForEverybody(Maekawa):
    """Is locked for several requests at once."""

    __slots__ = ()

    def consider(self, ctx, request):
        self.locking = None
        Maekawa.consider(self, ctx, request)
