"""Tables that fill themselves."""

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Memo(dict[Key, Value], Generic[Key, Value]):
    """What is not in the table yet is found out when it is first asked for. What is in it costs a look-up and no call:
    the inner loops of the checker do little else."""

    def __init__(self, find: Callable[[Key], Value]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: Key) -> Value:
        value = self[key] = self._find(key)
        return value
