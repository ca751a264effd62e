"""What a lock may be called."""

from trinco.core.errors import UsageError

MAX_NAME = 200


def require_name(name: object) -> str:
    if not isinstance(name, str):
        raise UsageError(f"a lock's name is text, not {type(name).__name__}")
    if not name:
        raise UsageError("a lock needs a name")
    if len(name) > MAX_NAME:
        raise UsageError(f"a lock's name has at most {MAX_NAME} characters; this one has {len(name)}")
    odd = next((character for character in name if not character.isprintable()), None)
    if odd is not None:
        raise UsageError(f"a lock's name is printable text; {name!r} has the character U+{ord(odd):04X}")
    return name


def slot_name(name: str, slot: int) -> str:
    """The resource behind one unit of a semaphore."""
    return require_name(f"{name}[{slot}]")
