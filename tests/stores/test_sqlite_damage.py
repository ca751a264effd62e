"""What somebody else, or a broken disk, may have put into the tables of a database file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trinco
from tests.stores.local_stores import Connect, apply, claim, is_granted, links_to, read, stand_in_line, take
from trinco.core.errors import StoreUnavailable
from trinco.leases.accesses import Apply, Read, Versioned
from trinco.leases.operation import NEXT, TOKEN_LIMIT, Answer, Commit, Extend, Operation, Release, Request, Yield
from trinco.stores.boot import Boot
from trinco.stores.clock import boottime
from trinco.stores.sqlite import SQLiteLink
from trinco.stores.store import Failed

ONE, TWO = "1" * 20, "2" * 20
ANA, EVE = claim("ana", ONE), claim("eve", TWO)
HOME, ELSEWHERE = Boot("boot-1", "machine-1"), Boot("boot-2", "machine-1")

OF_A_LOCK = ("name", "version", "token", "evidence", "owner", "attempt", "until", "ticket", "committed", "entry")
OF_A_LOCK += ("waiters",)
OF_THE_FILE = ("format", "boot_id", "machine_id", "clock_offset", "floor", "t_max", "newcomer", "newcomer_since")
COLUMNS = [("trinco_lock", each) for each in OF_A_LOCK] + [("trinco_store", each) for each in OF_THE_FILE]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "locks.db"


@pytest.fixture
def connect(file: Path) -> Iterator[Connect]:
    with links_to(file) as connected:
        yield connected


def damage(file: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints=1")
        for statement in statements:
            other.execute(statement, values if "?" in statement else ())


@cache
def file_with_a_lease() -> bytes:
    """And somebody in line."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "locks.db"
        with links_to(file) as connect:
            take(connect(ONE, boot=HOME), ANA, ticket=1)
            stand_in_line(connect(TWO, boot=HOME), EVE, ticket=2)
        return file.read_bytes()


# One lock


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("until", "'text'"), ("until", "9e999"), ("until", "-9e999"), ("until", "1e300"), ("until", "x'00'"),
        ("waiters", "'text'"), ("waiters", "5"), ("waiters", "x'0102'"), ("waiters", "zeroblob(28)||'x'"),
        ("ticket", "'t'"), ("ticket", "-1"), ("ticket", "1.5"), ("ticket", str(2**52)),
        ("token", "'x'"), ("token", "-1"), ("token", "1.5"), ("token", str(2**53)),
        ("committed", "'x'"), ("committed", "-1"),
        ("version", "0"), ("version", "-1"), ("version", "'x'"), ("version", str(2**63 - 1)),
        ("attempt", "NULL"), ("attempt", "'x'"), ("attempt", "-1"), ("attempt", str(2**60)),
        ("owner", "x'00'"), ("owner", "CAST(x'ff0a' AS TEXT)"),
        ("evidence", "'text'"), ("entry", "'text'"), ("entry", "2.5"),
    ],
)  # fmt: skip
def test_a_row_that_is_none_of_ours_is_said_so_and_grants_nothing(
    connect: Connect, file: Path, column: str, value: str
) -> None:
    take(connect(ONE), ANA)
    damage(file, f"UPDATE trinco_lock SET {column} = {value}")
    for access in (Read(), Apply(Request(EVE, 30, token=NEXT)), Apply(Release(ANA))):
        with pytest.raises(StoreUnavailable, match=r"sqlite:///.*: the row of 'nightly' is damaged \(") as raised:
            connect(TWO).send("nightly", access)
        assert len(str(raised.value).splitlines()) == 1
    assert is_granted(apply(connect(TWO), Request(EVE, 30, token=NEXT), "another lock"))


