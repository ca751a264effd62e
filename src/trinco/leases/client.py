"""The composite lease (the paper's Algorithm 1, "trinco composto"), on the client's side; the only code that locks.

A client asks all n bases at once. It holds the lease when a quorum of them has granted it, until the earliest moment at
which one of those might let go; two quorums share a correct base, and that one grants to one client at a time. One
base and f = 0 is the plain lock: the same code, one access.

Each base has a *chain*: plans that run one after the other, one access outstanding. So nothing overtakes anything at a
base, an abandoned request is followed by its release, and a base that says nothing holds up nobody else.

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

**Tokens.** The request carries a guess. A base commits it if it is larger than all it has seen, and only committed
votes for one token count. Where the guess was too small, a commit round writes 1 + the largest verified token. The
token is on a quorum before the caller may act, so every later quorum contains a correct base that insists on a larger
one.
"""

from enum import Enum

from trinco.core.instant import Instant
from trinco.core.value import Value
from trinco.leases.claim import Claim
from trinco.leases.operation import FAILED, NEXT, Answer, Commit, Extend, Grade, Operation, Release, Request, Yield
from trinco.leases.plan import Outcome, Plan
from trinco.leases.terms import Policy, Terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.leases.accesses import Access, Reply
    from trinco.leases.plan import Algorithm

GIVE_UP, RETRY, POLL, OWED, ACCESS = "attempt", "retry", "poll", "owed", "access/"
OWED_PAUSE = 1.0
BACKOFF_STEPS = 1000


class Stage(Enum):
    IDLE = "idle"
    ASKING = "asking"
    RESTING = "resting"
    """Between two attempts of the back-off policy."""
    HOLDING = "holding"
    RENEWING = "renewing"

    __hash__ = object.__hash__


class Base(Value):
    """What the client knows of one base. ``grade``: its last word in this attempt (or renewal), None while it has not
    spoken. ``token``: what it committed; ``seen``: the largest token that it showed. ``until``: how long its vote may
    be believed. ``mine``: whether it granted us what we hold; what a base says after we hold changes nothing, since
    asking a base for what we already have there is as good as extending it."""

    __slots__ = ("chain", "epoch", "grade", "memory", "mine", "owed", "poisoned", "seen", "ticket", "token", "until")

    def __init__(self) -> None:
        self.chain: tuple[Plan, ...] = ()
        self.owed: tuple[Plan, ...] = ()
        """Releases that failed, each until when it matters."""
        self.poisoned = False
        """A yield of this attempt got no answer in time, or any access to a store that only lists. It may still be
        carried out and take a vote back, so no vote of this base counts until the next attempt."""
        self.epoch = 0
        """How many accesses here got no answer in time: what comes from an earlier epoch answers nothing."""
        self.memory: Any = None
        self.grade: Grade | None = None
        self.until: Instant | None = None
        self.token: int | None = None
        self.seen = 0
        self.ticket = 0
        self.mine = False

    def in_words(self) -> str:
        """For timelines."""
        doing = "".join(f"{type(plan.operation).__name__.lower()}.. " for plan in self.chain[:1])
        said = self.grade.value if self.grade else "mine" if self.mine else "-"
        return (doing + said).strip()

    def forgotten(self) -> "Base":
        """At the start of an attempt nothing is known, and what is still under way for an earlier one will count for
        nothing."""
        return self.but(
            chain=_without_belief(self.chain),
            grade=None,
            until=None,
            token=None,
            seen=0,
            ticket=0,
            mine=False,
            poisoned=False,
        )

    def held(self) -> "Base":
        """Once we hold, all that matters is where our entry is."""
        return self.but(chain=_without_belief(self.chain), grade=None, until=None, token=None, seen=0, ticket=0)


