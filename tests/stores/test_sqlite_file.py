import gc
import os
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.stores.local_stores import (
    Clock,
    Connect,
    apply,
    claim,
    is_granted,
    links_to,
    read,
    stand_in_line,
    take,
)
from tests.stores.local_workers import run_worker
from trinco.core.errors import StoreUnavailable
from trinco.leases.operation import Extend, Grade, Release, Request
from trinco.stores import sqlite
from trinco.stores.boot import Boot, network_filesystem, this_boot
from trinco.stores.sqlite import SQLiteStore
from trinco.stores.store import Failed

ONE, TWO, THREE = "1" * 20, "2" * 20, "3" * 20
ANA, EVE, KIM = claim("ana", ONE), claim("eve", TWO), claim("kim", THREE)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "locks.db"


@pytest.fixture
def connect(file: Path) -> Iterator[Connect]:
    with links_to(file) as connected:
        yield connected


# Boots and machines


HOME = Boot("boot-1", "machine-1")


def test_a_reboot_voids_leases_and_lines_and_raises_every_token(connect: Connect) -> None:
    before = connect(ONE, boot=HOME)
    token = take(before, ANA).token
    stand_in_line(before, claim("eve", ONE), ticket=1)
    before.close()
    after = connect(TWO, boot=Boot("boot-2", "machine-1"), clock=Clock(5.0))
    assert read(after).holder is None
    assert read(after).waiters == ()
    answer = take(after, EVE)
    assert is_granted(answer)
    assert answer.token >= token + 2**20


def test_a_reboot_with_a_wrong_time_of_day_still_raises_tokens(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = connect(ONE, boot=HOME)
    token = take(before, ANA).token
    before.close()
    monkeypatch.setattr("trinco.stores.sqlite_file.wall_microseconds", lambda: 0)
    monkeypatch.setattr("trinco.stores.sqlite.wall_microseconds", lambda: 0)
    monkeypatch.setattr("trinco.stores.wake.wall_microseconds", lambda: 0)
    after = connect(TWO, boot=Boot("boot-2", "machine-1"), clock=Clock(5.0))
    assert take(after, EVE).token > token
    assert apply(after, Request(EVE, 30, token="next"), "a lock whose row was lost").token > token


def test_a_file_that_was_restored_from_a_backup_repeats_no_token(connect: Connect, file: Path) -> None:
    link = connect()
    take(link, ANA)
    apply(link, Release(ANA))
    link.close()
    backup = file.read_bytes()
    link = connect()
    token = take(link, ANA).token
    apply(link, Release(ANA))
    link.close()
    file.write_bytes(backup)
    assert take(connect(), EVE).token > token


def test_the_same_boot_voids_nothing(connect: Connect) -> None:
    take(connect(ONE, boot=HOME), ANA)
    assert take(connect(TWO, boot=Boot("boot-1", "another container's")), EVE).grade is Grade.REFUSED


@pytest.mark.parametrize("machine_id", ["machine-2", ""])
def test_a_file_from_another_machine_grants_nothing_for_t_max(connect: Connect, machine_id: str) -> None:
    token = take(connect(ONE, boot=HOME, t_max=40), ANA).token
    clock = Clock(5.0)
    boot = Boot("boot-2", machine_id)
    first = connect(TWO, boot=boot, clock=clock, t_max=20)
    answer = take(first, EVE)
    assert isinstance(answer, Failed)
    assert "another machine" in answer.reason
    assert "40 s" in answer.reason
    assert_unavailable(first.names, "another machine")
    clock.now += 39
    second = connect(THREE, boot=boot, clock=clock, t_max=20)
    assert isinstance(take(first, EVE), Failed)
    assert isinstance(take(second, KIM), Failed)
    clock.now += 1
    answer = take(first, EVE)
    assert is_granted(answer)
    assert answer.token > token
    assert take(second, KIM).grade is Grade.REFUSED


def test_no_machine_id_at_all_is_no_proof_of_a_reboot(connect: Connect) -> None:
    take(connect(ONE, boot=Boot("boot-1", "")), ANA)
    assert isinstance(take(connect(TWO, boot=Boot("boot-2", "")), EVE), Failed)


def test_another_time_namespace_is_refused(connect: Connect) -> None:
    connect(ONE, boot=HOME)
    with pytest.raises(StoreUnavailable, match="time namespace"):
        connect(TWO, boot=Boot("boot-1", "machine-1", "86400 0"))


def test_this_boot_is_the_same_every_time() -> None:
    assert this_boot() == this_boot()
    assert this_boot().boot_id


MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /home rw shared:2 - nfs4 server:/home rw
31 30 254:1 / /home/local\040disk rw - ext4 /dev/vdb rw
32 22 0:26 / /mnt/share rw - cifs //server/share rw"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", None),
        ("/homestead", None),
        ("/home/ana", "nfs4"),
        ("/home/local disk/ana", None),
        ("/mnt/share", "cifs"),
    ],
)
def test_a_network_file_system_is_known_by_its_mount(path: str, kind: str | None) -> None:
    assert network_filesystem(path, MOUNTS) == kind


