"""Fencing for files: what is on disk after writers came in any order, were stopped, or crashed."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trinco.core.errors import DamagedData, StoreUnavailable
from trinco.guards import FileGuard, FolderGuard, StaleToken
from trinco.guards.files import Fence

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return tmp_path / "report.csv"


def test_a_write_passes_until_a_larger_token_has(report: Path) -> None:
    guard = FileGuard(report)
    assert guard.highest() is None
    guard.write(b"five", 5)
    guard.write(b"six", 6)
    guard.write(b"six again", 6)
    with pytest.raises(StaleToken) as refused:
        guard.write(b"five, late", 5)
    assert (refused.value.token, refused.value.highest) == (5, 6)
    assert report.read_bytes() == b"six again"
    assert FileGuard(report).highest() == 6


def test_writes_leave_nothing_but_the_file_its_mark_and_its_lock(report: Path) -> None:
    guard = FileGuard(report)
    guard.write(b"five", 5)
    with pytest.raises(StaleToken):
        guard.write(b"four", 4)
    with pytest.raises(TypeError), guard.open(6) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert report.read_bytes() == b"five"
    assert guard.highest() == 5
    assert sorted(os.listdir(report.parent)) == ["report.csv", "report.csv.fence", "report.csv.fence.lock"]


def test_appends_are_fenced_like_writes(report: Path) -> None:
    guard = FileGuard(report)
    guard.append(b"a\n", 5)
    guard.append(b"b\n", 6)
    with pytest.raises(StaleToken):
        guard.append(b"late\n", 5)
    guard.append(b"c\n", 6)
    assert report.read_bytes() == b"a\nb\nc\n"


def test_an_open_file_takes_its_place_when_the_block_ends(report: Path) -> None:
    guard = FileGuard(report)
    guard.write(b"old", 5)
    with guard.open(6) as file:
        file.write(b"new, ")
        assert report.read_bytes() == b"old"
        file.write(b"piece by piece")
    assert report.read_bytes() == b"new, piece by piece"


def test_who_was_overtaken_while_writing_is_refused_at_the_end(report: Path) -> None:
    guard = FileGuard(report)
    with pytest.raises(StaleToken), guard.open(5):
        FileGuard(report).write(b"quick", 6)
    assert report.read_bytes() == b"quick"


def test_a_stale_open_is_refused_before_its_first_line(report: Path) -> None:
    FileGuard(report).write(b"six", 6)
    with pytest.raises(StaleToken), FileGuard(report).open(5):
        pytest.fail("the block must not run")


def test_a_replaced_file_keeps_its_mode(report: Path) -> None:
    report.write_bytes(b"")
    report.chmod(0o640)
    FileGuard(report).write(b"five", 5)
    assert report.stat().st_mode & 0o777 == 0o640


def test_two_paths_to_one_file_are_one_guard(report: Path) -> None:
    link = report.with_name("link")
    link.symlink_to(report)
    FileGuard(report).write(b"six", 6)
    with pytest.raises(StaleToken):
        FileGuard(link).write(b"five", 5)
    FileGuard(link).write(b"seven", 7)
    assert report.read_bytes() == b"seven"
    assert link.is_symlink()


def test_the_mark_is_on_disk_before_the_data_is_touched(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the power failed after each step on disk in turn: a late 5 never gets past what 6 has written."""
    steps: list[str] = []

    def watched(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object) -> object:
            where = os.readlink(f"/proc/self/fd/{arguments[0]}") if name == "sync" else str(arguments[-1])
            steps.append(f"{name} {Path(where).name.rpartition('.')[2] if name == 'sync' else Path(where).name}")
            return call(*arguments)

        return step

    FileGuard(report).write(b"five", 5)
    monkeypatch.setattr(os, "fsync", watched("sync", os.fsync))
    monkeypatch.setattr(os, "replace", watched("rename to", os.replace))
    FileGuard(report).write(b"six", 6)
    folder = report.parent.name.rpartition(".")[2]
    once = ["sync new", "rename to {}", f"sync {folder}"]
    assert steps == [step.format(name) for name in ("report.csv.fence", "report.csv") for step in once]


