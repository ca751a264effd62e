"""Votes: what the bases have granted to one attempt, and with which token.

**Tokens.** The request carries a guess. A base commits it if it is larger than all it has seen, and only committed
votes for one token count. Where the guess was too small, a commit round writes 1 + the largest verified token. The
token is on a quorum before the caller may act, so every later quorum contains a correct base that insists on a larger
one.
"""

from trinco.core.instant import Instant
from trinco.leases.chains import Base, Chains
from trinco.leases.claim import Claim
from trinco.leases.operation import NEXT, Answer, Commit, Extend, Grade, Handed
from trinco.leases.plan import Plan
from trinco.leases.terms import Terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.leases.plan import Algorithm

STALE = 2_000
"""Microseconds: the bases that a release frees give their hints within that time, and one guess serves them all."""
FAR_AHEAD = 3_600_000_000
"""An hour in microseconds: a fresh item starts at its store's clock, and clocks that are further apart are not used."""


class Votes(Chains):
    """The bases of one client as voters. Whoever inherits says whose ``claim`` they vote on."""

    __slots__ = ("guess", "token")

    def __init__(self, terms: Terms, algorithms: "tuple[Algorithm, ...]") -> None:
        Chains.__init__(self, terms, algorithms)
        self.guess: Any = None
        """The token that this attempt wants to commit."""
        self.token = 0
        """The largest token we know of."""

    @property
    def claim(self) -> Claim:
        raise NotImplementedError

    # What a runtime provides

    def signed(self, ctx: "Any", claim: Claim) -> "Any":
        """The entry that speaks for this attempt: claim, ticket and token under our signature."""
        return None

    def token_in(self, ctx: "Any", evidence: "Any") -> int:
        """The token in a signed entry that a base showed; 0 if it proves nothing."""
        return 0

    def ticket_in(self, ctx: "Any", evidence: "Any") -> int:
        return 0

    # Counting

    def _noted(self, ctx: "Any", base: Base, plan: Plan, answer: Answer) -> Base:
        """The base's record after its answer to a request, a commit or an extension."""
        operation, grade, token = plan.operation, answer.grade, answer.token
        if isinstance(operation, Commit):  # the term is still the one that was granted
            if grade.is_grant and token != operation.token:
                grade = Grade.FAILED  # no store says so: asked again, a liar would keep us busy for ever
            return base.but(grade=grade, token=token, seen=self._seen(ctx, answer), mine=grade.is_grant)
        until = self.terms.allowing_for(plan.until, answer.granularity) if grade.is_grant else None
        if isinstance(operation, Extend):  # what was ours and is gone must not be asked for anew: it had a gap
            return base.but(grade=grade, token=token, seen=self._seen(ctx, answer), until=until)
        return self._judged(ctx, base, answer, until)

    def _judged(self, ctx: "Any", base: Base, answer: Answer, until: Instant | None) -> Base:
        """The base's record after a word about what we asked for."""
        grade, seen = answer.grade, self._seen(ctx, answer)
        ticket = self.ticket_in(ctx, answer.ticket) if answer.ticket is not None else 0
        return base.but(grade=grade, token=answer.token, seen=seen, until=until, ticket=ticket, mine=grade.is_grant)

    def _seen(self, ctx: "Any", answer: Answer) -> int:
        return self.token_in(ctx, answer.evidence) if answer.evidence is not None else 0

    def is_useful(self, ctx: "Any", base: Base) -> bool:
        """A vote that soon ends is refreshed, never counted."""
        return base.until is not None and base.until - ctx.now() >= self.terms.useful

    def _votes(self, ctx: "Any") -> list[Base]:
        """The grants that count: committed, all with our token, each long enough."""
        guess = self.guess
        return [
            base
            for base in self.bases
            if base.grade is Grade.COMMITTED
            and (guess is None or base.token == guess or (guess is NEXT and base.token is not None))
            and self.is_useful(ctx, base)
        ]

    def _refusals(self, ctx: "Any") -> int:
        """Bases that will not vote for us in this attempt: they said no, or said yes too late to be of use."""
        return sum(
            base.grade is not None and not (base.grade.is_grant and self.is_useful(ctx, base)) for base in self.bases
        )

    def _may_prove_to_be_gone(self) -> bool:
        """Whether those that have yet to answer can make certain what some say: that our entry is not there any more.
        It is worth waiting for, as long as an attempt may take: whoever has lost the lease must know."""
        gone = sum(base.grade is Grade.GONE for base in self.bases)
        silent = sum(base.grade is None for base in self.bases)
        return 0 < gone < self.terms.refusals <= gone + silent

    def end_of_belief(self, ctx: "Any", votes: list[Base]) -> Instant:
        return min(base.until for base in votes if base.until is not None)

    # What is handed over

    def next_serial(self, ctx: "Any", position: int) -> int | None:
        """Of a request that stands until it is our turn. The base will remember us for longer than we note here: it
        counts from when it gets the request."""
        base = self.bases[position]
        self._set(position, base.but(serial=base.serial + 1, waiting=ctx.now() + self.terms.wait))
        return base.serial + 1

    def is_counted_from(self, base: Base, handed: Handed) -> bool:
        """Whether it is our last request to this base that the hand-over is counted from."""
        return bool(handed.serial == base.serial)

    def believed_if_handed(self, ctx: "Any", waiting: Instant, handed: Handed) -> Instant:
        """Never longer than if it had been granted just now: then a clock of the base that was put forward since our
        request does less harm."""
        return min(waiting + self.terms.believed_beyond(handed.beyond), self.terms.belief(ctx.now()))

    # Tokens

    def first_guess(self, ctx: "Any") -> "Any":
        """A clock makes the guess likely; the comparison at the bases makes the order."""
        if not self.terms.fenced:
            return None
        if self.terms.n == 1 and self.algorithms[0].counts:
            return NEXT
        return max(self.token + 1, ctx.wall_clock())

    def _commit_token(self, ctx: "Any") -> None:
        """The commit round: once a quorum has granted, write a token that is larger than all they showed."""
        granted = [base for base in self.bases if base.grade is not None and base.grade.is_grant]
        if len(granted) < self.terms.quorum or self.guess is NEXT:
            return
        behind = [base for base in granted if base.token != self.guess]
        largest = max((base.seen for base in behind), default=0)
        if sum(base.token is None and not base.seen for base in behind) > self.terms.f:
            largest = max(largest, self.guess + FAR_AHEAD)  # one of them is correct, and its clock is ahead of ours
        self.guess = max(self.guess, largest + 1)
        self._commit_where_granted(ctx)

    def _commit_where_granted(self, ctx: "Any") -> None:
        for position, base in enumerate(self.bases):
            is_granted = base.grade is not None and base.grade.is_grant
            if is_granted and base.token != self.guess and not base.chain:
                claim = self.claim
                commit = Commit(claim, self.guess, self.signed(ctx, claim))
                self._submit(ctx, position, commit, None)

    def _guess_anew(self, ctx: "Any") -> None:
        """Whoever held while we waited has a larger token than we guessed then. A better guess saves the commit round;
        where the old one was committed, the new one must be, too."""
        if type(self.guess) is not int or ctx.wall_clock() - self.guess < STALE:
            return
        self.guess = ctx.wall_clock()
        self._commit_where_granted(ctx)
