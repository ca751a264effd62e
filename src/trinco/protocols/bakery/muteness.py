"""The muteness detector of a server: who should have spoken by now, and who says so too.

It suspects whoever has asked for tickets and sets none, and whoever was granted the section and does not renew. To
suspect is not to remove: one server's mistake must not let two in. A suspecter signs that it will never vote for that
turn again and tells the other servers; q such signatures are a removal certificate. Two quorums share a correct server:
it has either voted, and suspected only after the lease that its vote is good for had ended, or it will never vote.

Where a suspicion comes from another server, one that does not know the turn (a GET to some servers only) waits as long
as it would for a ticket; one that holds a ticket of it waits for a heartbeat. Who was wrongly suspected is given twice
the time from then on, up to a limit, or a Byzantine client could make itself as slow as it likes.
"""

import math
from dataclasses import dataclass
from enum import Enum

from trinco.core.context import Context
from trinco.core.signed import Signed
from trinco.protocols.bakery.certificates import Judge, Suspicion, by_signer
from trinco.protocols.bakery.messages import Certificate, Suspect


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; ``math.inf`` is never."""

    hold: float
    """D: how long a vote is good for, from the heartbeat that it answers."""
    extension: float
    """How long after its first vote a server renews it."""
    silence: float
    """tau: how long a client waits for a sign of life before it counts a server out."""
    choosing: float
    """How long a client may take from GET to SET."""
    cap: float
    """The longest that any of these is stretched to."""
    drift: float
    """rho: how much faster one clock may run than another."""
    expiry: float = math.inf
    """H: how long a client that is gone is remembered. See ``freshness``."""

    @property
    def heartbeat(self) -> float:
        return self.hold / 4

    @property
    def lease(self) -> float:
        """How long a client believes in a vote."""
        return self.hold * (1 - self.drift)


class Silence(Enum):
    CHOOSING = "choose"
    HOLDING = "hold"
    ACCUSED = "accused"


def arm(ctx: Context, name: str, delay: float) -> None:
    if delay < math.inf:
        ctx.set_timer(name, delay)


def _name(silence: Silence, client: int, sid: int) -> str:
    return f"muteness/{silence.value}/{client}/{sid}"


@dataclass(slots=True)
class Muteness:
    judge: Judge
    timing: Timing
    mistakes: tuple[tuple[int, int], ...] = ()
    """(client, how often it was suspected and then spoke)"""
    suspicions: tuple[Suspect, ...] = ()
    """Of turns that are not over here, everybody's."""

    def patience(self, client: int) -> float:
        return min(self.timing.choosing * (1 << dict(self.mistakes).get(client, 0)), self.timing.cap)

    def watch_choosing(self, ctx: Context, client: int, sid: int) -> None:
        ctx.cancel_timer(_name(Silence.ACCUSED, client, sid))
        if self.timing.choosing < math.inf:
            arm(ctx, _name(Silence.CHOOSING, client, sid), self.patience(client))

    def chosen(self, ctx: Context, client: int, sid: int) -> None:
        ctx.cancel_timer(_name(Silence.CHOOSING, client, sid))
        self.heard(ctx, client, sid)

    def watch_holder(self, ctx: Context, client: int, sid: int) -> None:
        ctx.cancel_timer(_name(Silence.ACCUSED, client, sid))
        arm(ctx, _name(Silence.HOLDING, client, sid), self.timing.hold)

    def heard(self, ctx: Context, client: int, sid: int) -> None:
        """Somebody who waits gives a sign of life. That matters only while another server suspects it."""
        if self.is_accused(client, sid) and not self.has_suspected(ctx, client, sid):
            arm(ctx, _name(Silence.ACCUSED, client, sid), self.timing.heartbeat + self.patience(client))

    def await_turn(self, ctx: Context, client: int, sid: int) -> None:
        """Another server suspects in a turn that is unknown here: its GET may be on its way."""
        arm(ctx, _name(Silence.ACCUSED, client, sid), self.patience(client))

    def was_mistaken(self, client: int) -> None:
        mistakes = dict(self.mistakes)
        if self.patience(client) < self.timing.cap:
            mistakes[client] = mistakes.get(client, 0) + 1
            self.mistakes = tuple(sorted(mistakes.items()))

    def forget_client(self, client: int) -> None:
        self.mistakes = tuple(each for each in self.mistakes if each[0] != client)

    def is_accused(self, client: int, sid: int) -> bool:
        return bool(self.certificate(client, sid))

    def has_suspected(self, ctx: Context, client: int, sid: int) -> bool:
        return any(signed.signer == ctx.me for signed in self.certificate(client, sid))

    def certificate(self, client: int, sid: int) -> Certificate:
        """All signatures there are for the removal of a turn."""
        suspicion = Suspicion(self.judge.lock, client, sid)
        return by_signer(each.suspicion for each in self.suspicions if each.suspicion.body == suspicion)

    def suspect(self, ctx: Context, turn: Signed, asks: bool = True) -> Suspect:
        suspicion = ctx.sign(Suspicion(self.judge.lock, turn.body.client, turn.body.sid))
        return Suspect(suspicion, turn, asks)

    def remember(self, suspect: Suspect) -> None:
        known = {_place(each): each for each in (suspect, *self.suspicions)}
        self.suspicions = tuple(known[place] for place in sorted(known))

    def unanswered(self, ctx: Context, client: int, sid: int) -> list[Suspect]:
        """What others have said about this client's turns up to this one, where this server has not said the same."""
        suspected = {_place(each)[:2] for each in self.suspicions if each.suspicion.signer == ctx.me}
        about = [each for each in self.suspicions if each.suspicion.body.client == client]
        return [each for each in about if each.suspicion.body.sid <= sid and _place(each)[:2] not in suspected]

    def forget(self, ctx: Context, client: int, sid: int) -> None:
        """The client's turns up to this one are over."""
        for silence in Silence:
            ctx.cancel_timer(_name(silence, client, sid))
        self.suspicions = tuple(
            each for each in self.suspicions if each.suspicion.body.client != client or each.suspicion.body.sid > sid
        )

    def evidence(self, client: int, sid: int) -> Signed | None:
        """The client's signature under a turn that others suspect."""
        suspicion = Suspicion(self.judge.lock, client, sid)
        return next((each.turn for each in self.suspicions if each.suspicion.body == suspicion), None)

    def read(self, name: str) -> tuple[Silence, int, int]:
        """Whose silence a timer is about."""
        _, silence, client, sid = name.split("/")
        return Silence(silence), int(client), int(sid)


def _place(suspect: Suspect) -> tuple[int, int, int]:
    body = suspect.suspicion.body
    return body.client, body.sid, suspect.suspicion.signer
