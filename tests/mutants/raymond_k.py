"""Raymond 1989 (k entries) with one rule broken each."""

from trinco.protocols.permission.raymond_k import RaymondK, Reply


class TakesOldRepliesForNew(RaymondK):
    """Lets a reply that an earlier request is still owed permit the present one."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Reply):
            message = Reply(self.reply_count[source])
        RaymondK.on_message(self, ctx, source, message)


class AnswersOnce(RaymondK):
    """Holds back several requests of one process, and answers one of them."""

    __slots__ = ()

    def release(self, ctx):
        self.defer_count = tuple(min(count, 1) for count in self.defer_count)
        RaymondK.release(self, ctx)


class EntersTooSoon(RaymondK):
    """Enters with one reply fewer."""

    __slots__ = ()

    def permissions(self):
        return RaymondK.permissions(self) + 1


class WaitsForAll(RaymondK):
    """Ricart and Agrawala's rule: enters with everybody's reply, so a single crash blocks it."""

    __slots__ = ()

    def permissions(self):
        return RaymondK.permissions(self) - (self.k - 1)


class IgnoresTimestamps(RaymondK):
    """Does not move its clock forward: what it asks for later bears an older timestamp than what it has permitted."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        clock = self.clock
        RaymondK.on_message(self, ctx, source, message)
        self.clock = clock


class NeverDefers(RaymondK):
    """Replies even while it is inside."""

    __slots__ = ()

    def must_wait(self, ctx, source, timestamp):
        return False


class DefersWhileItWaits(RaymondK):
    """Lets everybody wait once it has asked itself, older requests too."""

    __slots__ = ()

    def must_wait(self, ctx, source, timestamp):
        return self.timestamp > 0