# What can go wrong with a file


def assert_unavailable(action: Callable[[], object], words: str) -> None:
    with pytest.raises(StoreUnavailable, match=words) as raised:
        action()
    assert "sqlite:///" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_a_missing_folder_is_made_for_us_alone(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "locks.db"
    SQLiteStore(str(path)).connect(ONE).close()
    assert (tmp_path / "one" / "two").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_a_file_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    store = SQLiteStore(str(tmp_path / "plain" / "locks.db"))
    assert_unavailable(lambda: store.connect(ONE), "folder cannot be made")


@pytest.mark.parametrize("path", ["/proc/locks.db", "/"])
def test_a_place_where_no_file_can_be_is_said_so(path: str) -> None:
    assert_unavailable(lambda: SQLiteStore(path).connect(ONE), "cannot be opened")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """That others may enter."""
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def test_a_read_only_file_is_said_so(open_folder: Path) -> None:
    path = open_folder / "locks.db"
    SQLiteStore(str(path)).connect(ONE).close()
    path.chmod(0o444)
    (said,) = run_worker("take-as-nobody", str(path))
    assert said.startswith(f"sqlite:///{path}: {path} is read-only for us")


def test_a_read_only_folder_is_said_so(open_folder: Path) -> None:
    path = open_folder / "locks.db"
    SQLiteStore(str(path)).connect(ONE).close()
    path.chmod(0o666)
    open_folder.chmod(0o555)
    (said,) = run_worker("take-as-nobody", str(path))
    open_folder.chmod(0o777)
    assert "the file or its folder is read-only for us" in said


@pytest.mark.parametrize("mode", [0o000, 0o555])
def test_a_new_file_in_a_folder_that_we_may_not_enter_or_write_is_forbidden(open_folder: Path, mode: int) -> None:
    folder = open_folder / "theirs"
    folder.mkdir(mode)
    (said,) = run_worker("take-as-nobody", str(folder / "locks.db"))
    assert said.startswith(f"sqlite:///{folder}/locks.db: ")


def test_who_may_not_write_leaves_nothing_that_shuts_the_owner_out(open_folder: Path) -> None:
    """SQLite would make its log and its index for a mere reader, who would own them."""
    path = open_folder / "locks.db"
    SQLiteStore(str(path)).connect(ONE).close()
    path.chmod(0o444)
    run_worker("take-as-nobody", str(path))
    assert [each.name for each in open_folder.iterdir()] == ["locks.db"]


@pytest.mark.parametrize("companion", ["-shm", "-wal"])
def test_a_read_only_file_beside_it_is_named(open_folder: Path, companion: str) -> None:
    path = open_folder / "locks.db"
    SQLiteStore(str(path)).connect(ONE).close()
    path.chmod(0o666)
    left_behind = Path(f"{path}{companion}")
    left_behind.touch()
    left_behind.chmod(0o444)
    (said,) = run_worker("take-as-nobody", str(path))
    assert said.startswith(f"sqlite:///{path}: {left_behind} is read-only for us")


def test_a_file_with_a_second_name_is_refused_by_either(connect: Connect, file: Path) -> None:
    """SQLite's log goes by the name: two holders, who do not see each other."""
    connect().close()
    other = file.with_name("other.db")
    other.hardlink_to(file)
    for path in (file, other):
        assert_unavailable(partial(SQLiteStore(str(path)).connect, ONE), "2 names")
    other.unlink()
    assert is_granted(take(connect(), ANA))


def test_a_symbolic_link_is_the_file_itself(connect: Connect, file: Path) -> None:
    take(connect(), ANA)
    link = file.with_name("other.db")
    link.symlink_to(file)
    with closing(SQLiteStore(str(link)).connect(TWO)) as other:
        assert take(other, EVE).grade is Grade.REFUSED


@pytest.fixture
def current(tmp_path: Path) -> Path:
    """A folder by another name, as those who deploy a program have it."""
    for release in ("r1", "r2"):
        (tmp_path / release).mkdir()
    link = tmp_path / "current"
    link.symlink_to("r1")
    return link


def _switch(link: Path) -> None:
    other = link.with_name("next")
    other.symlink_to("r2")
    other.rename(link)


def test_whoever_holds_by_a_symbolic_link_that_was_switched_is_told_so_and_has_lost_it(current: Path) -> None:
    clock = Clock()
    store = SQLiteStore(str(current / "locks.db"), clock=clock)
    with closing(store.connect(ONE)) as link:
        assert is_granted(take(link, ANA))
        _switch(current)
        clock.now += 2
        assert_unavailable(lambda: apply(link, Extend(ANA, 30, 1)), "current/locks.db .* link was switched")
    elsewhere = SQLiteStore(str(current / "locks.db"), clock=clock)
    with closing(store.connect(ONE)) as again, closing(elsewhere.connect(TWO)) as other:
        assert apply(again, Extend(ANA, 30, 1)).grade is Grade.GONE
        assert is_granted(take(other, EVE))
        assert take(again, ANA).grade is Grade.REFUSED


def test_a_path_through_a_folder_that_is_not_there_and_up_again_can_be_used(connect: Connect, file: Path) -> None:
    take(connect(), ANA)
    with closing(SQLiteStore(str(file.parent / "nowhere" / ".." / file.name)).connect(TWO)) as other:
        assert take(other, EVE).grade is Grade.REFUSED


def test_a_device_is_refused_and_nothing_is_left_beside_it() -> None:
    beside = [Path("/dev/null" + suffix) for suffix in ("-journal", "-wal", "-shm", "-wake")]
    before = [each.exists() for each in beside]
    assert_unavailable(lambda: SQLiteStore("/dev/null").connect(ONE), "no regular file")
    assert [each.exists() for each in beside] == before


def test_who_may_open_no_more_files_is_told_so(file: Path) -> None:
    """And not that this system does not say when it was started."""
    store = SQLiteStore(str(file))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(StoreUnavailable, match="Too many open files"):
            store.connect(ONE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_who_is_interrupted_while_it_connects_hears_of_nothing_else(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: heard.append(unraisable.exc_value))
    monkeypatch.setattr(sqlite.WakingLink, "__init__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        connect()
    gc.collect()
    assert not heard


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


class InterruptedAtBegin(sqlite3.Connection):
    """A signal's handler raises when a transaction has just begun."""

    def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
        cursor = super().execute(sql, *rest)
        if sql.startswith("BEGIN"):
            raise KeyboardInterrupt
        return cursor


def test_who_is_interrupted_while_the_file_is_made_hears_of_the_interrupt(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("_sqlite3.connect", partial(sqlite3.connect, factory=InterruptedAtBegin))
        with pytest.raises(KeyboardInterrupt):
            connect()
    assert is_granted(take(connect(), ANA))


def test_another_kind_of_file_is_said_so(connect: Connect, file: Path) -> None:
    file.write_bytes(b"these are not locks" * 1000)
    assert_unavailable(connect, "not an SQLite database")


def test_a_damaged_file_is_said_so(connect: Connect, file: Path) -> None:
    link = connect()
    for number in range(200):
        apply(link, Request(ANA, 30, entry=bytes(1000)), f"lock {number}")
    link.close()
    size = file.stat().st_size
    with file.open("r+b") as damaged:
        damaged.seek(4096 * 2)
        damaged.write(b"\xff" * (size - 4096 * 2))
    assert_unavailable(lambda: [take(connect(), ANA), *connect().names()], "damaged")


def test_a_damaged_line_of_waiters_is_said_so(connect: Connect, file: Path) -> None:
    link = connect()
    take(link, ANA)
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE trinco_lock SET waiters = x'0102', version = version + 1")
    assert_unavailable(lambda: take(link, EVE), "damaged")


def test_a_full_disk_is_said_so_and_loses_nothing(connect: Connect) -> None:
    link = connect()
    pages = link._database.connection.execute("PRAGMA page_count").fetchone()[0]
    link._database.connection.execute(f"PRAGMA max_page_count = {pages + 12}")
    taken = []

    def fill() -> None:
        for number in range(100):
            apply(link, Request(ANA, 30, entry=bytes(4000)), f"lock {number}")
            taken.append(f"lock {number}")

    assert_unavailable(fill, "full")
    assert taken
    other = connect(TWO)
    assert sorted(other.names()) == sorted(taken)
    assert apply(other, Request(EVE, 30), taken[-1]).grade is Grade.REFUSED


def test_a_file_that_was_removed_is_no_lock_any_more(connect: Connect, file: Path) -> None:
    clock = Clock()
    link = connect(clock=clock)
    take(link, ANA)
    file.unlink()
    clock.now += 2
    assert_unavailable(lambda: apply(link, Extend(ANA, 30, 1)), "removed or replaced")


@pytest.mark.parametrize("companion", ["-shm", "-wal"])
def test_whoever_uses_a_log_or_an_index_that_was_removed_is_told_so(
    connect: Connect, file: Path, companion: str
) -> None:
    """SQLite makes another for whoever comes next, and neither sees what the other takes."""
    clock = Clock()
    link = connect(clock=clock)
    take(link, ANA)
    Path(f"{file}{companion}").unlink()
    Path(f"{file}{companion}").touch()
    clock.now += 2
    assert_unavailable(lambda: apply(link, Extend(ANA, 30, 1)), f"{companion} was removed or replaced")


def test_a_second_link_does_not_hide_that_the_index_was_removed(connect: Connect, file: Path) -> None:
    """SQLite maps it once for all links of a process: the second one has the one that is gone, too."""
    with closing(SQLiteStore(str(file)).connect(ONE)):
        Path(f"{file}-shm").unlink()
        Path(f"{file}-shm").touch()
        assert_unavailable(connect, "-shm was removed or replaced")
    assert is_granted(take(connect(TWO), ANA))


def test_the_log_that_the_last_to_leave_removes_is_not_missed(connect: Connect) -> None:
    for _ in range(3):
        link = connect()
        assert is_granted(take(link, ANA))
        apply(link, Release(ANA))
        link.close()


def test_a_file_that_was_restored_without_a_log_gets_one(connect: Connect, file: Path) -> None:
    connect().close()
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    assert is_granted(take(connect(), ANA))
    assert Path(f"{file}-wal").exists()


def test_a_busy_file_is_waited_for_and_then_said_so(
    connect: Connect, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    link = connect()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = take(link, ANA)
        other.execute("ROLLBACK")
    assert isinstance(answer, Failed)
    assert "busy" in answer.reason
    assert read(link).holder is None
    assert is_granted(take(link, ANA))


def test_a_file_of_another_version_is_left_alone(connect: Connect, file: Path) -> None:
    connect().close()
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE trinco_store SET format = 99")
    assert_unavailable(connect, "another version")


def test_a_closed_link_says_that_it_is_closed(connect: Connect) -> None:
    link = connect()
    link.close()
    assert_unavailable(lambda: take(link, ANA), "closed")


def test_the_log_is_folded_into_the_file_now_and_then(connect: Connect, file: Path) -> None:
    link = connect()
    for _ in range(2 * sqlite.COMMITS_PER_CHECKPOINT):
        take(link, ANA)
        apply(link, Release(ANA))
    assert Path(f"{file}-wal").stat().st_size < 6_000_000


def test_a_file_that_is_made_while_we_look_is_not_taken_for_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever opens or closes the same store makes and removes its log."""
    path, exists = tmp_path / "locks.db-shm", os.path.exists

    def made_meanwhile(asked: str) -> bool:
        if asked == str(path):
            path.touch()
        return exists(asked)

    monkeypatch.setattr(os.path, "exists", made_meanwhile)
    SQLiteStore(str(tmp_path / "locks.db")).connect("a" * 20).close()
    assert exists(tmp_path / "locks.db")
