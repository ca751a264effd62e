import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.core.errors import DamagedData, TrincoError, UsageError
from trinco.leases.keys import (
    Ed25519Key,
    Ed25519PublicKey,
    Keyring,
    KeysMissing,
    MacKey,
    dump,
    export,
    is_fingerprint,
    load,
    parse_key,
)

SECRET = bytes(range(32))
MAC = MacKey(SECRET)
PAIR = Ed25519Key(SECRET)
PUBLIC = PAIR.verifier()
OTHER_MAC = MacKey(b"o" * 32)
OTHER_PAIR = Ed25519Key(b"o" * 32)
FULL = Keyring(PAIR, (MAC, OTHER_PAIR.verifier()))

entropy = st.binary(min_size=32, max_size=32)
signing_keys = st.sampled_from([MacKey, Ed25519Key]).flatmap(entropy.map)
verifiers = signing_keys.map(lambda key: key.verifier())
keyrings = st.builds(Keyring, st.none() | signing_keys, st.lists(verifiers, max_size=4).map(tuple))
both_kinds = pytest.mark.parametrize("kind", [MacKey, Ed25519Key])


@given(key=signing_keys, message=st.binary())
def test_a_signature_verifies_by_the_key_and_by_what_was_handed_out(key, message):
    signature = key.sign(message)
    assert key.verify(message, signature)
    assert parse_key(export(key)).verify(message, signature)


@given(
    key=signing_keys, message=st.binary(min_size=1, max_size=64), place=st.integers(0, 10**6), flip=st.integers(1, 255)
)
def test_a_flipped_byte_in_message_or_signature_does_not_verify(key, message, place, flip):
    signature = key.sign(message)
    both = bytearray(message + signature)
    both[place % len(both)] ^= flip
    assert not key.verify(bytes(both[: len(message)]), bytes(both[len(message) :]))


@both_kinds
def test_a_signature_of_another_key_does_not_verify(kind):
    assert not kind(b"a" * 32).verify(b"message", kind(b"b" * 32).sign(b"message"))


@pytest.mark.parametrize("key", [MAC, PAIR, PUBLIC], ids=repr)
@pytest.mark.parametrize("length", [0, 1, 31, 33, 63, 65, 1000])
def test_a_signature_of_the_wrong_length_does_not_verify(key, length):
    assert not key.verify(b"message", b"s" * length)


def test_a_public_key_that_is_no_point_of_the_curve_verifies_nothing():
    assert not Ed25519PublicKey(b"\xff" * 32).verify(b"message", PAIR.sign(b"message"))
    assert not Ed25519PublicKey(bytes(32)).verify(b"message", bytes(64))


@pytest.mark.parametrize("kind", [MacKey, Ed25519Key, Ed25519PublicKey])
@pytest.mark.parametrize("material", [b"", b"s" * 31, b"s" * 33, "s" * 32], ids=len)
def test_a_key_is_made_of_32_bytes_and_of_nothing_else(kind, material):
    with pytest.raises(UsageError, match="32 bytes"):
        kind(material)


def test_fingerprints_tell_the_kind_and_are_the_same_for_both_halves():
    assert MAC.fingerprint.startswith("m-")
    assert PAIR.fingerprint.startswith("e-")
    assert PAIR.fingerprint == PUBLIC.fingerprint
    assert is_fingerprint(MAC.fingerprint)
    assert is_fingerprint(PAIR.fingerprint)


@pytest.mark.parametrize("name", ["", "m-", "m-0123456789abcde", "m_0123456789abcdef", "M-0123456789abcdef", 7, None])
def test_other_things_are_no_fingerprints(name):
    assert not is_fingerprint(name)


def test_fingerprints_do_not_change_between_versions():
    assert (MAC.fingerprint, PAIR.fingerprint) == ("m-ba1e7562c15419b3", "e-7db575bc4d479f22")


def test_different_keys_have_different_fingerprints():
    keys = [kind(bytes([number]) * 32) for number in range(20) for kind in (MacKey, Ed25519Key)]
    assert len({key.fingerprint for key in keys}) == len(keys)


def shows_secret(text: str) -> bool:
    return any(form in text for form in (SECRET.hex(), repr(SECRET)[2:-1], SECRET.hex()[:8], str(list(SECRET))[1:-1]))


@pytest.mark.parametrize(
    "value", [MAC, PAIR, Keyring(MAC), Keyring(PAIR, (MAC,)), [MAC, PAIR]], ids=lambda value: type(value).__name__
)
def test_nothing_that_prints_a_key_prints_its_secret(value):
    assert not any(shows_secret(text) for text in (repr(value), str(value), f"{value}", f"{value!a}"))


def test_a_key_prints_its_fingerprint():
    assert MAC.fingerprint in repr(MAC)
    assert PAIR.fingerprint in repr(Keyring(PAIR))


@both_kinds
def test_equal_secrets_make_equal_keys(kind):
    assert kind(SECRET) == kind(SECRET)
    assert len({kind(SECRET), kind(SECRET), kind(b"o" * 32)}) == 2
    assert pickle.loads(pickle.dumps(kind(SECRET))) == kind(SECRET)


def test_a_keyring_without_its_own_key_says_what_to_do():
    with pytest.raises(KeysMissing, match="no key of our own") as raised:
        Keyring(None, (PUBLIC,)).signing_key()
    assert isinstance(raised.value, TrincoError)


def test_a_keyring_signs_with_its_own_key():
    assert FULL.signing_key() == PAIR


def test_a_keyring_finds_its_own_and_its_trusted_keys_and_no_others():
    assert all(FULL.find(key.fingerprint) is not None for key in (PAIR, MAC, OTHER_PAIR))
    assert FULL.find(OTHER_MAC.fingerprint) is None
    assert Keyring().find(MAC.fingerprint) is None


