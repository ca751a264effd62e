"""The spanning tree in many runs: loss, crashes, what it costs, and answers that stand for an ACK."""

import random
from dataclasses import dataclass
from typing import Any

import pytest

from tests.protocols.test_spanning_tree import Word
from tests.protocols.test_spanning_tree_checked import Crier
from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import Context
from trinco.core.event import Kind
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.protocols.broadcast.spanning_tree import Retry, Rules, SpanningTree, Tree
from trinco.protocols.detection.hi_adsd import HiAdsd
from trinco.protocols.detection.perfect import PerfectDetector
from trinco.sim.faults import Crash
from trinco.sim.laws import Constant, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, Simulation, run
from trinco.sim.workload import Closed, Scripted

CLAIMS = Claims(
    paper="Rodrigues, Duarte Jr. & Arantes",
    network=Network.LOSSY,
    messages_per_entry=Formula("0..inf"),
    delay=Formula("0..inf"),
    fairness=Fairness.NONE,
    k=Formula("n"),
    crashes=Formula("n-1"),
)


@dataclass(frozen=True)
class Criers:
    rules: Rules = Rules()
    detects: bool = False
    """By Hi-ADSD, not by an oracle."""

    def __call__(self, n: int) -> list[Node]:
        return [
            Crier(SpanningTree(me, n, self.rules), HiAdsd(me, n) if self.detects else PerfectDetector(), heard=(0,) * n)
            for me in range(n)
        ]


def cries(build: Criers, n: int, **rest: Any) -> Scenario:
    options: dict[str, Any] = {"links": Links(Constant(0.01)), **rest}
    return Scenario(protocol="tree", build=build, claims=CLAIMS, n=n, **options)


def living_after(scenario: Scenario) -> dict[int, Crier]:
    simulation = Simulation(scenario)
    simulation.run()
    result = simulation.result()
    assert result.violation is None
    assert result.finished, "somebody is stuck"
    return {host.me: host.node for host in simulation.hosts if host.alive and isinstance(host.node, Crier)}


LOSSY = Links(Uniform(0.001, 0.01), ordered=False, loss=0.1, duplication=0.05)


def crashes(n: int, seed: int, within: float) -> tuple[Crash, ...]:
    """Of any but one, half of them in the middle of a multi-send."""
    chance = random.Random(seed)
    nodes = chance.sample(range(n), chance.randrange(n))
    return tuple(Crash(node, chance.uniform(0, within), chance.choice((None, None, 1, 2))) for node in nodes)


def assert_that_all_heard_everything_once(living: dict[int, Crier]) -> None:
    assert living
    assert not any(node.misheard for node in living.values())
    for crier, node in living.items():
        assert all(other.heard[crier] == node.said for me, other in living.items() if me != crier)


def lossy(seed: int, think: float) -> Scenario:
    """Two to ten processes, of which up to all but one crash; a tenth of what they send is lost."""
    n = 2 + seed % 9
    workload = Closed(4 * n, think=Uniform(0.0, 2 * think), hold=Constant(0.0))
    faults = crashes(n, seed, within=0.5)
    return cries(Criers(), n, seed=seed, links=LOSSY, faults=faults, workload=workload, until=100.0)


@pytest.mark.parametrize("think", [0.0, 0.2], ids=["saturated", "light"])
@pytest.mark.parametrize("part", range(4))
def test_with_a_tenth_of_tree_and_ack_lost_and_up_to_all_but_one_crashing_nobody_is_stuck(
    think: float, part: int
) -> None:
    for seed in range(25 * part, 25 * part + 25):
        assert_that_all_heard_everything_once(living_after(lossy(seed, think)))


@pytest.mark.parametrize("retry", [Retry.MISSING, Retry.WHOLE_TREE], ids=lambda retry: retry.name)
def test_one_lost_ack_is_enough_to_be_stuck_if_what_was_heard_before_is_not_acknowledged_again(retry: Retry) -> None:
    """F9: "as repetidas são apenas repassadas na árvore"."""
    workload = Closed(40, think=Constant(0.1), hold=Constant(0.0))
    for seed in range(10):
        for again in (True, False):
            build = Criers(Rules(retry=retry, acknowledges_again=again))
            result = run(cries(build, 4, seed=seed, links=LOSSY, workload=workload, until=20.0, trace=False))
            assert result.finished == again


