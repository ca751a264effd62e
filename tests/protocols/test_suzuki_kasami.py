"""Suzuki & Kasami 1985, by the sentences of the paper."""

from dataclasses import replace
from typing import Any

import pytest

from tests.mutants import suzuki_kasami as mutants
from tests.mutants.suzuki_kasami import system_of
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import WAITING
from trinco.protocols.catalogue import find
from trinco.protocols.token.suzuki_kasami import Privilege, SuzukiKasami
from trinco.sim.laws import Constant, Exponential, Law, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Open, Scripted, Workload, saturated

ENTRY = find("suzuki-kasami")
UNORDERED = Links(Uniform(0.1, 5.0), ordered=False)
LOADS: dict[str, Workload] = {"saturated": saturated(25), "light": Closed(25, think=Exponential(40.0))}

every_size = pytest.mark.parametrize("n", [4, 8, 16, 32, 64])


def scenario(n: int, workload: Workload, **options: Any) -> Scenario:
    return Scenario(protocol=ENTRY.name, build=ENTRY.build, claims=ENTRY.claims, n=n, workload=workload, **options)


@pytest.mark.parametrize(
    ("n", "rounds", "network", "states"),
    [
        (3, 2, Network.UNORDERED, 62_103),
        (3, 2, Network.FIFO, 15_110),
        (2, 4, Network.UNORDERED, 518),
    ],
)
def test_it_is_safe_deadlock_free_and_starvation_free_in_exactly_so_many_states(
    n: int, rounds: int, network: Network, states: int
) -> None:
    result = check(model_of(ENTRY, n=n, rounds=rounds, network=network, reductions=False))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def privileges(view: View) -> list[Privilege]:
    held = [view.node(node).privilege for node in view.processes]
    sent = [message for _, _, message in view.in_flight() if isinstance(message, Privilege)]
    return [privilege for privilege in held if privilege] + sent


def not_one_privilege(view: View) -> bool:
    """there are two privileges, or none"""
    return len(privileges(view)) != 1


def a_queue_out_of_order(view: View) -> bool:
    """somebody is in the queue twice, or without waiting"""
    (privilege,) = privileges(view)
    queue = privilege.queue
    return len(set(queue)) < len(queue) or any(view.phase(node) is not WAITING for node in queue)


def a_number_too_high(view: View) -> bool:
    """somebody's request is numbered higher than the one after the last served"""
    (privilege,) = privileges(view)
    nodes = [view.node(node) for node in view.processes]
    return any(node.requested[each] > privilege.served[each] + 1 for node in nodes for each in view.processes)


def test_there_is_one_privilege_and_only_those_who_wait_are_in_its_queue() -> None:
    never = [not_one_privilege, a_queue_out_of_order, a_number_too_high]
    model = model_of(ENTRY, n=3, rounds=2, network=Network.FIFO)
    assert check(replace(model, never=never), liveness=False).verdict is Verdict.HOLDS


def test_two_privileges_to_begin_with_are_noticed() -> None:
    nodes = [SuzukiKasami(me, 2, (0, 0), Privilege((), (0, 0))) for me in range(2)]
    result = check(Model(nodes=nodes, never=[not_one_privilege]))
    assert result.violation is not None
    assert result.violation.text == "there are two privileges, or none"


@every_size
@pytest.mark.parametrize("workload", [saturated(100), Open(100, rate=0.2)], ids=["saturated", "random"])
@pytest.mark.parametrize("links", [Links(), UNORDERED], ids=["steady", "unordered"])
def test_an_entry_takes_n_messages_or_none(n: int, workload: Workload, links: Links) -> None:
    """ "N or 0": n-1 requests and the privilege, or nothing where the privilege is at hand."""
    metrics = run(scenario(n, workload, links=links)).metrics
    assert metrics.entries == 100
    assert {n} <= set(metrics.costs) <= {0, n}
    by_kind = metrics.messages_by_kind
    assert by_kind["request"] == (n - 1) * by_kind["privilege"]


@every_size
def test_who_asks_alone_waits_two_message_times_or_none_with_the_privilege_at_hand(n: int) -> None:
    first = run(scenario(n, Scripted(((1, 10.0, 1.0),)))).metrics
    again = run(scenario(n, Scripted(((1, 10.0, 1.0), (1, 20.0, 1.0))))).metrics
    assert first.waiting is not None
    assert again.waiting is not None
    assert (first.waiting.max, first.messages) == (2.0, n)
    assert (again.waiting.mean, again.messages) == (1.0, n)


@pytest.mark.parametrize("workload", LOADS.values(), ids=LOADS.keys())
def test_no_violation_in_many_random_runs_on_channels_that_reorder(workload: Workload) -> None:
    swarm = Swarm(scenario(5, workload, links=UNORDERED))
    swarm.run(range(200))
    assert (swarm.done, swarm.violations, swarm.unfinished) == (200, [], 0)
    assert swarm.entries == 200 * 25


@pytest.mark.parametrize(
    ("mutant", "kind", "words"),
    [
        (mutants.ServesTheOutdated, "contract", "p1 entered without having asked"),
        (mutants.DoesNotSayThatItWasServed, "contract", "p1 entered without having asked"),
        (mutants.QueuesTwice, "contract", "p2 entered without having asked"),
        (mutants.TakesTheLastForTheNewest, "deadlock", "p2 waits and nothing can move"),
        (mutants.GivesItAwayWhileInside, "safety", "p0 and p1 are inside together"),
    ],
)
def test_without_one_of_its_rules_it_breaks(mutant: type[SuzukiKasami], kind: str, words: str) -> None:
    result = check(Model(nodes=system_of(mutant, 3), network=Network.UNORDERED, inputs={"acquire": 2}))
    assert result.violation is not None
    assert result.violation.kind == kind
    assert words in result.violation.text


def test_only_channels_that_reorder_need_the_largest_number_to_be_kept() -> None:
    """An older request can come after a newer one by the same process only there."""
    nodes = system_of(mutants.TakesTheLastForTheNewest, 3)
    assert check(Model(nodes=nodes, network=Network.FIFO, inputs={"acquire": 2})).verdict is Verdict.HOLDS


def test_the_queue_in_the_privilege_is_what_makes_it_fair() -> None:
    """Where all ask all the time and messages are equally quick, everybody else enters once in between. Whoever always
    serves the smallest id that waits lets two processes take turns, and the others wait until these have had enough."""
    fair = run(scenario(5, saturated(50)))
    unfair = run(replace(scenario(5, saturated(50)), build=mutants.tears_up_the_queue))
    assert fair.metrics.bypass == 4
    assert unfair.metrics.bypass > 20


@pytest.mark.parametrize("entries", [20, 200])
def test_while_a_request_is_on_its_way_others_enter_without_a_bound(entries: int) -> None:
    slow: dict[tuple[int, int], Law] = {(2, to): Constant(1e4) for to in range(2)}
    asks = ((2, 0.0, 1.0), *((node, 10.0 * turn, 1.0) for turn in range(entries // 2) for node in range(2)))
    metrics = run(scenario(3, Scripted(asks), links=Links(per_link=slow))).metrics
    assert metrics.bypass == entries
