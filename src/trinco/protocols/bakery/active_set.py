"""Bessani, Fraga & Lung 2005: O confeiteiro bizantino, its active set (seed 000, algorithm 1, "conjunto ativo").

The active set knows who takes part. A client joins and leaves at a quorum of the servers, each of which keeps a set;
``get_set`` reads it. As printed, a reader becomes a *listener* (the Listener pattern): each server sends its set, and
again whenever it changes, until the reader has seen one and the same set at a quorum of servers.

Assumes: at most f of the servers lie; for the printed version also FIFO channels, since a late REMOVE would take away
who has joined again. Joining and leaving take 2n messages; reading 3n, and n more for each change meanwhile.

Against the print: where members come and go, servers that see the changes in different orders need never show the same
set, and with the limit of T notices a reader (3.3), which stops a silent reader from being served for ever, the reader
then hangs for good (``bakery/F2``). So a reader to whom a server has sent T sets takes the union of all that it has
seen. The union loses nobody who had joined before the read and has not left, and one too many is harmless: a client
that is not there has no ticket. ``Collect`` does so at once: one round, no listeners, no T, 2n messages, and servers
that go by a client's own numbers do without FIFO. A quorum is that of ``quorums``, not 2f+1, and accesses are numbered.
"""

from dataclasses import dataclass
from enum import Enum

from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Codec, Message

LIMIT = 16
"""T: sets that a server sends for one read, where nobody says how many."""


class Add(Message, tag="add"):
    access: int


class AckAdd(Message, tag="ack-add"):
    access: int


class Remove(Message, tag="remove"):
    access: int


class AckRemove(Message, tag="ack-remove"):
    access: int


class ReadSet(Message, tag="read-set"):
    access: int


class Data(Message, tag="data"):
    access: int
    members: Ids
    last: bool = False
    """T have been sent: no more will come."""


class ReadComplete(Message, tag="read-complete"):
    access: int


REQUESTS: Codec[Message] = Codec(Add, Remove, ReadSet, ReadComplete)
ANSWERS: Codec[Message] = Codec(AckAdd, AckRemove, Data)


@dataclass(slots=True)
class CollectReplica:
    """The part of a server, for readers who ask once."""

    latest: tuple[tuple[int, int, bool], ...] = ()
    """(client, the number of its last word, whether that was ADD), by client."""

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match REQUESTS.admit(message):
            case Add(access=access):
                self._note(source, access, joined=True)
                ctx.send(source, AckAdd(access))
            case Remove(access=access):
                self._note(source, access, joined=False)
                ctx.send(source, AckRemove(access))
            case ReadSet(access=access):
                ctx.send(source, Data(access, self.members))

    @property
    def members(self) -> Ids:
        return sum(bit(client) for client, _, joined in self.latest if joined)

    def _note(self, source: int, access: int, *, joined: bool) -> None:
        """The last word counts, in whatever order they come."""
        others = tuple(each for each in self.latest if each[0] != source)
        known = next((each for each in self.latest if each[0] == source), (source, 0, False))
        self.latest = tuple(sorted((*others, max(known, (source, access, joined)))))


@dataclass(slots=True)
class ListenedReplica:
    """The part of a server as printed: S, and L with the sets that each listener may still be sent."""

    limit: int = LIMIT
    members: Ids = NOBODY
    listeners: tuple[tuple[int, int, int], ...] = ()
    """(client, its read's number, how many more), by client."""

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match REQUESTS.admit(message):
            case Add(access=access):
                self.members |= bit(source)
                ctx.send(source, AckAdd(access))
                self._notify(ctx)
            case Remove(access=access):
                self.members &= ~bit(source)
                ctx.send(source, AckRemove(access))
                self._notify(ctx)
            case ReadSet(access=access):
                others = [each for each in self.listeners if each[0] != source]
                self.listeners = tuple(sorted((*others, (source, access, self.limit))))
                self._send_data(ctx, source)
            case ReadComplete():
                self.listeners = tuple(each for each in self.listeners if each[0] != source)

    def _notify(self, ctx: Context) -> None:
        for client, _, _ in self.listeners:
            self._send_data(ctx, client)

    def _send_data(self, ctx: Context, to: int) -> None:
        """Each time one less; who has been sent T is no listener any more."""
        access, more = next((access, more) for client, access, more in self.listeners if client == to)
        ctx.send(to, Data(access, self.members, last=more == 1))
        counted = ((each, access, more - (each == to)) for each, access, more in self.listeners)
        self.listeners = tuple(each for each in counted if each[2] > 0)


class Awaited(Enum):
    NOTHING = "no operation is going on"
    ACKS = "a join or a leave is"
    SETS = "a read is"


@dataclass(slots=True)
class Collect:
    """The part of a client that reads in one round; one operation at a time."""

    servers: int
    quorum: int
    access: int = 0
    awaited: Awaited = Awaited.NOTHING
    answered: Ids = NOBODY
    seen: frozenset[tuple[int, Ids]] = frozenset()
    """(server, a set that it has sent): the paper's R."""

    def join(self, ctx: Context) -> None:
        self._ask(ctx, Awaited.ACKS, Add)

    def leave(self, ctx: Context) -> None:
        self._ask(ctx, Awaited.ACKS, Remove)

    def get_set(self, ctx: Context) -> None:
        self._ask(ctx, Awaited.SETS, ReadSet)

    def on_message(self, ctx: Context, source: int, message: Message) -> Ids | None:
        """When an operation is over: the set that was read, nobody after a join or a leave. None before."""
        match ANSWERS.admit(message):
            case AckAdd(access=access) | AckRemove(access=access) if self._is_awaited(Awaited.ACKS, source, access):
                self.answered |= bit(source)
                return self._over(NOBODY) if self._has_quorum else None
            case Data() as data if self._is_awaited(Awaited.SETS, source, data.access) and data.members >= 0:
                self.answered |= bit(source)
                self.seen |= {(source, data.members)}
                members = self.found(data)
                return self._over(members) if members is not None else None
        return None

    def found(self, message: Data) -> Ids | None:
        return self.union() if self._has_quorum else None

    def union(self) -> Ids:
        members = NOBODY
        for _, each in self.seen:
            members |= each
        return members

    @property
    def _has_quorum(self) -> bool:
        return self.answered.bit_count() >= self.quorum

    def _ask(self, ctx: Context, awaited: Awaited, request: type[Add | Remove | ReadSet]) -> None:
        self.access += 1
        self.awaited = awaited
        ctx.broadcast(request(self.access), to=range(self.servers))

    def _is_awaited(self, awaited: Awaited, source: int, access: int) -> bool:
        return self.awaited is awaited and access == self.access and source < self.servers

    def _over(self, members: Ids) -> Ids:
        self.awaited, self.answered, self.seen = Awaited.NOTHING, NOBODY, frozenset()
        return members


@dataclass(slots=True)
class Listener(Collect):
    """The part of a client that reads as printed, as long as servers send what it waits for."""

    exhausted: bool = False
    """Whether a server has sent its last set."""

    def on_message(self, ctx: Context, source: int, message: Message) -> Ids | None:
        reading, access = self.awaited is Awaited.SETS, self.access
        members = Collect.on_message(self, ctx, source, message)
        if reading and members is not None:
            self.exhausted = False
            ctx.broadcast(ReadComplete(access), to=range(self.servers))
        return members

    def found(self, message: Data) -> Ids | None:
        """The first set that is in R of a quorum, or the union of all when there may never be one."""
        self.exhausted |= message.last
        if sum(each == message.members for _, each in self.seen) >= self.quorum:
            return message.members
        return self.union() if self.exhausted and self._has_quorum else None
