"""What can be set about a system, and setting it by words: ``graph=ring``, ``votes=6``, ``says_nok=yes``.

A system with settings is a frozen dataclass that builds its nodes when called; its fields are the settings.
"""

import dataclasses
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from trinco.core.errors import UsageError

_YES, _NO = ("yes", "true", "1", "on"), ("no", "false", "0", "off")


def settings_of(build: Any) -> dict[str, Any]:
    """The settings of a system with their present values; a plain function has none."""
    if not dataclasses.is_dataclass(build):
        return {}
    return {each.name: getattr(build, each.name) for each in dataclasses.fields(build)}


def in_words(value: Any) -> str:
    """A value as it is set."""
    if isinstance(value, tuple):
        return ",".join(map(in_words, value))
    return {"True": "yes", "False": "no", "None": "none"}.get(str(value), str(value))


def changed(build: Any) -> tuple[str, ...]:
    """The words that make this system of the one that it is by default, as far as words go."""
    defaults = {each.name: each.default for each in dataclasses.fields(build)} if settings_of(build) else {}
    return tuple(
        f"{name}={in_words(value)}"
        for name, value in settings_of(build).items()
        if value != defaults[name] and isinstance(value, (bool, int, float, str, tuple, type(None)))
    )


def with_settings(build: Any, words: Iterable[str], name: str) -> Any:
    """The same system with some settings changed. ``words`` are ``setting=value``; ``name`` is for complaints."""
    parted = [_parted(each) for each in words]
    changes = dict(parted)
    known = settings_of(build)
    for setting, text in parted:
        if changes[setting] != text:
            raise UsageError(f"'{setting}' is set to {text} and to {changes[setting]}: give one of them")
        if setting not in known:
            choices = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"{name} has no setting '{setting}' ({choices})")
    if not changes:
        return build
    hints = get_type_hints(type(build))
    return dataclasses.replace(build, **{each: _value(hints[each], text, each) for each, text in changes.items()})


def _parted(word: str) -> tuple[str, str]:
    setting, equals, text = word.partition("=")
    if not equals or not setting:
        raise UsageError(f"'{word}' sets nothing: give SETTING=VALUE")
    return setting.strip().replace("-", "_"), text.strip()


def _value(hint: Any, text: str, setting: str) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        if text == "none" and type(None) in get_args(hint):
            return None
        hint = next(each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], each, setting) for each in text.split(","))
    read = _READERS.get(hint)
    if read is None:
        raise UsageError(f"'{setting}' cannot be set by words")
    try:
        return read(text)
    except ValueError:
        raise UsageError(f"'{text}' is no value for '{setting}', which is {_KINDS[hint]}") from None


def _truth(text: str) -> bool:
    if text.lower() not in (*_YES, *_NO):
        raise ValueError(text)
    return text.lower() in _YES


_READERS: Mapping[Any, Callable[[str], Any]] = {bool: _truth, int: int, float: float, str: str}
_KINDS = {bool: "yes or no", int: "a whole number", float: "a number", str: "a word"}
