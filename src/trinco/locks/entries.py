"""What stands beside a claim in a store: when it was made and the holder's own words.

One store that nobody has to distrust keeps a plain line, ``TICKET TOKEN MICROSECONDS METADATA``: no crypto, no JSON is
loaded for it. Where keys are in use, entries are sealed (``locks.sealed``).
"""

from trinco.core.errors import UsageError
from trinco.core.value import Value
from trinco.leases.operation import TICKET_LIMIT, TOKEN_LIMIT
from trinco.locks.names import as_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trinco.locks.claimant import Claimant

MAX_METADATA_BYTES = 1024


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
    text = as_plain(text)
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
        ticket, token, made = claimant.ticket or 0, claimant.guess, claimant.hub.wall_clock()
        return f"{ticket} {token if isinstance(token, int) else 0} {made} {claimant.info}".encode()

    def token_in(self, resource: str, evidence: "Any") -> int:
        return min(_number(evidence, 1), TOKEN_LIMIT - 2)

    def ticket_in(self, resource: str, evidence: "Any") -> int:
        return min(_number(evidence, 0), TICKET_LIMIT - 2)

    def note(self, resource: str, entry: "Any") -> Note:
        words = entry.split(b" ", 3) if isinstance(entry, bytes) else []
        if len(words) < 4:
            return UNREADABLE
        return Note(_number(entry, 2) or None, words[3].decode(errors="replace"))


def _number(entry: "Any", place: int) -> int:
    words = entry.split(b" ", 3) if isinstance(entry, bytes) else []
    return int(words[place]) if place < len(words) and words[place].isdigit() and len(words[place]) < 20 else 0
