"""Numbers that must fit the protocol."""

import argparse
from collections.abc import Sequence

from trinco.cli.streams import say
from trinco.core.errors import UsageError
from trinco.core.node import Node
from trinco.protocols.catalogue import Entry, competitors, find

MOST_CHECKED = 256
"""Nodes. If each of so many sends to all the others, what follows from one state alone takes a tenth of a gigabyte; and
it grows with the cube."""


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


def check_size(n: int) -> None:
    """Refuse more nodes than the checker gets through a single step of."""
    if n > MOST_CHECKED:
        raise UsageError(
            f"{n:,} nodes have more states than anybody could search: the checker takes at most {MOST_CHECKED}; "
            "for more there is 'trinco sim'"
        )


def asked_n(entry: Entry, options: argparse.Namespace, usual: int) -> int:
    """As many nodes as were asked for, otherwise the usual number, or as many as it takes for a contest."""
    return int(options.n or entry.contended_size(usual))


def tell_if_alone(entry: Entry, nodes: Sequence[Node]) -> None:
    """A run in which nobody has a rival shows little, however well it ends."""
    if competitors(nodes) < 2:
        say(
            f"{entry.name}: only one of these {len(nodes)} nodes competes, and nobody is ever in its way: "
            f"-n {entry.contended_size(len(nodes))} gives it a rival"
        )


def tell_if_client_is_alone(clients: int) -> None:
    if clients < 2:
        say("there is only one client, and nobody is ever in its way: --clients 2 gives it a rival")
