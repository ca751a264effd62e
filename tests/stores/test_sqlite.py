import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import pytest

from tests.stores.local_stores import (
    ADDRESS,
    Clock,
    Connect,
    apply,
    assert_answers_like_an_item,
    claim,
    hints_within,
    is_granted,
    links_to,
    read,
    stand_in_line,
    take,
)
from tests.stores.local_workers import TTL, run_worker, start_worker
from trinco.leases.accesses import Read, Versioned
from trinco.leases.claim import Claim
from trinco.leases.operation import NEXT, Commit, Extend, Grade, Release, Request
from trinco.stores.clock import boottime, wall_microseconds
from trinco.stores.sqlite import SQLiteStore
from trinco.stores.store import NO_DESCRIPTOR, Failed

ONE, TWO, THREE = "1" * 20, "2" * 20, "3" * 20
ANA, EVE, KIM = claim("ana", ONE), claim("eve", TWO), claim("kim", THREE)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "locks.db"


@pytest.fixture
def connect(file: Path) -> Iterator[Connect]:
    with links_to(file) as connected:
        yield connected


# What an item promises


@pytest.mark.parametrize("seed", range(5))
def test_random_operations_are_answered_as_a_plain_item_would(connect: Connect, seed: int) -> None:
    clock = Clock()
    links = [connect(ADDRESS, t_max=20, clock=clock) for _ in range(2)]
    assert_answers_like_an_item(list(links), clock, 20, seed, 300)


def test_one_link_alone_answers_as_a_plain_item_would(connect: Connect) -> None:
    clock = Clock()
    assert_answers_like_an_item([connect(ADDRESS, t_max=20, clock=clock)], clock, 20, 11, 600)


def test_a_signed_entry_stands_in_the_file_once_and_is_read_back_whole(connect: Connect, file: Path) -> None:
    one, two = connect(ONE), connect(TWO)
    apply(one, Request(ANA, TTL, token=NEXT, entry=b"signed by ana" * 30))
    held = read(two)
    assert held.holder is not None
    assert held.holder.entry == held.evidence == b"signed by ana" * 30
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT entry FROM trinco_lock").fetchall() == [(1,)]
    apply(two, Commit(EVE, held.token + 5, b"not hers"))
    apply(one, Commit(ANA, held.token + 5, b"a second one"))
    after = read(two)
    assert after.holder is not None
    assert (after.holder.entry, after.evidence) == (b"signed by ana" * 30, b"a second one")
    apply(one, Release(ANA))
    assert (read(two).holder, read(two).evidence) == (None, b"a second one")


def test_two_links_exclude_each_other(connect: Connect) -> None:
    one, two = connect(ONE), connect(TWO)
    first = take(one, ANA)
    assert is_granted(first)
    assert take(two, EVE).grade is Grade.REFUSED
    assert apply(one, Release(ANA)).grade is Grade.DONE
    second = take(two, EVE)
    assert is_granted(second)
    assert second.token > first.token
    assert take(one, ANA).grade is Grade.REFUSED


def test_a_lease_survives_the_link_and_its_token_survives_the_lease(connect: Connect) -> None:
    one = connect(ONE)
    token = take(one, ANA).token
    one.close()
    two = connect(TWO)
    assert take(two, EVE).grade is Grade.REFUSED
    apply(two, Release(ANA))
    assert read(two).token == token


def test_a_first_token_is_the_time_of_day_in_microseconds(connect: Connect) -> None:
    before = wall_microseconds()
    assert before < take(connect(), ANA).token <= wall_microseconds() + 1


def test_a_read_tells_durations_and_a_version_that_rises(connect: Connect) -> None:
    clock = Clock()
    link = connect(clock=clock)
    take(link, ANA, ttl=30)
    clock.now += 10
    first = link.send("nightly", Read())
    apply(link, Extend(ANA, 30, 1))
    second = link.send("nightly", Read())
    assert isinstance(first, Versioned)
    assert isinstance(second, Versioned)
    assert first.item.holder is not None
    assert first.item.holder.until == 20
    assert second.item.holder is not None
    assert second.item.holder.until == 30
    assert second.version == first.version + 1


