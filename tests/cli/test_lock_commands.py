"""``status``, ``list``, ``wait``, ``break``, ``health`` and ``keys``, as a person or a script meets them."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis

import trinco
from tests.cli import unfit_stores
from tests.cli.running import eventually
from tests.locks.services import take
from tests.stores.servers import RedisServer
from trinco.leases.keys import MacKey
from trinco.locks.service import LockService
from trinco.stores.catalogue import open_store

ROOT = Path(__file__).parents[2]
TRINCO = [sys.executable, "-m", "trinco"]


class Place:
    """A home of its own with a store in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder}/locks.db"
        self.keys = folder / "config" / "trinco" / "keys.json"
        packages = folder / "packages"
        unfit_stores.install(packages)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TRINCO_")}
        self.environment = {
            **kept,
            "PYTHONPATH": f"{packages}{os.pathsep}{ROOT}",
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "TRINCO_URL": self.url,
        }

    def service(self, client: str = "ana@laptop:1") -> LockService:
        return LockService([open_store(self.url)], client=client)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*TRINCO, *arguments], env=self.environment, cwd=self.folder, text=True, stdout=subprocess.PIPE
        )

    def trinco(self, *arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*TRINCO, *arguments],
            env=self.environment,
            cwd=self.folder,
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def facts(self, *arguments: str, code: int = 0) -> Any:
        done = self.trinco(*arguments, "--json")
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    def complaint(self, *arguments: str, code: int, given: str = "") -> str:
        """The one line that a wrong call gets."""
        done = self.trinco(*arguments, given=given)
        assert done.returncode == code, (done.stdout, done.stderr)
        assert not done.stdout
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def ana(here: Place) -> Iterator[LockService]:
    with here.service() as service:
        yield service


class TestStatus:
    def test_tells_who_holds_a_lock(self, here: Place, ana: LockService) -> None:
        with ana.lock("nightly", metadata="backup of db7").hold() as lease:
            told = here.facts("status", "nightly")
        assert told["held"] is True
        assert told["owner"] == "ana@laptop:1"
        assert told["token"] == lease.token
        assert told["metadata"] == "backup of db7"
        assert 0 < told["remaining"] <= 30
        assert 0 <= told["age"] < 60
        assert told["waiters"] == []

    def test_says_it_in_words(self, here: Place, ana: LockService) -> None:
        with ana.lock("nightly", metadata="backup of db7").hold() as lease:
            text = here.trinco("status", "nightly").stdout
        for words in ("held", "ana@laptop:1", str(lease.token), "backup of db7", "nobody"):
            assert words in text

    @pytest.mark.parametrize("kind", ["sqlite:///", "dir://"])
    def test_a_lock_that_was_released_keeps_its_token(self, here: Place, tmp_path: Path, kind: str) -> None:
        url = f"{kind}{tmp_path}/store"
        with trinco.connect(url) as service, service.lock("nightly").hold() as lease:
            token = lease.token
        told = here.facts("status", "-u", url, "nightly")
        assert (told["held"], told["token"]) == (False, token)

    def test_a_free_lock_is_no_error(self, here: Place) -> None:
        done = here.trinco("status", "nightly")
        assert done.returncode == 0
        assert "free" in done.stdout

    def test_an_unreachable_store_is_69(self, here: Place) -> None:
        assert "127.0.0.1:1" in here.complaint("status", "-u", "redis://127.0.0.1:1", "nightly", code=69)

    def test_an_unknown_service_is_78(self, here: Place) -> None:
        assert "@backups" in here.complaint("status", "-u", "@backups", "nightly", code=78)

    def test_a_name_that_is_none_is_64(self, here: Place) -> None:
        here.complaint("status", "a\nb", code=64)

    def test_a_service_of_a_configuration_can_be_named(self, here: Place, ana: LockService) -> None:
        config = here.folder / "other.toml"
        config.write_text(f'[service.backups]\nurl = "{here.url}"\n')
        with ana.lock("nightly").hold():
            assert here.facts("status", "-u", "@backups", "-c", str(config), "nightly")["held"]


class TestList:
    def test_shows_what_was_ever_locked(self, here: Place, ana: LockService) -> None:
        ana.lock("b").hold().__enter__().release()
        with ana.lock("a").hold():
            told = here.facts("list")
            held = here.facts("list", "--held")
        assert [(lock["name"], lock["held"]) for lock in told] == [("a", True), ("b", False)]
        assert [lock["name"] for lock in held] == ["a"]

    def test_takes_a_prefix(self, here: Place, ana: LockService) -> None:
        for name in ("db/1", "db/2", "web"):
            ana.lock(name).hold().__enter__().release()
        assert [lock["name"] for lock in here.facts("list", "db/")] == ["db/1", "db/2"]

    def test_an_empty_store_is_no_error(self, here: Place) -> None:
        done = here.trinco("list")
        assert (done.returncode, done.stdout) == (0, "no locks\n")

    def test_what_health_probes_with_is_not_shown(self, here: Place) -> None:
        assert here.trinco("health").returncode == 0
        assert here.facts("list") == []
        assert len(here.facts("list", "trinco/")) == 1


