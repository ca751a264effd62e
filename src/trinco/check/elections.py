"""The model of an election: some nodes notice that the leader is gone, while nodes crash and come back.

Timers are punctual: a message takes less time than any timer, so time passes only when nothing is under way. That is
the slides' assumption (known maximum delays) in its simplest form; orders in which a timer fires while unrelated
messages are still under way are left to the simulator.
"""

from collections.abc import Iterator, Sequence

from trinco.check.model import Clocks, Model, Timers
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.node import Elector, Node


def election_model(
    nodes: Sequence[Node],
    *,
    notices: int = 1,
    noticing: frozenset[int] | None = None,
    crashes: int = 0,
    restarts: int = 0,
    network: Network = Network.UNORDERED,
    fires: int = 8,
    reductions: bool = True,
) -> Model:
    """``notices``: how often each node may notice that the leader does not answer, rightly or not; only the nodes in
    ``noticing`` may, if it is given. ``fires``: an election that needs more to end seems not to."""
    return Model(
        nodes=nodes,
        network=network,
        inputs={"elect": notices},
        called=noticing,
        crashes=crashes,
        restarts=restarts,
        timers=Timers.PUNCTUAL,
        fires=fires,
        clocks=Clocks(),
        reductions=reductions,
        never=(disagree_when_quiet,),
        sometimes={"a leader is elected": somebody_leads},
        reachable={"the election ends": election_ended},
    )


def disagree_when_quiet(view: View) -> bool:
    """nothing is under way, somebody leads, and not everybody knows it"""
    if not view.quiet():
        return False
    leaders = {node.leader for node in _living(view)}  # that one of them has crashed is for somebody to notice
    return len(leaders) > 1 and any(leader is not None and view.alive(leader) for leader in leaders)


def election_ended(view: View) -> bool:
    """Nothing is under way, and nobody waits for anything."""
    return view.quiet() and not any(node.electing for node in _living(view))


def somebody_leads(view: View) -> bool:
    return any(node.leader is not None for node in _living(view))


def _living(view: View) -> Iterator[Elector]:
    return (view.node(node) for node in view.ids if view.alive(node))
