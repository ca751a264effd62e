"""Bessani, Fraga & Lung 2005: O confeiteiro bizantino, its algorithm 2 as printed (seed 000, section 4).

Lamport's bakery over a memory that some servers lie about. A client joins the active set, takes a number above all it
reads, says when it is done choosing, and waits for each other member until that one is neither choosing nor before it
by (number, id). All it shares are the objects of section 3: the active set, and two registers a client.

Assumes: FIFO channels (the printed active set does; with ``Collect`` any order will do), at most f of s >= 3f+1
servers lie or crash, no client crashes or lies: for ``number := 0`` nobody else has the signature (``bakery/F6``). The
optimised protocol of section 5 does without that; this one is for reading, and for counting.

Nobody else asking, an entry has six accesses: join, choosing, getSet, number, choosing, getSet; and two to leave:
number, leave. 3s messages for each getSet and 2s for each of the others make 18s: 72 for f=1. With k members there are
O(k) more reads.

Against the print: line 9 reads the own number too; here it is known to be 0, or there would be a seventh access. Line
14 likewise. Who is asked to enter again before ``exit`` has returned begins when it has.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import WAITING, Context
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.protocols.bakery.active_set import LIMIT, Collect, CollectReplica, ListenedReplica, Listener
from trinco.protocols.bakery.quorums import quorum
from trinco.protocols.bakery.register import Register, RegisterClient, RegisterReplica

CLAIMS = Claims(
    paper="Bessani, Fraga & Lung, O confeiteiro bizantino: exclusão mútua em sistemas abertos sujeitos a faltas "
    "bizantinas, algorithm 2",
    year=2005,
    network=Network.FIFO,
    messages_per_entry=Formula("16*s..inf"),
    delay=Formula("12"),
    fairness=Fairness.FIFO_BY_CLOCK,
    crashes=Formula("f"),
    byzantine=Formula("f"),
    roles={"server": Formula("s"), "client": Formula("c")},
)
"""Of the printed active set; ``Algorithm2System.claims`` has those of ``collect``. Crashes and lies are the servers'.
There is no most: who reads the active set is sent every change. A run may end before the last has left: 2s fewer."""

CHOOSING, NUMBER = "choosing", "number"


class Line(Enum):
    """Where a client is in algorithm 2: the line whose access is going on."""

    OUTSIDE = 0
    JOIN = 6
    CHOOSE = 7
    GET_SET = 8
    READ_NUMBERS = 9
    WRITE_NUMBER = 9.5
    CHOSEN = 10
    GET_SET_AGAIN = 11
    WAIT_WHILE_CHOOSING = 13
    WAIT_FOR_TURN = 14
    INSIDE = 15
    RESET_NUMBER = 17
    LEAVE = 18


@dataclass(slots=True)
class Server(Node):
    registers: RegisterReplica = field(default_factory=RegisterReplica)
    active: ListenedReplica | CollectReplica = field(default_factory=ListenedReplica)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.registers.on_message(ctx, source, message)
        self.active.on_message(ctx, source, message)


@dataclass(slots=True)
class Client(Process):
    registers: RegisterClient
    active: Collect
    line: Line = Line.OUTSIDE
    others: Ids = NOBODY
    """The members that have not been read, or waited for."""
    number: int = 0
    """The highest that was read; from line 9 on, its own."""

    def acquire(self, ctx: Context) -> None:
        if self.line is Line.OUTSIDE:
            self._enter(ctx)

    def release(self, ctx: Context) -> None:
        self.number = 0
        self._write(ctx, Line.RESET_NUMBER, NUMBER, 0)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        members = self.active.on_message(ctx, source, message)
        record = self.registers.on_message(ctx, source, message)
        if members is not None:
            self._on_members(ctx, members)
        elif record is not None:
            self._on_record(ctx, record.value)

    def _on_members(self, ctx: Context, members: Ids) -> None:
        self.others = members & ~bit(ctx.me)
        match self.line:
            case Line.JOIN:
                self._write(ctx, Line.CHOOSE, CHOOSING, 1)
            case Line.GET_SET:
                self._read_numbers(ctx)
            case Line.GET_SET_AGAIN:
                self._wait_for_the_next(ctx)
            case Line.LEAVE:
                self.line = Line.OUTSIDE
                if ctx.phase is WAITING:
                    self._enter(ctx)

    def _on_record(self, ctx: Context, value: int) -> None:
        if self.must_wait(ctx.me, value):
            self.registers.read_again(ctx)
            return
        self.registers.close()
        match self.line:
            case Line.CHOOSE:
                self._get_set(ctx, Line.GET_SET)
            case Line.READ_NUMBERS:
                self.number = max(self.number, value)
                self.others &= ~bit(self._other)
                self._read_numbers(ctx)
            case Line.WRITE_NUMBER:
                self._write(ctx, Line.CHOSEN, CHOOSING, 0)
            case Line.CHOSEN:
                self._get_set(ctx, Line.GET_SET_AGAIN)
            case Line.WAIT_WHILE_CHOOSING:
                self._read(ctx, Line.WAIT_FOR_TURN, NUMBER)
            case Line.WAIT_FOR_TURN:
                self.others &= ~bit(self._other)
                self._wait_for_the_next(ctx)
            case Line.RESET_NUMBER:
                self.line = Line.LEAVE
                self.active.leave(ctx)

    def must_wait(self, me: int, value: int) -> bool:
        """The conditions of lines 13 and 14."""
        if self.line is Line.WAIT_FOR_TURN:
            return value != 0 and (value, self._other) < (self.number, me)
        return self.line is Line.WAIT_WHILE_CHOOSING and value != 0

    @property
    def _other(self) -> int:
        """The member that is being read: the smallest."""
        return (self.others & -self.others).bit_length() - 1

    def _enter(self, ctx: Context) -> None:
        self.line = Line.JOIN
        self.active.join(ctx)

    def _get_set(self, ctx: Context, line: Line) -> None:
        self.line = line
        self.active.get_set(ctx)

    def _read_numbers(self, ctx: Context) -> None:
        if self.others:
            self._read(ctx, Line.READ_NUMBERS, NUMBER)
        else:
            self.number += 1
            self._write(ctx, Line.WRITE_NUMBER, NUMBER, self.number)

    def _wait_for_the_next(self, ctx: Context) -> None:
        if self.others:
            self._read(ctx, Line.WAIT_WHILE_CHOOSING, CHOOSING)
        else:
            self.line = Line.INSIDE
            ctx.grant()

    def _read(self, ctx: Context, line: Line, name: str) -> None:
        self.line = line
        self.registers.read(ctx, Register(self._other, name))

    def _write(self, ctx: Context, line: Line, name: str, value: int) -> None:
        self.line = line
        self.registers.write(ctx, name, value)


ACTIVE_SETS = ("listener", "collect")


@dataclass(frozen=True)
class Algorithm2System:
    """Nodes 0 to s-1 are the servers, the others the clients."""

    f: int | None = None
    """None: 1, or 0 where there is no room for four servers and a client."""
    servers: int | None = None
    """None: 3f+1."""
    active_set: str = "listener"
    """As printed, or ``collect``."""
    limit: int = LIMIT
    """T, of the printed one."""

    def __post_init__(self) -> None:
        if self.active_set not in ACTIVE_SETS:
            raise UsageError(f"an active set is read by {' or '.join(ACTIVE_SETS)}, not '{self.active_set}'")
        if self.limit < 1:
            raise UsageError(f"a server must send a reader at least one set, not {self.limit}")

    @property
    def claims(self) -> Claims:
        if self.active_set == "listener":
            return CLAIMS
        return replace(CLAIMS, network=Network.UNORDERED, messages_per_entry=Formula("14*s..inf"))

    def letters(self, n: int) -> dict[str, float]:
        f = self.f if self.f is not None else int(n > 4)
        s = self.servers if self.servers is not None else 3 * f + 1
        return {"s": s, "f": f, "c": n - s}

    def __call__(self, n: int) -> Sequence[Node]:
        s, f, c = (int(value) for value in self.letters(n).values())
        q = quorum(s, f)
        if c < 1:
            raise UsageError(f"{s} servers and a client are {s + 1} nodes, not {n}")
        return [*(self._server() for _ in range(s)), *(self._client(s, q) for _ in range(c))]

    def _server(self) -> Server:
        return Server(active=CollectReplica() if self.active_set == "collect" else ListenedReplica(self.limit))

    def _client(self, s: int, q: int) -> Client:
        kind = Collect if self.active_set == "collect" else Listener
        return Client(RegisterClient(s, q), kind(s, q))
