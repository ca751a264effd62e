"""What one base keeps about one lock, and the one function that changes it.

``apply(item, operation, now)`` is run by stores that can run code, by clients of stores that can compare and set, by
the simulator and by the checker; stores with a language of their own carry a twin of it. An item has a holder, waiters
in the order of their tickets, and the largest token that was ever committed. It is never deleted: what is left of a
released lease is a tombstone that keeps the token, so no token is given out twice.

Time is the store's own: ``now`` and the ends of terms may be seconds or instants, they are only compared and added to.
A term that ends *at* now is over.
"""

from trinco.core.value import Value
from trinco.leases.claim import Claim
from trinco.leases.operation import NEXT, Answer, Commit, Extend, Grade, Handed, Operation, Release, Request, Yield

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Time: TypeAlias = Any


class Limits(Value):
    """``t_max``: no lease counts for longer, whatever it says (E21). ``waiters``: how many are remembered.
    ``token``: the largest guess that is believed; None where the store has no wall clock. ``floor``: the smallest token
    that the store itself gives out. A server that comes back without its last writes has forgotten tokens, too: none of
    these was larger than its clock is now, which is therefore its floor."""

    __slots__ = ("floor", "t_max", "token", "waiters")

    def __init__(self, t_max: float = 60, waiters: int = 1024, token: int | None = None, floor: int = 0) -> None:
        self.t_max = t_max
        self.waiters = waiters
        self.token = token
        self.floor = floor


NO_LIMITS = Limits(t_max=float("inf"))


class Holder(Value):
    """``token`` is what was committed for this very grant, None while it is tentative."""

    __slots__ = ("claim", "entry", "ticket", "token", "until")

    def __init__(self, claim: Claim, until: "Time", ticket: int | None, token: int | None, entry: "Any") -> None:
        self.claim = claim
        self.until = until
        self.ticket = ticket
        self.token = token
        self.entry = entry


class Waiter(Value):
    """``serial``, ``ttl`` and ``token``: of the request, for a base that hands over. ``serial`` None: it is only to be
    woken."""

    __slots__ = ("claim", "entry", "serial", "ticket", "token", "ttl", "until")

    def __init__(
        self,
        claim: Claim,
        until: "Time",
        ticket: int,
        entry: "Any",
        serial: int | None = None,
        ttl: float = 0,
        token: "int | str | None" = None,
    ) -> None:
        self.claim = claim
        self.until = until
        self.ticket = ticket
        self.entry = entry
        self.serial = serial
        self.ttl = ttl
        self.token = token

    @property
    def rank(self) -> "tuple[int, Any]":
        """Smaller goes first; equal tickets are told apart by their owners."""
        return self.ticket, self.claim.owner


