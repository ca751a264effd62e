"""Campos & Carvalho 1988: mutual exclusion in distributed systems with O(sqrt n) messages of 2 bits.

Every two nodes share an arbiter (árbitro), as two lines of a projective plane share a point, and each arbiter has one
fork (garfo) to lend. Whoever has the forks of all its arbiters may eat; as with Chandy and Misra's philosophers, eating
makes forks dirty, a fork is kept until somebody else wants it, and whoever ate last gives way. So there is one order of
precedence, of which each arbiter keeps a piece, and messages need neither timestamps nor names.

Assumes: no crash, no loss, channels that keep messages in order: a request to give a fork back that comes before the
fork is ignored, and there is no second one. With a plane of order m, of m^2+m+1 nodes, an entry costs 2m messages when
it is the first, 0 when it is repeated, 2m when everybody asks again at once, 4m+2 when no fork is near. Since a client
may lose a fork before it has eaten, a single entry can cost much more; but each entry makes each arbiter take back one
clean fork at most, so on average there are 7 messages per arbiter or fewer. No bound on overtaking: whoever holds the
forks eats for nothing while a request travels to it.

Against the print (seed 002, rules R1 to R17), by the numbers of the exhibits ``forks/F..``:

- F1: that the owner can be asked for the fork is forgotten when it is asked strongly (R17) and when the fork is back
  (R13). Either alone would keep it from being taken for somebody who asks.
- F2: whoever gives a clean fork back can be asked strongly for it again (R14).
- F3: thinking, hungry and eating exclude each other. R1 to R3 set one and clear none.
- F4, F5: forks start at their arbiters and all lists in one order. "Any disposition" with a clean fork at a client, or
  with lists that disagree, deadlocks.
- F6: whoever is asked for a dirty fork gives it back before it eats again (R2 waits for R6).
- A fork and a request together are one message, for which the print has no code: see ``forks_codes``. To have them
  together, whoever leaves keeps its forks for a moment: it may be about to ask again.
- F7: who is asked for a fork that it does not have does not listen (R9). Only where forks are returned unasked, which
  is ours (``forks_predictor``), does it matter.
- Where there is no plane for n, the paper adds fictitious nodes; who runs their arbiters stands in ``quorums.padding``.

The paper's worst case, 4 sqrt n, leaves out that forks are lost before eating. Its average, 1.5 sqrt n, has everybody
hold half of its forks; where all eat equally often one holds one in m+1, and pays 4m^2/(m+1).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from trinco.core.claims import Claims, Fairness, Network, Payer
from trinco.core.context import IDLE, WAITING, Context
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.protocols.permission import forks_predictor
from trinco.protocols.permission.forks_arbiter import Arbiter
from trinco.protocols.permission.forks_codes import ArbiterSays, ClientSays, ToArbiter, ToClient
from trinco.protocols.permission.forks_predictor import Predictor
from trinco.protocols.quorums.padding import padded
from trinco.protocols.quorums.planes import Family, dual, order_for

CLAIMS = Claims(
    paper="Campos & Carvalho, Um algoritmo para exclusão mútua em sistemas distribuídos com troca de O(sqrt n) "
    "mensagens de 2 bits",
    year=1988,
    network=Network.FIFO,
    messages_per_entry=Formula("0..7*m"),
    paid_by={"to-arbiter": Payer.CAUSE},
    amortised=True,
    delay=Formula("0..4"),
    fairness=Fairness.BY_TURNS,
)


class Leaving(Message, tag="leaving"):
    """To oneself, and free: the moment in which whoever leaves may ask again."""

    rounds: int


Rule: TypeAlias = Callable[[Context, Ids], None]
"""What a client does with some of its arbiters."""

ROUNDS = 2
"""Whoever asks again at once first learns that it has left, and then asks."""


@dataclass(slots=True)
class ArbiterHost(Node):
    """The arbiters of a node. A client calls an arbiter by the node that runs it, or by its number if it is that node
    itself: no two of its arbiters run at one other node."""

    me: int
    arbiters: tuple[Arbiter, ...]
    piggy_back: bool

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, ToArbiter)
        place = next(place for place, each in enumerate(self.arbiters) if source in each.priorities)
        self.arbitrate(ctx, place, source, message.code)

    def arbitrate(self, ctx: Context, place: int, client: int, code: ClientSays) -> None:
        arbiter, answer = self.arbiters[place].receive(client, code)
        self.arbiters = (*self.arbiters[:place], arbiter, *self.arbiters[place + 1 :])
        if answer:
            self.answer(ctx, arbiter.number, *answer)

    def answer(self, ctx: Context, arbiter: int, client: int, code: ArbiterSays) -> None:
        self.send(ctx, client, ToClient(code))

    def send(self, ctx: Context, to: int, message: ToClient | ToArbiter) -> None:
        for each in (message,) if self.piggy_back else message.apart():
            ctx.send(to, each)


@dataclass(slots=True)
class CamposCarvalho(ArbiterHost, Process):
    """A client, with arbiters beside it. Thinking is idle, hungry is waiting, eating is inside; the sets are of
    arbiters."""

    quorum: Ids
    requests: Ids
    """Whose request token is here. Without the fork: we may ask for it. With the fork: it is wanted back."""
    forks: Ids = NOBODY
    dirty: Ids = NOBODY
    strong_requests: Ids = NOBODY
    """Whose fork is wanted back before we have eaten."""
    lingers: bool = False
    """Whether what we left with is kept until ``Leaving`` has come round."""
    predictor: Predictor | None = None

    def acquire(self, ctx: Context) -> None:
        """R1."""
        if self.predictor:
            self.predictor.used_again(self.forks & ~self.requests)
        self.act(ctx)

    def release(self, ctx: Context) -> None:
        """R3."""
        if not self.piggy_back:
            self.return_unasked(ctx)
        elif not self.lingers and (self.predictor or self.forks & self.requests):
            self.linger(ctx, ROUNDS)
        self.act(ctx)

    def linger(self, ctx: Context, rounds: int) -> None:
        self.lingers = rounds > 0
        if self.lingers:
            ctx.send(self.me, Leaving(rounds))
        elif ctx.phase is IDLE:
            self.return_unasked(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case ToClient():
                self.hear(source, message.code)
            case ToArbiter():
                ArbiterHost.on_message(self, ctx, source, message)
            case Leaving():
                self.linger(ctx, message.rounds - 1)
        self.act(ctx)

    def answer(self, ctx: Context, arbiter: int, client: int, code: ArbiterSays) -> None:
        if client == self.me:
            self.hear(arbiter, code)
        else:
            ArbiterHost.answer(self, ctx, arbiter, client, code)

    def hear(self, arbiter: int, code: ArbiterSays) -> None:
        """R8 to R11. Who is asked for a fork that it has given back need not listen."""
        if code in (ArbiterSays.FORK, ArbiterSays.FORK_AND_REQUEST):
            self.forks |= bit(arbiter)
        if self.forks & bit(arbiter):
            if code is not ArbiterSays.FORK:
                self.requests |= bit(arbiter)
            if code is ArbiterSays.STRONG_REQUEST:
                self.strong_requests |= bit(arbiter)

    def act(self, ctx: Context) -> None:
        """The first rule that applies, until none does: what an arbiter beside us answers may allow another."""
        while applicable := [(rule, arbiters) for rule, arbiters in self.rules(ctx) if arbiters]:
            rule, arbiters = applicable[0]
            rule(ctx, arbiters)

    def rules(self, ctx: Context) -> tuple[tuple[Rule, Ids], ...]:
        """Those that may apply, each with the arbiters to which it does; for R2 that is nobody but us."""
        wanted = self.forks & self.requests
        if ctx.phase is IDLE and not self.lingers:
            return ((self.give_back, wanted),)
        if ctx.phase is not WAITING:
            return ()
        may_eat = self.forks == self.quorum and not wanted & self.dirty
        return (
            (self.give_back_and_ask, wanted & self.dirty),
            (self.eat, bit(self.me) if may_eat else NOBODY),
            (self.give_up, self.strong_requests & ~self.dirty),
            (self.ask, self.requests & ~self.forks),
        )

    def give_back(self, ctx: Context, forks: Ids) -> None:
        """R5. The request token stays with us."""
        self.learn_of_loss(forks)
        self.hand_over(ctx, forks, ClientSays.DIRTY_FORK)

    def give_back_and_ask(self, ctx: Context, forks: Ids) -> None:
        """R6."""
        self.learn_of_loss(forks)
        self.requests &= ~forks
        self.hand_over(ctx, forks, ClientSays.DIRTY_FORK_AND_REQUEST)

    def eat(self, ctx: Context, _: Ids) -> None:
        """R2."""
        self.dirty = self.forks
        ctx.grant()

    def give_up(self, ctx: Context, forks: Ids) -> None:
        """R7: clean forks, which somebody of higher priority wants."""
        self.requests &= ~forks
        self.hand_over(ctx, forks, ClientSays.CLEAN_FORK)

    def ask(self, ctx: Context, arbiters: Ids) -> None:
        """R4."""
        self.requests &= ~arbiters
        self.tell(ctx, arbiters, ClientSays.REQUEST)

    def learn_of_loss(self, forks: Ids) -> None:
        if self.predictor:
            self.predictor.lost(forks)

    def return_unasked(self, ctx: Context) -> None:
        if self.predictor:
            self.give_back_unasked(ctx, self.predictor.losses() & self.forks & ~self.requests)

    def give_back_unasked(self, ctx: Context, forks: Ids) -> None:
        """We take the request token back as well. The arbiter may have sent it already: then it will find no fork."""
        self.requests |= forks
        self.hand_over(ctx, forks, ClientSays.DIRTY_FORK)

    def hand_over(self, ctx: Context, forks: Ids, code: ClientSays) -> None:
        self.forks &= ~forks
        self.dirty &= ~forks
        self.strong_requests &= ~forks
        self.tell(ctx, forks, code)

    def tell(self, ctx: Context, arbiters: Ids, code: ClientSays) -> None:
        """An arbiter beside us hears it, and answers, at once and for nothing."""
        beside = {each.number: place for place, each in enumerate(self.arbiters)}
        for arbiter in members(arbiters):
            if arbiter in beside:
                self.arbitrate(ctx, beside[arbiter], self.me, code)
            else:
                self.send(ctx, arbiter, ToArbiter(code))


@dataclass(frozen=True)
class Forks:
    """``piggy_back``: a fork and a request travel together. ``returns``: forks that are likely to be wanted by somebody
    else next are given back unasked."""

    piggy_back: bool = True
    returns: bool = False

    def __call__(self, n: int) -> Sequence[ArbiterHost]:
        arrangement = padded(n)
        return self.seated(arrangement.quorums, arrangement.hosts)

    def seated(self, quorums: Family, hosts: Mapping[int, int]) -> list[ArbiterHost]:
        """A client for each quorum, arbiters where they belong; a node beyond the clients runs arbiters only. Forks
        start at the arbiters, request tokens at the clients, and the clients of all lists in one order, that of ids."""
        clients = dual(quorums, max(hosts, default=-1) + 1)
        n = max(len(quorums), *(host + 1 for host in hosts.values()), 1)
        beside: list[list[Arbiter]] = [[] for _ in range(n)]
        for number, host in hosts.items():
            beside[host].append(Arbiter(number, clients[number]))
        nodes = [ArbiterHost(me, tuple(arbiters), self.piggy_back) for me, arbiters in enumerate(beside)]
        return [*map(self._client, nodes, _called(quorums, hosts)), *nodes[len(quorums) :]]

    def _client(self, host: ArbiterHost, quorum: tuple[int, ...]) -> CamposCarvalho:
        arbiters = sum(map(bit, quorum))
        predictor = forks_predictor.beginner(quorum) if self.returns else None
        return CamposCarvalho(
            host.me, host.arbiters, self.piggy_back, quorum=arbiters, requests=arbiters, predictor=predictor
        )  # fmt: skip

    def letters(self, n: int) -> dict[str, float]:
        """``m``: the order of the plane, and the most arbiters that a client has elsewhere."""
        return {"m": order_for(n)}

    @property
    def claims(self) -> Claims:
        return CLAIMS if self.piggy_back else replace(CLAIMS, messages_per_entry=Formula("0..8*m"))


def _called(quorums: Family, hosts: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
    """What each client calls its arbiters."""
    for me, quorum in enumerate(quorums):
        yield tuple(each if hosts[each] == me else hosts[each] for each in quorum)
