"""The composite lease in the simulator: clients that crash, pause, come back and keep bad time; stores that come back;
tokens; and what it costs when nobody else asks."""

from dataclasses import replace
from typing import Any

import pytest

from tests.leases.driving import KINDS, RenewedLease, Stragglers, scenario
from trinco.core.errors import UsageError
from trinco.core.event import Kind
from trinco.leases.keys import Keyring, MacKey
from trinco.leases.nodes.behaviours import BEHAVIOURS
from trinco.leases.nodes.client import INCARNATION
from trinco.leases.nodes.sealed import SealedClient
from trinco.leases.nodes.system import QuorumLease
from trinco.leases.terms import Policy
from trinco.sim.faults import Crash, Drift, Fault, Pause, Restart
from trinco.sim.laws import Constant, Exponential
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Simulation, run
from trinco.sim.workload import Scripted

every_kind = pytest.mark.parametrize("kind", KINDS)
PROMPT = Constant(0.05)


def simulated(setting: Scenario) -> Simulation:
    simulation = Simulation(setting)
    simulation.run()
    assert simulation.violation is None
    return simulation


def moments(simulation: Simulation, kind: Kind, node: int | None = None) -> list[float]:
    return [at for at, who, what in simulation.history if what is kind and node in (None, who)]


def four(kind: str = "one-access", **changes: Any) -> QuorumLease:
    return QuorumLease(**({"stores": (kind,) * 4, "clients": 2, "ttl": 5.0} | changes))


# Clients that fail


@every_kind
def test_what_a_client_that_crashed_held_is_free_after_its_term(kind: str) -> None:
    """TB: no later than T after it crashed, and the time that it takes to notice."""
    asks = Scripted(((0, 0.0, 100.0), (1, 0.5, 0.1)))
    simulation = simulated(scenario(four(kind), workload=asks, faults=(Crash(0, 1.0),), delay=PROMPT))
    [entered] = moments(simulation, Kind.GRANT, 1)
    assert 5.0 <= entered <= 5.0 + 2.5


@every_kind
@pytest.mark.parametrize("sends", [1, 2, 3])
def test_a_client_that_crashes_while_it_asks_keeps_nobody_out_for_longer_than_a_term(kind: str, sends: int) -> None:
    asks = Scripted(((0, 1.0, 1.0), (1, 1.1, 0.1)))
    faults = (Crash(0, 1.0, after_sends=sends),)
    simulation = simulated(scenario(four(kind), workload=asks, faults=faults))
    assert len(moments(simulation, Kind.CRASH, 0)) == 1
    [entered] = moments(simulation, Kind.GRANT, 1)
    assert entered <= 1.0 + 5.0 + 3.0


@every_kind
def test_who_comes_back_does_not_inherit_what_it_held(kind: str) -> None:
    """E17: it is somebody else now, and waits for itself."""
    asks = Scripted(((0, 0.0, 100.0), (0, 3.0, 0.1)))
    setting = scenario(four(kind, clients=1), workload=asks, faults=(Crash(0, 1.0), Restart(0, 2.0)), delay=PROMPT)
    simulation = simulated(setting)
    first, second = moments(simulation, Kind.GRANT)
    assert first < 1.0
    assert second >= 5.0
    assert simulation.hosts[0].node.owner == INCARNATION  # type: ignore[attr-defined]


def test_everybody_who_comes_back_is_somebody_new() -> None:
    faults: tuple[Fault, ...] = ()
    for at in (1.0, 3.0, 5.0):
        faults += (Crash(0, at), Restart(0, at + 1.0))
    simulation = simulated(scenario(four(clients=1), workload=Scripted(((0, 9.0, 0.1),)), faults=faults))
    assert simulation.hosts[0].node.owner == 3 * INCARNATION  # type: ignore[attr-defined]
    assert len(moments(simulation, Kind.GRANT)) == 1


