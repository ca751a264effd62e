"""The token ring of the slides (seed 001), with a token that is made anew after a crash.

As in the token ring, one token goes round and whoever has it may enter; the ring skips the dead. When the lowest live
process, the coordinator, learns of a crash, it opens a new epoch and asks everybody: have you the token? Whoever is
asked moves to the new epoch, with its token if it has one; tokens of older epochs count for nothing. If all have
answered and nobody has the token, it is lost, and the coordinator makes one.

Assumes: a perfect failure detector and no loss; up to n-1 crashes at any moment. Channels need not be FIFO. Messages
per entry: as the token ring's, and for each crash a question and an answer for everybody.

The slides only name the problem ("perca do testemunho"). On the way to a solution there are four traps, each an
exhibit: the question must say who is dead, or the holder passes the token to a dead process (``slides/S-10a``); an
epoch must say whose it is, or two coordinators open the same one (``slides/S-10b``); a crash while answers come in must
open another (``slides/S-10c``); the coordinator answers its own question when it asks, not when it decides
(``slides/S-10d``).

Epochs compare by coordinator first, then by counter. Coordinators come in the order of their ids, so a new one outbids
all before it even if it never heard of their last epochs; with the counter first it might be ignored for ever. A token
that comes before the question of its epoch is kept until that comes: before, we may not know of the crash. The last
process alive keeps the token.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import IDLE, WAITING, Context
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.protocols.detection.perfect import PerfectDetector

CLAIMS = Claims(
    paper="Fundamentos de sistemas distribuídos, Coordenação: algoritmo baseado em anel, with regeneration",
    network=Network.UNORDERED,
    messages_per_entry=Formula("1..inf"),
    delay=Formula("0..n-1"),
    fairness=Fairness.ROUND_ROBIN,
    crashes=Formula("n-1"),
)

Epoch: TypeAlias = tuple[int, int]
"""(the coordinator, its counter)"""

FIRST: Epoch = (0, 0)


class Token(Message, tag="token"):
    epoch: Epoch


class Query(Message, tag="query"):
    epoch: Epoch
    suspects: Ids


class Have(Message, tag="have"):
    epoch: Epoch


class No(Message, tag="no"):
    epoch: Epoch


@dataclass(slots=True)
class RegeneratingRing(Process):
    me: int
    n: int
    epoch: Epoch = FIRST
    token: Epoch | None = None
    """The epoch of the token that is here."""
    awaited: Ids = NOBODY
    found: bool = False
    detector: PerfectDetector = field(default_factory=PerfectDetector)

    def on_start(self, ctx: Context) -> None:
        self._use_the_token(ctx)

    def acquire(self, ctx: Context) -> None:
        self._use_the_token(ctx)

    def release(self, ctx: Context) -> None:
        self._use_the_token(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        for dead in self.detector.on_message(ctx, source, message):
            self.crash_noticed(ctx, dead)
        if not self.detector.suspects & bit(source):
            self.hear(ctx, source, message)
        self._use_the_token(ctx)

    def crash_noticed(self, ctx: Context, dead: int) -> None:
        lowest = next(members(self._living))
        if self.me == lowest:
            self.open_an_epoch(ctx)

    @property
    def _living(self) -> Ids:
        return (bit(self.n) - 1) & ~self.detector.suspects

    def open_an_epoch(self, ctx: Context) -> None:
        self.found = self.move_to(self.next_epoch())
        self.awaited = self._living & ~bit(self.me)
        ctx.broadcast(Query(self.epoch, self.detector.suspects), to=members(self.awaited))
        self.decide()

    def next_epoch(self) -> Epoch:
        return self.me, self.epoch[1] + 1

    def move_to(self, epoch: Epoch) -> bool:
        """Whether we bring a token along. One that came early may be of a later epoch still."""
        self.epoch = epoch
        if self.token is not None:
            self.token = max(self.token, epoch)
        return self.token is not None

    def hear(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Token() if message.epoch >= self.epoch:
                self.token = message.epoch
            case Query() if message.epoch > self.epoch:
                self.answer(ctx, source, message)
            case Have() | No() if message.epoch == self.epoch:
                self.collect(source, isinstance(message, Have))

    def answer(self, ctx: Context, coordinator: int, query: Query) -> None:
        """The question may be quicker than the news of the crash, and we may pass the token on before that comes."""
        self.detector.suspects |= query.suspects
        has_the_token = self.move_to(query.epoch)
        ctx.send(coordinator, Have(query.epoch) if has_the_token else No(query.epoch))

    def collect(self, source: int, has_the_token: bool) -> None:
        self.awaited &= ~bit(source)
        self.found |= has_the_token
        self.decide()

    def decide(self) -> None:
        if not self.awaited:
            if not self.found:
                self.token = self.epoch
            self.found = False

    def _use_the_token(self, ctx: Context) -> None:
        if self.token != self.epoch:
            return
        if ctx.phase is WAITING:
            ctx.grant()
        elif ctx.phase is IDLE and self.successor != self.me:
            self.token = None
            ctx.send(self.successor, Token(self.epoch))

    @property
    def successor(self) -> int:
        """The next of the ring that is not suspected, oneself if there is no other."""
        ring = ((self.me + step) % self.n for step in range(1, self.n + 1))
        return next(each for each in ring if not self.detector.suspects & bit(each))


def system(n: int) -> list[Process]:
    """The token starts at process 0."""
    return [RegeneratingRing(me, n, token=FIRST if me == 0 else None) for me in range(n)]
