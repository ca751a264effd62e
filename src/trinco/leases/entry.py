"""A lease entry: who holds which resource for how long, under one signature for all bases.

A client signs once per attempt. The signed body lists every base with the nonce it uses there, and each base stores the
same bytes, so a quorum costs one signature and not n. The signature covers the resource and the bases, so an entry
cannot be copied to another resource or base (errata E19); the attempt and the nonces, so an old entry is not a fresh
one; the token and the ticket, so no store can invent a larger one. The store's stamp is not signed: it is its clock.

The stored form, which is also safe as an object's name and in a URL (A-Z a-z 0-9 - _ and one dot)::

    base64url(body) "." base64url(signature)    no padding, at most MAX_BYTES together
    body: JSON, keys sorted, no spaces, UTF-8   {"attempt":7,"bases":[["s3",NONCE],...],"key":FINGERPRINT, ... ,"v":1}
    signature: over "trinco/lease/v1" + body    the tag ends where the body's "{" begins

What signatures buy: defence against writers who have the storage's credentials and no key, tokens and tickets that
cannot be forged, and accountability. A lying base may still say yes or no: that is what the quorum is for.

Reading fails closed. An entry that we cannot judge (a key we lack, a newer version, garbage, another place than it was
signed for) is UNKNOWN and counts as held until its stamp + T_max. Skipping it would let a client that lacks a rotated
key walk in on a holder (errata E9).

Only those who use keys load this: the plain path of ``trinco run`` has no time for JSON and hashes.
"""

from binascii import a2b_base64, b2a_base64
from enum import Enum
from json import loads
from json.encoder import encode_basestring as text

from trinco.core.errors import DamagedData, TrincoError, UsageError
from trinco.core.value import Value
from trinco.leases.keys import HEX_DIGITS, Keyring, SigningKey, is_fingerprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
TAG = b"trinco/lease/v1"
MAX_BYTES = 4096
MAX_BASES = 64
MAX_NAME = 200
MAX_INFO_BYTES = 1100
NONCE_BYTES = 16
INCARNATION_DIGITS = 32
# Up to here a number is exact in Lua and in JSON too; microseconds since 1970 stay below it until the year 2255.
NUMBER_LIMIT = 2**53
TICKET_LIMIT = 2**52
_FIELDS = frozenset({"attempt", "bases", "info", "key", "kind", "owner", "resource", "ticket", "token", "ttl", "v"})
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


class Kind(Enum):
    """HELD is a lease; FREE a tombstone that keeps the token; WAIT a place in the queue."""

    HELD = "held"
    FREE = "free"
    WAIT = "wait"


class Outcome(Enum):
    """What a reader makes of an entry. VALID: believe it. FORGED: ignore and report it. UNKNOWN: count it as held."""

    VALID = "valid"
    FORGED = "forged"
    UNKNOWN = "unknown"


class Entry(Value):
    """One attempt of one owner at one resource. ``info`` is for people: what the owner says of itself. ``seal`` and
    ``open_entry`` check its ranges."""

    __slots__ = ("attempt", "bases", "info", "kind", "owner", "resource", "ticket", "token", "ttl")

    def __init__(
        self,
        resource: str,
        bases: tuple[tuple[str, bytes], ...],
        owner: str,
        attempt: int,
        ttl: float,
        token: int | None = None,
        kind: Kind = Kind.HELD,
        ticket: int | None = None,
        info: str = "",
    ) -> None:
        self.info = info
        self.resource = resource
        self.bases = bases
        self.owner = owner
        self.attempt = attempt
        self.ttl = ttl
        self.token = token
        self.kind = kind
        self.ticket = ticket

    def nonce_at(self, base_id: str) -> bytes | None:
        """The nonce for this base, or None where the entry does not cover it."""
        return next((nonce for base, nonce in self.bases if base == base_id), None)


