"""Flaws of the Byzantine bakery's paper (seed 000) in how long who was let in may stay, by their numbers in the spec.

One server, which is a quorum by itself. Messages take as long as they like, and timers fire at their deadline or later.
"""

import math
from dataclasses import astuple

from trinco.check.model import Clocks, Model, Timers
from trinco.core.context import WAITING, Context
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.lab.exhibits.bakery_instance import begun, give_turns
from trinco.lab.exhibits.bakery_removal import HasItsTicket
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.bakery.automaton import State
from trinco.protocols.bakery.client import Client
from trinco.protocols.bakery.messages import Go, Listen
from trinco.protocols.bakery.muteness import Timing
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.suspicion import change
from trinco.protocols.bakery.system import Bakery
from trinco.protocols.bakery.turns import Turn, turn_of, with_turn


def _let_in_for_a_second(extension: float = math.inf) -> Bakery:
    never = math.inf
    return Bakery(0, 1, hold=1.0, extension=extension, silence=never, choosing=never, cap=never, drift=0.0)


class Stays(Node):
    """A client that lies: was let in, gives a sign of life whenever its vote is renewed, and never leaves."""

    __slots__ = ()

    def on_start(self, ctx: Context) -> None:
        ctx.send(2, Listen(1, (), 1))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Go):
            ctx.send(source, Listen(1, (), 1))


class HasLetP1In(Server):
    """Has voted for p1 just before the run begins."""

    __slots__ = ()

    def on_start(self, ctx: Context) -> None:
        turn = turn_of(self.turns, 1)
        assert turn is not None
        self.turns = with_turn(self.turns, change(turn, renewable=ctx.now() + self.timing.extension))
        self.muteness.watch_holder(ctx, 1, 1)


def _one_stays(extension: float) -> Model:
    """p0 has the next ticket, and waits for p1."""
    *_, server = _let_in_for_a_second(extension)(3)
    assert isinstance(server, Server)
    waits = Turn(0, 1, begun(0, 1), State.E2, number=2, waits=((1, 1),))
    give_turns(server, waits, Turn(1, 1, begun(1, 1), State.C, number=1))
    nodes = [HasItsTicket(1, ((2, Listen(1, (), 1)),)), Stays(), HasLetP1In.in_place_of(server)]
    return Model(nodes=nodes, timers=Timers.DEADLINE, clocks=Clocks(), fires=2)


class Silent(Timing):
    """Nobody gives a sign of life while it is inside."""

    __slots__ = ()

    @property
    def heartbeat(self) -> float:
        return math.inf


class TriesOnce(Client):
    """Begins no other turn when one is removed."""

    __slots__ = ()

    def give_up(self, ctx: Context) -> None:
        if ctx.phase is WAITING:
            self.release(ctx)
            ctx.refuse("removed")
        else:
            Client.give_up(self, ctx)


class KnowsNoEnd(TriesOnce):
    """Is inside until it leaves, or hears that it was removed."""

    __slots__ = ()

    def _enter(self, ctx: Context, until: Instant) -> None:
        if ctx.phase is WAITING:
            self.until = until
            ctx.grant((self.number, ctx.me))


def _two_enter(kind: type[Client]) -> Model:
    *clients, server = _let_in_for_a_second()(3)
    for client in clients:
        assert isinstance(client, Client)
        client.timing = Silent(*astuple(client.timing))
    nodes = [*map(kind.in_place_of, clients), server]
    return Model(nodes=nodes, timers=Timers.DEADLINE, clocks=Clocks())


EXHIBITS = (
    Exhibit(
        name="bakery/F17",
        title="a client that may stay inside for as long as it is not mute",
        printed="seed 000, section 5.3, C: a client leaves this state only if it sends EXIT; the muteness detector of "
        "section 5.2 finds only those who send nothing",
        lesson="Who was let in and lies says again and again that it is there, and so it is never suspected: whoever "
        "comes next waits for ever. Votes must be renewed for so long only, whoever asks for it.",
        breaks="livelock",
        model=lambda: _one_stays(math.inf),
        mended=lambda: _one_stays(1.0),
    ),
    Exhibit(
        name="bakery/F18",
        title="a client that is removed while it is inside, and does not know it yet",
        printed="seed 000, section 5.2: servers remove whom they suspect, and send a message to tell it so",
        lesson="A detector that may err removes who is inside and only slow, and the next one enters before the word "
        "of it has arrived. In an asynchronous system there is no way around that. So a vote is good for D, on clocks "
        "that run at about the same rate: the client leaves by then, and no server suspects it before.",
        breaks="safety",
        model=lambda: _two_enter(KnowsNoEnd),
        mended=lambda: _two_enter(TriesOnce),
    ),
)
