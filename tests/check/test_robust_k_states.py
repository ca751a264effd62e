"""Robust k-mutual exclusion in every run of a small system, with crashes at any moment: exact numbers of states.

All are without reductions. The oracle stands in for the detector; a crash may come in the middle of a multi-send; a
timer of the tree fires only where that is said. What takes too long for a test, found once: three processes, one crash,
told directly: k = 2 in 65,908 states (unordered), k = 1 with two entries in 92,995 (FIFO) and 267,257 (unordered); by
tree: k = 2 in 78,649 (FIFO), k = 1 in 279,594 (unordered), and with two entries and no crash in 99,384 (FIFO). Four
processes with one entry each, told directly, FIFO, no crash: 1,402,022 with k = 1; with k = 2, and what a process
ignores left out, 2,278,808. With k = 1 and a crash there was no violation in the first 3,000,000.
"""

import pytest

from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.core.monitor import TokenRises
from trinco.protocols.permission.robust_k_system import RobustKSystem

FIFO, UNORDERED = Network.FIFO, Network.UNORDERED
TREE, DIRECT = RobustKSystem(k=1), RobustKSystem(k=1, tree=False)
TREE_2, DIRECT_2 = RobustKSystem(k=2), RobustKSystem(k=2, tree=False)
SPARED = RobustKSystem(k=1, reply_is_ack=True)


def model(system: RobustKSystem, n: int, entries: int, crashes: int, network: Network, fires: int = 0) -> Model:
    inputs = {"acquire": entries}
    return Model(
        nodes=system(n), k=system.k, network=network, inputs=inputs, crashes=crashes, fires=fires, reductions=False
    )


@pytest.mark.parametrize(
    ("system", "n", "entries", "crashes", "network", "fires", "states"),
    [
        (DIRECT, 3, 1, 1, UNORDERED, 0, 23_979),
        (DIRECT, 3, 1, 2, FIFO, 0, 11_544),
        (DIRECT, 3, 2, 0, FIFO, 0, 25_489),
        (DIRECT_2, 3, 1, 1, FIFO, 0, 24_419),
        (TREE_2, 3, 1, 0, FIFO, 0, 22_899),
        (TREE, 2, 2, 1, UNORDERED, 1, 22_891),
    ],
    ids=["direct", "two crashes", "two entries", "direct k=2", "tree k=2", "repeated"],
)
def test_it_is_safe_deadlock_free_and_starvation_free_in_exactly_so_many_states(
    system: RobustKSystem, n: int, entries: int, crashes: int, network: Network, fires: int, states: int
) -> None:
    result = check(model(system, n, entries, crashes, network, fires))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


@pytest.mark.parametrize(
    ("system", "states"), [(TREE, 33_834), (SPARED, 20_230)], ids=["a tree", "a tree, reply is ack"]
)
def test_what_a_crash_takes_with_it_and_no_timer_may_repeat_keeps_it_from_being_more_than_safe(
    system: RobustKSystem, states: int
) -> None:
    result = check(model(system, 3, 1, 1, FIFO))
    assert (result.verdict, result.violation, result.liveness, result.cut_off) == (Verdict.HOLDS, None, False, True)
    assert result.progress.states == states


def test_with_one_unit_tokens_rise_in_every_run_with_a_crash() -> None:
    nodes = DIRECT(3)
    fenced = Model(nodes=nodes, network=FIFO, crashes=1, monitors=[TokenRises()])
    assert check(fenced, liveness=False).verdict is Verdict.HOLDS
