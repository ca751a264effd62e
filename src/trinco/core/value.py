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


_KEEP = object()


def _but_of(kind: "Any") -> "Callable[..., Any]":
    """A copying method made for one class, as ``dataclasses`` does it: four times as fast as a loop over its slots,
    and copies are most of what a lease client does."""
    names = slots_of(kind)
    lines = [f"def but(self, {', '.join(f'{name}=KEEP' for name in names)}):", " other = NEW(KIND)"]
    lines += [f" other.{name} = self.{name} if {name} is KEEP else {name}" for name in names]
    space: dict[str, Any] = {"KEEP": _KEEP, "NEW": object.__new__, "KIND": kind}
    exec("\n".join([*lines, " return other"]), space)
    made: Callable[..., Any] = space["but"]
    return made


def _but(self: "Any", **changes: "Any") -> "Any":
    """The first call on a class replaces this by the class's own."""
    kind = self.__class__
    kind.but = _but_of(kind)
    return kind.but(self, **changes)


class Value:
    __slots__ = ()

    def __init_subclass__(cls) -> None:
        if "but" not in cls.__dict__:
            cls.but = _but  # type: ignore[method-assign]  # never a parent's: its slots are fewer

    if TYPE_CHECKING:

        def but(self, **changes: Any) -> Self:
            """The same value with some slots changed."""
            ...

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
