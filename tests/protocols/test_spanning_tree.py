"""The spanning tree: "todos os nodos recebem uma única cópia da mensagem enviada inicialmente"."""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import ceil, log2
from typing import Any

import pytest

from tests.mutants import spanning_tree as mutants
from trinco.check.model import Clocks, Model, Timers
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.claims import Claims, Fairness, Network
from trinco.core.context import WAITING, Context
from trinco.core.event import Kind
from trinco.core.formula import Formula
from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.message import Codec, Message, describe
from trinco.core.node import Node, Process
from trinco.protocols.broadcast.spanning_tree import Ack, Retry, Rules, SpanningTree, Tree
from trinco.protocols.detection.hi_adsd import HiAdsd
from trinco.protocols.detection.perfect import PerfectDetector
from trinco.sim.faults import Crash
from trinco.sim.laws import Constant, Uniform
from trinco.sim.links import Links
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, Simulation, run
from trinco.sim.workload import Closed, Scripted


class Word(Message, tag="word"):
    number: int


WORD = Word(1)


class Post(Context):
    """Keeps what a node sends until it is fetched. Timers are not looked at."""

    __slots__ = ("me", "sent")

    def __init__(self, me: int) -> None:
        self.me = me
        self.sent: list[tuple[int, Message]] = []

    def send(self, to: int, message: Message) -> None:
        self.sent.append((to, message))

    def set_timer(self, name: str, delay: float) -> None: ...

    def cancel_timer(self, name: str) -> None: ...


Copy = tuple[int, int, int, int]
"""(in which hop, by whom, to whom, with how many hops left)"""


def copies(n: int, root: int, faulty: Ids = NOBODY, kind: type[SpanningTree] = SpanningTree) -> list[Copy]:
    """How a message goes down the tree when all know who is faulty. The dead say nothing."""
    trees, told = [kind(me, n) for me in range(n)], []
    post = Post(root)
    trees[root].broadcast(post, WORD, faulty)
    under_way = deque((1, root, to, message) for to, message in post.sent)
    while under_way:
        hop, source, to, message = under_way.popleft()
        assert not faulty & bit(to), "a message was sent to somebody whom all suspect"
        if isinstance(message, Ack):
            trees[to].on_message(Post(to), source, message, faulty)
            continue
        assert isinstance(message, Tree)
        told.append((hop, source, to, message.hops))
        post = Post(to)
        assert trees[to].on_message(post, source, message, faulty) == WORD
        under_way += [(hop + 1, to, receiver, passed_on) for receiver, passed_on in post.sent]
    assert (trees[root].awaited, trees[root].body) == (NOBODY, None), "the root knows that all have heard it"
    return told


def fault_sets(n: int, root: int) -> Iterator[Ids]:
    others = [node for node in range(n) if node != root]
    return (sum(map(bit, dead)) for count in range(n) for dead in combinations(others, count))


@pytest.mark.parametrize("n", range(2, 11))
def test_every_living_process_gets_exactly_one_copy_whoever_is_known_to_be_dead(n: int) -> None:
    for root in range(n):
        for faulty in fault_sets(n, root):
            told = copies(n, root, faulty)
            assert sorted(to for _, _, to, _ in told) == [x for x in range(n) if x != root and not faulty & bit(x)]
            assert max((hop for hop, *_ in told), default=0) <= ceil(log2(n))


def test_sixteen_processes_are_told_by_fifteen_messages_in_four_hops() -> None:
    told = copies(16, 0)
    assert (len(told), max(hop for hop, *_ in told)) == (15, 4)


def test_figure_3a_n0_sends_to_the_head_of_each_cluster_and_n4_and_n2_and_n6_pass_it_on() -> None:
    sent = [(source, to, hops) for _, source, to, hops in copies(8, 0)]
    assert sent == [(0, 1, 1), (0, 2, 2), (0, 4, 3), (2, 3, 1), (4, 6, 2), (4, 5, 1), (6, 7, 1)]


def test_figure_3b_without_n4_n6_takes_its_place_and_n5_has_nobody_to_pass_it_on_to() -> None:
    sent = [(source, to, hops) for _, source, to, hops in copies(8, 0, bit(4))]
    assert sent == [(0, 1, 1), (0, 2, 2), (0, 6, 3), (2, 3, 1), (6, 5, 2), (6, 7, 1)]


def test_passing_on_only_if_hops_are_above_one_after_counting_down_as_the_prose_says_does_not_reach_all() -> None:
    with pytest.raises(AssertionError, match="the root knows that all have heard it"):
        copies(8, 0, kind=mutants.CountsDownFirst)


