"""The composite lease (Algorithm 1), broken where it counts votes."""

from typing import Any

from trinco.check.model import Model
from trinco.core.context import Context
from trinco.core.instant import Instant
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.lab.exhibits.lease_instance import lease, terms
from trinco.leases.chains import Base
from trinco.leases.client import GIVE_UP, RETRY
from trinco.leases.nodes.behaviours import GrantAll, Silent
from trinco.leases.nodes.client import Client
from trinco.leases.operation import Answer, Operation
from trinco.leases.plan import Plan
from trinco.leases.terms import Policy


class Untagged(Client):
    """One list of votes, into which every answer is written, whichever attempt asked for it. The term counts from the
    start of the attempt that is going on."""

    __slots__ = ("term",)

    def __init__(self, *arguments: Any) -> None:
        Client.__init__(self, *arguments)
        self.term: Instant | None = None

    def believed_until(self, ctx: Context) -> Instant:
        self.term = Client.believed_until(self, ctx)
        return self.term

    def belongs(self, operation: Operation) -> bool:
        return True

    def _noted(self, ctx: Context, base: Base, plan: Plan, answer: Answer) -> Base:
        return Client._noted(self, ctx, base, plan.but(until=self.term), answer)


def _two_attempts(client: type[Client]) -> Model:
    return lease(terms(), client=client, inputs={"acquire": 2})


class WithoutTimer(Client):
    """Waits for a quorum of grants or for enough refusals, and for nothing else."""

    __slots__ = ()

    def _start_attempt(self, ctx: Context) -> None:
        Client._start_attempt(self, ctx)
        ctx.cancel_timer(GIVE_UP)


def _one_is_silent(client: type[Client]) -> Model:
    return lease(terms(4, 1), client=client, liars=(Silent,), clocks=None)


class TriesAgain(Client):
    """Sleeps for no time between two attempts. It hears every store out and so needs two numbers for its attempts, in
    turn: trying for ever takes finitely many states."""

    __slots__ = ()

    def _start_attempt(self, ctx: Context) -> None:
        self.attempt %= 2
        Client._start_attempt(self, ctx)

    def _refusals(self, ctx: Context) -> int:
        heard_out = all(base.grade is not None for base in self.bases)
        return Client._refusals(self, ctx) if heard_out else 0

    def _fail(self, ctx: Context, reason: str) -> None:
        Client._fail(self, ctx, reason)
        self.on_timer(ctx, RETRY)


def _two_want_both(client: type[Client], policy: Policy) -> Model:
    """Every answer comes in time (``fires=0``), and nothing runs out."""
    return lease(terms(2, policy=policy), client=client, clocks=None, fires=0)


def _liars(liars: int) -> Model:
    """Without time: a liar needs none, and the honest stores are alike."""
    honest = frozenset(range(2, 6 - liars))
    return lease(terms(4, 1), liars=(GrantAll,) * liars, clocks=None, symmetric=[honest])


EXHIBITS = (
    Exhibit(
        name="lease/E1",
        title="the composite lease with answers that belong to no attempt",
        printed="Mendes et al., Algorithm 1, lines 4-7: L is filled by whatever answer comes in",
        lesson="A grant of an attempt that was given up, and is being released, counts for the next attempt.",
        breaks="safety",
        model=lambda: _two_attempts(Untagged),
        mended=lambda: _two_attempts(Client),
    ),
    Exhibit(
        name="lease/E3",
        title="the composite lease without a timer",
        printed="Mendes et al., Algorithm 1, line 7: wait for more than 2f grants or more than f refusals",
        lesson="Two grants, one refusal and a silent store are neither: the client waits for ever.",
        breaks="deadlock",
        model=lambda: _one_is_silent(WithoutTimer),
        mended=lambda: _one_is_silent(Client),
    ),
    Exhibit(
        name="lease/E22",
        title="give up, release and try again, for ever",
        printed="Mendes et al., section 2.1, promise no more than obstruction freedom; sleeping (line 13) is all "
        "that ends a tie",
        lesson="Of two stores each client gets one, is refused by the other, gives back and tries again. With "
        "tickets the larger one yields.",
        breaks="livelock",
        model=lambda: _two_want_both(TriesAgain, Policy.BACKOFF),
        mended=lambda: _two_want_both(Client, Policy.PRIORITY),
    ),
    Exhibit(
        name="lease/two-liars",
        title="one more liar than the composite lease can bear",
        printed="nowhere; Mendes et al. ask for n = 3f + 1 stores, and no fewer would do",
        lesson="Four stores bear one liar. Two that grant everything to everybody, and one honest store each, are "
        "two quorums that share no honest store.",
        breaks="safety",
        model=lambda: _liars(2),
        mended=lambda: _liars(1),
    ),
)
