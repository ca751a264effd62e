"""An item as a row, and back. Nearly always nobody waits, and the column of the waiters is NULL."""

from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item, Waiter
from trinco.leases.operation import SOME_DAY, TICKET_LIMIT, TOKEN_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WAITER = "<qqdHh"
"""Ticket, attempt, until, the length of the owner's name and of its entry (-1: none)."""
THE_EVIDENCE = 1
"""As the holder's entry: what stands as evidence. It nearly always does, a signed entry is long, and a row that has it
twice does not fit into one page: each commit would write three."""
LONGEST_SHOWN = 40


VERSION_LIMIT = 2**62
"""Far from where a version that rises would become a fraction."""


def item_of(row: "tuple[Any, ...]") -> Item:
    """Raises ``ValueError`` if it is no row of ours: a column of SQLite may hold anything, whatever its type."""
    _, version, token, evidence, owner, attempt, until, ticket, committed, entry, waiters = row
    require_whole(version, VERSION_LIMIT, "version")
    require_whole(token, TOKEN_LIMIT, "token")
    if not version:
        raise ValueError("version is 0")
    if evidence is not None:
        require_bytes(evidence, "evidence")
    holder = None
    if owner is not None:
        if type(entry) is int:
            entry = evidence
        holder = _holder(owner, attempt, until, ticket, committed, entry)
    return Item(token, holder, () if waiters is None else unpacked(waiters), evidence)


def _holder(owner: "Any", attempt: "Any", until: "Any", ticket: "Any", committed: "Any", entry: "Any") -> Holder:
    require_text(owner, "owner")
    require_whole(attempt, TOKEN_LIMIT, "attempt")
    require_seconds(until, "until")
    if ticket is not None:
        require_whole(ticket, TICKET_LIMIT, "ticket")
    if committed is not None:
        require_whole(committed, TOKEN_LIMIT, "committed")
    if entry is not None:
        require_bytes(entry, "entry")
    return Holder(Claim(owner, attempt), until, ticket, committed, entry)


def require_whole(number: "Any", limit: int, column: str) -> None:
    if type(number) is not int or not 0 <= number < limit:
        raise _damage(number, column)


def require_seconds(number: "Any", column: str) -> None:
    """Not for ever, either."""
    if type(number) is not float or not -SOME_DAY < number < SOME_DAY:
        raise _damage(number, column)


def require_text(text: "Any", column: str) -> None:
    if type(text) is not str:
        raise _damage(text, column)


def require_bytes(data: "Any", column: str) -> None:
    if type(data) is not bytes:
        raise _damage(data, column)


def _damage(value: "Any", column: str) -> ValueError:
    return ValueError(f"{column} is {repr(value)[:LONGEST_SHOWN]}")


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


def unpacked(data: "Any") -> tuple[Waiter, ...]:
    import struct

    require_bytes(data, "waiters")

    reader = struct.Struct(WAITER)
    waiters: list[Waiter] = []
    at = 0
    try:
        while at < len(data):
            ticket, attempt, until, length, entry_length = reader.unpack_from(data, at)
            require_whole(ticket, TICKET_LIMIT, "a waiter's ticket")
            require_whole(attempt, TOKEN_LIMIT, "a waiter's attempt")
            require_seconds(until, "a waiter's until")
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
