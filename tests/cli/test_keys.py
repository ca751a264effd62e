"""``trinco keys`` and the keyring's file, where something is wrong with them; and when nothing may be written."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import trinco
from trinco.core.errors import ConfigError, DamagedData
from trinco.leases.keys import Keyring, MacKey, export
from trinco.locks.keyfile import read_keyring, write_keyring

TRINCO = [sys.executable, "-m", "trinco"]
LIMIT = 30.0


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "config" / "keys.json"
    monkeypatch.setenv("TRINCO_KEYS", str(place))
    return place


def keys(*arguments: str, given: bytes | None = b"", redirected: str = "") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirected}', "sh", *TRINCO, "keys", *arguments],
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        input=given,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )


def test_a_keyring_without_a_name_is_refused_and_none_is_made(path: Path) -> None:
    assert keys("make", "--file", "").returncode == 64
    assert not path.exists()


def quorum(folder: Path) -> list[str]:
    return [f"sqlite:///{folder}/{number}.db" for number in range(4)]


def advised(said: str) -> list[str]:
    """The arguments of the 'trinco keys' that a line ends with, or has in quotes."""
    return shlex.split(said.split("trinco keys ", 1)[1].partition("'")[0])


# Another file than the usual one


def test_what_run_advises_makes_the_key_that_it_lacks(path: Path, tmp_path: Path) -> None:
    config = tmp_path / "trinco.toml"
    config.write_text(f'[service.default]\nf = 1\nauth = "ed25519"\nkeys = "my.json"\nstores = {quorum(tmp_path)}\n')
    run = [*TRINCO, "run", "-c", str(config), "x", "--", "true"]
    refused = subprocess.run(run, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert refused.returncode == 77
    assert keys(*advised(refused.stderr)).returncode == 0
    assert subprocess.run(run, timeout=LIMIT, check=False).returncode == 0
    assert not path.exists()


def test_what_show_advises_is_about_the_file_that_it_shows(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    assert keys(*advised(keys("show", "--file", str(other)).stdout.decode())).returncode == 0
    assert other.exists()
    assert not path.exists()


def test_of_the_usual_file_no_advice_names_it(path: Path) -> None:
    assert b"'trinco keys make' makes one" in keys("show").stdout


def test_a_keyring_that_is_a_symbolic_link_stays_one(path: Path, tmp_path: Path) -> None:
    assert keys("make").returncode == 0
    link = tmp_path / "link.json"
    link.symlink_to(path)
    before = path.read_bytes()
    assert keys("rotate", "--file", str(link)).returncode == 0
    assert link.is_symlink()
    assert path.read_bytes() != before


def test_a_rotation_of_nothing_leaves_nothing_behind(tmp_path: Path) -> None:
    assert keys("rotate", "--file", str(tmp_path / "folder" / "no.json")).returncode == 77
    assert not list(tmp_path.iterdir())


def test_the_path_of_a_keyring_is_shown_as_it_is(tmp_path: Path) -> None:
    place = tmp_path / "m[/b]" / "[red]k.json"
    assert keys("make", "--file", str(place)).returncode == 0
    done = keys("show", "--file", str(place))
    assert done.returncode == 0, done.stderr
    assert b"m[/b]/[red]k.json" in done.stdout.replace(b"\n", b"")


# A file that is damaged


def test_a_keyring_that_is_not_text_is_65_as_any_other_damage(path: Path) -> None:
    write_keyring(Keyring(MacKey(b"o" * 32)), str(path))
    path.write_bytes(path.read_bytes().replace(b"6f", b"\xff\xfe", 1))
    done = keys("show")
    assert done.returncode == 65
    assert done.stderr.count(b"\n") == 1
    assert str(path).encode() in done.stderr


def test_a_keyring_that_is_not_text_is_not_repeated(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"\xffsecret")
    path.chmod(0o600)
    with pytest.raises(DamagedData) as caught:
        read_keyring(str(path))
    assert "secret" not in str(caught.value)
    assert "0xff" not in str(caught.value)


def test_a_keyring_that_is_longer_than_any_is_65_and_not_read_to_its_end(path: Path) -> None:
    path.parent.mkdir()
    path.touch(mode=0o600)
    os.truncate(path, 2**40)  # sparse: it takes no room
    done = keys("show")
    assert (done.returncode, done.stderr.count(b"\n")) == (65, 1), done.stderr
    assert b"no keyring" in done.stderr


@pytest.mark.parametrize("action", ["show", "make"])
def test_a_pipe_is_no_keyring_and_nobody_waits_for_one(tmp_path: Path, action: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    done = keys(action, "--file", str(pipe))
    assert (done.returncode, done.stderr.count(b"\n")) == (77, 1), done.stderr
    assert b"a keyring is a file" in done.stderr
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_device_is_no_keyring_and_nothing_is_left_beside_it() -> None:
    done = keys("make", "--file", "/dev/null")
    assert (done.returncode, done.stderr.count(b"\n")) == (77, 1), done.stderr
    assert not Path("/dev/null.lock").exists()


@pytest.mark.parametrize("damage", [b"garbage", b"\xff"])
def test_a_damaged_keyring_is_left_alone(path: Path, damage: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(damage)
    path.chmod(0o600)
    assert keys("make").returncode == 65
    assert [(each.name, each.read_bytes()) for each in path.parent.iterdir()] == [(path.name, damage)]


# A line that does not come


@pytest.mark.parametrize("action", ["import", "trust"])
def test_a_key_that_nobody_pipes_in_is_64(path: Path, action: str) -> None:
    for redirected in ("<&-", "</dev/null", "0>/dev/null"):
        done = keys(action, redirected=redirected)
        assert (done.returncode, done.stderr.count(b"\n")) == (64, 1), done.stderr
        assert b"key" in done.stderr
    assert not path.exists()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="this system has no /dev/zero")
@pytest.mark.parametrize("action", ["import", "trust"])
def test_what_has_no_end_is_no_key(path: Path, action: str) -> None:
    done = keys(action, redirected="</dev/zero")
    assert (done.returncode, done.stderr.count(b"\n")) == (65, 1), done.stderr
    assert b"no end" in done.stderr
    assert not path.exists()


def test_what_is_no_text_is_no_key(path: Path) -> None:
    done = keys("import", given=b"\xff\xfe\x00\n")
    assert (done.returncode, done.stderr.count(b"\n")) == (65, 1), done.stderr
    assert not path.exists()


def test_a_key_that_is_piped_in_is_taken_over(path: Path) -> None:
    key = MacKey(b"o" * 32)
    assert keys("import", given=export(key).encode()).returncode == 0
    assert read_keyring(str(path)).own == key


# Several at once


def at_once(*calls: "tuple[str, ...]") -> list[int]:
    """The exit codes of commands that run at the same time."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen([*TRINCO, "keys", *call], **silent) for call in calls]
    return [each.wait(LIMIT) for each in started]


