"""The composite lease, broken where it renews: a lease that had a gap must not go on as if it had none.

Nobody is ever inside together with anybody else here. But whoever holds and renews may have read, computed and not yet
written; if somebody else was in and out in between, what it writes is wrong.
"""

from dataclasses import dataclass
from typing import ClassVar

from trinco.check.model import Clocks, Model
from trinco.core.context import Context
from trinco.core.event import Event, Kind
from trinco.core.monitor import Monitor
from trinco.lab.exhibits.exhibit import Exhibit
from trinco.lab.exhibits.lease_instance import lease, terms
from trinco.leases.bases.one_access import OneAccess
from trinco.leases.chains import Base
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.services import ScriptService
from trinco.leases.nodes.store import Store
from trinco.leases.operation import Operation, Request


@dataclass(slots=True)
class RenewedWithoutGap(Monitor):
    """Whoever renews was the last one to be let in."""

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.GRANT, Kind.RENEW})
    last: int | None = None

    def observe(self, event: Event) -> str | None:
        last, self.last = self.last, event.node
        if event.kind is Kind.RENEW and last != event.node:
            return f"p{event.node} renewed its lease although p{last} was inside since it got it"
        return None


class AsksAnew(Client):
    """A renewal is an acquire: it asks for the lease, whether or not its own is still there."""

    __slots__ = ()

    def believes(self, ctx: Context) -> bool:
        return self.until is not None

    def renewal(self, ctx: Context, base: Base) -> Operation:
        return Request(self.claim, self.terms.ttl)


def _renewing(client: type[Client]) -> Model:
    return lease(terms(), client=client, inputs={"acquire": 1, "renew": 1}, monitors=(RenewedWithoutGap(),))


class AsksQuorum(Client):
    """Asks as many stores as it needs, and the others only to renew: fewer states."""

    __slots__ = ()

    def _ask(self, ctx: Context, position: int) -> None:
        if position < self.terms.quorum:
            Client._ask(self, ctx, position)


class Keeper(AsksQuorum):
    """The one that renews."""

    __slots__ = ()

    def prolong(self, ctx: Context) -> None:
        self.renew(ctx)


class RepairsAnyTime(Keeper):
    """Begins to renew in time, and then counts a repair whenever it is answered."""

    __slots__ = ()

    def prolong(self, ctx: Context) -> None:
        if Client.believes(self, ctx):
            self.renew(ctx)

    def believes(self, ctx: Context) -> bool:
        return self.until is not None


def _repairing(keeper: type[Keeper]) -> Model:
    """p0 asks p2 and p3 first, p1 asks p2 and p4: they share a store, as quorums must. Nobody gives up
    (``fires=0``); that it also holds where they may was checked once, and takes five times the states."""
    bases = (OneAccess(),) * 3
    clients = [keeper(0, terms(3), bases, (2, 3, 4), True), AsksQuorum(1, terms(3), bases, (2, 4, 3), True)]
    stores = [Store(store, ScriptService(), terse=True) for store in (2, 3, 4)]
    return Model(
        nodes=[*clients, *stores],
        inputs={"acquire": 1, "prolong": 1},
        monitors=(RenewedWithoutGap(),),
        clocks=Clocks(),
        fires=0,
    )


EXHIBITS = (
    Exhibit(
        name="lease/E23",
        title="a renewal that is an acquire",
        printed="Mendes et al., section 3: to renew is 'similar' to obter(), with one access more to remove the old "
        "entry",
        lesson="The lease runs out, somebody else is in and out, and the renewal succeeds: it says that nothing "
        "happened. A renewal extends what is still live, or fails.",
        breaks="monitor",
        model=lambda: _renewing(AsksAnew),
        mended=lambda: _renewing(Client),
    ),
    Exhibit(
        name="lease/E26",
        title="a renewal that repairs after the old term",
        printed="nowhere; a hole in the first draft of this project",
        lesson="One store is extended in time, another lapses and lets somebody in and out, and a third, where the "
        "entry never was, grants it late: a quorum, with a gap. Repairs count only while the old term lasts.",
        breaks="monitor",
        model=lambda: _repairing(RepairsAnyTime),
        mended=lambda: _repairing(Keeper),
    ),
)
