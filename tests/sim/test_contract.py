"""What breaks the contract breaks it in the simulator and in the checker, in the same words."""

from dataclasses import dataclass, field

import pytest

from trinco.check import Model, check
from trinco.core.claims import Claims, Fairness, Network
from trinco.core.errors import ContractBroken, UsageError
from trinco.core.formula import Formula
from trinco.core.message import Message
from trinco.core.node import Process
from trinco.sim import Scenario, run, saturated

ANYTHING = Formula("0..inf")
CLAIMS = Claims(
    paper="made up", network=Network.FIFO, messages_per_entry=ANYTHING, delay=ANYTHING, fairness=Fairness.NONE
)


class Note(Message, tag="note"):
    pass


class Heap(Message, tag="heap"):
    things: list


@dataclass(slots=True)
class Quiet(Process):
    def acquire(self, ctx):
        ctx.grant()

    def release(self, ctx):
        """Leaves."""


@dataclass(slots=True)
class Sends(Quiet):
    to: object
    message: object

    def acquire(self, ctx):
        ctx.send(self.to, self.message)


@dataclass(slots=True)
class Broadcasts(Sends):
    def acquire(self, ctx):
        ctx.broadcast(self.message, to=(self.to,))


@dataclass(slots=True)
class SendsToAList(Quiet):
    def acquire(self, ctx):
        ctx.send([1], Note())


@dataclass(slots=True)
class SendsAList(Quiet):
    def acquire(self, ctx):
        ctx.send(1, Heap([1]))


@dataclass(slots=True)
class Chooses(Quiet):
    options: object

    def acquire(self, ctx):
        ctx.choose(self.options)


@dataclass
class Hides(Quiet):
    def acquire(self, ctx):
        self.turns = getattr(self, "turns", 0) + 1
        ctx.grant()


class ForgetsSlots(Quiet):
    def acquire(self, ctx):
        self.turns = 1
        ctx.grant()


@dataclass(slots=True)
class CannotAsk(Process):
    def release(self, ctx):
        """Leaves."""


class NoNode:
    def acquire(self, ctx):
        ctx.grant()


def checked(node):
    check(Model(nodes=[node, Quiet(), Quiet()], k=3, inputs={"acquire": 1}))


def simulated(trace):
    def world(node):
        nodes = [node, Quiet(), Quiet()]
        run(Scenario(protocol="?", build=lambda n: nodes, claims=CLAIMS, n=3, workload=saturated(6), trace=trace))

    return world


WORLDS = {"checker": checked, "simulator": simulated(trace=True), "quiet simulator": simulated(trace=False)}
in_every_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())


@in_every_world
@pytest.mark.parametrize("kind", [Sends, Broadcasts])
@pytest.mark.parametrize("to", [-1, 3, 99, "p1", None])
def test_a_message_to_nobody_is_told_with_both_ends(world, kind, to):
    with pytest.raises(ContractBroken, match=r"p0 sent note to p.*no such node") as caught:
        world(kind(to, Note()))
    assert f"to p{to}," in str(caught.value)


@in_every_world
def test_a_list_is_no_receiver(world):
    with pytest.raises(ContractBroken, match=r"p0 sent note to p\[1\], and there is no such node"):
        world(SendsToAList())


@in_every_world
@pytest.mark.parametrize("kind", [Sends, Broadcasts])
@pytest.mark.parametrize("message", ["hello", (1, 2), None])
def test_what_is_no_message_cannot_be_sent(world, kind, message):
    with pytest.raises(ContractBroken, match=f"a {type(message).__name__} is no message") as caught:
        world(kind(1, message))
    assert f"p0 sent {message!r} to p1" in str(caught.value)


@in_every_world
def test_what_is_no_message_cannot_be_sent_to_oneself_either(world):
    with pytest.raises(ContractBroken, match="p0 sent 'hello' to p0"):
        world(Sends(0, "hello"))


@in_every_world
@pytest.mark.parametrize("options", [0, -1, 1.5, None])
def test_a_choice_is_among_one_or_more(world, options):
    with pytest.raises(ContractBroken, match=f"p0 is to choose one of {options}"):
        world(Chooses(options))


@in_every_world
@pytest.mark.parametrize("kind", [Hides, ForgetsSlots])
def test_state_that_is_no_field_is_told_with_its_name(world, kind):
    with pytest.raises(ContractBroken, match="p0 keeps 'turns', which is no field: declare it"):
        world(kind())


@in_every_world
def test_a_process_that_cannot_ask_is_told_which_method_it_lacks(world):
    with pytest.raises(ContractBroken, match="CannotAsk has no method acquire"):
        world(CannotAsk())


@in_every_world
def test_a_class_that_is_no_node_is_told_what_to_derive_from(world):
    with pytest.raises(UsageError, match=r"p0 is a NoNode, which is no node: derive .*Process"):
        world(NoNode())


@dataclass(slots=True)
class Part:
    queue: object = ()


@dataclass(slots=True)
class Keeps(Quiet):
    thing: object = None
    part: Part = field(default_factory=Part)


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (Keeps([]), "p0.thing is a list"),
        (Keeps({}), "p0.thing is a dict"),
        (Keeps(set()), "p0.thing is a set"),
        (Keeps((1, ([],))), "p0.thing is a tuple with a tuple with a list in it in it"),
        (Keeps(part=Part([])), "p0.part.queue is a list"),
        (SendsAList(), "p0 sent heap([1]), whose things is a list"),
    ],
)
def test_state_that_can_change_in_place_is_told_with_the_field_before_it_is_searched(node, told):
    with pytest.raises(ContractBroken, match="never change") as caught:
        checked(node)
    assert told in str(caught.value)


def test_a_misspelt_input_is_told_with_what_was_meant():
    with pytest.raises(UsageError, match="no node has an input 'aquire'; did you mean 'acquire'"):
        Model(nodes=[Quiet()], inputs={"aquire": 2})


def test_the_checker_does_not_call_a_protocol_right_that_hides_its_state():
    @dataclass
    class EntersUnasked(Quiet):
        def acquire(self, ctx):
            ctx.grant()

        def release(self, ctx):
            if getattr(self, "left_before", False):
                ctx.grant()
            self.left_before = True

    with pytest.raises(ContractBroken, match="left_before"):
        check(Model(nodes=[EntersUnasked()], inputs={"acquire": 2}))
