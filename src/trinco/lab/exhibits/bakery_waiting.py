"""Flaws of the Byzantine bakery's paper (seed 000) in how a client waits for its turn, by their numbers in the spec."""

from dataclasses import dataclass

from trinco.check.model import Clocks, Model, Timers
from trinco.check.view import View
from trinco.core.context import Context
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.lab.exhibits.bakery_instance import LOCK, a_correct_client_is_banned, begun, give_turns, suspicion, untimed
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.bakery.automaton import Move, State
from trinco.protocols.bakery.certificates import Begun
from trinco.protocols.bakery.client import Client
from trinco.protocols.bakery.lying_servers import Mute
from trinco.protocols.bakery.messages import Exit, Get, GetReply, Listen, Set
from trinco.protocols.bakery.server import Request, Server
from trinco.protocols.bakery.turns import Turn


class Here(Message, tag="here"):
    """From one visitor to the other: I have come, you may go."""


@dataclass(slots=True)
class Visitor(Node):
    """A client that lies: asks for tickets and leaves, again and again, and never while the other one is away."""

    other: int
    server: int
    first: bool

    def on_start(self, ctx: Context) -> None:
        if self.first:
            self.come(ctx)

    def come(self, ctx: Context) -> None:
        ctx.send(self.server, Get(1, ctx.sign(Begun(LOCK, ctx.me, 1))))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, GetReply):
            ctx.send(self.other, Here())
        elif isinstance(message, Here):
            ctx.send(self.server, Exit(1, ()))
            self.come(ctx)


class Forgets(Server):
    """Does not remember who has left, so that coming and going for ever takes finitely many states."""

    __slots__ = ()

    def on_exit(self, ctx: Context, client: int, message: Exit) -> None:
        Server.on_exit(self, ctx, client, message)
        self.last = tuple(each for each in self.last if each[0] != client)


class WaitsForAll(Forgets):
    """A client waits until nobody is in its way of those who are there now."""

    __slots__ = ()

    def is_free(self, turn: Turn) -> bool:
        others = (each for each in self.turns if each.client != turn.client)
        return not turn.dead and all(each.gives_way_to(turn) for each in others)


def _two_visitors(server: type[Server]) -> Model:
    """Nobody is there for long enough to be suspected."""
    client, _, _, only = untimed(4, f=0, servers=1)
    return Model(nodes=[client, Visitor(2, 3, True), Visitor(1, 3, False), server.in_place_of(only)])


class Delivered(Message, tag="delivered"):
    """From a server to itself: the broadcast of this is over."""

    client: int
    request: Set

    def in_words(self) -> str:
        return f"p{self.client}'s {self.request.in_words()}"


class Broadcasts(Server):
    """Obeys a SET when the reliable broadcast among the servers delivers it, which takes its time."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Set():
                ctx.send(ctx.me, Delivered(source, message))
            case Delivered(client=client, request=request):
                Server.on_message(self, ctx, client, request)
            case _:
                Server.on_message(self, ctx, source, message)


class BansWhoListensEarly(Broadcasts):
    """In E1 the only message that a correct client may send is SET."""

    __slots__ = ()

    def move(self, ctx: Context, client: int, turn: Turn | None, message: Request) -> Move:
        if turn is not None and turn.state is State.E1 and isinstance(message, Listen):
            return Move.FAULT
        return Broadcasts.move(self, ctx, client, turn, message)


def listens_early(view: View) -> bool:
    return any(turn.heartbeat and turn.state is State.E1 for turn in view.node(4).turns)


def _three_servers(last: type[Server]) -> Model:
    """At the first server somebody is in the way, who has died: whoever does not get its vote at once has to listen."""
    client, dead, *servers = untimed(5, f=0, servers=3)
    give_turns(servers[0], Turn(1, 1, begun(1, 1)))
    servers[2] = last.in_place_of(servers[2])
    return Model(
        nodes=[client, dead, *servers],
        called=frozenset({0}),
        never=[a_correct_client_is_banned],
        sometimes={"LISTEN before SET": listens_early},
    )


class CountsRemovals(Client):
    """Gives a turn up when more than f servers have removed it, and for nothing else."""

    __slots__ = ()

    def _count_the_living(self, ctx: Context) -> None:
        pass


def begins_again(view: View) -> bool:
    return bool(view.node(0).sid == 2)


def _one_suspects(client: type[Client]) -> Model:
    """Four servers, f=1. The first has suspected p0 in its first turn, by mistake, before it heard of it; the last is
    mute. Messages are quick: to wait for silence is to wait for what never comes."""
    honest, *servers = untimed(5, f=1, silence=1.0)
    servers[0].muteness.remember(suspicion(1, of=0))
    nodes = [client.in_place_of(honest), *servers[:3], Mute.in_place_of(servers[3])]
    sometimes = {"a second turn": begins_again}
    return Model(nodes=nodes, timers=Timers.PUNCTUAL, clocks=Clocks(), sometimes=sometimes)


EXHIBITS = (
    Exhibit(
        name="bakery/F7",
        title="waiting for whoever is there, also for those who came later",
        printed="seed 000, section 5.1, LISTEN: wait for lines 13 and 14 'considerando as variáveis compartilhadas', "
        "which are those of whoever is there by then",
        lesson="Two clients that lie come and go in turns, so that one is always choosing, and neither for long enough "
        "to be suspected. Whom a client waits for must be fixed when its ticket is set.",
        breaks="livelock",
        model=lambda: _two_visitors(WaitsForAll),
        mended=lambda: _two_visitors(Forgets),
    ),
    Exhibit(
        name="bakery/F12",
        title="an automaton that relies on FIFO channels, behind a broadcast that is none",
        printed="seed 000, section 5.3: 'a ordem de recepção das mensagens pelos servidores corresponde a ordem do "
        "envio'; section 3.3 has requests broadcast among the servers",
        lesson="LISTEN changes nothing that servers share and comes directly; SET is broadcast, takes longer, and may "
        "come second: a correct client is taken for a liar, for good. A LISTEN that comes early has to be kept.",
        breaks="never",
        model=lambda: _three_servers(BansWhoListensEarly),
        mended=lambda: _three_servers(Broadcasts),
    ),
    Exhibit(
        name="bakery/F16",
        title="a client that is suspected by few enough to go on, and by too many to get in",
        printed="seed 000, section 5.2: whom more than f servers have removed cannot go on; nothing is said of fewer",
        lesson="One of four servers suspects the client by mistake and will not vote, and the one that lies is mute: "
        "two votes are no quorum, and no third will come. Whoever finds fewer than q servers that may still vote must "
        "leave and begin another turn.",
        breaks="deadlock",
        model=lambda: _one_suspects(CountsRemovals),
        mended=lambda: _one_suspects(Client),
    ),
)
