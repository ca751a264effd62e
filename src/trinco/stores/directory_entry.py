"""What one file of a folder's lock holds: an entry, as lines for people and for us, and how the file is called.

Only what we would have written ourselves is an entry; anything else counts as held by nobody knows whom.
"""

from hashlib import sha256

from trinco.leases.claim import Claim
from trinco.leases.operation import TICKET_LIMIT, TOKEN_LIMIT
from trinco.leases.row import Kind, Named

HEAD = "trinco lease 1"
DIGEST_DIGITS = 32


def written(named: Named) -> bytes:
    """Lines for people and for us, and after them the signed entry as it is."""
    claim = named.claim
    ticket, token = (_text(number) for number in (named.ticket, named.token))
    size = _text(None if named.entry is None else len(named.entry))
    lines = (
        HEAD,
        f"kind {named.kind.value}",
        f"owner {claim.owner}",
        f"attempt {claim.attempt}",
        f"nonce {claim.nonce.hex()}",
        f"ttl {float(named.ttl)!r}",
        f"ticket {ticket}",
        f"renewal {named.renewal}",
        f"token {token}",
        f"entry {size}",
    )
    return "\n".join((*lines, "")).encode() + (named.entry or b"")


def read(content: bytes) -> Named | None:
    """What ``written`` wrote as exactly these bytes; None if it would not have."""
    lines = content.split(b"\n", 10)
    try:
        kind, owner, attempt, nonce, ttl, ticket, renewal, token, size = (
            line.decode().partition(" ")[2] for line in lines[1:10]
        )
        claim = Claim(owner, int(attempt), bytes.fromhex(nonce))
        entry = None if _number(size) is None else lines[10]
        named = Named(Kind(kind), claim, float(ttl), _number(ticket), int(renewal), _number(token), entry)
    except (ValueError, IndexError):
        return None
    return named if _is_in_range(named) and written(named) == content else None


def _is_in_range(named: Named) -> bool:
    """A number that no client of ours writes would be believed for ever: no token is larger, no attempt later."""
    numbers = (named.claim.attempt, named.renewal, 0 if named.token is None else named.token)
    ticket = 0 if named.ticket is None else named.ticket
    return named.ttl >= 0 and all(0 <= number < TOKEN_LIMIT for number in numbers) and 0 <= ticket < TICKET_LIMIT


def file_name(kind: Kind, content: bytes) -> str:
    return f"{kind.value}-{digest(content)}"


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:DIGEST_DIGITS]


def _text(number: int | None) -> str:
    return "-" if number is None else str(number)


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)