def test_a_crash_between_mark_and_data_refuses_older_ones_and_lets_the_same_one_try_again(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = FileGuard(report)
    guard.write(b"five", 5)
    rename = os.replace

    def crash(source: str, target: str) -> None:
        if target == str(report):
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        guard.write(b"six", 6)
    monkeypatch.undo()
    with pytest.raises(StaleToken):
        guard.write(b"five, late", 5)
    guard.write(b"six", 6)
    assert report.read_bytes() == b"six"


def test_a_mark_that_is_no_token_lets_nothing_through(report: Path) -> None:
    report.with_name("report.csv.fence").write_text("?")
    with pytest.raises(DamagedData, match="largest token"):
        FileGuard(report).write(b"five", 5)


def test_who_is_stopped_inside_is_waited_for_and_not_for_ever(report: Path) -> None:
    inside = Fence(f"{report}.fence", "report").fenced(5)
    with inside, pytest.raises(StoreUnavailable, match="has been inside"):
        FileGuard(report, timeout=0.05).write(b"six", 6)
    FileGuard(report, timeout=0.05).write(b"six", 6)


@settings(max_examples=50)
@given(tokens=st.lists(st.integers(0, 6), max_size=12))
def test_in_any_order_the_accepted_tokens_never_go_down(
    tokens: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "log"
    path.touch()
    accepted: list[int] = []
    for token in tokens:
        try:
            FileGuard(path).append(b"%d\n" % token, token)
            accepted.append(token)
        except StaleToken:
            assert token < max(accepted)
    assert accepted == sorted(accepted)
    assert [int(line) for line in path.read_text().split()] == accepted


@settings(max_examples=50)
@given(
    opened=st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True),
    order=st.randoms(use_true_random=False),
)
def test_blocks_that_overlap_in_any_way_leave_the_file_to_the_largest_that_ended(
    opened: list[int], order: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("overlap") / "file"
    blocks = []
    for token in opened:
        block = FileGuard(path).open(token)
        block.__enter__().write(b"%d" % token)
        blocks.append((token, block))
    order.shuffle(blocks)
    accepted = []
    for token, block in blocks:
        try:
            block.__exit__(None, None, None)
            accepted.append(token)
        except StaleToken:
            pass
    assert accepted == sorted(accepted)
    assert int(path.read_bytes()) == accepted[-1] == max(opened)


WRITER = """
import random, sys
from trinco.guards import FileGuard, StaleToken
guard, chance, accepted = FileGuard(sys.argv[1]), random.Random(int(sys.argv[2])), 0
for step in range(30):
    token = (guard.highest() or 10) + chance.randrange(-2, 3)
    try:
        guard.append(b"%d\\n" % token, token)
        accepted += 1
    except StaleToken:
        pass
print(accepted)
"""


def test_processes_that_append_at_once_never_go_down(report: Path) -> None:
    call = [sys.executable, "-c", WRITER, str(report)]
    processes = [subprocess.Popen([*call, str(seed)], stdout=subprocess.PIPE, text=True) for seed in range(4)]
    accepted = sum(int(process.communicate(timeout=60)[0]) for process in processes)
    lines = [int(line) for line in report.read_text().split()]
    assert lines == sorted(lines)
    assert accepted == len(lines) >= 30


STOPPED = """
import sys
from trinco.guards import FileGuard
with FileGuard(sys.argv[1]).open(5) as file:
    file.write(b"written before the pause")
    print("inside", flush=True)
    sys.stdin.readline()
"""


def test_a_holder_that_was_stopped_and_goes_on_too_late_changes_nothing(report: Path) -> None:
    """The story of the docs, with SIGSTOP."""
    call = [sys.executable, "-c", STOPPED, str(report)]
    late = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert late.stdout is not None
    assert late.stdout.readline() == "inside\n"
    late.send_signal(signal.SIGSTOP)
    FileGuard(report).write(b"by the next holder", 6)
    late.send_signal(signal.SIGCONT)
    _, complaint = late.communicate("go on\n", timeout=20)
    assert "StaleToken" in complaint
    assert report.read_bytes() == b"by the next holder"


def test_a_folder_keeps_a_mark_for_every_name(tmp_path: Path) -> None:
    guard = FolderGuard(tmp_path / "fences")
    for name, token in (("gpu/0", 9), ("gpu/1", 3), ("../x" * 60, 1)):
        with guard.fenced(name, token):
            pass
    assert [guard.highest(name) for name in ("gpu/0", "gpu/1", "gpu/2")] == [9, 3, None]
    with pytest.raises(StaleToken), FolderGuard(tmp_path / "fences").fenced("gpu/0", 8):
        pytest.fail("the block must not run")
    assert os.listdir(tmp_path) == ["fences"]
