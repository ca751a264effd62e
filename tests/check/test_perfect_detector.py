"""The oracle that tells of crashes, as the checker plays it."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trinco.check.counterexample import Counterexample
from trinco.check.model import Model
from trinco.check.replay import replay
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import Context
from trinco.core.event import Kind
from trinco.core.ids import Ids, bit
from trinco.core.message import Message
from trinco.core.node import Node
from trinco.core.trace import read
from trinco.core.verify import verify
from trinco.lab.exhibits.catalogue import find
from trinco.protocols.detection.perfect import CRASHED, PerfectDetector


class Numbered(Message, tag="numbered"):
    number: int


@dataclass(slots=True)
class Witness(Node):
    """Says 1 and 2 to all when it is told to; remembers how often each crash was news to it, and whose words came after
    it."""

    n: int
    notices: tuple[int, ...]
    posthumous: Ids = 0
    detector: PerfectDetector = field(default_factory=PerfectDetector)

    def say(self, ctx: Context) -> None:
        for number in (1, 2):
            ctx.broadcast(Numbered(number), to=range(self.n))

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        suspected = self.detector.suspects & bit(source)
        news = self.detector.on_message(ctx, source, message)
        self.notices = tuple(count + (node in news) for node, count in enumerate(self.notices))
        if suspected and isinstance(message, Numbered):
            self.posthumous |= suspected


@dataclass(slots=True)
class Deaf(Node):
    messages: int = 0

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        self.messages += 1


def witnesses(n: int) -> list[Node]:
    return [Witness(n, (0,) * n) for _ in range(n)]


def watching(network: Network, crashes: int = 2, nodes: list[Node] | None = None, **properties: object) -> Model:
    nodes = nodes or witnesses(3)
    return Model(nodes=nodes, network=network, crashes=crashes, inputs={"say": 1}, **properties)  # type: ignore[arg-type]


def living(view: View) -> list[tuple[int, Witness]]:
    return [(each, view.node(each)) for each in view.ids if view.alive(each)]


def told_falsely(view: View) -> bool:
    """somebody suspects one that is alive"""
    return any(witness.notices[other] for _, witness in living(view) for other, _ in living(view))


def told_twice(view: View) -> bool:
    """somebody was told of the same crash twice, or is about to be"""
    under_way = Counter((to, source) for source, to, message in view.in_flight() if message == CRASHED)
    return any(
        count + under_way[me, dead] > 1 for me, witness in living(view) for dead, count in enumerate(witness.notices)
    )


def never_told(view: View) -> bool:
    """nothing is under way any more, and somebody alive does not know who is dead"""
    dead = sum(bit(each) for each in view.ids if not view.alive(each))
    return view.quiet() and any(witness.detector.suspects != dead for _, witness in living(view))


def told_too_early(view: View) -> bool:
    """somebody was told of a crash before it heard all that the dead one had said"""
    return any(witness.posthumous for _, witness in living(view))


each_network = pytest.mark.parametrize("network", [Network.FIFO, Network.UNORDERED], ids=lambda network: network.name)


def holds(model: Model) -> bool:
    return check(model).verdict is Verdict.HOLDS


@each_network
def test_everybody_alive_is_told_of_every_crash_exactly_once_and_never_falsely(network: Network) -> None:
    def all_told(view: View) -> bool:
        return any(witness.notices.count(1) == 2 for _, witness in living(view))

    never = [told_falsely, told_twice, never_told]
    assert holds(watching(network, never=never, sometimes={"one survivor knows of two crashes": all_told}))


def test_on_fifo_channels_the_news_comes_after_all_that_the_dead_one_said() -> None:
    assert holds(watching(Network.FIFO, never=[told_too_early]))


def test_on_channels_that_reorder_it_may_come_before() -> None:
    assert holds(watching(Network.UNORDERED, sometimes={"news overtakes words": told_too_early}))


@each_network
def test_a_crash_in_the_middle_of_a_multi_send_is_told_to_all(network: Network) -> None:
    """One word got out to one of two, and both know of the crash."""

    def half(view: View) -> bool:
        waiting = {to for source, to, message in view.in_flight() if source == 0 and isinstance(message, Numbered)}
        told = {to for source, to, message in view.in_flight() if source == 0 and message == CRASHED}
        return not view.alive(0) and waiting == {1} and told == {1, 2}

    assert holds(watching(network, crashes=1, never=[never_told], sometimes={"cut short": half}))


@each_network
def test_only_those_with_a_detector_are_told(network: Network) -> None:
    def deaf_one_hears_news(view: View) -> bool:
        """news is under way to one that has no detector"""
        return any(message == CRASHED for _, to, message in view.in_flight() if to == 2)

    nodes = [*witnesses(3)[:2], Deaf()]
    assert holds(watching(network, nodes=nodes, never=[deaf_one_hears_news]))


def test_a_model_without_detectors_has_the_same_states_as_before_there_was_one() -> None:
    """Three that only listen, one crash: nobody dead, or one of them."""
    model = Model(nodes=[Deaf(), Deaf(), Deaf()], crashes=1)
    assert check(model).progress.states == 1 + 3


def test_the_news_is_one_step_more_for_everybody_who_is_told() -> None:
    """Nobody dead; or one of three, and each of the others told or not."""
    model = Model(nodes=witnesses(3), crashes=1, inputs={})
    assert check(model).progress.states == 1 + 3 * 2 * 2


# Counterexamples


def found(network: Network) -> tuple[Model, Counterexample]:
    """A shortest run to a state in which node 2 was told of two crashes."""

    def survivor_knows(view: View) -> bool:
        """node 2 knows that it is alone"""
        return view.alive(2) and view.node(2).notices == (1, 1, 0)

    model = Model(nodes=witnesses(3), network=network, crashes=2, inputs={}, never=[survivor_knows])
    counterexample = check(model).counterexample
    assert counterexample is not None
    return model, counterexample


@each_network
def test_a_run_with_news_of_crashes_is_told_in_words_and_replays(network: Network) -> None:
    model, counterexample = found(network)
    assert sorted(counterexample.script) == [
        "p0 crashes", "p1 crashes", "p2 receives crashed from p0", "p2 receives crashed from p1",
    ]  # fmt: skip
    assert replay(model, counterexample.script) == counterexample.violation


@each_network
def test_in_its_trace_the_news_was_sent_by_nobody_and_caused_by_the_crash(network: Network) -> None:
    events = list(found(network)[1].recording.events())
    crashes = {(event.node, event.clock[event.node]) for event in events if event.kind is Kind.CRASH}
    assert {event.cause for event in events if event.kind is Kind.RECEIVE} == crashes
    assert not [event for event in events if event.kind is Kind.SEND]


def test_the_trace_of_an_exhibit_with_crashes_is_verified_to_the_same_violation(tmp_path: Path) -> None:
    for name in ("slides/S-9", "slides/S-10"):
        result = check(find(name).model())
        assert result.counterexample is not None
        result.counterexample.recording.write(tmp_path / "trace.ndjson")
        findings = verify(*read(tmp_path / "trace.ndjson"), claims=None)
        assert findings.violation == result.counterexample.violation.text
