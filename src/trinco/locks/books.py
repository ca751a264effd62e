"""The books of a lock service: who competes, which leases are held, what a renewal came to.

Everything that threads and tasks do alike, without waiting. ``Desk`` (threads) and ``AsyncDesk`` (tasks) add the
waiting, each in its own way.
"""

from trinco.core.duration import in_words
from trinco.core.errors import Denial, QuorumForbidden, QuorumUnavailable, StoreUnavailable, unavailable
from trinco.leases.client import Stage
from trinco.locks.agenda import NEVER
from trinco.locks.claimant import Claimant
from trinco.locks.endings import close_at_exit, holding
from trinco.locks.hub import Hub
from trinco.locks.lease import RETRIES_PER_TERM, Lease
from trinco.locks.quick import HOLDING
from trinco.locks.waiting import CLOSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trinco.leases.claim import Claim
    from trinco.leases.terms import Terms
    from trinco.locks.inspection import Look
    from trinco.locks.options import Options

TOLD_TO_END = "this process was told to end (SIGTERM), and waits for no lock any more"
FIRST_CONTACT = 5.0
"""How long to wait for stores to be reachable, before anything was asked of them."""
FAREWELL = 5.0
"""How long a release waits for the stores to confirm it; they hear of it anyhow."""
WITHDRAWAL = 0.03
"""The same for somebody who gave up waiting; then it is done behind the scenes."""
LINGER = 0.05
"""How long a store that has not confirmed a release is left alone: most confirm before anybody has to listen for it,
and waking somebody at every release would cost more than the release."""
IN_NEED = 0.1
"""How long until renewals are tried again after a bug of ours."""
LOOK_PATIENCE = 5.0
GLANCE = 0.25
"""How long to look for whoever was in the way: only words depend on it."""


