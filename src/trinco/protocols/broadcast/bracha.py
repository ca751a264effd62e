"""Bracha 1984: an asynchronous [(n-1)/3]-resilient consensus protocol, its reliable broadcast (seed 000, 3.3).

A client tells n servers something, and may lie: tell them different things, or only some of them. A server echoes the
first it is told to all; who has echoes of more than half (n+f)/2 of the servers says READY, and so does who hears f+1
others say it; 2f+1 READYs deliver. Two quorums of echoes share a server that does not lie, so no two correct servers
deliver different things (agreement); of 2f+1 READYs f+1 are honest and bring everybody along, so all deliver or none
(totality); and what a correct client sends is what all deliver (validity).

Assumes: at most f of n >= 3f+1 servers lie, any number of clients do; channels need not be FIFO. A broadcast takes n
messages from the client and n(n-1) each of ECHO and READY; with n answers of the owner's, n + 2n(n-1) + n. Three
message times.

Here: a client's broadcasts are numbered, and delivered in that order; what comes early is held back. Of each server
the first ECHO and the first READY count, so that a liar cannot fill the memory with many of one broadcast.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from trinco.core.context import Context
from trinco.core.message import Message, describe
from trinco.protocols.bakery.quorums import quorum

Body = TypeVar("Body", bound=Message)


class Initial(Message, Generic[Body], tag="initial"):
    number: int
    """The client's broadcasts, counted from 1."""
    body: Body

    def in_words(self) -> str:
        return f"initial({self.number}: {describe(self.body)})"


class Echo(Message, Generic[Body], tag="echo"):
    origin: int
    number: int
    body: Body

    def in_words(self) -> str:
        return f"echo(p{self.origin}'s {self.number}: {describe(self.body)})"


class Ready(Message, Generic[Body], tag="ready"):
    origin: int
    number: int
    body: Body

    def in_words(self) -> str:
        return f"ready(p{self.origin}'s {self.number}: {describe(self.body)})"


Votes: TypeAlias = tuple[tuple[int, Message], ...]
"""(server, for what), by server: the first of each."""


@dataclass(frozen=True, slots=True)
class Instance:
    """What a server has heard about one broadcast."""

    origin: int
    number: int
    echoes: Votes = ()
    readies: Votes = ()
    accepted: Message | None = None
    """Waits for the origin's earlier broadcasts."""


@dataclass(slots=True)
class Broadcaster:
    """The part of a client."""

    servers: int
    number: int = 0

    def broadcast(self, ctx: Context, body: Message) -> None:
        self.number += 1
        ctx.broadcast(Initial(self.number, body), to=range(self.servers))


@dataclass(slots=True)
class Bracha:
    """The part of a server."""

    me: int
    n: int
    f: int
    instances: tuple[Instance, ...] = ()
    """Those that are not over, by origin and number."""
    delivered: tuple[tuple[int, int], ...] = ()
    """(origin, how many of its broadcasts), by origin."""

    def on_message(self, ctx: Context, source: int, message: Message) -> list[tuple[int, Message]]:
        """What is delivered, (origin, body), in order. What a body may be is for the owner to say."""
        match message:
            case Initial(number=int()):
                origin = source
            case Echo(origin=int(), number=int()) | Ready(origin=int(), number=int()) if source < self.n:
                origin = message.origin
            case _:
                return []
        if message.number <= dict(self.delivered).get(origin, 0):
            return []
        self._keep(self._heard(ctx, source, self._instance(origin, message.number), message))
        return list(self._deliver(origin))

    def _heard(
        self, ctx: Context, source: int, instance: Instance, message: Initial[Any] | Echo[Any] | Ready[Any]
    ) -> Instance:
        match message:
            case Initial():
                instance = self.echo(ctx, instance, message.body)
            case Echo():
                instance = replace(instance, echoes=_with(instance.echoes, source, message.body))
            case Ready():
                instance = replace(instance, readies=_with(instance.readies, source, message.body))
        return self._judged(ctx, instance, message.body)

    def echo(self, ctx: Context, instance: Instance, body: Message) -> Instance:
        if self.me in dict(instance.echoes):
            return instance
        ctx.broadcast(Echo(instance.origin, instance.number, body), to=range(self.n))
        return replace(instance, echoes=_with(instance.echoes, self.me, body))

    def _judged(self, ctx: Context, instance: Instance, body: Message) -> Instance:
        """A vote for this body may have been the one that was missing."""
        if self.me not in dict(instance.readies) and self.is_ready(instance, body):
            ctx.broadcast(Ready(instance.origin, instance.number, body), to=range(self.n))
            instance = replace(instance, readies=_with(instance.readies, self.me, body))
        return replace(instance, accepted=body) if self.is_accepted(instance, body) else instance

    def is_ready(self, instance: Instance, body: Message) -> bool:
        echoed = _count(instance.echoes, body) >= quorum(self.n, self.f)
        return echoed or _count(instance.readies, body) > self.f

    def is_accepted(self, instance: Instance, body: Message) -> bool:
        return _count(instance.readies, body) > 2 * self.f

    def _deliver(self, origin: int) -> Iterator[tuple[int, Message]]:
        counts = dict(self.delivered)
        following = counts.get(origin, 0) + 1
        while (body := self._instance(origin, following).accepted) is not None:
            self.instances = tuple(each for each in self.instances if (each.origin, each.number) != (origin, following))
            counts[origin] = following
            self.delivered = tuple(sorted(counts.items()))
            following += 1
            yield origin, body

    def _instance(self, origin: int, number: int) -> Instance:
        known = (each for each in self.instances if (each.origin, each.number) == (origin, number))
        return next(known, Instance(origin, number))

    def _keep(self, instance: Instance) -> None:
        name = (instance.origin, instance.number)
        others = [each for each in self.instances if (each.origin, each.number) != name]
        self.instances = tuple(sorted((*others, instance), key=lambda each: (each.origin, each.number)))


def _with(votes: Votes, server: int, body: Message) -> Votes:
    known = dict(votes)
    known.setdefault(server, body)
    return tuple((each, known[each]) for each in sorted(known))


def _count(votes: Votes, body: Message) -> int:
    return sum(each == body for _, each in votes)
