"""What a database file says about itself, and the tables that make it ours.

Whoever may write to the file may put anything into it: a view in place of a table, which computes for ever when it is
read; a trigger, which does so when we write; a text where a number should be. So both are judged before they are used.
"""

from trinco.leases.operation import TOKEN_LIMIT
from trinco.stores.boot import Boot
from trinco.stores.sqlite_row import require_seconds, require_text, require_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

FORMAT = 1

STORE = """CREATE TABLE IF NOT EXISTS trinco_store (
    one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER NOT NULL,
    boot_id TEXT NOT NULL, machine_id TEXT NOT NULL, clock_offset TEXT NOT NULL,
    floor INTEGER NOT NULL, t_max REAL NOT NULL, newcomer TEXT, newcomer_since REAL)"""
LOCK = """CREATE TABLE IF NOT EXISTS trinco_lock (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL, token INTEGER NOT NULL, evidence BLOB,
    owner TEXT, attempt INTEGER, until REAL, ticket INTEGER, committed INTEGER, entry BLOB, waiters BLOB,
    CHECK (owner IS NULL OR until IS NOT NULL))"""
_DESCRIBE = """SELECT format, boot_id, machine_id, clock_offset, floor, t_max, newcomer, newcomer_since
    FROM trinco_store"""
_STRANGE = """SELECT type, name FROM sqlite_master WHERE lower(tbl_name) IN ('trinco_store', 'trinco_lock')
    AND (type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%')"""


START_ANEW = "stop everybody who uses the file, move it away and start a new one"


class Description:
    """Raises ``ValueError`` if no file of ours says so."""

    __slots__ = ("boot", "floor", "format", "newcomer", "newcomer_since", "t_max")

    def __init__(self, row: "tuple[Any, ...]") -> None:
        self.format, boot_id, machine_id, offset, self.floor, self.t_max, self.newcomer, self.newcomer_since = row
        self.boot = Boot(boot_id, machine_id, offset)
        if self.format == FORMAT:  # another version may mean something else by the rest
            self._judge()

    def _judge(self) -> None:
        require_text(self.boot.boot_id, "boot_id")
        require_text(self.boot.machine_id, "machine_id")
        require_text(self.boot.offset, "clock_offset")
        require_whole(self.floor, TOKEN_LIMIT, "floor")
        require_seconds(self.t_max, "t_max")
        if self.newcomer is not None:
            require_text(self.newcomer, "newcomer")
            require_seconds(self.newcomer_since, "newcomer_since")


def described(connection: "sqlite3.Connection") -> Description | None:
    """None if the file says nothing yet. Raises ``ValueError`` if it is not in our words."""
    row = connection.execute(_DESCRIBE).fetchone()
    return None if row is None else Description(row)


def what_is_strange(connection: "sqlite3.Connection") -> str | None:
    """What has the name of a table of ours and is none, or acts behind its back."""
    found = connection.execute(_STRANGE).fetchone()
    return None if found is None else f"a {found[0]} {str(found[1])[:100]!r}"
