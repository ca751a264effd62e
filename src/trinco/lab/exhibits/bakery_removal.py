"""Holes in how servers of the Byzantine bakery remove whoever has fallen silent, by their numbers in the spec.

No paper has them: in the paper (seed 000) every server removes alone. Removal by q signatures, which takes its place,
had these holes at first. In each instance the clients are p0 and p1, p1 is the one to be removed, and servers follow.
"""

from dataclasses import astuple, dataclass

from trinco.check.model import Clocks, Model, Timers
from trinco.check.view import View
from trinco.core.context import INSIDE, WAITING, Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.lab.exhibits.bakery_instance import LOCK, begun, first_ticket, give_turns, suspicion, untimed
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.bakery.automaton import State
from trinco.protocols.bakery.certificates import Begun
from trinco.protocols.bakery.lying_servers import Mute
from trinco.protocols.bakery.messages import Exit, Get, Go, Listen, Removed, SetReply, Suspect
from trinco.protocols.bakery.muteness import Timing
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.turns import Turn, turn_of


def removes_p1(view: View) -> bool:
    return bool(view.node(2).removed)


REMOVAL = {"the removal of p1": removes_p1}


class Leapfrog(Node):
    """A client that lies: begins its first turn at p2 only, begins its second at p3 only, and leaves that one."""

    __slots__ = ()

    def on_start(self, ctx: Context) -> None:
        ctx.send(2, Get(1, ctx.sign(Begun(LOCK, ctx.me, 1))))
        ctx.send(3, Get(2, ctx.sign(Begun(LOCK, ctx.me, 2))))
        ctx.send(3, Exit(2, ()))


class NotConcerned(Server):
    """Has nothing to say about a turn that is over here."""

    __slots__ = ()

    def _hear_suspicion(self, ctx: Context, source: int, message: Suspect) -> None:
        if not self.is_over(message.turn.body.client, message.turn.body.sid):
            Server._hear_suspicion(self, ctx, source, message)


def _leapt_over(server: type[Server]) -> Model:
    """Two servers, f=0. Messages are quick, so that nobody else is suspected."""
    client, _, *servers = untimed(4, f=0, servers=2, choosing=1.0)
    nodes = [client, Leapfrog(), *map(server.in_place_of, servers)]
    return Model(nodes=nodes, timers=Timers.PUNCTUAL, clocks=Clocks(), sometimes=REMOVAL)


@dataclass(slots=True)
class HasItsTicket(Process):
    """A client in the middle of its first turn, and it begins no other. Counts votes; its lease has no end."""

    quorum: int
    under_way: tuple[tuple[int, Message], ...]
    """(server, what is on its way there)"""
    votes: Ids = NOBODY
    waited_for_at: tuple[int, ...] = ()
    """The servers at which somebody waits until it leaves: no other has to know."""
    removed: bool = False

    def acquire(self, ctx: Context) -> None:
        for server, message in self.under_way:
            ctx.send(server, message)
        self.under_way = ()
        self._go_by_what_it_knows(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, SetReply | Go) and message.vote is not None:
            self.votes |= bit(source)
        self.removed |= isinstance(message, Removed)
        self._go_by_what_it_knows(ctx)

    def _go_by_what_it_knows(self, ctx: Context) -> None:
        if self.removed:
            self._give_up(ctx)
        elif ctx.phase is WAITING and self.votes.bit_count() >= self.quorum:
            ctx.grant()

    def _give_up(self, ctx: Context) -> None:
        if ctx.phase is WAITING:
            ctx.refuse("removed")
        elif ctx.phase is INSIDE:
            ctx.lost("revoked")

    def release(self, ctx: Context) -> None:
        ctx.broadcast(Exit(1, ()), to=self.waited_for_at)


class PromisesNothing(Server):
    """Never votes for a turn that it has suspected, if it knew the turn by then. It remembers no other suspicion."""

    __slots__ = ()

    def _has_suspected(self, ctx: Context, client: int, sid: int) -> bool:
        return False


class Deaf(Mute):
    """Whatever is sent to it makes no difference."""

    __slots__ = ()

    def ignores(self, message: Message) -> bool:
        return True


class VotedAndSuspects(Deaf):
    """A server that lies: has voted for p1, has told p2 that p1 is silent, and tells p4 so when the run begins."""

    __slots__ = ()

    def on_start(self, ctx: Context) -> None:
        ctx.send(4, self.muteness.suspect(ctx, self.turns[0].signed))


