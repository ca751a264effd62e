"""The smallest instances on which the lease's flaws show: a few clients, then the stores, times in whole ticks."""

from typing import TYPE_CHECKING, Any

from trinco.check.model import Clocks, Model
from trinco.leases.bases.one_access import OneAccess
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.services import ScriptService, Service
from trinco.leases.nodes.store import Store
from trinco.leases.terms import Policy, Terms

if TYPE_CHECKING:
    from trinco.leases.plan import Algorithm


def terms(n: int = 1, f: int = 0, **others: Any) -> Terms:
    """One try, two ticks, perfect clocks, no tokens, unless something else is asked for."""
    usual: dict[str, Any] = {"ttl": 2, "rho": 0, "policy": Policy.ONCE, "poll": 0, "backoff": 0, "fenced": False}
    usual["access_timeout"] = 0
    return Terms(n, f, **usual | others)


def lease(
    terms: Terms,
    service: Service = ScriptService(),
    algorithm: "Algorithm" = OneAccess(),
    *,
    client: type[Client] = Client,
    clients: int = 2,
    store: type[Store] = Store,
    liars: tuple[type[Store], ...] = (),
    **world: Any,
) -> Model:
    """Equal clients of ``terms.n`` stores, the last of which lie; ``world`` is what else a :class:`Model` takes."""
    names = tuple(range(clients, clients + terms.n))
    quiet = isinstance(algorithm, OneAccess)
    kinds = [*[store] * (terms.n - len(liars)), *liars]
    return Model(
        nodes=[
            *(client(me, terms, (algorithm,) * terms.n, names, quiet) for me in range(clients)),
            *(kind(me, service, terse=True) for me, kind in zip(names, kinds, strict=True)),
        ],
        byzantine=frozenset(names[terms.n - len(liars) :]),
        **{"clocks": Clocks()} | world,
    )
