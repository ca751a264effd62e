"""Raymond 1989, by the sentences of the paper."""

from dataclasses import replace
from math import log2
from typing import Any

import pytest

from tests.mutants import raymond_tree as mutants
from tests.mutants.raymond_tree import system_of
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.errors import UsageError
from trinco.core.event import Event, Kind
from trinco.protocols.catalogue import find
from trinco.protocols.token.raymond_tree import PARENTS, Privilege, RaymondTree, Tree
from trinco.sim.laws import Constant, Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Open, Scripted, Workload, saturated

ENTRY = find("raymond-tree")
UNORDERED = Links(Uniform(0.1, 5.0), ordered=False)
LOADS: dict[str, Workload] = {"saturated": saturated(25), "light": Closed(25, think=Exponential(40.0))}

every_tree = pytest.mark.parametrize("tree", PARENTS)
every_size = pytest.mark.parametrize("n", [4, 8, 16, 32, 64])


def scenario(tree: str, n: int, workload: Workload, **options: Any) -> Scenario:
    return Scenario(protocol=ENTRY.name, build=Tree(tree), claims=ENTRY.claims, n=n, workload=workload, **options)


@pytest.mark.parametrize(
    ("tree", "n", "rounds", "network", "states"),
    [
        ("binary", 3, 2, Network.UNORDERED, 1_004),
        ("binary", 4, 2, Network.UNORDERED, 13_954),
        ("binary", 4, None, Network.UNORDERED, 664),
        ("binary", 4, None, Network.FIFO, 486),
        ("binary", 5, None, Network.UNORDERED, 4_034),
        ("line", 3, 2, Network.UNORDERED, 1_012),
        ("line", 4, None, Network.UNORDERED, 664),
        ("star", 4, 2, Network.UNORDERED, 13_942),
        ("star", 4, None, Network.UNORDERED, 724),
    ],
)
def test_it_is_safe_deadlock_free_and_starvation_free_in_exactly_so_many_states(
    tree: str, n: int, rounds: int | None, network: Network, states: int
) -> None:
    entry = ENTRY.set(f"tree={tree}")
    result = check(model_of(entry, n=n, rounds=rounds, network=network, reductions=False))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def owners(view: View) -> list[int]:
    """Who has the privilege, and to whom it is on its way."""
    here = [node for node in view.processes if view.node(node).holder == node]
    return here + [to for _, to, message in view.in_flight() if isinstance(message, Privilege)]


def not_one_privilege(view: View) -> bool:
    """there are two privileges, or none"""
    return len(owners(view)) != 1


def a_way_that_misses_the_privilege(view: View) -> bool:
    """who goes from holder to holder does not come to the privilege"""
    owner, holders = owners(view)[0], [view.node(node).holder for node in view.processes]
    reached = set(view.processes)
    for _ in view.processes:
        reached = {node if node == owner else holders[node] for node in reached}
    return reached != {owner}


def twice_in_a_queue(view: View) -> bool:
    """somebody is in one queue twice"""
    queues = [view.node(node).queue for node in view.processes]
    return any(len(set(queue)) < len(queue) for queue in queues)


@every_tree
def test_there_is_one_privilege_to_which_all_holders_lead_and_each_asks_once(tree: str) -> None:
    never = [not_one_privilege, a_way_that_misses_the_privilege, twice_in_a_queue]
    model = model_of(ENTRY.set(f"tree={tree}"), n=4, rounds=None)
    assert check(replace(model, never=never), liveness=False).verdict is Verdict.HOLDS


def test_two_privileges_to_begin_with_are_noticed() -> None:
    result = check(Model(nodes=[RaymondTree(holder=me) for me in range(2)], never=[not_one_privilege]))
    assert result.violation is not None
    assert result.violation.text == "there are two privileges, or none"


def test_holders_that_point_at_each_other_are_noticed() -> None:
    nodes = [RaymondTree(holder=holder) for holder in (0, 2, 1)]
    result = check(Model(nodes=nodes, never=[a_way_that_misses_the_privilege]))
    assert result.violation is not None
    assert result.violation.text == "who goes from holder to holder does not come to the privilege"


@pytest.mark.parametrize(
    ("tree", "diameters"),
    [("binary", (1, 2, 3, 4, 11)), ("line", (1, 2, 3, 6, 63)), ("star", (1, 2, 2, 2, 2))],
)
def test_the_diameter_of_each_tree_is_a_letter_of_the_claims(tree: str, diameters: tuple[int, ...]) -> None:
    assert tuple(Tree(tree).letters(n)["d"] for n in (2, 3, 4, 7, 64)) == diameters


def test_an_unknown_tree_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="the trees are binary, line, star"):
        Tree("bonsai")