class Item(Value):
    """``token`` and ``evidence``: the largest token committed, and the signed entry that brought it. A store that
    finds no item starts one with a token that it cannot have given out before (its clock in microseconds)."""

    __slots__ = ("evidence", "holder", "token", "waiters")

    def __init__(
        self,
        token: int = 0,
        holder: Holder | None = None,
        waiters: tuple[Waiter, ...] = (),
        evidence: "Any" = None,
    ) -> None:
        self.token = token
        self.holder = holder
        self.waiters = waiters
        self.evidence = evidence

    def in_words(self) -> str:
        """For timelines."""
        held = f"held by {self.holder.claim.owner}" if self.holder else "free"
        waiting = f", {len(self.waiters)} waiting" if self.waiters else ""
        return f"{held}{waiting}" + (f", token {self.token}" if self.token else "")

    def is_live(self, until: "Time", now: "Time") -> bool:
        """The boundary belongs to the others: a lease that ends now can be taken."""
        return bool(until > now)

    def settled(self, now: "Time") -> "Item":
        """Without what has run out."""
        holder = self.holder
        if holder is not None and not self.is_live(holder.until, now):
            holder = None
        waiters = self.waiters
        if waiters:
            waiters = tuple(each for each in waiters if each.until > now)
        if holder is self.holder and len(waiters) == len(self.waiters):
            return self
        return self.but(holder=holder, waiters=waiters)

    def apply(
        self, operation: Operation, now: "Time", limits: Limits = NO_LIMITS
    ) -> "tuple[Item, Answer, tuple[Claim, ...]]":
        """The item afterwards, the answer, and whom to wake."""
        item = self.settled(now)
        if isinstance(operation, Request):
            item, answer = item.request(operation, now, limits)
            return item, answer, item.who_must_yield(operation) if answer.grade is Grade.REFUSED else ()
        if isinstance(operation, Release):
            item, answer = item.release(operation)
        elif isinstance(operation, Yield):
            item, answer = item.yield_(operation, now, limits)
        elif isinstance(operation, Extend):
            return (*item.extend(operation, now, limits), ())
        else:
            assert isinstance(operation, Commit)
            return (*item.commit(operation), ())
        return item, answer, item.first_in_line()

    def first_in_line(self) -> tuple[Claim, ...]:
        """Whom it is worth to wake: the first who waits, if nobody holds."""
        return (self.waiters[0].claim,) if self.holder is None and self.waiters else ()

    def hand_over(self, now: "Time", limits: Limits = NO_LIMITS) -> "tuple[Item, Handed | None]":
        """Give a free lock to the first in line, as if it asked just now: for a base that can tell it so. None if
        nobody waits, or whoever does wants to be woken and ask by itself. Its ticket is the smallest, so nothing need
        be said of others."""
        first = self.waiters[0] if self.holder is None and self.waiters else None
        if first is None or first.serial is None:
            return self, None
        item, answer = self.request(
            Request(first.claim, first.ttl, first.ticket, 0, first.token, first.entry), now, limits
        )
        assert item.holder is not None
        said = Answer(answer.grade, answer.token, evidence=answer.evidence)
        return item, Handed(first.claim, first.serial, item.holder.until - first.until, said)

    def who_must_yield(self, request: Request) -> tuple[Claim, ...]:
        """The holder, if somebody with a smaller ticket has come: perhaps it does not hold the whole yet."""
        holder = self.holder
        if holder is None or holder.ticket is None or request.ticket is None or not request.wait:
            return ()
        owner, other = request.claim.owner, holder.claim.owner
        return (holder.claim,) if owner != other and (request.ticket, owner) < (holder.ticket, other) else ()

    # Asking

    def request(self, request: Request, now: "Time", limits: Limits) -> "tuple[Item, Answer]":
        if not self.may_take(request):
            return self._refused(request, now, limits)
        claim, until, committed = request.claim, now + min(request.ttl, limits.t_max), None
        if self.holder is not None and self.holds(claim):
            until, committed = max(until, self.holder.until), self.holder.token
        grade, token, evidence, told = Grade.COMMITTED, self.token, self.evidence, None
        if request.token is not None and committed is None:
            guess: Any = max(token + 1, limits.floor) if request.token is NEXT else request.token
            if request.token is NEXT or self.believes(guess, limits):
                token = committed = guess
                evidence = request.entry
            else:
                grade, told = Grade.TENTATIVE, evidence
        holder = Holder(claim, until, request.ticket, committed, request.entry)
        waiters = self.waiters and tuple(each for each in self.waiters if each.claim.owner != claim.owner)
        item = self.but(token=token, holder=holder, waiters=waiters, evidence=evidence)
        smaller = item.has_smaller(claim, request.ticket)
        return item, Answer(grade, committed, until - now, smaller, told, item.largest_ticket(claim))

    def may_take(self, request: Request) -> bool:
        """My own lease always, unless it belongs to a later attempt of mine (E4); a free one, unless somebody with a
        smaller ticket waits. No ticket is larger than any."""
        if self.knows_later(request.claim):
            return False
        if self.holder is not None:
            return bool(self.holder.claim.owner == request.claim.owner)
        return not self.has_smaller(request.claim, request.ticket)

    def knows_later(self, claim: Claim) -> bool:
        """Whether a later attempt of the same owner holds or waits: then this one is a straggler."""
        if self.holder is not None and claim.is_older_than(self.holder.claim):
            return True
        return bool(self.waiters) and any(claim.is_older_than(each.claim) for each in self.waiters)

    def has_smaller(self, claim: Claim, ticket: int | None) -> bool:
        if not self.waiters:
            return False
        others = (each for each in self.waiters if each.claim.owner != claim.owner)
        if ticket is None:
            return next(others, None) is not None
        return any(each.rank < (ticket, claim.owner) for each in others)

    def believes(self, token: "Any", limits: Limits) -> bool:
        return bool(token > self.token and (limits.token is None or token <= limits.token))

    def _with_token(self, token: int, entry: "Any") -> "Item":
        assert self.holder is not None
        return self.but(holder=self.holder.but(token=token), token=token, evidence=entry)

    def _refused(self, request: Request, now: "Time", limits: Limits) -> "tuple[Item, Answer]":
        remaining = self.holder.until - now if self.holder is not None else 0
        ticket = self.largest_ticket(request.claim)
        item = self
        if request.wait and request.ticket is not None and not self._waits_already(request, now):
            item = self.with_waiter(_waiter(request, now), limits)
        return item, Answer(
            Grade.REFUSED, None, remaining, item.has_smaller(request.claim, request.ticket), None, ticket
        )

    def _waits_already(self, request: Request, now: "Time") -> bool:
        """And for a while to come: a store that compares and sets need not be written at every poll. One that hands
        over must: what it hands over is counted from the last request."""
        if request.serial is not None:
            return False
        for each in self.waiters:
            if each.claim == request.claim and each.ticket == request.ticket:
                return bool(each.until - now > request.wait / 2)
        return False

    def with_waiter(self, waiter: Waiter, limits: Limits) -> "Item":
        """When there are too many, the largest ticket goes."""
        claim = waiter.claim
        if self.knows_later(claim):
            return self
        others = [each for each in self.waiters if each.claim.owner != claim.owner]
        waiters = sorted([*others, waiter], key=lambda each: each.rank)
        return self.but(waiters=tuple(waiters[: limits.waiters]))

    def largest_ticket(self, claim: Claim) -> "Any":
        """The entry with the largest ticket of anybody else, holding or waiting."""
        if not self.waiters and (self.holder is None or self.holder.claim.owner == claim.owner):
            return None
        known: list[Any] = list(self.waiters) if self.holder is None else [self.holder, *self.waiters]
        others = [each for each in known if each.ticket is not None and each.claim.owner != claim.owner]
        return max(others, key=lambda each: each.ticket).entry if others else None

    # What a holder can do

    def holds(self, claim: Claim) -> bool:
        return self.holder is not None and self.holder.claim == claim

    def commit(self, commit: Commit) -> "tuple[Item, Answer]":
        if not self.holds(commit.claim):
            return self, Answer(Grade.GONE, evidence=self.evidence)
        assert self.holder is not None
        if self.holder.token == commit.token:
            return self, Answer(Grade.COMMITTED, commit.token)
        if commit.token <= self.token:
            return self, Answer(Grade.REFUSED, evidence=self.evidence)
        smaller = self.has_smaller(commit.claim, self.holder.ticket)
        return self._with_token(commit.token, commit.entry), Answer(Grade.COMMITTED, commit.token, smaller=smaller)

    def extend(self, extend: Extend, now: "Time", limits: Limits) -> "tuple[Item, Answer]":
        if not self.holds(extend.claim):
            return self, Answer(Grade.GONE, remaining=self.holder.until - now if self.holder is not None else 0)
        assert self.holder is not None
        until = max(self.holder.until, now + min(extend.ttl, limits.t_max))
        item = self.but(holder=self.holder.but(until=until))
        return item, Answer(Grade.COMMITTED, self.holder.token, until - now)

    def yield_(self, operation: Yield, now: "Time", limits: Limits) -> "tuple[Item, Answer]":
        if not self.holds(operation.claim):
            return self, Answer(Grade.GONE)
        item = self.but(holder=None)
        if operation.wait and operation.ticket is not None:
            waiter = Waiter(operation.claim, now + operation.wait, operation.ticket, operation.entry)
            item = item.with_waiter(waiter, limits)
        return item, Answer(Grade.DONE)

    def release(self, release: Release) -> "tuple[Item, Answer]":
        """Compare and delete (E8)."""
        waiters = self.waiters and tuple(each for each in self.waiters if each.claim != release.claim)
        if self.holds(release.claim):
            return self.but(holder=None, waiters=waiters), Answer(Grade.DONE)
        if len(waiters) < len(self.waiters):
            return self.but(waiters=waiters), Answer(Grade.DONE)
        return self, Answer(Grade.GONE)

    # Between a store's clock and what travels

    def counted_from(self, now: "Time") -> "Item":
        """The same item with durations for times: what a read carries."""
        return self._moved(lambda until: max(until - now, 0))

    def placed_at(self, now: "Time") -> "Item":
        """The reverse, at the store: durations were counted from this moment."""
        return self._moved(lambda remaining: now + remaining)

    def _moved(self, move: "Any") -> "Item":
        holder = self.holder
        return self.but(
            holder=None if holder is None else holder.but(until=move(holder.until)),
            waiters=tuple(each.but(until=move(each.until)) for each in self.waiters),
        )


def _waiter(request: Request, now: "Time") -> Waiter:
    assert request.ticket is not None
    until = now + request.wait
    if request.serial is None:
        return Waiter(request.claim, until, request.ticket, request.entry)
    return Waiter(request.claim, until, request.ticket, request.entry, request.serial, request.ttl, request.token)