class Books:
    """``leases`` are those that are held."""

    def __init__(self, hub: Hub, f: int) -> None:
        self.hub = hub
        self.f = f
        self.leases: dict[int, Lease] = {}
        self.is_closed = False
        self._is_bug_told = False
        close_at_exit(self)

    @property
    def quorum(self) -> int:
        return (len(self.hub.stores) + self.f + 2) // 2

    def require_open(self) -> None:
        if self.is_closed or self.hub.is_closing:
            raise StoreUnavailable(CLOSED if self.is_closed else TOLD_TO_END)

    # First contact

    def lacks_links(self) -> bool:
        """Whether a store is not connected; then it is being connected to."""
        hub = self.hub
        if self.is_closed or hub.is_closing:
            self.require_open()
        hub.look_around()
        if None not in hub.links:
            return False
        hub.connect_missing(urgently=hub.connected() < self.quorum)
        return True

    def has_first_contact(self) -> bool:
        """Whether enough stores are connected, or it is clear that they will not be."""
        return self.hub.connected() >= self.quorum or not self.hub.is_connecting

    def first_contact_by(self, deadline: float) -> float:
        """Until when to wait for links; who will not wait for the lock must still be able to ask for it."""
        now = self.hub.clock()
        return now + FIRST_CONTACT if deadline <= now else min(deadline, now + FIRST_CONTACT)

    def is_too_late(self, deadline: float) -> bool:
        """Whether time is over before enough stores could be connected to: then nobody can say anything of them."""
        hub = self.hub
        return hub.clock() >= deadline and hub.is_connecting and hub.connected() < self.quorum

    def require_links(self) -> None:
        """At first contact whoever cannot be reached is named at once."""
        if self.hub.connected() < self.quorum:
            silent = {base for base, link in enumerate(self.hub.links) if link is None}
            raise self.unavailable({base: why for base, why in enumerate(self.hub.troubles) if why}, silent)

    def unavailable(self, failures: dict[int, str], silent: set[int]) -> StoreUnavailable:
        """``silent``: who has not answered. Where the failures alone are reason enough, nobody was waited for, and
        whoever is only a moment late is not accused."""
        stores = self.hub.stores
        if len(stores) - len(failures) >= self.quorum:
            failures = {base: f"{stores[base].url} does not answer" for base in sorted(silent)} | failures
        if len(stores) == 1:
            return unavailable(failures.get(0, f"{stores[0].url} does not answer"))
        told = "; ".join(dict.fromkeys(failures.values())) or "no answer in time"
        denied = sum(isinstance(failure, Denial) for failure in failures.values())
        kind = QuorumForbidden if denied > len(stores) - self.quorum else QuorumUnavailable
        return kind(
            f"{len(stores) - len(failures)} of {len(stores)} stores can be used and it takes {self.quorum}: {told}"
        )

    # Competing

    def compete(self, resources: "tuple[str, ...]", options: "Options", *, once: bool) -> list[Claimant]:
        """Begin to ask for all of these. A store that is near may have granted them already."""
        hub, terms, claimants = self.hub, options.once if once else options.wait, []
        try:
            for resource in resources:
                claimant = hub.claimant(resource, terms, options.info)
                claimants.append(claimant)
                claimant.starts()
            if not has_all(claimants):  # else it was answered at once
                hub.take_in()
        except BaseException:
            self.withdraw(claimants)
            raise
        return claimants

    def winner(self, claimants: list[Claimant]) -> Claimant | None:
        """The first that was granted; all others give back whatever they may have got."""
        winner = next((claimant for claimant in claimants if claimant.is_holding), None)
        if winner is None or len(claimants) > 1:
            for claimant in claimants:
                if claimant is not winner:
                    _dismiss(claimant)
            self.hub.pump()
        return winner

    def withdraw(self, claimants: list[Claimant]) -> None:
        """Something else has come up: even the one that was granted gives it back."""
        self.hub.give_up_interrupted()
        self.hub.lose_interrupted()
        for claimant in claimants:
            claimant.is_spent = True
            claimant.leaves()
            self.hub.retire(claimant)
        self.hub.pump()
        if claimants and None in self.hub.links:
            self.hub.connect_missing()  # what is owed at a link that was given up is paid at the next

    def waiting_claimants(self) -> list[Claimant]:
        return [claimant for claimant in self.hub.active.values() if claimant.stage is Stage.ASKING]

    def failure(self, claimants: list[Claimant]) -> StoreUnavailable | None:
        """Why none of them was granted anything, if it was not somebody else who kept us from it. To be asked before
        they leave: what the stores answer then is about something else."""
        if not any(claimant.is_holding for claimant in claimants):
            for claimant in claimants:
                if claimant.is_cut_off() or (claimant.refusal is not None and not claimant.is_refused()):
                    failures = claimant.failures if claimant.refusal is None else claimant.faults
                    return self.unavailable(failures, set(range(claimant.terms.n)) - claimant.reached)
        return None

    def are_gone(self, claimants: list[Claimant]) -> bool:
        """Whether all but f stores have confirmed what was given back, or cannot be reached."""
        return all(claimant.unanswered() <= self.f for claimant in claimants if claimant.leaving)

    # Holding

    def start_due_renewals(self) -> list[Lease]:
        """Begin to renew what is due; those that are being renewed."""
        now = self.hub.clock()
        for lease in list(self.leases.values()):
            if wants_renewal(lease, now):
                self.start_renewal(lease)
        return [lease for lease in self.leases.values() if is_renewing(lease)]

    def judge_all(self, renewing: list[Lease]) -> list[Lease]:
        """What came of renewals; the leases that were lost, by them or by time."""
        for lease in renewing:
            if not is_renewing(lease):
                self.judge_renewal(lease)
        self.hub.pump()
        return [lease for lease in renewing if lease.reason is not None] + self.overdue()

    def start_renewal(self, lease: Lease) -> None:
        self.hub.connect_missing()
        lease.claimant.failures.clear()
        lease.claimant.taken = 0
        lease.grants = lease.claimant.grants
        lease.claimant.renew(lease.claimant.world)

    def judge_renewal(self, lease: Lease) -> bool:
        """After a renewal: the next is due, or this one soon again, or the lease is gone. Whether it is renewed."""
        claimant, now = lease.claimant, self.hub.clock()
        if lease.is_over():
            return False
        if not lease.valid:
            self.mark_lost(lease, why_over(lease))
            return False
        if claimant.gone() >= claimant.terms.refusals:
            self.mark_lost(lease, "stolen" if claimant.is_taken() else "revoked")
            return False
        if claimant.grants > lease.grants:
            lease.plan_renewal(now)
            return True
        lease.renew_at = now + lease.options.ttl / RETRIES_PER_TERM
        return False

    def mark_lost(self, lease: Lease, reason: str) -> bool:
        """The lease is over although nobody gave it back; whether that is news."""
        if lease.is_over():
            return False
        lease.reason = reason
        self.drop(lease)
        lease.claimant.leaves()
        self.hub.pump()
        return True

    def overdue(self) -> list[Lease]:
        """Mark every lease as lost whose belief is over."""
        over = [lease for lease in self.leases.values() if not lease.valid]
        return [lease for lease in over if self.mark_lost(lease, why_over(lease))]

    def bury_overdue(self) -> list[Lease]:
        """The same after a bug of ours, which must not end the renewals, nor keep anybody from hearing that a lease is
        over: nothing is sent, and nobody is asked."""
        if not self._is_bug_told:
            import logging

            self._is_bug_told = True
            logging.getLogger("trinco").exception("a lock service had trouble renewing; it goes on. Please report this")
        over = [lease for lease in self.leases.values() if not lease.valid]
        for lease in over:
            lease.reason = why_over(lease)
            self.drop(lease)
        return over

    def mark_released(self, lease: Lease) -> bool:
        """Belief ends before the first word leaves. False if there is nothing to give back any more."""
        if lease.is_over():
            return False
        if lease.until > self.hub.clock():
            lease.released = True
        else:
            lease.reason = why_over(lease)
        self.drop(lease)
        claimant = lease.claimant
        claimant.leaves()
        if claimant.owner in self.hub.active:  # else it was answered at once
            self.hub.take_in()
        if None in self.hub.links:
            self.hub.connect_missing()  # it may have broken long ago, and we have noticed just now
        return True

    def has_leavers(self) -> bool:
        """Whether somebody who left has not been confirmed to be gone: then somebody must listen, or try again."""
        return any(claimant.leaving and claimant.is_busy for claimant in self.hub.active.values())

    def next_due(self) -> float:
        """When somebody has to look after leases, or after releases that are not confirmed."""
        return min(self.next_lease_due(), self.hub.next_due())

    def next_lease_due(self) -> float:
        """When a lease is to be renewed, or over."""
        leases = self.leases.values()
        renewals = (lease.renew_at for lease in leases if lease.options.auto_renew and not is_renewing(lease))
        return min((*renewals, *(lease.until for lease in leases)), default=NEVER)

    def keep(self, lease: Lease) -> None:
        if not self.leases:
            holding.add(self)
        self.leases[id(lease)] = lease

    def drop(self, lease: Lease) -> None:
        self.leases.pop(id(lease), None)
        if not self.leases:
            holding.discard(self)

    def forget(self) -> None:
        """In a forked child: none of it is ours."""
        for lease in self.leases.values():
            lease.reason = "forked"
        self.leases = {}
        self.is_closed = True
        self.hub.disown()
        self.hub.forget()

    def turn_away(self) -> None:
        """Whoever waits in another thread when the main one has ended, and whoever asks from then on."""

    def shut(self) -> None:
        """Close from where nobody can be waited for long: at the end of the process, above all."""
        raise NotImplementedError

    # Looking

    def has_seen_enough(self, look: "Look") -> bool:
        """Whoever is silent may stay so."""
        return not look.silent or len(look.items) >= len(self.hub.stores) - self.f

    def require_enough(self, look: "Look") -> "Look":
        if len(look.items) < self.quorum:
            raise self.unavailable(look.failures, look.silent)
        return look

    def require_gone(self, stranger: Claimant) -> None:
        """Somebody else's claim was to be released."""
        if len(silent := stranger.unconfirmed()) > self.f:
            raise self.unavailable(stranger.failures, set(silent))

    def evict(self, resource: str, claim: "Claim", terms: "Terms") -> Claimant:
        """Begin to release somebody else's claim, exactly that one."""
        stranger = Claimant(self.hub, claim.owner, resource, terms)
        stranger.attempt = claim.attempt
        stranger.bases = tuple(base.but(asked=True) for base in stranger.bases)
        stranger.leaves()
        return stranger