@every_kind
def test_a_client_that_was_paused_does_not_believe_what_came_too_late(kind: str) -> None:
    """Paused with its grants under way, it wakes up after its term; the other is inside."""
    for length in (3.0, 4.5, 5.5, 9.0):
        faults = (Pause(0, 0.06, length),)
        asks = Scripted(((0, 0.0, 1.0), (1, 0.5, 6.0), (1, 8.0, 6.0)))
        simulation = simulated(scenario(four(kind), workload=asks, faults=faults, delay=PROMPT, seed=int(length)))
        assert len(moments(simulation, Kind.GRANT)) == 3


@every_kind
def test_clients_that_crash_pause_and_come_back_are_never_inside_together(kind: str) -> None:
    for seed in range(2):
        faults: tuple[Fault, ...] = (Pause(2, 2.0 + seed, 4.0), Pause(0, 15.0, 6.0), Pause(2, 20.0, 3.0))
        for node, at in ((0, 1.3), (1, 4.1), (0, 9.2), (1, 16.0)):
            faults += (Crash(node, at + seed), Restart(node, at + 2.0 + seed))
        system = RenewedLease(stores=(kind,) * 4, clients=3, ttl=2.0, wait=1.0)
        setting = scenario(system, faults=faults, seed=seed, entries=20, hold=Exponential(2.0), until=30.0)
        assert len(moments(simulated(setting), Kind.GRANT)) >= 3


# Clocks


@every_kind
def test_clocks_that_differ_by_what_is_allowed_for_do_no_harm(kind: str) -> None:
    """Two hundred parts in a million each, in opposite directions, and the holder stays for its whole term."""
    system = four(kind, ttl=50.0, poll=0.005, clients=2)
    slow_client = tuple(Drift(node, rate=1 - 2e-4) for node in (0, 1))
    fast_stores = tuple(Drift(node, rate=1 + 2e-4) for node in system.store_ids)
    asks = Scripted(((0, 0.0, 100.0), (1, 49.9, 0.1)))
    setting = scenario(system, workload=asks, faults=slow_client + fast_stores, delay=Constant(0.0001), until=60.0)
    assert len(moments(simulated(setting), Kind.GRANT)) == 2


def test_clocks_that_differ_by_more_do() -> None:
    """E13: so the test above could have failed."""
    system = four(ttl=50.0, poll=0.005)
    asks = Scripted(((0, 0.0, 100.0), (1, 49.9, 0.1)))
    setting = scenario(system, workload=asks, faults=(Drift(0, rate=0.99),), delay=Constant(0.0001))
    violation = run(setting).violation
    assert violation is not None
    assert violation.property == "AtMostInside"


@pytest.mark.parametrize("kind", ["object", "conditional", "one-access"])
def test_stores_with_coarse_clocks_need_a_margin_and_have_it(kind: str) -> None:
    """E7: clocks that show whole seconds; the holder asks just before one of them."""
    asks = Scripted(((0, 0.9, 100.0), (1, 1.0, 0.1)))
    setting = scenario(
        four(kind, granularity=1.0, poll=0.01), workload=asks, delay=Constant(0.001), max_events=10**6, until=20.0
    )
    assert len(moments(simulated(setting), Kind.GRANT)) == 2
    careless = replace(setting.build, granularity=0.0, clock_step=1.0)
    assert run(setting.with_changes(build=careless)).violation is not None


# Stores that come back


@every_kind
def test_stores_that_come_back_still_know_who_holds(kind: str) -> None:
    """All of them at once: a holder keeps its lease, and the next one gets a larger token."""
    system = four(kind)
    faults = tuple(fault for node in system.store_ids for fault in (Crash(node, 1.0), Restart(node, 1.5)))
    asks = Scripted(((0, 0.0, 4.0), (1, 2.0, 0.1)))
    simulation = simulated(scenario(system, workload=asks, faults=faults, delay=PROMPT, beyond_claims=True))
    [entered] = moments(simulation, Kind.GRANT, 1)
    assert entered >= 4.0


