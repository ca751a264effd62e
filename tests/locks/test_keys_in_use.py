"""Keys as a quorum uses them: made on first use, shared, missing, wrong, readable by others."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier

import pytest

import trinco
from tests.locks.services import LIMIT, Crowd, Waiter, four_stores, in_line, quorum, take
from tests.locks.workers import worker
from trinco.core.errors import DamagedData, KeysMissing
from trinco.leases.keys import Ed25519Key, Keyring, MacKey, dump
from trinco.locks.keyfile import _first_secret, keyring_for, read_keyring, write_keyring
from trinco.locks.service import LockService
from trinco.stores.store import Store

OURS = Keyring(MacKey(b"o" * 32))
THEIRS = Keyring(MacKey(b"t" * 32))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "config" / "keys.json"
    monkeypatch.setenv("TRINCO_KEYS", str(place))
    return place


@pytest.fixture
def stores() -> list[Store]:
    return four_stores()


@pytest.fixture
def strangers(stores: list[Store]) -> Iterator[tuple[LockService, LockService]]:
    """Two hosts that made a secret each, and did not exchange them."""
    with (
        quorum(stores, keyring=OURS, client="ana") as ana,
        quorum(stores, keyring=THEIRS, client="bruno") as bruno,
    ):
        yield ana, bruno


def urls(folder: Path) -> list[str]:
    return [f"sqlite:///{folder}/{number}.db" for number in range(4)]


# The shared secret


def test_the_secret_is_made_on_first_use_for_its_owner_alone(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with trinco.connect("quorum:?f=1", stores=urls(tmp_path)) as service:
        assert service.lock("door").try_acquire() is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "trinco keys export" in said
    assert str(path) in said
    secret = MacKey.kind
    assert secret not in said
    trinco.connect("quorum:?f=1", stores=urls(tmp_path)).close()
    assert capsys.readouterr().err == ""


OVERWRITTEN = "keyfile.py, _first_secret(): a file that came after it was looked for is overwritten (new=False)"


def test_a_secret_that_somebody_made_meanwhile_is_kept(path: Path) -> None:
    """We looked and there was none; before we wrote ours, another process had written its own."""
    write_keyring(OURS, str(path))
    assert _first_secret(str(path)) == OURS
    assert read_keyring(str(path)) == OURS


def test_processes_that_come_first_together_make_one_secret(path: Path) -> None:
    path.parent.mkdir()
    processes = [worker("make-keys", str(path)) for _ in range(4)]
    made = [process.__enter__() for process in processes]
    try:
        for each in made:
            assert each.hears() == "ready"
        for each in made:
            each.tell()
        assert len({each.hears() for each in made}) == 1
    finally:
        for process in processes:
            process.__exit__(None, None, None)


def test_threads_that_come_first_together_make_one_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have written their draft before either gives it its name."""
    link, both = os.link, Barrier(2)

    def link_together(source: str, target: str) -> None:
        both.wait(LIMIT)
        link(source, target)

    monkeypatch.setattr("trinco.locks.keyfile.os.link", link_together)
    for number in range(10):
        place = str(tmp_path / str(number) / "keys.json")
        made: list[str] = []

        def make(_: int, place: str = place, made: list[str] = made) -> None:
            made.append(keyring_for("secret", place).signing_key().fingerprint)

        Crowd(make, 2).join()
        assert set(made) == {read_keyring(place).signing_key().fingerprint}


def test_one_store_needs_no_key(path: Path, tmp_path: Path) -> None:
    with trinco.connect(urls(tmp_path)[0]) as service:
        assert service.lock("door").try_acquire() is not None
    assert not path.exists()


def test_a_quorum_without_authentication_needs_no_key(path: Path, tmp_path: Path) -> None:
    with trinco.connect("quorum:?f=1&auth=none", stores=urls(tmp_path)) as service:
        lease = take(service.lock("door", metadata="job 7"))
        assert service.inspect("door").metadata == "job 7"
        lease.release()
    assert not path.exists()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666])
def test_a_keyring_that_others_can_read_is_refused(path: Path, tmp_path: Path, mode: int) -> None:
    write_keyring(OURS, str(path))
    path.chmod(mode)
    with pytest.raises(KeysMissing, match="chmod 600"):
        trinco.connect("quorum:?f=1", stores=urls(tmp_path))


def test_a_damaged_keyring_is_refused_and_not_repeated(path: Path, tmp_path: Path) -> None:
    write_keyring(OURS, str(path))
    text = path.read_text().replace("6f6f", "6f6g", 1)
    path.write_text(text)
    with pytest.raises(DamagedData) as caught:
        trinco.connect("quorum:?f=1", stores=urls(tmp_path))
    assert "6f6f6f" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_keyring_may_be_named_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRINCO_KEYS", "keys.json")
    trinco.connect("quorum:?f=1", stores=urls(tmp_path)).close()
    assert (tmp_path / "keys.json").exists()


