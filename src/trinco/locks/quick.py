"""The common case, nobody in the way, without the bookkeeping of a lease client.

An acquisition that every base asked grants at once is one access to each of them, a release is another, and all that
the lease client writes down in between is thrown away. So it is put off: ``pending`` is the operation under way and
``answers`` what has come so far. When anything but the expected answer comes (a refusal, nonsense, a timer, a broken
link, somebody who gives up), all of it is written down after all, the answers are handed over in their order, and the
lease client goes on as if it had done so from the start. A test drives both with the same answers.

Several bases are asked this way only where exactly a quorum is asked first: there the last grant expected is the one
that decides. With fewer links than that, all that are asked may grant and it is still no quorum.
"""

from trinco.leases.accesses import Apply
from trinco.leases.chains import ACCESS
from trinco.leases.client import GIVE_UP, WIDEN, Stage
from trinco.leases.operation import NEXT, Answer, Grade, Release, Request
from trinco.leases.plan import Plan
from trinco.leases.terms import Policy
from trinco.locks.claimant import Claimant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trinco.core.instant import Instant
    from trinco.leases.chains import Base
    from trinco.leases.claim import Claim
    from trinco.leases.terms import Terms
    from trinco.locks.hub import Hub

    Told = tuple[int, tuple[int, Claim], Any]
    """A base, what the access to it was tagged with, and its reply."""


class QuickClaimant(Claimant):
    """``believed``: until when, if the pending request is granted. ``contacted``: the bases that were sent what is
    pending; ``awaited``: how many have not answered it. ``held``: the bases' records while we hold, where
    those of ``granting`` have granted."""

    __slots__ = ("answers", "armed", "awaited", "believed", "contacted", "granting", "held", "pending")

    def __init__(self, hub: "Hub", owner: str, resource: str, terms: "Terms") -> None:
        self.pending: Request | Release | None = None
        self.answers: list[Told] = []
        self.believed: Instant | None = None
        self.contacted: Sequence[int] = ()
        self.awaited = 0
        self.armed = False
        self.granting: Sequence[int] = ()
        self.held: tuple[Base, ...] = ()
        Claimant.__init__(self, hub, owner, resource, terms)

    # What is put off

    def starts(self) -> None:
        contacts = self.first_contacts()
        if self.pending is not None or self._has_unfinished() or len(contacts) != self.terms.quorum:
            Claimant.starts(self)
            return
        self.ticket = None
        self.attempt += 1
        self.renewals = 0
        self.stage = Stage.ASKING
        self.guess = self.first_guess(self.world)
        claim = self.claim
        entry = self.signed(self.world, claim)
        self.believed = self.believed_until(self.world)
        self._put_off(Request(claim, self.terms.ttl, None, 0, self.guess, entry), contacts)

    def leaves(self) -> None:
        self.write_down()
        if self.stage is not Stage.HOLDING or self._has_unfinished():
            Claimant.leaves(self)
            return
        self.leaving = True
        self.stage = Stage.IDLE
        self.until = self.believed = self.guess = None
        self.timers.clear()
        asked = [position for position, base in enumerate(self.bases) if base.asked]
        self._put_off(Release(self.claim, self.renewals), asked)

    def _has_unfinished(self) -> bool:
        return any(base.chain or base.owed for base in self.bases)

    def _put_off(self, operation: Request | Release, positions: "Sequence[int]") -> None:
        """Send it, and remember no more than that."""
        self.pending = operation
        self.answers = []
        self.contacted = positions
        self.awaited = len(positions)
        self.armed = False
        access, claim = Apply(operation), operation.claim
        for position in positions:
            self.hub.send(self, position, access, (self.bases[position].epoch, claim))

    def expect_to_wait(self) -> None:
        if self.pending is not None and not self.armed:
            self._arm()

    def _arm(self) -> None:
        """Timers are set when somebody is about to wait: most answers come before that."""
        self.armed = True
        set_timer, terms = self.world.set_timer, self.terms
        if self.stage is Stage.ASKING and terms.policy is not Policy.PRIORITY:
            set_timer(GIVE_UP, terms.patience)
        if terms.access_timeout:
            for position in self.contacted:
                set_timer(f"{ACCESS}{position}", terms.access_timeout)
        if self.stage is Stage.ASKING and terms.widen:
            set_timer(WIDEN, terms.widen)

    def write_down(self) -> None:
        """Make up for what was put off: the operation is at the head of each base's chain, and has been answered by
        those that have answered."""
        operation, self.pending = self.pending, None
        if operation is None:
            return
        if not self.armed:
            self._arm()
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
        as_expected = self._is_plain_grant(reply) if isinstance(operation, Request) else _is_plain_end(reply)
        if not as_expected:
            self.write_down()
            Claimant.replied(self, base, tag, reply)
            return
        self.answers.append((base, tag, reply))
        self.awaited -= 1
        if not self.awaited and isinstance(operation, Request):
            self._take(reply)
        elif not self.awaited:
            self.pending = None
        self._follow_up()

    def _is_plain_grant(self, reply: "Any") -> bool:
        """What ``LeaseClient`` would count as a vote."""
        guess = self.guess
        return (
            isinstance(reply, Answer)
            and reply.grade is Grade.COMMITTED
            and reply.makes_sense()
            and reply.granularity == 0
            and (guess is None or reply.token == guess or (guess is NEXT and reply.token is not None))
            and self.believed is not None
            and self.believed - self.world.now() >= self.terms.useful
        )

    def _take(self, answer: Answer) -> None:
        """What ``LeaseClient`` does when it holds."""
        self.pending = None
        if self.armed:
            self.timers.clear()
        self.stage = Stage.HOLDING
        self.until = self.believed
        token = None if self.guess is None else answer.token
        if token is not None:
            self.token = max(self.token, token)
        if self.bases is not self.held or self.contacted != self.granting:
            self.granting = self.contacted
            self.bases = self.held = tuple(
                base.forgotten(asked=each in self.contacted).but(mine=each in self.contacted, memory=None)
                for each, base in enumerate(self.bases)
            )
        self.world.grant(token, self.until)

    def lost_touch(self, base: int, tag: "tuple[int, Claim]") -> None:
        self.write_down()
        Claimant.lost_touch(self, base, tag)

    def fire(self, now: float) -> None:
        self.write_down()
        Claimant.fire(self, now)

    @property
    def is_busy(self) -> bool:
        return self.pending is not None or super().is_busy

    def unanswered(self) -> int:
        return self.awaited if self.pending is not None else Claimant.unanswered(self)


def _is_plain_end(reply: "Any") -> bool:
    return isinstance(reply, Answer) and (reply.grade is Grade.DONE or reply.grade is Grade.GONE)
