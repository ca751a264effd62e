"""A client that signs for real: the same composite lease, with entries as bytes under a key of its keyring.

The lab's other clients use symbolic signatures, which cannot be forged by construction; here it is cryptography that
keeps a liar from inventing a token or a ticket.
"""

from typing import TYPE_CHECKING

from trinco.core.context import Context
from trinco.leases.claim import Claim
from trinco.leases.entry import Entry, Outcome, open_entry, seal
from trinco.leases.keys import Keyring
from trinco.leases.nodes.client import Client
from trinco.leases.terms import Terms

if TYPE_CHECKING:
    from trinco.leases.plan import Algorithm

RESOURCE = "simulated"


class SealedClient(Client):
    __slots__ = ("keyring",)

    def __init__(
        self,
        owner: int,
        terms: Terms,
        algorithms: "tuple[Algorithm, ...]",
        stores: tuple[int, ...],
        keyring: Keyring,
    ) -> None:
        Client.__init__(self, owner, terms, algorithms, stores)
        self.keyring = keyring

    def signed(self, ctx: Context, claim: Claim) -> bytes:  # type: ignore[override]
        bases = tuple(
            (f"store-{store}", claim.owner.to_bytes(8) + (claim.attempt * len(self.stores) + position).to_bytes(8))
            for position, store in enumerate(self.stores)
        )
        owner = f"client-{ctx.me}/{claim.owner:032x}"
        token = self.guess if isinstance(self.guess, int) else None
        entry = Entry(RESOURCE, bases, owner, claim.attempt, self.terms.ttl, token, ticket=self.ticket)
        return seal(entry, self.keyring.signing_key())

    def token_in(self, ctx: Context, evidence: object) -> int:
        entry = self._opened(evidence)
        return entry.token or 0 if entry else 0

    def ticket_in(self, ctx: Context, evidence: object) -> int:
        entry = self._opened(evidence)
        return entry.ticket or 0 if entry else 0

    def _opened(self, evidence: object) -> Entry | None:
        if not isinstance(evidence, bytes):
            return None
        reading = open_entry(evidence, self.keyring, RESOURCE, f"store-{self.stores[0]}")
        return reading.entry if reading.outcome is Outcome.VALID else None
