"""A folder as a store: the object-store algorithm on real files, between clients, threads of time and processes."""

import errno
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trinco
from trinco.cli.main import main
from trinco.core.errors import AcquireTimeout, StoreForbidden, StoreUnavailable
from trinco.leases.accesses import Access, Delete, Done, List, Listing, Put, Read
from trinco.leases.bases.listed import MANY_ROWS
from trinco.leases.bases.object_store import ObjectStore
from trinco.leases.claim import Claim
from trinco.leases.item import Limits
from trinco.leases.operation import (
    TICKET_LIMIT,
    TOKEN_LIMIT,
    Answer,
    Commit,
    Extend,
    Grade,
    Operation,
    Release,
    Request,
)
from trinco.leases.owner import client_of, owner_name
from trinco.leases.plan import Plan
from trinco.leases.row import Kind, Named
from trinco.stores import directory
from trinco.stores.clock import boottime
from trinco.stores.directory import DirectoryLink, DirectoryStore, granularity_of, segment
from trinco.stores.directory_entry import file_name, read, written
from trinco.stores.store import Failed

ADDRESS = "0" * 20
LOCK = "nightly"
ME = Claim(owner_name("ana@laptop:1", ADDRESS, 1), 1)
OTHER = Claim(owner_name("rui@server:2", ADDRESS, 2), 1)
GARBAGE = "left-by-an-editor.txt~"


class Client:
    """One link and what its operations leave for the next; drives plans by hand."""

    def __init__(self, store: DirectoryStore, resource: str = LOCK) -> None:
        self.link = store.connect(ADDRESS)
        self.resource = resource
        self.algorithm = ObjectStore(Limits(t_max=store.t_max))
        self.memory: Any = None

    def do(self, operation: Operation, between: Callable[[Access], None] = lambda access: None) -> Answer:
        plan = Plan(operation, None, self.memory)
        while isinstance(step := plan.step(self.algorithm), Access):
            between(step)
            plan = plan.told(self.link.send(self.resource, step))
        self.memory = step.memory
        return step.answer

    def grade(self, operation: Operation) -> Grade:
        return self.do(operation).grade

    def listing(self) -> Listing:
        reply = self.link.send(self.resource, List())
        assert isinstance(reply, Listing)
        return reply


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(str(tmp_path / "locks"), t_max=20.0)


@pytest.fixture
def me(store: DirectoryStore) -> Client:
    return Client(store)


@pytest.fixture
def other(store: DirectoryStore) -> Client:
    return Client(store)


def entries(store: DirectoryStore, resource: str = LOCK) -> list[Path]:
    folder = Path(store.path) / segment(resource)
    return sorted(path for path in folder.iterdir() if path.name != ".name")


def kinds(store: DirectoryStore) -> list[str]:
    return [path.name.partition("-")[0] for path in entries(store)]


def make_older(path: Path, seconds: float) -> None:
    """As if it had been written that much earlier."""
    stamp = path.stat().st_mtime_ns - int(seconds * 1e9)
    os.utime(path, ns=(stamp, stamp))


def until(true: Callable[[], bool], limit: float = 5.0) -> None:
    end = time.monotonic() + limit
    while not true():
        assert time.monotonic() < end, "it did not happen in time"


# Stamps of the future


