"""A node's state as a value, and a node from such a value.

A node is a dataclass or, where it must also run without ``dataclasses``, a plain class with slots. A snapshot is the
tuple ``(class, field, field, ...)``; a field that is a part (a mutable dataclass) is a snapshot itself. It starts with
the class because two classes with equal fields are different states. Everything is prepared once per class:
``copy.deepcopy`` is fifty times slower, and this lies on the path of the checker and of every trace.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from trinco.core.ids import Ids
from trinco.core.instant import Instant
from trinco.core.value import slots_of

Snapshot: TypeAlias = tuple[Any, ...]


@cache
def field_names(kind: Any) -> tuple[str, ...]:
    if hasattr(kind, "__dataclass_fields__"):
        return tuple(field.name for field in dataclasses.fields(kind))
    return slots_of(kind)


@cache
def parts_of_value(kind: Any) -> tuple[str, ...]:
    """The names of what a value of this class holds: a struct's or dataclass' fields, or the slots of a plain class.
    Empty for an atom."""
    if issubclass(kind, msgspec.Struct):
        fields: tuple[str, ...] = kind.__struct_fields__
        return fields
    is_atom = kind.__module__ == "builtins" or issubclass(kind, Instant)
    return () if is_atom else field_names(kind)


def with_parts(value: Any, parts: Iterable[Any]) -> Any:
    """A value of the same class that holds other parts, in the order of ``parts_of_value``."""
    kind = value.__class__
    return kind(*parts) if issubclass(kind, msgspec.Struct) else _made(kind, parts)


def _made(kind: Any, values: Iterable[Any]) -> Any:
    """An object of a dataclass or of a plain class with slots, from the values of its fields."""
    if hasattr(kind, "__dataclass_fields__"):
        return kind(*values)
    made = kind.__new__(kind)
    for name, value in zip(field_names(kind), values, strict=True):
        setattr(made, name, value)
    return made


@cache
def set_fields(kind: type) -> frozenset[str]:
    """The fields that hold a set of ids as an int, to be shown as a list."""
    if not dataclasses.is_dataclass(kind):
        return frozenset()
    return frozenset(field.name for field in dataclasses.fields(kind) if field.type is Ids)


def is_part(value: Any) -> bool:
    """A part is a dataclass that can change; a frozen one is a plain value."""
    parameters = getattr(value, "__dataclass_params__", None)
    return parameters is not None and not parameters.frozen


@cache
def _values(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    names = field_names(kind)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda node: tuple(getattr(node, name) for name in names)


def fields_of(node: Any) -> tuple[Any, ...]:
    """The values of a node's fields, in order, parts as snapshots."""
    values = _values(node.__class__)(node)
    for value in values:
        if is_part(value):
            return tuple(take(each) if is_part(each) else each for each in values)
    return values


def reader(node: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The quickest ``fields_of`` for nodes like this one. Whether a field holds a part never changes in a run."""
    if any(map(is_part, _values(node.__class__)(node))):
        return fields_of
    return _values(node.__class__)


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The fields of a node with their names, those of its parts as ``part.name``."""
    for name in field_names(node.__class__):
        value = getattr(node, name)
        if is_part(value):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def can_hide(node: Any) -> bool:
    """Whether a node or a part of it has room for more than its fields. Parts stay parts: once per run is enough."""
    return _has_room(node.__class__) or any(can_hide(part) for _, part in _parts(node))


def undeclared(node: Any) -> str | None:
    """The name of something that a node or a part of it holds and a snapshot would miss, since it is no field."""
    kind = node.__class__
    if _has_room(kind):
        held = (*getattr(node, "__dict__", ()), *(slot for slot in slots_of(kind) if hasattr(node, slot)))
        extra: str | None = next((name for name in held if name not in (*field_names(kind), *_OF_PYTHON)), None)
        if extra:
            return extra
    hidden = ((name, undeclared(part)) for name, part in _parts(node))
    return next((f"{name}.{extra}" for name, extra in hidden if extra), None)


_OF_PYTHON = ("__dict__", "__weakref__")


@cache
def _has_room(kind: Any) -> bool:
    return kind.__dictoffset__ != 0 or not {*slots_of(kind)} <= {*field_names(kind), *_OF_PYTHON}


def _parts(node: Any) -> Iterator[tuple[str, Any]]:
    values = zip(field_names(node.__class__), _values(node.__class__)(node), strict=True)
    return ((name, value) for name, value in values if is_part(value))


def take(node: Any) -> Snapshot:
    return (node.__class__, *fields_of(node))


def restore(snapshot: Snapshot) -> Any:
    """A new node in exactly the state that was taken."""
    kind, *values = snapshot
    for position, value in enumerate(values):
        if value.__class__ is tuple and value and isinstance(value[0], type):
            values[position] = restore(value)
    return _made(kind, values)
