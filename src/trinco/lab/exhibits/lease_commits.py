"""The commit round of the fencing token, broken: what our own first prototype did (no paper printed it)."""

from dataclasses import replace

from trinco.check.model import Model
from trinco.core.context import Context
from trinco.core.monitor import TokenRises
from trinco.core.signed import Signed
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.lab.exhibits.lease_instance import lease, terms
from trinco.leases.chains import Base
from trinco.leases.claim import Claim
from trinco.leases.item import Item
from trinco.leases.nodes.client import Body, Client
from trinco.leases.nodes.services import ScriptService
from trinco.leases.nodes.store import Store
from trinco.leases.operation import Grade


class ReachesTwo(Client):
    """Of three stores a client reaches two: the first its own, the second the one that it shares with the other."""

    __slots__ = ()

    def first_contacts(self) -> range:
        return range(2) if self.owner == 0 else range(1, 3)


class UntaggedCommit(ReachesTwo):
    """A committed answer is a vote, whichever token was committed."""

    __slots__ = ()

    def _votes(self, ctx: Context) -> list[Base]:
        return [base for base in self.bases if base.grade is Grade.COMMITTED and self.is_useful(ctx, base)]


def _a_token_was_given_out(client: type[Client]) -> Model:
    """The first store has seen token 1 already."""
    model = lease(terms(3, 0, fenced=True), client=client, fires=0, monitors=[TokenRises()])
    seen = Item(1, evidence=Signed(1, Body(Claim(1, 0), 1, None)))
    nodes = list(model.nodes)
    nodes[2] = Store(2, ScriptService(seen), terse=True)
    return replace(model, nodes=nodes)


EXHIBITS = (
    Exhibit(
        name="quorum-lease/untagged-commit",
        title="a commit that counts for another token than it wrote",
        printed="nowhere: a prototype of ours had it, and only the order of the tokens told",
        lesson="The first guess was too small at one store and good enough at the other. The commit round begins, and "
        "the old answer of the second store counts for the new token, which is only on its way there. When the lease "
        "has run out, the next holder is given the same token.",
        breaks="monitor",
        model=lambda: _a_token_was_given_out(UntaggedCommit),
        mended=lambda: _a_token_was_given_out(ReachesTwo),
    ),
)