def test_a_foreign_file_from_the_future_is_in_the_way_for_t_max_at_most(
    store: DirectoryStore, me: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    me.do(Request(ME, 10))
    me.do(Release(ME))
    (Path(store.path) / LOCK / GARBAGE).touch()
    make_older(Path(store.path) / LOCK / GARBAGE, -1e8)
    assert me.grade(Request(ME, 10)) is Grade.REFUSED
    after = boottime() + store.t_max
    monkeypatch.setattr(directory, "boottime", lambda: after - 1)
    assert me.grade(Request(ME, 10)) is Grade.REFUSED
    monkeypatch.setattr(directory, "boottime", lambda: after + 1)
    assert me.grade(Request(ME, 10)) is Grade.COMMITTED


@pytest.mark.parametrize("stamp", [0, -1e8])
def test_whoever_is_kept_out_by_a_foreign_file_is_told_which(
    store: DirectoryStore, stamp: float, capsys: pytest.CaptureFixture[str]
) -> None:
    with trinco.connect(store.url) as locks:
        locks.lock(LOCK).hold(0).__enter__().release()
        foreign = Path(store.path) / LOCK / "line\nfeed"
        foreign.touch()
        make_older(foreign, stamp)
        info = locks.inspect(LOCK)
        assert info.held
        assert f"'{LOCK}/line\\nfeed' in the store" in info.why
        assert "remove it if nobody holds the lock" in info.why
        with pytest.raises(AcquireTimeout, match="feed' in the store"):
            locks.lock(LOCK).hold(0).__enter__()
    assert main(["break", "-u", store.url, LOCK]) == 1
    assert "nothing was broken: " in (said := capsys.readouterr().err)
    assert "feed' in the store" in said


def test_who_holds_is_named_before_a_foreign_file_is(store: DirectoryStore) -> None:
    with trinco.connect(store.url) as locks, locks.lock(LOCK, ttl=5).hold() as lease:
        (Path(store.path) / LOCK / GARBAGE).touch()
        info = locks.inspect(LOCK)
        assert (info.owner, info.why) == (client_of(lease.owner), "")


@pytest.mark.parametrize("name", [".DS_Store", ".nfs000000000000abcd00000001"])
def test_a_dotted_file_is_in_nobodys_way(store: DirectoryStore, me: Client, name: str) -> None:
    (Path(store.path) / LOCK).mkdir()
    (Path(store.path) / LOCK / name).touch()
    assert me.grade(Request(ME, 10)) is Grade.COMMITTED


def test_a_read_only_file_system_is_one_that_we_may_not_use(store: DirectoryStore) -> None:
    assert isinstance(store.unavailable(OSError(errno.EROFS, "Read-only file system")), StoreForbidden)


# Two clients


def test_one_of_two_gets_it_and_the_other_after_the_release(me: Client, other: Client) -> None:
    assert me.grade(Request(ME, 10)) is Grade.COMMITTED
    refused = other.do(Request(OTHER, 10))
    assert refused.grade is Grade.REFUSED
    assert 9 < refused.remaining <= 10
    assert me.grade(Release(ME)) is Grade.DONE
    assert other.grade(Request(OTHER, 10)) is Grade.COMMITTED


def test_two_that_write_at_once_do_not_both_get_it(me: Client, other: Client) -> None:
    """Both have looked before either writes: the second look decides."""
    answers: list[Answer] = []

    def meanwhile(access: Access) -> None:
        if isinstance(access, Put) and not answers:
            answers.append(other.do(Request(OTHER, 10)))

    answers.append(me.do(Request(ME, 10), meanwhile))
    assert [answer.grade for answer in answers] == [Grade.COMMITTED, Grade.REFUSED]


def test_a_renewal_replaces_the_file_and_keeps_others_out(store: DirectoryStore, me: Client, other: Client) -> None:
    me.do(Request(ME, 10))
    before = entries(store)
    assert me.grade(Extend(ME, 10, 1)) is Grade.COMMITTED
    assert len(entries(store)) == 1
    assert entries(store) != before
    assert other.grade(Request(OTHER, 10)) is Grade.REFUSED


def test_the_smaller_ticket_is_served_first(me: Client, other: Client, store: DirectoryStore) -> None:
    third = Client(store)
    third_claim = Claim(owner_name("eva@desk:3", ADDRESS, 3), 1)
    third.do(Request(third_claim, 10))
    assert me.grade(Request(ME, 10, ticket=1, wait=5)) is Grade.REFUSED
    assert other.grade(Request(OTHER, 10, ticket=2, wait=5)) is Grade.REFUSED
    third.do(Release(third_claim))
    assert other.grade(Request(OTHER, 10, ticket=2, wait=5)) is Grade.REFUSED
    assert me.grade(Request(ME, 10, ticket=1, wait=5)) is Grade.COMMITTED


def test_a_token_outlives_the_release_and_a_smaller_one_is_only_tentative(
    store: DirectoryStore, me: Client, other: Client
) -> None:
    assert me.do(Request(ME, 10, token=100)).token == 100
    me.do(Release(ME))
    assert kinds(store) == ["token"]
    assert other.grade(Request(OTHER, 10, token=99)) is Grade.TENTATIVE
    assert other.do(Commit(OTHER, 101)).token == 101
    assert kinds(store) == ["held", "token"]


def test_a_small_token_is_answered_with_the_entry_that_brought_the_large_one(me: Client, other: Client) -> None:
    me.do(Request(ME, 10, token=100, entry=b"signed \n\0 bytes"))
    me.do(Release(ME))
    assert other.do(Request(OTHER, 10, token=99)).evidence == b"signed \n\0 bytes"


def test_a_release_removes_nobody_elses_file(me: Client, other: Client) -> None:
    me.do(Request(ME, 10))
    other.do(Release(OTHER))
    assert other.grade(Request(OTHER, 10)) is Grade.REFUSED


# Time


def test_what_a_crash_leaves_behind_expires(me: Client, other: Client) -> None:
    me.do(Request(ME, 0.3))
    asked = time.monotonic()
    until(lambda: other.grade(Request(OTHER, 10)) is Grade.COMMITTED)
    assert time.monotonic() - asked < 1.0


def test_a_lease_counts_for_its_time_and_no_longer(store: DirectoryStore, me: Client, other: Client) -> None:
    me.do(Request(ME, 10))
    make_older(entries(store)[0], 9.0)
    assert other.grade(Request(OTHER, 10)) is Grade.REFUSED
    make_older(entries(store)[0], 1.1)
    assert other.grade(Request(OTHER, 10)) is Grade.COMMITTED


def test_asking_again_after_it_ran_out_stamps_the_file_anew(store: DirectoryStore, me: Client, other: Client) -> None:
    """The same claim writes the same file; with its old stamp others would walk in."""
    me.do(Request(ME, 10))
    make_older(entries(store)[0], 11.0)
    assert me.grade(Request(ME, 10)) is Grade.COMMITTED
    assert len(entries(store)) == 1
    assert other.grade(Request(OTHER, 10)) is Grade.REFUSED


def test_a_stamp_in_the_future_is_of_now(store: DirectoryStore, me: Client) -> None:
    me.do(Request(ME, 10))
    make_older(entries(store)[0], -3600)
    assert [row.age for row in me.listing().rows] == [0]


def test_a_listing_says_how_coarse_its_clock_is(me: Client) -> None:
    assert me.do(Request(ME, 10)).granularity == me.link.granularity
    assert 0.01 <= me.link.granularity <= 2.0


def stamps(*seconds: float) -> Callable[[], int]:
    """A clock that shows these, the last one for ever."""
    left = list(seconds)
    return lambda: int((left.pop(0) if len(left) > 1 else left[0]) * 1e9)


@pytest.mark.parametrize(
    ("shown", "granularity"),
    [
        (stamps(7.5, 7.5, 7.504), 0.01),
        (stamps(7.5, 7.515625), 0.015625),
        (stamps(7.0, 8.0), 2.0),
        (stamps(7.0), 2.0),
        (stamps(7.3), 2.0),
        (stamps(7.3, 6.1), 2.0),
    ],
    ids=["a fine tick", "a coarse tick", "whole seconds", "stands still", "stands still between", "set back"],
)
def test_the_tick_is_what_was_seen_or_the_worst_there_is(shown: Callable[[], int], granularity: float) -> None:
    assert granularity_of(shown, limit=0.01) == pytest.approx(granularity)


# What is in the folder and is no entry of ours


def garbage(store: DirectoryStore) -> Path:
    folder = Path(store.path) / segment(LOCK)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / GARBAGE


def test_a_file_that_nobody_can_read_blocks_until_t_max_and_no_longer(store: DirectoryStore, me: Client) -> None:
    path = garbage(store)
    path.write_text("?")
    make_older(path, store.t_max - 5)
    refused = me.do(Request(ME, 10))
    assert refused.grade is Grade.REFUSED
    assert 4 < refused.remaining <= 5
    make_older(path, 5.1)
    assert me.grade(Request(ME, 10)) is Grade.COMMITTED
    assert path.exists()


def test_an_entry_that_was_cut_off_still_keeps_others_out(store: DirectoryStore, me: Client, other: Client) -> None:
    me.do(Request(ME, 10))
    [path] = entries(store)
    path.write_bytes(path.read_bytes()[:-4])
    assert [row.named.kind for row in other.listing().rows] == [Kind.UNKNOWN]
    assert other.grade(Request(OTHER, 10)) is Grade.REFUSED


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("nowhere", path)])
def test_what_is_no_file_blocks_the_lock_and_not_the_reader(
    make: Callable[[str], None], store: DirectoryStore, me: Client
) -> None:
    make(str(garbage(store)))
    assert me.grade(Request(ME, 10)) is Grade.REFUSED


