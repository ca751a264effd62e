"""What a store is worth: whether it answers, how quickly, and whether it keeps its word.

A store is *challenged*, on a name that is there for nothing else: two made-up owners ask for one lock, hold it, and try
what must not work. Whoever reads only its answers to honest questions never catches it: a liar grants, and says that it
did. A sound store passes whatever happens meanwhile, also while another process challenges it: then that one has the
lock, we are refused, and nobody is accused.

    ana                         bruno
    request      granted
                                request      must be refused
                                extend       must find nothing
                                release      must remove nothing
    commit       rising tokens only
    release      confirmed
                                request      must be granted, with a larger token
"""

import os

from trinco.core.errors import StoreUnavailable, TrincoError
from trinco.core.value import Value
from trinco.leases.accesses import Read, Versioned
from trinco.leases.operation import TOKEN_LIMIT, Commit, Extend, Grade, Release, Request
from trinco.locks.caller import LISTED, PATIENCE, Caller, LinkBroke, Nonsense
from trinco.stores.clock import boottime, wall_microseconds
from trinco.stores.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trinco.leases.claim import Claim
    from trinco.leases.operation import Answer
    from trinco.locks.hub import Hub

FOLDER = "trinco/health/"
"""Locks below this name are ours, and mean nothing."""
TERM = 10.0
"""Whoever dies in the middle of a challenge is in the way for so long, unless the store is slow."""
ACCESSES = 16
"""A challenge has eleven while its lease runs; some may take longer than those before."""
LONGEST = 60.0
"""No challenge asks for more, however slow the store: eleven accesses that take as long as our patience lasts."""
MOMENT = 1.0
"""A store that reads its clock before it looks finds a lease of this very moment a little longer than its term."""
TRIES = 3
BUSY = "another process is challenging it right now: ask again in a few seconds"
TOO_SLOW = "it works, and is too slow to be challenged: nobody can tell whether it keeps its word"


class TooSlow(Exception):
    """The lease that a store is challenged with may be over."""


class StoreHealth(Value):
    """``latency``: seconds for one access, None if there was none. ``clock``: how far the store's wall clock is ahead
    of ours, in seconds, None if unknown. ``trouble``: why it cannot be used or judged, else empty. ``lies``: what it
    was caught at, a sentence each. ``last_answer``: seconds since it answered us last, None if it never did."""

    __slots__ = ("clock", "last_answer", "latency", "lies", "reachable", "trouble", "url")

    def __init__(
        self,
        url: str,
        reachable: bool,
        latency: float | None = None,
        clock: float | None = None,
        trouble: str = "",
        lies: tuple[str, ...] = (),
        last_answer: float | None = None,
    ) -> None:
        self.url = url
        self.reachable = reachable
        self.latency = latency
        self.clock = clock
        self.trouble = trouble
        self.lies = lies
        self.last_answer = last_answer


def examine_all(stores: "Sequence[Store]", hub: "Hub") -> list[StoreHealth]:
    """Those of a service; ``hub`` is what it speaks to them with."""
    found = [examine(store, trouble) for store, trouble in zip(stores, hub.troubles, strict=True)]
    silences = [0.0 if health.latency is not None else hub.silence(base) for base, health in enumerate(found)]
    return [health.but(last_answer=silence) for health, silence in zip(found, silences, strict=True)]


def examine(store: Store, trouble: str | None = None, patience: float = PATIENCE) -> StoreHealth:
    """Connect to a store and challenge it. ``trouble``: what is known against it already."""
    try:
        caller = Caller(store, patience)
    except StoreUnavailable as error:
        return StoreHealth(store.url, False, trouble=error.reason)
    except TrincoError as error:
        return StoreHealth(store.url, False, trouble=str(error))
    with caller:
        challenge = Challenge(caller, probe_name(FOLDER))
        try:
            clock = clock_offset(caller)
            challenge.run()
        except (StoreUnavailable, LinkBroke) as error:
            return StoreHealth(store.url, bool(caller.seconds), latency(caller), None, error.reason, challenge.lies)
        except Nonsense as nonsense:
            return StoreHealth(store.url, True, latency(caller), None, trouble or "", (*challenge.lies, str(nonsense)))
        return StoreHealth(store.url, True, latency(caller), clock, challenge.trouble or trouble or "", challenge.lies)


