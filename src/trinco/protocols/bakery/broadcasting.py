"""The Byzantine bakery over Bracha's reliable broadcast, as section 3.3 of the paper has it (``broadcast=bracha``).

A client's GET, SET and EXIT are numbered and broadcast among the servers (``protocols.broadcast.bracha``): what it says
to one correct server all of them hear, and the same. LISTEN is a subscription with each server and goes there directly.
So it may overtake the SET before it, or come after the EXIT that follows: the first is kept until SET is there, the
second is ignored, and neither is held against the client.

Nothing in the optimised protocol rests on this. A lie told to some servers only costs time there, until the turn is
removed, and the broadcast costs 2n(n-1) messages and two message times per access: 6n + 6n(n-1) = 6n^2 messages for an
entry that nobody else competes for, where 6n do. So it is off unless asked for.

What a server remembers is bounded, though clients and servers may name any number. A broadcast that was delivered is
forgotten. Of each server the votes on a client's ``KEPT`` latest broadcasts count, and whatever comes about older ones
is ignored: a turn is at most three. A server that is further behind does not need them, for GET and EXIT say that all
before them is over, and are delivered without waiting for it. Only SET waits for the broadcast before it, its GET. That
also serves clients that crash while they send: a broadcast that reached too few is never delivered, and whoever waited
for it would wait for ever. A client that no server has heard from is believed in when somebody shows its signature.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.ids import bit
from trinco.core.message import Message
from trinco.protocols.bakery.automaton import State
from trinco.protocols.bakery.certificates import Begun
from trinco.protocols.bakery.client import Client
from trinco.protocols.bakery.messages import Exit, Get, Listen, Set
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.suspicion import with_entry
from trinco.protocols.bakery.turns import turn_of
from trinco.protocols.bakery.wire import Broadcast
from trinco.protocols.broadcast.bracha import Bracha, Echo, Initial, Instance, Ready, Votes

KEPT = 3
"""Of a client's broadcasts, on how many each server's votes are kept: GET, SET and EXIT of its last turn."""


class Requests(Bracha):
    """Bracha's part of a server, with an end to what is remembered. Numbers only rise: a server echoes nothing below
    what it has echoed, which a correct client on a channel in order never sends."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> list[tuple[int, Message]]:
        match message:
            case Initial(number=number):
                stale = any(each.number >= number for each in self._voted(source, self.me, "echoes"))
            case Echo(origin=origin, number=number):
                stale = self._is_stale(origin, number, source, "echoes")
            case Ready(origin=origin, number=number):
                stale = self._is_stale(origin, number, source, "readies")
            case _:
                stale = True
        return [] if stale else Bracha.on_message(self, ctx, source, message)

    def is_ready(self, instance: Instance, body: Message) -> bool:
        stale = self._is_stale(instance.origin, instance.number, self.me, "readies")
        return not stale and Bracha.is_ready(self, instance, body)

    def forget(self, origin: int) -> None:
        """The client is banned, or gone."""
        self.instances = tuple(each for each in self.instances if each.origin != origin)
        self.delivered = tuple(each for each in self.delivered if each[0] != origin)

    def knows(self, origin: int) -> bool:
        return origin in dict(self.delivered) or any(each.origin == origin for each in self.instances)

    def _voted(self, origin: int, voter: int, kind: str) -> Iterator[Instance]:
        return (each for each in self.instances if each.origin == origin and voter in dict(getattr(each, kind)))

    def _is_stale(self, origin: int, number: int, voter: int, kind: str) -> bool:
        return sum(each.number > number for each in self._voted(origin, voter, kind)) >= KEPT

    def _keep(self, instance: Instance) -> None:
        Bracha._keep(self, instance)
        kept = (self._without_stale(each) if each.origin == instance.origin else each for each in self.instances)
        self.instances = tuple(each for each in kept if each.echoes or each.readies)

    def _without_stale(self, instance: Instance) -> Instance:
        instance = replace(
            instance,
            echoes=self._not_stale(instance, instance.echoes, "echoes"),
            readies=self._not_stale(instance, instance.readies, "readies"),
        )
        body = instance.accepted
        return instance if body is None or self.is_accepted(instance, body) else replace(instance, accepted=None)

    def _not_stale(self, instance: Instance, votes: Votes, kind: str) -> Votes:
        origin, number = instance.origin, instance.number
        return tuple(vote for vote in votes if not self._is_stale(origin, number, vote[0], kind))

    def _deliver(self, origin: int) -> Iterator[tuple[int, Message]]:
        while (instance := self._following(origin)) is not None:
            over = {each for each in self.instances if each.origin == origin and each.number <= instance.number}
            self.instances = tuple(each for each in self.instances if each not in over)
            self.delivered = with_entry(self.delivered, origin, instance.number)
            assert instance.accepted is not None
            yield origin, instance.accepted

    def _following(self, origin: int) -> Instance | None:
        """The first accepted one that need not wait for another."""
        last = dict(self.delivered).get(origin, 0)
        accepted = (each for each in self.instances if each.origin == origin and each.accepted is not None)
        return next((each for each in accepted if self.may_follow(last, each)), None)

    def may_follow(self, last: int, instance: Instance) -> bool:
        return instance.number == last + 1 or not isinstance(instance.accepted, Set)


