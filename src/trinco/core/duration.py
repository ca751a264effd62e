"""Durations as people write them: ``30``, ``1.5s``, ``500ms``, ``2m``, ``1h``."""

from trinco.core.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
FOREVER = float("inf")


def seconds(text: str) -> float:
    """What a text means in seconds; without a unit it is seconds."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text.strip()[len(number) :] or "s"
    try:
        amount = float(number) * UNITS.get(unit, FOREVER)
    except ValueError:
        raise _unreadable(text) from None
    if not abs(amount) < FOREVER:  # NaN is not below it either
        raise _unreadable(text)
    return amount


def in_seconds(duration: "float | timedelta", what: str) -> float:
    """A duration given as a number of seconds, of whatever kind, or as a ``timedelta``."""
    total = None if isinstance(duration, type) else getattr(duration, "total_seconds", None)
    given: Any = total() if total is not None else duration
    try:
        amount = float(given) if _is_number(given) else FOREVER
    except OverflowError:  # of so many digits that Python may refuse to print them
        raise UsageError(f"{what} is a number of seconds, and this one is too large") from None
    except (TypeError, ValueError):  # a signalling NaN
        amount = FOREVER
    if not abs(amount) < FOREVER:  # NaN is not below it either
        raise UsageError(f"{what} is a number of seconds or a timedelta, not {duration!r}")
    return amount


def in_words(amount: float) -> str:
    """A duration for people: two places that matter, in the unit that fits."""
    if amount < 0.9995:
        return f"{amount * 1000:.3g} ms"
    if amount < 120:
        return f"{amount:.3g} s"
    return f"{amount / 60:.3g} min" if amount < 7200 else f"{amount / 3600:.3g} h"


def _is_number(given: object) -> bool:
    """Also a ``Decimal`` or a ``Fraction``; text that reads like one is none."""
    return hasattr(given, "__float__") and not isinstance(given, bool)


def _unreadable(text: str) -> UsageError:
    return UsageError(f"'{text}' is no duration: write 30, 1.5s, 500ms, 2m or 1h")
