"""A client of the Byzantine bakery: two accesses to enter when nobody is in the way, three otherwise, one to leave.

It collects what servers have signed and passes it on: the answers to GET justify its ticket, the answers to SET certify
it (the paper's certification module). It is inside when q servers have voted for its turn, until the earliest moment at
which one of them might suspect it: a vote is good for D from the heartbeat that it answers, on the client's own clock
and less what that clock may be slow. Heartbeats go on inside and renew the votes.

A turn that cannot succeed any more is given up, and the next one is begun with a later ticket: when it was removed, or
when too few servers are left that may still vote.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from trinco.core.context import WAITING, Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.core.signed import Signed
from trinco.protocols.bakery.certificates import Begun, Judge, Ticket, Vote, by_signer, trimmed
from trinco.protocols.bakery.freshness import given_together
from trinco.protocols.bakery.messages import (
    BadJustification,
    Certificate,
    Exit,
    ExitReply,
    Get,
    GetReply,
    Go,
    Listen,
    Removed,
    Set,
    SetReply,
    Wait,
)
from trinco.protocols.bakery.muteness import Timing, arm
from trinco.protocols.bakery.renaming import renamed, renamed_ids, signed_by
from trinco.protocols.bakery.wire import admitted

HEARTBEATS_REMEMBERED = 5
"""A vote is good for four; an older one is worth nothing."""


class Access(Enum):
    """The last one that was begun."""

    NONE = "none"
    GET = "get"
    SET = "set"
    LISTEN = "listen"


@dataclass(slots=True)
class Client(Process):
    judge: Judge
    timing: Timing
    silence: float
    """tau: doubled whenever servers that live were counted out."""
    sid: int = 0
    access: Access = Access.NONE
    replies: tuple[GetReply, ...] = ()
    number: int = 0
    tickets: Certificate = ()
    votes: Certificate = ()
    """Once inside: the grant certificate."""
    sent: tuple[tuple[int, Instant], ...] = ()
    """(heartbeat, until when a vote that answers it is good); SET is heartbeat 0."""
    until: Instant | None = None
    """The end of the lease."""
    heard: Ids = NOBODY
    dead: Ids = NOBODY
    """Servers that will not vote for this turn."""
    removals: Ids = NOBODY
    wants_signatures: bool = False
    """Where servers vouch: some server could not verify what others had vouched for. See ``vouching``."""

    def acquire(self, ctx: Context) -> None:
        self.sid += 1
        ctx.store(self.sid)
        self.access = Access.GET
        turn = ctx.sign(Begun(self.judge.lock, ctx.me, self.sid))
        self.request(ctx, Get(self.sid, turn, self.wants_signatures))

    def request(self, ctx: Context, message: Get | Set | Exit) -> None:
        """An access that changes what servers know."""
        ctx.broadcast(message, to=self.judge.servers)

    def release(self, ctx: Context) -> None:
        self.request(ctx, Exit(self.sid, self._certificate()))
        for name in ("heartbeat", "silence"):
            ctx.cancel_timer(name)
        self.access = Access.NONE
        self.replies, self.number, self.tickets, self.votes, self.sent = (), 0, (), (), ()
        self.until = None
        self.heard = self.dead = self.removals = NOBODY

    def on_restart(self, ctx: Context, stored: int | None) -> None:
        """A turn is begun once, by whoever it is that bears this name; the one it died in is over."""
        self.sid = stored or 0
        if self.sid:
            self.release(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        sound = admitted(message, len(self.judge.servers))
        if sound is not None and source in self.judge.servers and not self.ignores(sound):
            self._take_in(ctx, source, sound)

    def _take_in(self, ctx: Context, source: int, message: Message) -> None:
        if self.silence < math.inf and self.access is not Access.GET:
            self.heard |= bit(source)
        match message:
            case GetReply():
                self.on_get_reply(ctx, source, message)
            case SetReply():
                self.on_set_reply(ctx, source, message)
            case Go(vote=vote):
                self._count_vote(ctx, source, vote)
            case Wait(dead=True):
                self.dead |= bit(source)
            case Removed():
                self.on_removed(ctx, source, message)
            case BadJustification():
                self.on_bad_justification(ctx, message)

    def ignores(self, message: Message) -> bool:
        """What comes for an earlier turn, or for an access that is over."""
        if isinstance(message, ExitReply) or (isinstance(message, Wait) and self.silence == math.inf):
            return True
        sid: int = getattr(message, "sid", self.sid)
        if sid < self.sid or (sid == self.sid and self.access is Access.NONE):
            return True
        if sid > self.sid:
            return False
        if isinstance(message, GetReply):
            return self.access is not Access.GET
        if isinstance(message, BadJustification):
            return not self.judge.slack or self.wants_signatures or self.until is not None
        renews = isinstance(message, Go) and self.timing.hold < math.inf
        return self.until is not None and isinstance(message, SetReply | Go) and not renews

    # GET: the highest tickets of q servers

    def on_get_reply(self, ctx: Context, source: int, message: GetReply) -> None:
        known = self.judge.highest_in(ctx, message, ctx.me, self.sid)
        if message.sid != self.sid or known is None or message.highest.signer != source:
            return
        if self.wants_signatures and message.highest.readers:
            return
        replies = {reply.highest.signer: reply for reply in (*self.replies, message)}
        self.replies = tuple(replies[signer] for signer in sorted(replies))
        justification = given_together(self.replies, self.judge.quorum, self.timing.expiry)
        if justification:
            self._set_ticket(ctx, justification)

    # SET: one higher

    def _set_ticket(self, ctx: Context, justification: tuple[GetReply, ...]) -> None:
        self.replies = ()
        number = self.judge.ticket_by(ctx, justification, ctx.me, self.sid)
        assert number is not None
        self.number, self.access = number, Access.SET
        self._note_heartbeat(ctx, 0)
        arm(ctx, "silence", self.silence)
        self.request(ctx, Set(self.sid, number, trimmed(justification)))

    def _note_heartbeat(self, ctx: Context, heartbeat: int) -> None:
        good_until = ctx.now() + self.timing.lease
        self.sent = (*self.sent, (heartbeat, good_until))[-HEARTBEATS_REMEMBERED:]
        arm(ctx, "heartbeat", self.timing.heartbeat)

    def on_set_reply(self, ctx: Context, source: int, message: SetReply) -> None:
        ticket = Ticket(self.judge.lock, self.number)
        if message.sid != self.sid or not self.judge.is_told(ctx, message.ticket, source, ticket):
            return
        if self.access is Access.SET:
            self.tickets = by_signer((*self.tickets, message.ticket))
        self._count_vote(ctx, source, message.vote)
        if self.until is None and self.access is Access.SET and len(self.tickets) >= self.judge.quorum:
            self.listen(ctx)

    # LISTEN, and heartbeats

    def listen(self, ctx: Context) -> None:
        self.access = Access.LISTEN
        self.tickets = self._certificate()
        heartbeat = self.sent[-1][0] + 1
        self._note_heartbeat(ctx, heartbeat)
        ctx.broadcast(Listen(self.sid, self.tickets, heartbeat), to=self.judge.servers)

    def _certificate(self) -> Certificate:
        """The ticket's, if it is complete."""
        signed, enough = [each for each in self.tickets if not each.readers], self.judge.f + 1
        return tuple(signed[:enough]) if len(signed) >= enough else ()

    # GO

    def _count_vote(self, ctx: Context, source: int, vote: Signed | None) -> None:
        if vote is None or not self._is_vote(ctx, source, vote):
            return
        known = {each.signer: each for each in self.votes}
        if source not in known or known[source].body.heartbeat < vote.body.heartbeat:
            self.votes = by_signer((*self.votes, vote))
        until = self._end_of_lease()
        if until is not None and not until <= ctx.now():
            self._enter(ctx, until)

    def _is_vote(self, ctx: Context, source: int, vote: Signed) -> bool:
        meant = Vote(self.judge.lock, ctx.me, self.sid, self.number, vote.body.heartbeat)
        return self.number > 0 and self.judge.is_told(ctx, vote, source, meant)

    def _end_of_lease(self) -> Instant | None:
        """When the first of the q freshest votes ends."""
        good_until = dict(self.sent)
        ends = [good_until[vote.body.heartbeat] for vote in self.votes if vote.body.heartbeat in good_until]
        return sorted(ends, reverse=True)[self.judge.quorum - 1] if len(ends) >= self.judge.quorum else None

    def _enter(self, ctx: Context, until: Instant) -> None:
        first = ctx.phase is WAITING
        if not first and (self.until is None or self.until <= ctx.now() or until <= self.until):
            return  # no longer than it has already; or too late, and somebody else may be inside
        if first:
            ctx.cancel_timer("silence")
            self.tickets = self._certificate()
            self.heard = self.dead = NOBODY
        self.until = until
        ctx.grant((self.number, ctx.me), None if self.timing.hold == math.inf else until)

    # When a turn cannot succeed

    def on_removed(self, ctx: Context, source: int, message: Removed) -> None:
        if message.sid != self.sid:
            return
        self.removals |= bit(source)
        proved = self.judge.removes(ctx, message.certificate, ctx.me, self.sid)
        if proved or self.removals.bit_count() > self.judge.f:
            self.give_up(ctx)

    def on_bad_justification(self, ctx: Context, message: BadJustification) -> None:
        if message.sid == self.sid:
            self.wants_signatures = True
            self.give_up(ctx)

    def give_up(self, ctx: Context) -> None:
        waits = ctx.phase is WAITING
        self.release(ctx)
        if waits:
            self.acquire(ctx)
        else:
            ctx.lost("revoked")

    def on_timer(self, ctx: Context, name: str) -> None:
        if name == "heartbeat":
            self.listen(ctx)
        elif name == "silence":
            self._count_the_living(ctx)

    def _count_the_living(self, ctx: Context) -> None:
        """q votes can no longer come together if fewer than q servers are neither silent nor sure not to vote."""
        if (self.heard & ~self.dead).bit_count() >= self.judge.quorum:
            self.heard = NOBODY
            arm(ctx, "silence", self.silence)
            return
        self.silence = min(2 * self.silence, max(self.timing.cap, self.silence))
        self.give_up(ctx)

    def column(self, server: int) -> tuple[object, ...]:
        signatures = [*self.tickets, *self.votes, *(reply.highest for reply in self.replies)]
        noted = (ids & bit(server) > 0 for ids in (self.heard, self.dead, self.removals))
        return (*signed_by(server, signatures), *noted)

    def relabel(self, names: Mapping[int, int]) -> None:
        self.replies, self.tickets, self.votes = (
            renamed(each, names) for each in (self.replies, self.tickets, self.votes)
        )
        self.heard, self.dead, self.removals = (
            renamed_ids(each, names) for each in (self.heard, self.dead, self.removals)
        )
