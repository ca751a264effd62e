import base64
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.core.errors import UsageError
from trinco.leases.entry import MAX_BASES, MAX_BYTES, TAG, Entry, Kind, Outcome, Reading, open_entry, seal
from trinco.leases.keys import Ed25519Key, Keyring, MacKey

MAC = MacKey(b"m" * 32)
PAIR = Ed25519Key(b"p" * 32)
STRANGER = MacKey(b"s" * 32)
KEYRING = Keyring(MAC, (PAIR.verifier(),))
INCARNATION = "0123456789abcdef" * 2
BASES = tuple((base_id, bytes([place] * 16)) for place, base_id in enumerate(("redis-a", "redis-b", "pg-c", "s3-d")))
ENTRY = Entry(
    resource="nightly",
    bases=BASES,
    owner="host-17/" + INCARNATION,
    attempt=7,
    ttl=30.0,
    token=1_760_000_000_000_000,
    kind=Kind.HELD,
    ticket=41,
)

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.isprintable)
short_names = st.text("abcxyz-/. é", min_size=1, max_size=8)
entries = st.builds(
    Entry,
    resource=names,
    bases=st.dictionaries(short_names, st.binary(min_size=16, max_size=16), min_size=1, max_size=7).map(
        lambda bases: tuple(bases.items())
    ),
    owner=names.map(lambda client: f"{client}/{INCARNATION}"),
    attempt=st.integers(0, 2**53 - 1),
    ttl=st.floats(0, 2**53, exclude_min=True, exclude_max=True),
    token=st.none() | st.integers(0, 2**53 - 1),
    kind=st.sampled_from(Kind),
    ticket=st.none() | st.integers(0, 2**52 - 1),
)
PATHS = {"PYTHONPATH": os.pathsep.join(sys.path)}
both_keys = pytest.mark.parametrize("key", [MAC, PAIR], ids=["mac", "ed25519"])


def read(data: bytes, keyring: Keyring = KEYRING) -> Reading:
    return open_entry(data, keyring, "nightly", "pg-c")


def base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def signed(body: bytes) -> bytes:
    """What a client with a good key and bad manners could store."""
    return base64url(body) + b"." + base64url(MAC.sign(TAG + body))


def body_of(data: bytes) -> bytes:
    body = data.partition(b".")[0]
    return base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4))


def compact(fields: object) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


FIELDS = json.loads(body_of(seal(ENTRY, MAC)))


@given(entry=entries, key=st.sampled_from([MAC, PAIR]))
def test_what_is_sealed_reads_back_at_every_base_it_lists(entry, key):
    data = seal(entry, key)
    for base_id, nonce in entry.bases:
        reading = open_entry(data, KEYRING, entry.resource, base_id)
        assert (reading.outcome, reading.entry, reading.fingerprint) == (Outcome.VALID, entry, key.fingerprint)
        assert reading.entry.nonce_at(base_id) == nonce


@given(data=st.binary(max_size=300))
def test_arbitrary_bytes_are_unknown_and_raise_nothing(data):
    assert read(data).outcome is Outcome.UNKNOWN


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(name=st.sampled_from(sorted(FIELDS)), value=json_values)
def test_a_well_signed_entry_with_any_field_replaced_is_valid_only_if_seal_could_have_written_it(name, value):
    data = signed(compact({**FIELDS, name: value}))
    reading = read(data)
    assert reading.outcome is not Outcome.VALID or seal(reading.entry, MAC) == data


@given(key=st.sampled_from([MAC, PAIR]), place=st.integers(0, 10**6), flip=st.integers(1, 255))
def test_an_entry_with_one_byte_flipped_is_never_valid(key, place, flip):
    data = bytearray(seal(ENTRY, key))
    data[place % len(data)] ^= flip
    assert read(bytes(data)).outcome is not Outcome.VALID


@both_keys
def test_no_bit_of_the_signature_is_spare(key):
    data = seal(ENTRY, key)
    for last in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_":
        assert (read(data[:-1] + bytes([last])).outcome is Outcome.VALID) == (last == data[-1])


@both_keys
def test_a_cut_or_lengthened_entry_is_never_valid(key):
    data = seal(ENTRY, key)
    assert all(read(data[:length]).outcome is not Outcome.VALID for length in range(len(data)))
    assert all(read(data + more).outcome is not Outcome.VALID for more in (b"A", b"=", b"\n", b".", b".AAAA", data))


