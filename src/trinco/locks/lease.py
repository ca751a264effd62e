"""What a holder has in its hands.

A lease is *believed*, never known: ``check`` says whether its time is still running by the clock of this host, and that
is all that anybody can say. A process that was stopped right after ``check`` may act too late; therefore pass ``token``
along with every effect, and let the resource refuse a smaller one (``trinco.guards``).
"""

from _thread import RLock

from trinco.core.duration import in_words
from trinco.core.errors import LeaseLost, of_one_process
from trinco.locks.forking import reopened_in_children

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, NoReturn

    from trinco.locks.claimant import Claimant
    from trinco.locks.options import Options

RENEWALS_PER_TERM = 3
RETRIES_PER_TERM = 15
_events = reopened_in_children(RLock())
"""Held while somebody looks for a ``lost`` and makes it, so that there is one. A signal handler may be next to ask."""


class Lease:
    """``token`` rises with every grant of this name, None where the stores cannot fence. ``slot``: which unit of a
    semaphore."""

    __slots__ = (
        "__weakref__",
        "_event",
        "_granted_by",
        "_service",
        "_untold",
        "claimant",
        "ends",
        "grants",
        "name",
        "options",
        "reason",
        "released",
        "renew_at",
        "slot",
        "token",
    )

    def __init__(self, service: "Any", name: str, claimant: "Claimant", options: "Options", slot: int | None) -> None:
        self._service = service
        self._event: threading.Event | None = None
        self.name = name
        self.slot = slot
        self.claimant = claimant
        self.options = options
        self.token = claimant.granted
        self._granted_by = claimant.bases
        self.reason: str | None = None
        """Why it was lost, if it was."""
        self.released = False
        self._untold = [True]
        """Emptied by whoever tells of its loss."""
        self.grants = claimant.grants
        """How often it had been granted when the last renewal began."""
        now = claimant.hub.clock()
        self.ends = None if options.max_hold is None else now + options.max_hold
        """When ``max_hold`` is over."""
        self.renew_at = now
        self.plan_renewal(now)

    @property
    def owner(self) -> str:
        """Who holds it, as the stores know it."""
        owner: str = self.claimant.owner
        return owner

    @property
    def metadata(self) -> str:
        """What others see beside it."""
        return self.options.info

    def plan_renewal(self, now: float) -> None:
        """After a third of what is left, which is less than a term if the answer was long under way."""
        until = self.claimant.until
        self.renew_at = now if until is None else now + (until.at - now) / RENEWALS_PER_TERM

    @property
    def votes(self) -> tuple[str, ...]:
        """The stores that granted it."""
        stores = zip(self.claimant.hub.stores, self._granted_by, strict=True)
        return tuple(store.url for store, base in stores if base.mine)

    @property
    def until(self) -> float:
        """The end of what we believe, on this host's clock."""
        until = self.claimant.until
        if self.released or self.reason is not None or until is None:
            return 0.0
        return until.at if self.ends is None else min(until.at, self.ends)

    @property
    def remaining(self) -> float:
        """Seconds for which the lease may still be believed; 0 when it is over."""
        return max(self.until - self.claimant.hub.clock(), 0.0)

    @property
    def valid(self) -> bool:
        """Whether it may still be believed; ``check`` raises if not."""
        return self.until > self.claimant.hub.clock()

    @property
    def lost(self) -> "threading.Event":
        """Set when the lease is lost, not when it is released."""
        if self._event is None:
            from threading import Event

            event = Event()
            with _events:
                if self._event is None:
                    if self.reason is not None:
                        event.set()
                    self._event = event
        return self._event

    def is_over(self) -> bool:
        """Whether it was given back, or its loss is known."""
        return self.released or self.reason is not None

    def check(self) -> None:
        """Raise ``LeaseLost`` unless the lease is still ours, by all we know. Call it right before every effect."""
        if self.valid:
            return
        if self.released:
            raise LeaseLost(f"the lock '{self.name}' was given back; it is not held any more", "released")
        if self.reason is None:
            self._service.lose(self)
        raise LeaseLost(f"the lock '{self.name}' is not ours any more: {self.explanation()}", self.reason or "expired")

    def renew(self) -> None:
        """A new full term from now. ``StoreUnavailable`` while the old one still stands; ``LeaseLost`` otherwise."""
        self.check()
        self._service.renew(self)

    def release(self) -> None:
        """Give the lock back. Calling it again does nothing; after a loss there is nothing of ours to remove."""
        self._service.release(self)

    def release_soon(self) -> None:
        """The same in the background, for who was interrupted."""
        self._service.release_soon(self)

    def explanation(self) -> str:
        """Why it was lost, for people."""
        return EXPLANATIONS.get(self.reason or "expired", self.reason or "").format(ttl=in_words(self.options.ttl))

    def loss(self) -> LeaseLost:
        """What is raised at the end of a block in which it was lost."""
        return LeaseLost(f"the lock '{self.name}' was lost: {self.explanation()}", self.reason or "expired")

    def tell(self) -> None:
        """Make a loss loud, once. Nothing is locked meanwhile: the callback may do as it likes."""
        if not self.is_news():
            return
        with _events:
            event = self._event
        if event is not None:
            event.set()
        if self.options.on_lost is not None:
            self._call_back(self.options.on_lost)

    def is_news(self) -> bool:
        """True for the first who asks, and for nobody else, whichever threads ask at once."""
        try:
            return self._untold.pop()
        except IndexError:
            return False

    def _call_back(self, on_lost: "Callable[[Lease], object]") -> None:
        """What it raises is its own affair: it must not hide why the lease was lost, nor the body's own error."""
        try:
            on_lost(self)
        except Exception:
            import logging

            logging.getLogger("trinco").exception("on_lost of the lock '%s' raised", self.name)

    def __enter__(self) -> "Lease":
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        self.release()
        if self.reason is not None and error is None:
            raise self.loss()

    def __reduce__(self) -> "NoReturn":
        raise of_one_process("lease", "pass its token on, and let whoever needs the lock take it")

    def __repr__(self) -> str:
        state = "released" if self.released else f"lost ({self.reason})" if self.reason else f"{self.remaining:.3g} s"
        return f"<Lease {self.name!r} token={self.token} {state}>"


EXPLANATIONS = {
    "expired": "its term of {ttl} ended before it was renewed",
    "stolen": "somebody else holds it, though our term was not over",
    "revoked": "its entry is gone: somebody broke the lock, or removed what the store keeps",
    "unreachable": "too few stores could be reached to renew its term of {ttl}",
    "overtime": "it was held for max_hold",
    "forked": "it belongs to the process that took it, and this is a forked child",
    "closed": "the lock service was closed",
}
