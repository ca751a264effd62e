"""The common case, nobody in the way, without the bookkeeping of a lease client.

An acquisition that every base asked grants at once is one access to each of them, a release is another, and all that
the lease client writes down in between is thrown away. So it is put off: ``pending`` is the operation under way and
``answers`` what has come so far. When anything but the expected answer comes (a refusal, nonsense, a timer, a broken
link, somebody who gives up), all of it is written down after all, the answers are handed over in their order, and the
lease client goes on as if it had done so from the start. A test drives both with the same answers.

Several bases are asked this way only where exactly a quorum is asked first: there the last grant expected is the one
that decides. With fewer links than that, all that are asked may grant and it is still no quorum.
"""

from trinco.core.instant import Instant
from trinco.leases.accesses import Apply
from trinco.leases.chains import ACCESS
from trinco.leases.claim import Claim
from trinco.leases.client import GIVE_UP, WIDEN, Stage
from trinco.leases.operation import NEXT, Answer, Grade, Handed, Release, Request
from trinco.leases.plan import Plan
from trinco.leases.terms import Policy
from trinco.locks.claimant import Claimant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trinco.leases.chains import Base
    from trinco.leases.terms import Terms
    from trinco.locks.hub import Hub
    from trinco.stores.store import Said

    Told = tuple[int, tuple[int, Claim], Any]
    """A base, what the access to it was tagged with, and its reply."""

# By names of our own: to look a member up in its enum takes as long as a call.
IDLE, ASKING, HOLDING = Stage.IDLE, Stage.ASKING, Stage.HOLDING
COMMITTED, DONE, GONE = Grade.COMMITTED, Grade.DONE, Grade.GONE


