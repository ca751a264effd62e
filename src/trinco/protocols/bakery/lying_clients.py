"""How a client of the bakery can lie: subclasses of the honest one. Any number of these must be survived.

Nobody asks a liar to enter, so it has a timer of its own: from the start on it begins a turn, ends it, begins the next,
at a pace that it draws, so many times. What it believes about being inside is its own concern.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import msgspec

from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.protocols.bakery.certificates import Begun
from trinco.protocols.bakery.client import Access, Client
from trinco.protocols.bakery.lying_servers import HUGE, MEMORY, Tap
from trinco.protocols.bakery.messages import Exit, Get, GetReply, Listen, Set
from trinco.protocols.bakery.muteness import arm

change = msgspec.structs.replace


@dataclass(slots=True)
class LyingClient(Client):
    """Does as an honest client does, by itself."""

    most: ClassVar[int] = 40
    """How often it begins, so that every run ends."""
    begun: int = 0

    def on_start(self, ctx: Context) -> None:
        self.pause(ctx)

    def pause(self, ctx: Context) -> None:
        """Until the next move: an eighth of a heartbeat to two."""
        arm(ctx, "lie", self.timing.heartbeat * (1 + ctx.choose(16)) / 8)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.step(ctx, Client.on_message, source, message)

    def on_timer(self, ctx: Context, name: str) -> None:
        if name == "lie":
            self.move(ctx)
        else:
            self.step(ctx, Client.on_timer, name)

    def step(self, ctx: Context, handler: Callable[..., None], *arguments: Any) -> None:
        tap = Tap(ctx)
        handler(self, tap, *arguments)
        for to, message in tap.said:
            self.say(ctx, to, message)

    def say(self, ctx: Context, to: int, message: Message) -> None:
        """What an honest client would send now."""
        ctx.send(to, message)

    def move(self, ctx: Context) -> None:
        if self.access is not Access.NONE:
            self.end(ctx)
        elif self.begun < self.most:
            self.begun += 1
            self.begin(ctx)
        if self.begun < self.most or self.access is not Access.NONE:
            self.pause(ctx)

    def begin(self, ctx: Context) -> None:
        self.replies = ()
        self.step(ctx, Client.acquire)

    def end(self, ctx: Context) -> None:
        self.step(ctx, Client.release)

    def _enter(self, ctx: Context, until: Instant) -> None:
        self.until = until

    def _count_the_living(self, ctx: Context) -> None:
        """A liar has time."""

    def give_up(self, ctx: Context) -> None:
        """Called within a step."""
        self.release(ctx)


class SkipExit(LyingClient):
    """Never says that it leaves."""

    __slots__ = ()

    def say(self, ctx: Context, to: int, message: Message) -> None:
        if not isinstance(message, Exit):
            ctx.send(to, message)


class NoJustification(LyingClient):
    """Sets its ticket without showing where it has it from."""

    __slots__ = ()

    def say(self, ctx: Context, to: int, message: Message) -> None:
        ctx.send(to, change(message, justification=()) if isinstance(message, Set) else message)


@dataclass(slots=True)
class ForgedJustification(LyingClient):
    """Justifies its ticket by answers of an earlier turn, one answer twice, too few answers, or for another number."""

    earlier: tuple[GetReply, ...] = ()

    def say(self, ctx: Context, to: int, message: Message) -> None:
        if isinstance(message, Set):
            true, old = message.justification, self.earlier or message.justification[1:]
            ways = (
                change(message, justification=old),
                change(message, justification=(*true[:-1], true[0])),
                change(message, justification=true[:-1]),
                change(message, number=message.number + 1),
            )
            self.earlier = true
            message = ways[ctx.choose(4)]
        ctx.send(to, message)


class LowTicket(LyingClient):
    """Takes ticket 1, whatever the answers say."""

    __slots__ = ()

    def say(self, ctx: Context, to: int, message: Message) -> None:
        ctx.send(to, change(message, number=1) if isinstance(message, Set) else message)


class HugeTicket(LyingClient):
    """Takes ticket 10^12, whatever the answers say."""

    __slots__ = ()

    def say(self, ctx: Context, to: int, message: Message) -> None:
        ctx.send(to, change(message, number=HUGE) if isinstance(message, Set) else message)


@dataclass(slots=True)
class Equivocate(LyingClient):
    """F14: asks twice in one turn, and sets two tickets that are both justified, each at some of the servers."""

    answers: tuple[GetReply, ...] = ()
    """What it was told in this turn."""

    def on_get_reply(self, ctx: Context, source: int, message: GetReply) -> None:
        if message.sid == self.sid and self.judge.highest_in(ctx, message, ctx.me, self.sid) is not None:
            self.answers = (*(each for each in self.answers if each != message), message)[-MEMORY:]

    def begin(self, ctx: Context) -> None:
        self.answers = ()
        LyingClient.begin(self, ctx)

    def end(self, ctx: Context) -> None:
        """It asks, asks once more, sets its tickets, and stays for a while."""
        if self.access is Access.GET and ctx.choose(2):
            turn = ctx.sign(Begun(self.judge.lock, ctx.me, self.sid))
            ctx.broadcast(Get(self.sid, turn), to=self.judge.servers)
        elif self.access is Access.GET:
            self._set_two(ctx)
        elif not ctx.choose(8):
            LyingClient.end(self, ctx)

    def _set_two(self, ctx: Context) -> None:
        justified: dict[int, Set] = {}
        for replies in combinations(self.answers, self.judge.quorum):
            number = self.judge.ticket_by(ctx, replies, ctx.me, self.sid)
            if number is not None:
                justified.setdefault(number, Set(self.sid, number, replies))
        if justified:
            tickets = justified[min(justified)], justified[max(justified)]
            for server in self.judge.servers:
                ctx.send(server, tickets[ctx.choose(2)])
            self.number, self.access = max(justified), Access.SET
            self._note_heartbeat(ctx, 0)


@dataclass(slots=True)
class Partial(LyingClient):
    """Says some things to some of the servers only, in one turn. Another would tell them that this one has ended."""

    most: ClassVar[int] = 1
    reached: Ids = NOBODY

    def begin(self, ctx: Context) -> None:
        servers = self.judge.servers
        self.reached = (1 + ctx.choose((1 << len(servers)) - 2)) << servers[0]
        LyingClient.begin(self, ctx)

    def say(self, ctx: Context, to: int, message: Message) -> None:
        if self.reached & bit(to) or not self.is_withheld(message):
            ctx.send(to, message)

    def is_withheld(self, message: Message) -> bool:
        return True


class PartialGet(Partial):
    """Lets some of the servers know of its turn, the others never."""

    __slots__ = ()


class PartialSet(Partial):
    """Asks all servers, shows its ticket to some of them only, and gives signs of life to those for ever."""

    __slots__ = ()

    def is_withheld(self, message: Message) -> bool:
        return not isinstance(message, Get)

    def end(self, ctx: Context) -> None:
        pass


class PartialExit(Partial):
    """Once inside, gives signs of life to some of the servers only, and leaves only there."""

    __slots__ = ()

    def is_withheld(self, message: Message) -> bool:
        return isinstance(message, Exit) or (isinstance(message, Listen) and self.until is not None)

    def pause(self, ctx: Context) -> None:
        """Long enough for the others to suspect it."""
        arm(ctx, "lie", self.timing.hold * (1 + ctx.choose(8)) / 4)


class FloodGet(LyingClient):
    """Asks for the highest tickets again and again in one turn, and sets none."""

    __slots__ = ()

    def begin(self, ctx: Context) -> None:
        if self.begun == 1:
            self.sid = 1
        turn = ctx.sign(Begun(self.judge.lock, ctx.me, self.sid))
        ctx.broadcast(Get(self.sid, turn), to=self.judge.servers)

    def pause(self, ctx: Context) -> None:
        arm(ctx, "lie", self.timing.heartbeat / 8)


class FloodExit(LyingClient):
    """F7: comes and goes, so that somebody is always choosing."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        pass

    def pause(self, ctx: Context) -> None:
        arm(ctx, "lie", self.timing.heartbeat / 8)

    def move(self, ctx: Context) -> None:
        """One message leaves, the next comes: never a moment in between."""
        if self.access is not Access.NONE:
            self.end(ctx)
        LyingClient.move(self, ctx)