def test_whoever_is_alone_tells_nobody_and_waits_for_nobody() -> None:
    for n, suspects in ((1, NOBODY), (4, 0b1110)):
        tree, post = SpanningTree(0, n), Post(0)
        for number in (1, 2):
            tree.broadcast(post, Word(number), suspects)
        assert (post.sent, tree.queue, tree.body) == ([], (), None)


def test_when_the_last_to_be_waited_for_crashes_the_rest_of_the_queue_goes_to_nobody() -> None:
    tree, post = SpanningTree(0, 2), Post(0)
    for number in (1, 2, 3):
        tree.broadcast(post, Word(number), NOBODY)
    tree.forget(post, 1, bit(1))
    assert post.sent == [(1, Tree(0, 1, 1, Word(1)))]
    assert (tree.queue, tree.body, tree.number) == ((), None, 3)


def test_messages_travel_with_what_they_carry_and_say_what_they_are() -> None:
    codec: Codec[Message] = Codec(Tree[Word], Ack)
    message = Tree(3, 1, 2, WORD)
    assert codec.decode(codec.encode(message)) == message
    assert describe(message) == "tree(p3's 1, hops 2: word(1))"


@dataclass(slots=True)
class Listener(Node):
    """The tree over a detector; writes down whether it hears everything once and in order."""

    tree: SpanningTree
    detector: PerfectDetector | HiAdsd
    heard: tuple[int, ...]
    """Per root: the last word."""
    misheard: bool = False

    def on_start(self, ctx: Context) -> None:
        if isinstance(self.detector, HiAdsd):
            self.detector.start(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.forget(ctx, self.detector.on_message(ctx, source, message))
        word = self.tree.on_message(ctx, source, message, self.detector.suspects)
        if isinstance(message, Tree) and isinstance(word, Word):
            self.hear(ctx, message.root, word)

    def on_timer(self, ctx: Context, name: str) -> None:
        if name.startswith("tree/"):
            self.tree.on_timer(ctx, name, self.detector.suspects)
        elif isinstance(self.detector, HiAdsd):
            self.forget(ctx, self.detector.on_timer(ctx, name))

    def forget(self, ctx: Context, crashed: tuple[int, ...]) -> None:
        for dead in crashed:
            self.tree.forget(ctx, dead, self.detector.suspects)

    def hear(self, ctx: Context, root: int, word: Word) -> None:
        self.misheard |= word.number != self.heard[root] + 1
        self.heard = (*self.heard[:root], word.number, *self.heard[root + 1 :])


@dataclass(slots=True)
class Crier(Listener, Process):
    """Says some words each time, and is inside when all have been heard by all."""

    words: int = 1
    said: int = 0

    def acquire(self, ctx: Context) -> None:
        for _ in range(self.words):
            self.said += 1
            self.tree.broadcast(ctx, Word(self.said), self.detector.suspects)
        self.enter_if_all_was_heard(ctx)

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        Listener.on_message(self, ctx, source, message)
        self.enter_if_all_was_heard(ctx)

    def on_timer(self, ctx: Context, name: str) -> None:
        Listener.on_timer(self, ctx, name)
        self.enter_if_all_was_heard(ctx)

    def enter_if_all_was_heard(self, ctx: Context) -> None:
        if ctx.phase is WAITING and self.tree.body is None:
            ctx.grant()

    def release(self, ctx: Context) -> None:
        pass


def village(n: int, *criers: int, kind: type[SpanningTree] = SpanningTree, words: int = 1, **rules: Any) -> list[Node]:
    """All listen; those cry."""
    silent = (0,) * n
    trees = [kind(me, n, Rules(timeout=1, **rules)) for me in range(n)]
    return [
        Crier(tree, PerfectDetector(), silent, words=words)
        if me in criers
        else Listener(tree, PerfectDetector(), silent)
        for me, tree in enumerate(trees)
    ]


def misheard(view: View) -> bool:
    """somebody hears a word twice, or misses one"""
    return any(view.node(node).misheard for node in view.ids if view.alive(node))


def entered_too_early(view: View) -> bool:
    """somebody alive has not heard what is said to have been heard by all"""
    living = {node: view.node(node) for node in view.ids if view.alive(node)}
    return any(
        living[listener].heard[crier] != living[crier].said
        for crier in view.believers()
        for listener in living
        if listener != crier
    )


def nobody_waits(view: View) -> bool:
    return not view.waiting()


def hasty(nodes: list[Node], fires: int, crashes: int = 0) -> Model:
    """Timers may fire at any time, so messages are repeated although nothing was lost."""
    return Model(
        nodes=nodes,
        k=len(nodes),
        network=Network.UNORDERED,
        crashes=crashes,
        fires=fires,
        reductions=False,
        never=[misheard, entered_too_early],
    )


def patient(nodes: list[Node], crashes: int) -> Model:
    """A message is repeated only when nothing is under way any more."""
    return Model(
        nodes=nodes,
        k=len(nodes),
        network=Network.UNORDERED,
        crashes=crashes,
        timers=Timers.PUNCTUAL,
        clocks=Clocks(),
        reductions=False,
        never=[misheard, entered_too_early],
        reachable={"all that was said is heard": nobody_waits},
    )


@pytest.mark.parametrize(
    ("model", "states"),
    [
        (hasty(village(3, 2, words=2), fires=2), 1_815),
        (hasty(village(3, 0, 2), fires=1), 5_041),
        (hasty(village(3, 0, 2, retry=Retry.WHOLE_TREE), fires=1), 2_296),
        (hasty(village(4, 0, words=2), fires=1), 1_487),
        (hasty(village(3, 2, words=2), fires=1, crashes=1), 1_715),
    ],
    ids=["two words of one", "one word of two", "the whole tree again", "four", "with a crash"],
)
def test_in_every_run_all_hear_everything_once_and_in_order_however_hastily_it_is_repeated(
    model: Model, states: int
) -> None:
    result = check(model)
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, states)


