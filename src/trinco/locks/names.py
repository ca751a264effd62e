"""What a lock may be called."""

from trinco.core.errors import UsageError
from trinco.core.printable import printable, shortened

MAX_NAME = 200


def as_plain(text: str) -> str:
    """The same characters without the class around them: a member of ``class Names(str, Enum)`` is equal to its text
    and is written as ``Names.GPU``, so in a store it would be another lock."""
    return text if type(text) is str else str.__str__(text)


def require_name(name: object) -> str:
    if type(name) is not str:
        if not isinstance(name, str):
            raise UsageError(f"a lock's name is text, not {type(name).__name__}")
        name = as_plain(name)
    if not name:
        raise UsageError("a lock needs a name")
    if len(name) > MAX_NAME:
        raise UsageError(f"a lock's name has at most {MAX_NAME} characters; this one has {len(name)}")
    odd = next((character for character in name if not character.isprintable()), None)
    if odd is not None:
        raise UsageError(f"a lock's name is printable text; {name!r} has the character U+{ord(odd):04X}")
    return name


def is_name(name: str) -> bool:
    """Whether a lock can be called so; another program may have put anything into a store."""
    return 0 < len(name) <= MAX_NAME and name.isprintable()


def require_client(client: object) -> str:
    """What this process calls itself in the eyes of others."""
    name = as_plain(client) if isinstance(client, str) else ""
    if not is_name(name):
        raise UsageError(f"a client's name is 1 to {MAX_NAME} printable characters, not {client!r}")
    return name


def shown(name: str | None) -> str:
    """The name of an owner or a lock, for a person to read. It is what a store says, and another program may have put
    anything there."""
    return printable(shortened(name or "somebody", MAX_NAME))


def require_prefix(prefix: object) -> str:
    if not isinstance(prefix, str):
        raise UsageError(f"names of locks begin with text, not {prefix!r}")
    return as_plain(prefix)


def require_token(token: object) -> None:
    if token is not None and type(token) is not int:
        raise UsageError(f"a token is a whole number, not {token!r}")


def slot_names(name: str, limit: int) -> tuple[str, ...]:
    """The resources behind the units of a semaphore."""
    name = require_name(name)
    units = tuple(f"{name}[{slot}]" for slot in range(limit))
    excess = len(units[-1]) - MAX_NAME
    if excess > 0:
        raise UsageError(
            f"the name of a lock of {limit} units has at most {len(name) - excess} characters; this one has {len(name)}"
        )
    return units
