"""How a server of the bakery can lie: subclasses of the honest one. Up to f of these, in any mix, must be survived.

A liar has what it was given and its own signature, nothing else. Most of them do as an honest server does and then
change what it was about to say: ``Tap`` holds that back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trinco.core.authentication import Authenticator
from trinco.core.context import Context
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.signed import Signed
from trinco.protocols.bakery.automaton import State
from trinco.protocols.bakery.certificates import Highest, Suspicion, Ticket, Vote
from trinco.protocols.bakery.freshness import time_of_issue
from trinco.protocols.bakery.messages import (
    Certificate,
    Certified,
    Certify,
    Get,
    GetReply,
    Go,
    Listen,
    Removal,
    Removed,
    Set,
    SetReply,
    Suspect,
    Wait,
)
from trinco.protocols.bakery.muteness import arm
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.turns import Turn, turn_of

HUGE = 10**12
MEMORY = 6
"""How many messages a liar keeps to say them again."""


class Tap(Context):
    """The world of an honest handler whose messages a liar holds back, to do with them as it likes."""

    __slots__ = ("_world", "me", "phase", "said")

    def __init__(self, world: Context) -> None:
        self._world = world
        self.me, self.phase = world.me, world.phase
        self.said: list[tuple[int, Message]] = []

    def send(self, to: int, message: Message) -> None:
        self.said.append((to, message))

    def set_timer(self, name: str, delay: float) -> None:
        self._world.set_timer(name, delay)

    def cancel_timer(self, name: str) -> None:
        self._world.cancel_timer(name)

    def choose(self, options: int) -> int:
        return self._world.choose(options)

    def now(self) -> Instant:
        return self._world.now()

    def wall_clock(self) -> int:
        return self._world.wall_clock()

    def store(self, value: Any) -> None:
        self._world.store(value)

    @property
    def authenticator(self) -> Authenticator:
        return self._world.authenticator


def highest_is(ctx: Context, server: Server, client: int, sid: int, number: int) -> Signed:
    """An answer to GET that is fresh, and says what the liar likes."""
    issued = time_of_issue(ctx, server.timing.expiry)
    return ctx.sign(Highest(server.judge.lock, client, sid, number, issued))


class Mute(Server):
    """Never says anything."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        pass


class GrantAll(Server):
    """Lets everybody in at once, whatever they bring: nobody is ever in the way, and no ticket is higher than 0."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        lock = self.judge.lock
        match message:
            case Get(sid=sid):
                ctx.send(source, GetReply(sid, highest_is(ctx, self, source, sid, 0), ()))
            case Set(sid=sid, number=number):
                vote = ctx.sign(Vote(lock, source, sid, number, 0))
                ctx.send(source, SetReply(sid, ctx.sign(Ticket(lock, number)), vote))
            case Listen(sid=sid, certificate=(Signed(body=Ticket(number=number)), *_), heartbeat=heartbeat):
                ctx.send(source, Go(sid, ctx.sign(Vote(lock, source, sid, number, heartbeat))))


class AnyOf(Server):
    """Each time anew: lets in, follows the protocol, or keeps silent. What the checker branches on."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        way = (GrantAll, Server, Mute)[ctx.choose(3)]
        way.on_message(self, ctx, source, message)


class Tapped(Server):
    """Honest, were it not for what becomes of its messages."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.step(ctx, Server.on_message, source, message)

    def on_timer(self, ctx: Context, name: str) -> None:
        self.step(ctx, Server.on_timer, name)

    def step(self, ctx: Context, handler: Callable[..., None], *arguments: Any) -> None:
        tap = Tap(ctx)
        handler(self, tap, *arguments)
        for to, message in tap.said:
            self.say(ctx, to, message)

    def say(self, ctx: Context, to: int, message: Message) -> None:
        """What an honest server would send now."""
        ctx.send(to, message)


@dataclass(slots=True)
class Equivocate(Tapped):
    """Tells every second client that it may enter, and each another highest ticket, out of those it can prove."""

    proofs: tuple[tuple[int, Certificate], ...] = ((0, ()),)
    """(number, certificate) of tickets."""

    def say(self, ctx: Context, to: int, message: Message) -> None:
        self._learn()
        match message:
            case GetReply(sid=sid):
                number, certificate = self.proofs[ctx.choose(len(self.proofs))]
                ctx.send(to, GetReply(sid, highest_is(ctx, self, to, sid, number), certificate))
            case SetReply(sid=sid, ticket=ticket) if to % 2:
                vote = Vote(self.judge.lock, to, sid, ticket.body.number, 0)
                ctx.send(to, SetReply(sid, ticket, ctx.sign(vote)))
            case Wait(sid=sid) if to % 2:
                turn = turn_of(self.turns, to)
                if turn:
                    ctx.send(to, Go(sid, ctx.sign(Vote(self.judge.lock, to, sid, turn.number, turn.heartbeat))))
            case _:
                ctx.send(to, message)

    def _learn(self) -> None:
        known = dict(self.proofs) | {self.tickets.certified: self.tickets.certificate}
        self.proofs = tuple(sorted(known.items()))[-MEMORY:]


@dataclass(slots=True)
class Replay(Tapped):
    """Says what it has said before as often as what is true now, and to whom it likes; old certificates, too."""

    past: tuple[Message, ...] = ()

    def say(self, ctx: Context, to: int, message: Message) -> None:
        self.past = (*self.past, message)[-MEMORY:]
        if ctx.choose(2):
            ctx.send(to, message)
        if ctx.choose(2):
            ctx.send(to, self.past[ctx.choose(len(self.past))])


class Inflate(Tapped):
    """Reports tickets of 10^12 with whatever certificate it has, and signs every ticket that it is asked to sign."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        lock = self.judge.lock
        match message:
            case Certify(number=number):
                ctx.send(source, Certified(ctx.sign(Ticket(lock, number))))
                ctx.send(source, Certified(ctx.sign(Ticket(lock, HUGE))))
            case Set(sid=sid, number=number) if not turn_of(self.turns, source):
                ctx.send(source, SetReply(sid, ctx.sign(Ticket(lock, number)), None))
            case _:
                Tapped.on_message(self, ctx, source, message)

    def say(self, ctx: Context, to: int, message: Message) -> None:
        if isinstance(message, GetReply):
            highest = highest_is(ctx, self, to, message.sid, HUGE)
            mine = ctx.sign(Ticket(self.judge.lock, HUGE))
            message = GetReply(message.sid, highest, (*message.certificate, mine))
        ctx.send(to, message)