@every_kind
def test_stores_that_crash_one_after_the_other_do_no_harm(kind: str) -> None:
    """A store that is down while it is asked never answers: that is one silent store, for those who asked it."""
    system = four(kind, clients=3)
    down = system.store_ids[1]
    faults = (Crash(down, 1.0), Restart(down, 3.0))
    simulated(scenario(system, faults=faults, entries=12))


@pytest.mark.parametrize("policy", [Policy.PRIORITY, Policy.BACKOFF], ids=lambda policy: policy.value)
def test_stores_that_are_down_for_a_moment_each_do_not_add_up(policy: Policy) -> None:
    """Never more than one at a time."""
    system = four(clients=3, policy=policy)
    first, second, *_ = system.store_ids
    faults = (Crash(first, 1.0), Restart(first, 3.0), Crash(second, 10.0), Restart(second, 12.0))
    setting = scenario(system, faults=faults, entries=150, until=200.0)
    assert len(moments(simulated(setting), Kind.GRANT)) == 150


# Tokens


def crash_looping(clients: int, times: int) -> tuple[Fault, ...]:
    """Every client crashes again and again, and their wall clocks have nothing to do with each other."""
    faults: tuple[Fault, ...] = tuple(Drift(node, offset=1000.0 * (clients - node)) for node in range(clients))
    for number in range(times):
        node, at = number % clients, 1.0 + 1.5 * number
        faults += (Crash(node, at), Restart(node, at + 0.5))
    return faults


@pytest.mark.parametrize("kind", ["object", "conditional", "transactional", "one-access"])
@pytest.mark.parametrize("liar", ["replay-token", "replay", "grant-all", "forget"])
def test_tokens_only_rise(kind: str, liar: str) -> None:
    """With a store that shows old tokens, and clients that forget what they knew."""
    system = four(kind, clients=3, ttl=1.0, poll=0.1, wait=0.5)
    assert system.can_fence
    faults = crash_looping(3, 9)
    setting = scenario(system, liars={0: BEHAVIOURS[liar]}, faults=faults, entries=30, delay=Exponential(0.01))
    assert len(moments(simulated(setting), Kind.GRANT)) >= 18


def test_tokens_only_rise_over_hundreds_of_acquisitions() -> None:
    system = four(clients=3, ttl=2.0, poll=0.1, wait=0.5)
    faults, liars = crash_looping(3, 60), {2: BEHAVIOURS["replay-token"]}
    setting = scenario(system, liars=liars, faults=faults, entries=600, delay=Exponential(0.01), hold=Constant(0.05))
    assert len(moments(simulated(setting), Kind.GRANT)) > 500


def granted_tokens(simulation: Simulation) -> list[tuple[Kind, Any]]:
    assert simulation.recording is not None
    return [(record[2], record[7]) for record in simulation.recording.records if record[2] in (Kind.GRANT, Kind.RENEW)]


@pytest.mark.parametrize(
    "kind",
    [
        "object",
        "conditional",
        "transactional",
        "one-access",
    ],
)
def test_a_renewal_keeps_the_token(kind: str) -> None:
    system = RenewedLease(stores=(kind,) * 4, clients=1, ttl=3.0)
    simulation = simulated(scenario(system, workload=Scripted(((0, 0.0, 10.0),)), trace=True))
    (_, token), *renewed = granted_tokens(simulation)
    assert token is not None
    assert len(renewed) > 5
    assert renewed == [(Kind.RENEW, token)] * len(renewed)


@pytest.mark.parametrize("kind", ["conditional", "transactional", "one-access", "object"])
def test_a_token_survives_the_release(kind: str) -> None:
    """Two clients whose clocks are far apart: the second's guess is far too small, and still its token is larger."""
    system = four(kind)
    asks = Scripted(((0, 0.0, 0.5), (1, 4.0, 0.5), (0, 8.0, 0.5), (1, 12.0, 0.5)))
    setting = scenario(system, workload=asks, faults=(Drift(0, offset=10_000.0),), trace=True)
    tokens = [token for _, token in granted_tokens(simulated(setting))]
    assert len(tokens) == 4
    assert tokens == sorted(set(tokens))
    assert tokens[1] == tokens[0] + 1