@both_keys
def test_an_entry_that_names_our_key_with_another_signature_is_forged(key):
    body = body_of(seal(ENTRY, key))
    reading = read(base64url(body) + b"." + base64url(STRANGER.sign(TAG + body)))
    assert (reading.outcome, reading.entry, reading.fingerprint) == (Outcome.FORGED, None, key.fingerprint)


def test_a_larger_token_needs_a_signature():
    raised = compact({**FIELDS, "token": FIELDS["token"] + 1})
    signature = seal(ENTRY, MAC).partition(b".")[2]
    assert read(base64url(raised) + b"." + signature).outcome is Outcome.FORGED


def test_an_entry_of_a_key_we_lack_is_unknown_and_says_which_key():
    reading = read(seal(ENTRY, STRANGER))
    assert (reading.outcome, reading.entry, reading.fingerprint) == (Outcome.UNKNOWN, None, STRANGER.fingerprint)
    assert STRANGER.fingerprint in reading.reason


def test_an_entry_becomes_valid_once_its_key_is_trusted():
    data = seal(ENTRY, STRANGER)
    assert read(data, KEYRING.trust(STRANGER)).entry == ENTRY


def test_an_entry_signed_before_a_rotation_stays_valid_and_one_signed_after_is_unknown_to_the_others():
    rotated = KEYRING.rotate(STRANGER)
    assert read(seal(ENTRY, MAC), rotated).outcome is Outcome.VALID
    assert read(seal(ENTRY, rotated.signing_key()), KEYRING).outcome is Outcome.UNKNOWN


@both_keys
def test_an_entry_pasted_into_another_resource_proves_nothing_and_counts_as_held(key):
    reading = open_entry(seal(ENTRY, key), KEYRING, "weekly", "pg-c")
    assert (reading.outcome, reading.entry) == (Outcome.UNKNOWN, None)
    assert "another resource" in reading.reason


@both_keys
def test_an_entry_at_a_base_that_it_does_not_list_proves_nothing_and_counts_as_held(key):
    reading = open_entry(seal(ENTRY, key), KEYRING, "nightly", "elsewhere")
    assert (reading.outcome, reading.entry) == (Outcome.UNKNOWN, None)
    assert "other bases" in reading.reason


def test_a_pasted_entry_of_a_key_we_lack_is_unknown():
    assert open_entry(seal(ENTRY, STRANGER), KEYRING, "weekly", "pg-c").outcome is Outcome.UNKNOWN


