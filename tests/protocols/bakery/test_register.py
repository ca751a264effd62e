"""The signed register: "the value read is the old value of the register or the value being written"."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from tests.mutants import bakery_objects as mutants
from trinco.check.model import Model
from trinco.check.run import Result, check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.core.context import Context
from trinco.core.event import Event, Kind
from trinco.core.message import Message
from trinco.core.monitor import Monitor
from trinco.core.node import Node, Process
from trinco.core.signed import Signed
from trinco.protocols.bakery.quorums import quorum
from trinco.protocols.bakery.register import (
    MOST_REGISTERS,
    Read,
    Record,
    Register,
    RegisterClient,
    RegisterReplica,
    Value,
    Write,
    Written,
)


@dataclass(slots=True)
class Server(Node):
    replica: RegisterReplica

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.replica.on_message(ctx, source, message)


class Liar(Server):
    """Keeps the first value it is given. Says that it has written, and shows that value, what it should, or nothing,
    or something that it has signed itself; or says nothing."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Write():
                if not self.replica.records:
                    self.replica.records = (message.record,)
                ctx.send(source, Written(message.access))
            case Read():
                kept = self.replica.kept(message.register)
                answers = [kept, None, ctx.sign(Record(message.register, 9, 9))]
                choice = ctx.choose(4)
                if choice < 3:
                    ctx.send(source, Value(message.access, answers[choice]))


@dataclass(slots=True)
class Writer(Process):
    """Writes 1, then 2, .., one each time it asks."""

    registers: RegisterClient
    value: int = 0

    def acquire(self, ctx: Context) -> None:
        self.value += 1
        self.registers.write(ctx, "flag", self.value)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if self.registers.on_message(ctx, source, message) is not None:
            self.registers.close()
            ctx.grant(self.value)

    def release(self, ctx: Context) -> None:
        pass


@dataclass(slots=True)
class Reader(Process):
    registers: RegisterClient
    register: Register

    def acquire(self, ctx: Context) -> None:
        self.registers.read(ctx, self.register)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        record = self.registers.on_message(ctx, source, message)
        if record is not None:
            self.registers.close()
            ctx.grant(record.value)

    def release(self, ctx: Context) -> None:
        pass


