"""The two bases that list, object store and queue, broken."""

from typing import TYPE_CHECKING, Any

from trinco.check.model import Clocks, Model
from trinco.check.view import View
from trinco.core.instant import Instant
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.lab.exhibits.lease_instance import lease, terms
from trinco.leases.accesses import Delete, List, Listing
from trinco.leases.bases.listed import Listed
from trinco.leases.bases.object_store import ObjectStore
from trinco.leases.bases.queue import Queue
from trinco.leases.claim import Claim
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.services import ObjectService, QueueService, Service
from trinco.leases.nodes.store import Store
from trinco.leases.operation import Answer, Extend, Grade, Request
from trinco.leases.plan import Outcome
from trinco.leases.row import Named, Row

if TYPE_CHECKING:
    from trinco.leases.plan import Steps


class SameName(ObjectStore):
    """The name of an entry says whose it is and for how long, and no more: a renewal writes over the entry that it
    renews, and if it fails it deletes that."""

    __slots__ = ()

    def named(self, operation: Request | Extend, standing: tuple[Row, ...]) -> Named:
        return ObjectStore.named(self, operation, standing).but(renewal=0)


def _renewed(algorithm: Listed, service: Service) -> Model:
    """Time does not matter here: nothing runs out."""
    return lease(terms(), service, algorithm, inputs={"acquire": 1, "renew": 1}, clocks=None)


class DequeuesTheHead(Queue):
    """A renewal appends a new entry and takes the oldest one out of the queue."""

    __slots__ = ()

    def extend(self, extend: Extend) -> "Steps":
        rows = self.rows((yield List())) or ()
        named = self.named(extend, self.standing(rows, extend.claim))
        key = self.key_of(named, (yield self.add(named)))
        for head in rows[:1]:
            yield Delete(head.key)
        return Outcome(Answer(Grade.COMMITTED), (key,))


class ClearsTheQueue(Queue):
    """The winner removes everybody else's entries."""

    __slots__ = ()

    def leftovers(self, rows: tuple[Row, ...], key: Any, claim: Claim) -> tuple[Row, ...]:
        return tuple(row for row in rows if row.key != key)


def _unequal(algorithm: Listed, service: Service, *ttls: int, **world: Any) -> Model:
    """Clients of one store, each with a term of its own."""
    store = len(ttls)
    clients = [Client(me, terms(ttl=ttl), (algorithm,), (store,)) for me, ttl in enumerate(ttls)]
    return Model(nodes=[*clients, Store(store, service, terse=True)], clocks=Clocks(), **world)


def _short_and_long(algorithm: Queue) -> Model:
    """Nobody gives up (``fires=0``): p0's term is so short that its attempt can fail by that alone."""
    return _unequal(algorithm, QueueService(), 1, 3, inputs={"acquire": 2}, fires=0)


class KeepsEverything(ObjectService):
    """Shows what has run out, too: an object store removes nothing by itself."""

    __slots__ = ()

    def settled(self, now: Instant) -> "KeepsEverything":
        return self


class FirstTime(ObjectStore):
    """Reads the store's time once, with the first listing, and judges every later one by it."""

    __slots__ = ()

    def request(self, request: Request) -> "Steps":
        steps = ObjectStore.request(self, request)
        access, first = next(steps), None
        while True:
            reply = yield access
            if isinstance(reply, Listing):
                first = first or reply
                reply = _as_old_as_in(first, reply)
            try:
                access = steps.send(reply)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome


def _as_old_as_in(first: Listing, listing: Listing) -> Listing:
    """A listing by the time of the first. What was written since was not old at all then."""
    ages = {row.key: row.age for row in first.rows}
    return listing.but(rows=tuple(row.but(age=ages.get(row.key, 0)) for row in listing.rows))


def gives_way_to_the_dead(view: View) -> bool:
    """a client takes its entry back although the listing it was just shown has no live entry of anybody else"""
    return any(_gives_way(view.node(client)) for client in (0, 1))


def _gives_way(client: Client) -> bool:
    algorithm, chain = ObjectStore(), client.bases[0].chain
    if not chain or not chain[0].replies or not isinstance(chain[0].replies[-1], Listing):
        return False
    rows, claim = chain[0].replies[-1].rows, chain[0].operation.claim
    step = chain[0].step(client.algorithms[0])
    mine = algorithm.standing(rows, claim)
    return isinstance(step, Delete) and step.key in [row.key for row in mine] and not algorithm.rivals(rows, claim)


def _second_look(algorithm: ObjectStore) -> Model:
    return _unequal(algorithm, KeepsEverything(), 3, 1, never=[gives_way_to_the_dead])


EXHIBITS = (
    Exhibit(
        name="lease/E10",
        title="a renewal that writes over the entry it renews",
        printed="Mendes et al., Algorithm 2, line 5: an entry is called lease-c-T, and so is the one that renews it",
        lesson="Somebody who listed before the holder wrote shows up in the second listing; the renewal fails and "
        "deletes 'its own' entry, which is the live one. The other lists, is alone, and holds as well.",
        breaks="safety",
        model=lambda: _renewed(SameName(), ObjectService()),
        mended=lambda: _renewed(ObjectStore(), ObjectService()),
    ),
    Exhibit(
        name="lease/E11",
        title="a queue in which the winner deletes everybody else's entries",
        printed="Mendes et al., section 4.2: 'remove todas as entradas da fila com a excepção da sua'; line 15 of "
        "Algorithm 3 deletes only what the first listing showed",
        lesson="The winner's own entry runs out before it deletes. What it then deletes is the entry of whoever has "
        "won in the meantime.",
        breaks="safety",
        model=lambda: _short_and_long(ClearsTheQueue()),
        mended=lambda: _short_and_long(Queue()),
    ),
    Exhibit(
        name="lease/E12",
        title="a queue in which a renewal appends and dequeues",
        printed="CHARON's lock on Azure queues, in the code its authors published; not in the paper",
        lesson="Somebody's entry is second in the queue, on its way to be refused. The renewal appends behind it and "
        "takes the head away: second is first.",
        breaks="safety",
        model=lambda: _renewed(DequeuesTheHead(), QueueService()),
        mended=lambda: _renewed(Queue(), QueueService()),
    ),
    Exhibit(
        name="lease/E15",
        title="a second listing judged by the time of the first",
        printed="Mendes et al., Algorithm 2: cTime is read in line 4 and used again in line 19",
        lesson="An entry that ran out between the listings still counts: the client takes its own back for nobody.",
        breaks="never",
        model=lambda: _second_look(FirstTime()),
        mended=lambda: _second_look(ObjectStore()),
    ),
)
