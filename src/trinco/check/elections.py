"""The model of an election: some nodes notice that the leader is gone, while nodes crash and come back.

Timers are punctual: a message takes less time than any timer, so time passes only when nothing is under way. That is
the slides' assumption (known maximum delays) in its simplest form; orders in which a timer fires while unrelated
messages are still under way are left to the simulator.
"""

from collections.abc import Sequence

from trinco.check.model import Clocks, Model, Timers
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.monitor import disagreement
from trinco.core.node import Node


def election_model(
    nodes: Sequence[Node],
    *,
    notices: int = 1,
    crashes: int = 0,
    restarts: int = 0,
    network: Network = Network.UNORDERED,
    fires: int = 3,
    reductions: bool = True,
) -> Model:
    """``notices``: how often each node may notice that the leader does not answer, rightly or not."""
    return Model(
        nodes=nodes,
        network=network,
        inputs={"elect": notices},
        crashes=crashes,
        restarts=restarts,
        timers=Timers.PUNCTUAL,
        fires=fires,
        clocks=Clocks(),
        reductions=reductions,
        never=(disagree_when_quiet,),
        sometimes={"a leader is elected": _somebody_leads},
        reachable={"the election ends": View.quiet},
    )


def disagree_when_quiet(view: View) -> bool:
    """Two leaders, once nothing is under way. That the one leader has crashed since is for somebody to notice."""
    return view.quiet() and disagreement(_leaders(view), dead=()) is not None


def _somebody_leads(view: View) -> bool:
    return any(True for _ in _leaders(view))


def _leaders(view: View) -> list[tuple[int, int]]:
    living = ((node, view.node(node)) for node in view.ids if view.alive(node))
    return [(me, node.leader) for me, node in living if node.leader is not None]
