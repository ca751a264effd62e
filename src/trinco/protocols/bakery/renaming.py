"""Calling servers otherwise. No server id is ever compared: to the checker states that differ in who is who are one."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trinco.core.ids import NOBODY, Ids, bit, members
from trinco.core.signed import Signed


def renamed(value: Any, names: Mapping[int, int]) -> Any:
    """The same with other signers; what is in the order of its signers is put in their new order."""
    if isinstance(value, Signed):
        return Signed(names[value.signer], value.body, tuple(sorted(names[each] for each in value.readers)))
    if isinstance(value, tuple):
        return tuple(sorted((renamed(each, names) for each in value), key=_order))
    if isinstance(value, msgspec.Struct):
        changes = {name: renamed(getattr(value, name), names) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **changes)
    return value


def _order(value: Any) -> tuple[int, int]:
    signed = getattr(value, "highest", getattr(value, "suspicion", value))
    return (getattr(signed.body, "number", 0), signed.signer) if isinstance(signed, Signed) else (0, 0)


def renamed_ids(ids: Ids, names: Mapping[int, int]) -> Ids:
    return sum((bit(names[each]) for each in members(ids)), NOBODY)


def signed_by(server: int, values: Iterable[Any]) -> tuple[Any, ...]:
    """What of this a server has signed."""
    return tuple(each.body for each in values if each.signer == server)
