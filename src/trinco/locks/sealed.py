"""Entries that are signed: a quorum keeps them, since a liar must not make up tokens and tickets (``leases.entry``)."""

from trinco.leases.entry import Entry, Outcome, open_entry, seal, sign
from trinco.locks.entries import UNREADABLE, Note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from trinco.leases.entry import Reading
    from trinco.leases.keys import Keyring
    from trinco.locks.claimant import Claimant

CACHED = 256


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
        reading = open_entry(data, self.keyring, resource, self.bases[0])
        self.caught += reading.outcome is Outcome.FORGED
        if len(self._opened) >= CACHED:
            self._opened.clear()
        self._opened[resource, data] = reading
        return reading


def _way_to_trust(fingerprint: str | None) -> str:
    """The command that makes such an entry readable."""
    if fingerprint is None:
        return "use the same version of trinco everywhere"
    if fingerprint.startswith("m-"):
        return "'trinco keys export' there and 'trinco keys import' here"
    return "'trinco keys export' there and 'trinco keys trust' here"
