"""Exact numbers of states. A change of any of them is a change of what the checker explores.

All are without reductions but those that are named. A process may ask as soon as it is idle, for so many rounds;
leaving is a step of its own, and so is every delivery; no crash, no clock, no monitor.
"""

import pytest

from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.claims import Network
from trinco.protocols.catalogue import find


@pytest.mark.parametrize(
    ("name", "n", "rounds", "network", "states"),
    [
        ("ricart-agrawala", 3, 2, Network.FIFO, 25_674),
        ("ricart-agrawala", 3, 3, Network.FIFO, 122_015),
        ("coordinator", 4, 2, Network.UNORDERED, 1_505),
        ("token-ring", 4, 2, Network.UNORDERED, 3_500),
        ("coordinator", 4, None, Network.UNORDERED, 182),
        ("token-ring", 4, None, Network.UNORDERED, 96),
    ],
)
def test_a_protocol_is_safe_deadlock_free_and_starvation_free_in_exactly_so_many_states(
    name: str, n: int, rounds: int | None, network: Network, states: int
) -> None:
    model = model_of(find(name), n=n, rounds=rounds, reductions=False)
    assert model.network is network
    result = check(model)
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


@pytest.mark.parametrize(("rounds", "states"), [(2, 285), (3, 916)])
def test_the_coordinator_with_its_clients_merged_has_exactly_so_many_states(rounds: int, states: int) -> None:
    """n=4, unordered, with symmetry over the three clients."""
    assert check(model_of(find("coordinator"), n=4, rounds=rounds, symmetry=True)).progress.states == states
