"""Lin, Lian, Chen & Zhang 2004: a practical distributed mutual exclusion protocol in dynamic peer-to-peer systems.

There are m coordinators, and each has one vote (seed 001, "algoritmo descentralizado"). A client asks all of them; a
coordinator whose vote is free gives it and says OK, otherwise it says NOK. With more than half of the votes the client
enters; with fewer it gives back those it has, waits for a random time as Ethernet does, and asks again.

Assumes: no crash, no loss. Channels need not be FIFO: a client's request that overtakes its own release finds the vote
given, to itself, and must still get a NOK. Safe (S1), and no more: clients can spoil each other's majority for ever.
Messages per entry: 2m for each of k attempts, and one for every vote that is returned. That is 3m when nobody else
asks; the slides' 2mk + m leaves out the votes of attempts that failed.

A coordinator that is reset forgets whom it gave its vote, and gives it again. Two clients with v votes each share at
least 2v - m coordinators, so 2v - m - 1 may be forgetful: more ``votes`` bear more of them. With a bare majority of an
odd m a single one lets two in (``slides/S-3``). One that stays away blocks everybody, whatever the votes.

Against the slides: they return votes "if the majority is NOK". Half OK and half NOK is neither that nor enough: two
clients that have half each wait for ever (``slides/S-2``). Here a client counts when all m have answered, and returns
what is not enough. Since it waits for all, no answer is ever left over from the attempt before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Message
from trinco.core.node import Node, Process

CLAIMS = Claims(
    paper="Lin, Lian, Chen & Zhang, A practical distributed mutual exclusion protocol in dynamic peer-to-peer systems",
    year=2004,
    network=Network.UNORDERED,
    messages_per_entry=Formula("3*m..inf"),
    delay=Formula("2"),
    fairness=Fairness.NONE,
    deadlock_free=False,
    starvation_free=False,
    roles={"coordinator": Formula("m"), "client": Formula("n-m")},
)

MOST_DOUBLINGS = 60
"""More would be no time that a clock has."""
USUAL = 3
"""Coordinators, where nobody says how many."""


class Request(Message, tag="request"):
    pass


class Ok(Message, tag="ok"):
    pass


class Nok(Message, tag="nok"):
    pass


class Release(Message, tag="release"):
    pass


@dataclass(slots=True)
class Coordinator(Node):
    given_to: int | None = None

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Request() if self.given_to is None:
                self.given_to = source
                ctx.send(source, Ok())
            case Request():
                ctx.send(source, Nok())
            case Release() if self.given_to == source:
                self.given_to = None


@dataclass(slots=True)
class Client(Process):
    m: int
    votes: int
    slot: float = 2.0
    doublings: int = 10
    answers: int = 0
    granted: Ids = NOBODY
    failures: int = 0
    """Attempts in a row that failed, as far as they matter."""

    def acquire(self, ctx: Context) -> None:
        self.ask(ctx)

    def ask(self, ctx: Context) -> None:
        ctx.broadcast(Request(), to=range(self.m))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.answers += 1
        if isinstance(message, Ok):
            self.granted |= bit(source)
        if self.answers == self.m:
            self.answers = 0
            self.count(ctx)

    def count(self, ctx: Context) -> None:
        """All answers are in."""
        if self.granted.bit_count() >= self.votes:
            self.failures = 0
            ctx.grant()
        else:
            self.give_back(ctx)
            self.back_off(ctx)

    def give_back(self, ctx: Context) -> None:
        granted, self.granted = self.granted, NOBODY
        ctx.broadcast(Release(), to=members(granted))

    def back_off(self, ctx: Context) -> None:
        """The longest wait doubles with every failure in a row; the shortest is a slot, since asking again at once
        would only spoil the attempts of others."""
        self.failures = min(self.failures + 1, self.doublings)
        ctx.set_timer("retry", self.slot * (1 + ctx.choose(2**self.failures)))

    def on_timer(self, ctx: Context, name: str) -> None:
        self.ask(ctx)

    def release(self, ctx: Context) -> None:
        self.give_back(ctx)


@dataclass(frozen=True)
class VotingSystem:
    """Nodes 0 to m-1 coordinate, the others ask."""

    m: int | None = None
    """None: three, or half of the nodes where those are fewer."""
    votes: int | None = None
    """None: more than half of m."""
    slot: float = 2.0
    """The unit of the back-off, a round trip."""
    doublings: int = 10
    """How often the back-off doubles, at most."""

    def coordinators(self, n: int) -> int:
        return min(USUAL, n // 2) if self.m is None else self.m

    def letters(self, n: int) -> dict[str, float]:
        return {"m": self.coordinators(n)}

    def __call__(self, n: int) -> Sequence[Node]:
        m = self.coordinators(n)
        votes = m // 2 + 1 if self.votes is None else self.votes
        if not 0 < m < n:
            raise UsageError(f"{n} nodes, of which {m} are to be coordinators: there must be one, and a client")
        if not m < 2 * votes <= 2 * m:
            raise UsageError(f"{votes} of {m} votes: it takes more than half, and there are no more than {m}")
        if not 0 < self.slot < math.inf:
            raise UsageError(f"a slot of {self.slot:g}: the back-off needs a time above 0, and an end")
        if not 0 <= self.doublings <= MOST_DOUBLINGS:
            raise UsageError(f"{self.doublings} doublings: the back-off may double 0 to {MOST_DOUBLINGS} times")
        clients = [Client(m, votes, self.slot, self.doublings) for _ in range(n - m)]
        return [*(Coordinator() for _ in range(m)), *clients]
