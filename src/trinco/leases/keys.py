"""Keys that sign lease entries, and the keyring that says whose entries are believed.

Two ways to sign. A *shared secret* (``MacKey``, keyed BLAKE2b): whoever can verify can also sign, so it only tells
those who hold the secret from those who merely reach the storage; it costs microseconds. A *key pair* (``Ed25519Key``):
each client signs with its own seed and the others hold the public half, so an entry also says *which* client wrote it.

A key is known by its fingerprint, ``m-`` or ``e-`` and 16 hex digits, which gives nothing of the secret away. Every
entry names the fingerprint of its key. An entry whose key is not in the keyring counts as held (errata E9), so rotating
keeps the old key for verification: entries signed before the rotation stay readable.

A key travels as one line, ``KIND:FINGERPRINT:64 hex digits``; the kind says whether the line is a secret, the
fingerprint catches what was cut or mistyped. Nothing here makes up a secret or touches a file: a shell passes 32 bytes
of entropy in and keeps the text.
"""

from hashlib import blake2b
from hmac import compare_digest
from json import dumps, loads

from trinco.core.errors import DamagedData, KeysMissing, UsageError
from trinco.core.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nacl.signing import SigningKey as Signer

KEY_BYTES = 32
MAC_BYTES = 32
FINGERPRINT_DIGITS = 16
KEYRING_VERSION = 1
HEX_DIGITS = frozenset("0123456789abcdef")


class Key(Value):
    """32 bytes that verify signatures, and their fingerprint. Its ``repr`` shows the fingerprint and no more."""

    __slots__ = ("_material", "fingerprint")
    kind = ""
    is_secret = True
    """Traces and logs write its ``repr``, never what it holds."""

    def __init__(self, material: bytes, fingerprint: str) -> None:
        self._material = material
        self.fingerprint = fingerprint

    def verify(self, message: bytes, signature: bytes) -> bool:
        raise NotImplementedError

    def line(self) -> str:
        """The key on one line, for the keyring. What to give to others is ``export``."""
        return f"{self.kind}:{self.fingerprint}:{self._material.hex()}"

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__} {self.fingerprint}>"


class MacKey(Key):
    """A secret that all clients share."""

    __slots__ = ()
    kind = "trinco-mac-secret"

    def __init__(self, secret: bytes) -> None:
        _require_key_bytes(secret, "a shared secret")
        super().__init__(secret, "m-" + _fingerprint(secret))

    def sign(self, message: bytes) -> bytes:
        return blake2b(message, digest_size=MAC_BYTES, key=self._material, person=b"trinco/mac").digest()

    def verify(self, message: bytes, signature: bytes) -> bool:
        return compare_digest(self.sign(message), signature)

    def verifier(self) -> "MacKey":
        """What others need to verify: for a MAC, the secret itself."""
        return self


class Ed25519PublicKey(Key):
    """The half of a key pair that verifies."""

    __slots__ = ()
    kind = "trinco-ed25519-public"

    def __init__(self, public: bytes) -> None:
        _require_key_bytes(public, "an Ed25519 public key")
        super().__init__(public, "e-" + _fingerprint(public))

    def verify(self, message: bytes, signature: bytes) -> bool:
        from nacl.exceptions import BadSignatureError
        from nacl.signing import VerifyKey

        try:
            VerifyKey(self._material).verify(message, signature)
        except (BadSignatureError, ValueError):  # ValueError: a signature of the wrong length
            return False
        return True

    def verifier(self) -> "Ed25519PublicKey":
        return self


class Ed25519Key(Key):
    """A key pair, made from a seed of 32 random bytes."""

    __slots__ = ("_public", "_signer")
    kind = "trinco-ed25519-secret"

    def __init__(self, seed: bytes) -> None:
        from nacl.signing import SigningKey

        _require_key_bytes(seed, "an Ed25519 seed")
        self._signer: Signer = SigningKey(seed)
        self._public = Ed25519PublicKey(bytes(self._signer.verify_key))
        super().__init__(seed, self._public.fingerprint)

    def sign(self, message: bytes) -> bytes:
        return self._signer.sign(message).signature

    def verify(self, message: bytes, signature: bytes) -> bool:
        return self._public.verify(message, signature)

    def verifier(self) -> Ed25519PublicKey:
        """What others need to verify: the public half."""
        return self._public


SigningKey = MacKey | Ed25519Key
Verifier = MacKey | Ed25519PublicKey


