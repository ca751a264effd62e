"""Numbers that must fit the protocol."""

import argparse

from trinco.core.errors import UsageError
from trinco.protocols.catalogue import Entry, find


def chosen(options: argparse.Namespace) -> Entry:
    """The protocol as it is asked for. ``-k`` is one of its settings, if it has such a one."""
    entry = find(options.protocol)
    if options.k is not None and "k" in entry.settings:
        if any(word.startswith("k=") and word != f"k={options.k}" for word in options.set):
            raise UsageError(f"-k {options.k} and --set k= contradict each other: give one of them")
        options.set = [*options.set, f"k={options.k}"]
    return entry.set(*options.set)


def check_k(entry: Entry, n: int, k: int | None) -> None:
    """Refuse a k that the protocol cannot have."""
    claimed = entry.claims.k.high(**entry.letters(n))
    if k is not None and k != claimed:
        raise UsageError(f"{entry.name} lets {claimed:g} inside at a time; k={k} is not possible")