class Reading(Value):
    """The verdict on stored bytes. ``entry`` is there only when VALID: nobody can use what nobody vouches for.

    ``fingerprint`` is the key the entry names, where that could be read; ``reason`` is safe to print.
    """

    __slots__ = ("entry", "fingerprint", "outcome", "reason")

    def __init__(self, outcome: Outcome, entry: Entry | None, fingerprint: str | None, reason: str) -> None:
        self.outcome = outcome
        self.entry = entry
        self.fingerprint = fingerprint
        self.reason = reason


def seal(entry: Entry, key: SigningKey) -> bytes:
    """Sign an entry. The result goes to every base that it lists."""
    _require_in_range(entry)
    return sign(entry, key)


def sign(entry: Entry, key: SigningKey) -> bytes:
    """For an entry whose parts were judged before, as a lock judges its name once and not at every acquisition."""
    body = _body(entry, key.fingerprint)
    sealed = _to_base64url(body) + b"." + _to_base64url(key.sign(TAG + body))
    if len(sealed) > MAX_BYTES:
        raise UsageError(
            f"the entry takes {len(sealed)} bytes and the limit is {MAX_BYTES}: use fewer bases or shorter names"
        )
    return sealed


def open_entry(data: bytes, keyring: Keyring, resource: str, base_id: str) -> Reading:
    """Judge what a base had stored for a resource. Whatever the bytes are, the answer is a reading."""
    try:
        body, signature = _split(data)
        entry, fingerprint = _parse(body)
    except TrincoError as error:
        return Reading(Outcome.UNKNOWN, None, None, str(error))
    key = keyring.find(fingerprint)
    if key is None:
        return Reading(Outcome.UNKNOWN, None, fingerprint, f"the key {fingerprint} is not in the keyring")
    if not key.verify(TAG + body, signature):
        reason = f"the signature is not by the key {fingerprint} that it names"
        return Reading(Outcome.FORGED, None, fingerprint, reason)
    # A genuine entry in a place it does not name may have been copied there, or two hosts call one store by two names:
    # the second is a live lease, so neither is ignored.
    if entry.resource != resource:
        return Reading(Outcome.UNKNOWN, None, fingerprint, "it was signed for another resource")
    if entry.nonce_at(base_id) is None:
        return Reading(Outcome.UNKNOWN, None, fingerprint, f"it was signed for other bases, not for '{base_id}'")
    return Reading(Outcome.VALID, entry, fingerprint, f"signed by {fingerprint}")


def _body(entry: Entry, fingerprint: str) -> bytes:
    """What ``json.dumps`` would write with sorted keys, no spaces and no ASCII escapes; four times as fast, and every
    acquisition of a quorum writes one."""
    bases = ",".join([f'[{text(base_id)},"{nonce.hex()}"]' for base_id, nonce in entry.bases])
    return (
        f'{{"attempt":{entry.attempt},"bases":[{bases}],"info":{text(entry.info)},"key":"{fingerprint}",'
        f'"kind":"{entry.kind.value}","owner":{text(entry.owner)},"resource":{text(entry.resource)},'
        f'"ticket":{_or_null(entry.ticket)},"token":{_or_null(entry.token)},"ttl":{float(entry.ttl)!r},"v":{VERSION}}}'
    ).encode()


def _or_null(number: int | None) -> int | str:
    return "null" if number is None else number


def _split(data: bytes) -> tuple[bytes, bytes]:
    if len(data) > MAX_BYTES:
        raise DamagedData(f"the entry is larger than {MAX_BYTES} bytes")
    body, dot, signature = data.partition(b".")
    if not dot:
        raise DamagedData("the entry is not a body and a signature")
    try:
        return _from_base64url(body), _from_base64url(signature)
    except ValueError:
        raise DamagedData("the entry is not base64url") from None


def _parse(body: bytes) -> tuple[Entry, str]:
    """The entry and the fingerprint it names, only if ``seal`` writes them as exactly these bytes.

    What JSON lets pass besides (a key twice, spaces, 30 for 30.0) might be read one way here and another way elsewhere.
    """
    try:
        fields = loads(body.decode())
    except (ValueError, RecursionError):
        raise DamagedData("the entry's body is not JSON in UTF-8") from None
    if not isinstance(fields, dict) or fields.get("v") != VERSION:
        raise DamagedData(f"the entry is not of version {VERSION}: perhaps a newer trinco wrote it")
    if fields.keys() != _FIELDS or not is_fingerprint(fields["key"]):
        raise DamagedData("the entry lacks a field, or has one too many")
    entry = _from_fields(fields)
    _require_in_range(entry)
    if _body(entry, fields["key"]) != body:
        raise DamagedData("the entry's body is not in the one form that is signed")
    return entry, fields["key"]