class TestWait:
    def test_a_free_lock_is_not_waited_for(self, here: Place) -> None:
        assert here.trinco("wait", "nightly").returncode == 0

    def test_ends_when_the_lock_is_released(self, here: Place, ana: LockService) -> None:
        lease = ana.lock("nightly").hold().__enter__()
        waiter = here.start("wait", "-w", "30s", "nightly")
        with pytest.raises(subprocess.TimeoutExpired):
            waiter.wait(0.5)
        lease.release()
        assert waiter.wait(10) == 0
        waiter.communicate()

    def test_outlasts_a_store_that_goes_away_and_comes_back(
        self, here: Place, redis_servers: Callable[..., RedisServer]
    ) -> None:
        server = redis_servers()
        with trinco.connect(server.url) as locks, redis.Redis(port=server.port) as onlooker:
            take(locks.lock("nightly"))
            before = len(onlooker.client_list())
            waiter = here.start("wait", "-u", server.url, "-w", "30s", "nightly")
            eventually(lambda: len(onlooker.client_list()) > before, "it is connected")
            with pytest.raises(subprocess.TimeoutExpired):
                waiter.wait(0.8)
            server.kill()
            with pytest.raises(subprocess.TimeoutExpired):
                waiter.wait(1.5)
            server.restart_empty()
            assert waiter.wait(10) == 0
            waiter.communicate()

    def test_does_not_take_the_lock(self, here: Place) -> None:
        here.trinco("wait", "nightly")
        assert not here.facts("status", "nightly")["held"]

    def test_gives_up_with_75_and_says_who_holds(self, here: Place, ana: LockService) -> None:
        with ana.lock("nightly").hold():
            start = time.monotonic()
            assert "ana@laptop:1" in here.complaint("wait", "-w", "300ms", "nightly", code=75)
            assert time.monotonic() - start >= 0.3

    def test_a_duration_that_is_none_is_64(self, here: Place) -> None:
        here.complaint("wait", "-w", "soon", "nightly", code=64)


class TestBreak:
    def test_takes_the_lock_away(self, here: Place, ana: LockService) -> None:
        lease = ana.lock("nightly", auto_renew=False).hold().__enter__()
        done = here.trinco("break", "nightly")
        assert done.returncode == 0
        assert "ana@laptop:1" in done.stdout
        assert str(lease.token) in done.stdout
        assert not here.facts("status", "nightly")["held"]

    def test_nothing_held_is_1(self, here: Place) -> None:
        assert "nobody holds" in here.complaint("break", "nightly", code=1)

    def test_another_token_is_left_alone(self, here: Place, ana: LockService) -> None:
        with ana.lock("nightly").hold():
            assert "not 7" in here.complaint("break", "nightly", "--token", "7", code=1)
            assert here.facts("status", "nightly")["held"]

    def test_the_token_that_was_seen_breaks_it(self, here: Place, ana: LockService) -> None:
        lease = ana.lock("nightly", auto_renew=False).hold().__enter__()
        assert here.facts("break", "nightly", "--token", str(lease.token))["broken"] is True


class TestHealth:
    def test_a_sound_store_is_ok(self, here: Place) -> None:
        told = here.facts("health")
        assert [store["state"] for store in told["stores"]] == ["ok"]
        assert told["stores"][0]["latency"] > 0
        assert abs(told["stores"][0]["clock"]) < 1

    def test_the_liar_of_a_quorum_is_named_and_what_it_did(self, here: Place) -> None:
        url = self.quorum(here, "lying:grant-all:{}/liar.db")
        told = here.facts("health", "-u", url)
        assert told["sound"] == 3
        (liar,) = [store for store in told["stores"] if store["state"] != "ok"]
        assert liar["url"].endswith("liar.db")
        assert "it granted one lock to two owners" in liar["lies"]
        assert "LYING" in here.trinco("health", "-u", url).stdout

    def test_a_slow_store_is_named(self, here: Place) -> None:
        told = here.facts("health", "-u", f"lying:slow:{here.folder}/slow.db")
        assert told["stores"][0]["state"] == "slow"
        assert told["stores"][0]["latency"] >= 0.11

    def test_a_store_that_is_down_is_named_and_the_others_are_looked_at(self, here: Place) -> None:
        blocked = here.folder / "blocked"
        blocked.write_text("no folder")
        told = here.facts("health", "-u", self.quorum(here, f"sqlite:///{blocked}/d.db"))
        assert [store["state"] for store in told["stores"]] == ["ok", "ok", "ok", "down"]
        assert "blocked" in told["stores"][3]["trouble"]

    def test_no_store_at_all_is_69(self, here: Place) -> None:
        done = here.trinco("health", "-u", "redis://127.0.0.1:1")
        assert done.returncode == 69
        assert "down" in done.stdout

    def test_stores_that_grant_nothing_are_not_sound(
        self, here: Place, redis_servers: Callable[..., RedisServer]
    ) -> None:
        servers = [redis_servers(options="") for _ in range(4)]
        url = "quorum:?f=1&auth=none&" + "&".join(f"store={server.url}" for server in servers)
        told = here.facts("health", "-u", url)
        assert [store["state"] for store in told["stores"]] == ["out"] * 4
        assert told["sound"] == 0

    def quorum(self, here: Place, fourth: str) -> str:
        stores = [f"sqlite:///{here.folder}/{number}.db" for number in range(3)]
        return "quorum:?f=1&auth=none&" + "&".join(f"store={url}" for url in [*stores, fourth.format(here.folder)])


