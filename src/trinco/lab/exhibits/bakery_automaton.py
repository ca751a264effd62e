"""Flaws of the Byzantine bakery's paper (seed 000) in what servers do about clients that are slow, by their numbers in
the spec. There are no timers here: who may lose patience may do so at any moment."""

from dataclasses import dataclass

from trinco.check.model import Model
from trinco.core.context import WAITING, Context
from trinco.core.ids import Ids, bit
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.core.signed import Signed
from trinco.lab.exhibits.bakery_instance import a_correct_client_is_banned, begun, first_ticket, untimed
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.bakery.automaton import Move, State
from trinco.protocols.bakery.lying_servers import Mute
from trinco.protocols.bakery.messages import Exit, Get, Go, Removed, SetReply
from trinco.protocols.bakery.server import Request, Server
from trinco.protocols.bakery.turns import Turn


class Impatient(Server):
    """Its muteness detector may be mistaken once: it suspects whoever has not set a ticket yet."""

    __slots__ = ()

    def lose_patience(self, ctx: Context) -> None:
        for turn in self.turns:
            if turn.state is State.E1:
                self.suspect(ctx, turn.signed)


class RemovesAlone(Impatient):
    """Removes whom it suspects, and tells it so."""

    __slots__ = ()

    def suspect(self, ctx: Context, signed: Signed) -> None:
        client, sid = signed.body.client, signed.body.sid
        ctx.send(client, Removed(sid, ()))
        self._remove(ctx, client, sid)


@dataclass(slots=True)
class Midway(Process):
    """A client in the middle of its only turn. When it has the votes it enters, or leaves if it no longer wants in.
    That one server has removed it does not stop it: the one may be lying."""

    quorum: int
    votes: Ids
    under_way: tuple[tuple[int, Message], ...] = ()
    """(server, what is on its way there)"""
    over: bool = False

    def on_start(self, ctx: Context) -> None:
        for server, message in self.under_way:
            ctx.send(server, message)
        self.under_way = ()

    def acquire(self, ctx: Context) -> None:
        if self.over:
            ctx.refuse("its turn is over")

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, SetReply | Go) and message.vote is not None and not self.over:
            self.votes |= bit(source)
            if self.votes.bit_count() == self.quorum:
                self._may_enter(ctx)

    def _may_enter(self, ctx: Context) -> None:
        if ctx.phase is WAITING:
            ctx.grant()
        else:
            self.release(ctx)

    def release(self, ctx: Context) -> None:
        """Only at p3 and p4 does it matter that it leaves."""
        self.over = True
        ctx.broadcast(Exit(1, ()), to=(3, 4))


def _slow_at_two_servers(server: type[Impatient]) -> Model:
    """Servers p2 to p5, f=1. p0 and p1 have chosen ticket 1, and p5, which lies, has voted for both. p0 has the vote of
    p2 too; its GET to p3 and its SETs to p3 and p4 are on their way. p1 has the vote of p3 too, and waits for p0 at p4.
    What p2 and p5 are sent from here on changes nothing, and is left out."""
    client, _, p2, p3, p4, p5 = untimed(6, f=1)
    p3.turns = (Turn(1, 1, begun(1, 1), State.C, number=1),)
    p4.turns = (Turn(0, 1, begun(0, 1)), Turn(1, 1, begun(1, 1), State.E2, number=1, waits=((0, 1),), heartbeat=1))
    ticket, q = first_ticket(0, (2, 4, 5)), client.judge.quorum
    clients = [
        Midway(q, bit(2) | bit(5), ((3, Get(1, begun(0, 1))), (3, ticket), (4, ticket))),
        Midway(q, bit(3) | bit(5)),
    ]
    nodes = [*clients, Mute.in_place_of(p2), p3, server.in_place_of(p4), Mute.in_place_of(p5)]
    return Model(nodes=nodes, inputs={"acquire": 1, "lose_patience": 1})


class OnlyGetsAtRest(Impatient):
    """Who has no turn here may send a GET, and nothing else."""

    __slots__ = ()

    def move(self, ctx: Context, client: int, turn: Turn | None, message: Request) -> Move:
        if turn is None and not isinstance(message, Get):
            return Move.FAULT
        return Server.move(self, ctx, client, turn, message)


def _suspected_while_choosing(server: type[Impatient]) -> Model:
    """The only server removes by itself whom it suspects: it is a quorum."""
    client, only = untimed(2, f=0)
    inputs = {"acquire": 1, "lose_patience": 1}
    return Model(nodes=[client, server.in_place_of(only)], inputs=inputs, never=[a_correct_client_is_banned])


class ExitsOnlyFromC(Server):
    """Whoever leaves without having been granted the section here is Byzantine."""

    __slots__ = ()

    def move(self, ctx: Context, client: int, turn: Turn | None, message: Request) -> Move:
        move = Server.move(self, ctx, client, turn, message)
        return Move.FAULT if move is Move.EXIT and turn and turn.state is not State.C else move


def _one_server_is_behind(server: type[Server]) -> Model:
    """Three servers, f=0. The GET of p1 has reached p4 and nobody else yet."""
    client, slow, *servers = untimed(5, f=0, servers=3)
    servers[2].turns = (Turn(1, 1, begun(1, 1)),)
    nodes = [client, slow, *map(server.in_place_of, servers)]
    return Model(nodes=nodes, called=frozenset({0}), never=[a_correct_client_is_banned])


EXHIBITS = (
    Exhibit(
        name="bakery/F4",
        title="servers that remove whom they suspect, each for itself",
        printed="seed 000, section 5.2: each server removes its suspects; a client cannot go on 'se é removido da "
        "execução por mais de f servidores'",
        lesson="One server takes a slow client for mute, removes it and votes for the next. The slow one goes on: it "
        "needs no more votes than those of the others, of whom one may lie. A turn must stand until q servers have "
        "signed that they will never vote for it; then no quorum can let it in any more.",
        breaks="safety",
        model=lambda: _slow_at_two_servers(RemovesAlone),
        mended=lambda: _slow_at_two_servers(Impatient),
    ),
    Exhibit(
        name="bakery/F5",
        title="a SET that comes after its turn was removed, taken for a lie",
        printed="seed 000, section 5.3, states R and byz: at rest only GET-TICKET is legitimate, all else leads to byz "
        "for ever",
        lesson="The client sent its SET before it could know that it was suspected, and wrongly. It is banned by a "
        "detector that 'não comete erros'. What belongs to a removed turn must be answered by "
        "REMOVED, and change nothing.",
        breaks="never",
        model=lambda: _suspected_while_choosing(OnlyGetsAtRest),
        mended=lambda: _suspected_while_choosing(Impatient),
    ),
    Exhibit(
        name="bakery/F8",
        title="a client that leaves before a slow server knows that it was inside",
        printed="seed 000, section 5.3: EXIT stands under state C and nowhere else, and anything else leads to byz",
        lesson="The votes of q servers let a client in. At another, where somebody is still in its way, it is in E2 "
        "when its EXIT comes, and is banned. EXIT must be legal in every state of a turn.",
        breaks="never",
        model=lambda: _one_server_is_behind(ExitsOnlyFromC),
        mended=lambda: _one_server_is_behind(Server),
    ),
)
