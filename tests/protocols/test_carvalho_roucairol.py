"""Carvalho & Roucairol 1983: permissions that are kept until somebody asks for them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, product

import pytest

from tests.mutants import carvalho_roucairol as mutants
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.event import Event, Kind
from trinco.core.ids import NOBODY, bit
from trinco.protocols.catalogue import find
from trinco.protocols.permission.carvalho_roucairol import CLAIMS, CarvalhoRoucairol, Reply, Request, system
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Scripted, saturated

OUT_OF_ORDER = Links(Uniform(0.1, 20.0), ordered=False)
LIGHT = Closed(40, think=Exponential(30.0))


def scenario(n: int, **options: object) -> Scenario:
    return Scenario(protocol="carvalho-roucairol", build=system, claims=CLAIMS, n=n, **options)  # type: ignore[arg-type]


def one_after_the_other(n: int, *asks: int) -> list[int]:
    """What each entry costs when these ask in turn, long after the last has left."""
    script = tuple((node, 10.0 * turn, 1.0) for turn, node in enumerate(asks))
    result = run(scenario(n, workload=Scripted(script)))
    assert result.violation is None
    return result.metrics.costs


# Messages

each_n = pytest.mark.parametrize("n", [4, 8, 16, 32, 64])


@each_n
def test_who_holds_no_permission_pays_2_messages_to_each_and_enters_again_for_nothing(n: int) -> None:
    assert one_after_the_other(n, n - 1, n - 1, n - 1) == [2 * (n - 1), 0, 0]


@each_n
def test_an_entry_costs_a_request_and_a_reply_for_each_permission_that_is_missing(n: int) -> None:
    """The smaller id of a pair has it at the start, so each lacks those that it shares with all before it."""
    assert [one_after_the_other(n, me) for me in range(n)] == [[2 * me] for me in range(n)]


@each_n
def test_two_that_take_turns_pay_2_messages_each(n: int) -> None:
    assert one_after_the_other(n, n - 1, 1, n - 1, 1, n - 1)[2:] == [2, 2, 2]


@each_n
def test_when_all_take_turns_everybody_pays_for_all_permissions(n: int) -> None:
    """Every other process has entered since one's last time, and taken back what it shares with us."""
    assert one_after_the_other(n, *range(n), *range(n))[n:] == [2 * (n - 1)] * n


@pytest.mark.parametrize("n", [4, 16, 64])
def test_who_asks_alone_waits_for_one_round_trip_or_not_at_all(n: int) -> None:
    waits = [run(scenario(n, workload=Scripted(((me, 5.0, 1.0),)))).metrics.waiting for me in (0, n - 1)]
    assert [wait.max for wait in waits if wait] == [CLAIMS.delay.low(), CLAIMS.delay.high()] == [0, 2]


def events(scene: Scenario) -> list[Event]:
    result = run(scene)
    assert result.violation is None
    assert result.recording is not None
    return list(result.recording.events_without_clocks())


def payments(trace: Iterable[Event]) -> list[tuple[int, int]]:
    """For each entry: the requests that were sent and the replies that were got for it."""
    requests: Counter[int] = Counter()
    replies: Counter[int] = Counter()
    entries = []
    for event in trace:
        if event.kind is Kind.SEND and event.peer is not None:
            requests[event.node] += isinstance(event.message, Request)
            replies[event.peer] += isinstance(event.message, Reply)
        elif event.kind is Kind.GRANT:
            entries.append((requests.pop(event.node, 0), replies.pop(event.node, 0)))
    return entries


@pytest.mark.parametrize(("n", "seeds"), [(4, 40), (16, 4), (64, 1)])
@pytest.mark.parametrize("workload", [saturated(100), LIGHT], ids=["saturated", "light"])
def test_no_entry_costs_more_than_2_messages_to_each_however_many_contend(n: int, seeds: int, workload: Closed) -> None:
    """Who waits gives up a permission to each other process once at most: the next request of that one is younger."""
    for seed in range(seeds):
        entries = payments(events(scenario(n, workload=workload, links=OUT_OF_ORDER, seed=seed)))
        assert entries
        assert all(requests == replies <= n - 1 for requests, replies in entries)


