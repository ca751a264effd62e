"""What travels in the Byzantine bakery. Every message of a client, and every answer, names the turn it is for: ``sid``.

A client has four accesses to the servers, GET, SET, LISTEN and EXIT; each is one message to all of them and an answer
from each. Servers talk to each other only to have a ticket certified and to get rid of who fell silent.
"""

from collections.abc import Mapping
from typing import Self

from trinco.core.message import Message, Natural
from trinco.core.signed import Signed
from trinco.protocols.bakery.certificates import Begun, Highest, Suspicion, Ticket, Vote
from trinco.protocols.bakery.renaming import renamed

Certificate = tuple[Signed, ...]
"""Signatures of several servers under one body, by signer. See ``certificates``."""


class Proof(Message):
    """A message that carries signatures of servers."""

    def relabel(self, names: Mapping[int, int]) -> Self:
        message: Self = renamed(self, names)
        return message


class Get(Message, tag="get", omit_defaults=True):
    """I want to enter: what is your highest ticket?"""

    sid: Natural
    turn: Signed[Begun]
    """The turn, signed by the client: the proof that there is one, for servers that the GET has not reached."""
    transferable: bool = False
    """Where servers vouch: sign this time, somebody could not verify what was vouched for."""

    def in_words(self) -> str:
        return f"GET #{self.sid}"


class GetReply(Proof, tag="get-reply"):
    sid: Natural
    highest: Signed[Highest]
    certificate: tuple[Signed[Ticket], ...]
    """That the highest ticket was justified."""

    def in_words(self) -> str:
        return f"{self.highest.body.number} is the highest, #{self.sid}"


class Set(Proof, tag="set"):
    """This is my ticket, and these answers justify it."""

    sid: Natural
    number: Natural
    justification: tuple[GetReply, ...]

    def in_words(self) -> str:
        return f"SET {self.number} #{self.sid}"


class SetReply(Proof, tag="set-reply"):
    sid: Natural
    ticket: Signed[Ticket]
    vote: Signed[Vote] | None
    """A GO at once, when nobody is in the way here."""

    def in_words(self) -> str:
        return f"{'GO' if self.vote else 'ticket noted'} #{self.sid}"


class Listen(Proof, tag="listen"):
    """I wait for my turn, and am alive. Repeated with a higher ``heartbeat``, also while inside."""

    sid: Natural
    certificate: tuple[Signed[Ticket], ...]
    heartbeat: Natural

    def in_words(self) -> str:
        return f"LISTEN #{self.sid}, heartbeat {self.heartbeat}"


class Wait(Message, tag="wait"):
    sid: Natural
    dead: bool
    """I have suspected you: I shall never vote for this turn."""


class Go(Proof, tag="go"):
    sid: Natural
    vote: Signed[Vote]

    def in_words(self) -> str:
        return f"GO #{self.sid}"


class Exit(Proof, tag="exit"):
    sid: Natural
    certificate: tuple[Signed[Ticket], ...]

    def in_words(self) -> str:
        return f"EXIT #{self.sid}"


class ExitReply(Message, tag="exit-reply"):
    sid: Natural


class BadJustification(Message, tag="bad-justification"):
    """Some answers to your GET are vouched for, but not so that I could tell. Ask for signatures."""

    sid: Natural


class Removed(Proof, tag="removed"):
    """You are out of this turn. Without a certificate it takes f+1 of these to believe it."""

    sid: Natural
    certificate: tuple[Signed[Suspicion], ...]

    def in_words(self) -> str:
        return f"removed from #{self.sid}{'' if self.certificate else ', without proof'}"


class Certify(Proof, tag="certify"):
    """From server to server: this ticket is justified, sign it too."""

    number: Natural
    justification: tuple[GetReply, ...]
    ticket: Signed[Ticket]
    """With the asker's own signature: whoever is asked may need a certificate as well."""

    def in_words(self) -> str:
        return f"sign {self.number}, please"


class Certified(Proof, tag="certified"):
    ticket: Signed[Ticket]

    def in_words(self) -> str:
        return f"signed {self.ticket.body.number}"


class Suspect(Proof, tag="suspect"):
    """From server to server: this client has fallen silent."""

    suspicion: Signed[Suspicion]
    turn: Signed[Begun]
    """The client's own signature under the turn, or a liar could have turns removed that were never begun."""
    asks: bool
    """Whether a server for which the turn is over shall sign too. The answer to this is no question."""

    def in_words(self) -> str:
        return f"p{self.turn.body.client} is silent in #{self.turn.body.sid}"


class Removal(Proof, tag="removal"):
    client: Natural
    sid: Natural
    certificate: tuple[Signed[Suspicion], ...]

    def in_words(self) -> str:
        return f"p{self.client} is removed from #{self.sid}"
