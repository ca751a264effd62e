"""The messages of the bakery as bytes, and the one door through which they come to a handler.

Everybody may send anything. What passes has the shape that its class declares, down to what is under a signature, and
no more answers and signatures than there are servers: so no handler has to ask again, and nobody can make a server
verify, or keep, more than a correct client would.
"""

from functools import cache
from typing import Any

from trinco.core.errors import DamagedData
from trinco.core.message import Codec, Message
from trinco.protocols.bakery.messages import (
    BadJustification,
    Certified,
    Certify,
    Exit,
    ExitReply,
    Get,
    GetReply,
    Go,
    Listen,
    Removal,
    Removed,
    Set,
    SetReply,
    Suspect,
    Wait,
)
from trinco.protocols.broadcast.bracha import Echo, Initial, Ready

Broadcast = Get | Set | Exit
"""What a client broadcasts where servers relay (``broadcasting``)."""

KINDS: tuple[Any, ...] = (
    Get, GetReply, Set, SetReply, BadJustification, Listen, Wait, Go, Exit, ExitReply, Removed,
    Certify, Certified, Suspect, Removal,
    Initial[Broadcast], Echo[Broadcast], Ready[Broadcast],
)  # fmt: skip

BYTES_OF_A_SIGNATURE = 1024
"""With what is under it. Most of that is the name of the lock, which may have 200 characters of four bytes each."""
BYTES_OF_A_MAC = 48


@cache
def codec(servers: int) -> Codec[Message]:
    """A justification is the most that there is: as many answers, each vouched for to all servers and the client, with
    a certificate of as many signatures."""
    answer = BYTES_OF_A_SIGNATURE + (servers + 1) * BYTES_OF_A_MAC
    return Codec(*KINDS, most_bytes=2048 + servers * (answer + servers * BYTES_OF_A_SIGNATURE))


def encode(message: Message, servers: int) -> bytes:
    return codec(servers).encode(message)


def decode(data: bytes, servers: int) -> Message:
    """The message in these bytes; ``DamagedData`` for anything that is none, or too long."""
    message = codec(servers).decode(data)
    if not _fits(message, servers):
        raise DamagedData(f"this message has more answers or signatures than {servers} servers can give")
    return message


def admitted(message: Any, servers: int) -> Message | None:
    """The same for objects, which need not be what they should be either; None for what is refused."""
    sound = codec(servers).admit(message)
    return sound if sound is not None and _fits(sound, servers) else None


def _fits(message: Any, servers: int) -> bool:
    """As many answers as servers, as many signatures in each certificate, and readers: those and the client."""
    message = getattr(message, "body", message)
    replies = getattr(message, "justification", ())
    certificates = (getattr(each, "certificate", ()) for each in (message, *replies))
    readers = (len(each.highest.readers) for each in replies)
    return (
        len(replies) <= servers
        and all(len(certificate) <= servers for certificate in certificates)
        and all(count <= servers + 1 for count in readers)
    )
