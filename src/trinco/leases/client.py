"""The composite lease (the paper's Algorithm 1, "trinco composto"), on the client's side; the only code that locks.

A client asks all n bases at once. It holds the lease when a quorum of them has granted it, until the earliest moment at
which one of those might let go; two quorums share a correct base, and that one grants to one client at a time. One
base and f = 0 is the plain lock: the same code, one access.

Each base has a *chain* (see ``chains``): plans that run one after the other, so that nothing overtakes anything there.

    attempt a       b0: request ─ granted          released
                    b1: request ─ granted          released
                    b2: request ─ refused          released      <- compare-and-delete: exactly attempt a
                    b3: request ─ (silence) ...... release waits in the chain behind it

Against the print: answers belong to an attempt (``lease/E1``); belief counts from before the request and has margins
(E2, E7, E13); an attempt has a timer and an error is a refusal (E3); belief is dropped before anything is released, a
failed renewal releases nothing (E5); release goes to all bases (E6); renewal extends what is still live and nothing
else, repairs count only while the old term lasts (E23, E26).

**Waiting** (policy PRIORITY). Refused, a client takes a ticket, larger than all that a quorum of bases knows of, and
keeps asking every base. A base grants to the smallest ticket. Whoever is granted at a base where a smaller ticket
waits, and does not hold the lease yet, first forgets that vote and then yields that base (and never because of what
*another* base says: a liar must not have more influence than its vote). So the smallest ticket collects all correct
bases.

A base that can speak up hands what is let go of to the first in line (``handed``), which saves it the question.
"""

from enum import Enum

from trinco.core.instant import Instant
from trinco.leases.chains import ACCESS, OWED, Base, without_belief
from trinco.leases.claim import Claim
from trinco.leases.operation import FAILED, NEXT, Answer, Extend, Grade, Handed, Operation, Release, Request, Yield
from trinco.leases.plan import Plan
from trinco.leases.terms import Policy, Terms
from trinco.leases.votes import Votes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from trinco.leases.plan import Algorithm

GIVE_UP, RETRY, POLL, WIDEN = "attempt", "retry", "poll", "widen"
BACKOFF_STEPS = 1000
HELD = "held by another"


class Stage(Enum):
    IDLE = "idle"
    ASKING = "asking"
    RESTING = "resting"
    """Between two attempts of the back-off policy."""
    HOLDING = "holding"
    RENEWING = "renewing"

    __hash__ = object.__hash__