@pytest.mark.parametrize("kind", KINDS)
def test_one_store_is_a_lease_too(kind: str) -> None:
    system = QuorumLease(stores=(kind,), f=0, clients=2, ttl=5.0)
    assert len(moments(simulated(scenario(system, entries=8)), Kind.GRANT)) == 8


def test_a_lease_that_cannot_be_fenced_says_so() -> None:
    assert not four("queue").can_fence
    assert not QuorumLease(stores=("one-access",) * 3 + ("queue",)).can_fence
    assert QuorumLease(stores=("one-access",) * 3 + ("queue",), f=0).can_fence
    with pytest.raises(UsageError, match="only 3 of these can keep one"):
        QuorumLease(stores=("one-access",) * 3 + ("queue",), fenced=True)


def test_a_client_that_signs_can_come_back_as_often_as_it_likes() -> None:
    system = four(clients=1, keyring=Keyring(MacKey(b"k" * 32)))
    faults: tuple[Fault, ...] = ()
    for number in range(101):
        faults += (Crash(0, 1.0 + number), Restart(0, 1.5 + number))
    simulation = simulated(scenario(system, workload=Scripted(((0, 150.0, 0.1),)), faults=faults))
    assert isinstance(simulation.hosts[0].node, SealedClient)
    assert len(moments(simulation, Kind.GRANT)) == 1


# Contention


@pytest.mark.parametrize("kind", KINDS)
def test_among_clients_that_leave_at_once_nobody_waits_for_a_term_to_end(kind: str) -> None:
    for seed in range(2):
        system = four(kind, clients=5, ttl=60.0, fenced=False)
        result = run(scenario(system, seed=seed, entries=25, hold=Constant(0.0)))
        assert result.violation is None
        assert result.metrics.waiting is not None
        assert result.metrics.waiting.max < 50.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_holder_that_renews_is_not_pushed_out_by_those_who_wait(kind: str) -> None:
    system = RenewedLease(stores=(kind,) * 4, clients=4, ttl=5.0)
    asks = Scripted(((0, 0.0, 30.0), (1, 1.0, 0.1), (2, 1.0, 0.1), (3, 1.0, 0.1)))
    for seed in range(2):
        assert moments(simulated(scenario(system, workload=asks, seed=seed)), Kind.EXPIRE, 0) == []


@pytest.mark.parametrize("kind", ["conditional", "one-access"])
def test_those_who_wait_are_served_in_the_order_of_their_tickets(kind: str) -> None:
    """One after the other they ask while it is held; one after the other they get in."""
    system = four(kind, clients=4, ttl=60.0)
    asks = Scripted(((0, 0.0, 12.0), (1, 3.0, 0.5), (2, 6.0, 0.5), (3, 9.0, 0.5)))
    for seed in range(3):
        simulation = simulated(scenario(system, workload=asks, seed=seed))
        order = [node for _, node, kind in simulation.history if kind is Kind.GRANT]
        assert order == [0, 1, 2, 3]


@every_kind
def test_a_term_longer_than_readers_count_is_refused(kind: str) -> None:
    """E21 against belief: nobody may believe an entry for longer than the others do."""
    with pytest.raises(UsageError, match="longer than the 60 s"):
        assert four(kind, ttl=120.0).terms


@every_kind
def test_a_term_as_long_as_readers_count_is_safe(kind: str) -> None:
    system = four(kind, ttl=120.0, t_max=120.0)
    asks = Scripted(((0, 0.0, 100.0), (1, 1.0, 1.0)))
    simulation = simulated(scenario(system, workload=asks, delay=PROMPT, until=130.0))
    assert moments(simulation, Kind.GRANT, 1)[0] >= 100.0


