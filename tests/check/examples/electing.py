"""The least elections there are, and what else shows how the checker treats timers, restarts and quiet."""

from dataclasses import dataclass
from typing import Any, ClassVar

from trinco.core.context import WAITING, Context
from trinco.core.event import Event, Kind
from trinco.core.message import Message
from trinco.core.monitor import Monitor
from trinco.core.node import Elector, Node, Process


class Claim(Message, tag="claim"):
    pass


class Question(Message, tag="question"):
    pass


class Answer(Message, tag="answer"):
    pass


@dataclass(slots=True)
class Usurper(Elector):
    """Whoever notices leads and tells everybody, which is no election: two that notice tell each other."""

    n: int
    leader: int | None = None
    electing: bool = False

    def elect(self, ctx: Context) -> None:
        self.leader = ctx.me
        ctx.elected(ctx.me)
        ctx.broadcast(Claim(), to=range(self.n))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.leader = source
        ctx.elected(source)


@dataclass(slots=True)
class Doubter(Elector):
    """Asks its peer, follows it if it answers, and leads if no answer has come when its patience is over."""

    peer: int
    patience: float
    leader: int | None = None
    electing: bool = False

    def elect(self, ctx: Context) -> None:
        self.electing = True
        ctx.send(self.peer, Question())
        ctx.set_timer("patience", self.patience)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Question):
            self.leader = ctx.me
            ctx.send(source, Answer())
        else:
            self._follow(ctx, source)

    def on_timer(self, ctx: Context, name: str) -> None:
        self._follow(ctx, ctx.me)

    def _follow(self, ctx: Context, leader: int) -> None:
        self.leader = leader
        self.electing = False
        ctx.cancel_timer("patience")


class Believer(Doubter):
    """Waits for the answer however long it takes."""

    __slots__ = ()

    def elect(self, ctx: Context) -> None:
        Doubter.elect(self, ctx)
        ctx.cancel_timer("patience")


@dataclass(slots=True)
class Alarm(Node):
    delay: float
    rung: bool = False

    def on_start(self, ctx: Context) -> None:
        ctx.set_timer("alarm", self.delay)

    def on_timer(self, ctx: Context, name: str) -> None:
        self.rung = True


@dataclass(slots=True)
class Diarist(Node):
    """Counts the days, writes the number down before it tells the peer, and reads it when it is back."""

    peer: int
    days: int = 0
    read: int | None = None

    def live(self, ctx: Context) -> None:
        self.days += 1
        ctx.store(self.days)
        ctx.send(self.peer, Claim())

    def on_restart(self, ctx: Context, stored: Any) -> None:
        self.read = stored


@dataclass(slots=True)
class Correspondent(Node):
    heard: int = 0

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.heard += 1


@dataclass(slots=True)
class Applicant(Process):
    clerk: int

    def acquire(self, ctx: Context) -> None:
        ctx.send(self.clerk, Question())

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if ctx.phase is WAITING:
            ctx.grant()

    def release(self, ctx: Context) -> None:
        """Leaves."""


@dataclass(slots=True)
class Clerk(Node):
    """Lets in who asks, and whoever may have asked while it was away."""

    applicant: int

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        ctx.send(source, Answer())

    def on_restart(self, ctx: Context, stored: Any) -> None:
        ctx.send(self.applicant, Answer())


@dataclass(slots=True)
class NobodyReturns(Monitor):
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.RESTART})

    def observe(self, event: Event) -> str | None:
        return f"p{event.node} is back"
