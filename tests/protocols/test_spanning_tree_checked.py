"""The spanning tree over a detector, in every run of a small system: exact numbers of states, and its rules."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.mutants import spanning_tree as mutants
from tests.protocols.test_spanning_tree import Word
from trinco.check.model import Clocks, Model, Timers
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import WAITING, Context
from trinco.core.message import Message
from trinco.core.node import Node, Process
from trinco.protocols.broadcast.spanning_tree import Retry, Rules, SpanningTree, Tree
from trinco.protocols.detection.hi_adsd import HiAdsd
from trinco.protocols.detection.perfect import PerfectDetector


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
