"""A service with one store, as most have: who asks there, and its hub.

Where one claimant is all who ask, it sends one access and waits for one answer. That answer needs no inbox, and nobody
has to prepare to sleep for it: a store that is near gives it within a glance. So sending and hearing are one step,
``converse``, and most of what a quick claimant remembers meanwhile is the same each time. When anything else comes, or
nothing, it all goes the way that it goes in any hub.
"""

from trinco.core.instant import Instant
from trinco.leases.accesses import Apply
from trinco.leases.claim import Claim
from trinco.leases.operation import Answer, Operation, Release, Request
from trinco.locks.claimant import Claimant
from trinco.locks.hub import Hub
from trinco.locks.quick import ASKING, HOLDING, IDLE, QuickClaimant, is_plain_end
from trinco.stores.store import is_of_the_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.leases.terms import Terms

GLANCE = 0.005
"""Seconds. More than a tick of the system's clock: to be woken between two of them takes longer than a short answer."""
LEFT_OUT = 50
"""So many glances after one that saw nothing: the store is far, or does not answer, and others wait for the end of a
glance."""


class SoleClaimant(QuickClaimant):
    __slots__ = ()

    def __init__(self, hub: Hub, owner: str, resource: str, terms: "Terms") -> None:
        QuickClaimant.__init__(self, hub, owner, resource, terms)
        self.contacted = self.everywhere
        self.awaited = 1

    def starts(self) -> None:
        if self.pending is not None or (self.bases is not self.held and self._has_unfinished()):
            Claimant.starts(self)
            return
        hub, terms = self.hub, self.terms
        self.ticket = None
        self.attempt += 1
        self.renewals = 0
        self.stage = ASKING
        self.guess = self.first_guess(self.world)
        entry = hub.entries.write(self)
        self.believed = Instant(hub.clock() + terms.believed)
        claim = Claim(self.owner, self.attempt)
        self.pending = request = Request(claim, terms.ttl, None, 0, self.guess, entry)
        self.armed = False
        hub.converse(self, request, (self.bases[0].epoch, claim))

    def leaves(self) -> None:
        if self.pending is not None or self.stage is not HOLDING or self.bases is not self.held:
            QuickClaimant.leaves(self)
            return
        self.leaving = True
        self.stage = IDLE
        self.until = self.believed = self.guess = None
        if self.timers:
            self.timers.clear()
        claim = Claim(self.owner, self.attempt)
        self.pending = release = Release(claim, self.renewals)
        self.armed = False
        self.hub.converse(self, release, (self.bases[0].epoch, claim))

    def _arm(self) -> None:
        self.sent_at = self.hub.clock()
        QuickClaimant._arm(self)

    def replied(self, base: int, tag: "tuple[int, Claim]", reply: "Any") -> None:
        operation = self.pending
        if operation is not None and tag[1] is operation.claim:
            if self.stage is ASKING:
                if self._is_plain_grant(reply):
                    self._take(reply)
                    if self.wakers or self.leaving:
                        self._follow_up()
                    return
            elif is_plain_end(reply):
                self.pending = None
                if self.wakers or self.hinting:
                    self._follow_up()
                else:
                    self.hub.rest(self)
                return
            self.write_down()
        Claimant.replied(self, base, tag, reply)


class SoleHub(Hub):
    """With ``left_out`` at 0, as a thread may have it, ``converse`` waits for a moment."""

    __slots__ = ()

    quick = SoleClaimant

    def converse(self, claimant: Claimant, operation: Operation, tag: "Any") -> None:
        link, outstanding = self.links[0], self._outstanding[0]
        is_idle = not (outstanding or self._inbox or len(self.active) > 1)
        if self.left_out or not is_idle or link is None or self._in_use is not None or self._handed_out is not None:
            self.left_out = max(self.left_out - 1, 0)
            self.send(claimant, 0, Apply(operation), tag)
            return
        self._in_use, self._concerned = 0, (claimant, tag)
        try:
            reply = link.apply(claimant.resource, operation)
        except Exception as error:
            self._not_sent(claimant, 0, tag, error)
            return
        if reply is not None:
            self._in_use = self._concerned = None
            self._inbox.append((claimant, 0, tag, reply))
            self._note_heard(0)
            return
        outstanding.append((claimant, tag))
        self._in_use = self._concerned = None  # whoever is interrupted while we wait does no harm to the link
        if not (self.poller or self._has_made_a_poller()) or not self.poller.poll(GLANCE * self.poll_unit):
            self.left_out = LEFT_OUT
            return
        self._in_use = 0
        try:
            arrived = link.receive()
        except Exception as error:
            self._give_up(0, error)
            return
        if len(arrived) != 1 or (answer := arrived[0]).__class__ is not Answer or claimant.failures:
            self._sort(0, arrived)
            return
        self._handed_out = claimant, 0, tag, answer
        outstanding.popleft()
        self._in_use = None
        self.troubles[0] = None
        self.heard[0] += 1
        self._heard_at[0] = self.clock()
        claimant.replied(0, tag, answer)
        self._handed_out = None

    def _has_made_a_poller(self) -> bool:
        try:
            self.start_polling()
        except OSError as error:  # this process has too many files open: the answer may be there without one
            if not is_of_the_system(error):
                raise
            return False
        return True

    def take_in(self) -> None:
        if self._outstanding[0] or self._inbox or self._newcomers or len(self.active) > 1:
            Hub.take_in(self)
