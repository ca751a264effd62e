"""The composite lease, broken where it gives back: too little, too much, or too early."""

from trinco.check.model import Model
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import Context, Phase
from trinco.core.instant import Instant
from trinco.core.message import Message
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.lab.exhibits.lease_instance import lease, terms
from trinco.leases.item import Item
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.messages import Access, Reply
from trinco.leases.nodes.services import ScriptService
from trinco.leases.operation import Answer, Grade, Operation, Release, Request
from trinco.leases.plan import Outcome, Plan


class AtOnce(Client):
    """Has no chains: whatever is to be sent goes out at once, and may overtake what is still under way. For stores
    that need one access an operation."""

    __slots__ = ()

    def _submit(self, ctx: Context, position: int, operation: Operation, until: Instant | None) -> None:
        plan, base = Plan(operation, until), self.bases[position]
        quiet = not self.waits_for(operation)
        if not quiet:
            self._set(position, base.but(asked=True, chain=(*base.chain, plan)))
        ctx.send(self.stores[position], Access(operation.claim, plan.step(self.algorithms[position]), quiet))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Reply)
        position = self.stores.index(source)
        base = self.bases[position]
        plan = next(each for each in base.chain if each.operation.claim == message.claim)
        self._set(position, base.but(chain=tuple(each for each in base.chain if each is not plan)))
        outcome = plan.told(message.reply).step(self.algorithms[position])
        assert isinstance(outcome, Outcome)
        self._conclude(ctx, position, plan, outcome.answer)


class AnyAttempt(Item):
    """My own lease is mine to take again, whichever of my attempts it belongs to."""

    __slots__ = ()

    def may_take(self, request: Request) -> bool:
        if self.holder is not None and self.holder.claim.owner == request.claim.owner:
            return True
        return Item.may_take(self, request)


def _overtaken(item: Item) -> Model:
    service = ScriptService(item)
    return lease(terms(), service, client=AtOnce, network=Network.UNORDERED, inputs={"acquire": 2})


class ReleasesOnFailure(Client):
    """A renewal is an acquire, and an acquire that fails releases. What is believed is the old term, still."""

    __slots__ = ()

    def _renewal_failed(self, ctx: Context) -> None:
        Client._renewal_failed(self, ctx)
        self._release_all(ctx)


def _renewed_once(client: type[Client]) -> Model:
    return lease(terms(), client=client, inputs={"acquire": 1, "renew": 1})


class ReleasesSome(Client):
    """Releases at n - f stores and leaves the rest to time."""

    __slots__ = ()

    def _release_all(self, ctx: Context) -> None:
        for position in range(self.terms.n - self.terms.f):
            self._submit(ctx, position, Release(self.claim, self.renewals), None)


def orphan(view: View) -> bool:
    """a store keeps a live entry of a client that is idle and has nothing under way"""
    client = view.node(0)
    at_rest = view.phase(0) is Phase.IDLE and not any(base.chain for base in client.bases)
    if not at_rest or view.in_flight():
        return False
    holders = (view.node(store).service.item.holder for store in client.stores)
    return any(holder is not None and holder.until > Instant(0) for holder in holders)


def _alone_with_four(client: type[Client]) -> Model:
    return lease(terms(4, 1), client=client, clients=1, never=[orphan])


def _alone_on_a_bad_network(client: type[Client]) -> Model:
    return lease(terms(), client=client, clients=1, network=Network.UNORDERED, never=[orphan])


class DeletesAnything(Item):
    """A release removes whoever's lease is there."""

    __slots__ = ()

    def release(self, release: Release) -> tuple[Item, Answer]:
        return self.but(holder=None), Answer(Grade.DONE)


def _twice(item: Item) -> Model:
    return lease(terms(), ScriptService(item), inputs={"acquire": 2})


EXHIBITS = (
    Exhibit(
        name="lease/E4",
        title="a base that lets an older attempt replace a newer one",
        printed="Mendes et al., Algorithms 2 to 5: an entry with c' = c is to be renewed, whichever attempt wrote it",
        lesson="An attempt was given up and the next one holds. The request of the first arrives late, replaces the "
        "entry, and the release of the first removes it: the holder's store is free.",
        breaks="safety",
        model=lambda: _overtaken(AnyAttempt()),
        mended=lambda: _overtaken(Item()),
    ),
    Exhibit(
        name="lease/E5",
        title="a renewal that fails and releases",
        printed="Mendes et al., section 3: to renew is 'similar' to obter(), which releases when it fails",
        lesson="The old term is still believed when its entries are removed: the next client gets in.",
        breaks="safety",
        model=lambda: _renewed_once(ReleasesOnFailure),
        mended=lambda: _renewed_once(Client),
    ),
    Exhibit(
        name="lease/E6",
        title="a release at n - f stores",
        printed="Mendes et al., section 3: 'basta libertar n - f trincos base'",
        lesson="The entry that is left, together with one store that lies, refuses a quorum to a client that is "
        "alone, until it runs out.",
        breaks="never",
        model=lambda: _alone_with_four(ReleasesSome),
        mended=lambda: _alone_with_four(Client),
    ),
    Exhibit(
        name="lease/E8",
        title="a release that deletes whatever is there",
        printed="Mendes et al., section 4.3: 'basta remover a entrada'; CHARON's lock on DynamoDB deletes without a "
        "condition",
        lesson="A lease runs out, somebody else takes the lock, and the first one's late release removes the second "
        "one's entry. Compare, then delete.",
        breaks="safety",
        model=lambda: _twice(DeletesAnything()),
        mended=lambda: _twice(Item()),
    ),
    Exhibit(
        name="lease/E20",
        title="a release that overtakes the request it is for",
        printed="Mendes et al., Algorithm 1, lines 11-12: libertar() is called where obter() has not answered yet",
        lesson="The release finds nothing, then the request writes an entry that nobody will remove until it runs "
        "out. In a chain the release waits for the request.",
        breaks="never",
        model=lambda: _alone_on_a_bad_network(AtOnce),
        mended=lambda: _alone_on_a_bad_network(Client),
    ),
)