def test_a_file_of_any_size_is_read_for_a_few_kilobytes_only(store: DirectoryStore, me: Client) -> None:
    with garbage(store).open("wb") as file:
        file.truncate(2**36)
    assert [row.named.kind for row in me.listing().rows] == [Kind.UNKNOWN]


def test_a_half_written_file_is_nothing_yet(store: DirectoryStore, me: Client) -> None:
    garbage(store).with_name(".new-0123-1").write_text("trinco le")
    assert me.grade(Request(ME, 10)) is Grade.COMMITTED


def test_an_access_leaves_nothing_unfinished_behind(store: DirectoryStore, me: Client) -> None:
    me.do(Request(ME, 10, token=5))
    me.do(Extend(ME, 10, 1))
    assert kinds(store) == ["held", "token"]


def test_looking_at_a_lock_that_nobody_used_leaves_no_trace(store: DirectoryStore, me: Client) -> None:
    assert me.listing().rows == ()
    assert list(me.link.names()) == []
    assert os.listdir(store.path) == []


names = st.text(
    st.characters(exclude_categories=("C", "Z"), include_characters=" "),
    min_size=1,
    max_size=200,
)


@given(st.sets(names, max_size=20))
def test_any_name_has_a_folder_of_its_own_even_where_capitals_count_for_nothing(locks: set[str]) -> None:
    segments = {segment(name).lower() for name in locks}
    assert len(segments) == len(locks)
    assert all(len(each) <= 255 and each.isascii() and "/" not in each and each[0] != "." for each in segments)


