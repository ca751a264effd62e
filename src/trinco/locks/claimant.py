"""The proven lease client on real stores: one who asks for one lock, holds it and gives it back.

``LeaseClient`` is the code that was model-checked. What it needs of a runtime is here: its accesses go to the hub's
links, its entries are written (and signed, where keys are in use), its timers are kept, and what came of it is noted
for the shell that waits. Nothing here blocks or knows of threads and tasks.
"""

from trinco.core.instant import Instant
from trinco.leases.chains import ACCESS, OWED
from trinco.leases.client import HELD, POLL, WIDEN, LeaseClient, Stage
from trinco.leases.operation import Answer, Grade, Handed
from trinco.leases.terms import Policy
from trinco.locks.agenda import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from trinco.leases.accesses import Access
    from trinco.leases.chains import Base
    from trinco.leases.claim import Claim
    from trinco.leases.plan import Plan
    from trinco.leases.terms import Terms
    from trinco.locks.hub import Hub
    from trinco.stores.store import Said

AFTER_EXPIRY = 0.002
"""How long after the end of the lease in its way the first in line asks; the others let it go first."""
NOT_FIRST = 0.05
JITTER = 0.2
AT_ONCE = 0.0
"""When to poll, if a store can be reached now that could not."""
CONGESTED = 10
"""So many times as long as an answer took, at least, until the next question: where hundreds wait, their polls alone
could keep a server busy."""
ENTRY_LASTS = 0.5
"""Seconds. An entry says since when its owner has the lock: who waits for long must not show since when it waits."""
AHEAD = 10_000_000
"""Ten seconds in microseconds: the clocks of hosts that are looked after are closer than that."""


