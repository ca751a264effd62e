"""The highest ticket that a server has accepted, and the proof that it is one.

A server tells its highest ticket to whoever asks, so others must be able to tell it from an invented one: f+1 servers
sign a ticket whose justification they have seen. Clients bring such a certificate with LISTEN and EXIT; only when
somebody asks before that do servers ask each other.
"""

from dataclasses import dataclass

from trinco.core.context import Context
from trinco.core.signed import Signed
from trinco.protocols.bakery.certificates import Judge, Ticket, by_signer, largest_certificate, ticket_of
from trinco.protocols.bakery.messages import Certificate, Certified, Certify, GetReply


@dataclass(slots=True)
class Tickets:
    judge: Judge
    highest: int = 0
    """Never lower again, or fencing tokens would fall."""
    justification: tuple[GetReply, ...] = ()
    """Of the highest ticket, until it is certified."""
    certified: int = 0
    certificate: Certificate = ()
    signatures: tuple[Signed, ...] = ()
    """Under tickets that are not certified yet."""
    asked: int = 0
    """The highest ticket that the other servers were asked to sign."""

    def accept(self, ctx: Context, number: int, justification: tuple[GetReply, ...]) -> None:
        """A client has set a ticket, and justified it."""
        if number > self.highest:
            self.highest = number
            self.justification = justification if number > self.certified else ()
        if self.judge.slack:
            shown = largest_certificate(justification)
            self.learn(ctx, ticket_of(shown), shown)
            self.certify(ctx, self.highest - self.judge.slack // 2)
        else:
            self._count(ctx, ctx.sign(Ticket(self.judge.lock, number)))

    @property
    def reach(self) -> int:
        """The highest ticket that it may tell: others take its word so far above what it has a certificate for."""
        return self.certified + self.judge.slack

    def can_tell(self, number: int, justification: tuple[GetReply, ...]) -> bool:
        """Whether it may tell this ticket, once it has accepted it with all that came along."""
        return number <= max(self.reach, ticket_of(largest_certificate(justification)) + self.judge.slack)

    @property
    def told(self) -> int:
        return max(self.certified, min(self.highest, self.reach))

    def certify(self, ctx: Context, needed: int) -> None:
        """Have a ticket certified that is at least so high, unless that is going on. Where tickets are accepted on
        somebody's word, others need not sign them: then it is tried again with the next."""
        unasked = self.highest if self.judge.slack else needed
        if needed > self.certified and unasked > self.asked:
            self.asked = self.highest
            ticket = ctx.sign(Ticket(self.judge.lock, self.highest))
            ctx.broadcast(Certify(self.highest, self.justification, ticket), to=self.judge.servers)
            self._count(ctx, ticket)

    def on_certify(self, ctx: Context, source: int, message: Certify) -> None:
        ticket = Ticket(self.judge.lock, message.number)
        accepted = self.judge.slack and message.number <= self.highest
        if not accepted and not self.judge.is_justified(ctx, message.number, message.justification):
            return
        mine = ctx.sign(ticket)
        if self.asked != message.number:  # else my signature is on its way already
            ctx.send(source, Certified(mine))
        self._count(ctx, mine)
        if self.judge.is_genuine(ctx, message.ticket, source, ticket):
            self._count(ctx, message.ticket)

    def on_certified(self, ctx: Context, source: int, ticket: Signed) -> None:
        """Only what may have been asked for: a liar may sign all the numbers there are."""
        number = ticket.body.number
        genuine = self.judge.is_genuine(ctx, ticket, source, Ticket(self.judge.lock, number))
        if genuine and self.certified < number <= self.asked:
            self._count(ctx, ticket)

    def _count(self, ctx: Context, ticket: Signed) -> None:
        """Where a server signs all that it has accepted, only what was asked for last is kept."""
        number, slack = ticket.body.number, self.judge.slack
        if number > self.certified and (not slack or number == self.asked):
            others = tuple(each for each in self.signatures if each.body.number != number and not slack)
            alike = by_signer((ticket, *(each for each in self.signatures if each.body.number == number)))
            self.signatures = tuple(sorted((*others, *alike), key=lambda each: int(each.body.number)))
            self.learn(ctx, number, alike)

    def learn(self, ctx: Context, number: int, certificate: Certificate) -> None:
        """Somebody shows a certificate."""
        if number > self.certified and self.judge.certifies(ctx, certificate, number):
            self.certified, self.certificate = number, certificate
            self.signatures = tuple(each for each in self.signatures if each.body.number > number)
            self.justification = self.justification if number < self.highest else ()
