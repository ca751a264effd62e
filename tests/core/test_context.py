import pytest

from trinco.core.context import IDLE, INSIDE, WAITING, Context, Phase
from trinco.core.errors import ContractBroken
from trinco.core.message import Message


class Hello(Message, tag="hello"):
    pass


class Outbox(Context):
    def __init__(self, me):
        self.me = me
        self.sent = []

    def send(self, to, message):
        self.sent.append((to, message))


@pytest.mark.parametrize(
    ("effect", "arguments"),
    [
        ("send", (1, Hello())),
        ("set_timer", ("again", 1.0)),
        ("cancel_timer", ("again",)),
        ("choose", (2,)),
        ("now", ()),
        ("store", (1,)),
        ("grant", ()),
        ("refuse", ("busy",)),
        ("lost", ("gone",)),
        ("elected", (1,)),
    ],
)
def test_an_effect_that_a_runtime_does_not_have_is_named(effect, arguments):
    with pytest.raises(ContractBroken, match=f"no effect '{effect}'"):
        getattr(Context(), effect)(*arguments)


def test_a_broadcast_goes_to_each_of_the_group_but_oneself_in_the_order_given():
    outbox = Outbox(me=1)
    outbox.broadcast(Hello(), to=[2, 1, 0])
    assert outbox.sent == [(2, Hello()), (0, Hello())]


def test_the_phases_have_the_textbooks_order():
    assert (IDLE, WAITING, INSIDE) == (Phase.IDLE, Phase.WAITING, Phase.INSIDE)
    assert IDLE < WAITING < INSIDE
