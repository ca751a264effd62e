"""Totally ordered multicast by a fixed sequencer: "todos recebem a mesma sequência de mensagens"."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.claims import Network
from trinco.core.context import Context
from trinco.core.message import Codec, Message, describe
from trinco.core.node import Node, Process
from trinco.protocols.broadcast.sequencer import HoldBack, Numbered, Sequencer


class Word(Message, tag="word"):
    text: str


def numbered(number: int, modulus: int = 1000) -> Numbered[Word]:
    return Numbered(number % modulus, 7, Word(f"w{number}"))


def delivered(arrivals: Sequence[Numbered[Word]], numbers: int = 1000) -> list[str]:
    part = HoldBack(numbers)
    bodies = [body for message in arrivals for _, body in part.arrive(message)]
    assert part.early == ()
    return [body.text for body in bodies if isinstance(body, Word)]


@pytest.mark.parametrize("arrivals", list(permutations(range(4))))
def test_in_whatever_order_messages_arrive_they_are_delivered_by_number(arrivals: tuple[int, ...]) -> None:
    assert delivered([numbered(each) for each in arrivals]) == ["w0", "w1", "w2", "w3"]


def test_what_comes_early_waits_for_all_that_precedes_it() -> None:
    part = HoldBack()
    assert part.arrive(numbered(2)) == []
    assert part.arrive(numbered(1)) == []
    assert part.early == (numbered(1), numbered(2))
    assert part.arrive(numbered(0)) == [(7, Word("w0")), (7, Word("w1")), (7, Word("w2"))]
    assert (part.expected, part.early) == (3, ())


@given(st.integers(1, 8), st.data())
def test_numbers_may_begin_again_while_no_more_messages_are_under_way_than_there_are_numbers(
    numbers: int, data: st.DataObject
) -> None:
    """Each step, one of the first ``numbers`` messages that have not arrived does."""
    ahead, arrivals = list(range(30)), []
    missing = 0
    while ahead:
        window = [each for each in ahead if each < missing + numbers]
        arrivals.append(data.draw(st.sampled_from(window)))
        ahead.remove(arrivals[-1])
        missing = min(ahead, default=30)
    assert delivered([numbered(each, numbers) for each in arrivals], numbers) == [f"w{each}" for each in range(30)]


def test_a_numbered_message_travels_with_what_it_carries() -> None:
    codec: Codec[Message] = Codec(Word, Numbered[Word])
    message = numbered(3)
    assert codec.decode(codec.encode(message)) == message
    assert describe(message) == "numbered(3, p7: word(w3))"


@dataclass(slots=True)
class Speaker(Process):
    """Has something to say each time it asks; the rest is for the checker, which wants somebody to enter."""

    sequencer: int

    def acquire(self, ctx: Context) -> None:
        ctx.send(self.sequencer, Word("hello"))
        ctx.grant()

    def release(self, ctx: Context) -> None:
        pass


@dataclass(slots=True)
class Listener(Node):
    order: HoldBack = field(default_factory=HoldBack)
    heard: tuple[int, ...] = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Numbered)
        self.heard += tuple(origin for origin, _ in self.order.arrive(message))


class HearsAsItArrives(Listener):
    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        assert isinstance(message, Numbered)
        self.heard = (*self.heard, message.origin)


def they_disagree(view: View) -> bool:
    """two members have heard different things at the same place"""
    first, second = (view.node(member).heard for member in range(2))
    return any(one != other for one, other in zip(first, second, strict=False))


def audience(listener: type[Listener]) -> Model:
    """Two members, the sequencer, two speakers who speak twice."""
    nodes = [listener(), listener(), Sequencer(2), Speaker(2), Speaker(2)]
    everything = {"everybody hears everything": lambda view: all(len(view.node(each).heard) == 4 for each in range(2))}
    return Model(
        nodes=nodes,
        k=2,
        network=Network.UNORDERED,
        inputs={"acquire": 2},
        never=[they_disagree],
        sometimes=everything,
        reductions=False,
    )


def test_in_no_run_do_two_members_hear_different_sequences() -> None:
    result = check(audience(Listener))
    assert (result.verdict, result.progress.states) == (Verdict.HOLDS, 10_233)


def test_members_that_hold_nothing_back_disagree() -> None:
    violation = check(audience(HearsAsItArrives)).violation
    assert violation is not None
    assert violation.kind == "never"