@every_size
@pytest.mark.parametrize(
    ("tree", "hops"), [("binary", lambda n: int(log2(n))), ("line", lambda n: n - 1), ("star", lambda n: 1)]
)
def test_who_asks_alone_pays_and_waits_for_a_request_and_a_privilege_per_hop(tree: str, hops: Any, n: int) -> None:
    """ "2D": the last process asks, the privilege is at the root."""
    metrics = run(scenario(tree, n, Scripted(((n - 1, 10.0, 1.0),)))).metrics
    assert metrics.waiting is not None
    assert metrics.messages_by_kind == {"request": hops(n), "privilege": hops(n)}
    assert metrics.waiting.max == 2 * hops(n)


@every_tree
def test_who_has_the_privilege_already_sends_nothing_and_does_not_wait(tree: str) -> None:
    metrics = run(scenario(tree, 7, Scripted(((0, 0.0, 1.0), (0, 5.0, 1.0))))).metrics
    assert metrics.waiting is not None
    assert (metrics.entries, metrics.messages, metrics.waiting.max) == (2, 0, 0.0)


def hops_of_the_privilege(events: list[Event]) -> list[int]:
    """Before each entry, since the entry before."""
    hops = [0]
    for event in events:
        if event.kind is Kind.GRANT:
            hops.append(0)
        hops[-1] += event.kind is Kind.SEND and isinstance(event.message, Privilege)
    return hops[:-1]


@every_tree
@every_size
@pytest.mark.parametrize("rate", [0.01, 0.3], ids=["light", "heavy"])
def test_the_privilege_goes_straight_from_one_entry_to_the_next_and_each_hop_answers_a_request(
    tree: str, n: int, rate: float
) -> None:
    """So an entry takes 2d messages at most, d hops and d requests, though a request may be sent for many."""
    result = run(scenario(tree, n, Open(100, rate), links=UNORDERED))
    assert result.recording is not None
    hops = hops_of_the_privilege(list(result.recording.events_without_clocks()))
    assert len(hops) == 100
    assert max(hops) <= Tree(tree).diameter(n)
    assert result.metrics.messages_by_kind == {"request": sum(hops), "privilege": sum(hops)}


@every_size
def test_an_entry_takes_less_than_4_messages_when_all_ask_all_the_time(n: int) -> None:
    """The privilege goes round the whole tree, over each of n-1 edges there and back, and each hop answers a request:
    4(n-1) messages for n entries."""
    mean = run(scenario("binary", n, saturated(50 * n))).metrics.messages_per_entry
    assert mean == pytest.approx(4 * (n - 1) / n, rel=0.01)


@every_tree
@pytest.mark.parametrize("workload", LOADS.values(), ids=LOADS.keys())
def test_no_violation_in_many_random_runs_on_channels_that_reorder(tree: str, workload: Workload) -> None:
    swarm = Swarm(scenario(tree, 6, workload, links=UNORDERED))
    swarm.run(range(200))
    assert (swarm.done, swarm.violations, swarm.unfinished) == (200, [], 0)
    assert swarm.entries == 200 * 25


@pytest.mark.parametrize(
    ("mutant", "kind", "words"),
    [
        (mutants.NeverAsksBack, "deadlock", "p2 waits and nothing can move"),
        (mutants.StaysAsked, "deadlock", "p1 waits and nothing can move"),
        (mutants.ForgetsThatItAsked, "never", "somebody is in one queue twice"),
        (mutants.GivesItAwayWhileInside, "safety", "p0 and p1 are inside together"),
        (mutants.ServesTheLast, "livelock", "p0 can wait for ever while nobody enters"),
    ],
)
def test_without_one_of_its_rules_it_breaks(mutant: type[RaymondTree], kind: str, words: str) -> None:
    nodes = system_of(mutant, "binary", 3)
    model = Model(nodes=nodes, network=Network.UNORDERED, inputs={"acquire": None}, never=[twice_in_a_queue])
    result = check(model)
    assert result.violation is not None
    assert result.violation.kind == kind
    assert words in result.violation.text


def test_a_stack_in_place_of_the_queue_starves_the_first_even_on_fifo_channels() -> None:
    """On channels that reorder it is worse: the REQUEST that overtook its PRIVILEGE lies on top, and the privilege goes
    back and forth between two processes for ever."""
    result = check(Model(nodes=system_of(mutants.ServesTheLast, "binary", 3), inputs={"acquire": None}))
    assert result.violation is not None
    assert result.violation.kind == "starvation"


@pytest.mark.parametrize("entries", [10, 100])
def test_while_a_request_is_on_its_way_others_enter_without_a_bound(entries: int) -> None:
    asks = ((1, 0.0, 1.0), *((0, 2.0 * turn, 1.0) for turn in range(entries)))
    links = Links(per_link={(1, 0): Constant(1e4)})
    assert run(scenario("star", 3, Scripted(asks), links=links)).metrics.bypass == entries
