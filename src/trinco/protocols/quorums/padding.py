"""Planes for any number of nodes: fictitious points, and who runs their arbiters.

Campos & Carvalho 1988 take the nodes for the points of a projective plane, the nodes that client i asks for line i,
and call the asked ones arbiters. Where no plane has as many points as there are nodes they add fictitious nodes, and do
not say who runs those: their lines can be left out, their points cannot, for two clients may meet nowhere else. So:

- The plane is the smallest one with at least n points. Clients 0 to n-1 keep their lines.
- An arbiter with fewer than two clients keeps nobody apart and is pruned.
- Any other arbiter from n on is *virtual*: one of its own clients hosts it, the one that runs the fewest arbiters.

Every two clients still have exactly one common arbiter, and nobody asks more than m+1. Since whoever runs an arbiter is
a client of it, two nodes that exchange messages do so about the one arbiter that they share, and only one of them
runs it: a message needs to say neither which arbiter it is about nor whether it comes from it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from trinco.core.errors import UsageError
from trinco.core.ids import bit
from trinco.protocols.quorums.difference_sets import size
from trinco.protocols.quorums.planes import Check, Family, braced, dual, not_sharing_one, order_for, plane
from trinco.protocols.quorums.quorum_set import QuorumSet


@dataclass(frozen=True)
class Arbiters:
    """Which arbiters each client asks, and where they run."""

    order: int
    quorums: Family
    """S_i: the arbiters that client i asks, in rising order; those from n on are virtual."""
    hosts: Mapping[int, int]
    """The node that runs each arbiter, in rising order of arbiters. A real one runs at itself, a pruned one nowhere."""

    @property
    def n(self) -> int:
        return len(self.quorums)

    @cached_property
    def clients(self) -> Family:
        """R_a: who asks arbiter a, in rising order; nobody asks a pruned one."""
        return dual(self.quorums, size(self.order))

    @cached_property
    def run_by(self) -> Family:
        """The arbiters that each node runs."""
        arbiters: list[list[int]] = [[] for _ in range(self.n)]
        for arbiter, host in self.hosts.items():
            arbiters[host].append(arbiter)
        return tuple(map(tuple, arbiters))

    def common(self, one: int, other: int) -> int:
        """The arbiter that keeps two clients apart."""
        (arbiter,) = set(self.quorums[one]).intersection(self.quorums[other])
        return arbiter


def padded(n: int) -> Arbiters:
    if n < 1:
        raise UsageError(f"there must be at least one node, not {n}")
    order = order_for(n)
    whole = plane(order)
    clients = dual(whole[:n], len(whole))
    quorums = tuple(tuple(arbiter for arbiter in line if len(clients[arbiter]) > 1) for line in whole[:n])
    return Arbiters(order, quorums, _hosts(clients, n))


def _hosts(clients: Family, n: int) -> Mapping[int, int]:
    hosts: dict[int, int] = {}
    load = [0] * n
    for arbiter, asking in enumerate(clients):
        if len(asking) > 1:
            host = arbiter if arbiter < n else min(asking, key=load.__getitem__)
            load[host] += 1
            hosts[arbiter] = host
    return hosts


def plane_quorums(n: int) -> QuorumSet:
    """For algorithms that know of nodes only: whom to ask are the nodes that run the arbiters. Arbiters of one node
    become one, which keeps apart all whom they did. Everybody is in its own quorum; where it had to be added, its
    arbiter was pruned."""
    arbiters = padded(n)
    return QuorumSet(
        sum(bit(node) for node in {me, *(arbiters.hosts[arbiter] for arbiter in quorum)})
        for me, quorum in enumerate(arbiters.quorums)
    )


def checks(arbiters: Arbiters) -> Iterator[Check]:
    """What makes it an arrangement that keeps the nodes apart, each with what was found against it."""
    most = arbiters.order + 1
    yield Check(
        "two clients have exactly one common arbiter", not_sharing_one(arbiters.quorums, arbiters.clients, "clients")
    )
    yield Check(f"no client asks more than {most} arbiters", _asking_more(arbiters, most))
    yield Check("every arbiter has two clients or more, or is pruned", _superfluous(arbiters))
    yield Check("a real arbiter runs at itself, a virtual one at a client of its own", _misplaced(arbiters))


def _asking_more(arbiters: Arbiters, most: int) -> str | None:
    found = ((client, quorum) for client, quorum in enumerate(arbiters.quorums) if len(quorum) > most)
    return next((f"client {client} asks {braced(quorum)}" for client, quorum in found), None)


def _superfluous(arbiters: Arbiters) -> str | None:
    for arbiter, clients in enumerate(arbiters.clients):
        if len(clients) < 2 and (clients or arbiter in arbiters.hosts):
            return f"arbiter {arbiter} has the clients {braced(clients)}"
    return None


def _misplaced(arbiters: Arbiters) -> str | None:
    for arbiter, clients in enumerate(arbiters.clients):
        host = arbiters.hosts.get(arbiter)
        if clients and (host not in clients or (arbiter < arbiters.n and host != arbiter)):
            return f"arbiter {arbiter} of {braced(clients)} runs at {host}"
    return None