BODY = compact(FIELDS)
ODD_BODIES = {
    "another version": compact({**FIELDS, "v": 2}),
    "version true": compact({**FIELDS, "v": True}),
    "no version": compact({name: value for name, value in FIELDS.items() if name != "v"}),
    "no ticket": compact({name: value for name, value in FIELDS.items() if name != "ticket"}),
    "one field more": compact({**FIELDS, "also": 1}),
    "a key twice": BODY.replace(b'"attempt":7', b'"attempt":6,"attempt":7'),
    "spaces": json.dumps(FIELDS, sort_keys=True).encode(),
    "unsorted": json.dumps(dict(reversed(FIELDS.items())), separators=(",", ":")).encode(),
    "a newline after": BODY + b"\n",
    "needless escape": BODY.replace(b'"nightly"', b'"\\u006eightly"'),
    "an escape for what UTF-8 says": BODY.replace(b"host-17", b"h\\u00f4st"),
    "not UTF-8": BODY.replace(b"host-17", b"\xff\xfe"),
    "UTF-16": BODY.decode().encode("utf-16"),
    "a whole ttl": BODY.replace(b'"ttl":30.0', b'"ttl":30'),
    "ttl NaN": BODY.replace(b'"ttl":30.0', b'"ttl":NaN'),
    "ttl infinite": BODY.replace(b'"ttl":30.0', b'"ttl":1e999'),
    "ttl zero": BODY.replace(b'"ttl":30.0', b'"ttl":0.0'),
    "attempt true": compact({**FIELDS, "attempt": True}),
    "attempt negative": compact({**FIELDS, "attempt": -1}),
    "a huge attempt": BODY.replace(b'"attempt":7', b'"attempt":' + b"9" * 2000),
    "a ticket out of range": compact({**FIELDS, "ticket": 2**52}),
    "a token of text": compact({**FIELDS, "token": "1"}),
    "a kind unheard of": compact({**FIELDS, "kind": "lent"}),
    "no bases": compact({**FIELDS, "bases": []}),
    "bases a number": compact({**FIELDS, "bases": 4}),
    "bases a mapping": compact({**FIELDS, "bases": dict(FIELDS["bases"])}),
    "a base twice": compact({**FIELDS, "bases": [FIELDS["bases"][0], FIELDS["bases"][0]]}),
    "a base without nonce": compact({**FIELDS, "bases": [["pg-c"]]}),
    "a nonce null": compact({**FIELDS, "bases": [["pg-c", None]]}),
    "a short nonce": compact({**FIELDS, "bases": [["pg-c", "00" * 15]]}),
    "a nonce in capitals": compact({**FIELDS, "bases": [["pg-c", "AB" * 16]]}),
    "a base's id a list": compact({**FIELDS, "bases": [[["pg-c"], FIELDS["bases"][0][1]]]}),
    "an empty resource": compact({**FIELDS, "resource": ""}),
    "a control character": compact({**FIELDS, "resource": "night\x1b[2Jly"}),
    "half a surrogate pair": compact({**FIELDS, "resource": "\ud800"}),
    "an owner without incarnation": compact({**FIELDS, "owner": "host-17"}),
    "a fingerprint with an escape": compact({**FIELDS, "key": "m-\x1b[2J0123456789ab"}),
    "a fingerprint of numbers": compact({**FIELDS, "key": 7}),
    "deep nesting": b"[" * 3000,
    "deep nesting inside": BODY.replace(b'"ticket":41', b'"ticket":' + b"[" * 1000 + b"]" * 1000),
    "a list": b"[]",
    "a number": b"1",
    "nothing": b"",
}


@pytest.mark.parametrize("body", ODD_BODIES.values(), ids=ODD_BODIES.keys())
def test_a_good_signature_over_what_is_no_entry_is_unknown(body):
    reading = read(signed(body))
    assert (reading.outcome, reading.entry) == (Outcome.UNKNOWN, None)
    assert reading.reason.isprintable()


def test_an_entry_of_a_newer_version_says_so_and_is_unknown_whatever_its_signature():
    body = compact({**FIELDS, "v": 2, "region": "eu"})
    for data in (signed(body), base64url(body) + b"." + base64url(b"s" * 48)):
        reading = read(data)
        assert reading.outcome is Outcome.UNKNOWN
        assert "newer trinco" in reading.reason


def test_the_helper_that_signs_odd_bodies_signs_good_ones_too():
    assert read(signed(BODY)).entry == ENTRY


@pytest.mark.parametrize("data", [b"", b".", b"..", b"\x00.\xff", b"e30.", b".e30", b"=.=", b"A" * 10**6], ids=len)
def test_what_is_not_a_body_and_a_signature_is_unknown(data):
    assert read(data).outcome is Outcome.UNKNOWN


def test_an_entry_at_the_size_limit_is_read_and_one_above_is_not():
    by_length = [
        ENTRY.but(owner="x" * length + "/" + INCARNATION, bases=many(MAX_BASES, 2)) for length in range(1, 200)
    ]
    stored = {len(data): (entry, data) for entry in by_length for data in [signed(compact(fields_of(entry)))]}
    (fits, small), (exceeds, large) = stored[MAX_BYTES], stored[MAX_BYTES + 2]
    assert open_entry(small, KEYRING, "nightly", "00").entry == fits
    assert open_entry(large, KEYRING, "nightly", "00").outcome is Outcome.UNKNOWN
    assert seal(fits, MAC) == small
    with pytest.raises(UsageError, match="the limit is 4096"):
        seal(exceeds, MAC)


def many(count: int, length: int) -> tuple[tuple[str, bytes], ...]:
    return tuple((f"{place:0{length}}", b"n" * 16) for place in range(count))


def fields_of(entry: Entry) -> dict[str, object]:
    bases = [(base_id, nonce.hex()) for base_id, nonce in entry.bases]
    return {**FIELDS, "owner": entry.owner, "bases": bases}