def _late_at_one_server(kind: type[Server]) -> Model:
    """Servers p2 to p5, f=1, p5 lies. p1 has ticket 1 and the votes of p3 and p5. It was too slow for p2, which
    suspects it; its GET and SET are still on their way to p4. p0 has ticket 2 and the votes of p4 and p5, and waits
    for p1 at p2. Links may be as slow as they like: what p2 told the others, and what p3 is told, comes too late."""
    _, _, p2, p3, p4, p5 = untimed(6, f=1, choosing=1.0)
    waits = Turn(0, 1, begun(0, 1), State.E2, number=2, waits=((1, 1),))
    give_turns(p2, waits, Turn(1, 1, begun(1, 1), dead=True))
    p2.muteness.remember(suspicion(2, of=1))
    p2.muteness.remember(suspicion(5, of=1))
    give_turns(p4, Turn(0, 1, begun(0, 1), State.C, number=2))
    give_turns(p5, Turn(1, 1, begun(1, 1)))
    ticket = first_ticket(1, (2, 3, 5))
    clients = [
        HasItsTicket(p2.judge.quorum, ((2, Listen(1, (), 1)),), bit(4) | bit(5)),
        HasItsTicket(p2.judge.quorum, ((4, Get(1, begun(1, 1))), (4, ticket)), bit(3) | bit(5), waited_for_at=(2,)),
    ]
    nodes = [*clients, p2, Deaf.in_place_of(p3), kind.in_place_of(p4), VotedAndSuspects.in_place_of(p5)]
    return Model(nodes=nodes, sometimes=REMOVAL)


class AwaitsTheSet(Server):
    """The server that p1's SET has not reached."""

    __slots__ = ()

    def on_start(self, ctx: Context) -> None:
        self.muteness.watch_choosing(ctx, 1, 1)


class TrustsTickets(Server):
    """Suspects nobody who waits with a ticket, whatever other servers say."""

    __slots__ = ()

    def _watch_accused(self, ctx: Context, client: int, sid: int) -> None:
        turn = turn_of(self.turns, client)
        if turn is None or turn.sid != sid:
            Server._watch_accused(self, ctx, client, sid)

    def _join_if_hopeless(self, ctx: Context, client: int, sid: int) -> None:
        pass


class Untiring(Timing):
    """Whoever waits should speak every second; whoever was let in may stay for ever."""

    __slots__ = ()

    @property
    def heartbeat(self) -> float:
        return 1.0


def _half_a_set(kind: type[Server]) -> Model:
    """Two servers, f=0. p1 crashed after its SET had gone to p3 only; p0 was choosing then, and has the same ticket."""
    _, p1, p2, p3 = untimed(4, f=0, servers=2, choosing=1.0)
    give_turns(p2, Turn(0, 1, begun(0, 1)), Turn(1, 1, begun(1, 1)))
    give_turns(p3, Turn(0, 1, begun(0, 1)), Turn(1, 1, begun(1, 1), State.E2, number=1, waits=((0, 1),)))
    p3.muteness.timing = Untiring(*astuple(p3.timing))
    ticket, listen = first_ticket(0, (2, 3)), Listen(1, (), 1)
    client = HasItsTicket(p2.judge.quorum, ((2, ticket), (3, ticket), (2, listen), (3, listen)))
    nodes = [client, p1, AwaitsTheSet.in_place_of(p2), kind.in_place_of(p3)]
    return Model(nodes=nodes, called=frozenset({0}), sometimes=REMOVAL)


EXHIBITS = (
    Exhibit(
        name="bakery/F25",
        title="a turn that its client has leapt over",
        printed="no paper: removal certificates without the signatures of servers for which the turn is over",
        lesson="p2 holds p1's first turn, which p3 never saw, and will not, since p1 began and left its second one "
        "there: if p3 has nothing to say, two signatures never come together, and p0 waits for p1 for ever. A server "
        "for which a turn is over signs at once.",
        breaks="deadlock",
        model=lambda: _leapt_over(NotConcerned),
        mended=lambda: _leapt_over(Server),
    ),
    Exhibit(
        name="bakery/F26",
        title="a suspicion that is forgotten, because there was no turn to mark",
        printed="no paper: removal certificates without a memory of suspicions in turns that are not known yet",
        lesson="p4 signs that p1 is silent before it hears p1's GET, and then votes for p1 all the same: one quorum, "
        "p4 in it, lets p1 in, and another, p4 in it, removes it and lets p0 in. Whoever has signed a suspicion must "
        "never vote for that turn, whether or not it knew it.",
        breaks="safety",
        model=lambda: _late_at_one_server(PromisesNothing),
        mended=lambda: _late_at_one_server(Server),
    ),
    Exhibit(
        name="bakery/F27",
        title="a client that waits with a ticket, and that nobody ever suspects",
        printed="no paper: removal certificates without suspicion of those who wait",
        lesson="p1 has crashed, and its SET came to p3 only: p2 suspects it and keeps p0 waiting for its removal, but "
        "p3 does not sign, since p1 waits there, and whoever waits may be silent. A server must suspect those who wait "
        "too: if more than f servers do, or if one does and no heartbeat comes.",
        breaks="deadlock",
        model=lambda: _half_a_set(TrustsTickets),
        mended=lambda: _half_a_set(Server),
    ),
)
