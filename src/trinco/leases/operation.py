"""What a client asks of one base, and what the base answers, whatever kind of store it is."""

from enum import Enum

from trinco.core.value import Value
from trinco.leases.claim import Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

TOKEN_LIMIT = 2**53
"""Up to here a number is exact in every store's language."""
TICKET_LIMIT = 2**52
NUMBERS = (int, float)
SOME_DAY, LONG_AGO = 1e18, -1e18
NEXT: "Final" = "next"
"""As a token: let the store count by itself. Only where one store is all there is (f = 0)."""


class Operation(Value):
    __slots__ = ("claim",)

    def __init__(self, claim: Claim) -> None:
        self.claim = claim


class Request(Operation):
    """Give me the lease, or refresh the one that I have. It never gives anything up.

    Without a ticket it is granted only where nobody waits. With one, and with ``wait`` seconds, a refused owner is
    remembered as a waiter for that long. ``token`` is the guess that the base commits if it is large enough, None
    where leases are not fenced; ``entry`` is the signed statement of all this, which the base keeps. ``serial``: which
    of an attempt's requests this is, for a base that hands over (see ``Handed``); None: it shall only wake me.
    """

    __slots__ = ("entry", "serial", "ticket", "token", "ttl", "wait")

    def __init__(
        self,
        claim: Claim,
        ttl: float,
        ticket: int | None = None,
        wait: float = 0,
        token: "int | str | None" = None,
        entry: "Any" = None,
        serial: int | None = None,
    ) -> None:
        self.claim = claim
        self.ttl = ttl
        self.ticket = ticket
        self.wait = wait
        self.token = token
        self.entry = entry
        self.serial = serial


class Commit(Operation):
    """Write this token beside my grant. The term does not change."""

    __slots__ = ("entry", "token")

    def __init__(self, claim: Claim, token: int, entry: "Any" = None) -> None:
        self.claim = claim
        self.token = token
        self.entry = entry


class Extend(Operation):
    """Renew: a new term, only if my entry is there and still live. ``renewal`` counts the renewals of this claim."""

    __slots__ = ("renewal", "ttl")

    def __init__(self, claim: Claim, ttl: float, renewal: int) -> None:
        self.claim = claim
        self.ttl = ttl
        self.renewal = renewal


class Yield(Operation):
    """Give my grant up and put me back among the waiters, for ``wait`` seconds."""

    __slots__ = ("entry", "ticket", "wait")

    def __init__(self, claim: Claim, ticket: int | None, wait: float, entry: "Any" = None) -> None:
        self.claim = claim
        self.ticket = ticket
        self.wait = wait
        self.entry = entry


class Release(Operation):
    """Remove exactly my entry, held or waiting, and nobody else's."""

    __slots__ = ("renewals",)

    def __init__(self, claim: Claim, renewals: int = 0) -> None:
        self.claim = claim
        self.renewals = renewals


class Grade(Enum):
    """How a base answers. Only COMMITTED is a vote."""

    COMMITTED = "committed"
    TENTATIVE = "tentative"
    """Granted, but the token that came along was too small: it must be committed by a larger one."""
    REFUSED = "refused"
    DONE = "done"
    """Released or yielded; it was mine."""
    GONE = "gone"
    """There was nothing of mine. To an extension, ``remaining`` tells of the lease that somebody else has instead."""
    FAILED = "failed"
    """No answer that makes sense: the store is down, or says what no store says."""

    __hash__ = object.__hash__

    @property
    def is_grant(self) -> bool:
        return self is Grade.COMMITTED or self is Grade.TENTATIVE


class Answer(Value):
    """``token``: what was committed, None where nothing was. ``remaining``: how long the lease that the answer is
    about still runs by the store's clock. ``smaller``: whether somebody with a smaller ticket waits here.
    ``evidence`` and ``ticket`` are the signed entries with the largest token and the largest live ticket.
    ``granularity``: how coarse the times are that it rests on.
    """

    __slots__ = ("evidence", "grade", "granularity", "remaining", "smaller", "ticket", "token")

    def __init__(
        self,
        grade: Grade,
        token: int | None = None,
        remaining: float = 0,
        smaller: bool = False,
        evidence: "Any" = None,
        ticket: "Any" = None,
        granularity: float = 0,
    ) -> None:
        self.grade = grade
        self.granularity = granularity
        self.token = token
        self.remaining = remaining
        self.smaller = smaller
        self.evidence = evidence
        self.ticket = ticket

    def makes_sense(self) -> bool:
        """Whether every field is what it must be: a store that runs code may say anything."""
        token, remaining, granularity = self.token, self.remaining, self.granularity
        return (
            self.grade.__class__ is Grade
            and (token is None or (token.__class__ is int and 0 <= token < TOKEN_LIMIT))
            and remaining.__class__ in NUMBERS
            and LONG_AGO < remaining < SOME_DAY
            and granularity.__class__ in NUMBERS
            and (not granularity or LONG_AGO < granularity < SOME_DAY)
            and self.smaller.__class__ is bool
        )


FAILED = Answer(Grade.FAILED)


class Handed(Value):
    """What a base says without being asked: somebody let go, and you were the first in line, so it is yours.

    ``answer`` is what a request would have got at that moment. For how long may it be believed? Not from when this
    arrives, since it may have been under way for long. But the base got our request, the one with this ``serial``,
    after we had sent it; it meant to remember us as a waiter until some moment, and now the lease lasts until another:
    ``beyond`` is how much later. What we noted when we sent that request is no later than what the base did, so
    ``beyond`` may be added to it. With any other request it would be too much.
    """

    __slots__ = ("answer", "beyond", "claim", "serial")

    def __init__(self, claim: Claim, serial: int, beyond: float, answer: Answer) -> None:
        self.claim = claim
        self.serial = serial
        self.beyond = beyond
        self.answer = answer

    @property
    def owner(self) -> "Any":
        """To whom it is said."""
        return self.claim.owner

    def makes_sense(self) -> bool:
        """Whether every field is what it must be: a store may say anything."""
        beyond, answer = self.beyond, self.answer
        return (
            isinstance(self.claim, Claim)
            and type(beyond) in NUMBERS
            and LONG_AGO < beyond < SOME_DAY
            and isinstance(answer, Answer)
            and answer.makes_sense()
            and answer.grade.is_grant
        )