def test_a_permission_given_up_while_waiting_is_asked_for_at_once() -> None:
    """p2 has taken what p0 shares with it, so p0 asks for that, and waits; the request of p1, older and slow, comes for
    the other one."""
    slow = Links(per_link={(1, 0): Constant(5.0)})
    trace = events(scenario(3, workload=Scripted(((1, 0.0, 1.0), (2, 0.0, 9.0), (0, 3.0, 1.0))), links=slow))
    sent = [(event.at, event.peer, event.message) for event in trace if event.kind is Kind.SEND and event.node == 0]
    assert sent == [(1.0, 2, Reply()), (3.0, 2, Request(2)), (5.0, 1, Reply()), (5.0, 1, Request(2))]


def test_one_may_be_overtaken_again_and_again_while_its_request_travels() -> None:
    slow = Links(per_link={(1, 0): Constant(100.0)})
    script = ((1, 0.0, 1.0), *((0, 2.0 * turn, 1.0) for turn in range(40)))
    assert run(scenario(2, workload=Scripted(script), links=slow)).metrics.bypass == 40


# Exhaustively


def permission_lost_or_doubled(view: View) -> bool:
    """the permission of a pair is not in exactly one place"""
    places = Counter(frozenset((source, to)) for source, to, message in view.in_flight() if isinstance(message, Reply))
    nodes = [view.node(me) for me in view.ids]
    for one, other in combinations(view.ids, 2):
        held = (nodes[one].permissions >> other & 1) + (nodes[other].permissions >> one & 1)
        if held + places[frozenset((one, other))] != 1:
            return True
    return False


@pytest.mark.parametrize(
    ("n", "rounds", "states"), [(2, 2, 86), (2, 4, 726), (3, 1, 537), (3, 2, 9_941), (3, 3, 91_063)]
)
def test_it_is_safe_deadlock_free_and_starvation_free_in_exactly_so_many_states(
    n: int, rounds: int, states: int
) -> None:
    """Unordered channels, no reductions."""
    result = check(model_of(find("carvalho-roucairol"), n=n, rounds=rounds, reductions=False))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


PAIRS = list(combinations(range(3), 2))
CIRCLE = (0, 2, 1)
"""Each of three holds one permission and lacks one."""


def placed(holders: Sequence[int], kind: type[CarvalhoRoucairol] = CarvalhoRoucairol) -> list[CarvalhoRoucairol]:
    """Three processes, of which these hold the permissions of the pairs."""
    permissions = [NOBODY] * 3
    for pair, holder in zip(PAIRS, holders, strict=True):
        permissions[holder] |= bit(sum(pair) - holder)
    return [kind(me, 0b111 & ~bit(me), permissions[me]) for me in range(3)]


@pytest.mark.parametrize("holders", list(product(*PAIRS)))
def test_permissions_may_start_anywhere_one_to_a_pair_and_stay_so(holders: Sequence[int]) -> None:
    model = Model(nodes=placed(holders), network=CLAIMS.network, never=[permission_lost_or_doubled])
    assert check(model).verdict is Verdict.HOLDS


# At random


@pytest.mark.parametrize("workload", [saturated(40), LIGHT], ids=["saturated", "light"])
def test_random_runs_with_wide_delays_break_nothing(workload: Closed) -> None:
    swarm = Swarm(scenario(5, workload=workload, links=OUT_OF_ORDER))
    swarm.run(range(200))
    assert (swarm.done, swarm.unfinished, swarm.violations) == (200, 0, [])


# Each rule is needed


@pytest.mark.parametrize(
    ("kind", "network", "breaks"),
    [
        (mutants.KeepsWhatItHolds, Network.FIFO, "deadlock"),
        (mutants.GivesToEverybody, Network.FIFO, "livelock"),
        (mutants.GivesToEverybody, Network.UNORDERED, "safety"),
        (mutants.GivesWhileInside, Network.FIFO, "safety"),
        (mutants.KeepsACopy, Network.FIFO, "safety"),
        (mutants.ForgetsWhoAsked, Network.FIFO, "deadlock"),
        (mutants.IgnoresStamps, Network.UNORDERED, "safety"),
    ],
)
def test_a_process_without_the_rule_is_caught(kind: type[CarvalhoRoucairol], network: Network, breaks: str) -> None:
    result = check(Model(nodes=[kind.in_place_of(honest) for honest in system(3)], network=network))
    assert result.violation is not None
    assert result.violation.kind == breaks


def test_three_that_ask_at_the_same_time_need_their_ids_to_decide() -> None:
    result = check(Model(nodes=placed(CIRCLE, mutants.NoTieBreak)))
    assert result.violation is not None
    assert result.violation.text == "p0 and p1 and p2 wait and nothing can move"