class TestKeys:
    def test_a_key_is_made_once_and_only_its_owner_can_read_it(self, here: Place) -> None:
        assert here.trinco("keys", "make").returncode == 0
        assert stat.S_IMODE(here.keys.stat().st_mode) == 0o600
        assert "rotate" in here.complaint("keys", "make", code=64)

    def test_show_lists_fingerprints_and_no_secrets(self, here: Place) -> None:
        here.trinco("keys", "make", "--kind", "secret")
        here.trinco("keys", "rotate")
        told = here.facts("keys", "show")
        assert [key["signs"] for key in told["keys"]] == [True, False]
        text = here.trinco("keys", "show").stdout
        secrets = [line.rpartition(":")[2] for line in here.keys.read_text().split('"') if "secret" in line]
        assert secrets
        assert not any(secret in text for secret in secrets)
        assert all(key["fingerprint"] in text for key in told["keys"])

    def test_export_of_a_key_pair_is_its_public_half(self, here: Place) -> None:
        here.trinco("keys", "make")
        done = here.trinco("keys", "export")
        assert done.stdout.startswith("trinco-ed25519-public:")
        assert not done.stderr

    def test_export_of_a_shared_secret_warns(self, here: Place) -> None:
        here.trinco("keys", "make", "--kind", "secret")
        done = here.trinco("keys", "export")
        assert done.stdout.startswith("trinco-mac-secret:")
        assert "secret itself" in done.stderr

    def test_two_hosts_share_a_secret(self, here: Place, tmp_path: Path) -> None:
        there = Place(tmp_path / "there")
        here.trinco("keys", "make", "--kind", "secret")
        there.trinco("keys", "make", "--kind", "secret")
        line = here.trinco("keys", "export").stdout
        assert there.trinco("keys", "import", given=line).returncode == 0
        ours, theirs = here.facts("keys", "show")["keys"], there.facts("keys", "show")["keys"]
        assert ours[0] == theirs[0]
        assert [key["signs"] for key in theirs] == [True, False]

    def test_a_public_key_is_trusted_and_does_not_sign(self, here: Place, tmp_path: Path) -> None:
        there = Place(tmp_path / "there")
        there.trinco("keys", "make")
        line = there.trinco("keys", "export").stdout.strip()
        here.trinco("keys", "make")
        assert here.trinco("keys", "trust", line).returncode == 0
        told = here.facts("keys", "show")["keys"]
        assert [key["signs"] for key in told] == [True, False]
        assert told[1]["fingerprint"] in line

    def test_rotation_keeps_the_old_key_to_verify_with(self, here: Place) -> None:
        here.trinco("keys", "make")
        (old,) = here.facts("keys", "show")["keys"]
        here.trinco("keys", "rotate")
        told = here.facts("keys", "show")["keys"]
        assert told[0]["fingerprint"] != old["fingerprint"]
        assert told[1]["fingerprint"] == old["fingerprint"]

    def test_a_damaged_line_is_65_and_is_not_repeated(self, here: Place) -> None:
        line = MacKey(bytes(32)).line()[:-1] + "1"
        said = here.complaint("keys", "import", code=65, given=line)
        assert "fingerprint" in said
        assert line.rpartition(":")[2] not in said

    def test_no_line_is_64(self, here: Place) -> None:
        here.complaint("keys", "trust", code=64)

    def test_nothing_to_export_is_77(self, here: Place) -> None:
        assert "keys make" in here.complaint("keys", "export", code=77)

    def test_a_keyring_that_others_can_read_is_77(self, here: Place) -> None:
        here.trinco("keys", "make")
        here.keys.chmod(0o644)
        assert "chmod 600" in here.complaint("keys", "show", code=77)

    def test_the_keyring_of_a_service_can_be_named(self, here: Place) -> None:
        (here.folder / "trinco.toml").write_text(f'[service.backups]\nurl = "{here.url}"\nkeys = "own.json"\n')
        assert here.trinco("keys", "make", "-u", "@backups").returncode == 0
        assert (here.folder / "own.json").exists()


