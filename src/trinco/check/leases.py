"""The model of a quorum lease: clients, stores, and liars that are branched on, in ticks of a clock."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from trinco.check.model import Clocks, Model
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import Phase
from trinco.core.errors import BeyondClaims, UsageError
from trinco.core.monitor import TokenRises
from trinco.leases.nodes.behaviours import BEHAVIOURS
from trinco.leases.nodes.system import QuorumLease
from trinco.leases.terms import Policy

SMALL = QuorumLease(
    clients=2, ttl=2, rho=0, wait=1, poll=0, backoff=0, access_timeout=0, policy=Policy.ONCE, fenced=False, brief=True
)
"""Four stores of which one lies, two clients, one attempt each, a term of two ticks, no token: two million states."""
HANDING_POLL = 1.0
"""Where stores hand over, requests are numbered: so there must be an end to them."""
HANDING_WAIT = 3
"""Long enough for a hand-over to come when the lease is over."""


def lease_model(
    system: QuorumLease = SMALL,
    *,
    byzantine: Mapping[int, str] = MappingProxyType({5: "any"}),
    rounds: int = 1,
    renewals: int = 0,
    time: bool = True,
    drift: int = 0,
    drifting: int | None = None,
    crashes: int = 0,
    fires: int = 3,
    network: Network = Network.UNORDERED,
    symmetry: bool = True,
    reductions: bool = True,
    beyond_claims: bool = False,
) -> Model:
    """``byzantine``: which stores behave how. ``drift``: how many ticks a client's clock may be ahead or behind
    within one term; the margin that this needs, twice as much, must be in the system's ``sigma``. ``drifting``: how
    many clients have such a clock, if not all."""
    if len(byzantine) > system.f and not beyond_claims:
        count = f"{len(byzantine)} Byzantine store{'s' * (len(byzantine) > 1)}"
        raise BeyondClaims(f"with f={system.f} the quorum lease does not claim to survive {count}")
    if drift and not time:
        raise UsageError("clocks that drift need time to pass")
    if "handing-over" in system.stores:
        system = replace(system, poll=HANDING_POLL, wait=HANDING_WAIT)
    system = replace(system, brief=True)
    nodes = list(system(system.n))
    for liar, behaviour in byzantine.items():
        nodes[liar] = BEHAVIOURS[behaviour].in_place_of(nodes[liar])
    liars = frozenset(byzantine)
    clients = range(system.n - len(system.stores))
    clocks = Clocks(frozenset(clients[:drifting]) if drift else frozenset(), drift) if time else None
    return Model(
        nodes=nodes,
        network=network,
        inputs={"acquire": rounds, "renew": renewals},
        crashes=crashes,
        fires=fires,
        clocks=clocks,
        byzantine=liars,
        symmetric=_alike(system, liars) if symmetry else (),
        reductions=reductions,
        monitors=[TokenRises()] if nodes[0].terms.fenced else (),  # type: ignore[attr-defined]
        reachable={"everybody is served": everybody_is_served} if _serves_everybody(system, time) else {},
    )


def _serves_everybody(system: QuorumLease, time: bool) -> bool:
    """Whoever waits and may poll a few times only is forgotten when time passes."""
    return system.policy is Policy.PRIORITY and not (time and system.poll)


def _alike(system: QuorumLease, liars: frozenset[int]) -> list[frozenset[int]]:
    """The honest stores with one base algorithm can be told apart by nobody, unless some are asked before others."""
    groups: dict[tuple[str, bool], set[int]] = {}
    for position, (store, kind) in enumerate(zip(system.store_ids, system.stores, strict=True)):
        if store not in liars:
            is_asked_first = position < system.terms.quorum or not system.widen
            groups.setdefault((kind, is_asked_first), set()).add(store)
    return [frozenset(group) for group in groups.values() if len(group) > 1]


def everybody_is_served(view: View) -> bool:
    """Nobody waits, and nobody has anything left to ask for."""
    return all(
        view.phase(client) is Phase.IDLE
        and not any(count for name, count in view.local(client).left if name == "acquire")
        for client in view.processes
        if view.alive(client)
    )