class Keyring(Value):
    """The key we sign with, if any, and the keys whose entries we believe besides."""

    __slots__ = ("own", "trusted")

    def __init__(self, own: SigningKey | None = None, trusted: tuple[Verifier, ...] = ()) -> None:
        self.own = own
        self.trusted = trusted

    def find(self, fingerprint: str) -> Key | None:
        """The key that verifies what names this fingerprint."""
        if self.own is not None and self.own.fingerprint == fingerprint:
            return self.own
        return next((key for key in self.trusted if key.fingerprint == fingerprint), None)

    def signing_key(self) -> SigningKey:
        if self.own is None:
            raise KeysMissing(
                "there is no key of our own to sign with: this keyring can only verify what others signed. "
                "Put a secret key of yours, or the secret that all hosts share, in its 'own' place"
            )
        return self.own

    def trust(self, key: MacKey | Ed25519Key | Ed25519PublicKey) -> "Keyring":
        """The same keyring, believing this key's entries too. Of a key pair only the public half is kept."""
        if self.find(key.fingerprint) is not None:
            return self
        return Keyring(self.own, (*self.trusted, key.verifier()))

    def rotate(self, new: SigningKey) -> "Keyring":
        """The keyring that signs with a new key. The old one is kept for verification, without its seed."""
        others = tuple(key for key in self.trusted if key.fingerprint != new.fingerprint)
        rotated = Keyring(new, others)
        return rotated if self.own is None else rotated.trust(self.own)


def is_fingerprint(name: object) -> bool:
    """Whether this is a letter, a dash and hex, of this or a later kind of key, and so safe to print on a terminal."""
    if not isinstance(name, str) or len(name) != FINGERPRINT_DIGITS + 2:
        return False
    return "a" <= name[0] <= "z" and name[1] == "-" and HEX_DIGITS.issuperset(name[2:])


def export(key: MacKey | Ed25519Key | Ed25519PublicKey) -> str:
    """The line to give to other hosts so that they can verify. For a ``MacKey`` it *is* the secret: send it as one."""
    return key.verifier().line()


def parse_key(line: str) -> MacKey | Ed25519Key | Ed25519PublicKey:
    """The key on a line that ``export`` or a keyring wrote. No message repeats the line: it may be a secret."""
    kind, _, rest = line.strip().partition(":")
    fingerprint, _, digits = rest.partition(":")
    for key_class in (MacKey, Ed25519Key, Ed25519PublicKey):
        if kind == key_class.kind:
            key = key_class(_material(digits))
            if key.fingerprint != fingerprint:
                raise DamagedData("the key does not match its fingerprint: a character is wrong, copy the line again")
            return key
    raise DamagedData("this is not a key of trinco: it should be the line that 'trinco keys export' printed")


def dump(keyring: Keyring) -> str:
    """The keyring as text, secrets included: for a file that only its owner can read."""
    own = None if keyring.own is None else keyring.own.line()
    trusted = [key.line() for key in keyring.trusted]
    return dumps({"v": KEYRING_VERSION, "own": own, "trusted": trusted}, indent=2) + "\n"


def load(text: str) -> Keyring:
    """The keyring that ``dump`` wrote; ``DamagedData`` for anything else, without a word of what the text says."""
    try:
        content = loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        raise DamagedData("the keyring is not JSON: it was cut or edited; restore it from a copy") from None
    match content:
        case {"v": 1 as version, "own": str() | None as own, "trusted": [*trusted], **others} if (
            type(version) is int and not others
        ):
            return Keyring(_own(own), tuple(_trusted(line, place) for place, line in enumerate(trusted, 1)))
        case {"v": int() as version} if version > KEYRING_VERSION:
            raise DamagedData("the keyring was written by a newer trinco: update this one to read it")
    raise DamagedData("the keyring should hold 'v': 1, 'own' (a key or null) and 'trusted' (a list of keys)")


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """JSON would take the last of several, and a person who looks at the file the first."""
    if len(dict(pairs)) < len(pairs):
        raise DamagedData("the keyring says something twice: it was edited; restore it from a copy")
    return dict(pairs)


def _own(line: str | None) -> SigningKey | None:
    if line is None:
        return None
    key = _key_at(line, "own key")
    if isinstance(key, Ed25519PublicKey):
        raise DamagedData("the keyring's own key is a public key: nothing can be signed with it")
    return key


def _trusted(line: object, place: int) -> Verifier:
    key = _key_at(line, f"trusted key {place}")
    if isinstance(key, Ed25519Key):
        raise DamagedData(f"the keyring's trusted key {place} is a secret one: keep its public line there")
    return key


def _key_at(line: object, place: str) -> MacKey | Ed25519Key | Ed25519PublicKey:
    if not isinstance(line, str):
        raise DamagedData(f"the keyring's {place} is not a line of text")
    try:
        return parse_key(line)
    except DamagedData as error:
        raise DamagedData(f"the keyring's {place} cannot be read: {error}") from None


def _material(digits: str) -> bytes:
    try:
        material = bytes.fromhex(digits)
    except ValueError:
        material = b""
    if len(material) != KEY_BYTES or material.hex() != digits:
        raise DamagedData(f"a key is {2 * KEY_BYTES} lower-case hex digits: these were cut or mistyped")
    return material


def _require_key_bytes(material: bytes, what: str) -> None:
    if not isinstance(material, bytes) or len(material) != KEY_BYTES:
        raise UsageError(f"{what} is {KEY_BYTES} bytes, no more and no less")


def _fingerprint(material: bytes) -> str:
    """Keyed by the material itself, so that nothing but the whole key leads to it."""
    return blake2b(digest_size=FINGERPRINT_DIGITS // 2, key=material, person=b"trinco/key").hexdigest()