def probe_name(folder: str) -> str:
    """The lock that probes from this host use. One per host: what a store has seen, it keeps for ever."""
    host = os.uname().nodename if hasattr(os, "uname") else "host"
    return folder + "".join(character for character in host if character.isprintable())[:100]


def unknown_name() -> str:
    """A name that nobody has ever used."""
    return FOLDER + os.urandom(16).hex()


def latency(caller: Caller) -> float | None:
    """The median of what its accesses took."""
    seconds = sorted(caller.seconds)
    return seconds[len(seconds) // 2] if seconds else None


def clock_offset(caller: Caller) -> float | None:
    """How far a store's wall clock is ahead of ours. A store starts an item that it does not have with its clock for a
    token: so a look at a name that nobody has ever used tells the time."""
    if caller.store.kind in LISTED:
        return None
    before = wall_microseconds()
    reply = caller.access(unknown_name(), Read())
    after = wall_microseconds()
    if not isinstance(reply, Versioned) or not isinstance(getattr(reply.item, "token", None), int):
        raise Nonsense("its answer to 'read' makes no sense")
    return (reply.item.token - (before + after) / 2) / 1e6


class Challenge:
    """``lies``: what the store was caught at. ``trouble``: why there is no verdict. ``term``: how long the lease is
    that we challenge it with, and ``ends`` when it may be over, on our clock."""

    __slots__ = ("ana", "bruno", "caller", "ends", "lies", "resource", "term", "token", "trouble")

    def __init__(self, caller: Caller, resource: str) -> None:
        self.caller = caller
        self.resource = resource
        self.ana = caller.claim(1, "health")
        self.bruno = caller.claim(2, "health")
        self.term = TERM
        self.ends = 0.0
        self.lies: tuple[str, ...] = ()
        self.token = 0
        self.trouble = ""

    def run(self) -> None:
        try:
            if not self._enter(self.ana):
                return
            self._stays()
            self._keeps_others_out()
            self._counts_up()
            self._is_in_time()
            self._gives_back()
            if self._enter(self.bruno):
                self.expect(self._tokens() >= self.token, "it gave out a smaller token than before")
            self.trouble = ""  # whoever is in the way of the last step took the lock as it should
        except TooSlow:
            self.trouble = TOO_SLOW
        finally:
            for claim in (self.ana, self.bruno):
                self._release(claim)

    def expect(self, holds: bool, lie: str) -> None:
        if not holds and lie not in self.lies:
            self.lies = (*self.lies, lie)

    def expect_now(self, holds: bool, lie: str) -> None:
        """What only has to hold while our lease runs: nobody is accused of what happened after its end."""
        if not holds:
            self._is_in_time()
        self.expect(holds, lie)

    def _is_in_time(self) -> None:
        if boottime() >= self.ends:
            raise TooSlow

    # The steps

    def _enter(self, claim: "Claim") -> bool:
        """Take the lock while nobody is in the way. Who asks right after another prober may be too early or too late:
        a store is accused when it refuses again and again what nobody holds. Where stores only list, two who come at
        once may both step back, so there nobody is accused."""
        for _ in range(TRIES):
            self.token = max(self.token, self._tokens()) + 1
            answer = self._request(claim, self.token)
            if answer.grade is Grade.COMMITTED:
                self.expect(answer.token in (None, self.token), "it committed another token than it was given")
                return True
            if answer.grade is Grade.TENTATIVE:
                self.token += 1000  # somebody was here since we looked
                self._release(claim)
                continue
            if self._is_busy():
                return False
        if answer.grade is Grade.TENTATIVE:
            self.expect(False, "it refused a larger token to the holder")
        elif self._grants_what_nobody_knows(claim):
            self.trouble = BUSY
        else:
            self.expect(False, "it refused a lock that nobody holds")
        return False

    def _grants_what_nobody_knows(self, claim: "Claim") -> bool:
        """The last word on a store that refuses: a name made up this moment is in nobody's way. The store will keep it
        for ever, so this is not how a challenge begins."""
        resource = unknown_name()
        answer = self.caller.ask(resource, Request(claim, self.term))
        if answer.grade.is_grant:
            self.caller.ask(resource, Release(claim))
        return answer.grade.is_grant

    def _is_busy(self) -> bool:
        holder = self.caller.look(self.resource).holder
        if holder is None and self.caller.store.kind not in LISTED:
            return False
        longest = LONGEST + self.caller.granularity + MOMENT
        if holder is not None and holder.until > longest:
            self.expect(False, f"it says that somebody has this lock for {holder.until:.0f} s; nobody asks for so long")
        else:
            self.trouble = BUSY
        return True

    def _stays(self) -> None:
        self.expect_now(self._is_held_by(self.ana), "it lost an entry that it had confirmed")

    def _keeps_others_out(self) -> None:
        self._must_not(Request(self.bruno, self.term, token=self.token + 1), "it granted one lock to two owners")
        self._must_not(Extend(self.bruno, self.term, 1), "it extended a lease for somebody who does not hold it")
        self._must_not(Commit(self.bruno, self.token + 1), "it took a token from somebody who does not hold the lock")
        self._release(self.bruno)
        self.expect_now(self._is_held_by(self.ana), "it let somebody remove an entry of another")

    def _counts_up(self) -> None:
        smaller = self.caller.ask(self.resource, Commit(self.ana, self.token - 1))
        self.expect_now(smaller.grade is not Grade.COMMITTED, "it committed a smaller token after a larger one")
        larger = self.caller.ask(self.resource, Commit(self.ana, self.token + 1))
        self.expect_now(larger.grade is Grade.COMMITTED, "it refused a larger token to the holder")
        self.token += 1
        extended = self.caller.ask(self.resource, Extend(self.ana, self.term, 1))
        self.expect_now(self._did_extend(extended), "it did not extend a lease that is live")
        self.expect_now(self._tokens() >= self.token, "it lost a token that it had confirmed")

    def _did_extend(self, answer: "Answer") -> bool:
        """Where stores only list, somebody who is about to step back may have been in the way."""
        refused = answer.grade is Grade.REFUSED and self.caller.store.kind in LISTED
        return refused or answer.grade is Grade.COMMITTED

    def _gives_back(self) -> None:
        answer = self._release(self.ana)
        self.expect_now(answer.grade is Grade.DONE, "it did not release a lease for its holder")
        self.expect(not self._is_held_by(self.ana), "it kept an entry whose removal it had confirmed")

    # Words

    def _request(self, claim: "Claim", token: int) -> "Answer":
        self.term = self._enough_time()
        self.ends = boottime() + self.term - self.caller.granularity
        return self.caller.ask(self.resource, Request(claim, self.term, token=token))

    def _enough_time(self) -> float:
        """For a challenge, after what the accesses have taken so far; the store cuts what is more than ``t_max``."""
        wanted = max(TERM, ACCESSES * max(self.caller.seconds))
        return min(wanted, LONGEST, self.caller.store.t_max)

    def _release(self, claim: "Claim") -> "Answer":
        return self.caller.ask(self.resource, Release(claim))

    def _must_not(self, operation: "Request | Extend | Commit", lie: str) -> None:
        answer = self.caller.ask(self.resource, operation)
        self.expect_now(not answer.grade.is_grant, lie)

    def _is_held_by(self, claim: "Claim") -> bool:
        return claim in self.caller.holders(self.resource)

    def _tokens(self) -> int:
        token = self.caller.look(self.resource).token
        if type(token) is not int or not 0 <= token < TOKEN_LIMIT:
            raise Nonsense("its token is no token")
        return token
