"""The bakery over reliable broadcast: liars, and the same with one rule broken each."""

from dataclasses import dataclass

from trinco.core.ids import bit
from trinco.core.snapshot import take
from trinco.protocols.bakery.automaton import State
from trinco.protocols.bakery.broadcasting import BroadcastClient, BroadcastServer, Requests
from trinco.protocols.bakery.certificates import Begun
from trinco.protocols.bakery.messages import Exit, Get, Listen
from trinco.protocols.bakery.system import Bakery
from trinco.protocols.bakery.turns import turn_of
from trinco.protocols.broadcast.bracha import Echo, Initial, Ready

TURNS = 12
"""How often a lying client begins, so that every run ends."""
FAR = 10**6

# Servers that lie


class Mute(BroadcastServer):
    __slots__ = ()

    def on_message(self, ctx, source, message):
        pass


class Liar(BroadcastServer):
    """Follows the protocol but for what it says about broadcasts."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Initial):
            self.lie(ctx, source, message)
        BroadcastServer.on_message(self, ctx, source, message)

    def lie(self, ctx, client, message):
        raise NotImplementedError

    def say(self, ctx, message, to=None):
        ctx.broadcast(message, to=self.judge.servers if to is None else to)


class EchoesNonsense(Liar):
    """Has always heard that the client leaves; and its own echo comes second."""

    __slots__ = ()

    def lie(self, ctx, client, message):
        self.say(ctx, Echo(client, message.number, Exit(message.body.sid, ())))


class EchoesTwice(Liar):
    """To some the truth first, to others something else; to all both."""

    __slots__ = ()

    def lie(self, ctx, client, message):
        truth, other = message.body, Exit(message.body.sid, ())
        for server in self.judge.servers:
            first = ctx.choose(2)
            for body in ((truth, other), (other, truth))[first]:
                self.say(ctx, Echo(client, message.number, body), to=(server,))


class ReadyForAnything(Liar):
    """Is ready for what nobody said: of this client now and far ahead, and of clients that do not exist."""

    __slots__ = ()

    def lie(self, ctx, client, message):
        number, sid = message.number, message.body.sid
        for origin, later in ((client, 0), (client, 1), (client, FAR + ctx.choose(FAR)), (FAR + ctx.choose(FAR), 0)):
            self.say(ctx, Ready(origin, number + later, Exit(sid, ())))


SERVERS = {"mute": Mute, "nonsense": EchoesNonsense, "twice": EchoesTwice, "ready": ReadyForAnything}

# Clients that lie


@dataclass(slots=True)
class LyingClient(BroadcastClient):
    """Nobody asks it to enter, so it begins and ends turns by a timer of its own."""

    begun: int = 0

    def on_start(self, ctx):
        ctx.set_timer("lie", self.timing.hold * (1 + ctx.choose(8)) / 8)

    def on_timer(self, ctx, name):
        if name != "lie":
            BroadcastClient.on_timer(self, ctx, name)
        elif self.begun < TURNS:
            self.begun += 1
            if ctx.choose(4):
                self.release(ctx)
            self.acquire(ctx)
            self.on_start(ctx)

    def acquire(self, ctx):
        self.replies = ()
        BroadcastClient.acquire(self, ctx)

    def request(self, ctx, message):
        """As an honest one does, but told otherwise."""
        self.requests += 1
        self.tell(ctx, Initial(self.requests, message), self.judge.servers)

    def tell(self, ctx, initial, to):
        raise NotImplementedError

    def something_else(self, ctx, request):
        if not isinstance(request, Exit):
            return Exit(request.sid, ())
        return Get(request.sid + 1, ctx.sign(Begun(self.judge.lock, ctx.me, request.sid + 1)))


class TellsSome(LyingClient):
    __slots__ = ()

    def tell(self, ctx, initial, to):
        ctx.broadcast(initial, to=[server for server in to if ctx.choose(3)])


class TwoFaced(LyingClient):
    """Different requests to different servers under one number."""

    __slots__ = ()

    def tell(self, ctx, initial, to):
        other = Initial(initial.number, self.something_else(ctx, initial.body))
        for server in to:
            ctx.send(server, (initial, other)[ctx.choose(2)])


class Miscounts(LyingClient):
    """Uses a number twice, or leaves some out."""

    __slots__ = ()

    def tell(self, ctx, initial, to):
        ctx.broadcast(initial, to)
        ctx.broadcast(Initial(initial.number, self.something_else(ctx, initial.body)), to)
        self.requests += ctx.choose(3)


class Floods(LyingClient):
    """Broadcasts what is far ahead, in any order, without end."""

    __slots__ = ()

    def tell(self, ctx, initial, to):
        ctx.broadcast(initial, to)
        for _ in range(8):
            ctx.broadcast(Initial(initial.number + 2 + ctx.choose(FAR), initial.body), to)


CLIENTS = {"some": TellsSome, "two-faced": TwoFaced, "miscounts": Miscounts, "floods": Floods}

# One rule broken


class BansListens(BroadcastServer):
    """F12: the automaton at its word. LISTEN is for who has set a ticket."""

    __slots__ = ()

    def on_message(self, ctx, source, message):
        if isinstance(message, Listen):
            turn = turn_of(self.turns, source)
            if turn is None or turn.sid != message.sid or turn.state is State.E1:
                self.banned |= bit(source)
                self._drop(ctx, source, message.sid)
        BroadcastServer.on_message(self, ctx, source, message)


class HoldsOn(BroadcastServer):
    """A new turn does not end the one before."""

    __slots__ = ()

    def take(self, ctx, client, request):
        self._check(ctx, client, request)


class ForgetsNumbers(BroadcastClient):
    """Stores its turns only."""

    __slots__ = ()

    def on_restart(self, ctx, stored):
        BroadcastClient.on_restart(self, ctx, (stored[0], 0) if stored else None)


class WaitsForAll(Requests):
    """Everything in the order of the numbers, whatever is missing."""

    __slots__ = ()

    def may_follow(self, last, instance):
        return instance.number == last + 1


class WaitsForNothing(Requests):
    """Not even a SET for its GET."""

    __slots__ = ()

    def may_follow(self, last, instance):
        return True


class KeepsAll(Requests):
    """Counts votes on any number."""

    __slots__ = ()

    def _is_stale(self, origin, number, voter, kind):
        return False


class TakesItsWord(Requests):
    """Delivers what it is told first, as if there were no broadcast."""

    __slots__ = ()

    def is_accepted(self, instance, body):
        return True


@dataclass(frozen=True)
class Replaced:
    """A system with one class in the place of another: of the servers, of their part, or of the clients."""

    system: Bakery
    kind: type

    @property
    def size(self):
        return self.system.size

    def letters(self, n):
        return self.system.letters(n)

    def __call__(self, n):
        return [self._replaced(node) for node in self.system(n)]

    def _replaced(self, node):
        if issubclass(self.kind, Requests) and isinstance(node, BroadcastServer):
            node.requests = self.kind(*take(node.requests)[1:])
        elif any(issubclass(self.kind, each) and isinstance(node, each) for each in (BroadcastServer, BroadcastClient)):
            node = self.kind.in_place_of(node)
        return node