@pytest.mark.parametrize("until", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("ticket", [2**52, -1])
def test_a_line_with_numbers_that_nobody_wrote_is_damaged(
    connect: Connect, file: Path, until: float, ticket: int
) -> None:
    from struct import pack

    take(connect(ONE), ANA)
    for packed in (pack("<qqdHh", 1, 1, until, 1, -1), pack("<qqdHh", ticket, 1, 5.0, 1, -1)):
        damage(file, "UPDATE trinco_lock SET waiters = ?", values=(packed + b"x",))
        with pytest.raises(StoreUnavailable, match=r"damaged \(a waiter's "):
            take(connect(TWO), EVE)


def test_a_damaged_lock_hides_none_of_the_others(connect: Connect, file: Path) -> None:
    link = connect(ONE)
    for name in ("a", "b", "c", "d", "e", "f"):
        apply(link, Request(ANA, 30, token=NEXT), name)
    damage(
        file,
        "UPDATE trinco_lock SET until = 'text' WHERE name IN ('a', 'b')",
        "UPDATE trinco_lock SET name = x'ff' WHERE name = 'c'",
        "UPDATE trinco_lock SET name = CAST(x'ff' AS TEXT) WHERE name = 'd'",
    )
    assert list(link.names()) == ["a", "b", "e", "f"]
    with trinco.connect(f"sqlite:///{file}") as locks:
        for name in ("a", "b"):
            with pytest.raises(StoreUnavailable, match=f"row of '{name}' is damaged"):
                locks.inspect(name)
        assert [locks.inspect(name).held for name in ("e", "f")] == [True, True]


def test_a_row_that_cannot_be_written_is_said_so(connect: Connect, file: Path) -> None:
    take(connect(ONE), ANA)
    damage(file, "UPDATE trinco_lock SET id = id + 1", "CREATE UNIQUE INDEX one_name ON trinco_lock (name)")
    with pytest.raises(StoreUnavailable, match=r"is damaged \(it cannot be written"):
        take(connect(TWO), EVE)


# The whole file


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("t_max", "'text'"), ("t_max", "9e999"), ("floor", "'text'"), ("floor", "-1"), ("floor", str(2**53)),
        ("boot_id", "x'00'"), ("machine_id", "x'00'"), ("clock_offset", "x'00'"),
        ("newcomer", "x'00'"), ("newcomer", "'boot-9'"),
    ],
)  # fmt: skip
def test_a_description_that_is_none_of_ours_is_said_so(connect: Connect, file: Path, column: str, value: str) -> None:
    connect(ONE).close()
    damage(file, f"UPDATE trinco_store SET {column} = {value}")
    with pytest.raises(StoreUnavailable, match=r"sqlite:///.*trinco_store is damaged \("):
        connect(TWO)


def test_a_description_that_cannot_be_written_is_said_so(connect: Connect, file: Path) -> None:
    columns = ", ".join(OF_THE_FILE)
    damage(file, f"CREATE TABLE trinco_store (one INTEGER CHECK (one = 2), {columns})")
    with pytest.raises(StoreUnavailable, match=r"trinco_store is damaged \(it keeps nothing\)"):
        connect(ONE)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@pytest.mark.parametrize("table", ["trinco_store", "trinco_lock", "TRINCO_LOCK"])
def test_a_view_in_place_of_a_table_is_refused_and_not_computed(connect: Connect, file: Path, table: str) -> None:
    connect(ONE).close()
    columns = ", ".join(f"sum(i) AS {each}" for each in ("id", *OF_A_LOCK, *OF_THE_FILE))
    damage(file, f"DROP TABLE {table}", f"CREATE VIEW {table} AS {ENDLESS} SELECT {columns} FROM n")
    with pytest.raises(StoreUnavailable, match=f"a view '{table}' stands where tables of ours should"):
        connect(TWO)


def test_a_trigger_on_a_table_of_ours_is_refused(connect: Connect, file: Path) -> None:
    connect(ONE).close()
    damage(file, f"CREATE TRIGGER trap AFTER INSERT ON trinco_lock BEGIN SELECT ({ENDLESS} SELECT sum(i) FROM n); END")
    with pytest.raises(StoreUnavailable, match="a trigger 'trap' stands"):
        connect(TWO)


# Tokens


