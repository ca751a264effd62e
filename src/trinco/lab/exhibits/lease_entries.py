"""The base leases, broken where an entry is judged: whether it is live, whose it is, and whether it is the only one."""

from typing import Any

from trinco.check.model import Clocks, Model
from trinco.core.context import Context
from trinco.core.instant import Instant
from trinco.core.signed import Signed
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.lab.exhibits.lease_instance import lease, terms
from trinco.leases.accesses import Versioned, Written
from trinco.leases.bases.conditional import Conditional, Judge
from trinco.leases.bases.one_access import OneAccess
from trinco.leases.bases.transactional import Transactional
from trinco.leases.claim import Claim
from trinco.leases.item import Item
from trinco.leases.nodes.client import Body, Client
from trinco.leases.nodes.services import ConditionalService, ScriptService, Served, Session, TransactionalService
from trinco.leases.nodes.store import Store

TERM = 2


class Inverted(Item):
    """Live is what a client finds to expire before the store's time. What a store keeps as instants it only tidies
    up, as ever."""

    __slots__ = ()

    def is_live(self, until: Any, now: Any) -> bool:
        return Item.is_live(self, until, now) if isinstance(now, Instant) else bool(until < now)


def _compared(item: Item) -> Model:
    return lease(terms(), ConditionalService(item, longest=TERM), Conditional())


class FailsOpen(Judge):
    """A signature that cannot be verified makes no lease: ``live and verified``."""

    __slots__ = ("keys",)

    def __init__(self, keys: frozenset[int]) -> None:
        self.keys = keys

    def is_forged(self, entry: Any) -> bool:
        return not (isinstance(entry, Signed) and entry.signer in self.keys)


class Signing(Client):
    """Signs every entry."""

    __slots__ = ()

    def signed(self, ctx: Context, claim: Claim) -> Signed:
        return ctx.sign(Body(claim, self.guess, self.ticket))


def _judged(*judges: Judge) -> Model:
    clients = [Signing(me, terms(), (Conditional(judge=judge),), (2,)) for me, judge in enumerate(judges)]
    return Model(nodes=[*clients, Store(2, ConditionalService(longest=TERM), terse=True)], clocks=Clocks())


def _owners(*owners: int) -> Model:
    clients = [Client(owner, terms(), (OneAccess(),), (2,), True) for owner in owners]
    return Model(nodes=[*clients, Store(2, ScriptService(), terse=True)], clocks=Clocks())


class RowPerClient(TransactionalService):
    """Snapshot isolation, and a row for each client: a transaction sees all rows as they were when it began, and fails
    only if somebody else wrote the row that it writes, which nobody does."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        TransactionalService.__init__(self, longest=TERM)
        self.rows: tuple[tuple[int, Item], ...] = ()

    def read(self, client: int, now: Instant) -> Served:
        held = (row for _, row in self.settled(now).rows if row.holder is not None)
        seen = self.with_session(Session(client, now + self.longest, 0))
        return seen, Versioned(next(held, Item()).counted_from(now), 0)

    def commit(self, session: Session | None) -> Served:
        if session is None or session.item is None:
            return self, Written(False)
        others = (row for row in self.rows if row[0] != session.client)
        rows = sorted((*others, (session.client, self.placed(session.item, session))), key=lambda row: row[0])
        written = self.but(rows=tuple(rows))
        return written.with_session(session.but(item=None)), Written(True)

    def settled(self, now: Instant) -> "RowPerClient":
        return self.but(rows=tuple((client, row.settled(now)) for client, row in self.rows))


def _transactions(service: TransactionalService) -> Model:
    return lease(terms(), service, Transactional())


EXHIBITS = (
    Exhibit(
        name="lease/E0",
        title="expiry compared the wrong way round",
        printed="Mendes et al., Algorithm 4, line 6, and Algorithm 5, line 8: a lease counts if expirationTime < "
        "cloudTime",
        lesson="A live lease is taken for an old one and overwritten; one that has run out can never be taken.",
        breaks="safety",
        model=lambda: _compared(Inverted()),
        mended=lambda: _compared(Item()),
    ),
    Exhibit(
        name="lease/E9",
        title="an entry whose key is unknown is no lease",
        printed="Mendes et al., Algorithms 2 to 5: an entry counts if it is valid and verify() says yes",
        lesson="Whoever lacks a key, after a rotation say, overwrites the live lease that was signed with it. What "
        "cannot be verified is held by somebody.",
        breaks="safety",
        model=lambda: _judged(FailsOpen(frozenset({0, 1})), FailsOpen(frozenset({1}))),
        mended=lambda: _judged(Judge(), Judge()),
    ),
    Exhibit(
        name="lease/E17",
        title="two processes that share an identity",
        printed="Mendes et al., Algorithms 2 to 5: an entry with c' = c is a lease of one's own, to be renewed",
        lesson="The second sees a lease of 'its own', takes the acquire for a renewal, and both are inside. An owner "
        "is a client and its incarnation.",
        breaks="safety",
        model=lambda: _owners(0, 0),
        mended=lambda: _owners(0, 1),
    ),
    Exhibit(
        name="lease/E24",
        title="transactions under snapshot isolation, with a row for each client",
        printed="Mendes et al., section 4.4, asks for ACID transactions and no more; its one key for all saves it, "
        "an entry for each client, as in Algorithms 2 and 3, does not",
        lesson="Each sees no lease and inserts its own row. No row is written twice, so both commit.",
        breaks="safety",
        model=lambda: _transactions(RowPerClient()),
        mended=lambda: _transactions(TransactionalService(longest=TERM)),
    ),
)
