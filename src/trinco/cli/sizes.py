"""Numbers that must fit the protocol."""

from trinco.core.errors import UsageError
from trinco.protocols.catalogue import Entry


def check_k(entry: Entry, n: int, k: int | None) -> None:
    """Refuse a k that the protocol cannot have."""
    claimed = entry.claims.k.high(**entry.letters(n))
    if k is not None and k != claimed:
        raise UsageError(f"{entry.name} lets {claimed:g} inside at a time; k={k} is not possible")