def test_what_a_link_remembers_gives_way_to_what_others_wrote(connect: Connect) -> None:
    clock = Clock()
    one, two = connect(ONE, clock=clock), connect(TWO, clock=clock)
    take(one, ANA, ttl=10)
    clock.now += 11
    assert is_granted(take(two, EVE))
    assert apply(one, Extend(ANA, 10, 1)).grade is Grade.GONE
    assert apply(one, Release(ANA)).grade is Grade.GONE
    assert take(one, ANA).grade is Grade.REFUSED
    apply(two, Release(EVE))
    assert is_granted(take(one, ANA))
    apply(one, Release(ANA))
    assert is_granted(take(two, EVE))
    assert take(one, ANA).grade is Grade.REFUSED


def test_names_are_given_in_order(connect: Connect) -> None:
    link = connect()
    for name in ("b/2", "a", "b/1", "b%"):
        assert is_granted(apply(link, Request(ANA, 30), name))
    assert list(link.names()) == ["a", "b%", "b/1", "b/2"]
    assert list(link.names("b/")) == ["b/1", "b/2"]
    assert list(link.names("%")) == []


def test_a_number_that_no_file_can_keep_changes_nothing(connect: Connect) -> None:
    link = connect()
    token = take(link, ANA).token
    answer = apply(link, Commit(ANA, 2**70))
    assert isinstance(answer, Failed)
    assert "not done" in answer.reason
    assert read(link).token == token


def test_two_names_with_one_key_are_never_taken_for_each_other(connect: Connect, file: Path) -> None:
    link = connect()
    take(link, ANA)
    apply(link, Release(ANA))
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE trinco_lock SET name = 'another', version = version + 1")
    answer = take(link, ANA)
    assert isinstance(answer, Failed)
    assert "'another'" in answer.reason


# Waiting


def test_a_link_opens_no_socket_before_it_waits(connect: Connect, file: Path) -> None:
    link = connect()
    take(link, ANA)
    assert link.fileno() == NO_DESCRIPTOR
    apply(link, Release(ANA))
    assert not Path(f"{file}-wake").exists()


def test_a_release_wakes_the_first_in_line(connect: Connect) -> None:
    holder, second, first = connect(ONE), connect(TWO), connect(THREE)
    take(holder, ANA)
    stand_in_line(second, EVE, ticket=2)
    stand_in_line(first, KIM, ticket=1)
    apply(holder, Release(ANA))
    assert hints_within(first, 5) == [KIM.owner]
    assert hints_within(second, 0) == []
    assert is_granted(stand_in_line(first, KIM, ticket=1))


@pytest.mark.parametrize("remade", [False, True], ids=["gone", "made anew"])
def test_a_waiter_whose_name_was_removed_takes_it_anew_and_keeps_its_place(
    connect: Connect, file: Path, remade: bool
) -> None:
    holder, first, second = connect(ONE), connect(TWO), connect(THREE)
    take(holder, ANA)
    stand_in_line(first, EVE, ticket=1)
    stand_in_line(second, KIM, ticket=2)
    shutil.rmtree(f"{file}-wake")
    if remade:
        Path(f"{file}-wake").mkdir()
    watched = first.fileno()
    stand_in_line(first, EVE, ticket=1)
    stand_in_line(second, KIM, ticket=2)
    assert first.fileno() != watched, "a poller forgets what is closed, and must be told of the new one"
    apply(holder, Release(ANA))
    assert hints_within(first, 5) == [EVE.owner]
    assert is_granted(stand_in_line(first, EVE, ticket=1))


def test_nobody_is_taken_for_dead_because_the_folder_of_all_names_is_gone(connect: Connect, file: Path) -> None:
    holder, first = connect(ONE), connect(TWO)
    take(holder, ANA)
    stand_in_line(first, EVE, ticket=1)
    shutil.rmtree(f"{file}-wake")
    apply(holder, Release(ANA))
    assert not is_granted(apply(holder, Request(ANA.but(attempt=2), 30)))


def test_a_release_wakes_a_waiter_in_another_process(connect: Connect, file: Path) -> None:
    holder = connect(ONE)
    take(holder, ANA)
    with start_worker("wait-in-line", str(file), TWO, "1") as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "waiting\n"
        apply(holder, Release(ANA))
        assert worker.stdout.read().splitlines() == ["hints: 1", "granted"]


