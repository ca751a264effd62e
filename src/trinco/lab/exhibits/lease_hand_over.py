"""The direct hand-over of a lease, broken in the two ways that lie near (no paper printed it)."""

from trinco.check.model import Model
from trinco.core.context import Context
from trinco.core.instant import Instant
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.lab.exhibits.lease_instance import lease, terms
from trinco.leases.bases.handing_over import HandingOver
from trinco.leases.chains import Base
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.services import HandingService
from trinco.leases.operation import Handed
from trinco.leases.terms import Policy


class CountsFromTheArrival(Client):
    """Counts the term from when it hears of the hand-over."""

    __slots__ = ()

    def believed_if_handed(self, ctx: Context, waiting: Instant, handed: Handed) -> Instant:
        return self.terms.belief(ctx.now())


class CountsFromTheLastRequest(Client):
    """Counts the term from its last request, whichever one the store counted from."""

    __slots__ = ()

    def is_counted_from(self, base: Base, handed: Handed) -> bool:
        return True


def _one_store(client: type[Client], fires: int) -> Model:
    """A store remembers who waits for longer than a lease lasts: so a hand-over can arrive when the lease is over."""
    waiting = terms(ttl=1, policy=Policy.PRIORITY, poll=1, wait=3)
    return lease(waiting, HandingService(), HandingOver(), client=client, fires=fires)


EXHIBITS = (
    Exhibit(
        name="quorum-lease/handed-over-late",
        title="a hand-over that is believed from when it arrives",
        printed="nowhere: it is the first thing one writes",
        lesson="The store gave the lease to the first in line and said so. The word was under way for as long as the "
        "lease lasts: when it arrives, the next one is inside already. What was handed over counts from the request "
        "that it answers, as every grant does.",
        breaks="safety",
        model=lambda: _one_store(CountsFromTheArrival, fires=0),
        mended=lambda: _one_store(Client, fires=0),
    ),
    Exhibit(
        name="quorum-lease/handed-over-for-another-request",
        title="a hand-over that is believed from another request than it answers",
        printed="nowhere: our own first rule, before the checker had seen it",
        lesson="A waiter asks again now and then, so its last request is not always the one that the store counted "
        "from. A hand-over that was under way for long meets a request that was sent since, and is believed for too "
        "long. Hence requests have numbers, and a hand-over says which one it answers.",
        breaks="safety",
        model=lambda: _one_store(CountsFromTheLastRequest, fires=1),
        mended=lambda: _one_store(Client, fires=1),
    ),
)
