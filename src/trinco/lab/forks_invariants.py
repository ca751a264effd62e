"""What Campos & Carvalho's proof rests on, in a form that can be looked at after every step.

Each is a function of a whole state and true where the invariant is broken: for the checker's ``never``, and for a
simulated run replayed state by state.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from trinco.core.context import IDLE, Phase
from trinco.core.ids import bit
from trinco.core.message import Message
from trinco.protocols.permission.campos_carvalho import CamposCarvalho
from trinco.protocols.permission.forks_arbiter import Arbiter
from trinco.protocols.permission.forks_codes import ArbiterSays, ClientSays, ToArbiter, ToClient

_CARRIES_FORK = frozenset(
    (
        ToClient(ArbiterSays.FORK),
        ToClient(ArbiterSays.FORK_AND_REQUEST),
        ToArbiter(ClientSays.CLEAN_FORK),
        ToArbiter(ClientSays.DIRTY_FORK),
        ToArbiter(ClientSays.DIRTY_FORK_AND_REQUEST),
    )
)
_CARRIES_DIRTY_FORK = frozenset((ToArbiter(ClientSays.DIRTY_FORK), ToArbiter(ClientSays.DIRTY_FORK_AND_REQUEST)))


class State(Protocol):
    """A whole state: ``check.View`` is one."""

    @property
    def ids(self) -> Iterable[int]: ...
    def node(self, node: int) -> Any: ...
    def phase(self, node: int) -> Phase: ...
    def in_flight(self) -> Iterable[tuple[int, int, Message]]: ...


def a_fork_is_lost_or_doubled(state: State) -> bool:
    """a fork is lost or doubled, or with somebody who is not its owner"""
    picture = _Picture(state)
    return any(picture.whereabouts(host, arbiter) != [arbiter.owner] for host, arbiter in picture.arbiters())


def precedence_is_no_total_order(state: State) -> bool:
    """the order of precedence runs in a circle"""
    picture = _Picture(state)
    preceded: Counter[int] = Counter()
    for host, arbiter in picture.arbiters():
        order = picture.order(host, arbiter)
        preceded.update({client: place for place, client in enumerate(order)})
    return sorted(preceded.values()) != list(range(len(preceded)))


def somebody_thinks_with_a_clean_fork(state: State) -> bool:
    """somebody thinks, and holds a fork that is clean"""
    picture = _Picture(state)
    return any(client.forks & ~client.dirty for me, client in picture.clients.items() if state.phase(me) is IDLE)


def more_are_under_way_than(most: int) -> Callable[[State], bool]:
    """From one node to another. The bound that goes with the algorithm is 3, or 4 if forks are returned unasked."""

    def too_many(state: State) -> bool:
        channels = Counter((source, to) for source, to, _ in state.in_flight() if source != to)
        return max(channels.values(), default=0) > most

    too_many.__doc__ = f"more than {most} messages are under way from one node to another"
    return too_many


class _Picture:
    def __init__(self, state: State) -> None:
        self.nodes = {me: state.node(me) for me in state.ids}
        self.clients: dict[int, CamposCarvalho] = {
            me: node for me, node in self.nodes.items() if isinstance(node, CamposCarvalho)
        }
        self.under_way = list(state.in_flight())

    def arbiters(self) -> Iterator[tuple[int, Arbiter]]:
        """Each with the node that runs it."""
        for me, node in self.nodes.items():
            for arbiter in node.arbiters:
                yield me, arbiter

    def _sent(self, kinds: frozenset[Message], host: int, client: int) -> int:
        ends = ((host, client), (client, host))
        return sum((source, to) in ends and message in kinds for source, to, message in self.under_way)

    def whereabouts(self, host: int, arbiter: Arbiter) -> list[int | None]:
        """With whom the fork is, or to or from whom it travels; None for the arbiter itself. Once for each fork."""
        found: list[int | None] = [] if arbiter.owner is not None else [None]
        for client in arbiter.priorities:
            held = bool(self.clients[client].forks & bit(_name(host, arbiter, client)))
            found += [client] * (held + self._sent(_CARRIES_FORK, host, client))
        return found

    def order(self, host: int, arbiter: Arbiter) -> list[int]:
        """H between the clients of one arbiter, first to last. Whoever has a dirty fork, or has sent one that has not
        arrived, comes last, whatever the list says."""
        last = [client for client in arbiter.priorities if self._ate_last(host, arbiter, client)]
        return [*(client for client in arbiter.priorities if client not in last), *last]

    def _ate_last(self, host: int, arbiter: Arbiter, client: int) -> bool:
        dirty = self.clients[client].dirty & bit(_name(host, arbiter, client))
        return bool(dirty) or bool(self._sent(_CARRIES_DIRTY_FORK, host, client))


def _name(host: int, arbiter: Arbiter, client: int) -> int:
    """What a client calls an arbiter."""
    return arbiter.number if client == host else host
