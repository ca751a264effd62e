from dataclasses import dataclass

import pytest

from trinco.core.context import Context
from trinco.core.errors import ContractBroken
from trinco.core.message import Message
from trinco.core.signed import Signed, forbid_forgery, signatures_in

BY_ONE = Signed(1, "yes")
BY_TWO = Signed(2, "no")


class Vote(Message, tag="vote"):
    signed: Signed


@dataclass(slots=True)
class Notes:
    best: Signed | None = None


@dataclass(slots=True)
class Keeper:
    notes: Notes
    seen: frozenset[Signed] = frozenset()


@dataclass
class Loose:
    name: int
    kept: Signed


class Pen(Context):
    def __init__(self, me):
        self.me = me


def test_a_signature_names_its_signer_and_verifies():
    pen = Pen(3)
    signed = pen.sign("yes")
    assert (signed.signer, signed.body) == (3, "yes")
    assert pen.verify(signed)


def test_what_carries_no_signature_does_not_verify():
    assert not Pen(3).verify("yes")


@pytest.mark.parametrize(
    "value",
    [
        BY_ONE,
        Vote(BY_ONE),
        (1, (BY_ONE, None)),
        frozenset({BY_ONE}),
        [BY_ONE],
        Keeper(Notes(BY_ONE)),
        Keeper(Notes(), frozenset({BY_ONE})),
        Loose(1, BY_ONE),
        (Loose, 1, BY_ONE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_signature_is_found_wherever_a_value_can_hold_it(value):
    assert signatures_in(value) == {BY_ONE}


def test_a_signature_within_a_signature_is_found_too():
    outer = Signed(2, (BY_ONE, "seen"))
    assert signatures_in(outer) == {outer, BY_ONE}


@pytest.mark.parametrize("value", [None, 3, "text", (), Keeper(Notes())], ids=repr)
def test_a_value_without_signatures_has_none(value):
    assert signatures_in(value) == frozenset()


def test_passing_on_a_signature_that_was_shown_is_no_forgery():
    forbid_forgery(0, known=[Vote(BY_ONE)], made=[Vote(BY_ONE), Keeper(Notes(BY_ONE))])


def test_signing_for_oneself_is_no_forgery():
    forbid_forgery(1, known=[], made=[Vote(BY_ONE)])


def test_a_signature_of_somebody_else_that_was_never_shown_is_a_forgery():
    with pytest.raises(ContractBroken, match=r"p0 forged .*signature of p2"):
        forbid_forgery(0, known=[Vote(BY_ONE)], made=[Vote(BY_TWO)])


def test_another_body_under_a_known_signer_is_a_forgery():
    with pytest.raises(ContractBroken):
        forbid_forgery(0, known=[BY_ONE], made=[Signed(1, "changed")])


def test_a_forgery_hidden_in_ones_own_signature_is_a_forgery():
    with pytest.raises(ContractBroken):
        forbid_forgery(0, known=[], made=[Signed(0, (BY_TWO,))])


def test_taking_the_inner_signature_out_of_one_that_was_shown_is_no_forgery():
    forbid_forgery(0, known=[Signed(2, (BY_ONE,))], made=[BY_ONE])
