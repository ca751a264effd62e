"""Naimi & Trehel 1987 and 1996, by the sentences of the papers."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from tests.mutants import naimi_trehel as mutants
from tests.mutants.naimi_trehel import system_of
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import IDLE, INSIDE
from trinco.core.event import Event, Kind
from trinco.protocols.catalogue import find
from trinco.protocols.token.naimi_trehel import NaimiTrehel, Request, Token
from trinco.sim.laws import Constant, Exponential, Law, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Open, Scripted, Workload, saturated

ENTRY = find("naimi-trehel")
UNORDERED = Links(Uniform(0.1, 5.0), ordered=False)
LOADS: dict[str, Workload] = {"saturated": saturated(25), "light": Closed(25, think=Exponential(40.0))}

every_size = pytest.mark.parametrize("n", [4, 8, 16, 32, 64])


def scenario(n: int, workload: Workload, **options: Any) -> Scenario:
    return Scenario(protocol=ENTRY.name, build=ENTRY.build, claims=ENTRY.claims, n=n, workload=workload, **options)


@pytest.mark.parametrize(
    ("n", "rounds", "network", "states"),
    [
        (3, 2, Network.UNORDERED, 1_530),
        (3, 2, Network.FIFO, 1_432),
        (3, None, Network.UNORDERED, 318),
        (3, None, Network.FIFO, 282),
        (4, 2, Network.UNORDERED, 45_980),
        (4, None, Network.UNORDERED, 10_504),
    ],
)
def test_it_is_safe_deadlock_free_and_starvation_free_in_exactly_so_many_states(
    n: int, rounds: int | None, network: Network, states: int
) -> None:
    result = check(model_of(ENTRY, n=n, rounds=rounds, network=network, reductions=False))
    assert (result.verdict, result.violation, result.liveness) == (Verdict.HOLDS, None, True)
    assert result.progress.states == states


def not_one_token(view: View) -> bool:
    """there are two tokens, or none"""
    inside = sum(view.phase(node) is INSIDE for node in view.processes)
    idle_roots = sum(view.phase(node) is IDLE and view.node(node).father is None for node in view.processes)
    return inside + idle_roots + sum(isinstance(message, Token) for _, _, message in view.in_flight()) != 1


def a_cycle_of_fathers(view: View) -> bool:
    """somebody is its own forefather"""
    fathers = [view.node(node).father for node in view.processes]
    ancestors = set(view.processes)
    for _ in view.processes:
        ancestors = {fathers[node] for node in ancestors if fathers[node] is not None}
    return bool(ancestors)


def a_root_too_many_or_too_few(view: View) -> bool:
    """there are not as many roots as requests on their way, and one"""
    roots = sum(view.node(node).father is None for node in view.processes)
    return roots != 1 + sum(isinstance(message, Request) for _, _, message in view.in_flight())


def test_there_is_one_token_and_fathers_form_a_tree_that_requests_on_their_way_have_cut() -> None:
    never = [not_one_token, a_cycle_of_fathers, a_root_too_many_or_too_few]
    model = model_of(ENTRY, n=4, rounds=None)
    assert check(replace(model, never=never), liveness=False).verdict is Verdict.HOLDS


def test_two_tokens_to_begin_with_are_noticed() -> None:
    result = check(Model(nodes=[NaimiTrehel(father=None) for _ in range(2)], never=[not_one_token]))
    assert result.violation is not None
    assert result.violation.text == "there are two tokens, or none"


def messages_by_the_paper(events: list[Event]) -> list[int]:
    """Of each entry: its request, counted at each process that passes it on, and the token sent to it."""
    costs: list[int] = []
    under_way: Counter[int] = Counter()
    for event in events:
        if event.kind is Kind.SEND:
            assert event.peer is not None
            under_way[event.message.requester if isinstance(event.message, Request) else event.peer] += 1
        if event.kind is Kind.GRANT:
            costs.append(under_way.pop(event.node, 0))
    return costs


@every_size
@pytest.mark.parametrize("workload", [saturated(100), Open(100, rate=0.2)], ids=["saturated", "random"])
@pytest.mark.parametrize("links", [Links(), UNORDERED], ids=["steady", "unordered"])
def test_an_entry_takes_no_message_or_2_to_n(n: int, workload: Workload, links: Links) -> None:
    result = run(scenario(n, workload, links=links))
    assert result.violation is None
    assert result.recording is not None
    costs = messages_by_the_paper(list(result.recording.events_without_clocks()))
    assert (len(costs), sum(costs)) == (100, result.metrics.messages)
    assert set(costs) <= {0, *range(2, n + 1)}


def one_after_another(*nodes: int) -> Scripted:
    """Each asks when the one before has long left."""
    return Scripted(tuple((node, 1000.0 * turn, 1.0) for turn, node in enumerate(nodes)))


@every_size
def test_the_longest_path_costs_n_messages_and_is_short_ever_after(n: int) -> None:
    """Who asked in the order 1, 2, .., n-1, 0 stands in a line of fathers, with 1 at its far end. When its request has
    passed, 1 is everybody's father: a request and the token."""
    line = tuple(range(1, n))
    costs = [run(scenario(n, one_after_another(*line, 0, *more))).metrics.costs for more in ((1,), (1, n - 1))]
    assert [cost[-1] for cost in costs] == [n, 2]