class Claimant(LeaseClient):
    """``entry`` is what the stores keep beside the claim, ``refusal`` why an attempt failed, ``failures`` what each
    store said last that was no answer, ``faults`` the same when the attempt failed (what they say to its release is
    about something else), ``taken`` at how many of them somebody else had it when we renewed. ``wakers``:
    of those who sleep until something happens to it."""

    __slots__ = (
        "asked_at",
        "entry",
        "everywhere",
        "failures",
        "faults",
        "granted",
        "grants",
        "heard",
        "hinting",
        "hub",
        "info",
        "is_spent",
        "leaving",
        "reached",
        "refusal",
        "resource",
        "taken",
        "timers",
        "wakers",
        "world",
    )

    def __init__(self, hub: "Hub", owner: str, resource: str, terms: "Terms") -> None:
        LeaseClient.__init__(self, owner, terms, hub.algorithms)
        self.hub = hub
        self.everywhere = range(len(self.bases))
        self.resource = resource
        self.world = World(self, hub.clock)
        self.timers = Timers(hub.agenda, self)
        self.heard: dict[str, int] = {}
        """By the timer of an access, how often its store had been heard when that was set."""
        self.grants = 0
        """How often it was granted something, renewals among it."""
        self.wakers: list[Callable[[], None]] = []
        self.is_spent = False
        """Somebody was interrupted while using it: it leaves, and is not used again."""
        self.entry: tuple[Any, bytes] | None = None
        self.asked_at = 0.0
        self.failures: dict[int, str] = {}
        self.faults: dict[int, str] = {}
        self.reached: set[int] = set()
        self.taken = 0
        self.hinting = False
        self.prepare(terms, "")

    def prepare(self, terms: "Terms", info: str) -> None:
        """For the next acquisition; a claimant that has given everything back is used again."""
        self.terms = terms
        self.info = info
        self.granted: int | None = None
        self.refusal: str | None = None
        if self.failures:
            self.failures = {}
        if self.faults:
            self.faults = {}
        if self.reached:
            self.reached = set()
        self.leaving = False

    # What the lease client needs

    def access(self, ctx: "World", base: int, access: "Access") -> None:
        here = self.bases[base]
        if self.ticket is not None and self.stage is Stage.ASKING:
            self.hinting = True
            self.hub.expect_hints(self, base)  # before the store knows that we wait: it may wake us at once
        self.asked_at = self.hub.clock()
        self.hub.send(self, base, access, (here.epoch, here.chain[0].operation.claim))

    def signed(self, ctx: "World", claim: "Claim") -> bytes:
        """One entry for all bases; it is written anew when the attempt, the ticket or the token is another, and now and
        then while we wait."""
        period = int(self.hub.clock() / ENTRY_LASTS) if self.ticket is not None else None
        said = (claim.attempt, self.ticket, self.guess, period)
        if self.entry is None or self.entry[0] != said:
            self.entry = said, self.hub.entries.write(self)
        return self.entry[1]

    def token_in(self, ctx: "World", evidence: "Any") -> int:
        return self.hub.entries.token_in(self.resource, evidence)

    def ticket_in(self, ctx: "World", evidence: "Any") -> int:
        return self.hub.entries.ticket_in(self.resource, evidence)

    def first_contacts(self) -> "list[int] | range":
        if not self.terms.widen:
            return self.everywhere
        return self.hub.preference.first(self.terms.quorum, self.hub.links)

    def next_poll(self, answer: Answer) -> float:
        """When the lease in our way ends, or else after a while, so that not all come at once."""
        if answer.grade is Grade.COMMITTED and self.terms.quorum == 1:
            return AT_ONCE  # it came too late to be believed, and is ours for a while: ask for a new term
        busy = CONGESTED * (self.hub.clock() - self.asked_at)
        pause = max(self.terms.poll, min(busy, self.terms.wait / 2)) * (1 + JITTER * (self.hub.chance() - 0.5))
        if answer.grade is Grade.REFUSED and answer.remaining > 0:
            pause = min(pause, answer.remaining + (NOT_FIRST if answer.smaller else AFTER_EXPIRY))
        return pause

    def _noted(self, ctx: "World", base: "Base", plan: "Plan", answer: Answer) -> "Base":
        if answer.grade is Grade.GONE and answer.remaining > 0:
            self.taken += 1
        return LeaseClient._noted(self, ctx, base, plan, answer)

    # What happens

    def starts(self) -> None:
        self.acquire(self.world)

    def expect_to_wait(self) -> None:
        """What is under way was not answered at once."""

    def leaves(self) -> None:
        """Give everything back, and be done when every base has answered."""
        self.leaving = True
        self.release(self.world)

    def replied(self, base: int, tag: "tuple[int, Claim]", reply: "Any") -> None:
        """A reply to what was sent in an epoch for a claim; None where there is none."""
        if isinstance(reply, Answer):
            self.reached.add(base)
        epoch, claim = tag
        if epoch != self.bases[base].epoch:
            self.straggled(self.world, base, claim)
            return
        if reply is None:
            self.hub.preference.demote(base)
        self.answered(self.world, base, reply)
        if self.bases[base].grade not in (None, Grade.FAILED):  # it may take more than one reply to make an answer
            self.reached.add(base)
        self._follow_up()

    def lost_touch(self, base: int, tag: "tuple[int, Claim]") -> None:
        """The link broke: what is under way there may still be carried out."""
        if tag[0] != self.bases[base].epoch:
            return
        self.on_timer(self.world, f"{ACCESS}{base}")
        if self.stage is Stage.ASKING and self.ticket is not None:
            self.timers[POLL] = self.hub.clock()  # there may be a link by then
        self._follow_up()

    def has_link(self, base: int) -> None:
        """What failed for want of a link has not failed for somebody who waits: ask there at once. What is owed there
        can be paid."""
        if self.bases[base].owed:
            self.timers[OWED] = AT_ONCE
        if self.terms.policy is not Policy.PRIORITY or self.failures.pop(base, None) is None:
            return
        if self.stage is Stage.ASKING and self.ticket is not None:
            if self.bases[base].chain:
                self.timers[POLL] = AT_ONCE  # it has yet to hear that it failed
            elif not self.bases[base].poisoned:
                self._ask(self.world, base)

    def was_told(self, base: int, said: "Said") -> None:
        """It is ours there, or our turn, perhaps; or we have gone, and the store has not heard."""
        if isinstance(said, Handed):
            self.handed(self.world, base, said)
            self._follow_up()
        elif self.stage is Stage.IDLE:
            self.straggled(self.world, base, self.claim)
        else:
            self.hinted(self.world, base)

    def _blame_the_silent(self) -> None:
        for position, base in enumerate(self.bases):
            if base.asked and base.grade is None:
                self.hub.preference.demote(position)

    def _follow_up(self) -> None:
        for wake in self.wakers:
            wake()
        if self.leaving:
            self.hub.retire(self)

    def note_heard(self, timer: str) -> None:
        """An access begins."""
        self.heard[timer] = self.hub.heard[int(timer[len(ACCESS) :])]

    def _has_given_up(self, timer: str) -> bool:
        """Give a link up if its store owes us an answer and has said nothing, to whomever, since that access began.
        Whether that was the end of the access, too."""
        base = int(timer[len(ACCESS) :])
        epoch = self.bases[base].epoch
        if not self.bases[base].chain:
            return False  # it was answered, and nobody has stopped the timer
        if self.hub.links[base] is None:
            self.hub.drop_unsent(self, base)
        elif self.heard.get(timer) == self.hub.heard[base]:
            self.hub.give_up_silent(base, self.terms.access_timeout)
        return self.bases[base].epoch != epoch

    def fire(self, now: float) -> None:
        """Let the timers that are due go off."""
        for name in [name for name, due in self.timers.items() if due <= now]:
            if self.timers.pop(name, None) is None:
                continue  # one that went off before has cancelled it
            if name == WIDEN:
                self._blame_the_silent()
            if not (name.startswith(ACCESS) and self._has_given_up(name)):
                self.on_timer(self.world, name)
        self._follow_up()

    # What the shells look at

    @property
    def is_holding(self) -> bool:
        return self.stage is Stage.HOLDING

    def is_settled(self) -> bool:
        """Whether waiting makes no difference any more."""
        if self.stage is Stage.HOLDING or self.refusal is not None or self.hub.is_closing:
            return True
        if self.failures and self.is_cut_off():
            return True
        if self.stage is Stage.ASKING and not self.timers and not self.is_busy:
            self.timers[POLL] = AT_ONCE  # who did things for us was interrupted, and what was to come next is lost
        return False

    @property
    def is_busy(self) -> bool:
        """Whether anything is still under way or owed at any base."""
        return any(base.chain or base.owed for base in self.bases)

    def unconfirmed(self) -> list[int]:
        """The bases at which something is still under way or owed."""
        return [position for position, base in enumerate(self.bases) if base.chain or base.owed]

    def unanswered(self) -> int:
        """How many of these can still say something: they are connected, or being connected to again."""
        return sum(self.hub.can_hear(position) for position in self.unconfirmed())

    def is_cut_off(self) -> bool:
        """Whether so many stores failed, before a quorum of them ever answered, that nothing can come of it. One that
        is still being connected to has not failed, nor has one that only stays out for a while."""
        if len(self.reached) >= self.terms.quorum or len(self.failures) < self.terms.refusals:
            return False
        failed = [base for base in self.failures if base not in self.reached and not self.hub.is_connecting_to(base)]
        return len(failed) >= self.terms.refusals

    def is_refused(self) -> bool:
        """Whether it was somebody else who kept us from it, and not silence."""
        return self.refusal == HELD and len(self.faults) < self.terms.refusals

    def gone(self) -> int:
        """At how many bases our entry is not there any more."""
        return sum(base.grade is Grade.GONE for base in self.bases)

    def is_taken(self) -> bool:
        """Whether somebody else had it when we renewed: at more bases than may lie."""
        return self.taken > self.terms.f


class World:
    """The contract's effects, for one claimant."""

    __slots__ = ("claimant", "clock")

    def __init__(self, claimant: Claimant, clock: "Callable[[], float]") -> None:
        self.claimant = claimant
        self.clock = clock

    def now(self) -> Instant:
        return Instant(self.clock())

    def wall_clock(self) -> int:
        """A little ahead: it makes guesses for tokens, and a fresh item starts at its store's clock."""
        return self.claimant.hub.wall_clock() + AHEAD

    def set_timer(self, name: str, delay: float) -> None:
        timers = self.claimant.timers
        if name == POLL and timers.get(name) == AT_ONCE:
            return  # what puts it off again may be older than what made us hurry
        timers[name] = self.clock() + delay
        if name.startswith(ACCESS):
            self.claimant.note_heard(name)

    def cancel_timer(self, name: str) -> None:
        self.claimant.timers.pop(name, None)

    def choose(self, options: int) -> int:
        return int(self.claimant.hub.chance() * options)

    def grant(self, token: int | None = None, until: Instant | None = None) -> None:
        self.claimant.granted = token
        self.claimant.grants += 1

    def refuse(self, reason: str) -> None:
        self.claimant.refusal = reason
        self.claimant.faults = dict(self.claimant.failures)
