"""Malkhi & Reiter 1998: Byzantine quorum systems, their register (seed 000, 3.1, "registradores").

A register has one writer, its owner, and any number of readers. The owner signs a value with a timestamp greater than
all it used, and has it kept by a quorum of servers; a reader asks a quorum and takes the value with the greatest
timestamp whose signature is right. Two quorums meet in a server that does not lie, so what was written before a read
began is not missed; while a write goes on, a read finds the old value or the new one: the register is *regular*.

Assumes: at most f of the servers lie (see ``quorums``); they can show old values, or none, but not make one. Channels
need not be FIFO. A write and a read take one request to each server and its answer: 2n messages, two message times.

Against the print: requests and answers are numbered, or the late answer of a slow server counts for the next
operation. "Wait until" some register reads so and so would be reads without end; here who waits asks for something
newer than it has read, and a server answers when it has it, as the paper's servers do to listeners in its active set.
"""

from dataclasses import dataclass
from operator import itemgetter

import msgspec

from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Codec, Message
from trinco.core.signed import Signed


class Register(msgspec.Struct, frozen=True):
    owner: int
    name: str

    def in_words(self) -> str:
        return f"p{self.owner}'s {self.name}"


class Record(msgspec.Struct, frozen=True, tag="R"):
    """What the owner signs."""

    register: Register
    value: int = 0
    timestamp: int = 0


class Write(Message, tag="write"):
    access: int
    record: Signed[Record]

    def in_words(self) -> str:
        return f"{self.record.body.register.in_words()} := {self.record.body.value}"


class Written(Message, tag="written"):
    access: int


class Read(Message, tag="read"):
    access: int
    register: Register
    newer_than: int = -1
    """A timestamp: answer when there is a greater one."""

    def in_words(self) -> str:
        return f"read {self.register.in_words()}"


class Value(Message, tag="value"):
    access: int
    record: Signed[Record] | None
    """None: it was never written here."""

    def in_words(self) -> str:
        record = self.record.body if self.record else None
        return f"{record.register.in_words()} = {record.value}" if record else "never written"


REQUESTS: Codec[Message] = Codec(Write, Read)
ANSWERS: Codec[Message] = Codec(Written, Value)

MOST_REGISTERS = 16
"""Of one owner. A liar could think of names without end."""


def judged(ctx: Context, signed: Signed | None, register: Register) -> Record:
    """The record under a signature of the owner's. Anything else is as good as nothing: the register's first state."""
    if signed is None or signed.signer != register.owner or not ctx.verify(signed):
        return Record(register)
    record: Record = signed.body
    return record if record.register == register else Record(register)


@dataclass(slots=True)
class RegisterReplica:
    """The part of a server: its copies of the registers."""

    records: tuple[Signed, ...] = ()
    """By owner and name."""
    waiting: tuple[tuple[int, Read], ...] = ()
    """The reads for which nothing is new enough, at most one a client, by client."""

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match REQUESTS.admit(message):
            case Write() as write:
                self.keep(ctx, source, write.record)
                ctx.send(source, Written(write.access))
            case Read() as read:
                self._answer_or_park(ctx, source, read)

    def _answer_or_park(self, ctx: Context, source: int, read: Read) -> None:
        """A client has one operation at a time: its later read takes the place of an earlier one."""
        known = dict(self.waiting)
        if source in known and known[source].access > read.access:
            return
        known.pop(source, None)
        record = self.kept(read.register)
        if judged(ctx, record, read.register).timestamp > read.newer_than:
            ctx.send(source, Value(read.access, record))
        else:
            known[source] = read
        self.waiting = tuple(sorted(known.items(), key=itemgetter(0)))

    def kept(self, register: Register) -> Signed | None:
        return next((each for each in self.records if each.body.register == register), None)

    def keep(self, ctx: Context, source: int, signed: Signed) -> None:
        """Access control: everybody writes its own registers only."""
        register = signed.body.register
        names = [each.body.register.name for each in self.records if each.body.register.owner == source]
        if register.owner != source or (register.name not in names and len(names) == MOST_REGISTERS):
            return
        known = judged(ctx, self.kept(register), register)
        if judged(ctx, signed, register).timestamp > known.timestamp:
            others = [each for each in self.records if each.body.register != register]
            self.records = tuple(sorted((*others, signed), key=_place))
            for reader, read in self.waiting:
                if read.register == register:
                    self._answer_or_park(ctx, reader, read)


def _place(signed: Signed) -> tuple[int, str]:
    register: Register = signed.body.register
    return register.owner, register.name


@dataclass(slots=True)
class RegisterClient:
    """The part of a client, for all registers: one operation at a time."""

    servers: int
    quorum: int
    timestamp: int = 0
    """The greatest it has used."""
    access: int = 0
    record: Record | None = None
    """What is being written; or, of what is being read, the newest so far."""
    reading: bool = False
    answered: Ids = NOBODY

    def write(self, ctx: Context, name: str, value: int) -> None:
        self.timestamp += 1
        self._begin(Record(Register(ctx.me, name), value, self.timestamp), reading=False)
        ctx.broadcast(Write(self.access, ctx.sign(self.record)), to=range(self.servers))

    def read(self, ctx: Context, register: Register) -> None:
        self._begin(Record(register), reading=True)
        ctx.broadcast(Read(self.access, register), to=range(self.servers))

    def read_again(self, ctx: Context) -> None:
        """Go on with the read that has just returned, for something newer. Who has not answered yet still owes it."""
        assert self.record is not None
        asked, self.answered = self.answered, NOBODY
        read = Read(self.access, self.record.register, self.record.timestamp)
        ctx.broadcast(read, to=members(asked))

    def close(self) -> None:
        """Nobody wants the answers that are still to come."""
        self.record, self.answered = None, NOBODY

    def on_message(self, ctx: Context, source: int, message: Message) -> Record | None:
        """What was written or read, when a quorum has answered. A read stays open until ``close``, or the next one."""
        match ANSWERS.admit(message):
            case Written(access=access) if access == self.access and not self.reading:
                return self._note(source)
            case Value(access, record) if access == self.access and self.reading and self.record is not None:
                found = judged(ctx, record, self.record.register)
                if found.timestamp > self.record.timestamp:
                    self.record = found
                return self._note(source)
        return None

    def _begin(self, record: Record, *, reading: bool) -> None:
        self.access += 1
        self.record, self.reading, self.answered = record, reading, NOBODY

    def _note(self, source: int) -> Record | None:
        """A late answer finds nothing; one more than a quorum changes nothing."""
        if self.record is None or source >= self.servers or self.answered & bit(source):
            return None
        self.answered |= bit(source)
        return self.record if self.answered.bit_count() == self.quorum else None