def test_a_waiter_that_was_killed_is_skipped(connect: Connect, file: Path) -> None:
    holder, waiter = connect(ONE), connect(THREE)
    take(holder, ANA)
    _leave_a_dead_waiter(file)
    stand_in_line(waiter, KIM, ticket=2)
    apply(holder, Release(ANA))
    assert hints_within(waiter, 5) == [KIM.owner]
    assert os.listdir(f"{file}-wake") == [THREE]
    assert is_granted(stand_in_line(waiter, KIM, ticket=2))


def test_whoever_comes_to_a_free_lock_is_not_kept_out_by_the_dead(connect: Connect, file: Path) -> None:
    take(connect(ONE), ANA, ttl=30)
    _leave_a_dead_waiter(file)
    late = connect(THREE, clock=lambda: boottime() + 40)
    assert [each.until > 0 for each in read(late).waiters] == [True]
    assert is_granted(take(late, KIM))


def test_whoever_comes_to_a_free_lock_nudges_the_first_in_line(connect: Connect) -> None:
    waiter = connect(TWO)
    take(connect(ONE), ANA, ttl=30)
    stand_in_line(waiter, EVE, ticket=1, wait=1000)
    late = connect(THREE, clock=lambda: boottime() + 40)
    assert take(late, KIM).grade is Grade.REFUSED
    assert hints_within(waiter, 5) == [EVE.owner]


def test_a_waiter_without_an_address_keeps_its_place(connect: Connect) -> None:
    link = connect(ONE)
    take(link, ANA)
    stand_in_line(link, Claim("somebody", 1), ticket=1)
    apply(link, Release(ANA))
    assert take(link, ANA).grade is Grade.REFUSED
    assert is_granted(stand_in_line(link, Claim("somebody", 1), ticket=1))


def test_a_closed_link_leaves_no_socket(connect: Connect, file: Path) -> None:
    link = connect(ONE)
    link.expect_hints(ANA.owner)
    assert os.listdir(f"{file}-wake") == [ONE]
    link.close()
    assert os.listdir(f"{file}-wake") == []
    link.close()


def test_sockets_of_the_dead_are_swept(connect: Connect, file: Path) -> None:
    take(connect(ONE), ANA)
    _leave_a_dead_waiter(file)
    assert os.listdir(f"{file}-wake") == [TWO]
    connect(THREE).expect_hints(KIM.owner)
    assert os.listdir(f"{file}-wake") == [THREE]


def test_a_folder_may_be_deeper_than_a_socket_address_is_long(tmp_path: Path) -> None:
    path = tmp_path.joinpath(*["a-rather-long-name-of-a-folder"] * 6) / "locks.db"
    with ExitStack() as links:
        holder, waiter = (
            links.enter_context(closing(SQLiteStore(str(path)).connect(address))) for address in (ONE, TWO)
        )
        take(holder, ANA)
        stand_in_line(waiter, EVE, ticket=1)
        apply(holder, Release(ANA))
        assert hints_within(waiter, 5) == [EVE.owner]


def test_a_folder_of_names_that_leads_elsewhere_is_not_used_and_loses_nothing(
    connect: Connect, file: Path, tmp_path: Path
) -> None:
    papers = tmp_path / "papers"
    papers.mkdir(0o700)
    (papers / "thesis.txt").write_text("x")
    Path(f"{file}-wake").symlink_to(papers)
    _leave_a_socket(papers / THREE)
    _assert_waits_without_being_rung(connect)
    assert sorted(each.name for each in papers.iterdir()) == [THREE, "thesis.txt"]


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_of_names_that_others_may_write_to_is_not_used(connect: Connect, file: Path, mode: int) -> None:
    wake = Path(f"{file}-wake")
    wake.mkdir()
    wake.chmod(mode)
    _leave_a_socket(wake / THREE)
    _assert_waits_without_being_rung(connect)
    assert os.listdir(wake) == [THREE]


