"""Naimi & Trehel with one rule dropped each."""

from trinco.core.context import IDLE, Context
from trinco.core.message import Message
from trinco.protocols.token.naimi_trehel import NaimiTrehel, Request, Token


class StaysTheRoot(NaimiTrehel):
    """A root that puts another behind itself does not take it for its father."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        queues = self.father is None and ctx.phase is not IDLE
        NaimiTrehel.on_message(self, ctx, source, message)
        if isinstance(message, Request) and queues:
            self.father = None


class KeepsItsFather(NaimiTrehel):
    """Asks, and does not become a root by it."""

    __slots__ = ()

    def acquire(self, ctx: Context) -> None:
        father = self.father
        NaimiTrehel.acquire(self, ctx)
        self.father = father


class RemembersItsNext(NaimiTrehel):
    """Sends the token to the same one each time it leaves."""

    __slots__ = ()

    def release(self, ctx: Context) -> None:
        following = self.next
        NaimiTrehel.release(self, ctx)
        self.next = following


class GivesWhatItLacks(NaimiTrehel):
    """A root sends a token at once, whether it has it, needs it, or waits for it."""

    __slots__ = ()

    def serve(self, ctx: Context, request: Request) -> None:
        if self.father is None:
            ctx.send(request.requester, Token())
        else:
            ctx.send(self.father, request)


class ReversesNothing(NaimiTrehel):
    """Passes a request on and keeps its father: only roots get another."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        father = self.father
        NaimiTrehel.on_message(self, ctx, source, message)
        if father is not None:
            self.father = father


def system_of(kind: type[NaimiTrehel], n: int) -> list[NaimiTrehel]:
    return [kind(father=0 if me else None) for me in range(n)]


def reverses_nothing(n: int) -> list[NaimiTrehel]:
    return system_of(ReversesNothing, n)