def are_settled(claimants: list[Claimant]) -> "Callable[[], bool]":
    """Whether one of them is: what those who compete wait for."""
    if len(claimants) == 1:
        return claimants[0].is_settled
    return lambda: any(claimant.is_settled() for claimant in claimants)


def has_all(claimants: list[Claimant]) -> bool:
    """Whether there is one alone, and it holds: nothing to wait for, and nobody to see off."""
    return claimants[0].stage is HOLDING and len(claimants) == 1


def is_renewing(lease: Lease) -> bool:
    return lease.claimant.stage is Stage.RENEWING


def wants_renewal(lease: Lease, now: float) -> bool:
    return lease.options.auto_renew and lease.renew_at <= now and lease.valid and not is_renewing(lease)


def why_over(lease: Lease) -> str:
    if lease.ends is not None and lease.claimant.hub.clock() >= lease.ends:
        return "overtime"
    is_silent = len(lease.claimant.unconfirmed()) >= lease.claimant.terms.refusals
    return "unreachable" if is_silent or lease.claimant.failures else "expired"


def unrenewed(lease: Lease) -> StoreUnavailable:
    failures = "; ".join(dict.fromkeys(lease.claimant.failures.values())) or "no answer in time"
    return StoreUnavailable(
        f"the lock '{lease.name}' could not be renewed ({failures}); it stays ours for {in_words(lease.remaining)}"
    )


def _dismiss(claimant: Claimant) -> None:
    """It got nothing: whatever it may have left at a base goes."""
    if claimant.refusal is None:
        claimant.leaves()
    else:
        claimant.leaving = True  # it has released everything by itself
    claimant.hub.retire(claimant)
