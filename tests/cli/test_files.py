"""Files that the lab's commands write: a bad name costs no work, and a full disk costs no verdict."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trinco.cli.main import main

NOWHERE = "/nowhere/at/all.png"
FULL = Path("/dev/full")
VIOLATING = ("check", "ricart-agrawala", "-n", "2", "--crashes", "1", "--beyond-claims")

needs_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


@pytest.mark.parametrize(
    "call",
    [
        ("check", "token-ring", "--trace"),
        ("check", "token-ring", "--write-test"),
        ("check", "bully", "--trace"),
        ("check", "quorum-lease", "-n", "1", "-f", "0", "--write-test"),
        ("exhibit", "slides/S-5", "--trace"),
        ("exhibit", "slides/S-5", "--write-test"),
        ("sim", "coordinator", "--trace"),
        ("sim", "coordinator", "--seeds", "2", "--jobs", "1", "--trace"),
        ("compare", "lamport", "-n", "4", "--csv"),
        ("compare", "--elections", "-n", "4", "--plot"),
        ("compare", "--vote-loss", "--csv"),
        ("reproduce", "forks", "--quick", "--plot"),
    ],
    ids=lambda call: " ".join((call[0], call[-1])),
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    call: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """None of these would have anything to write, or all of them print something first."""
    assert main([*call, NOWHERE]) == 64
    shown = capsys.readouterr()
    assert shown.err == f"trinco: cannot write {NOWHERE}: No such file or directory\n"
    assert not shown.out


def test_one_name_for_two_files_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "kept")
    assert main([*VIOLATING, "--trace", file, "--write-test", file]) == 64
    assert "is named twice" in capsys.readouterr().err


@needs_a_full_disk
@pytest.mark.parametrize(
    ("call", "verdict"),
    [
        ((*VIOLATING, "--trace"), "VIOLATED, deadlock"),
        ((*VIOLATING, "--write-test"), "VIOLATED, deadlock"),
        (("exhibit", "slides/S-5", "--trace"), "VIOLATED"),
        (("sim", "coordinator", "--trace"), "no violation"),
        (("compare", "lamport", "-n", "4", "--jobs", "1", "--csv"), "checked exhaustively"),
        (("compare", "--elections", "-n", "4", "--jobs", "1", "--csv"), "By the rank of who notices"),
        (("compare", "--vote-loss", "--csv"), "The chance that"),
    ],
    ids=lambda value: " ".join((value[0], value[-1])) if isinstance(value, tuple) else "",
)
def test_a_disk_that_fills_takes_no_verdict_with_it(
    call: tuple[str, ...], verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*call, str(FULL)]) == 74
    shown = capsys.readouterr()
    assert verdict in shown.out
    assert shown.err == f"trinco: cannot write {FULL}: No space left on device\n"


@needs_a_full_disk
def test_what_a_program_reads_is_whole_when_the_disk_fills(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*VIOLATING, "--json", "--trace", str(FULL)]) == 74
    assert json.loads(capsys.readouterr().out)["verdict"] == "violation"


@needs_a_full_disk
def test_a_picture_that_does_not_fit_takes_no_table_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "full.svg"
    picture.symlink_to(FULL)
    assert main(["compare", "--elections", "-n", "4", "--jobs", "1", "--plot", str(picture)]) == 74
    assert "Messages of an election" in capsys.readouterr().out


def test_the_reader_of_a_pipe_gets_the_whole_trace(tmp_path: Path) -> None:
    """It would go home if the pipe were opened and closed before the work, and nobody would read what follows."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    call = [sys.executable, "-m", "trinco", "sim", "coordinator", "--entries", "3", "--trace", str(pipe)]
    assert subprocess.run(call, capture_output=True, timeout=30, check=False).returncode == 0
    reader.join(timeout=30)
    lines = read[0].splitlines()
    assert json.loads(lines[0])["events"] == len(lines) - 1 > 0
