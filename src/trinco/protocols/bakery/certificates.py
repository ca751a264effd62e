"""What is signed in the Byzantine bakery, and what so many signatures prove.

- A *justification* J, q servers' signed answers to one GET and a certificate for the highest of them, proves that a
  ticket is one above the highest of a quorum.
- A *ticket certificate* TC, f+1 signatures under a ticket, proves that a correct server has seen its justification: so
  no liar can make tickets huge. Ticket 0 needs none.
- A *grant certificate*, q signed GOs for one turn and one ticket, proves to a resource that trusts no client that this
  one may enter: its fencing token is (ticket, client).
- A *removal certificate* RC, q signed suspicions, proves that nobody will be let in by q votes for that turn any more.

Every body names the lock and the configuration of servers, so that nothing can be used elsewhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.message import Natural
from trinco.core.signed import Signed

if TYPE_CHECKING:
    from trinco.protocols.bakery.messages import Certificate, GetReply


change = msgspec.structs.replace


class Body(msgspec.Struct, frozen=True, tag=True):
    lock: str


class Begun(Body, frozen=True, tag="TURN"):
    """A client: this turn is mine."""

    client: Natural
    sid: Natural


class Highest(Body, frozen=True, tag="GR"):
    """A server: when this client asked, no ticket that I had accepted was higher."""

    client: Natural
    sid: Natural
    number: Natural
    issued: int = 0
    """When, in microseconds by the server's clock; 0 where nothing is ever forgotten."""


class Ticket(Body, frozen=True, tag="T"):
    """A server: I have seen a justification of this ticket."""

    number: Natural


class Vote(Body, frozen=True, tag="GO"):
    """A server: nobody is in the way of this client here."""

    client: Natural
    sid: Natural
    number: Natural
    heartbeat: Natural


class Suspicion(Body, frozen=True, tag="SUS"):
    """A server: this client fell silent, and I shall never vote for this turn again."""

    client: Natural
    sid: Natural


