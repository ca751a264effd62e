"""Signing and vouching, with symbols and with keys: what verifies, for whom, and what does not."""

import msgspec
import pytest

from tests.protocols.bakery.bench import Keyring, tampered
from tests.protocols.bakery.desk import LOCK
from trinco.core.authentication import REMEMBERED, Symbolic
from trinco.core.errors import ContractBroken, KeysMissing
from trinco.core.signed import Signed, forbid_forgery
from trinco.protocols.bakery.certificates import Suspicion, Ticket

BODY = Ticket(LOCK, 5)
change = msgspec.structs.replace


def symbols(me):
    return Symbolic(me)


def keys(me):
    return Keyring(me, 4)


@pytest.fixture(params=[symbols, keys], ids=["symbols", "keys"])
def made(request):
    """Four nodes that can sign."""
    return [request.param(me) for me in range(4)]


def test_everybody_can_verify_what_is_signed(made) -> None:
    signed = made[1].sign(BODY)
    assert (signed.signer, signed.body, signed.readers) == (1, BODY, ())
    assert [each.verify(signed) for each in made] == [True] * 4


def test_only_readers_can_verify_what_is_vouched_for(made) -> None:
    vouched = made[1].vouch(BODY, (2, 0))
    assert (vouched.signer, vouched.body, vouched.readers) == (1, BODY, (0, 2))
    assert [each.verify(vouched) for each in made] == [True, False, True, False]


def test_one_can_vouch_for_something_to_oneself(made) -> None:
    assert made[1].verify(made[1].vouch(BODY, (0, 1)))


@pytest.mark.parametrize("rubbish", [None, 3, BODY, "yes", (), object()], ids=lambda each: type(each).__name__)
def test_what_is_no_statement_does_not_verify(made, rubbish) -> None:
    assert not made[0].verify(rubbish)


def test_nobody_can_add_a_reader() -> None:
    """The rule against forgery knows readers."""
    vouched = Symbolic(1).vouch(BODY, (0, 2))
    forbid_forgery(0, known=[vouched], made=[vouched])
    for forged in (change(vouched, readers=(0, 2, 3)), change(vouched, readers=()), change(vouched, signer=2)):
        with pytest.raises(ContractBroken):
            forbid_forgery(0, known=[vouched], made=[forged])


def variants(signed, other):
    """What somebody without the key could make of it, ``other`` being genuine too."""
    proof = signed.proofs[0]
    return {
        "a bit changed": tampered(signed),
        "a byte cut off": change(signed, proofs=(proof[:-1], *signed.proofs[1:])),
        "no proof": change(signed, proofs=()),
        "an empty proof": change(signed, proofs=(b"",) * len(signed.proofs)),
        "one too many": change(signed, proofs=(*signed.proofs, proof)),
        "text": change(signed, proofs=("x",) * len(signed.proofs)),
        "no tuple": change(signed, proofs=None),
        "another body": change(signed, body=Ticket(LOCK, 6)),
        "another lock": change(signed, body=Ticket("lock/1", 5)),
        "another kind": change(signed, body=Suspicion(LOCK, 5, 5)),
        "what cannot be signed": change(signed, body=object()),
        "a number that no wire has": change(signed, body=Ticket(LOCK, 2**70)),
        "another signer": change(signed, signer=2),
        "nobody": change(signed, signer=9),
        "no number for a signer": change(signed, signer=[1]),
        "the proof of another": change(signed, proofs=other.proofs),
    }


@pytest.mark.parametrize("name", variants(Signed(1, BODY, (), (b"x",)), Signed(1, BODY)))
@pytest.mark.parametrize("vouched", [False, True], ids=["signed", "vouched"])
def test_nothing_else_than_what_the_key_has_made_verifies(name, vouched) -> None:
    author, reader = keys(1), keys(0)
    made = author.vouch(BODY, (0, 2)) if vouched else author.sign(BODY)
    other = author.vouch(Ticket(LOCK, 7), (0, 2)) if vouched else author.sign(Ticket(LOCK, 7))
    assert reader.verify(made)
    assert not reader.verify(variants(made, other)[name])


def test_what_one_has_said_to_the_other_is_not_what_the_other_has_said() -> None:
    """Two nodes share one key: a MAC without its direction could be sent back."""
    vouched = keys(1).vouch(BODY, (0,))
    assert not keys(1).verify(change(vouched, signer=0, readers=(1,)))


def test_a_vector_is_no_signature_and_a_signature_no_vector() -> None:
    vouched, signed = keys(1).vouch(BODY, (0,)), keys(1).sign(BODY)
    assert not keys(0).verify(change(vouched, readers=()))
    assert not keys(0).verify(change(signed, readers=(0,)))


def test_a_genuine_signature_is_verified_once_and_not_all_are_remembered() -> None:
    class Counting:
        calls = 0

        def verify(self, message, signature):
            self.calls += 1
            return signature == b"good"

    key, reader = Counting(), keys(0)
    reader._public = {1: key}
    for proof, genuine in ((b"good", True), (b"good", True), (b"bad", False), (b"bad", False)):
        assert reader.verify(Signed(1, BODY, (), (proof,))) is genuine
    assert key.calls == 3, "what is false is not kept: there is no end of it"
    for number in range(REMEMBERED):
        assert reader.verify(Signed(1, Ticket(LOCK, 10 + number), (), (b"good",)))
    assert len(reader._genuine) == REMEMBERED
    key.calls = 0
    assert reader.verify(Signed(1, BODY, (), (b"good",)))
    assert key.calls == 1, "it was the oldest"


def test_what_has_no_tag_is_not_signed() -> None:
    with pytest.raises(ContractBroken, match="no tag"):
        keys(1).sign("yes")


def test_one_cannot_vouch_without_a_key() -> None:
    with pytest.raises(KeysMissing, match="p1 shares no key with p9"):
        keys(1).vouch(BODY, (9,))