def test_what_several_add_at_once_is_all_there(path: Path) -> None:
    given = [MacKey(bytes([number]) * 32) for number in range(8)]
    assert at_once(*(("trust", export(key)) for key in given)) == [0] * len(given)
    assert {key.fingerprint for key in read_keyring(str(path)).trusted} == {key.fingerprint for key in given}


def test_of_several_who_make_a_key_at_once_one_does(path: Path) -> None:
    assert sorted(at_once(*[("make", "--kind", "secret")] * 6)) == [0] + [64] * 5
    assert read_keyring(str(path)).own is not None


# A configuration that is refused


def test_no_secret_is_made_for_a_quorum_that_is_refused(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = [*quorum(tmp_path)[:3], quorum(tmp_path)[0]]
    mixed = [*quorum(tmp_path)[:3], "redis://127.0.0.1:1"]
    for stores in (twice, mixed):
        with pytest.raises(ConfigError):
            trinco.connect("quorum:?f=1", stores=stores)
    with pytest.raises(ConfigError, match="ttl"):
        trinco.connect({"stores": quorum(tmp_path), "f": 1, "ttl": "2h"})
    assert not path.parent.exists()
    assert capsys.readouterr().err == ""


# Who is told that a secret was made


def test_whoever_wants_to_be_told_is_told_instead_of_standard_error(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []
    trinco.connect("quorum:?f=1", stores=quorum(tmp_path), tell=told.append).close()
    assert len(told) == 1
    assert str(path) in told[0]
    assert capsys.readouterr().err == ""


def test_a_program_without_standard_error_gets_its_secret_all_the_same(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    trinco.connect("quorum:?f=1", stores=quorum(tmp_path)).close()
    assert read_keyring(str(path)).own is not None
