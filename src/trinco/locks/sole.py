"""One store, the common case: its first request and its release without the bookkeeping of a quorum.

With one base, an acquisition that is granted at once is one access and a release is another, and all that the lease
client writes down in between is thrown away. So it is put off: ``pending`` is the operation under way. When anything
but the expected answer comes (a refusal, nonsense, a timer, a broken link, somebody who gives up), it is written down
after all, and the lease client goes on as if it had done so from the start. A test drives both with the same answers.
"""

from trinco.leases.accesses import Apply
from trinco.leases.chains import ACCESS
from trinco.leases.claim import Claim
from trinco.leases.client import GIVE_UP, Stage
from trinco.leases.operation import NEXT, Answer, Grade, Release, Request
from trinco.leases.plan import Plan
from trinco.leases.terms import Policy
from trinco.locks.claimant import Claimant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.core.instant import Instant
    from trinco.leases.chains import Base
    from trinco.leases.terms import Terms
    from trinco.locks.hub import Hub

ACCESS_TIMER = f"{ACCESS}0"


class SoleClaimant(Claimant):
    """``believed``: until when, if the pending request is granted. ``held``: the base's record while we hold."""

    __slots__ = ("believed", "held", "pending")

    def __init__(self, hub: "Hub", owner: str, resource: str, terms: "Terms") -> None:
        self.pending: Request | Release | None = None
        self.believed: Instant | None = None
        self.held: Base | None = None
        Claimant.__init__(self, hub, owner, resource, terms)

    # What is put off

    def starts(self) -> None:
        if self.pending is not None or self.bases[0].chain or self.bases[0].owed:
            Claimant.starts(self)
            return
        self.ticket = None
        self.attempt += 1
        self.renewals = 0
        self.stage = Stage.ASKING
        self.guess = self.first_guess(self.world)
        claim = Claim(self.owner, self.attempt)
        entry = self.signed(self.world, claim)
        self.believed = self.believed_until(self.world)
        self.pending = Request(claim, self.terms.ttl, None, 0, self.guess, entry)
        self._send()

    def leaves(self) -> None:
        self.write_down()
        if self.stage is not Stage.HOLDING or self.bases[0].chain or self.bases[0].owed:
            Claimant.leaves(self)
            return
        self.leaving = True
        self.stage = Stage.IDLE
        self.until = self.believed = self.guess = None
        self.timers.clear()
        self.pending = Release(self.claim, self.renewals)
        self._send()

    def _send(self) -> None:
        operation = self.pending
        assert operation is not None
        if self.hub.send(self, 0, Apply(operation), (self.bases[0].epoch, operation.claim)):
            self._arm()

    def _arm(self) -> None:
        if self.stage is Stage.ASKING and self.terms.policy is not Policy.PRIORITY:
            self.world.set_timer(GIVE_UP, self.terms.patience)
        if self.terms.access_timeout:
            self.world.set_timer(ACCESS_TIMER, self.terms.access_timeout)

    def write_down(self) -> None:
        """Make up for what was put off: the operation is at the head of its base's chain."""
        operation, self.pending = self.pending, None
        if operation is not None:
            if not self.timers:
                self._arm()  # it was answered at once, and not as expected
            self.bases = (self.bases[0].forgotten(asked=True).but(chain=(Plan(operation, self.believed),)),)

    # What comes of it

    def replied(self, base: int, tag: "tuple[int, Claim]", reply: "Any") -> None:
        operation = self.pending
        if operation is None or tag[1] is not operation.claim:
            Claimant.replied(self, base, tag, reply)
        elif isinstance(operation, Request) and self._is_plain_grant(reply):
            self._take(reply)
        elif isinstance(operation, Release) and _is_plain_end(reply):
            self.pending = None
            self._follow_up()
        else:
            self.write_down()
            Claimant.replied(self, base, tag, reply)

    def _is_plain_grant(self, reply: "Any") -> bool:
        """What ``LeaseClient`` would count as the one vote that it needs."""
        return (
            isinstance(reply, Answer)
            and reply.grade is Grade.COMMITTED
            and reply.makes_sense()
            and reply.granularity == 0
            and (self.guess is None or (self.guess is NEXT and reply.token is not None))
            and self.believed is not None
            and self.believed - self.world.now() >= self.terms.useful
        )

    def _take(self, answer: Answer) -> None:
        """What ``LeaseClient`` does when it holds."""
        self.pending = None
        self.timers.clear()
        self.stage = Stage.HOLDING
        self.until = self.believed
        token = None if self.guess is None else answer.token
        if token is not None:
            self.token = max(self.token, token)
        if self.bases[0] is not self.held:
            self.held = self.bases[0].forgotten(asked=True).but(mine=True, memory=None)
            self.bases = (self.held,)
        self.world.grant(token, self.until)
        self._follow_up()

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
        return 1 if self.pending is not None else Claimant.unanswered(self)


def _is_plain_end(reply: "Any") -> bool:
    return isinstance(reply, Answer) and (reply.grade is Grade.DONE or reply.grade is Grade.GONE)