@pytest.mark.parametrize(
    ("model", "states"),
    [
        (patient(village(3, 0, 1, 2), crashes=2), 9_431),
        (patient(village(4, 0, words=2), crashes=3), 4_841),
        (patient(village(4, 0, words=2, retry=Retry.WHOLE_TREE), crashes=1), 1_361),
    ],
    ids=["three of three", "one of four", "the whole tree again"],
)
def test_in_every_run_all_the_living_come_to_hear_everything_whoever_crashes_at_any_moment(
    model: Model, states: int
) -> None:
    result = check(model)
    assert (result.verdict, result.progress.states, result.liveness) == (Verdict.HOLDS, states, True)


@pytest.mark.parametrize(
    ("mutant", "breaks"),
    [
        (mutants.JudgesByForwarder, misheard),
        (mutants.TakesDifferentForNew, misheard),
        (mutants.CountsOldAcks, entered_too_early),
        (mutants.DoesNotWait, misheard),
    ],
    ids=lambda each: each.__name__,
)
def test_a_tree_without_one_of_its_rules_is_misheard(mutant: type[SpanningTree], breaks: Any) -> None:
    violation = check(hasty(village(3, 2, words=2, kind=mutant), fires=1)).violation
    assert violation is not None
    assert (violation.kind, violation.text) == ("never", breaks.__doc__)


@pytest.mark.parametrize(
    ("nodes", "breaks"),
    [
        (village(4, 0, kind=mutants.AwaitsTheDead), "unreachable"),
        (village(4, 0, retry=Retry.NEVER), "deadlock"),
    ],
    ids=["waits for the dead", "never repeats"],
)
def test_after_a_crash_a_root_that_waits_for_the_dead_or_never_repeats_is_stuck(nodes: list[Node], breaks: str) -> None:
    violation = check(patient(nodes, crashes=1)).violation
    assert violation is not None
    assert violation.kind == breaks


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


@pytest.mark.parametrize("think", [0.0, 0.2], ids=["saturated", "light"])
@pytest.mark.parametrize("part", range(4))
def test_with_a_tenth_of_tree_and_ack_lost_and_up_to_all_but_one_crashing_nobody_is_stuck(
    think: float, part: int
) -> None:
    for seed in range(25 * part, 25 * part + 25):
        n = 2 + seed % 9
        workload = Closed(4 * n, think=Uniform(0.0, 2 * think), hold=Constant(0.0))
        faults = crashes(n, seed, within=0.5)
        scenario = cries(Criers(), n, seed=seed, links=LOSSY, faults=faults, workload=workload, until=100.0)
        assert_that_all_heard_everything_once(living_after(scenario))


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


def test_an_answer_to_an_older_word_is_no_acknowledgement_of_the_present_one() -> None:
    tree, post = SpanningTree(0, 2, Rules(owner_answers=True)), Post(0)
    for number in (1, 2):
        tree.broadcast(post, Word(number), NOBODY)
    for number in (1, 1):
        tree.answered(post, 1, Word(number), NOBODY)
    assert (tree.body, list(members(tree.awaited))) == (Word(2), [1])
    tree.answered(post, 1, Word(2), NOBODY)
    assert tree.body is None


def test_the_same_seed_gives_the_same_trace() -> None:
    workload = Closed(10, think=Constant(0.1), hold=Constant(0.0))
    scenario = cries(Criers(detects=True), 5, seed=3, links=Links(Uniform(0.001, 0.01)), workload=workload)
    assert run(scenario).trace_hash == run(scenario).trace_hash
