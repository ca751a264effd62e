"""The catalogue, and what holds for every protocol in it."""

import pytest

from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.claims import Network
from trinco.core.errors import BeyondClaims, UsageError
from trinco.core.node import Process
from trinco.protocols.catalogue import ENTRIES, Entry, find
from trinco.sim.laws import Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Scripted, saturated

PEERS = [entry for entry in ENTRIES if not entry.claims.timed and not entry.claims.elects]
FRAGILE = [entry for entry in PEERS if entry.claims.crashes.text == "0"]
peers = pytest.mark.parametrize("entry", PEERS, ids=lambda entry: entry.name)
everyone = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


def scenario(entry: Entry, n: int, **options: object) -> Scenario:
    return Scenario(protocol=entry.name, build=entry.build, claims=entry.claims, n=n, **options)  # type: ignore[arg-type]


@everyone
def test_a_protocol_is_found_by_its_name_and_says_what_it_is(entry: Entry) -> None:
    assert find(entry.name) is entry
    assert entry.summary
    assert entry.claims.paper


def test_an_unknown_name_gets_the_nearest_one_suggested() -> None:
    with pytest.raises(UsageError, match="did you mean 'ricart-agrawala'"):
        find("ricart_agrawala")


@peers
@pytest.mark.parametrize("n", [4, 8, 16, 32, 64])
def test_messages_per_entry_are_as_claimed(entry: Entry, n: int) -> None:
    result = run(scenario(entry, n, workload=saturated(min(3 * n, 60))))
    assert result.violation is None
    assert entry.claims.messages_per_entry.admits(result.metrics.messages_per_entry or 0, **entry.letters(n))


@pytest.mark.parametrize(("name", "delay"), [("coordinator", 2.0), ("ricart-agrawala", 2.0)])
@pytest.mark.parametrize("n", [4, 16, 64])
def test_a_process_that_asks_alone_enters_after_the_claimed_delay(name: str, delay: float, n: int) -> None:
    entry = find(name)
    result = run(scenario(entry, n, workload=Scripted(((1, 10.0, 1.0),))))
    assert result.metrics.waiting is not None
    assert result.metrics.waiting.max == delay == entry.claims.delay.high(n=n)


@pytest.mark.parametrize("n", [4, 16])
def test_the_ring_s_delay_lies_between_0_and_n_minus_1(n: int) -> None:
    """The token reaches process 3 at times 3, 3 + n, ...; who asks just before waits no time, just after nearly n."""
    entry = find("token-ring")
    waits = [
        run(scenario(entry, n, workload=Scripted(((3, at, 1.0),)))).metrics.waiting.max  # type: ignore[union-attr]
        for at in (3.0 + n, 3.25 + n, 3.0 + n + 1)
    ]
    assert waits == [0.0, n - 0.25, n - 1]


@peers
def test_the_claimed_network_is_enough_in_many_random_runs(entry: Entry) -> None:
    links = Links(Uniform(0.1, 5.0), ordered=entry.claims.network is Network.FIFO)
    swarm = Swarm(scenario(entry, 5, workload=saturated(25), links=links))
    swarm.run(range(200))
    assert not swarm.violations
    assert swarm.done == 200


def test_ricart_agrawala_stays_safe_and_live_when_channels_reorder() -> None:
    entry = find("ricart-agrawala")
    result = check(model_of(entry, n=3, rounds=2, network=Network.UNORDERED, beyond_claims=True))
    assert result.verdict is Verdict.HOLDS
    assert result.progress.states == 37_229


def test_ricart_agrawala_s_bound_on_overtaking_needs_fifo_channels() -> None:
    """With FIFO it holds and is tight: ``make prove`` goes through all of it for three processes."""
    entry = find("ricart-agrawala")
    fifo = check(model_of(entry, n=2, rounds=4, bypass=True))
    assert fifo.verdict is Verdict.HOLDS
    model = model_of(entry, n=3, rounds=3, bypass=True, network=Network.UNORDERED, beyond_claims=True)
    reordered = check(model, liveness=False)
    assert reordered.violation is not None
    assert reordered.violation.text == "p2 waits and was overtaken 5 times, at most 4 are claimed"


@pytest.mark.parametrize("entry", FRAGILE, ids=lambda entry: entry.name)
def test_a_single_crash_is_beyond_the_claims_and_blocks_somebody(entry: Entry) -> None:
    with pytest.raises(BeyondClaims):
        model_of(entry, n=3, crashes=1)
    result = check(model_of(entry, n=3, rounds=1, crashes=1, beyond_claims=True))
    assert result.violation is not None
    assert result.violation.kind in ("deadlock", "livelock", "starvation")


@peers
def test_so_many_nodes_at_least_and_somebody_asks(entry: Entry) -> None:
    with pytest.raises(UsageError, match=f"at least {entry.smallest}"):
        entry.nodes(entry.smallest - 1)
    assert any(isinstance(node, Process) for node in entry.nodes(entry.smallest))