class LeaseClient(Votes):
    """Written against the contract of ``core.context``, without importing it: it also lies on the path of
    ``trinco run``. A runtime calls ``acquire``, ``renew``, ``release``, ``answered`` and ``on_timer``; the client calls
    ``access`` (which a runtime overrides), ``ctx.grant`` and ``ctx.refuse``.
    """

    __slots__ = ("attempt", "owner", "renewals", "stage", "ticket", "until")

    def __init__(self, owner: "Any", terms: Terms, algorithms: "tuple[Algorithm, ...]") -> None:
        Votes.__init__(self, terms, algorithms)
        self.owner = owner
        self.stage = Stage.IDLE
        self.attempt = 0
        self.renewals = 0
        self.ticket: int | None = None
        self.until: Instant | None = None
        """The end of what we believe, while we hold."""

    # Inputs

    def acquire(self, ctx: "Any") -> None:
        self.ticket = None
        self._start_attempt(ctx)

    def release(self, ctx: "Any") -> None:
        """Belief is over before the first message leaves; every base is told."""
        self._stop(ctx)
        self._release_all(ctx)

    def renew(self, ctx: "Any") -> None:
        """Ask all bases for a new term. Once belief is over it is too late: somebody may have been in since."""
        if self.stage is not Stage.HOLDING or not self.believes(ctx):
            return
        self.stage = Stage.RENEWING
        self.renewals += 1
        until = self.terms.belief(ctx.now())
        ctx.set_timer(GIVE_UP, self.terms.patience)
        for position, base in enumerate(self.bases):
            self._set(position, base.but(grade=None, chain=without_belief(base.chain)))
            self._submit(ctx, position, self.renewal(ctx, base), until)

    def renewal(self, ctx: "Any", base: Base) -> Operation:
        """Extend where our entry is; where it never got in, ask for it."""
        claim = self.claim
        if base.mine:
            return Extend(claim, self.terms.ttl, self.renewals)
        return Request(claim, self.terms.ttl, token=self.guess, entry=self.signed(ctx, claim))

    def on_timer(self, ctx: "Any", name: str) -> None:
        if name == RETRY:
            self._start_attempt(ctx)
        elif name == OWED or name.startswith(ACCESS):
            self.on_chain_timer(ctx, name)
        elif name == GIVE_UP:
            self._took_too_long(ctx)
        elif name == WIDEN:
            self._ask_the_rest(ctx)
        elif self.stage is Stage.ASKING:
            self._ask_idle_bases(ctx)
            ctx.set_timer(POLL, self.next_poll(FAILED))  # some may have been busy

    def hinted(self, ctx: "Any", position: int) -> None:
        """A base says that something changed there. It may lie: so nothing is believed, and only that base is asked."""
        base = self.bases[position]
        if self.stage is Stage.ASKING and self.ticket is not None and not base.chain and not base.poisoned:
            self._guess_anew(ctx)
            self._ask(ctx, position)

    def handed(self, ctx: "Any", position: int, handed: Handed) -> None:
        """A base says that it is ours there, since somebody let go. That is a late answer to our last request, if that
        is the one it is counted from."""
        if not handed.makes_sense() or handed.claim.owner != self.owner:
            return
        if handed.claim != self.claim or self.stage in (Stage.IDLE, Stage.RESTING):
            self.straggled(ctx, position, handed.claim)
            return
        base = self.bases[position]
        if self.stage is not Stage.ASKING or base.poisoned or base.waiting is None:
            return
        if not self.is_counted_from(base, handed):
            return
        if base.waiting > ctx.now():
            granted = self._judged(ctx, base, handed.answer, self.believed_if_handed(ctx, base.waiting, handed))
            if self.is_useful(ctx, granted):
                self._set(position, granted)
                self._go_on(ctx, position, handed.answer, was_in_line=True)
                return
        self.hinted(ctx, position)  # it comes too late, and we are in line no more: ask

    def _lost_touch(self, ctx: "Any", position: int, operation: Operation) -> None:
        harmful = isinstance(operation, Yield) or (self.stage is Stage.ASKING and not self.algorithms[position].counts)
        if harmful and self.belongs(operation):
            self._set(position, self.bases[position].but(poisoned=True))

    def _access_timed_out(self, ctx: "Any", position: int) -> None:
        """When too few bases are left that something late cannot harm, a new attempt begins, with the same ticket."""
        Votes._access_timed_out(self, ctx, position)
        lost = sum(base.poisoned for base in self.bases)
        if self.stage is Stage.ASKING and self.terms.policy is Policy.PRIORITY and lost >= self.terms.refusals:
            self._release_all(ctx)
            self._start_attempt(ctx)

    def straggled(self, ctx: "Any", position: int, claim: Claim) -> None:
        """An answer came after its access had been given up. What it did for a claim that is over is undone."""
        if claim != self.claim or self.stage in (Stage.IDLE, Stage.RESTING):
            self._submit(ctx, position, Release(claim), None)

    # Attempts

    @property
    def claim(self) -> Claim:
        return Claim(self.owner, self.attempt)

    def believes(self, ctx: "Any") -> bool:
        return self.until is not None and bool(self.until > ctx.now())

    def _start_attempt(self, ctx: "Any") -> None:
        self.attempt += 1
        self.renewals = 0
        self.stage = Stage.ASKING
        self.guess = self.first_guess(ctx)
        self.bases = tuple([base.forgotten(asked=False) for base in self.bases])
        if self.terms.policy is not Policy.PRIORITY:
            ctx.set_timer(GIVE_UP, self.terms.patience)
        for position in self.first_contacts():
            self._ask(ctx, position)
        if self.terms.widen:
            ctx.set_timer(WIDEN, self.terms.widen)

    def first_contacts(self) -> "Iterable[int]":
        """All bases, or the q that we like best: safety rests on the answers, not on who was asked."""
        return range(self.terms.quorum if self.terms.widen else len(self.bases))

    def _ask_the_rest(self, ctx: "Any") -> None:
        """Those that we asked first are slow, or not all of one mind."""
        if self.stage is Stage.ASKING:
            for position, base in enumerate(self.bases):
                if not base.asked:
                    self._ask(ctx, position)

    def _ask(self, ctx: "Any", position: int) -> None:
        claim = self.claim
        wait = 0 if self.ticket is None else self.terms.wait
        serial = self.next_serial(ctx, position) if wait and self.algorithms[position].hands_over else None
        entry = self.signed(ctx, claim)
        request = Request(claim, self.terms.ttl, self.ticket, wait, self.guess, entry, serial)
        self._submit(ctx, position, request, self.believed_until(ctx))

    def believed_until(self, ctx: "Any") -> Instant:
        """What may be believed if the request that is about to be sent is granted."""
        return self.terms.belief(ctx.now())

    def _took_too_long(self, ctx: "Any") -> None:
        if self.stage is Stage.ASKING:
            self._fail(ctx, "not enough stores answered in time")
        elif self.stage is Stage.RENEWING:
            self._renewal_failed(ctx)

    def _fail(self, ctx: "Any", reason: str) -> None:
        """This attempt is over: give back whatever it may have got, at every base."""
        self._stop(ctx)
        self._release_all(ctx)
        if self.terms.policy is Policy.BACKOFF:
            self.stage = Stage.RESTING
            pause = self.terms.backoff and self.terms.backoff * ctx.choose(BACKOFF_STEPS) / BACKOFF_STEPS
            ctx.set_timer(RETRY, pause)
        else:
            ctx.refuse(reason)

    def _stop(self, ctx: "Any") -> None:
        self._disarm(ctx)
        self.stage = Stage.IDLE
        self.until = None
        self.ticket = self.guess = None
        self.bases = tuple([base.forgotten(base.asked) for base in self.bases])

    def _disarm(self, ctx: "Any") -> None:
        """Cancel the timers that may be armed in this stage."""
        if self.stage is Stage.HOLDING:
            return
        ctx.cancel_timer(GIVE_UP)
        if self.terms.policy is Policy.BACKOFF:
            ctx.cancel_timer(RETRY)
        if self.ticket is not None:
            ctx.cancel_timer(POLL)
        if self.terms.widen:
            ctx.cancel_timer(WIDEN)

    def _release_all(self, ctx: "Any") -> None:
        release = Release(self.claim, self.renewals)
        for position, base in enumerate(self.bases):
            if base.asked:
                self._submit(ctx, position, release, None)

    # Answers

    def belongs(self, operation: Operation) -> bool:
        """Whether an answer is about what is going on, and not about the past (E1)."""
        return operation.claim == self.claim

    def _conclude(self, ctx: "Any", position: int, plan: Plan, answer: Answer) -> None:
        operation = plan.operation
        if isinstance(operation, Release):
            self._released(ctx, position, plan, answer)
            if self.stage is Stage.ASKING:
                self._ask_later(ctx, position)
            return
        if not self.belongs(operation):
            return
        if self.bases[position].poisoned:
            answer = FAILED
        if self.stage is Stage.ASKING:
            if isinstance(operation, Yield):
                self._stand_in_line_again(ctx, position)
                return
            self._set(position, self._noted(ctx, self.bases[position], plan, answer))
            self._go_on(ctx, position, answer, was_in_line=not _came_without_ticket(operation))
        elif self.stage is Stage.RENEWING and plan.until is not None:
            self._set(position, self._noted(ctx, self.bases[position], plan, answer))
            self._count_renewals(ctx, position, operation)

    def _go_on(self, ctx: "Any", position: int, answer: Answer, *, was_in_line: bool) -> None:
        """A base has said something about what we are asking for."""
        self._decide(ctx)
        if self.stage is Stage.ASKING:
            if answer.grade is not Grade.COMMITTED and self.terms.widen:
                self._ask_the_rest(ctx)
            self._carry_on(ctx, position, answer, was_in_line)

    def _decide(self, ctx: "Any") -> None:
        votes = self._votes(ctx)
        if len(votes) >= self.terms.quorum:
            self._hold(ctx, votes)
            return
        if self.guess is not None:
            self._commit_token(ctx)
        if self.terms.policy is Policy.PRIORITY:
            self._take_ticket(ctx)
        elif self._refusals(ctx) >= self.terms.refusals:
            self._fail(ctx, HELD)

    def _hold(self, ctx: "Any", votes: list[Base]) -> None:
        """Hold until the first of those that we count on might let go."""
        token = votes[0].token if self.guess is NEXT else self.guess
        self._disarm(ctx)
        self.stage = Stage.HOLDING
        self.until = self.end_of_belief(ctx, votes)
        self.ticket = None
        if token is not None:
            self.token = max(self.token, token)
        self.bases = tuple([base.held() for base in self.bases])
        ctx.grant(token=token, until=self.until)
        self.took_office(ctx)

    def took_office(self, ctx: "Any") -> None:
        """What else to do when the lease is ours; renewals do not count."""

    # Waiting

    def _take_ticket(self, ctx: "Any") -> None:
        """The first refusal gives a ticket: larger than all that a quorum knows of, and ours until we are served."""
        answered = [base for base in self.bases if base.grade is not None]
        if self.ticket is None and self._refusals(ctx) and len(answered) >= self.terms.quorum:
            self.ticket = 1 + max(base.ticket for base in answered)
            self._ask_idle_bases(ctx)

    def _carry_on(self, ctx: "Any", position: int, answer: Answer, was_in_line: bool) -> None:
        """Nothing is decided yet: yield this base, or ask it again, now or at the next poll."""
        base = self.bases[position]
        idle = not base.chain and self.ticket is not None
        if idle and answer.smaller and answer.grade.is_grant:
            self._yield(ctx, position)
        elif idle and not base.poisoned and answer.grade is not Grade.FAILED and not was_in_line:
            self._ask(ctx, position)  # it does not know yet that we wait
        else:
            self._ask_later(ctx, position, answer)

    def _ask_later(self, ctx: "Any", position: int, answer: Answer = FAILED) -> None:
        """Whoever waits keeps asking, whatever just happened at a base."""
        if self.ticket is None:
            return
        if self.terms.poll:
            ctx.set_timer(POLL, self.next_poll(answer))
        elif not self.bases[position].chain and not self.bases[position].poisoned:
            self._ask(ctx, position)

    def next_poll(self, answer: Answer) -> float:
        """In how many seconds to ask again, if nothing happens before; ``answer`` is the last that came."""
        return self.terms.poll

    def _yield(self, ctx: "Any", position: int) -> None:
        """First forget the vote, then give it away: a vote that a message under way can revoke is never counted."""
        self._set(position, self.bases[position].but(grade=Grade.REFUSED, until=None, token=None, mine=False))
        claim = self.claim
        self._submit(ctx, position, Yield(claim, self.ticket, self.terms.wait, self.signed(ctx, claim)), None)

    def _stand_in_line_again(self, ctx: "Any", position: int) -> None:
        """A base that hands over does so on a request, and a yield is none."""
        base = self.bases[position]
        if self.algorithms[position].hands_over and not base.chain and not base.poisoned:
            self._ask(ctx, position)
        else:
            self._ask_later(ctx, position)

    def _ask_idle_bases(self, ctx: "Any") -> None:
        for position, base in enumerate(self.bases):
            if not base.chain and not base.poisoned:
                self._ask(ctx, position)

    # Renewal

    def _count_renewals(self, ctx: "Any", position: int, operation: Operation) -> None:
        base = self.bases[position]
        current = not isinstance(operation, Extend) or operation.renewal == self.renewals
        repaired = isinstance(operation, Request)
        if not current or (repaired and not self.believes(ctx)):
            self._set(position, base.but(grade=None if not current else Grade.REFUSED))
        votes = [each for each in self.bases if each.grade is Grade.COMMITTED and self.is_useful(ctx, each)]
        if len(votes) >= self.terms.quorum:
            self.stage = Stage.HOLDING
            self.until = self.end_of_belief(ctx, votes)
            ctx.cancel_timer(GIVE_UP)
            ctx.grant(token=self.token if self.terms.fenced else None, until=self.until)
        elif self._refusals(ctx) >= self.terms.refusals and not self._may_prove_to_be_gone():
            self._renewal_failed(ctx)

    def _renewal_failed(self, ctx: "Any") -> None:
        """The old term stands as long as it lasts; nothing is released (E5)."""
        self.stage = Stage.HOLDING
        ctx.cancel_timer(GIVE_UP)


def _came_without_ticket(operation: Operation) -> bool:
    return isinstance(operation, Request) and operation.ticket is None