def test_trusting_a_key_pair_keeps_the_public_half_only():
    assert Keyring(MAC).trust(PAIR) == Keyring(MAC, (PUBLIC,))


def test_trusting_a_key_again_changes_nothing():
    assert FULL.trust(MAC).trust(PUBLIC) == FULL


@given(keyring=keyrings, new=signing_keys)
def test_after_a_rotation_the_new_key_signs_and_every_old_signature_still_verifies(keyring, new):
    rotated = keyring.rotate(new)
    assert rotated.signing_key() == new
    assert all(rotated.find(key.fingerprint) is not None for key in keyring.trusted)
    if keyring.own is not None:
        assert rotated.find(keyring.own.fingerprint).verify(b"message", keyring.own.sign(b"message"))


def test_a_rotation_forgets_the_old_seed():
    assert Keyring(PAIR).rotate(OTHER_PAIR) == Keyring(OTHER_PAIR, (PUBLIC,))
    assert SECRET.hex() not in dump(Keyring(PAIR).rotate(OTHER_PAIR))


def test_rotating_to_a_key_that_was_trusted_moves_it():
    assert Keyring(MAC, (PUBLIC,)).rotate(PAIR) == Keyring(PAIR, (MAC,))


def test_rotating_to_the_key_in_use_changes_nothing():
    assert FULL.rotate(PAIR) == FULL


@given(keyring=keyrings)
def test_a_keyring_reads_back_as_it_was_written(keyring):
    assert load(dump(keyring)) == keyring


@given(key=signing_keys)
def test_an_exported_key_is_one_word_that_reads_back(key):
    line = export(key)
    assert line.split() == [line]
    assert parse_key(f"  {line}\n") == key.verifier()


def test_the_line_to_hand_out_holds_the_secret_only_where_it_is_shared():
    assert export(PAIR) == export(PUBLIC)
    assert SECRET.hex() not in export(PAIR)
    assert export(MAC) == f"trinco-mac-secret:{MAC.fingerprint}:{SECRET.hex()}"


SECRET_LINES = {kind: MAC.line().replace(MacKey.kind, kind) for kind in ("trinco-mac-secret", "trinco-rsa", "")}
BAD_LINES = {
    "nothing": "",
    "another kind": SECRET_LINES["trinco-rsa"],
    "no kind": SECRET_LINES[""],
    "cut": MAC.line()[:-1],
    "one digit more": MAC.line() + "0",
    "upper case": MAC.line().replace("0a0b", "0A0B"),
    "a space within": MAC.line().replace("0a0b", "0a 0b"),
    "no hex": MAC.line()[:-2] + "zz",
    "not ASCII": MAC.line()[:-2] + "é1",
    "mistyped": MAC.line().replace("0a0b", "0a0c"),
    "another's fingerprint": MAC.line().replace(MAC.fingerprint, OTHER_MAC.fingerprint),
    "only a kind": "trinco-ed25519-public",
    "a secret taken for a public key": MAC.line().replace(MacKey.kind, Ed25519PublicKey.kind),
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_bad_line_is_refused_without_repeating_it(line):
    with pytest.raises(DamagedData) as refused:
        parse_key(line)
    assert not shows_secret(str(refused.value))


def keyring_text(**changes: object) -> str:
    return json.dumps({**json.loads(dump(Keyring(MAC))), **changes})


BAD_KEYRINGS = {
    "nothing": "",
    "cut": dump(Keyring(MAC))[:-5],
    "a list": json.dumps([MAC.line()]),
    "a line": MAC.line(),
    "deep nesting": "[" * 100_000,
    "a huge number": "9" * 10_000,
    "no version": json.dumps({"own": MAC.line(), "trusted": []}),
    "a newer version": keyring_text(v=2),
    "a version that is no number": keyring_text(v=True),
    "a version that is no whole number": keyring_text(v=1.0),
    "two keys of its own": keyring_text().replace("{", f'{{"own": "{PAIR.line()}", ', 1),
    "a version of text": keyring_text(v="1"),
    "no own": json.dumps({"v": 1, "trusted": [MAC.line()]}),
    "own a number": keyring_text(own=1),
    "own a list": keyring_text(own=[MAC.line()]),
    "own public": keyring_text(own=PUBLIC.line()),
    "own mistyped": keyring_text(own=BAD_LINES["mistyped"]),
    "trusted a line": keyring_text(trusted=MAC.line()),
    "trusted a number": keyring_text(trusted=[1]),
    "trusted mistyped": keyring_text(trusted=[PUBLIC.line(), BAD_LINES["cut"]]),
    "trusted with a seed": keyring_text(trusted=[PAIR.line()]),
    "a field more": keyring_text(also=MAC.line()),
}


@pytest.mark.parametrize("text", BAD_KEYRINGS.values(), ids=BAD_KEYRINGS.keys())
def test_a_damaged_keyring_is_refused_without_repeating_it(text):
    with pytest.raises(DamagedData) as refused:
        load(text)
    assert not shows_secret(str(refused.value))


@given(text=st.text())
def test_arbitrary_text_is_no_keyring_and_no_key(text):
    with pytest.raises(DamagedData):
        load(text)
    with pytest.raises(DamagedData):
        parse_key(text)


def test_a_damaged_keyring_says_which_key_is_wrong():
    with pytest.raises(DamagedData, match="trusted key 2"):
        load(BAD_KEYRINGS["trusted mistyped"])


def test_a_keyring_of_a_newer_trinco_says_so():
    with pytest.raises(DamagedData, match="newer trinco"):
        load(BAD_KEYRINGS["a newer version"])