class LieActive(Server):
    """Lies about who is there: for every second turn nobody is, for the others somebody is always in the way."""

    __slots__ = ()

    def is_free(self, turn: Turn) -> bool:
        return (turn.client + turn.sid) % 2 == 0


@dataclass(slots=True)
class Delay(Tapped):
    """Honest, but so late that its votes have ended when they arrive."""

    pending: tuple[tuple[int, Message], ...] = ()
    sent: int = 0

    def say(self, ctx: Context, to: int, message: Message) -> None:
        self.pending = (*self.pending, (to, message))
        arm(ctx, f"late/{self.sent + len(self.pending)}", self.timing.hold + self.timing.heartbeat)

    def on_timer(self, ctx: Context, name: str) -> None:
        if not name.startswith("late/"):
            Tapped.on_timer(self, ctx, name)
            return
        (to, message), *rest = self.pending
        self.pending, self.sent = tuple(rest), self.sent + 1
        ctx.send(to, message)


class DropByClient(Server):
    """Serves the odd clients, and does not hear the even ones."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if source % 2 or source in self.judge.servers:
            Server.on_message(self, ctx, source, message)


class SuspectAll(Server):
    """Suspects every turn that it sees, whatever its client does, and tells the client that it was removed."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        Server.on_message(self, ctx, source, message)
        turn = turn_of(self.turns, source)
        if isinstance(message, Get | Set | Listen) and turn and turn.sid == message.sid:
            if not isinstance(message, Listen) or message.heartbeat == 1:
                ctx.broadcast(self.muteness.suspect(ctx, turn.signed), to=self.judge.servers)
            ctx.send(source, Removed(turn.sid, ()))


class Malformed(Tapped):
    """Signs nonsense: bodies of the wrong kind or with the wrong things inside, no certificates, negative numbers."""

    __slots__ = ()

    def say(self, ctx: Context, to: int, message: Message) -> None:
        nonsense = ctx.sign(self._nonsense(ctx, to, getattr(message, "sid", 0)))
        several = (nonsense,) * ctx.choose(4)
        sid = (-1, 0, 1, HUGE, getattr(message, "sid", 1))[ctx.choose(5)]
        to_client: tuple[Message, ...] = (
            GetReply(sid, nonsense, several),
            SetReply(sid, nonsense, nonsense),
            Go(sid, nonsense),
            Removed(sid, several),
            Get(sid, nonsense),
        )
        reply = GetReply(sid, nonsense, several)
        to_server: tuple[Message, ...] = (
            Certify(sid, (reply,) * ctx.choose(4), nonsense),
            Certified(nonsense),
            Suspect(nonsense, nonsense, asks=True),
            Removal(to, sid, several),
            Set(sid, sid, (reply,)),
        )
        choices = to_server if to in self.judge.servers else to_client
        ctx.send(to, choices[ctx.choose(len(choices))])
        if ctx.choose(2):
            ctx.send(to, message)

    def _nonsense(self, ctx: Context, to: int, sid: int) -> Any:
        lock = self.judge.lock
        wrong: tuple[Any, ...] = (None, "7", (), -1, 1.5, State.C, Suspicion(lock, to, sid))
        value = wrong[ctx.choose(len(wrong))]
        return (
            value,
            Highest(lock, to, sid, value),
            Highest(lock, to, sid, 0, value),
            Ticket(lock, value),
            Vote(lock, to, sid, value, value),
            Vote(lock, to, sid, 1, value),
            Suspicion(lock, value, sid),
            Suspicion(lock, to, value),
        )[ctx.choose(8)]
