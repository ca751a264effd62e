"""The model of a protocol from the catalogue, as its claims say."""

from trinco.check.model import Clocks, Model
from trinco.core.claims import Network
from trinco.core.errors import BeyondClaims, UsageError
from trinco.core.monitor import BoundedBypass, Monitor
from trinco.protocols.catalogue import Entry


def model_of(
    entry: Entry,
    *,
    n: int,
    rounds: int | None = 1,
    network: Network | None = None,
    crashes: int = 0,
    restarts: int = 0,
    fires: int = 3,
    symmetry: bool = False,
    bypass: bool = False,
    reductions: bool = True,
    beyond_claims: bool = False,
) -> Model:
    """``rounds``: entries per process, None for ever. ``bypass``: check the claimed bound on overtaking too, which
    makes the monitor's memory part of the state."""
    claims = entry.claims
    network = network or (Network.FIFO if claims.network is Network.FIFO else Network.UNORDERED)
    if rounds is not None and rounds < 1:
        raise UsageError(f"each process must enter at least once; rounds cannot be {rounds}")
    if rounds is None and not entry.repeats:
        raise UsageError(f"{entry.name} has clocks that never stop rising: give a number of rounds")
    if not beyond_claims:
        stay_within(entry, n, network, crashes)
    monitors: list[Monitor] = []
    if bypass:
        if claims.bypass is None:
            raise UsageError(f"{entry.name} makes no claim about overtaking")
        monitors.append(BoundedBypass(int(claims.bypass.high(**entry.letters(n)))))
    groups = entry.interchangeable(n) if symmetry and entry.interchangeable else ()
    if symmetry and not groups:
        raise UsageError(f"{entry.name} compares the ids of its nodes: there is no symmetry to use")
    return Model(
        nodes=entry.nodes(n),
        k=int(claims.k.high(**entry.letters(n))),
        network=network,
        inputs={"acquire": rounds},
        crashes=crashes,
        restarts=restarts,
        fires=fires,
        clocks=Clocks() if claims.timed else None,
        symmetric=groups,
        reductions=reductions,
        monitors=monitors,
    )


def stay_within(entry: Entry, n: int, network: Network, crashes: int) -> None:
    """Refuse what the paper does not promise to survive."""
    claimed = entry.claims.crashes.high(**entry.letters(n))
    if crashes > claimed:
        raise BeyondClaims(
            f"{entry.name} does not claim to survive {crashes} crash{'es' * (crashes > 1)} (claimed: {claimed:g})"
        )
    if network.misbehaviour > entry.claims.network.misbehaviour:
        raise BeyondClaims(
            f"{entry.name} claims a network that is '{entry.claims.network.value}', not '{network.value}'"
        )