def heard_at(result: Result, listener: int) -> list[float]:
    assert result.recording is not None
    events = result.recording.events_without_clocks()
    return [e.at for e in events if e.kind is Kind.RECEIVE and e.node == listener and isinstance(e.message, Tree)]


@pytest.mark.parametrize(
    ("retry", "heard", "trees"), [(Retry.MISSING, 0.29, 13), (Retry.WHOLE_TREE, 1.09, 24)], ids=["direct", "as printed"]
)
def test_when_a_forwarder_crashes_the_direct_retry_reaches_its_subtree_long_before_it_is_suspected(
    retry: Retry, heard: float, trees: int
) -> None:
    """F8 and A11: p0 tells at 0.2, p2 dies at 0.205 and leaves p3 without the message."""
    build = Criers(Rules(retry=retry), detects=True)
    result = run(cries(build, 4, workload=Scripted(((0, 0.2, 0.0),)), faults=(Crash(2, 0.205),)))
    assert heard_at(result, 3) == [pytest.approx(heard)]
    assert result.metrics.messages_by_kind["tree"] == trees


@pytest.mark.parametrize("part", range(2))
def test_over_hi_adsd_all_the_living_hear_everything_once_whoever_crashes(part: int) -> None:
    links = Links(Uniform(0.001, 0.01), ordered=False)
    for seed in range(20 * part, 20 * part + 20):
        n = 2 + seed % 11
        workload = Closed(4 * n, think=Uniform(0.0, 0.5), hold=Constant(0.0))
        faults = crashes(n, seed, within=2.0)
        scenario = cries(Criers(detects=True), n, seed=seed, links=links, faults=faults, workload=workload, until=200.0)
        assert_that_all_heard_everything_once(living_after(scenario))


@pytest.mark.parametrize("n", [4, 8, 16, 32, 64])
def test_a_word_costs_n_minus_1_tree_and_n_minus_1_ack_and_no_more(n: int) -> None:
    workload = Closed(2 * n, think=Uniform(0.0, 1.0), hold=Constant(0.0))
    counted = run(cries(Criers(), n, workload=workload, trace=False)).metrics.messages_by_kind
    assert counted == {"tree": 2 * n * (n - 1), "ack": 2 * n * (n - 1)}


class Heard(Message, tag="heard"):
    number: int


class Answering(Crier):
    """Answers some words at once, and a word of an even process never."""

    __slots__ = ()

    def hear(self, ctx: Context, root: int, word: Word) -> None:
        Crier.hear(self, ctx, root, word)
        if root % 2:
            ctx.send(root, Heard(word.number))
        else:
            self.tree.acknowledge(ctx, root)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Heard):
            self.tree.answered(ctx, source, Word(message.number), self.detector.suspects)
        Crier.on_message(self, ctx, source, message)


def answering(n: int) -> list[Node]:
    rules = Rules(owner_answers=True)
    return [Answering(SpanningTree(me, n, rules), PerfectDetector(), heard=(0,) * n) for me in range(n)]


def test_an_answer_of_the_owner_s_can_stand_for_an_ack() -> None:
    """I1: 2 words of each of 8 processes; the 4 odd ones are answered, the 4 even ones acknowledged."""
    script = Scripted(tuple((me, at, 0.0) for me in range(8) for at in (0.0, 1.0)))
    scenario = Scenario(
        protocol="tree", build=answering, claims=CLAIMS, n=8, workload=script, links=Links(Constant(0.01))
    )
    result = run(scenario)
    assert result.finished
    assert result.metrics.entries == 16
    assert result.metrics.messages_by_kind == {"tree": 16 * 7, "heard": 8 * 7, "ack": 8 * 7}


def test_the_same_seed_gives_the_same_trace() -> None:
    workload = Closed(10, think=Constant(0.1), hold=Constant(0.0))
    scenario = cries(Criers(detects=True), 5, seed=3, links=Links(Uniform(0.001, 0.01)), workload=workload)
    assert run(scenario).trace_hash == run(scenario).trace_hash
