"""What stands beside a claim in a store: when it was made and the holder's own words, signed where keys are in use.

One store that nobody has to distrust keeps a plain line, ``TICKET TOKEN MICROSECONDS METADATA``: no crypto, no JSON is
loaded for it. A quorum keeps sealed entries (see ``leases.entry``), since a liar must not make up tokens and tickets.
"""

from trinco.core.errors import UsageError
from trinco.core.value import Value
from trinco.leases.operation import TICKET_LIMIT, TOKEN_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from trinco.leases.entry import Entry, Reading
    from trinco.leases.keys import Keyring
    from trinco.locks.claimant import Claimant

MAX_METADATA_BYTES = 1024
CACHED = 256


class Note(Value):
    """``made``: the wall clock of the one who wrote it, in microseconds. ``known``: whether we can vouch for it."""

    __slots__ = ("known", "made", "metadata", "why")

    def __init__(self, made: int | None, metadata: str, known: bool = True, why: str = "") -> None:
        self.made = made
        self.metadata = metadata
        self.known = known
        self.why = why


UNREADABLE = Note(None, "")


def require_metadata(metadata: "str | None") -> str:
    """Text that fits into an entry."""
    text = "" if metadata is None else metadata
    if not isinstance(text, str):
        raise UsageError(f"metadata is text, not {type(text).__name__}: json.dumps() makes text of most things")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise UsageError("metadata must be text that can be written as UTF-8") from None
    if size > MAX_METADATA_BYTES:
        raise UsageError(f"metadata takes {size} bytes and the limit is {MAX_METADATA_BYTES}")
    return text


class PlainEntries:
    """Nothing is signed: whoever can write to the store is believed."""

    __slots__ = ()

    def write(self, claimant: "Claimant") -> bytes:
        token = claimant.guess if isinstance(claimant.guess, int) else 0
        return f"{claimant.ticket or 0} {token} {claimant.hub.wall_clock()} {claimant.info}".encode()

    def token_in(self, resource: str, evidence: "Any") -> int:
        return min(_number(evidence, 1), TOKEN_LIMIT - 2)

    def ticket_in(self, resource: str, evidence: "Any") -> int:
        return min(_number(evidence, 0), TICKET_LIMIT - 2)

    def note(self, resource: str, entry: "Any") -> Note:
        words = entry.split(b" ", 3) if isinstance(entry, bytes) else []
        if len(words) < 4:
            return UNREADABLE
        return Note(_number(entry, 2) or None, words[3].decode(errors="replace"))


def _way_to_trust(fingerprint: str | None) -> str:
    """The command that makes such an entry readable."""
    if fingerprint is None:
        return "use the same version of trinco everywhere"
    if fingerprint.startswith("m-"):
        return "'trinco keys export' there and 'trinco keys import' here"
    return "'trinco keys export' there and 'trinco keys trust' here"


def _number(entry: "Any", place: int) -> int:
    words = entry.split(b" ", 3) if isinstance(entry, bytes) else []
    return int(words[place]) if place < len(words) and words[place].isdigit() and len(words[place]) < 20 else 0


class SealedEntries:
    """``bases`` are the ids under which the stores are signed for. ``caught`` counts forged entries."""

    __slots__ = ("_opened", "bases", "caught", "entropy", "keyring")

    def __init__(self, keyring: "Keyring", bases: tuple[str, ...], entropy: "Callable[[int], bytes]") -> None:
        keyring.signing_key()
        self.keyring = keyring
        self.bases = bases
        self.entropy = entropy
        self.caught = 0
        self._opened: dict[tuple[str, bytes], Reading] = {}

    def write(self, claimant: "Claimant") -> bytes:
        from trinco.leases.entry import Entry, seal, sign

        nonces = self.entropy(16 * len(self.bases))
        bases = tuple((base, nonces[16 * each : 16 * each + 16]) for each, base in enumerate(self.bases))
        guess = claimant.guess
        entry = Entry(
            claimant.resource,
            bases,
            claimant.owner,
            claimant.attempt,
            claimant.terms.ttl,
            guess if isinstance(guess, int) else None,
            ticket=claimant.ticket,
            info=f"{claimant.hub.wall_clock()} {claimant.info}",
        )
        if claimant.attempt > 1:
            return sign(entry, self.keyring.signing_key())
        return seal(entry, self.keyring.signing_key())

    def token_in(self, resource: str, evidence: "Any") -> int:
        entry = self._entry(resource, evidence)
        return entry.token or 0 if entry else 0

    def ticket_in(self, resource: str, evidence: "Any") -> int:
        entry = self._entry(resource, evidence)
        return entry.ticket or 0 if entry else 0

    def note(self, resource: str, entry: "Any") -> Note:
        if not isinstance(entry, bytes):
            return UNREADABLE
        reading = self.read(resource, entry)
        if reading.entry is None:
            return Note(None, "", False, f"{reading.reason}: if it is a friend's, {_way_to_trust(reading.fingerprint)}")
        made, _, metadata = reading.entry.info.partition(" ")
        return Note(int(made) if made.isdigit() else None, metadata)

    def _entry(self, resource: str, evidence: "Any") -> "Entry | None":
        return self.read(resource, evidence).entry if isinstance(evidence, bytes) else None

    def read(self, resource: str, data: bytes) -> "Reading":
        """The verdict on an entry; the same bytes come from every base, so they are judged once."""
        known = self._opened.get((resource, data))
        if known is None:
            known = self._judge(resource, data)
        return known

    def _judge(self, resource: str, data: bytes) -> "Reading":
        from trinco.leases.entry import Outcome, open_entry

        reading = open_entry(data, self.keyring, resource, self.bases[0])
        self.caught += reading.outcome is Outcome.FORGED
        if len(self._opened) >= CACHED:
            self._opened.clear()
        self._opened[resource, data] = reading
        return reading