@dataclass(slots=True)
class Regular(Monitor):
    """A read returns the last value written before it began, or one whose writing began before it ended."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.ACQUIRE, Kind.GRANT})
    writer: int
    begun: int = 0
    written: int = 0
    expected: int = 0

    def observe(self, event: Event) -> str | None:
        if event.node == self.writer:
            self.begun += event.kind is Kind.ACQUIRE
            self.written += event.kind is Kind.GRANT
        elif event.kind is Kind.ACQUIRE:
            self.expected = self.written
        elif not self.expected <= event.token <= self.begun:
            return f"read {event.token}; {self.expected} was written before, {self.begun} is the last that was begun"
        return None


def model(servers: list[Server], f: int, writes: int = 1, client: type[RegisterClient] = RegisterClient) -> Model:
    """On a network that reorders. Liars are those of the servers that are."""
    n = len(servers)
    q = quorum(n, f)
    clients = [Writer(client(n, q)), Reader(client(n, q), Register(n, "flag"))]
    return Model(
        nodes=[*servers, *clients],
        k=2,
        network=Network.UNORDERED,
        inputs={"acquire": writes},
        byzantine=frozenset(me for me, server in enumerate(servers) if isinstance(server, Liar)),
        reductions=False,
        monitors=[Regular(writer=n)],
    )


def honest(count: int, replica: type[RegisterReplica] = RegisterReplica) -> list[Server]:
    return [Server(replica()) for _ in range(count)]


def with_liar() -> list[Server]:
    return [*honest(3), Liar(RegisterReplica())]


def kind_of(result: Result) -> str | None:
    return result.violation.kind if result.violation else None


@pytest.mark.parametrize(
    ("servers", "f", "writes", "states"),
    [(with_liar(), 1, 1, 43_594), (honest(2), 0, 2, 1_575), (honest(3), 0, 1, 3_282)],
    ids=["one of four lies", "two servers, twice", "three servers"],
)
def test_a_register_is_regular_and_its_operations_end(servers: list[Server], f: int, writes: int, states: int) -> None:
    """Whatever the liar says, and in whatever order messages come."""
    result = check(model(servers, f, writes))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


BROKEN = {
    "readers look at no signature": model(with_liar(), 1, client=mutants.LooksAtNoSignature),
    "servers look at no timestamp": model(honest(3, mutants.KeepsTheLastToCome), 0, 2),
    "late answers count": model(honest(3), 0, 2, mutants.TakesLateAnswers),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_rule_that_is_dropped_is_missed(broken: Model) -> None:
    assert kind_of(check(broken, liveness=False)) == "monitor"


class Ear(Context):
    """Keeps what is sent."""

    __slots__ = ("me", "sent")

    def __init__(self, me: int) -> None:
        self.me = me
        self.sent: list[tuple[int, Message]] = []

    def send(self, to: int, message: Message) -> None:
        self.sent.append((to, message))


def signed(owner: int, value: int, timestamp: int, signer: int | None = None) -> Signed:
    return Signed(owner if signer is None else signer, Record(Register(owner, "flag"), value, timestamp))


@pytest.mark.parametrize(
    "record",
    [
        signed(5, 7, 9),
        signed(4, 7, 9, signer=5),
        signed(4, 7, 1),
    ],
    ids=["another's register", "another's signature", "an old one"],
)
def test_a_server_keeps_only_what_the_owner_signed_and_sent_itself(record: Signed) -> None:
    """ "Only client c can write c's registers"."""
    replica = RegisterReplica((signed(4, 1, 2),))
    ear = Ear(0)
    replica.on_message(ear, 4, Write(1, record))
    assert replica.records == (signed(4, 1, 2),)
    assert ear.sent == [(4, Written(1))]


@pytest.mark.parametrize(
    "body",
    ["rubbish", Record("flag", 7, 9), Record(Register(4, "flag"), "7", 9)],  # type: ignore[arg-type]
    ids=["no record", "no register", "no number"],
)
def test_what_is_no_record_is_not_even_answered(body: object) -> None:
    replica, ear = RegisterReplica((signed(4, 1, 2),)), Ear(0)
    replica.on_message(ear, 4, Write(1, Signed(4, body)))  # type: ignore[arg-type]
    assert (replica.records, ear.sent) == ((signed(4, 1, 2),), [])


def test_an_owner_has_only_so_many_registers() -> None:
    replica, ear = RegisterReplica(), Ear(0)
    for number in range(2 * MOST_REGISTERS):
        replica.on_message(ear, 4, Write(1, Signed(4, Record(Register(4, f"{number:02}"), 1, 1))))
    assert len(replica.records) == MOST_REGISTERS
    replica.on_message(ear, 4, Write(2, Signed(4, Record(Register(4, "03"), 5, 2))))
    assert replica.kept(Register(4, "03")) == Signed(4, Record(Register(4, "03"), 5, 2))


def test_who_asks_for_something_newer_is_answered_when_it_is_written() -> None:
    replica, ear = RegisterReplica((signed(4, 1, 2),)), Ear(0)
    replica.on_message(ear, 5, Read(3, Register(4, "flag"), newer_than=2))
    assert ear.sent == []
    replica.on_message(ear, 4, Write(1, signed(4, 0, 3)))
    assert ear.sent == [(5, Value(3, signed(4, 0, 3))), (4, Written(1))]
    assert replica.waiting == ()


def test_a_client_has_one_read_parked_at_a_server_the_last() -> None:
    """However many it has begun and given up, and in whatever order they come."""
    replica, ear = RegisterReplica(), Ear(0)
    for access in (1, 3, 2):
        replica.on_message(ear, 5, Read(access, Register(4, str(access)), newer_than=0))
    assert replica.waiting == ((5, Read(3, Register(4, "3"), newer_than=0)),)


def test_nobody_but_servers_answers_and_each_counts_once() -> None:
    client, ear = RegisterClient(4, 3), Ear(4)
    client.write(ear, "flag", 1)
    for source in (0, 0, 1, 5, 6):
        assert client.on_message(ear, source, Written(1)) is None
    assert client.on_message(ear, 2, Written(1)) == Record(Register(4, "flag"), 1, 1)
