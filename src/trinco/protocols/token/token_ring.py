"""The token ring of the slides (seed 001, "algoritmo baseado em anel").

The processes form a ring by their ids, and one token (testemunho) goes round it. Whoever holds the token may enter; it
passes the token on when it leaves, or at once when it does not want to enter. The token travels even when nobody asks.

Assumes: no crash, no loss: a lost token (``slides/S-6``), or two (``token-ring/two-tokens``), break it. Messages per
entry: one when everybody enters at every visit, n for a single process that always asks, unbounded when nobody does.

Against the slides: their prose says 1 to n messages, their table 1 to infinity; the table is right.
"""

from dataclasses import dataclass

from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context, Phase
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Process

CLAIMS = Claims(
    paper="Fundamentos de sistemas distribuídos, Coordenação: algoritmo baseado em anel",
    network=Network.UNORDERED,
    messages_per_entry=Formula("1..inf"),
    delay=Formula("0..n-1"),
    fairness=Fairness.ROUND_ROBIN,
    bypass=Formula("n-1"),
)


class Token(Message, tag="token"):
    pass


@dataclass(slots=True)
class TokenRing(Process):
    successor: int
    starts: bool

    def on_start(self, ctx: Context) -> None:
        if self.starts:
            self._pass_on(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if ctx.phase is Phase.WAITING:
            ctx.grant()
        else:
            self._pass_on(ctx)

    def acquire(self, ctx: Context) -> None:
        """Nothing to send: the token will come by."""

    def release(self, ctx: Context) -> None:
        self._pass_on(ctx)

    def _pass_on(self, ctx: Context) -> None:
        ctx.send(self.successor, Token())


def system(n: int) -> list[Process]:
    """The token starts at process 0."""
    return [TokenRing(successor=(me + 1) % n, starts=me == 0) for me in range(n)]
