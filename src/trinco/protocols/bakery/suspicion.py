"""How servers get rid of who fell silent, together, and what each remembers of clients that are gone.

The muteness detector (``muteness``) tells a server whom to suspect. It says so to the others and waits for q of them;
then the turn is removed everywhere, and whoever waited for it goes on.
"""

import math
from dataclasses import dataclass

import msgspec

from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.node import Node
from trinco.core.signed import Signed
from trinco.protocols.bakery.automaton import State
from trinco.protocols.bakery.certificates import Begun, Judge, Suspicion
from trinco.protocols.bakery.freshness import MICROSECONDS
from trinco.protocols.bakery.messages import Certificate, Removal, Removed, Suspect
from trinco.protocols.bakery.muteness import Muteness, Silence, Timing
from trinco.protocols.bakery.tickets import Tickets
from trinco.protocols.bakery.turns import Turns, turn_of, with_turn

change = msgspec.structs.replace


@dataclass(slots=True)
class Watcher(Node):
    """A server as far as silence goes. What it does with those who speak is ``server.Server``."""

    judge: Judge
    timing: Timing
    muteness: Muteness
    tickets: Tickets
    turns: Turns = ()
    last: tuple[tuple[int, int], ...] = ()
    """(client, the last turn it has begun)"""
    removed: tuple[tuple[int, int], ...] = ()
    """(client, the last turn it was removed from)"""
    banned: Ids = NOBODY
    seen: tuple[tuple[int, int], ...] = ()
    """(client, when it was last heard of): whom to forget, where that is done at all."""

    def _has_suspected(self, ctx: Context, client: int, sid: int) -> bool:
        """A server without a record of a turn may have promised never to vote for it."""
        return self.muteness.has_suspected(ctx, client, sid)

    def on_timer(self, ctx: Context, name: str) -> None:
        silence, client, sid = self.muteness.read(name)
        turn = turn_of(self.turns, client)
        if turn is not None and turn.sid == sid:
            if turn.state is _WATCHED[silence]:
                self.suspect(ctx, turn.signed)
        elif silence is Silence.ACCUSED:  # never begun here, or over
            signed = self.muteness.evidence(client, sid)
            if signed is not None:
                self.suspect(ctx, signed)

    def is_over(self, client: int, sid: int) -> bool:
        """Whether the turn was here and is no more; or never will be."""
        turn = turn_of(self.turns, client)
        begun = max(dict(self.last).get(client, 0), dict(self.removed).get(client, 0))
        return bool(self.banned & bit(client)) or (sid <= begun and (turn is None or turn.sid != sid))

    def suspect(self, ctx: Context, signed: Signed) -> None:
        """Never again vote for this turn, and say so. Only q of us remove it."""
        suspect = self.muteness.suspect(ctx, signed)
        self.muteness.remember(suspect)
        turn = turn_of(self.turns, signed.body.client)
        if turn is not None and turn.sid == signed.body.sid:
            self.turns = with_turn(self.turns, change(turn, dead=True))
        ctx.broadcast(suspect, to=self.judge.servers)
        self._remove_if_certified(ctx, signed.body.client, signed.body.sid)

    def _hear_suspicion(self, ctx: Context, source: int, message: Suspect) -> None:
        client, sid = message.suspicion.body.client, message.suspicion.body.sid
        if not self.judge.is_genuine(ctx, message.suspicion, source, Suspicion(self.judge.lock, client, sid)):
            return
        if not self.judge.is_genuine(ctx, message.turn, client, Begun(self.judge.lock, client, sid)):
            return
        if self.is_over(client, sid):
            if message.asks:
                ctx.send(source, self.muteness.suspect(ctx, message.turn, asks=False))
            return
        first = not self.muteness.is_accused(client, sid)
        self.muteness.remember(message)
        if first:
            self._watch_accused(ctx, client, sid)
        self._remove_if_certified(ctx, client, sid)
        self._join_if_hopeless(ctx, client, sid)

    def _watch_accused(self, ctx: Context, client: int, sid: int) -> None:
        """Somebody who chooses or holds is watched anyway."""
        turn = turn_of(self.turns, client)
        if turn is None or turn.sid != sid:
            self.muteness.await_turn(ctx, client, sid)
        elif turn.state is State.E2:
            self.muteness.heard(ctx, client, sid)

    def _join_if_hopeless(self, ctx: Context, client: int, sid: int) -> None:
        """More than f servers, so one that does not lie, will never vote for a turn that waits here: no sign of life
        can save it. A liar that shows its ticket to some servers only could give those for ever. It waits there for a
        client with an earlier ticket, and that one elsewhere for the liar, which seems to be choosing still."""
        turn = turn_of(self.turns, client)
        waits = turn is not None and turn.sid == sid and turn.state is State.E2 and not turn.dead
        if turn and waits and len(self.muteness.certificate(client, sid)) > self.judge.f:
            self.suspect(ctx, turn.signed)

    def _remove_if_certified(self, ctx: Context, client: int, sid: int) -> None:
        self._see_removal(ctx, client, sid, self.muteness.certificate(client, sid))

    def _see_removal(self, ctx: Context, client: int, sid: int, certificate: Certificate) -> None:
        """Passed on before it is acted upon. A liar may have shown it to this server alone: the others would wait for a
        suspicion that this one, which has forgotten the turn, never utters; and the client for an answer."""
        is_known = sid <= dict(self.removed).get(client, 0)
        if not is_known and self.judge.removes(ctx, certificate, client, sid):
            ctx.broadcast(Removal(client, sid, certificate), to=self.judge.servers)
            ctx.send(client, Removed(sid, certificate))
            self._remove(ctx, client, sid)

    def _remove(self, ctx: Context, client: int, sid: int) -> None:
        if sid <= dict(self.removed).get(client, 0):
            return
        self.removed = with_entry(self.removed, client, sid)
        self._note_presence(ctx, client)
        self.muteness.forget(ctx, client, sid)
        turn = turn_of(self.turns, client)
        if turn is not None and turn.sid <= sid:
            self._drop(ctx, client, sid)

    def _close(self, ctx: Context, client: int, sid: int) -> None:
        """The client's turns up to this one are over here. Who suspects one of them has asked for this server's word,
        and gets it: as if it asked now."""
        for suspect in self.muteness.unanswered(ctx, client, sid):
            if suspect.asks:
                ctx.send(suspect.suspicion.signer, self.muteness.suspect(ctx, suspect.turn, asks=False))
        self.muteness.forget(ctx, client, sid)

    # What is remembered of clients that are gone

    def _note_presence(self, ctx: Context, client: int) -> None:
        if self.timing.expiry < math.inf:
            self.seen = with_entry(self.seen, client, ctx.wall_clock())

    def _forget_the_absent(self, ctx: Context) -> None:
        """Whoever has no turn here and was not heard of for H: nothing that it may still have can be used."""
        if self.timing.expiry == math.inf:
            return
        since = ctx.wall_clock() - self.timing.expiry * MICROSECONDS
        present = {turn.client for turn in self.turns}
        for client in [client for client, at in self.seen if at < since and client not in present]:
            self.last, self.removed, self.seen = (
                tuple(each for each in table if each[0] != client) for table in (self.last, self.removed, self.seen)
            )
            self.banned &= ~bit(client)
            self.muteness.forget_client(client)

    def _knows(self, client: int) -> bool:
        """Not to know a client means that it is new, if nobody is ever forgotten."""
        return self.timing.expiry == math.inf or client in dict(self.last)

    def _drop(self, ctx: Context, client: int, sid: int) -> None:
        """The client's turn is over here."""
        raise NotImplementedError


_WATCHED = {Silence.CHOOSING: State.E1, Silence.HOLDING: State.C, Silence.ACCUSED: State.E2}


def with_entry(table: tuple[tuple[int, int], ...], client: int, sid: int) -> tuple[tuple[int, int], ...]:
    return tuple(sorted({**dict(table), client: sid}.items()))