def test_root_makes_no_folder_of_names_for_somebody_elses_file(
    connect: Connect, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner could not use it, ever."""
    waiter = connect(TWO)
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    waiter.expect_hints(EVE.owner)
    assert not Path(f"{file}-wake").exists()


def test_nothing_but_sockets_with_names_of_ours_is_swept(connect: Connect, file: Path) -> None:
    wake = Path(f"{file}-wake")
    wake.mkdir(0o700)
    for name in ("thesis.txt", "old.new", THREE, f"{THREE}.new"):
        (wake / name).write_text("x")
        os.utime(wake / name, (0, 0))
    for name in ("a-socket-of-somebody", f"{ONE}.new", ONE):
        _leave_a_socket(wake / name)
        os.utime(wake / name, (0, 0))
    connect(TWO).expect_hints(EVE.owner)
    kept = ["thesis.txt", "old.new", THREE, f"{THREE}.new", "a-socket-of-somebody", TWO]
    assert sorted(os.listdir(wake)) == sorted(kept)


def test_whoever_rings_at_a_file_leaves_it_alone(connect: Connect, file: Path) -> None:
    holder, waiter = connect(ONE), connect(TWO)
    take(holder, ANA)
    stand_in_line(waiter, EVE, ticket=1)
    place = Path(f"{file}-wake", TWO)
    place.unlink()
    place.write_text("x")
    apply(holder, Release(ANA))
    assert place.read_text() == "x"


def _assert_waits_without_being_rung(connect: Connect) -> None:
    """And keeps its place in line: its silence proves nothing."""
    holder, waiter, late = connect(ONE), connect(TWO), connect(THREE)
    take(holder, ANA)
    assert stand_in_line(waiter, EVE, ticket=1).grade is Grade.REFUSED
    assert waiter.fileno() == NO_DESCRIPTOR
    apply(holder, Release(ANA))
    assert take(late, KIM).grade is Grade.REFUSED
    assert is_granted(stand_in_line(waiter, EVE, ticket=1))


def _leave_a_socket(path: Path) -> None:
    """That nobody listens to."""
    folder = os.open(path.parent, os.O_RDONLY)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as bound:
        bound.bind(f"/proc/self/fd/{folder}/{path.name}")  # a whole path may be too long
    os.close(folder)


def _leave_a_dead_waiter(file: Path) -> None:
    with start_worker("wait-in-line", str(file), TWO, "1") as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "waiting\n"
        worker.kill()


# Processes


def test_killed_processes_never_let_two_in(file: Path) -> None:
    kills = int(run_worker("torture", str(file), "4")[0])
    turns = [tuple(map(float, line.split())) for line in Path(f"{file}-log").read_text().splitlines()]
    by_token = sorted(turns)
    assert kills > 20
    assert len(turns) > 100
    assert len({token for token, *_ in turns}) == len(turns)
    counts = [count for _, count, *_ in by_token]
    assert counts == sorted(set(counts)), "two were inside, and one count was lost"
    gaps = [late - early for (*_, early), (*_, late) in pairwise(by_token)]
    assert min(gaps) > 0, "somebody was inside after a larger token"
    assert max(gaps) < 4 * TTL
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_processes_that_arrive_together_make_one_file(file: Path) -> None:
    assert sorted(run_worker("arrive-together", str(file))) == ["granted"] + ["refused"] * 7


def test_a_forked_child_leaves_its_parents_link_alone(file: Path) -> None:
    said = run_worker("fork-sqlite", str(file))
    assert said == ["parent: granted", "child: refused", "child: granted", "parent: granted", "parent: 1 socket"]


def test_a_free_lock_costs_no_heavy_imports(file: Path) -> None:
    script = f"""
import sys
from trinco.stores.sqlite import SQLiteStore
from trinco.leases.accesses import Apply
from trinco.leases.claim import Claim
from trinco.leases.operation import NEXT, Release, Request
link = SQLiteStore({str(file)!r}).connect("a" * 20)
print(link.send("nightly", Apply(Request(Claim("ana", 1), 30, token=NEXT))).grade.value)
print(link.send("nightly", Apply(Release(Claim("ana", 1)))).grade.value)
link.close()
heavy = {{"typing", "dataclasses", "json", "subprocess", "logging", "asyncio", "threading", "contextlib", "pathlib",
    "random", "hashlib", "struct", "socket", "_socket", "ctypes", "shutil", "tempfile"}}
print(sorted(heavy & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=20, check=True)
    assert run.stdout.splitlines() == ["committed", "done", "[]"]
