"""Text that somebody else wrote, before a person sees it: a terminal obeys what it is sent."""


def printable(text: str) -> str:
    """In one line, and nothing but text: what would move the cursor, change colours, forge a line or turn the direction
    of reading stands there as its escape, ``\\x1b``, ``\\n``, ``\\u202e``."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def shortened(text: str, most: int) -> str:
    """No more than so many characters of it, and a sign that there were more."""
    return text if len(text) <= most else f"{text[:most]}..."
