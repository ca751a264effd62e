"""The terms of a lease: how many bases must agree, how long it lasts, and how much of that a client may believe."""

from enum import Enum

from trinco.core.errors import UsageError
from trinco.core.instant import Instant
from trinco.core.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

T_MAX = 60.0
"""No lease counts for longer, whatever it says: a huge one, or one that nobody can read, must end some day."""
RHO = 4e-4
"""The relative rate of two clocks that are each within 200 ppm of real time."""


class Policy(Enum):
    """What to do when an attempt fails."""

    ONCE = "once"
    """Give up: ``try_acquire``."""
    BACKOFF = "backoff"
    """The paper's: release everything, sleep for a random time, try again. Two can keep each other out for ever."""
    PRIORITY = "priority"
    """Take a ticket and wait; yield single bases to smaller tickets. Free of deadlock and starvation."""

    __hash__ = object.__hash__


GIVEN = (
    "access_timeout",
    "attempt_timeout",
    "backoff",
    "f",
    "fenced",
    "granularity",
    "min_useful",
    "n",
    "policy",
    "poll",
    "rho",
    "sigma",
    "t_max",
    "ttl",
    "wait",
    "widen",
)


class Terms(Value):
    """``f`` of ``n`` bases may fail in any way. Times are seconds.

    ``granularity`` is how coarse the clocks of the bases are, ``sigma`` how far they may step, ``rho`` how much faster
    one clock may run than another. ``attempt_timeout`` bounds an attempt, ``wait`` how long a base remembers a waiter,
    ``poll`` the time between two questions of a waiter (0: at once), ``backoff`` the longest sleep of that policy.
    ``t_max`` is the longest lease that stores and other clients believe in; ``access_timeout`` how long one access may
    take before its base counts as failed (0: for ever). ``widen``: ask a quorum of bases first, and the rest after so
    many seconds or when one of those does not grant (0: ask all at once).
    """

    __slots__ = (*GIVEN, "believed", "patience", "quorum", "refusals", "useful")

    def __init__(
        self,
        n: int = 1,
        f: int = 0,
        *,
        ttl: float = 30.0,
        granularity: float = 0.0,
        sigma: float = 0.0,
        rho: float = RHO,
        min_useful: float = 0.2,
        attempt_timeout: float = 5.0,
        wait: float = 10.0,
        poll: float = 1.0,
        backoff: float = 1.0,
        policy: Policy = Policy.PRIORITY,
        fenced: bool = True,
        t_max: float = T_MAX,
        access_timeout: float = 5.0,
        widen: float = 0.0,
    ) -> None:
        self.n = n
        self.f = f
        self.ttl = ttl
        self.granularity = granularity
        self.sigma = sigma
        self.rho = rho
        self.min_useful = min_useful
        self.attempt_timeout = attempt_timeout
        self.wait = wait
        self.poll = poll
        self.backoff = backoff
        self.policy = policy
        self.fenced = fenced
        self.t_max = t_max
        self.access_timeout = access_timeout
        self.widen = widen
        self._derive()
        self._validate()

    def _validate(self) -> None:
        if self.f < 0:
            raise UsageError(f"f is how many stores may fail; it cannot be {self.f}")
        if self.n < 3 * self.f + 1:
            raise UsageError(f"to survive f={self.f} it takes at least 3f+1 = {3 * self.f + 1} stores, not {self.n}")
        if not 0 <= self.rho < 1:
            raise UsageError(f"rho is how much faster one clock may run than another: 0 <= rho < 1, not {self.rho:g}")
        if self.granularity < 0 or self.sigma < 0:
            raise UsageError("granularity and sigma are margins; they cannot be negative")
        if not self.ttl > self.granularity + self.sigma:
            margins = f"the margins take {self.granularity + self.sigma:g} s (granularity {self.granularity:g}, "
            raise UsageError(f"a ttl of {self.ttl:g} s leaves nothing to believe: {margins}sigma {self.sigma:g})")
        if self.ttl > self.t_max:
            raise UsageError(
                f"a ttl of {self.ttl:g} s is longer than the {self.t_max:g} s (t_max) for which stores and other "
                f"clients count any lease: they would let somebody else in"
            )
        if not self.attempt_timeout > 0 or min(self.wait, self.poll, self.backoff, self.access_timeout, self.widen) < 0:
            raise UsageError("an attempt needs some time; waiting, polling and backing off cannot take less than none")
        if self.policy is Policy.PRIORITY and not self.wait > 0:
            raise UsageError("to wait by priority a base must remember the waiter: give a wait above 0")
        if not 0 < self.min_useful <= 1:
            raise UsageError(f"min_useful is a share of the term: 0 < min_useful <= 1, not {self.min_useful:g}")
        if self.believed < self.useful:
            raise UsageError(
                f"a ttl of {self.ttl:g} s leaves {self.believed:g} s to believe, less than the {self.useful:g} s "
                f"(min_useful) that make a lease worth having"
            )

    def _derive(self) -> None:
        """What follows from the rest, worked out once: an acquisition asks for some of it a dozen times."""
        self.quorum = (self.n + self.f + 2) // 2
        """Two quorums share a correct base: q = ceil((n+f+1)/2), 2f+1 of 3f+1."""
        self.refusals = self.n - self.quorum + 1
        """So many refusals leave no quorum."""
        self.believed = (self.ttl - self.granularity - self.sigma) * (1 - self.rho)
        """(T - g - sigma)(1 - rho): how much of a term a client may believe, counted from before its request."""
        self.useful = self.min_useful * self.ttl
        """An attempt that leaves less than this has failed."""
        self.patience = min(self.ttl / 2, self.attempt_timeout)
        """How long one attempt may take."""

    def but(self, **changes: "Any") -> "Terms":
        """The same terms with some changed, judged as new ones are."""
        return Terms(**{name: getattr(self, name) for name in GIVEN} | changes)

    def belief(self, start: Instant) -> Instant:
        """v = t_start + (T - g - sigma)(1 - rho). A correct base stamped its entry after ``start``; by its own clock it
        keeps it for T, less what its clock rounds away, steps or runs faster than ours."""
        return start + self.believed

    def allowing_for(self, until: Instant | None, granularity: float) -> Instant | None:
        """A belief where a store said that its clock is coarser than we had allowed for."""
        coarser = granularity - self.granularity
        return until + -coarser * (1 - self.rho) if until is not None and coarser > 0 else until

    def believed_beyond(self, beyond: float) -> float:
        """The same for what was handed over, which lasts ``beyond`` longer than the store would have remembered us as a
        waiter: for how long after that, at the earliest. Its term counts from the request before."""
        term = self.wait + beyond
        return (term - self.granularity - self.sigma) * (1 - self.rho) - self.wait
