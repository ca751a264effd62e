"""An item as a row, and back. Nearly always nobody waits, and the column of the waiters is NULL."""

from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item, Waiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WAITER = "<qqdHh"
"""Ticket, attempt, until, the length of the owner's name and of its entry (-1: none)."""
THE_EVIDENCE = 1
"""As the holder's entry: what stands as evidence. It nearly always does, a signed entry is long, and a row that has it
twice does not fit into one page: each commit would write three."""


def item_of(row: "tuple[Any, ...]") -> Item:
    """Raises ``ValueError`` if the waiters make no sense."""
    _, _, token, evidence, owner, attempt, until, ticket, committed, entry, waiters = row
    if type(entry) is int:
        entry = evidence
    holder = None if owner is None else Holder(Claim(owner, attempt), until, ticket, committed, entry)
    return Item(token, holder, () if waiters is None else unpacked(waiters), evidence)


def columns_of(item: Item) -> "tuple[Any, ...]":
    """Token, evidence, owner, attempt, until, ticket, committed, entry, waiters."""
    waiters = packed(item.waiters) if item.waiters else None
    holder = item.holder
    if holder is None:
        return item.token, item.evidence, None, None, None, None, None, None, waiters
    claim, evidence, entry = holder.claim, item.evidence, holder.entry
    if entry is evidence and entry is not None:
        entry = THE_EVIDENCE
    return (
        item.token, evidence, claim.owner, claim.attempt, holder.until, holder.ticket, holder.token, entry, waiters,
    )  # fmt: skip


def packed(waiters: tuple[Waiter, ...]) -> bytes:
    """Raises ``OverflowError`` where a number is too large."""
    import struct

    pack = struct.Struct(WAITER).pack
    parts: list[bytes] = []
    try:
        for each in waiters:
            owner = each.claim.owner.encode()
            length = -1 if each.entry is None else len(each.entry)
            parts += pack(each.ticket, each.claim.attempt, each.until, len(owner), length), owner, each.entry or b""
    except struct.error as error:
        raise OverflowError(f"a waiter does not fit into its row: {error}") from None
    return b"".join(parts)


def unpacked(data: bytes) -> tuple[Waiter, ...]:
    import struct

    reader = struct.Struct(WAITER)
    waiters: list[Waiter] = []
    at = 0
    try:
        while at < len(data):
            ticket, attempt, until, length, entry_length = reader.unpack_from(data, at)
            named = at + reader.size
            entered = named + length
            at = entered + max(entry_length, 0)
            entry = None if entry_length < 0 else data[entered:at]
            waiters.append(Waiter(Claim(data[named:entered].decode(), attempt), until, ticket, entry))
    except struct.error as error:
        raise ValueError(f"waiters: {error}") from None
    if at != len(data):
        raise ValueError("waiters: the last one is cut off")
    return tuple(waiters)
