"""Plain values: classes with ``__slots__`` that are equal when their class and all their slots are.

What lies on the path of ``trinco run`` cannot afford ``dataclasses``; the checker needs values that it can compare,
hash and look into. A subclass lists its slots and assigns them in ``__init__``; nothing is assigned afterwards.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


@cache
def slots_of(kind: "Any") -> tuple[str, ...]:
    """The slots of a class and of the classes it is made from, in the order in which they were declared."""
    slots: list[str] = []
    for each in reversed(kind.__mro__):
        declared = each.__dict__.get("__slots__", ())
        slots += (declared,) if isinstance(declared, str) else declared
    return tuple(slots)


@cache
def _content(kind: "Any") -> "Callable[[Any], tuple[Any, ...]]":
    names = slots_of(kind)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


class Value:
    __slots__ = ()

    def but(self, **changes: "Any") -> "Self":
        """The same value with some slots changed."""
        kind: Any = self.__class__
        other: Self = kind.__new__(kind)
        for name in slots_of(kind):
            setattr(other, name, getattr(self, name))
        for name, value in changes.items():
            setattr(other, name, value)  # a name that is no slot raises
        return other

    def __eq__(self, other: object) -> bool:
        kind: Any = self.__class__
        content = _content(kind)
        return other.__class__ is kind and content(self) == content(other)

    def __hash__(self) -> int:
        kind: Any = self.__class__
        return hash((kind, _content(kind)(self)))

    def __repr__(self) -> str:
        kind: Any = self.__class__
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in slots_of(kind))
        return f"{kind.__name__}({inner})"
