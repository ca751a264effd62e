"""Every exhibit by its name."""

from trinco.core.errors import UsageError
from trinco.core.nearest import suggest
from trinco.lab.exhibits import (
    bakery_automaton,
    bakery_holding,
    bakery_objects,
    bakery_removal,
    bakery_tickets,
    bakery_waiting,
    carvalho_roucairol,
    chandy_misra,
    elections,
    failover,
    forks,
    lamport,
    lease_commits,
    lease_entries,
    lease_hand_over,
    lease_listings,
    lease_release,
    lease_renewal,
    lease_time,
    lease_votes,
    maekawa,
    ricart_agrawala,
    robust_k,
    slides,
    token_ring,
)
from trinco.lab.exhibits.exhibit import Exhibit


def by_number(exhibit: Exhibit) -> tuple[int, str]:
    """The order of their numbers, whichever file they stand in."""
    return len(exhibit.name), exhibit.name


BAKERY = sorted(
    (
        *bakery_automaton.EXHIBITS,
        *bakery_holding.EXHIBITS,
        *bakery_objects.EXHIBITS,
        *bakery_removal.EXHIBITS,
        *bakery_tickets.EXHIBITS,
        *bakery_waiting.EXHIBITS,
    ),
    key=by_number,
)

LEASE = sorted(
    (
        *lease_entries.EXHIBITS,
        *lease_listings.EXHIBITS,
        *lease_release.EXHIBITS,
        *lease_renewal.EXHIBITS,
        *lease_time.EXHIBITS,
        *lease_votes.EXHIBITS,
    ),
    key=by_number,
)

EXHIBITS = (
    *slides.EXHIBITS,
    *lamport.EXHIBITS,
    *carvalho_roucairol.EXHIBITS,
    *ricart_agrawala.EXHIBITS,
    *maekawa.EXHIBITS,
    *chandy_misra.EXHIBITS,
    *forks.EXHIBITS,
    *robust_k.EXHIBITS,
    *token_ring.EXHIBITS,
    *failover.EXHIBITS,
    *elections.EXHIBITS,
    *BAKERY,
    *LEASE,
    *lease_commits.EXHIBITS,
    *lease_hand_over.EXHIBITS,
)


def find(name: str) -> Exhibit:
    for exhibit in EXHIBITS:
        if exhibit.name.lower() == name.lower():
            return exhibit
    near = suggest(name, [exhibit.name for exhibit in EXHIBITS])
    raise UsageError(f"there is no exhibit '{name}'{near} ('trinco exhibit' lists them)")
