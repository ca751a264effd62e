"""Leader election by lease: whoever holds it leads, and the fencing token is the term.

A leader renews its lease every third of a term. It leads as long as it believes, not a moment longer: when it cannot
renew it is the first to know. Terms only rise, so whoever sees two leaders' words knows whose are newer.
"""

from dataclasses import dataclass

from trinco.core.context import Context
from trinco.core.node import Node
from trinco.leases.client import Stage
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.system import QuorumLease

RENEW = "renew"


class Candidate(Client):
    """``acquire`` campaigns, ``release`` resigns."""

    __slots__ = ()

    def took_office(self, ctx: Context) -> None:
        ctx.elected(ctx.me)
        ctx.set_timer(RENEW, self.terms.ttl / 3)

    def on_timer(self, ctx: Context, name: str) -> None:
        if name != RENEW:
            Client.on_timer(self, ctx, name)
        elif self.believes(ctx):
            if self.stage is Stage.HOLDING:
                self.renew(ctx)
            ctx.set_timer(RENEW, self.terms.ttl / 3)
        else:
            self.release(ctx)
            ctx.lost("the lease ran out before enough stores renewed it")

    def release(self, ctx: Context) -> None:
        ctx.cancel_timer(RENEW)
        Client.release(self, ctx)


@dataclass(frozen=True)
class Election:
    """Candidates over the stores of a quorum lease."""

    lease: QuorumLease = QuorumLease(clients=3)

    @property
    def n(self) -> int:
        return self.lease.n

    def letters(self, n: int) -> dict[str, float]:
        return self.lease.letters(n)

    def __call__(self, n: int) -> list[Node]:
        return [
            Candidate(node.owner, node.terms, node.algorithms, node.stores) if isinstance(node, Client) else node
            for node in self.lease(n)
        ]
