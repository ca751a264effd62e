"""Flaws of the Byzantine bakery's paper (seed 000) in the tickets, by their numbers in the spec. No timer ever fires
here."""

from dataclasses import astuple, dataclass

from trinco.check.model import Model
from trinco.check.view import View
from trinco.core.context import INSIDE, Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Message
from trinco.core.monitor import TokenRises
from trinco.core.node import Node
from trinco.core.signed import Signed
from trinco.lab.exhibits.bakery_instance import LOCK, first_ticket, untimed
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.protocols.bakery.automaton import Move, State
from trinco.protocols.bakery.certificates import Begun, Judge, Ticket
from trinco.protocols.bakery.lying_servers import Inflate
from trinco.protocols.bakery.messages import Certificate, Exit, Get, GetReply, Set, SetReply
from trinco.protocols.bakery.server import Server
from trinco.protocols.bakery.suspicion import change
from trinco.protocols.bakery.system import Bakery
from trinco.protocols.bakery.tickets import Tickets
from trinco.protocols.bakery.turns import Turn


class RestartsTickets(Server):
    """Knows the tickets of those who are there: when the last has left, none."""

    __slots__ = ()

    def on_exit(self, ctx: Context, client: int, message: Exit) -> None:
        Server.on_exit(self, ctx, client, message)
        if not self.turns:
            self.tickets = Tickets(self.judge)


def _two_in_turn(server: type[Server]) -> Model:
    *clients, only = untimed(3, f=0)
    return Model(nodes=[*clients, server.in_place_of(only)], monitors=[TokenRises()])


class Trusting(Judge):
    """Takes a server's word for its highest ticket."""

    __slots__ = ()

    def certifies(self, ctx: Context, certificate: Certificate, number: int) -> bool:
        return True


class OnTrust(Bakery):
    """Everybody takes a server's word for its highest ticket."""

    def judge(self, n: int) -> Judge:
        honest = Bakery.judge(self, n)
        return Trusting(honest.lock, honest.servers, honest.f, honest.quorum)


def a_ticket_nobody_led_to(view: View) -> bool:
    """after a single turn a correct server has a higher ticket than 1"""
    return any(view.node(server).tickets.highest > 1 for server in (1, 2, 3))


def _one_inflates(system: type[Bakery]) -> Model:
    """The liar has but one lie to tell, so it is checked as a node like the others."""
    client, *servers, last = system(f=1)(5)
    return Model(nodes=[client, *servers, Inflate.in_place_of(last)], fires=0, never=[a_ticket_nobody_led_to])


class TakesAnyTicket(Server):
    """Asks for no justification."""

    __slots__ = ()

    def _move_of_set(self, ctx: Context, turn: Turn, message: Set) -> Move:
        return Move.SET if turn.state is State.E1 else Server._move_of_set(self, ctx, turn, message)


@dataclass(slots=True)
class JumpsTheQueue(Node):
    """A client that lies: takes ticket 1 whatever it is told, and justifies nothing."""

    server: int
    voted_for: bool = False

    def ask(self, ctx: Context) -> None:
        ctx.send(self.server, Get(1, ctx.sign(Begun(LOCK, ctx.me, 1))))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, GetReply):
            ctx.send(source, Set(1, 1, ()))
        elif isinstance(message, SetReply):
            self.voted_for = message.vote is not None


@dataclass(slots=True)
class UsesOldAnswers(Node):
    """A client that lies: in its second turn it sets a ticket by what it was told in its first, which is over."""

    old: Set
    voters: Ids = NOBODY

    @property
    def voted_for(self) -> bool:
        return self.voters.bit_count() > 1

    def ask(self, ctx: Context) -> None:
        ctx.broadcast(Get(2, ctx.sign(Begun(LOCK, ctx.me, 2))), to=SERVERS)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, GetReply):
            ctx.send(source, change(self.old, sid=2))
        elif isinstance(message, SetReply) and message.vote is not None:
            self.voters |= bit(source)


class OfAnyTurn(Judge):
    """An answer to GET is good for its client, whichever turn it was asked in."""

    __slots__ = ()

    def _claimed_in(self, reply: GetReply, client: int, sid: int) -> int | None:
        return Judge._claimed_in(self, reply, client, reply.highest.body.sid)