class LeaseClient:
    """Written against the contract of ``core.context``, without importing it: it also lies on the path of
    ``trinco run``. A runtime calls ``acquire``, ``renew``, ``release``, ``answered`` and ``on_timer``; the client calls
    ``access`` (which a runtime overrides), ``ctx.grant`` and ``ctx.refuse``.
    """

    __slots__ = (
        "algorithms",
        "attempt",
        "bases",
        "guess",
        "owner",
        "renewals",
        "stage",
        "terms",
        "ticket",
        "token",
        "until",
    )

    def __init__(self, owner: "Any", terms: Terms, algorithms: "tuple[Algorithm, ...]") -> None:
        self.owner = owner
        self.terms = terms
        self.algorithms = algorithms
        self.bases = tuple(Base() for _ in algorithms)
        self.stage = Stage.IDLE
        self.attempt = 0
        self.renewals = 0
        self.ticket: int | None = None
        self.guess: Any = None
        """The token that this attempt wants to commit."""
        self.token = 0
        """The largest token we know of."""
        self.until: Instant | None = None
        """The end of what we believe, while we hold."""

    # What a runtime provides

    def access(self, ctx: "Any", base: int, access: "Access") -> None:
        """Send one access to a base; its reply comes back through ``answered``."""
        raise NotImplementedError

    def signed(self, ctx: "Any", claim: Claim) -> "Any":
        """The entry that speaks for this attempt: claim, ticket and token under our signature."""
        return None

    def token_in(self, ctx: "Any", evidence: "Any") -> int:
        """The token in a signed entry that a base showed; 0 if it proves nothing."""
        return 0

    def ticket_in(self, ctx: "Any", evidence: "Any") -> int:
        return 0

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
            self._set(position, base.but(grade=None))
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
        elif name == OWED:
            self._pay_what_is_owed(ctx)
        elif name.startswith(ACCESS):
            self._access_timed_out(ctx, int(name[len(ACCESS) :]))
        elif name == GIVE_UP:
            self._took_too_long(ctx)
        elif self.stage is Stage.ASKING:
            self._ask_idle_bases(ctx)
            ctx.set_timer(POLL, self.terms.poll)  # some may have been busy

    def answered(self, ctx: "Any", position: int, reply: "Reply | None") -> None:
        """The reply to the access that is outstanding at a base; None where there will be none (an error)."""
        base = self.bases[position]
        if not base.chain:
            return
        if reply is None:
            self._end(ctx, position, base.chain[0], Outcome(FAILED))
            return
        plan = base.chain[0].told(reply)
        self._step(ctx, position, plan)

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
        self.bases = tuple(base.forgotten() for base in self.bases)
        if self.terms.policy is not Policy.PRIORITY:
            ctx.set_timer(GIVE_UP, self.terms.patience)
        for position in range(len(self.bases)):
            self._ask(ctx, position)

    def first_guess(self, ctx: "Any") -> "Any":
        """A clock makes the guess likely; the comparison at the bases makes the order."""
        if not self.terms.fenced:
            return None
        if self.terms.n == 1 and self.algorithms[0].counts:
            return NEXT
        return max(self.token + 1, ctx.wall_clock())

    def _ask(self, ctx: "Any", position: int) -> None:
        claim = self.claim
        wait = 0 if self.ticket is None else self.terms.wait
        entry = self.signed(ctx, claim)
        request = Request(claim, self.terms.ttl, self.ticket, wait, self.guess, entry)
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
        self.stage = Stage.IDLE
        self.until = None
        self.ticket = self.guess = None
        for timer in (GIVE_UP, RETRY, POLL):
            ctx.cancel_timer(timer)
        self.bases = tuple(base.forgotten() for base in self.bases)

    def _release_all(self, ctx: "Any") -> None:
        release = Release(self.claim, self.renewals)
        for position in range(len(self.bases)):
            self._submit(ctx, position, release, None)

    # Chains

    def _submit(self, ctx: "Any", position: int, operation: Operation, until: Instant | None) -> None:
        """Put an operation at the end of a base's chain, and begin it if nothing is under way there."""
        base = self.bases[position]
        chain = base.chain
        if chain and not isinstance(operation, Commit | Yield):
            kept, was_sent = _without_unsent(chain, operation.claim)
            if isinstance(operation, Release) and not was_sent:
                self._set(position, base.but(chain=kept))
                return
            chain = kept
        self._set(position, base.but(chain=(*chain, Plan(operation, until))))
        if not chain:
            self._step(ctx, position, Plan(operation, until, base.memory))

    def _step(self, ctx: "Any", position: int, plan: Plan) -> None:
        """Take the plan at the head of a chain one access further."""
        step = plan.step(self.algorithms[position])
        if isinstance(step, Outcome):
            self._end(ctx, position, plan, step)
            return
        base = self.bases[position]
        self._set(position, base.but(chain=(plan, *base.chain[1:])))
        self.access(ctx, position, step)
        if self.terms.access_timeout:
            ctx.set_timer(f"{ACCESS}{position}", self.terms.access_timeout)
        if not self.waits_for(plan.operation):
            self._end(ctx, position, plan, Outcome(FAILED))

    def waits_for(self, operation: Operation) -> bool:
        """Whether the next operation waits until this one is answered."""
        return True

    def _access_timed_out(self, ctx: "Any", position: int) -> None:
        """The access may have been lost, or may still be carried out. When too few bases are left that a late yield
        cannot harm, a new attempt begins, with the same ticket."""
        base = self.bases[position]
        if not base.chain:
            return
        operation = base.chain[0].operation
        harmful = isinstance(operation, Yield) or (self.stage is Stage.ASKING and not self.algorithms[position].counts)
        poisoned = base.poisoned or (harmful and self.belongs(operation))
        self._set(position, base.but(epoch=base.epoch + 1, poisoned=poisoned))
        self.answered(ctx, position, None)
        lost = sum(base.poisoned for base in self.bases)
        if self.stage is Stage.ASKING and self.terms.policy is Policy.PRIORITY and lost >= self.terms.refusals:
            self._release_all(ctx)
            self._start_attempt(ctx)

    def _end(self, ctx: "Any", position: int, plan: Plan, outcome: Outcome) -> None:
        base = self.bases[position]
        chain = base.chain[1:]
        self._set(position, base.but(chain=chain, memory=outcome.memory))
        if chain:
            self._step(ctx, position, chain[0].but(memory=outcome.memory))
        self._conclude(ctx, position, plan, outcome.answer)

    def _set(self, position: int, base: Base) -> None:
        self.bases = (*self.bases[:position], base, *self.bases[position + 1 :])

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
                self._ask_later(ctx, position)
                return
            self._set(position, self._noted(ctx, self.bases[position], plan, answer))
            self._decide(ctx)
            if self.stage is Stage.ASKING:
                self._carry_on(ctx, position, answer)
        elif self.stage is Stage.RENEWING and plan.until is not None:
            self._set(position, self._noted(ctx, self.bases[position], plan, answer))
            self._count_renewals(ctx, position, operation)

    def _released(self, ctx: "Any", position: int, plan: Plan, answer: Answer) -> None:
        """Where a release did not get through it is owed, until what it is about has run out by itself (E6)."""
        if answer.grade not in (Grade.FAILED, Grade.REFUSED) or not self.waits_for(plan.operation):
            return
        until = plan.until or ctx.now() + self.terms.ttl
        if until > ctx.now():
            base = self.bases[position]
            self._set(position, base.but(owed=(*base.owed, Plan(plan.operation, until))))
            ctx.set_timer(OWED, OWED_PAUSE)

    def _pay_what_is_owed(self, ctx: "Any") -> None:
        for position, base in enumerate(self.bases):
            self._set(position, base.but(owed=()))
            for plan in base.owed:
                self._submit(ctx, position, plan.operation, plan.until)

    def _noted(self, ctx: "Any", base: Base, plan: Plan, answer: Answer) -> Base:
        """The base's record after its answer to a request, a commit or an extension."""
        granted = answer.grade.is_grant
        seen = self.token_in(ctx, answer.evidence) if answer.evidence is not None else 0
        noted = base.but(grade=answer.grade, token=answer.token, seen=seen)
        if isinstance(plan.operation, Commit):
            return noted.but(mine=granted)  # the term is still the one that was granted
        until = self.terms.allowing_for(plan.until, answer.granularity) if granted else None
        if isinstance(plan.operation, Extend):
            return noted.but(until=until)  # what was ours and is gone must not be asked for anew: it had a gap
        ticket = self.ticket_in(ctx, answer.ticket) if answer.ticket is not None else 0
        return noted.but(until=until, ticket=ticket, mine=granted)

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
            self._fail(ctx, "held by another")

    def _refusals(self, ctx: "Any") -> int:
        """Bases that will not vote for us in this attempt: they said no, or said yes too late to be of use."""
        return sum(
            base.grade is not None and not (base.grade.is_grant and self.is_useful(ctx, base)) for base in self.bases
        )

    def _hold(self, ctx: "Any", votes: list[Base]) -> None:
        """Hold until the first of those that we count on might let go."""
        token = votes[0].token if self.guess is NEXT else self.guess
        self.stage = Stage.HOLDING
        self.until = self.end_of_belief(ctx, votes)
        self.ticket = None
        if token is not None:
            self.token = max(self.token, token)
        ctx.cancel_timer(GIVE_UP)
        ctx.cancel_timer(POLL)
        self.bases = tuple(base.held() for base in self.bases)
        ctx.grant(token=token, until=self.until)
        self.took_office(ctx)

    def took_office(self, ctx: "Any") -> None:
        """What else to do when the lease is ours; renewals do not count."""

    def end_of_belief(self, ctx: "Any", votes: list[Base]) -> Instant:
        return min(base.until for base in votes if base.until is not None)

    # Tokens

    def _commit_token(self, ctx: "Any") -> None:
        """The commit round: once a quorum has granted, write a token that is larger than all they showed."""
        granted = [base for base in self.bases if base.grade is not None and base.grade.is_grant]
        if len(granted) < self.terms.quorum or self.guess is NEXT:
            return
        largest = max((base.seen for base in granted if base.token != self.guess), default=0)
        self.guess = max(self.guess, largest + 1)
        for position, base in enumerate(self.bases):
            lacks_it = base in granted and base.token != self.guess
            if lacks_it and not base.chain:
                claim = self.claim
                commit = Commit(claim, self.guess, self.signed(ctx, claim))
                self._submit(ctx, position, commit, None)

    # Waiting

    def _take_ticket(self, ctx: "Any") -> None:
        """The first refusal gives a ticket: larger than all that a quorum knows of, and ours until we are served."""
        answered = [base for base in self.bases if base.grade is not None]
        if self.ticket is None and self._refusals(ctx) and len(answered) >= self.terms.quorum:
            self.ticket = 1 + max(base.ticket for base in answered)
            self._ask_idle_bases(ctx)

    def _carry_on(self, ctx: "Any", position: int, answer: Answer) -> None:
        """Nothing is decided yet: yield this base, or ask it again, now or at the next poll."""
        idle = not self.bases[position].chain
        if idle and self.ticket is not None and answer.smaller and answer.grade.is_grant:
            self._yield(ctx, position)
        else:
            self._ask_later(ctx, position)

    def _ask_later(self, ctx: "Any", position: int) -> None:
        """Whoever waits keeps asking, whatever just happened at a base."""
        if self.ticket is None:
            return
        if self.terms.poll:
            ctx.set_timer(POLL, self.terms.poll)
        elif not self.bases[position].chain and not self.bases[position].poisoned:
            self._ask(ctx, position)

    def _yield(self, ctx: "Any", position: int) -> None:
        """First forget the vote, then give it away: a vote that a message under way can revoke is never counted."""
        self._set(position, self.bases[position].but(grade=Grade.REFUSED, until=None, token=None, mine=False))
        claim = self.claim
        self._submit(ctx, position, Yield(claim, self.ticket, self.terms.wait, self.signed(ctx, claim)), None)

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
        elif self._refusals(ctx) >= self.terms.refusals:
            self._renewal_failed(ctx)

    def _renewal_failed(self, ctx: "Any") -> None:
        """The old term stands as long as it lasts; nothing is released (E5)."""
        self.stage = Stage.HOLDING
        ctx.cancel_timer(GIVE_UP)


def _without_belief(chain: tuple[Plan, ...]) -> tuple[Plan, ...]:
    """What still runs, but will never be believed in; a release keeps the time until which it matters."""
    return tuple(plan if isinstance(plan.operation, Release) else plan.but(until=None) for plan in chain)


def _without_unsent(chain: tuple[Plan, ...], claim: Claim) -> tuple[tuple[Plan, ...], bool]:
    """A chain without what a later operation of the same claim makes needless and was not begun, and whether anything
    of the claim was: a base that says nothing must not collect a growing chain. A claim begins with a request; if that
    was not sent, nothing was."""
    begun, waiting = chain[:1], chain[1:]
    unsent = any(isinstance(plan.operation, Request) and plan.operation.claim == claim for plan in waiting)
    was_sent = not unsent or begun[0].operation.claim == claim
    return (*begun, *(plan for plan in waiting if plan.operation.claim != claim)), was_sent
