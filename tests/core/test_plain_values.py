"""Plain classes with slots are values as good as any: looked into, counted, written."""

from dataclasses import dataclass

import msgspec
import pytest

from tests.core.story import Story
from trinco.core import trace
from trinco.core.errors import ContractBroken
from trinco.core.event import Event, Kind
from trinco.core.instant import Instant
from trinco.core.signed import Signed, forbid_forgery, signatures_in
from trinco.core.snapshot import parts_of_value


class Slip:
    __slots__ = ("until", "vote")

    def __init__(self, vote, until):
        self.vote = vote
        self.until = until


@dataclass(frozen=True)
class Card:
    vote: Signed


class Form(msgspec.Struct, frozen=True):
    vote: Signed


VOTE = Signed(1, "yes")
IDS = ["slots", "dataclass", "struct", "one in the other"]


@pytest.mark.parametrize("value", [Slip(VOTE, None), Card(VOTE), Form(VOTE), (Slip((Card(VOTE),), 3),)], ids=IDS)
def test_a_signature_is_found_wherever_a_value_keeps_it(value):
    assert signatures_in(value) == {VOTE}
    with pytest.raises(ContractBroken):
        forbid_forgery(0, (), (value,))


@pytest.mark.parametrize("atom", [3, "text", None, (1, 2), frozenset({1}), Instant(4), Kind.SEND], ids=repr)
def test_an_atom_has_no_parts(atom):
    assert not parts_of_value(type(atom))


def test_a_plain_value_in_the_state_is_written_by_its_slots():
    event = Event(1.0, 0, Kind.CRASH, clock=(1,), state={"entry": Slip(7, Instant(2.5))})
    *_, written = trace.lines(Story(1).header, [event])
    assert msgspec.json.decode(written)["state"] == {"entry": {"until": 2.5, "vote": 7}}