@dataclass(slots=True)
class Leapfrog(LyingClient):
    """F25: begins a turn at one server, and the next one, which it ends, at all the others."""

    most: ClassVar[int] = 1
    victim: int | None = None

    def begin(self, ctx: Context) -> None:
        if self.victim is None:
            self.victim = self.judge.servers[ctx.choose(len(self.judge.servers))]
        LyingClient.begin(self, ctx)

    def say(self, ctx: Context, to: int, message: Message) -> None:
        if (to == self.victim) is (self.sid == 1):
            ctx.send(to, message)

    def end(self, ctx: Context) -> None:
        """The first turn is never ended: the second one begins."""
        if self.sid == 1:
            self.begin(ctx)
        else:
            LyingClient.end(self, ctx)


class MuteInside(LyingClient):
    """Enters, and is never heard of again in that turn."""

    __slots__ = ()

    def say(self, ctx: Context, to: int, message: Message) -> None:
        if self.until is None and not isinstance(message, Exit):
            ctx.send(to, message)

    def end(self, ctx: Context) -> None:
        if self.until is not None and not self.until <= ctx.now():
            return
        LyingClient.end(self, ctx)


class HoldForever(LyingClient):
    """Never leaves, and gives signs of life for ever."""

    __slots__ = ()
    most: ClassVar[int] = 4

    def end(self, ctx: Context) -> None:
        pass


@dataclass(slots=True)
class Replay(LyingClient):
    """Says again what it has said in earlier turns, among what is due now."""

    past: tuple[Message, ...] = ()

    def say(self, ctx: Context, to: int, message: Message) -> None:
        self.past = (*(each for each in self.past if each != message), message)[-MEMORY:]
        ctx.send(to, message)
        if not ctx.choose(3):
            ctx.send(to, self.past[ctx.choose(len(self.past))])
