"""Flaws of the Byzantine bakery's paper (seed 000) in the objects that it builds on, by their numbers in the spec."""

from dataclasses import dataclass

from trinco.check.model import Model
from trinco.check.view import View
from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.core.signed import Signed
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.bakery.active_set import Data, ListenedReplica, Listener
from trinco.protocols.bakery.algorithm2 import NUMBER, Client, Server
from trinco.protocols.bakery.quorums import quorum
from trinco.protocols.bakery.register import Record, Register, RegisterClient, RegisterReplica, Value, Write, Written


class YourTurn(Message, tag="your-turn"):
    pass


@dataclass(slots=True)
class Writer(Process):
    """Writes 1 into its register, then lets the reader read, then enters."""

    registers: RegisterClient
    reader: int

    def acquire(self, ctx: Context) -> None:
        self.registers.write(ctx, NUMBER, 1)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, YourTurn):
            ctx.grant()
        elif self.registers.on_message(ctx, source, message) is not None:
            self.registers.close()
            ctx.send(self.reader, YourTurn())

    def release(self, ctx: Context) -> None:
        pass


@dataclass(slots=True)
class Reader(Node):
    registers: RegisterClient
    register: Register
    read: int | None = None

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        record = self.registers.on_message(ctx, source, message)
        if isinstance(message, YourTurn):
            self.registers.read(ctx, self.register)
        elif record is not None:
            self.registers.close()
            self.read = record.value
            ctx.send(self.register.owner, YourTurn())


class Forgets(Server):
    """Says that it has written what it has not."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Write):
            ctx.send(source, Written(message.access))
        else:
            Server.on_message(self, ctx, source, message)


def misses_what_was_written(view: View) -> bool:
    """a read misses what had been written before it began"""
    return bool(view.node(6).read == 0)


def _five_servers(q: int) -> Model:
    """The liar has but one lie to tell, so it is checked as a node like the others."""
    clients = [Writer(RegisterClient(5, q), reader=6), Reader(RegisterClient(5, q), Register(5, NUMBER))]
    return Model(nodes=[*(Server() for _ in range(4)), Forgets(), *clients], never=[misses_what_was_written])


class AsPrinted(Listener):
    """Waits for one and the same set at a quorum, whether or not anybody will ever send it."""

    __slots__ = ()

    def found(self, message: Data) -> Ids | None:
        alike = sum(each == message.members for _, each in self.seen)
        return message.members if alike >= self.quorum else None


def _two_listeners(kind: type[Listener]) -> Model:
    """Nobody lies, and T is 1."""
    servers = [Server(active=ListenedReplica(limit=1)) for _ in range(2)]
    q = quorum(2, 0)
    return Model(nodes=[*servers, *(Client(RegisterClient(2, q), kind(2, q)) for _ in range(2))])


DEAD = Register(5, NUMBER)
"""The number of a client that has crashed: it was 1."""


@dataclass(slots=True)
class WaitsForTheRegister(Process):
    """Enters when it reads that the dead one has no number."""

    registers: RegisterClient
    votes: Ids = NOBODY

    def acquire(self, ctx: Context) -> None:
        self.registers.read(ctx, DEAD)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        record = self.registers.on_message(ctx, source, message)
        if record is not None and record.value == 0:
            ctx.grant()
        elif record is not None:
            self.registers.read_again(ctx)

    def release(self, ctx: Context) -> None:
        self.registers.close()


class WaitsForVotes(WaitsForTheRegister):
    """Enters when a quorum of servers say, each for itself, that the dead one is not in the way."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Value) and message.record is None:
            self.votes |= bit(source)
            if self.votes.bit_count() == self.registers.quorum:
                ctx.grant()


def _one_dead(client: type[WaitsForTheRegister]) -> Model:
    """The muteness detectors of three servers have reset the dead one's number; the fourth server shows what it has."""
    old = RegisterReplica((Signed(DEAD.owner, Record(DEAD, 1, 1)),))
    servers = [Server(), Server(), Server(), Server(old)]
    return Model(nodes=[*servers, client(RegisterClient(4, quorum(4, 1)))])


EXHIBITS = (
    Exhibit(
        name="bakery/F1",
        title="quorums of 2f+1 servers, however many servers there are",
        printed="seed 000, section 2: at least 3f+1 servers, of which any 2f+1 are a quorum",
        lesson="Of five servers two sets of three may share one server only, and that one may be the liar: a read "
        "misses what had been written before. Quorums of ceil((n+f+1)/2) share f+1; with n = 3f+1 that is 2f+1.",
        breaks="never",
        model=lambda: _five_servers(3),
        mended=lambda: _five_servers(quorum(5, 1)),
    ),
    Exhibit(
        name="bakery/F2",
        title="an active set that must be seen alike at a quorum, by readers who are told T times",
        printed="seed 000, algorithm 1, lines 10 to 13, with the limit T of section 3.3",
        lesson="Servers hear of joins at different times. Who is sent one set before a join by one server and after it "
        "by another never sees the same set at both, and hangs. The union of what it saw is as good, and always there.",
        breaks="deadlock",
        model=lambda: _two_listeners(AsPrinted),
        mended=lambda: _two_listeners(Listener),
    ),
    Exhibit(
        name="bakery/F6",
        title="resetting a dead client's register, which only the dead could have signed",
        printed="seed 000, section 5.2: the muteness detector sets number to 0 and choosing to false",
        lesson="Readers believe the greatest signed timestamp, and a reset has none. One server that still shows the "
        "dead one's last value makes others wait for it for ever. A quorum of servers must vote, each for itself.",
        breaks="deadlock",
        model=lambda: _one_dead(WaitsForTheRegister),
        mended=lambda: _one_dead(WaitsForVotes),
    ),
)
