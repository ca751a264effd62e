"""The names of all locks that a Redis server keeps."""

from trinco.stores.redis_words import complaint
from trinco.stores.resp import ReplyError, Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BEFORE, BEHIND = "trinco:{", "}"
MOST_BYTES = 64 << 20
"""A server that never says that this was the last must not fill our memory."""


def scan(wire: Wire, prefix: str, deadline: float) -> set[str]:
    """Those that begin with ``prefix``."""
    begin = "".join(f"\\{each}" if each in "*?[]\\^" else each for each in BEFORE + prefix)
    found: set[str] = set()
    cursor: Any = b"0"
    size = 0
    while True:
        (reply,) = wire.exchange([("SCAN", cursor, "MATCH", f"{begin}*{BEHIND}", "COUNT", 1000)], deadline)
        match reply:
            case ReplyError():
                raise wire.broken(complaint(reply))
            case [bytes(cursor), list(keys)] if all(isinstance(key, bytes) for key in keys):
                found.update(key[len(BEFORE) : -len(BEHIND)].decode(errors="replace") for key in keys)
                size += sum(map(len, keys))
            case _:
                raise wire.broken("its answer to SCAN makes no sense; is it a Redis server?")
        if cursor == b"0":
            return found
        if size > MOST_BYTES:
            raise wire.broken("it has more names than can be listed: ask for those with a prefix")
