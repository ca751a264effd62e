"""Ricart-Agrawala, broken."""

from trinco.check.model import Model
from trinco.core.context import INSIDE, WAITING, Context
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.permission.ricart_agrawala import RicartAgrawala, system


class NoTieBreak(RicartAgrawala):
    """Compares timestamps only; the ids of two equal ones are not looked at."""

    __slots__ = ()

    def must_wait(self, ctx: Context, source: int, timestamp: int) -> bool:
        return ctx.phase is INSIDE or (ctx.phase is WAITING and self.timestamp < timestamp)


EXHIBITS = (
    Exhibit(
        name="ricart-agrawala/no-tie-break",
        title="Ricart-Agrawala without ids to break ties",
        printed="nowhere; an easy mistake, since most requests have different timestamps",
        lesson="Two processes that ask at the same logical time each see an equal timestamp; each says OK, both enter.",
        breaks="safety",
        model=lambda: Model(nodes=[NoTieBreak(me, 2) for me in range(2)]),
        mended=lambda: Model(nodes=system(2)),
    ),
)
