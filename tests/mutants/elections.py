"""The elections with one rule dropped each, to see that the checker notices."""

from trinco.core.context import Context
from trinco.core.message import Message
from trinco.core.node import Elector
from trinco.protocols.election import ring
from trinco.protocols.election.bully import Bully, Coordinator, Election, Ok, Stage
from trinco.protocols.election.ring import Circulating, Member


class OnlySaysOk(Bully):
    """Says OK and holds no election of its own: whoever stood back for it waits in vain, again and again."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Election):
            ctx.send(source, Ok())
        else:
            Bully.on_message(self, ctx, source, message)


class NeverSaysOk(Bully):
    """Holds an election of its own and says nothing: who asked leads as well."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Election):
            self.elect(ctx)
        else:
            Bully.on_message(self, ctx, source, message)


class TellsTheNearest(Bully):
    """Tells only the process next below that it leads."""

    __slots__ = ()

    def _lead(self, ctx: Context) -> None:
        self.stage, self.leader = Stage.NORMAL, self.me
        ctx.elected(self.me)
        ctx.broadcast(Coordinator(), to=range(max(self.me - 1, 0), self.me))


class ReturnsInSilence(Bully):
    """Comes back and holds no election: it never learns who leads, and if it is the highest, never does."""

    __slots__ = ()

    def on_restart(self, ctx: Context, stored: object) -> None:
        Elector.on_restart(self, ctx, stored)


class NeverPassesOver(Member):
    """Waits for no acknowledgement: what it sends to a crashed successor is gone."""

    __slots__ = ()

    def _attempt(self, ctx: Context, message: Circulating, to: int) -> None:
        ctx.send(to, message)


class TrustsTheRing(Member):
    """Waits for its message however long it takes: if somebody crashed with it, for ever."""

    __slots__ = ()

    def _start_round(self, ctx: Context) -> None:
        Member._start_round(self, ctx)
        ctx.cancel_timer("round")


class PassesOverTheWinner(Member):
    """Tells everybody else that a crashed process leads."""

    __slots__ = ()

    def _found_crashed(self, ctx: Context, message: Circulating, successor: int) -> None:
        self._attempt(ctx, message, (successor + 1) % self.n)


class HastyMember(Member):
    """Holds an election as soon as it is back."""

    __slots__ = ()

    def on_restart(self, ctx: Context, stored: object) -> None:
        self._start_round(ctx)


class NobodyIsTold(Member):
    """Knows who leads when its ELECTION is back, and keeps it to itself."""

    __slots__ = ()

    def _pass_on(self, ctx: Context, message: Circulating) -> None:
        if isinstance(message, ring.Coordinator):
            self._on_circulating(ctx, message)
        else:
            Member._pass_on(self, ctx, message)
