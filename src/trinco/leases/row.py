"""What an object store or a queue lists: one row an entry, and who of them is in whose way."""

from enum import Enum

from trinco.core.value import Value
from trinco.leases.claim import Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Kind(Enum):
    HELD = "held"
    WAITING = "waiting"
    TOKEN = "token"
    UNKNOWN = "unknown"
    """Signed by a key that we lack, of a version that we do not know, or unreadable: it counts as held (E9)."""

    __hash__ = object.__hash__


class Named(Value):
    """What stands in the name of an object, or in a queue's message: enough to judge it from a listing alone."""

    __slots__ = ("claim", "entry", "kind", "renewal", "ticket", "token", "ttl")

    def __init__(
        self,
        kind: Kind,
        claim: Claim,
        ttl: float,
        ticket: int | None = None,
        renewal: int = 0,
        token: int | None = None,
        entry: "Any" = None,
    ) -> None:
        self.kind = kind
        self.claim = claim
        self.ttl = ttl
        self.ticket = ticket
        self.renewal = renewal
        self.token = token
        self.entry = entry


class Row(Value):
    """``age``: seconds since it was written, by the store's clock in this answer. ``key``: what deletes it."""

    __slots__ = ("age", "key", "named")

    def __init__(self, named: Named, age: float, key: "Any" = None) -> None:
        self.named = named
        self.age = age
        self.key = named if key is None else key

    def remaining(self, t_max: float) -> float:
        """How long it still counts. A reader believes no more than ``t_max`` (E21)."""
        ttl = t_max if self.named.kind is Kind.UNKNOWN else min(self.named.ttl, t_max)
        return ttl - self.age

    def is_live(self, t_max: float) -> bool:
        return self.remaining(t_max) > 0

    def is_of(self, claim: Claim) -> bool:
        return self.named.claim.owner == claim.owner and self.named.kind is not Kind.UNKNOWN

    @property
    def is_token(self) -> bool:
        return self.named.kind is Kind.TOKEN