@dataclass(slots=True)
class AcceptsOnce(Server):
    """Remembers every justification for ever, and accepts none a second time."""

    accepted: frozenset[tuple[GetReply, ...]] = frozenset()

    def _move_of_set(self, ctx: Context, turn: Turn, message: Set) -> Move:
        used = message.justification in self.accepted
        return Move.FAULT if used and turn.state is State.E1 else Server._move_of_set(self, ctx, turn, message)

    def on_set(self, ctx: Context, client: int, message: Set) -> None:
        self.accepted |= {message.justification}
        Server.on_set(self, ctx, client, message)


SERVERS = (2, 3, 4)


def _one_has_old_answers(server: type[Server], judge: type[Judge]) -> Model:
    """Three servers, f=0, of which two are a quorum. In its first turn p0 had answers of all three, set ticket 1 with
    those of p2 and p3, and left."""
    _, client, *servers = untimed(5, f=0, servers=3)
    used, kept = first_ticket(0, SERVERS[:2]), first_ticket(0, SERVERS[1:])
    nodes: list[Node] = [UsesOldAnswers(kept), client]
    for each in servers:
        each.judge = judge(*astuple(each.judge))
        each.tickets = Tickets(each.judge, highest=1, certified=1, certificate=(Signed(2, Ticket(LOCK, 1)),))
        each.last = ((0, 1),)
        node = server.in_place_of(each)
        if isinstance(node, AcceptsOnce):
            node.accepted = frozenset({used.justification})
        nodes.append(node)
    return Model(nodes=nodes, inputs={"acquire": 1, "ask": 1}, never=[in_beside_a_correct_client])


def in_beside_a_correct_client(view: View) -> bool:
    """a liar has the votes of a quorum, and a correct client is inside"""
    return bool(view.node(0).voted_for) and view.phase(1) is INSIDE


def _one_jumps_the_queue(server: type[Server]) -> Model:
    """One server, which is a quorum by itself."""
    _, client, only = untimed(3, f=0)
    nodes = [JumpsTheQueue(server=2), client, server.in_place_of(only)]
    return Model(nodes=nodes, inputs={"acquire": 1, "ask": 1}, never=[in_beside_a_correct_client])


EXHIBITS = (
    Exhibit(
        name="bakery/F9",
        title="tickets that begin at 1 again when nobody is there",
        printed="seed 000, algorithm 2, lines 9 and 17: one above the numbers in the active set, and 0 after exit",
        lesson="Mutual exclusion does not suffer, but such tickets are no fencing tokens: who enters later may have a "
        "lower one, and is refused where a late write of the earlier is not. The highest ticket must never fall.",
        breaks="monitor",
        model=lambda: _two_in_turn(RestartsTickets),
        mended=lambda: _two_in_turn(Server),
    ),
    Exhibit(
        name="bakery/F10",
        title="a justification that is accepted once, and belongs to no turn",
        printed="seed 000, section 5.3, E1: 'cada servidor aceita cada justificativa apenas uma vez'",
        lesson="Who has more answers than a quorum has several justifications of the same ticket, and each is accepted "
        "once: one in its turn, another in a later turn, where the ticket is below that of who is inside. Besides, "
        "servers would have to remember all there ever were. An answer must be to the GET of one turn, and a turn is "
        "begun once.",
        breaks="never",
        model=lambda: _one_has_old_answers(AcceptsOnce, OfAnyTurn),
        mended=lambda: _one_has_old_answers(Server, Judge),
    ),
    Exhibit(
        name="bakery/F11",
        title="answers that justify a ticket and are themselves not justified",
        printed="seed 000, section 5.3, E1: the answers to GET-TICKET, authenticated, justify the ticket",
        lesson="One lying server answers 10^12, if need be with a lying client that signs it, and from then on all "
        "tickets are higher than that. An answer must bring f+1 signatures under its ticket: one of them is a correct "
        "server's, which has seen the ticket justified.",
        breaks="never",
        model=lambda: _one_inflates(OnTrust),
        mended=lambda: _one_inflates(Bakery),
    ),
    Exhibit(
        name="bakery/F13",
        title="a ticket that nothing justifies",
        printed="seed 000, section 5.1: SET-TICKET sets a number; that the answers to GET-TICKET come with it is 'uma "
        "solução possível' in section 5.3",
        lesson="Nobody is in the way of a ticket below all others, not even who is inside: a quorum votes for both, "
        "and the fencing token falls. A ticket must be one above the highest of q answers to the GET of its turn.",
        breaks="never",
        model=lambda: _one_jumps_the_queue(TakesAnyTicket),
        mended=lambda: _one_jumps_the_queue(Server),
    ),
)