class QuickClaimant(Claimant):
    """``believed``: until when, if the pending request is granted. ``contacted``: the bases that were sent what is
    pending, at ``sent_at``; ``awaited``: how many have not answered it. ``held``: the bases' records while we hold,
    where those of ``granting`` have granted and nothing else is under way or owed. As long as ``bases`` is that very
    tuple, nothing has to be looked for in it."""

    __slots__ = ("answers", "armed", "awaited", "believed", "contacted", "granting", "held", "pending", "sent_at")

    def __init__(self, hub: "Hub", owner: str, resource: str, terms: "Terms") -> None:
        self.pending: Request | Release | None = None
        self.answers: list[Told] = []
        self.believed: Instant | None = None
        self.contacted: Sequence[int] = ()
        self.awaited = 0
        self.sent_at = 0.0
        self.armed = False
        self.granting: Sequence[int] = ()
        self.held: tuple[Base, ...] = ()
        Claimant.__init__(self, hub, owner, resource, terms)

    # What is put off

    def starts(self) -> None:
        hub, terms = self.hub, self.terms
        contacts = self.first_contacts()
        if len(contacts) != terms.quorum or self.is_busy:
            Claimant.starts(self)
            return
        self.ticket = None
        self.attempt += 1
        self.renewals = 0
        self.stage = ASKING
        self.guess = self.first_guess(self.world)
        request = Request(Claim(self.owner, self.attempt), terms.ttl, None, 0, self.guess, hub.entries.write(self))
        now = self.sent_at = hub.clock()
        self.believed = Instant(now + terms.believed)
        self._put_off(request, contacts)

    def leaves(self) -> None:
        if self.pending is not None:
            self.write_down()
        if self.stage is not HOLDING or (self.bases is not self.held and self._has_unfinished()):
            Claimant.leaves(self)
            return
        self.leaving = True
        self.stage = IDLE
        self.until = self.believed = self.guess = None
        self.timers.clear()
        if self.bases is self.held:
            asked = self.granting
        else:
            asked = [position for position, base in enumerate(self.bases) if base.asked]
        self.sent_at = self.hub.clock()
        self._put_off(Release(Claim(self.owner, self.attempt), self.renewals), asked)

    def _has_unfinished(self) -> bool:
        return any(base.chain or base.owed for base in self.bases)

    def _put_off(self, operation: Request | Release, positions: "Sequence[int]") -> None:
        """Send it, and remember no more than that."""
        self.pending = operation
        if self.answers:
            self.answers = []
        self.contacted = positions
        self.awaited = len(positions)
        self.armed = False
        access, claim, bases, hub = Apply(operation), operation.claim, self.bases, self.hub
        for position in positions:
            hub.send(self, position, access, (bases[position].epoch, claim))

    def expect_to_wait(self) -> None:
        if self.pending is not None and not self.armed:
            self._arm()

    def _arm(self) -> None:
        """Timers are set when somebody is about to wait: most answers come before that. They count from when it was
        sent."""
        self.armed = True
        timers, terms, sent_at = self.timers, self.terms, self.sent_at
        if self.stage is ASKING and terms.policy is not Policy.PRIORITY:
            timers[GIVE_UP] = sent_at + terms.patience
        if terms.access_timeout:
            for position in self.contacted:
                timer = f"{ACCESS}{position}"
                timers[timer] = sent_at + terms.access_timeout
                self.note_heard(timer)
        if self.stage is ASKING and terms.widen:
            timers[WIDEN] = sent_at + terms.widen

    def write_down(self) -> None:
        """Make up for what was put off: the operation is at the head of each base's chain, and has been answered by
        those that have answered."""
        operation, self.pending = self.pending, None
        if operation is None:
            return
        if not self.armed:
            self._arm()
        if isinstance(operation, Request):
            self.entry = (self.attempt, None, self.guess, None), operation.entry
        chain = (Plan(operation, self.believed),)
        self.bases = tuple(
            base.forgotten(asked=True).but(chain=chain) if position in self.contacted else base.forgotten(asked=False)
            for position, base in enumerate(self.bases)
        )
        for base, tag, reply in self.answers:
            Claimant.replied(self, base, tag, reply)

    # What comes of it

    def replied(self, base: int, tag: "tuple[int, Claim]", reply: "Any") -> None:
        operation = self.pending
        if operation is None or tag[1] is not operation.claim:
            Claimant.replied(self, base, tag, reply)
            return
        asks = isinstance(operation, Request)
        if not (self._is_plain_grant(reply) if asks else is_plain_end(reply)):
            self.write_down()
            Claimant.replied(self, base, tag, reply)
            return
        self.awaited -= 1
        if self.awaited:
            self.answers.append((base, tag, reply))
        elif asks:
            self._take(reply)
        else:
            self.pending = None
        if self.wakers or self.leaving:
            self._follow_up()

    def _is_plain_grant(self, reply: "Any") -> bool:
        """What ``LeaseClient`` would count as a vote."""
        believed = self.believed
        return (
            isinstance(reply, Answer)
            and reply.grade is COMMITTED
            and not reply.granularity
            and reply.makes_sense()
            and self._is_our_token(reply.token)
            and believed is not None
            and believed.at - self.hub.clock() >= self.terms.useful
        )

    def _take(self, answer: Answer) -> None:
        """What ``LeaseClient`` does when it holds."""
        self.until = self.believed
        token = None if self.guess is None else answer.token
        if token is not None and token > self.token:
            self.token = token
        if self.bases is not self.held or self.contacted is not self.granting:
            self._note_who_grants()
        self.granted = token
        self.grants += 1
        self.pending = None  # after all else: whoever is interrupted before leaves nobody half a grant
        self.stage = HOLDING
        if self.armed:
            self.timers.clear()

    def was_told(self, base: int, said: "Said") -> None:
        if said.__class__ is Handed and self._takes_over(said):
            self._follow_up()
        else:
            Claimant.was_told(self, base, said)

    def _takes_over(self, said: Handed) -> bool:
        """What ``LeaseClient`` does where one store is all there is, and hands over what it was last asked for. False
        if there is anything else to it."""
        if len(self.bases) > 1 or self.stage is not ASKING or self.pending is not None or not said.makes_sense():
            return False
        base, claim, answer, terms, now = self.bases[0], said.claim, said.answer, self.terms, self.hub.clock()
        if base.chain or base.owed or base.poisoned or base.waiting is None or base.waiting.at <= now:
            return False
        if said.serial != base.serial or claim.attempt != self.attempt or claim.owner != self.owner or claim.nonce:
            return False
        if answer.grade is not COMMITTED or not self._is_our_token(answer.token):
            return False
        until = min(base.waiting.at + terms.believed_beyond(said.beyond), now + terms.believed)
        if until - now < terms.useful:
            return False
        if self.held and self.held[0].epoch == base.epoch:
            self.bases = self.held  # what was noted when we held it last is all there is to note
        self.believed = Instant(until)
        self.ticket = None
        self.timers.clear()
        self.contacted = self.everywhere
        self._take(answer)
        return True

    def _is_our_token(self, token: int | None) -> bool:
        guess = self.guess
        return token is not None if guess is NEXT else guess is None or token == guess

    def _note_who_grants(self) -> None:
        contacted = self.contacted
        if self.bases is self.held and contacted == self.granting:
            return
        # An answer to an earlier claim may have come late, and is undone.
        unfinished = self.bases is not self.held and self._has_unfinished()
        self.bases = tuple(
            base.forgotten(asked=each in contacted).but(mine=each in contacted, memory=None)
            for each, base in enumerate(self.bases)
        )
        self.granting, self.held = contacted, () if unfinished else self.bases

    def lost_touch(self, base: int, tag: "tuple[int, Claim]") -> None:
        self.write_down()
        Claimant.lost_touch(self, base, tag)

    def fire(self, now: float) -> None:
        self.write_down()
        Claimant.fire(self, now)

    @property
    def is_busy(self) -> bool:
        return self.pending is not None or (self.bases is not self.held and self._has_unfinished())

    def unconfirmed(self) -> list[int]:
        if self.pending is None:
            return Claimant.unconfirmed(self)
        answered = [base for base, _, _ in self.answers]
        return [base for base in self.contacted if base not in answered]

    def unanswered(self) -> int:
        if self.bases is self.held and self.pending is None:
            return 0
        return self.awaited if self.pending is not None else Claimant.unanswered(self)


def is_plain_end(reply: "Any") -> bool:
    return isinstance(reply, Answer) and (reply.grade is DONE or reply.grade is GONE)