ODD = ["a/b", ".", "..", "../../etc/passwd", "A", "a", "~", "%41", "^a", "é" * 200, "e\u0301" * 100, "日本" * 100]


def test_odd_names_are_locks_like_any_other(store: DirectoryStore) -> None:
    for name in ODD:
        client = Client(store, name)
        assert client.grade(Request(ME, 10, token=1)) is Grade.COMMITTED
        assert Client(store, name).grade(Request(OTHER, 10)) is Grade.REFUSED
    assert list(client.link.names()) == sorted(ODD)
    assert list(client.link.names("日")) == ["日本" * 100]
    assert len(os.listdir(store.path)) == len(ODD)


@given(
    st.builds(
        Named,
        st.sampled_from([Kind.HELD, Kind.WAITING, Kind.TOKEN]),
        st.builds(Claim, names, st.integers(0, TOKEN_LIMIT - 1), st.binary(max_size=16)),
        st.floats(0, 1e9),
        st.none() | st.integers(0, TICKET_LIMIT - 1),
        st.integers(0, TOKEN_LIMIT - 1),
        st.none() | st.integers(0, TOKEN_LIMIT - 1),
        st.none() | st.binary(max_size=4096),
    )
)
def test_what_was_written_is_read(named: Named) -> None:
    content = written(named)
    assert read(content) == named
    assert len(content) <= directory.MAX_FILE_BYTES


