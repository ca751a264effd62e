"""Leader election by lease: whoever holds it leads, and the fencing token is the term.

A leader renews its lease every third of a term. It leads as long as it believes, not a moment longer: when it cannot
renew it is the first to know. Terms only rise, so whoever sees two leaders' words knows whose are newer.
"""

from trinco.core.context import Context
from trinco.leases.client import Stage
from trinco.leases.nodes.client import Client

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
