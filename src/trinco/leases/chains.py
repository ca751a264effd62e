"""Chains: what a client does at each of its bases, one thing after the other.

Each base has a chain of plans. One access is outstanding at a time, so nothing overtakes anything at a base, an
abandoned request is followed by its release, and a base that says nothing holds up nobody else. An access that gets no
answer in time fails its plan; whatever still comes of it belongs to an earlier *epoch* and answers nothing. A release
that fails is owed, and tried again until what it is about has run out by itself (E6).
"""

from trinco.core.instant import Instant
from trinco.core.value import Value
from trinco.leases.claim import Claim
from trinco.leases.operation import FAILED, Answer, Commit, Grade, Operation, Release, Request, Yield
from trinco.leases.plan import Outcome, Plan
from trinco.leases.terms import Terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.leases.accesses import Access, Reply
    from trinco.leases.plan import Algorithm

OWED, ACCESS = "owed", "access/"
OWED_PAUSE = 1.0


class Base(Value):
    """What the client knows of one base. ``grade``: its last word in this attempt (or renewal), None while it has not
    spoken. ``token``: what it committed; ``seen``: the largest token that it showed. ``until``: how long its vote may
    be believed. ``mine``: whether it granted us what we hold; what a base says after we hold changes nothing, since
    asking a base for what we already have there is as good as extending it. ``serial``: of our last request that it
    may hand over to; ``waiting``: until when, at least, that makes it remember us."""

    __slots__ = (
        "asked",
        "chain",
        "epoch",
        "grade",
        "memory",
        "mine",
        "owed",
        "poisoned",
        "seen",
        "serial",
        "ticket",
        "token",
        "until",
        "waiting",
    )

    def __init__(self) -> None:
        self.asked = False
        """Whether anything of this attempt was sent here; only then is there something to release."""
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
        self.waiting: Instant | None = None
        self.serial = 0

    def in_words(self) -> str:
        """For timelines."""
        doing = "".join(f"{type(plan.operation).__name__.lower()}.. " for plan in self.chain[:1])
        said = self.grade.value if self.grade else "mine" if self.mine else "-"
        return (doing + said).strip()

    def forgotten(self, asked: bool) -> "Base":
        """At the start of an attempt nothing is known, and what is still under way for an earlier one will count for
        nothing."""
        return self.held().but(asked=asked, mine=False, poisoned=False)

    def held(self) -> "Base":
        """Once we hold, all that matters is where our entry is."""
        return self.but(
            chain=without_belief(self.chain),
            grade=None,
            until=None,
            token=None,
            seen=0,
            ticket=0,
            waiting=None,
            serial=0,
        )


class Chains:
    """The bases of one client. Whoever inherits says what an answer means (``_conclude``); a runtime, how an access is
    sent (``access``)."""

    __slots__ = ("algorithms", "bases", "terms")

    def __init__(self, terms: Terms, algorithms: "tuple[Algorithm, ...]") -> None:
        self.terms = terms
        self.algorithms = algorithms
        self.bases = tuple(Base() for _ in algorithms)

    def access(self, ctx: "Any", base: int, access: "Access") -> None:
        """Send one access to a base; its reply comes back through ``answered``."""
        raise NotImplementedError

    def _conclude(self, ctx: "Any", position: int, plan: Plan, answer: Answer) -> None:
        """A plan has come to its end."""
        raise NotImplementedError

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

    def on_chain_timer(self, ctx: "Any", name: str) -> None:
        if name == OWED:
            self._pay_what_is_owed(ctx)
        else:
            self._access_timed_out(ctx, int(name[len(ACCESS) :]))

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
        if chain:
            self._set(position, base.but(asked=True, chain=(*chain, Plan(operation, until))))
        else:
            self._step(ctx, position, Plan(operation, until, base.memory))

    def _step(self, ctx: "Any", position: int, plan: Plan) -> None:
        """Take the plan at the head of a chain one access further."""
        step = plan.step(self.algorithms[position])
        if isinstance(step, Outcome):
            self._end(ctx, position, plan, step)
            return
        base = self.bases[position]
        self._set(position, base.but(asked=True, chain=(plan, *base.chain[1:])))
        self.access(ctx, position, step)
        if self.terms.access_timeout:
            ctx.set_timer(f"{ACCESS}{position}", self.terms.access_timeout)
        if not self.waits_for(plan.operation):
            self._end(ctx, position, plan, Outcome(FAILED))

    def waits_for(self, operation: Operation) -> bool:
        """Whether the next operation waits until this one is answered."""
        return True

    def _access_timed_out(self, ctx: "Any", position: int) -> None:
        """The access may have been lost, or may still be carried out: its plan has failed, and what comes of it later
        answers nothing any more."""
        base = self.bases[position]
        if not base.chain:
            return
        self._lost_touch(ctx, position, base.chain[0].operation)
        self._set(position, self.bases[position].but(epoch=base.epoch + 1))
        self.answered(ctx, position, None)

    def _lost_touch(self, ctx: "Any", position: int, operation: Operation) -> None:
        """What the owner must know of an access that got no answer in time."""

    def _end(self, ctx: "Any", position: int, plan: Plan, outcome: Outcome) -> None:
        base = self.bases[position]
        chain = base.chain[1:]
        self._set(position, base.but(chain=chain, memory=outcome.memory))
        if chain:
            self._step(ctx, position, chain[0].but(memory=outcome.memory))
        self._conclude(ctx, position, plan, outcome.answer)

    def _set(self, position: int, base: Base) -> None:
        self.bases = (*self.bases[:position], base, *self.bases[position + 1 :])

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


def without_belief(chain: tuple[Plan, ...]) -> tuple[Plan, ...]:
    """What still runs, but will never be believed in; a release keeps the time until which it matters."""
    if not chain:
        return chain
    return tuple(plan if isinstance(plan.operation, Release) else plan.but(until=None) for plan in chain)


def _without_unsent(chain: tuple[Plan, ...], claim: Claim) -> tuple[tuple[Plan, ...], bool]:
    """A chain without what a later operation of the same claim makes needless and was not begun, and whether anything
    of the claim was: a base that says nothing must not collect a growing chain. A claim begins with a request; if that
    was not sent, nothing was."""
    begun, waiting = chain[:1], chain[1:]
    unsent = any(isinstance(plan.operation, Request) and plan.operation.claim == claim for plan in waiting)
    was_sent = not unsent or begun[0].operation.claim == claim
    return (*begun, *(plan for plan in waiting if plan.operation.claim != claim)), was_sent
