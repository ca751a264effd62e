"""Every example in the help of a command of the lab runs, and ends as it should."""

import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = ("", "protocols", "sim", "check", "exhibit", "compare", "planes", "reproduce", "verify")

ENDS = {
    "trinco sim ricart-agrawala -n 5": 0,
    "trinco sim ricart-agrawala -n 50 --entries 500": 0,
    "trinco sim token-ring -n 8 --workload open --rate 0.05 --delay exponential:1": 0,
    "trinco sim coordinator -n 5 --unordered --delay uniform:0.1,5 --seeds 1000": 0,
    "trinco sim ricart-agrawala -n 2 --ask 0@0+1 --ask 1@0.5+1 --timeline": 0,
    "trinco sim ricart-agrawala -n 3 --fault crash:1@10 --beyond-claims --timeline": 1,
    "trinco sim bully -n 8 --notice 4@1 --timeline": 0,
    "trinco sim chandy-misra -n 6 --set graph=ring": 0,
    "trinco sim quorum-lease --stores object,queue,conditional,transactional --clients 3 --byzantine silent": 0,
    "trinco sim ricart-agrawala -n 5 --trace run.ndjson && trinco verify run.ndjson": 0,
    "trinco check ricart-agrawala -n 3 --rounds 2": 0,
    "trinco check coordinator -n 4 --rounds forever": 0,
    "trinco check ricart-agrawala -n 3 --bypass": 0,
    "trinco check bully -n 3 --crashes 1 --restarts 1": 0,
    "trinco check ricart-agrawala --crashes 1 --beyond-claims --write-test test_crash.py": 1,
    "trinco exhibit": 0,
    "trinco exhibit slides/S-5": 1,
    "trinco exhibit slides/S-5 --write-test test_s5.py": 1,
    "trinco exhibit slides/S-5 --trace s5.ndjson; trinco verify s5.ndjson --timeline": 1,
    "trinco exhibit ricart-agrawala/no-tie-break": 1,
    "trinco compare lamport maekawa -n 4,16": 0,
    "trinco compare voting --set doublings=1 -n 32": 0,
    "trinco compare --elections --plot elections.svg": 0,
    "trinco compare --vote-loss": 0,
    "trinco planes 3": 0,
    "trinco planes 97 --json": 0,
    "trinco planes -n 10": 0,
    "trinco protocols": 0,
    "trinco protocols ricart-agrawala": 0,
    "trinco protocols --byzantine": 0,
    "trinco protocols --json": 0,
    "trinco reproduce": 0,
    "trinco reproduce forks --quick": 0,
    "trinco reproduce leases --quick": 0,
}
LONG = {
    "trinco check quorum-lease": ("--max-states 1000", 3),
    "trinco check quorum-lease --policy priority --byzantine deny-all --no-time": ("--max-states 1000", 3),
    "trinco compare": ("lamport -n 4", 0),
    "trinco compare --plot compare.png": ("lamport -n 4", 0),
    "trinco compare --csv compare.csv --json": ("lamport -n 4", 0),
}
"""They take minutes: with these words behind them they are short."""
PROVED = {
    "trinco reproduce forks",
    "trinco reproduce robust-k --plot robust-k.png",
    "trinco reproduce bakery --json",
}
"""They take minutes, however they are asked for: ``make prove`` and the tests of the experiments run what they run."""
OF_LOCKS = {"trinco run nightly -- ./backup.sh"}


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    call = line.replace("trinco ", f"{sys.executable} -m trinco ")
    return subprocess.run(call, shell=True, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def examples(command: str) -> list[str]:
    """The lines as they are printed, a remark behind some of them."""
    printed = shell(f"trinco {command} --help", Path.cwd()).stdout
    assert "examples:\n" in printed
    block = printed.partition("examples:\n")[2].partition("\n\n")[0]
    return [line.strip() for line in block.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_of_a_help_is_tried_here(command: str) -> None:
    tried = {*ENDS, *LONG, *PROVED, *OF_LOCKS}
    for line in examples(command):
        words = line.partition("  ")[0]
        assert words in tried or any(words.startswith(f"{each} ") and " --" in each for each in tried), line


@pytest.mark.parametrize("example", ENDS)
def test_an_example_ends_as_it_should(example: str, tmp_path: Path) -> None:
    done = shell(example, tmp_path)
    assert done.returncode == ENDS[example], done.stdout + done.stderr


@pytest.mark.parametrize("example", LONG)
def test_a_long_example_made_short_ends_as_it_should(example: str, tmp_path: Path) -> None:
    more, code = LONG[example]
    done = shell(f"{example} {more}", tmp_path)
    assert done.returncode == code, done.stdout + done.stderr


@pytest.mark.parametrize("stores", ["transactional", "object,queue,conditional,transactional"])
def test_a_lease_whose_times_are_in_seconds_meets_messages_that_take_less(stores: str, tmp_path: Path) -> None:
    """An attempt gives up after 5 s, and a transactional store takes 8 messages."""
    few = "--entries 20 --max-events 60000"
    done = shell(f"trinco sim quorum-lease --stores {stores} --clients 3 --byzantine silent {few}", tmp_path)
    assert done.returncode == 0, done.stdout