def test_the_last_token_is_not_followed_by_any(connect: Connect, file: Path) -> None:
    take(connect(ONE), ANA)
    apply(connect(ONE), Release(ANA))
    damage(file, f"UPDATE trinco_lock SET token = {TOKEN_LIMIT - 2}")
    link = connect(TWO)
    assert take(link, EVE).token == TOKEN_LIMIT - 1
    apply(link, Release(EVE))
    answer = take(link, EVE)
    assert isinstance(answer, Failed)
    assert "token cannot grow any more: take another name" in answer.reason
    assert read(link).holder is None


def test_a_lock_without_tokens_takes_none_from_the_others_when_the_host_restarts(connect: Connect, file: Path) -> None:
    link = connect(ONE, boot=HOME)
    token = take(link, ANA).token
    apply(link, Request(ANA, 30, token=NEXT), "exhausted")
    damage(file, f"UPDATE trinco_lock SET token = {TOKEN_LIMIT - 5} WHERE name = 'exhausted'")
    after = connect(TWO, boot=ELSEWHERE)
    assert token + 2**20 <= take(after, EVE).token < TOKEN_LIMIT // 2
    assert isinstance(apply(after, Request(EVE, 30, token=NEXT), "exhausted"), Failed)


@pytest.mark.parametrize("token", ["'text'", "x'00'", "9e999", str(2**63 - 1)])
def test_a_damaged_token_does_not_keep_the_file_shut_after_a_restart(connect: Connect, file: Path, token: str) -> None:
    link = connect(ONE, boot=HOME)
    take(link, ANA)
    damage(file, f"UPDATE trinco_lock SET token = {token}")
    assert is_granted(apply(connect(TWO, boot=ELSEWHERE), Request(EVE, 30, token=NEXT), "another lock"))


# Anything at all

VALUES = (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-1, 0, 1, 2**52, 2**53 - 1, 2**53, 2**63 - 1])
    | st.floats(allow_nan=False) | st.text(max_size=40) | st.binary(max_size=80)
)  # fmt: skip
OPERATIONS: list[Operation] = [
    Request(ANA, 30, 1, 5, NEXT), Request(EVE, 30, 2, 5, NEXT), Request(EVE, 30, token=NEXT), Extend(ANA, 30, 1),
    Commit(ANA, 5), Yield(ANA, 3, 5), Release(EVE), Release(ANA),
]  # fmt: skip


def everything(link: SQLiteLink) -> None:
    """Raises nothing but what stops the whole store."""
    list(link.names())
    for operation in OPERATIONS:
        with suppress(StoreUnavailable):
            found = link.send("nightly", Read())
            assert isinstance(found, Versioned | Failed)
            if isinstance(found, Versioned):
                found.item.counted_from(found.now).in_words()
        with suppress(StoreUnavailable):
            answer = link.send("nightly", Apply(operation))
            assert isinstance(answer, Failed) or (isinstance(answer, Answer) and answer.makes_sense())


@given(
    st.lists(st.tuples(st.sampled_from(COLUMNS), VALUES), min_size=1, max_size=2),
    st.booleans(),
    st.sampled_from([HOME, ELSEWHERE]),
)
def test_whatever_stands_in_a_row_nothing_but_answers_and_clear_errors_come_out(
    damages: list[tuple[tuple[str, str], Any]], typed: bool, boot: Boot
) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "locks.db"
        file.write_bytes(file_with_a_lease())
        if not typed:
            for table in ("trinco_lock", "trinco_store"):
                damage(file, f"CREATE TABLE t AS SELECT * FROM {table}", f"DROP TABLE {table}",
                       f"ALTER TABLE t RENAME TO {table}")  # fmt: skip
        for (table, column), value in damages:
            try:
                damage(file, f"UPDATE {table} SET {column} = ?", values=(value,))
            except sqlite3.IntegrityError:
                continue  # not even a hand can write that
        with links_to(file) as connect, suppress(StoreUnavailable):
            everything(connect(ONE, boot=boot, clock=boottime))