@given(st.binary(max_size=300))
def test_whatever_a_file_holds_reading_it_never_fails(content: bytes) -> None:
    assert read(content) is None
    assert read(written(Named(Kind.HELD, ME, 10)) + content) is None or not content


def test_an_entry_that_says_that_it_lasts_less_than_nothing_is_unknown() -> None:
    for ttl in ("nan", "-1.0"):
        assert read(written(Named(Kind.HELD, ME, 10)).replace(b"ttl 10.0", f"ttl {ttl}".encode())) is None


OUT_OF_RANGE = [
    Named(Kind.TOKEN, OTHER, 0, token=10**25),
    Named(Kind.TOKEN, OTHER, 0, token=TOKEN_LIMIT),
    Named(Kind.TOKEN, OTHER, 0, token=-1),
    Named(Kind.WAITING, OTHER, 10, ticket=TICKET_LIMIT),
    Named(Kind.WAITING, OTHER, 10, ticket=-1),
    Named(Kind.HELD, OTHER.but(attempt=TOKEN_LIMIT), 10),
    Named(Kind.HELD, OTHER.but(attempt=-1), 10),
    Named(Kind.HELD, OTHER, 10, renewal=TOKEN_LIMIT),
    Named(Kind.HELD, OTHER, 10, renewal=-1),
]


def leave(store: DirectoryStore, named: Named) -> Path:
    content = written(named)
    path = garbage(store).with_name(file_name(named.kind, content))
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("named", OUT_OF_RANGE)
def test_an_entry_with_a_number_that_nobody_writes_is_named_and_counts_as_held_until_t_max(
    store: DirectoryStore, me: Client, named: Named
) -> None:
    path = leave(store, named)
    with trinco.connect(store.url) as locks:
        info = locks.inspect(LOCK)
        assert info.held
        assert f"'{LOCK}/{path.name}' in the store is none of Trinco's entries" in info.why
    assert me.grade(Request(ME, 10)) is Grade.REFUSED
    make_older(path, store.t_max + 1)
    assert me.do(Request(ME, 10, token=5)).token == 5


def test_the_last_token_is_not_followed_by_any_and_whoever_asks_is_told_so(store: DirectoryStore) -> None:
    path = leave(store, Named(Kind.TOKEN, OTHER, 0, token=TOKEN_LIMIT - 1))
    with trinco.connect(store.url) as locks:
        with pytest.raises(StoreUnavailable, match=f"'{LOCK}': the lock's token cannot grow any more: take another"):
            locks.lock(LOCK, ttl=1).try_acquire()
        assert not locks.inspect(LOCK).held
        path.unlink()
        assert locks.lock(LOCK, ttl=1).try_acquire()


def test_whoever_holds_the_last_token_renews_and_gives_back(store: DirectoryStore, me: Client, other: Client) -> None:
    assert me.do(Request(ME, 10, token=TOKEN_LIMIT - 1)).token == TOKEN_LIMIT - 1
    assert me.grade(Extend(ME, 10, 1)) is Grade.COMMITTED
    assert other.grade(Request(OTHER, 10, token=5)) is Grade.REFUSED
    assert me.grade(Release(ME)) is Grade.DONE
    assert other.grade(Request(OTHER, 10, token=5)) is Grade.FAILED


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/etc/hostname", path)])
def test_a_folder_whose_name_cannot_be_read_hides_none_of_the_others(
    make: Callable[[str], None], store: DirectoryStore, me: Client
) -> None:
    me.do(Request(ME, 10))
    (Path(store.path) / "somebody-elses").mkdir()
    make(str(Path(store.path) / "somebody-elses" / ".name"))
    assert list(me.link.names()) == [LOCK]