def test_a_keyring_that_cannot_be_written_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("TRINCO_KEYS", str(tmp_path / "file" / "keys.json"))
    with pytest.raises(KeysMissing) as caught:
        trinco.connect("quorum:?f=1", stores=urls(tmp_path))
    assert str(tmp_path / "file") in str(caught.value)


# Ed25519


def test_key_pairs_lock_too(path: Path, tmp_path: Path) -> None:
    with pytest.raises(KeysMissing, match="trinco keys make"):
        trinco.connect("quorum:?f=1&auth=ed25519", stores=urls(tmp_path))
    ana, bruno = Ed25519Key(os.urandom(32)), Ed25519Key(os.urandom(32))
    stores = four_stores()
    with (
        quorum(stores, keyring=Keyring(ana, (bruno.verifier(),)), client="ana") as one,
        quorum(stores, keyring=Keyring(bruno, (ana.verifier(),)), client="bruno") as other,
    ):
        lease = take(one.lock("door", metadata="signed"))
        assert other.lock("door").try_acquire() is None
        assert (other.inspect("door").metadata, other.inspect("door").why) == ("signed", "")
        waiter = Waiter(other.lock("door"))
        in_line(one, "door")
        lease.release()
        assert (waiter.join().token or 0) > (lease.token or 0)


def test_a_secret_in_the_keyring_is_no_key_pair(path: Path, tmp_path: Path) -> None:
    write_keyring(OURS, str(path))
    with pytest.raises(KeysMissing, match="Ed25519"):
        trinco.connect("quorum:?f=1&auth=ed25519", stores=urls(tmp_path))


def test_a_key_without_its_secret_half_cannot_lock(stores: list[Store]) -> None:
    with pytest.raises(KeysMissing, match="sign with"), quorum(stores, keyring=Keyring(None, OURS.trusted)) as service:
        service.lock("door").try_acquire()


# Keys that differ


def test_the_lock_of_a_stranger_counts_as_held(strangers: tuple[LockService, LockService]) -> None:
    ana, bruno = strangers
    lease = take(ana.lock("door", metadata="for those who can read it"))
    assert bruno.lock("door").try_acquire() is None
    info = bruno.inspect("door")
    assert info.held
    assert info.metadata == ""
    assert OURS.signing_key().fingerprint in info.why
    lease.release()
    with take(bruno.lock("door")) as later:
        assert (later.token or 0) > (lease.token or 0)


def test_strangers_take_turns(strangers: tuple[LockService, LockService]) -> None:
    number, tokens = 0, []

    def work(position: int) -> None:
        nonlocal number
        for _ in range(5):
            with strangers[position % 2].lock("door").hold(3 * LIMIT) as lease:
                seen = number
                lease.check()
                number = seen + 1
                tokens.append(lease.token or 0)

    Crowd(work, 4).join()
    assert number == 20
    assert tokens == sorted(set(tokens))


def test_whoever_waits_for_a_stranger_is_told_which_key_is_missing_and_what_to_do(
    strangers: tuple[LockService, LockService],
) -> None:
    """DESIGN 6: the waiter is told so, with the key's fingerprint and the command that trusts it."""
    ana, bruno = strangers
    with take(ana.lock("door")), pytest.raises(trinco.AcquireTimeout) as caught, bruno.lock("door").hold(timeout=0.1):
        pass
    assert OURS.signing_key().fingerprint in str(caught.value)
    assert "trinco keys" in str(caught.value)


def test_a_rotated_key_still_reads_what_the_old_one_wrote(stores: list[Store]) -> None:
    rotated = OURS.rotate(MacKey(b"n" * 32))
    with quorum(stores, keyring=OURS) as before, quorum(stores, keyring=rotated) as after:
        with take(before.lock("door", metadata="old")):
            assert after.inspect("door").metadata == "old"
        with take(after.lock("door", metadata="new")):
            assert before.inspect("door").held


def test_no_secret_is_in_what_a_store_keeps(path: Path, tmp_path: Path) -> None:
    write_keyring(OURS, str(path))
    with trinco.connect("quorum:?f=1", stores=urls(tmp_path)) as service:
        take(service.lock("door"))
    text = dump(OURS)
    kept = b"".join(file.read_bytes() for file in tmp_path.glob("*.db*") if file.is_file())
    assert (b"o" * 32) not in kept
    assert text.split(":")[-1].partition('"')[0].encode() not in kept
