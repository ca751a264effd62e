"""A server of the Byzantine bakery: registers, active set and the waiting of Algorithm 2, grouped into four accesses.

GET is lines 6 to 9 of the paper's Algorithm 2 (join, choosing := true, read the tickets), SET lines 9 to 11 (number :=
ticket, choosing := false, who is there), LISTEN lines 12 to 15 (wait until nobody is in the way), EXIT lines 17 and 18.
A server trusts no client: each message must be one that the automaton allows, a ticket must be justified by the answers
of a quorum, and who falls silent is suspected. It trusts no other server either: what one says counts if it is proved.

Whom a client waits for is fixed when its ticket is set: whoever comes later has seen that ticket, or will be told of it
by a server that has. So a crowd of Byzantine clients that come and go holds up nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trinco.core.context import Context
from trinco.core.ids import bit
from trinco.core.message import Message
from trinco.core.signed import Signed
from trinco.protocols.bakery import automaton
from trinco.protocols.bakery.automaton import Move, State
from trinco.protocols.bakery.certificates import Begun, Body, Highest, Ticket, Vote
from trinco.protocols.bakery.freshness import is_fresh, time_of_issue
from trinco.protocols.bakery.messages import (
    BadJustification,
    Certified,
    Certify,
    Exit,
    ExitReply,
    Get,
    GetReply,
    Go,
    Listen,
    Removal,
    Removed,
    Set,
    SetReply,
    Suspect,
    Wait,
)
from trinco.protocols.bakery.renaming import renamed, signed_by
from trinco.protocols.bakery.suspicion import Watcher, change, with_entry
from trinco.protocols.bakery.turns import Turn, in_the_way, turn_of, with_turn, without
from trinco.protocols.bakery.wire import admitted

Request = Get | Set | Listen | Exit


@dataclass(slots=True)
class Server(Watcher):
    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self._take_in(ctx, source, admitted(message, len(self.judge.servers)))

    def _take_in(self, ctx: Context, source: int, message: Message | None) -> None:
        if isinstance(message, Request):
            if source not in self.judge.servers and not self.banned & bit(source):
                self._check(ctx, source, message)
        elif source in self.judge.servers and message is not None:
            self._from_server(ctx, source, message)

    # The malicious-behaviour detector: is this what the client may do now?

    def _check(self, ctx: Context, client: int, message: Request) -> None:
        turn = turn_of(self.turns, client)
        self._note_presence(ctx, client)
        move = self.move(ctx, client, turn, message)
        state = automaton.after(turn.state if turn else State.R, move)
        if state is State.BYZ:
            self.banned |= bit(client)
            self._drop(ctx, client, message.sid)
            return
        match message:
            case _ if move in (Move.LATE, Move.OVER, Move.STALE):
                self._too_late(ctx, client, message, move)
            case _ if move is Move.DOUBT:
                ctx.send(client, BadJustification(message.sid))
            case Get():
                self.on_get(ctx, client, message)
            case Set():
                self.on_set(ctx, client, message)
            case Listen():
                self.on_listen(ctx, client, message)
            case Exit():
                self.on_exit(ctx, client, message)

    def move(self, ctx: Context, client: int, turn: Turn | None, message: Request) -> Move:
        """What a message means in the automaton's words."""
        sid, last = message.sid, dict(self.last).get(client, 0)
        if sid <= dict(self.removed).get(client, 0):
            return Move.LATE
        if turn is None or turn.sid != sid:
            return self._move_without_turn(ctx, client, message, last)
        if isinstance(message, Set):
            return self._move_of_set(ctx, turn, message)
        return {Get: Move.REPEAT, Listen: Move.LISTEN, Exit: Move.EXIT}[type(message)]

    def _move_of_set(self, ctx: Context, turn: Turn, message: Set) -> Move:
        if turn.state is not State.E1:
            return Move.REPEAT if message.number == turn.number else Move.FAULT
        if message.number != self.judge.claimed_by(message.justification, turn.client, turn.sid):
            return Move.FAULT
        vouched = self.judge.slack > 0 and any(reply.highest.readers for reply in message.justification)
        if not self.judge.are_proved(ctx, message.justification):
            return Move.DOUBT if vouched else Move.FAULT
        if vouched and not self.tickets.can_tell(message.number, message.justification):
            return Move.DOUBT
        return Move.SET if is_fresh(ctx, message.justification, self.timing.expiry) else Move.STALE

    def _move_without_turn(self, ctx: Context, client: int, message: Request, last: int) -> Move:
        if isinstance(message, Exit) or (isinstance(message, Listen) and message.sid <= last):
            return Move.OVER
        if not isinstance(message, Get):
            return Move.FAULT if self._knows(client) else Move.LATE
        if message.sid <= last:
            return Move.FAULT
        begun = Begun(self.judge.lock, client, message.sid)
        return Move.GET if self.judge.is_genuine(ctx, message.turn, client, begun) else Move.FAULT

    def _too_late(self, ctx: Context, client: int, message: Request, move: Move) -> None:
        if isinstance(message, Exit):
            ctx.send(client, ExitReply(message.sid))
        elif move is not Move.OVER:
            if move is Move.LATE and isinstance(message, Get | Set):
                self.muteness.was_mistaken(client)
            ctx.send(client, Removed(message.sid, ()))

    # GET

    def on_get(self, ctx: Context, client: int, message: Get) -> None:
        turn = turn_of(self.turns, client)
        if turn is None:
            self._forget_the_absent(ctx)
            dead = self._has_suspected(ctx, client, message.sid)
            signs = not self.judge.slack or message.transferable
            turn = Turn(client, message.sid, message.turn, dead=dead, transferable=signs)
            self.last = with_entry(self.last, client, message.sid)
            self._close(ctx, client, message.sid - 1)
            if turn.dead:
                self.muteness.was_mistaken(client)
            else:
                self.muteness.watch_choosing(ctx, client, message.sid)
        self.turns = with_turn(self.turns, change(turn, owed=self.tickets.highest))
        self._answer_gets(ctx)

    def _answer_gets(self, ctx: Context) -> None:
        """A ticket that no certificate vouches for could be a liar's, so the answer waits for one."""
        tickets = self.tickets
        owed = max((turn.owed for turn in self.turns if turn.owed is not None), default=0)
        tickets.certify(ctx, owed - self.judge.slack)
        for turn in self.turns:
            if turn.owed is not None and turn.owed <= tickets.reach:
                self.turns = with_turn(self.turns, change(turn, owed=None))
                issued = time_of_issue(ctx, self.timing.expiry)
                highest = Highest(self.judge.lock, turn.client, turn.sid, tickets.told, issued)
                answer = self._state(ctx, turn, highest, *self.judge.servers)
                ctx.send(turn.client, GetReply(turn.sid, answer, tickets.certificate))

    def _state(self, ctx: Context, turn: Turn, body: Body, *readers: int) -> Signed:
        """Signed; or vouched for, to the client and whom it has to show it to."""
        return ctx.sign(body) if turn.transferable else ctx.vouch(body, (turn.client, *readers))

    # SET

    def on_set(self, ctx: Context, client: int, message: Set) -> None:
        turn = turn_of(self.turns, client)
        assert turn is not None
        if turn.state is State.E1:
            self.muteness.chosen(ctx, client, turn.sid)
            if turn.dead:
                self.muteness.was_mistaken(client)
            self.tickets.accept(ctx, message.number, message.justification)
            before = tuple((other.client, other.sid) for other in self.turns if other is not turn)
            turn = change(turn, state=State.E2, owed=None, number=message.number, waits=before)
            self.turns = with_turn(self.turns, turn)
            self._let_in(ctx, turn)
        self._answer_set(ctx, client)
        self._serve_waiters(ctx)
        self._join_if_hopeless(ctx, client, turn.sid)

    def _answer_set(self, ctx: Context, client: int) -> None:
        turn = turn_of(self.turns, client)
        assert turn is not None
        ticket = self._state(ctx, turn, Ticket(self.judge.lock, turn.number))
        ctx.send(client, SetReply(turn.sid, ticket, self._vote(ctx, turn)))

    # LISTEN

    def on_listen(self, ctx: Context, client: int, message: Listen) -> None:
        turn = turn_of(self.turns, client)
        assert turn is not None
        turn = change(turn, heartbeat=max(turn.heartbeat, message.heartbeat))
        self.turns = with_turn(self.turns, turn)
        self.tickets.learn(ctx, turn.number, message.certificate)
        self._answer_gets(ctx)
        if turn.state is State.C and not turn.dead:
            self._renew(ctx, turn)
        elif turn.state is State.E2:
            self.muteness.heard(ctx, client, turn.sid)
            self._let_in(ctx, turn)
        self._answer_listen(ctx, client, message)

    def _renew(self, ctx: Context, turn: Turn) -> None:
        if turn.renewable is not None and not turn.renewable <= ctx.now():
            self.muteness.watch_holder(ctx, turn.client, turn.sid)
        else:
            self.turns = with_turn(self.turns, change(turn, renewable=None))

    def _answer_listen(self, ctx: Context, client: int, message: Listen) -> None:
        """The first LISTEN is answered by GO, when it is time; whoever repeats it is told how things stand."""
        turn = turn_of(self.turns, client)
        if not self._send_vote(ctx, client) and turn and (message.heartbeat > 1 or turn.dead):
            ctx.send(client, Wait(message.sid, turn.dead))

    # GO

    def is_free(self, turn: Turn) -> bool:
        """Lines 12 to 15: nobody who was there before chooses, or has a ticket that comes earlier."""
        return not in_the_way(self.turns, turn) and not turn.dead

    def _let_in(self, ctx: Context, turn: Turn) -> bool:
        turn = change(turn, waits=in_the_way(self.turns, turn))
        free = self.is_free(turn)
        if free:
            renewable = ctx.now() + self.timing.extension
            turn = change(turn, state=automaton.after(turn.state, Move.GO), waits=(), renewable=renewable)
            self.muteness.watch_holder(ctx, turn.client, turn.sid)
        self.turns = with_turn(self.turns, turn)
        return free

    def _vote(self, ctx: Context, turn: Turn) -> Signed | None:
        if turn.state is not State.C or turn.dead or turn.renewable is None:
            return None
        return self._state(ctx, turn, Vote(self.judge.lock, turn.client, turn.sid, turn.number, turn.heartbeat))

    def _serve_waiters(self, ctx: Context) -> None:
        """Somebody has left or set a ticket. Who does not listen yet is watched all the same, and told when it does."""
        for turn in sorted(self.turns, key=lambda each: each.rank):
            if turn.state is State.E2 and self._let_in(ctx, turn) and turn.heartbeat:
                self._send_vote(ctx, turn.client)

    def _send_vote(self, ctx: Context, client: int) -> bool:
        turn = turn_of(self.turns, client)
        vote = self._vote(ctx, turn) if turn else None
        if turn and vote:
            ctx.send(client, Go(turn.sid, vote))
        return vote is not None

    # EXIT

    def on_exit(self, ctx: Context, client: int, message: Exit) -> None:
        turn = turn_of(self.turns, client)
        assert turn is not None
        self.tickets.learn(ctx, turn.number, message.certificate)
        ctx.send(client, ExitReply(message.sid))
        self._drop(ctx, client, message.sid)
        self._answer_gets(ctx)

    def _drop(self, ctx: Context, client: int, sid: int) -> None:
        turn = turn_of(self.turns, client)
        self._close(ctx, client, turn.sid if turn else sid)
        self.turns = without(self.turns, client)
        self._serve_waiters(ctx)

    # Other servers

    def _from_server(self, ctx: Context, source: int, message: Message) -> None:
        match message:
            case Certify():
                self.tickets.on_certify(ctx, source, message)
                self._answer_gets(ctx)
            case Certified(ticket=ticket):
                self.tickets.on_certified(ctx, source, ticket)
                self._answer_gets(ctx)
            case Suspect():
                self._hear_suspicion(ctx, source, message)
            case Removal(client=client, sid=sid, certificate=certificate):
                self._see_removal(ctx, client, sid, certificate)

    def column(self, server: int) -> tuple[object, ...]:
        tickets = self.tickets
        suspicions = (each.suspicion for each in self.muteness.suspicions)
        signed = signed_by(server, (*tickets.certificate, *tickets.signatures, *suspicions))
        return self.turns, self.last, self.removed, tickets.highest, tickets.certified, tickets.asked, signed

    def relabel(self, names: Mapping[int, int]) -> None:
        tickets, muteness = self.tickets, self.muteness
        tickets.justification = renamed(tickets.justification, names)
        tickets.certificate = renamed(tickets.certificate, names)
        tickets.signatures = renamed(tickets.signatures, names)
        muteness.suspicions = renamed(muteness.suspicions, names)