@every_size
def test_who_asks_alone_waits_for_as_many_message_times_as_it_takes_messages(n: int) -> None:
    metrics = run(scenario(n, one_after_another(*range(1, n), 0, 1))).metrics
    assert metrics.waiting is not None
    assert metrics.waiting.max == n == ENTRY.claims.delay.high(n=n)


@pytest.mark.parametrize("n", [4, 16, 64])
def test_on_average_an_entry_takes_1_and_a_half_and_a_third_up_to_n_minus_1_messages(n: int) -> None:
    """One asks at a time, anybody with the same chance: H(n-1) messages, that is O(log n). For n = 16 it is 3.32, for
    64 it is 4.73; 4,000 entries stay within 2 percent of it."""
    harmonic = float(sum(Fraction(1, each) for each in range(1, n)))
    metrics = run(scenario(n, Open(4_000, rate=1e-3), trace=False)).metrics
    assert metrics.messages_per_entry == pytest.approx(harmonic, rel=0.02)


@pytest.mark.parametrize("workload", LOADS.values(), ids=LOADS.keys())
def test_no_violation_in_many_random_runs_on_channels_that_reorder(workload: Workload) -> None:
    swarm = Swarm(scenario(5, workload, links=UNORDERED))
    swarm.run(range(200))
    assert (swarm.done, swarm.violations, swarm.unfinished) == (200, [], 0)
    assert swarm.entries == 200 * 25


@pytest.mark.parametrize(
    ("mutant", "n", "kind", "words"),
    [
        (mutants.StaysTheRoot, 2, "safety", "p0 and p1 are inside together"),
        (mutants.KeepsItsFather, 2, "livelock", "p0 can wait for ever while nobody enters"),
        (mutants.RemembersItsNext, 2, "contract", "p1 entered without having asked"),
        (mutants.GivesWhatItLacks, 2, "safety", "p0 and p1 are inside together"),
        (mutants.ReversesNothing, 3, "starvation", "p0 can wait for ever while others enter"),
    ],
)
def test_without_one_of_its_rules_it_breaks(mutant: type[NaimiTrehel], n: int, kind: str, words: str) -> None:
    result = check(Model(nodes=system_of(mutant, n), network=Network.UNORDERED, inputs={"acquire": None}))
    assert result.violation is not None
    assert result.violation.kind == kind
    assert words in result.violation.text


def test_three_processes_on_fifo_channels_need_no_path_reversal_against_starvation() -> None:
    """On channels that reorder, a request that is not led round by new fathers can run after the root for ever."""
    model = Model(nodes=system_of(mutants.ReversesNothing, 3), network=Network.FIFO, inputs={"acquire": None})
    result = check(model)
    assert (result.verdict, result.liveness) == (Verdict.HOLDS, True)


def test_path_reversal_is_what_keeps_requests_short() -> None:
    """Without it everybody's way still begins as it did at the start, and grows by one with each that asks."""
    workload = one_after_another(*range(1, 16))
    short = run(scenario(16, workload)).metrics.costs
    long = run(replace(scenario(16, workload), build=mutants.reverses_nothing)).metrics.costs
    assert short == [2] + [3] * 14
    assert long == list(range(2, 17))


@pytest.mark.parametrize("entries", [20, 200])
def test_while_a_request_is_on_its_way_others_enter_without_a_bound(entries: int) -> None:
    slow: dict[tuple[int, int], Law] = {(2, to): Constant(1e4) for to in range(2)}
    asks = ((2, 0.0, 1.0), *((node, 10.0 * turn, 1.0) for turn in range(entries // 2) for node in range(2)))
    metrics = run(scenario(3, Scripted(asks), links=Links(per_link=slow))).metrics
    assert metrics.bypass == entries
