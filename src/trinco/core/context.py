"""The world as a node sees it. Every runtime (simulator, checker, network) gives nodes one of these."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from trinco.core.authentication import Authenticator, Symbolic
from trinco.core.errors import ContractBroken
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.core.signed import Signed


class Phase(IntEnum):
    """Where a process stands: the N, R and E of the textbooks. The runtime keeps it; a node only reads it."""

    IDLE = 0
    WAITING = 1
    INSIDE = 2


IDLE, WAITING, INSIDE = Phase


class Context:
    """Effects go out through these calls; nothing else touches anything.

    A node is handed its context with every event and must not keep it. ``me`` is the node's own id, ``phase`` is where
    it stands; both are read-only.
    """

    __slots__ = ()
    me: int
    phase: Phase

    def send(self, to: int, message: Message) -> None:
        """Put a message into the channel to one node. A message to oneself is allowed, and free."""
        raise self._missing("send")

    def broadcast(self, message: Message, to: Iterable[int]) -> None:
        """Send to each of a group but oneself, in the order given. A crash may cut it anywhere."""
        me = self.me
        for node in to:
            if node != me:
                self.send(node, message)

    def set_timer(self, name: str, delay: float) -> None:
        """Arm a named timer; arming it again replaces it. A part's timer is named ``part/name``."""
        raise self._missing("set_timer")

    def cancel_timer(self, name: str) -> None:
        raise self._missing("cancel_timer")

    def choose(self, options: int) -> int:
        """One of ``range(options)``: drawn by the seed in the simulator, branched on in the checker."""
        raise self._missing("choose")

    def now(self) -> Instant:
        """This node's own clock. Only timed protocols ask; everything else lives on timers."""
        raise self._missing("now")

    def wall_clock(self) -> int:
        """Microseconds since 1970 by this host's clock, right or wrong; 0 in the checker. Good for a first guess that
        somebody else judges, for nothing else."""
        raise self._missing("wall_clock")

    def store(self, value: Any) -> None:
        """Keep a value that survives a crash; ``on_restart`` is handed the last one."""
        raise self._missing("store")

    def grant(self, token: Any = None, until: Instant | None = None) -> None:
        """The process that asked is inside, until it releases, or until ``until`` where a lease runs out by itself.
        Granted again while it is inside, a lease is renewed."""
        raise self._missing("grant")

    def refuse(self, reason: str) -> None:
        """The attempt failed: the process is idle again and may ask anew."""
        raise self._missing("refuse")

    def lost(self, reason: str) -> None:
        """The process is no longer inside although it did not release."""
        raise self._missing("lost")

    def elected(self, leader: int) -> None:
        """This node now takes ``leader`` for the leader."""
        raise self._missing("elected")

    @property
    def authenticator(self) -> Authenticator:
        """What stands behind ``sign``, ``vouch`` and ``verify``: symbols, unless the runtime has keys."""
        return Symbolic(self.me)

    def sign(self, body: Any) -> Signed:
        """A statement that everybody can verify and pass on."""
        return self.authenticator.sign(body)

    def vouch(self, body: Any, readers: Iterable[int]) -> Signed:
        """A statement that only these readers can verify, and show to nobody else as a proof."""
        return self.authenticator.vouch(body, readers)

    def verify(self, signed: Any) -> bool:
        """Whether this is a genuine statement, as far as this node can tell. Takes anything, and never raises."""
        return self.authenticator.verify(signed)

    def _missing(self, effect: str) -> ContractBroken:
        return ContractBroken(f"this runtime has no effect '{effect}'")
