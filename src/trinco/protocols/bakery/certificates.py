"""What is signed in the Byzantine bakery, and what so many signatures prove.

- A *justification* J, q servers' signed answers to one GET, proves that a ticket is one above the highest of a quorum.
- A *ticket certificate* TC, f+1 signatures under a ticket, proves that a correct server has seen its justification: so
  no liar can make tickets huge. Ticket 0 needs none.
- A *grant certificate*, q signed GOs for one turn and one ticket, proves to a resource that trusts no client that this
  one may enter: its fencing token is (ticket, client).
- A *removal certificate* RC, q signed suspicions, proves that nobody will be let in by q votes for that turn any more.

Every body names the lock and the configuration of servers, so that nothing can be used elsewhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from trinco.core.context import Context
from trinco.core.ids import NOBODY, Ids, bit
from trinco.core.signed import Signed
from trinco.protocols.bakery.messages import Certificate, GetReply


class Body(msgspec.Struct, frozen=True, tag=True):
    lock: str


class Begun(Body, frozen=True, tag="TURN"):
    """A client: this turn is mine."""

    client: int
    sid: int


class Highest(Body, frozen=True, tag="GR"):
    """A server: when this client asked, no ticket that I had accepted was higher."""

    client: int
    sid: int
    number: int
    issued: int = 0
    """When, in microseconds by the server's clock; 0 where nothing is ever forgotten."""


class Ticket(Body, frozen=True, tag="T"):
    """A server: I have seen a justification of this ticket."""

    number: int


class Vote(Body, frozen=True, tag="GO"):
    """A server: nobody is in the way of this client here."""

    client: int
    sid: int
    number: int
    heartbeat: int


class Suspicion(Body, frozen=True, tag="SUS"):
    """A server: this client fell silent, and I shall never vote for this turn again."""

    client: int
    sid: int


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

    def is_genuine(self, ctx: Context, signed: Any, signer: int, body: Body) -> bool:
        return ctx.verify(signed) and signed.signer == signer and signed.body == body

    def _signers(self, ctx: Context, signatures: Iterable[Any], body: Body) -> int:
        """How many servers have signed exactly this."""
        found: Ids = NOBODY
        for signed in signatures:
            if ctx.verify(signed) and signed.signer in self.servers and signed.body == body:
                found |= bit(signed.signer)
        return found.bit_count()

    def certifies(self, ctx: Context, certificate: Certificate, number: int) -> bool:
        return number == 0 or self._signers(ctx, certificate, Ticket(self.lock, number)) > self.f

    def highest_in(self, ctx: Context, reply: Any, client: int, sid: int) -> int | None:
        """The certified ticket in a server's answer to this turn's GET; None if it proves nothing."""
        signed: Any = getattr(reply, "highest", None)
        if not ctx.verify(signed) or signed.signer not in self.servers:
            return None
        body = signed.body
        if not isinstance(body, Highest) or type(body.number) is not int or body.number < 0:
            return None
        if type(body.issued) is not int:
            return None
        meant = body == Highest(self.lock, client, sid, body.number, body.issued)
        return body.number if meant and self.certifies(ctx, reply.certificate, body.number) else None

    def ticket_by(self, ctx: Context, justification: tuple[GetReply, ...], client: int, sid: int) -> int | None:
        """The one ticket that these answers justify for this turn; None if they justify nothing."""
        numbers = [self.highest_in(ctx, reply, client, sid) for reply in justification]
        known = [number for number in numbers if number is not None]
        if len(known) != len(numbers) or len(known) != self.quorum:
            return None
        signers = {reply.highest.signer for reply in justification}
        return 1 + max(known) if len(signers) == self.quorum else None

    def is_justified(self, ctx: Context, number: int, justification: tuple[GetReply, ...]) -> bool:
        """Whether it is a ticket of any turn: whose, the answers say."""
        first: Any = getattr(justification[0], "highest", None) if justification else None
        if not ctx.verify(first) or not isinstance(first.body, Highest):
            return False
        return self.ticket_by(ctx, justification, first.body.client, first.body.sid) == number

    def removes(self, ctx: Context, certificate: Certificate, client: int, sid: int) -> bool:
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


def by_signer(signatures: Iterable[Signed]) -> Certificate:
    """Each once, in the one order: the same certificate is the same value."""
    return tuple(sorted({signed.signer: signed for signed in signatures}.values(), key=lambda signed: signed.signer))