def test_too_many_open_files_are_not_taken_for_an_empty_store(me: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def used_up(path: str, flags: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files", path)

    me.do(Request(ME, 10))
    monkeypatch.setattr(os, "open", used_up)
    with pytest.raises(StoreUnavailable, match="too many files are open"):
        me.link.names()


# Too much of it


def leftovers(store: DirectoryStore, count: int, age: float) -> None:
    folder = garbage(store).parent
    old = time.time_ns() - int(age * 1e9)
    for number in range(count):
        content = written(Named(Kind.HELD, Claim(f"gone/{number}", 1), 10))
        path = folder / file_name(Kind.HELD, content)
        path.write_bytes(content)
        os.utime(path, ns=(old, old))


def test_what_thousands_of_crashes_left_behind_does_not_lock_everybody_out(store: DirectoryStore, me: Client) -> None:
    leftovers(store, MANY_ROWS + 10, age=3600)
    assert me.grade(Request(ME, 10)) is Grade.COMMITTED


def test_a_folder_with_too_many_files_fails_in_bounded_time_and_says_how_to_clean_up(
    store: DirectoryStore, me: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    leftovers(store, 300, age=1)
    monkeypatch.setattr(directory, "MAX_FILES", 200)
    failed = me.link.send(LOCK, List())
    assert isinstance(failed, Failed)
    assert "find '" in failed.reason
    assert "\n" not in failed.reason
    assert me.grade(Request(ME, 10)) is Grade.FAILED


def test_the_advice_removes_leftovers_and_keeps_the_token(store: DirectoryStore, me: Client) -> None:
    me.do(Request(ME, 10, token=5))
    leftovers(store, 3, age=3 * 86400)
    make_older(entries(store)[-1], 3 * 86400)
    command = me.link._too_many(str(garbage(store).parent)).partition("with: ")[2]
    subprocess.run(command, shell=True, check=True, timeout=10)
    assert kinds(store) == ["held", "token"]
    assert [row.named.claim for row in me.listing().rows if row.named.kind is Kind.HELD] == [ME]


# Errors


def test_the_folder_is_made_where_it_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    DirectoryStore(str(path)).connect(ADDRESS)
    assert path.is_dir()


def refusal(connect: Callable[[], object]) -> str:
    with pytest.raises(StoreUnavailable) as refused:
        connect()
    assert "\n" not in str(refused.value)
    assert "dir:///" in str(refused.value)
    return str(refused.value)


def test_a_path_that_is_no_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    assert "must be a folder" in refusal(lambda: DirectoryStore(str(path)).connect(ADDRESS))
    assert "must be a folder" in refusal(lambda: DirectoryStore(str(path / "below")).connect(ADDRESS))


def test_a_file_system_that_takes_no_files_is_refused_in_one_line() -> None:
    assert "cannot be used" in refusal(lambda: DirectoryStore("/proc/trinco").connect(ADDRESS))
    assert "cannot be used" in refusal(lambda: DirectoryStore("/proc").connect(ADDRESS))


def test_a_store_whose_folder_becomes_a_file_is_unavailable(store: DirectoryStore, me: Client) -> None:
    os.rmdir(store.path)
    Path(store.path).write_text("")
    assert "must be a folder" in refusal(lambda: me.link.send(LOCK, List()))


NO_ROOM = """
import resource, sys
from trinco.leases.accesses import Put
from trinco.leases.claim import Claim
from trinco.leases.row import Kind, Named
from trinco.stores.directory import DirectoryStore
link = DirectoryStore(sys.argv[1]).connect("")
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    link.send("nightly", Put(Named(Kind.HELD, Claim("me", 1), 10)))
except ConnectionError as error:
    print(error)
"""


def test_a_write_that_finds_no_room_is_an_error_and_leaves_nothing(store: DirectoryStore, me: Client) -> None:
    call = [sys.executable, "-c", NO_ROOM, store.path]
    done = subprocess.run(call, capture_output=True, text=True, timeout=20, check=True)
    assert "cannot be used: File too large" in done.stdout
    assert entries(store) == []


def test_a_held_lease_whose_folder_was_removed_is_gone(store: DirectoryStore, me: Client) -> None:
    me.do(Request(ME, 10))
    for path in (*entries(store), garbage(store).with_name(".name")):
        path.unlink()
    garbage(store).parent.rmdir()
    assert me.grade(Extend(ME, 10, 1)) is Grade.GONE


def test_deleting_twice_is_done_twice_and_only_entries_are_deleted(me: Client) -> None:
    named = Named(Kind.HELD, ME, 10)
    me.link.send(LOCK, Put(named))
    assert me.link.send(LOCK, Delete(named)) == Done()
    assert me.link.send(LOCK, Delete(named)) == Done()
    assert isinstance(me.link.send(LOCK, Delete("../../etc/passwd")), Failed)
    assert isinstance(me.link.send(LOCK, Read()), Failed)


def test_a_store_says_what_it_is(tmp_path: Path) -> None:
    store = DirectoryStore(str(tmp_path / "x" / ".." / "locks"))
    assert store.url == f"dir://{tmp_path}/locks"
    assert (store.kind, store.local) == ("object", False)
    assert os.path.ismount(store.domain.partition(" ")[2])


# Processes

WORKERS = 6
SECONDS = 2.0


def worker(path: str, number: int, counter: str) -> None:
    """Adds one to an unprotected counter again and again, each time under the lock; prints how often, and its
    tokens."""
    client = Client(DirectoryStore(path))
    owner = owner_name(f"worker@{number}", ADDRESS, number)
    chance = random.Random(number)
    done: list[int] = []
    attempt, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        attempt += 1
        claim = Claim(owner, attempt)
        answer = client.do(Request(claim, 10, token=time.time_ns() // 1000))
        if answer.grade is Grade.COMMITTED and answer.token is not None:
            add_one(counter)
            done.append(answer.token)
        client.do(Release(claim))
        time.sleep(chance.random() * 0.02)  # the algorithm's own back-off: without tickets it is obstruction-free
    print(*done)


def add_one(counter: str) -> None:
    with open(counter) as file:
        value = int(file.read() or 0)
    os.sched_yield()
    with open(counter, "w") as file:
        file.write(str(value + 1))


@pytest.fixture
def workers(store: DirectoryStore, tmp_path: Path) -> Iterator[list["subprocess.Popen[str]"]]:
    (tmp_path / "counter").write_text("0")
    root = Path(__file__).resolve().parents[2]
    code = (
        "import sys; from tests.stores.test_directory import worker; worker(sys.argv[1], int(sys.argv[2]), sys.argv[3])"
    )
    call = [sys.executable, "-c", code, store.path]
    started = [
        subprocess.Popen([*call, str(number), str(tmp_path / "counter")], cwd=root, stdout=subprocess.PIPE, text=True)
        for number in range(WORKERS)
    ]
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_processes_that_count_under_the_lock_lose_no_increment(
    workers: list["subprocess.Popen[str]"], tmp_path: Path, me: Client
) -> None:
    counted = [process.communicate(timeout=30)[0].split() for process in workers]
    assert [process.returncode for process in workers] == [0] * WORKERS
    tokens = [int(token) for worker in counted for token in worker]
    assert len(tokens) > 20
    assert int((tmp_path / "counter").read_text()) == len(tokens)
    assert len(set(tokens)) == len(tokens)
    assert me.grade(Request(ME, 10)) is Grade.COMMITTED


def test_a_link_is_used_over_its_interface_only(me: Client) -> None:
    assert isinstance(me.link, DirectoryLink)
    assert me.link.fileno() == -1
    assert me.link.receive() == []
    me.link.close()
    me.link.close()


def test_a_disk_that_is_full_is_told_at_once_to_whoever_asks_for_the_first_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can still be listed, so it does answer; but to write is what a lock is about."""

    def full(descriptor: int, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with trinco.connect(f"dir://{tmp_path}/locks") as locks:
        with locks.lock("warm").hold(timeout=5):
            monkeypatch.setattr(directory, "_write_all", full)
        began = time.monotonic()
        with pytest.raises(trinco.StoreUnavailable, match="disk is full"):
            locks.lock("door").hold(timeout=5).__enter__()
        assert time.monotonic() - began < 1