@pytest.mark.parametrize("damage", ["a damaged key", "a name that nobody can have"])
def test_one_lock_that_cannot_be_looked_at_does_not_hide_the_others(
    here: Place, redis_servers: Callable[..., RedisServer], damage: str
) -> None:
    url = redis_servers().url if damage == "a damaged key" else f"dir://{here.folder}/locks"
    with trinco.connect(url) as locks:
        take(locks.lock("nightly")).release()
        take(locks.lock("weekly")).release()
    if damage == "a damaged key":
        with redis.Redis.from_url(url.partition("?")[0]) as server:
            server.set("trinco:{weekly}", "garbage")
    else:
        (here.folder / "locks" / "weekly" / ".name").write_text("weekly\n")
    done = here.trinco("list", "-u", url)
    assert (done.returncode, "nightly" in done.stdout) == (0, True), done.stderr
    assert "weekly" in done.stderr


@pytest.mark.parametrize("call", [("status", "x"), ("list",), ("run", "x", "--", "true")])
def test_where_memory_runs_out_nothing_is_said_of_verdicts_and_nodes(here: Place, call: tuple[str, ...]) -> None:
    told = here.complaint(call[0], "-u", "vast:", *call[1:], code=69)
    assert "out of memory" in told
    assert "verdict" not in told


# What we may not use, or not now


def test_a_file_that_others_keep_busy_is_not_said_to_be_somebody_s_lock(here: Place, ana: LockService) -> None:
    take(ana.lock("x"))
    other = sqlite3.connect(here.folder / "locks.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert "busy" in here.complaint("break", "x", code=69)
    assert "busy" in here.complaint("run", "-n", "y", "--", "true", code=69)
    other.execute("ROLLBACK")
    other.close()
    assert here.trinco("break", "x").returncode == 0


def test_a_server_that_may_have_forgotten_does_not_say_that_there_are_no_locks(
    here: Place, redis_servers: Callable[..., RedisServer]
) -> None:
    assert "stays out" in here.complaint("list", "-u", redis_servers(options="").url, code=69)


@pytest.mark.parametrize("call", [("status", "x"), ("list",), ("wait", "x"), ("run", "x", "--", "true")])
def test_a_store_that_refuses_our_password_is_77(
    here: Place, redis_servers: Callable[..., RedisServer], call: tuple[str, ...]
) -> None:
    server = redis_servers("--requirepass", "right")
    for login in ("", ":wrong@"):
        url = server.url.replace("//", f"//{login}")
        assert "password" in here.complaint(call[0], "-u", url, *call[1:], code=77)


@pytest.mark.parametrize("call", [("status", "x"), ("list",), ("wait", "x"), ("run", "x", "--", "true")])
@pytest.mark.parametrize(("denied", "code"), [(2, 77), (1, 69)])
def test_a_quorum_is_77_where_those_that_refuse_us_would_be_enough_for_one(
    here: Place, redis_servers: Callable[..., RedisServer], call: tuple[str, ...], denied: int, code: int
) -> None:
    """Two of four are out of use: refused by both, or by one while the other is down."""
    urls = [redis_servers("--requirepass", "right").url for _ in range(denied)]
    urls += ["redis://127.0.0.1:1/0"] * (2 - denied) + [redis_servers().url for _ in range(2)]
    quorum = "quorum:?f=1&auth=none" + "".join(f"&store={quote(url)}" for url in urls)
    assert "password" in here.complaint(call[0], "-u", quorum, *call[1:], code=code)


@pytest.mark.parametrize("command", ["health", "doctor"])
def test_who_looks_at_a_store_that_refuses_our_password_gets_77_too(
    here: Place, redis_servers: Callable[..., RedisServer], command: str
) -> None:
    server = redis_servers("--requirepass", "right")
    done = here.trinco(command, "-u", server.url)
    assert done.returncode == 77, (done.stdout, done.stderr)
    assert "password" in done.stdout


@pytest.mark.parametrize("command", ["status", "list", "wait", "break", "health", "keys", "doctor"])
def test_every_command_has_help_with_examples(here: Place, command: str) -> None:
    done = here.trinco(command, "--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout
    assert f"trinco {command}" in done.stdout
    assert "exit:" in done.stdout