def test_more_bases_than_the_limit_are_refused_by_writer_and_reader():
    crowded = ENTRY.but(bases=many(MAX_BASES + 1, 2))
    with pytest.raises(UsageError, match="1 to 64 bases"):
        seal(crowded, MAC)
    data = signed(compact(fields_of(crowded)))
    assert len(data) <= MAX_BYTES
    assert open_entry(data, KEYRING, "nightly", "00").outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"resource": ""}, "resource's name"),
        ({"resource": "x" * 201}, "resource's name"),
        ({"resource": "tab\t"}, "resource's name"),
        ({"bases": ()}, "bases"),
        ({"bases": (("", b"n" * 16),)}, "base's id"),
        ({"bases": (("a", b"n" * 15),)}, "nonce"),
        ({"bases": (("a", b"n" * 16), ("a", b"m" * 16))}, "each base once"),
        ({"owner": "host"}, "owner"),
        ({"owner": "/" + INCARNATION}, "owner"),
        ({"owner": "host/" + INCARNATION.upper()}, "owner"),
        ({"owner": "h\n/" + INCARNATION}, "owner"),
        ({"owner": "h" * 201 + "/" + INCARNATION}, "owner"),
        ({"attempt": -1}, "attempt"),
        ({"attempt": 2**53}, "attempt"),
        ({"ttl": 0}, "ttl"),
        ({"ttl": -1.0}, "ttl"),
        ({"ttl": float("nan")}, "ttl"),
        ({"ttl": float("inf")}, "ttl"),
        ({"ttl": 10**400}, "ttl"),
        ({"ttl": True}, "ttl"),
        ({"token": -1}, "token"),
        ({"token": 2**53}, "token"),
        ({"token": 1.0}, "token"),
        ({"ticket": 2**52}, "ticket"),
        ({"ticket": True}, "ticket"),
        ({"info": "x" * 1101}, "info"),
        ({"info": "\ud800"}, "info"),
        ({"info": None}, "info"),
    ],
    ids=str,
)
def test_an_entry_out_of_range_is_not_sealed(changes, rule):
    with pytest.raises(UsageError, match=rule):
        seal(ENTRY.but(**changes), MAC)


def test_a_ttl_in_whole_seconds_is_sealed_as_the_same_entry():
    assert seal(ENTRY.but(ttl=30), MAC) == seal(ENTRY, MAC)


def test_an_entry_has_no_nonce_for_a_base_it_does_not_list():
    assert ENTRY.nonce_at("elsewhere") is None


@both_keys
def test_the_stored_form_is_safe_in_object_names_and_urls(key):
    stored = seal(ENTRY.but(resource="naïve/name?&#%", owner="ü/" + INCARNATION), key).decode("ascii")
    assert stored.count(".") == 1
    assert stored.replace(".", "").replace("-", "").replace("_", "").isalnum()


@both_keys
def test_a_usual_entry_for_four_bases_takes_less_than_700_bytes(key):
    assert len(seal(ENTRY, key)) < 700


def test_the_body_is_the_json_that_the_spec_shows():
    assert body_of(seal(ENTRY.but(bases=(("pg-c", bytes(16)),), ticket=None), MAC)) == (
        b'{"attempt":7,"bases":[["pg-c","00000000000000000000000000000000"]],"info":"","key":"'
        + MAC.fingerprint.encode()
        + b'",'
        b'"kind":"held","owner":"host-17/0123456789abcdef0123456789abcdef","resource":"nightly",'
        b'"ticket":null,"token":1760000000000000,"ttl":30.0,"v":1}'
    )


@given(st.builds(ENTRY.but, resource=st.text(min_size=1), info=st.text(), ttl=st.floats(0.001, 1e12)))
def test_the_body_is_what_json_would_write(entry):
    try:
        body = body_of(seal(entry, MAC))
    except UsageError:
        return  # out of range
    fields = json.loads(body)
    assert json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() == body


def test_importing_entries_loads_no_crypto_library_before_a_key_pair_is_used():
    code = "import sys, trinco.leases.entry; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=PATHS, check=True)
    assert "trinco.leases.keys" in done.stdout.split()
    dear = {"typing", "dataclasses", "msgspec", "nacl", "logging", "asyncio"}
    assert not dear & set(done.stdout.split())