class Positions(Context):
    """The world of Bracha's part, which counts the servers from 0; ours come after the clients."""

    __slots__ = ("_servers", "_world", "me")

    def __init__(self, world: Context, servers: tuple[int, ...]) -> None:
        self._world, self._servers = world, servers
        self.me = servers.index(world.me)

    def send(self, to: int, message: Message) -> None:
        self._world.send(self._servers[to], message)


@dataclass(slots=True)
class BroadcastServer(Server):
    requests: Requests = field(default_factory=lambda: Requests(0, 1, 0))
    parked: tuple[tuple[int, Listen], ...] = ()
    """(client, its last LISTEN, whose SET is not here yet), by client."""

    def _take_in(self, ctx: Context, source: int, message: Message | None) -> None:
        is_client = source not in self.judge.servers
        match message:
            case Initial() if is_client:
                self._hear(ctx, source, source, message)
            case Echo() | Ready() if not is_client and self._exists(ctx, message.origin, message.body):
                self._hear(ctx, message.origin, self.judge.servers.index(source), message)
            case Listen() if is_client and self._is_early(source, message):
                self._park(ctx, source, message)
            case Initial() | Echo() | Ready() | Get() | Set() | Exit():
                pass  # what is not broadcast, or by whom it cannot be
            case _:
                Server._take_in(self, ctx, source, message)

    # GET, SET and EXIT

    def _exists(self, ctx: Context, client: int, body: Message) -> bool:
        """A liar could name clients without end."""
        if self.requests.knows(client):
            return True
        if client in self.judge.servers or not isinstance(body, Get):
            return False
        return self.judge.is_genuine(ctx, body.turn, client, Begun(self.judge.lock, client, body.sid))

    def _hear(self, ctx: Context, client: int, source: int, message: Initial[Any] | Echo[Any] | Ready[Any]) -> None:
        if self.banned & bit(client):
            return
        if isinstance(message, Initial) or not self.requests.knows(client):
            self._note_presence(ctx, client)
        for _, request in self.requests.on_message(Positions(ctx, self.judge.servers), source, message):
            assert isinstance(request, Broadcast)
            self.take(ctx, client, request)

    def take(self, ctx: Context, client: int, request: Broadcast) -> None:
        """A request is delivered. If it belongs to a later turn, the one before is over."""
        turn = turn_of(self.turns, client)
        if turn is not None and turn.sid < request.sid:
            self._drop(ctx, client, turn.sid)
        if not self.banned & bit(client):
            self._check(ctx, client, request)
        if isinstance(request, Exit) and request.sid > dict(self.last).get(client, 0):
            self.last = with_entry(self.last, client, request.sid)
            self._close(ctx, client, request.sid)
        self._unpark(ctx, client)
        if self.banned & bit(client):
            self.requests.forget(client)

    def _forget_the_absent(self, ctx: Context) -> None:
        known = dict(self.seen)
        Server._forget_the_absent(self, ctx)
        for client in sorted(known.keys() - dict(self.seen).keys()):
            self.requests.forget(client)
            self._forget_parked(client)

    # LISTEN

    def _is_early(self, client: int, message: Listen) -> bool:
        if self.banned & bit(client):
            return False
        turn = turn_of(self.turns, client)
        if turn is not None and turn.sid == message.sid:
            return turn.state is State.E1
        return message.sid > max(dict(self.last).get(client, 0), dict(self.removed).get(client, 0))

    def _park(self, ctx: Context, client: int, message: Listen) -> None:
        self._note_presence(ctx, client)
        parked = {**dict(self.parked), client: message}
        self.parked = tuple((each, parked[each]) for each in sorted(parked))

    def _unpark(self, ctx: Context, client: int) -> None:
        listen = dict(self.parked).get(client)
        if listen is not None and not self._is_early(client, listen):
            self._forget_parked(client)
            Server._take_in(self, ctx, client, listen)

    def _forget_parked(self, client: int) -> None:
        self.parked = tuple(each for each in self.parked if each[0] != client)

    def column(self, server: int) -> tuple[object, ...]:
        raise UsageError("servers that broadcast cannot be merged: their votes name them by position")


@dataclass(slots=True)
class BroadcastClient(Client):
    requests: int = 0
    """How many it has broadcast, in all its lives. If it began again from 1, servers would take it for old news."""

    def request(self, ctx: Context, message: Broadcast) -> None:
        self.requests += 1
        ctx.store((self.sid, self.requests))
        ctx.broadcast(Initial(self.requests, message), to=self.judge.servers)

    def on_restart(self, ctx: Context, stored: Any) -> None:
        sid, self.requests = stored or (0, 0)
        Client.on_restart(self, ctx, sid)
