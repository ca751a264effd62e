"""Voting over totally ordered multicast (seed 001, "como satisfazer V2?"), after Lin and, loosely, Maekawa 1985.

Requests and releases go through one total order to all m voters, by a fixed sequencer. Each voter queues requests as
they are delivered and gives its vote to the head; a release takes the head away and the vote goes to the next. All
voters see the same order, so all vote alike, and a client that has the votes of more than half enters.

Assumes: no crash, no loss. Channels need not be FIFO: the sequencer's numbers make the order. Everybody is served in
the order of delivery: no deadlock (V1), no starvation (V2). Messages per entry: the request to the sequencer and from
there to m voters, m votes, and the release as the request: 3m + 2. Three message times before an entry.

Against the slides: "in the rest the algorithm is the same" would leave the voters' NOK and the random back-off, with
which a client can lose for ever (``slides/S-4``): V2 needs the queue. And a vote says for which turn it is: a client
does not wait for all of them, so those of slow voters come later, perhaps while it waits for its next turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import WAITING, Context
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.protocols.broadcast.sequencer import NUMBERS, HoldBack, Numbered, Sequencer

CLAIMS = Claims(
    paper="Fundamentos de sistemas distribuídos, Coordenação: algoritmo descentralizado, como satisfazer V2?",
    network=Network.UNORDERED,
    messages_per_entry=Formula("2*m+2..3*m+2"),
    amortised=True,
    delay=Formula("3"),
    fairness=Fairness.IN_TOTAL_ORDER,
    roles={"voter": Formula("m"), "sequencer": Formula("1"), "client": Formula("n-m-1")},
)
"""Every entry takes 3m + 2 messages. Of the last one a run may not see all: the sequencer passes its release on when
everybody has been served. A vote may come when its entry is long over and another has begun, so they are judged on
average.
"""

USUAL = 3
"""Voters, where nobody says how many."""


class Request(Message, tag="request"):
    turn: int


class Ok(Message, tag="ok"):
    turn: int


class Release(Message, tag="release"):
    pass


@dataclass(slots=True)
class Voter(Node):
    order: HoldBack = field(default_factory=HoldBack)
    queue: tuple[tuple[int, int], ...] = ()
    """(client, its turn), in the order of delivery. The head has our vote."""

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Numbered)
        for origin, body in self.order.arrive(message):
            self.deliver(ctx, origin, body)

    def deliver(self, ctx: Context, origin: int, message: Message) -> None:
        match message:
            case Request(turn):
                self.queue = (*self.queue, (origin, turn))
                if len(self.queue) == 1:
                    self.vote(ctx)
            case Release():
                self.queue = self.queue[1:]
                if self.queue:
                    self.vote(ctx)

    def vote(self, ctx: Context) -> None:
        client, turn = self.queue[0]
        ctx.send(client, Ok(turn))


@dataclass(slots=True)
class Client(Process):
    m: int
    numbers: int = NUMBERS
    turn: int = 0
    granted: Ids = NOBODY

    @property
    def sequencer(self) -> int:
        return self.m

    def acquire(self, ctx: Context) -> None:
        self.turn = (self.turn + 1) % self.numbers
        ctx.send(self.sequencer, Request(self.turn))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if ctx.phase is WAITING and self.counts(message):
            self.granted |= bit(source)
            if 2 * self.granted.bit_count() > self.m:
                self.granted = NOBODY
                ctx.grant()

    def counts(self, message: Message) -> bool:
        """Whether it is a vote for this turn, not a late one for another."""
        return isinstance(message, Ok) and message.turn == self.turn

    def release(self, ctx: Context) -> None:
        ctx.send(self.sequencer, Release())


@dataclass(frozen=True)
class OrderedVotingSystem:
    """Nodes 0 to m-1 vote, node m is the sequencer, the others ask."""

    m: int | None = None
    """None: three, or half of the others where those are fewer."""
    numbers: int = NUMBERS
    """Of messages and turns, before they begin again from 0. With few of them the checker comes to an end."""

    def voters(self, n: int) -> int:
        return min(USUAL, (n - 1) // 2) if self.m is None else self.m

    def letters(self, n: int) -> dict[str, float]:
        return {"m": self.voters(n)}

    def __call__(self, n: int) -> Sequence[Node]:
        m = self.voters(n)
        if not 0 < m < n - 1:
            raise UsageError(f"{n} nodes, of which {m} are to vote: there must be a voter, a sequencer and a client")
        if self.numbers < 2:
            raise UsageError(f"{self.numbers} numbers: it takes at least 2 to tell a message from the next")
        voters = [Voter(HoldBack(self.numbers)) for _ in range(m)]
        return [*voters, Sequencer(m, self.numbers), *(Client(m, self.numbers) for _ in range(n - m - 1))]