def _from_fields(fields: "dict[str, Any]") -> Entry:
    try:
        return Entry(
            resource=fields["resource"],
            bases=tuple((base_id, bytes.fromhex(nonce)) for base_id, nonce in fields["bases"]),
            owner=fields["owner"],
            attempt=fields["attempt"],
            ttl=fields["ttl"],
            token=fields["token"],
            kind=Kind(fields["kind"]),
            ticket=fields["ticket"],
            info=fields["info"],
        )
    except (ValueError, TypeError):
        raise DamagedData("a field of the entry is of the wrong type") from None


def _require_in_range(entry: Entry) -> None:
    """The limits of an entry, for the one who writes it and for the one who reads it."""
    _require(_is_name(entry.resource), f"a resource's name is 1 to {MAX_NAME} printable characters")
    _require(0 < len(entry.bases) <= MAX_BASES, f"an entry is for 1 to {MAX_BASES} bases")
    for base_id, nonce in entry.bases:
        _require(_is_name(base_id), f"a base's id is 1 to {MAX_NAME} printable characters")
        _require(len(nonce) == NONCE_BYTES, f"a nonce is {NONCE_BYTES} bytes")
    _require(len(dict(entry.bases)) == len(entry.bases), "an entry lists each base once")
    _require(_is_owner(entry.owner), f"an owner is a client's name, '/' and {INCARNATION_DIGITS} lower-case hex digits")
    _require(_is_whole(entry.attempt, NUMBER_LIMIT), f"an attempt is a whole number from 0 to below {NUMBER_LIMIT}")
    _require(_is_ttl(entry.ttl), f"a ttl is a number of seconds above 0 and below {NUMBER_LIMIT}")
    _require(
        entry.token is None or _is_whole(entry.token, NUMBER_LIMIT),
        f"a token is None or a whole number from 0 to below {NUMBER_LIMIT}",
    )
    _require(
        entry.ticket is None or _is_whole(entry.ticket, TICKET_LIMIT),
        f"a ticket is None or a whole number from 0 to below {TICKET_LIMIT}",
    )
    _require(_is_text(entry.info), f"an entry's info is text of at most {MAX_INFO_BYTES} bytes")


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise UsageError(rule)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.isprintable()


def _is_text(info: object) -> bool:
    if not isinstance(info, str) or len(info) > MAX_INFO_BYTES:
        return False
    try:
        return len(info.encode()) <= MAX_INFO_BYTES
    except UnicodeEncodeError:
        return False


def _is_owner(owner: object) -> bool:
    if not isinstance(owner, str):
        return False
    client, _, incarnation = owner.rpartition("/")
    return _is_name(client) and len(incarnation) == INCARNATION_DIGITS and HEX_DIGITS.issuperset(incarnation)


def _is_whole(number: object, limit: int) -> bool:
    """``True`` is an int to Python, and not to us."""
    return type(number) is int and 0 <= number < limit


def _is_ttl(seconds: object) -> bool:
    """NaN is neither above nor below anything, so it does not pass."""
    return isinstance(seconds, float | int) and not isinstance(seconds, bool) and 0 < seconds < NUMBER_LIMIT


def _to_base64url(data: bytes) -> bytes:
    return b2a_base64(data, newline=False).rstrip(b"=").translate(_TO_URL)


def _from_base64url(written: bytes) -> bytes:
    """Exact: the last character has bits to spare, and two texts for one signature would be two entries."""
    data = a2b_base64(written.translate(_FROM_URL) + b"=" * (-len(written) % 4))
    if _to_base64url(data) != written:
        raise ValueError("not base64url")
    return data