Token = tuple[int, int]
"""The fencing token: (ticket, client). Entries of correct clients are in its order."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Knows the lock and its servers, and tells what is proved from what is only said. Never raises: a liar may put
    anything where a signature should be."""

    lock: str
    servers: tuple[int, ...]
    f: int
    quorum: int
    slack: int = 0
    """How far tickets may run ahead of their certificates, where servers vouch instead of signing. See ``vouching``."""

    def is_genuine(self, ctx: Context, signed: Any, signer: int, body: Body) -> bool:
        """Signed, so that it can be shown to others."""
        said = isinstance(signed, Signed) and signed.signer == signer and signed.body == body
        return said and not signed.readers and ctx.verify(signed)

    def is_told(self, ctx: Context, signed: Any, signer: int, body: Body) -> bool:
        """Signed, or at least vouched for to this node."""
        said = isinstance(signed, Signed) and signed.signer == signer and signed.body == body
        return said and self._may_be_read(ctx, signed)

    def _may_be_read(self, ctx: Context, signed: Signed) -> bool:
        return (self.slack > 0 or not signed.readers) and ctx.verify(signed)

    def _signers(self, ctx: Context, signatures: Iterable[Any], body: Body) -> int:
        """How many servers have signed exactly this."""
        found: Ids = NOBODY
        for signed in signatures:
            if getattr(signed, "signer", None) in self.servers and self.is_genuine(ctx, signed, signed.signer, body):
                found |= bit(signed.signer)
        return found.bit_count()

    def certifies(self, ctx: Context, certificate: "Certificate", number: int) -> bool:
        return number == 0 or self._signers(ctx, certificate, Ticket(self.lock, number)) > self.f

    def allows(self, ctx: Context, certificate: "Certificate", number: int) -> bool:
        """Whether a server that shows this certificate may say that its highest ticket is so high. It must not look
        like one for another ticket, or it would be taken for that when the answer is passed on."""
        certified = ticket_of(certificate)
        if not self.slack:
            return self.certifies(ctx, certificate, number) and (not certificate or certified == number)
        return number <= certified + self.slack and self.certifies(ctx, certificate, certified)

    def highest_in(self, ctx: Context, reply: "GetReply", client: int, sid: int) -> int | None:
        """The ticket in a server's answer to this turn's GET; None if it proves nothing."""
        number = self._claimed_in(reply, client, sid)
        return number if number is not None and self._is_proved(ctx, reply) else None

    def ticket_by(self, ctx: Context, justification: "tuple[GetReply, ...]", client: int, sid: int) -> int | None:
        """The one ticket that these answers justify for this turn; None if they justify nothing."""
        claimed = self.claimed_by(justification, client, sid)
        return claimed if claimed is not None and self.are_proved(ctx, justification) else None

    def claimed_by(self, justification: "tuple[GetReply, ...]", client: int, sid: int) -> int | None:
        """The same, if all of them are genuine."""
        numbers = [self._claimed_in(reply, client, sid) for reply in justification]
        known = [number for number in numbers if number is not None]
        if len(known) != len(numbers) or len(known) != self.quorum:
            return None
        signers = {reply.highest.signer for reply in justification}
        return 1 + max(known) if len(signers) == self.quorum else None

    def are_proved(self, ctx: Context, justification: "tuple[GetReply, ...]") -> bool:
        """Each is genuine, and the highest of them is certified: the others need not be, since they decide nothing."""
        if not all(self._may_be_read(ctx, reply.highest) for reply in justification):
            return False
        highest = max((reply.highest.body.number for reply in justification), default=0)
        return self.allows(ctx, largest_certificate(justification), highest)

    def _claimed_in(self, reply: Any, client: int, sid: int) -> int | None:
        signed: Any = getattr(reply, "highest", None)
        body = signed.body if isinstance(signed, Signed) and signed.signer in self.servers else None
        if not isinstance(body, Highest) or body.number < 0:
            return None
        return body.number if body == Highest(self.lock, client, sid, body.number, body.issued) else None

    def _is_proved(self, ctx: Context, reply: "GetReply") -> bool:
        signed = reply.highest
        return self._may_be_read(ctx, signed) and self.allows(ctx, reply.certificate, signed.body.number)

    def is_justified(self, ctx: Context, number: int, justification: "tuple[GetReply, ...]") -> bool:
        """Whether it is a ticket of any turn: whose, the answers say."""
        if not justification:
            return False
        first = justification[0].highest.body
        return self.ticket_by(ctx, justification, first.client, first.sid) == number

    def removes(self, ctx: Context, certificate: "Certificate", client: int, sid: int) -> bool:
        return self._signers(ctx, certificate, Suspicion(self.lock, client, sid)) >= self.quorum

    def token_of(self, ctx: Context, votes: Iterable[Signed]) -> Token | None:
        """What a resource asks: whom q servers let in, with which ticket. Heartbeats may differ."""
        turns = {
            (vote.signer, vote.body.client, vote.body.sid, vote.body.number)
            for vote in votes
            if ctx.verify(vote) and vote.signer in self.servers and isinstance(vote.body, Vote)
            if vote.body.lock == self.lock
        }
        granted = {turn[1:] for turn in turns}
        if len(granted) != 1 or len(turns) < self.quorum:
            return None
        client, _, number = granted.pop()
        return number, client


def ticket_of(certificate: "Certificate") -> int:
    """The ticket that a certificate is for; without one, 0."""
    return certificate[0].body.number if certificate else 0


def largest_certificate(justification: "tuple[GetReply, ...]") -> "Certificate":
    return max((reply.certificate for reply in justification), key=ticket_of, default=())


def trimmed(justification: "tuple[GetReply, ...]") -> "tuple[GetReply, ...]":
    """With the largest certificate only, once: then it has q+f+1 signatures, and not q(f+2). Which one of several as
    large makes no difference to anybody."""
    shown = largest_certificate(justification)
    bearer = next((reply for reply in justification if reply.certificate == shown), None)
    return tuple(reply if reply is bearer else change(reply, certificate=()) for reply in justification)


def by_signer(signatures: Iterable[Signed]) -> "Certificate":
    """Each once, in the one order: the same certificate is the same value."""
    return tuple(sorted({signed.signer: signed for signed in signatures}.values(), key=lambda signed: signed.signer))