# Accesses that take too long


def straggling(kind: str, stores: int, policy: Policy, seed: int) -> Simulation:
    """Accesses are given up after 0.3; one message in ten takes for seconds, and is then carried out."""
    system = RenewedLease(
        stores=(kind,) * stores, f=stores // 4, clients=3, ttl=2.0, access_timeout=0.3, wait=1.0, policy=policy
    )
    setting = scenario(system, seed=seed, entries=100, hold=Exponential(0.5), delay=Stragglers(), until=60.0)
    simulation = Simulation(setting)
    simulation.run()
    return simulation


@pytest.mark.parametrize(
    ("kind", "stores"),
    [
        ("object", 1),
        ("queue", 1),
        ("queue", 4),
        ("transactional", 1),
        ("conditional", 1),
        ("one-access", 1),
        ("object", 4),
        ("conditional", 4),
        ("transactional", 4),
        ("one-access", 4),
    ],
)
def test_accesses_that_are_carried_out_after_they_were_given_up_do_no_harm(kind: str, stores: int) -> None:
    """No bound on delays is needed for safety."""
    entries = 0
    for seed in range(20) if stores == 1 else range(30, 40):
        simulation = straggling(kind, stores, Policy.BACKOFF if seed % 2 else Policy.PRIORITY, seed)
        violation = simulation.violation
        assert violation is None or violation.property == "EveryoneServed"
        entries += simulation.entries
    assert entries >= 5


@every_kind
def test_who_waits_keeps_asking_also_when_accesses_are_lost(kind: str) -> None:
    for seed in range(0, 20, 2):
        assert straggling(kind, 1, Policy.PRIORITY, seed).violation is None


# What it costs


@pytest.mark.parametrize(
    ("kind", "accesses"), [("object", 3), ("queue", 3), ("conditional", 2), ("transactional", 4), ("one-access", 1)]
)
def test_alone_a_client_waits_as_long_as_for_the_third_fastest_of_four_stores(kind: str, accesses: int) -> None:
    """12.3: a quorum of sums, and not a sum of quorums."""
    system = four(kind, clients=1, ttl=60.0, fenced=False)
    delays = dict(zip(system.store_ids, (0.9, 0.1, 0.3, 0.2), strict=True))
    links = {(0, store): Constant(delay) for store, delay in delays.items()}
    links |= {(store, 0): Constant(delay) for store, delay in delays.items()}
    setting = scenario(system, workload=Scripted(((0, 0.0, 5.0),))).with_changes(
        links=Links(ordered=False, per_link=links)
    )
    simulation = simulated(setting)
    assert moments(simulation, Kind.GRANT) == [pytest.approx(2 * 0.3 * accesses)]


@pytest.mark.parametrize(
    ("kind", "messages"), [("object", 4), ("queue", 4), ("conditional", 3), ("transactional", 8), ("one-access", 2)]
)
def test_alone_an_entry_costs_an_acquire_and_a_release_at_every_store(kind: str, messages: int) -> None:
    """One message each way for every access. The composite pays all n stores, not the quorum."""
    system = four(kind, clients=1, fenced=False)
    setting = scenario(system, entries=10, hold=Constant(1.0), delay=PROMPT, workload=None)
    result = run(setting)
    assert result.metrics.entries == 10
    assert result.metrics.messages_per_entry == pytest.approx(2 * 4 * messages, rel=0.1)


@pytest.mark.parametrize("policy", [Policy.ONCE, Policy.BACKOFF, Policy.PRIORITY], ids=lambda policy: policy.value)
def test_alone_a_client_needs_one_attempt_under_every_policy(policy: Policy) -> None:
    system = four(clients=1, policy=policy)
    simulation = simulated(scenario(system, entries=20))
    assert simulation.hosts[0].node.attempt == 20  # type: ignore[attr-defined]
