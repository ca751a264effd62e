"""Raymond's tree with one rule dropped each."""

from trinco.core.context import Context
from trinco.core.message import Message
from trinco.protocols.token.raymond_tree import PARENTS, Privilege, RaymondTree, Request


class NeverAsksBack(RaymondTree):
    """Passes the privilege on and does not ask for it again, though others wait here."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Privilege):
            self.holder = ctx.me
            self.assign_privilege(ctx)
        else:
            RaymondTree.on_message(self, ctx, source, message)

    def release(self, ctx: Context) -> None:
        self.assign_privilege(ctx)


class StaysAsked(RaymondTree):
    """Never forgets that it asked, not even when it was answered."""

    __slots__ = ()

    def assign_privilege(self, ctx: Context) -> None:
        asked = self.asked
        RaymondTree.assign_privilege(self, ctx)
        self.asked = asked


class ForgetsThatItAsked(RaymondTree):
    """Asks once more whenever anything happens."""

    __slots__ = ()

    def make_request(self, ctx: Context) -> None:
        self.asked = False
        RaymondTree.make_request(self, ctx)


class GivesItAwayWhileInside(RaymondTree):
    """Sends the privilege to whoever asks first, in use or not."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Request) and self.holder == ctx.me:
            self.holder = source
            ctx.send(source, Privilege())
        else:
            RaymondTree.on_message(self, ctx, source, message)


class ServesTheLast(RaymondTree):
    """Puts whoever asks at the head of its queue."""

    __slots__ = ()

    def enqueue(self, node: int) -> None:
        self.queue = (node, *self.queue)


def system_of(kind: type[RaymondTree], tree: str, n: int) -> list[RaymondTree]:
    return [kind(holder=PARENTS[tree](me) if me else 0) for me in range(n)]
