"""What somebody meant who mistyped a name."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LIKENESS = 0.55
"""Of 1. Below it a suggestion is a guess, and sends people to places that they never had in mind."""


def nearest(name: str, known: "Iterable[str]") -> str | None:
    """The known name that is most like this one, if one is."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), 1, LIKENESS)
    return close[0] if close else None


def suggest(name: str, known: "Iterable[str]") -> str:
    """``, did you mean 'ricart-agrawala'?`` for the nearest name, if there is any."""
    close = nearest(name.lower(), known)
    return f", did you mean '{close}'?" if close else ""
