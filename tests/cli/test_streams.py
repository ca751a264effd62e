"""Commands in odd surroundings: streams that are closed, full or of few characters, a folder that is gone, Ctrl-C at
once, a store that says nothing. Each ends with one line and the right exit code."""

import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stores.servers import RedisServer
from trinco.cli.main import COMMANDS
from trinco.locks.service import LockService, connect
from trinco.stores.catalogue import OPENERS

TRINCO = [sys.executable, "-m", "trinco"]
LIMIT = 30.0
NAME = "ünï☃"
ENTER = """
import os, sys
def tell(event, arguments):
    if event == "import" and arguments[0] == "trinco.cli.main":
        os.write(1, b".")
sys.addaudithook(tell)
from trinco.__main__ import main
sys.exit(main())
"""
"""Says when our own code begins to load: what Python does before that is not ours to change."""
LOADING_S = 0.12
"""About as long as it takes until a command is at work."""

needs_dev_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")


class Call:
    """Commands on a store of their own, with a shell's redirections."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder}/locks.db"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRINCO_", "PYTHONIO"))}
        self.environment = {
            **kept,
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "TRINCO_URL": self.url,
            "PYTHONUNBUFFERED": "",
        }

    def __call__(
        self, *arguments: str, redirected: str = "", folder: Path | None = None, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["sh", "-c", f'"$@" {redirected}', "sh", *TRINCO, *arguments],
            env={**self.environment, **environment},
            cwd=folder or self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
            check=False,
        )


@pytest.fixture
def trinco(tmp_path: Path) -> Call:
    return Call(tmp_path)


@pytest.fixture
def ana(trinco: Call) -> Iterator[LockService]:
    with connect(trinco.url, client="ana@laptop:1") as service:
        yield service


# Streams that are closed


@pytest.mark.parametrize(
    ("arguments", "redirected", "code"),
    [
        (("status", "nightly"), ">&-", 0),
        (("status", "nightly", "--json"), ">&-", 0),
        (("list",), ">&-", 0),
        (("list", "--json"), "<&- >&- 2>&-", 0),
        (("--help",), ">&-", 0),
        (("run", "--bogus", "--", "true"), "2>&-", 64),
        (("break", "nightly"), "2>&-", 1),
        (("status", "a", "b"), ">&- 2>&-", 64),
        (("run", "nightly", "--", "true"), "<&- >&- 2>&-", 0),
    ],
)
def test_a_closed_stream_changes_no_exit_code(
    trinco: Call, arguments: tuple[str, ...], redirected: str, code: int
) -> None:
    done = trinco(*arguments, redirected=redirected)
    assert (done.returncode, done.stderr) == (code, "")


def test_nothing_that_is_opened_takes_the_place_of_a_closed_stream(trinco: Call, ana: LockService) -> None:
    """What is printed would go into the database, if that had the number 1."""
    ana.lock("nightly").hold().__enter__().release()
    assert trinco("list", redirected="<&- >&- 2>&-").returncode == 0
    assert [lock["name"] for lock in json.loads(trinco("list", "--json").stdout)] == ["nightly"]


# Streams that cannot be written


@needs_dev_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "nightly"),
        ("status", "nightly", "--json"),
        ("list",),
        ("keys", "show"),
        ("protocols",),
        ("doctor",),
        ("run", "--help"),
        ("--help",),
        ("--version",),
    ],
)
def test_output_that_cannot_be_written_is_74_and_one_line(
    trinco: Call, arguments: tuple[str, ...], unbuffered: str
) -> None:
    done = trinco(*arguments, redirected=">/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 74
    assert done.stderr == "trinco: cannot write the output: No space left on device\n"


@needs_dev_full
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("run", "--bogus", "--", "true"), 64),
        (("bogus",), 64),
        (("status", "a\nb"), 64),
        (("break", "nightly"), 1),
        (("run", "nightly", "--", "no-such-command"), 127),
    ],
)
def test_a_complaint_that_cannot_be_written_changes_no_exit_code(
    trinco: Call, arguments: tuple[str, ...], code: int
) -> None:
    done = trinco(*arguments, redirected="2>/dev/full")
    assert (done.returncode, done.stderr) == (code, "")


@needs_dev_full
def test_with_output_and_complaints_unwritable_the_exit_code_is_left(trinco: Call) -> None:
    assert trinco("status", "nightly", redirected=">/dev/full 2>/dev/full").returncode == 74


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("protocols",), 0),
        (("protocols", "--json"), 0),
        (("run", "--help"), 0),
        (("check", "ricart-agrawala", "-n", "2", "--crashes", "1", "--beyond-claims"), 1),
        (("doctor", "redis://127.0.0.1:1"), 69),
        (("status", "-u", "redis://127.0.0.1:1", "nightly"), 69),
    ],
)
def test_a_reader_that_leaves_changes_no_verdict(
    trinco: Call, arguments: tuple[str, ...], code: int, unbuffered: str
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**trinco.environment, "PYTHONUNBUFFERED": unbuffered}
    call = subprocess.run(
        [*TRINCO, *arguments], env=environment, stdout=writer, stderr=subprocess.PIPE, timeout=LIMIT, check=False
    )
    os.close(writer)
    assert call.returncode == code
    assert call.stderr.count(b"\n") == (1 if arguments[0] == "status" else 0)


# Characters that cannot be shown


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_cannot_be_shown_is_escaped(trinco: Call, ana: LockService, encoding: str) -> None:
    with ana.lock(NAME).hold():
        for arguments in (("status", NAME), ("list",), ("wait", "-w", "0", NAME), ("break", NAME)):
            done = trinco(*arguments, PYTHONIOENCODING=encoding, PYTHONUTF8="1")
            assert "a bug of ours" not in done.stderr
            assert "Traceback" not in done.stderr
    escaped = trinco("status", NAME, PYTHONIOENCODING="ascii", PYTHONUTF8="1").stdout
    assert r"\xfcn\xef\u2603" in escaped


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_stays_json_in_any_encoding(trinco: Call, encoding: str) -> None:
    call = [*TRINCO, "status", NAME, "--json"]
    environment = {**trinco.environment, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"}
    told = subprocess.run(call, env=environment, stdout=subprocess.PIPE, timeout=LIMIT, check=True).stdout
    assert json.loads(told.decode(encoding))["name"] == NAME


# A folder that is gone


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "-u", "sqlite:///relative.db", "nightly", "--", "true"),
        ("status", "-u", "sqlite:///relative.db", "nightly"),
        ("keys", "show", "--file", "keys.json"),
    ],
)
def test_a_relative_file_in_a_folder_that_is_gone_is_78(trinco: Call, arguments: tuple[str, ...]) -> None:
    gone = trinco.folder / "gone"
    gone.mkdir()
    call = ["sh", "-c", 'rmdir "$0" && exec "$@"', str(gone), *TRINCO, *arguments]
    done = subprocess.run(
        call, env=trinco.environment, cwd=gone, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 78, done.stderr
    assert "the current folder is gone" in done.stderr
    assert done.stderr.count("\n") == 1


# Ctrl-C


def test_an_interrupt_while_we_start_is_never_a_traceback(trinco: Call, ana: LockService) -> None:
    moments = random.Random(7)
    call = [sys.executable, "-c", ENTER, "wait", "nightly"]
    with ana.lock("nightly").hold():
        for _ in range(30):
            with subprocess.Popen(
                call, env=trinco.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as process:
                assert process.stdout is not None
                process.stdout.read(1)
                time.sleep(moments.uniform(0.001, LOADING_S))
                process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=LIMIT)
            assert b"Traceback" not in said, said.decode()
            assert process.returncode in (-signal.SIGINT, 130)


def test_an_interrupt_that_is_ignored_stays_ignored(trinco: Call, ana: LockService) -> None:
    """As it is for what a script starts in the background."""
    call = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", ENTER, "wait", "-w", "1s", "nightly"]
    with (
        ana.lock("nightly").hold(),
        subprocess.Popen(call, env=trinco.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process,
    ):
        assert process.stdout is not None
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 75


def test_the_installed_command_begins_where_interrupts_are_looked_after() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert 'trinco = "trinco.__main__:main"' in project.read_text(encoding="utf-8")


# Locks that are called like our own


def test_a_held_lock_is_listed_whatever_it_is_called(trinco: Call, ana: LockService) -> None:
    with ana.lock("trinco/health/of-the-nation").hold(), ana.lock("trinco/nightly").hold():
        for arguments in (("list", "--json"), ("list", "--held", "--json")):
            told = json.loads(trinco(*arguments).stdout)
            assert [lock["name"] for lock in told] == ["trinco/health/of-the-nation", "trinco/nightly"]


def test_a_free_lock_is_listed_unless_a_probe_left_it_behind(trinco: Call, ana: LockService) -> None:
    for name in ("trinco/health/host", "trinco/doctor/host-7", "trinco/nightly"):
        ana.lock(name).hold().__enter__().release()
    assert [lock["name"] for lock in json.loads(trinco("list", "--json").stdout)] == ["trinco/nightly"]
    assert len(json.loads(trinco("list", "trinco/", "--json").stdout)) == 3


# A store that says nothing


@pytest.mark.parametrize("is_known", [False, True])
def test_wait_ends_in_time_though_the_store_says_nothing(
    trinco: Call, redis_servers: Callable[..., RedisServer], is_known: bool
) -> None:
    """Whether it never answered, or was silenced while we waited."""
    server = redis_servers()
    call = [sys.executable, "-c", ENTER, "wait", "-u", server.url, "-w", "2s", "nightly"]
    with connect(server.url) as service, service.lock("nightly", auto_renew=False).hold():
        if not is_known:
            server.pause()
        start = time.monotonic()
        with subprocess.Popen(
            call, env=trinco.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            if is_known:
                time.sleep(1)
                server.pause()
            _, said = process.communicate(timeout=LIMIT)
        took = time.monotonic() - start
        server.resume()
    assert process.returncode == 69
    assert said == f"trinco: {server.url.partition('?')[0]} does not answer\n"
    assert took < 4


# Examples


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_name_only_kinds_of_stores_that_there_are(trinco: Call, command: str) -> None:
    kinds = set(re.findall(r"\b(\w+):/", trinco(command, "--help").stdout))
    assert kinds <= {*OPENERS, "quorum"}


@pytest.mark.parametrize("columns", [80, 60])
def test_a_token_can_be_copied_from_a_list_in_a_narrow_terminal(trinco: Call, ana: LockService, columns: int) -> None:
    """It is what ``trinco break --token`` takes."""
    name = "reports/nightly-backup/the-second"
    lease = ana.lock(name).try_acquire()
    assert lease is not None
    screen, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, columns))
    environment = {**trinco.environment, "TERM": "xterm"}
    call = [*TRINCO, "list"]
    subprocess.run(call, env=environment, stdin=terminal, stdout=terminal, stderr=terminal, timeout=LIMIT, check=True)
    os.close(terminal)
    shown = os.read(screen, 65536).decode()
    os.close(screen)
    assert str(lease.token) in shown
    assert name not in shown  # which is folded
