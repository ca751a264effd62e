"""Which stores a service stands on: URLs, ``trinco.toml``, ``TRINCO_URL``; and what is wrong with them, in one line."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import trinco
from trinco.locks.config import Service, find_service, from_table, from_url

ConfigError = trinco.ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody's files but those of the test."""
    for name in ("TRINCO_URL", "TRINCO_KEYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def sqlite_urls(folder: Path, how_many: int = 4) -> list[str]:
    return [f"sqlite:///{folder}/{number}.db" for number in range(how_many)]


# What counts


def test_without_anything_there_is_a_file_in_the_state_folder(tmp_path: Path) -> None:
    with trinco.connect() as service, service.lock("door").hold(timeout=5) as lease:
        assert lease.valid
    assert (tmp_path / "state" / "trinco" / "locks.db").exists()


def test_what_was_given_counts_before_the_environment_before_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "trinco.toml").write_text('[service.default]\nurl = "memory:file"\n[service.other]\nurl = "memory:other"\n')
    assert find_service().stores == ("memory:file",)
    monkeypatch.setenv("TRINCO_URL", "memory:environment")
    assert find_service().stores == ("memory:environment",)
    assert find_service("@other").stores == ("memory:other",)
    assert find_service("memory:given").stores == ("memory:given",)
    monkeypatch.setenv("TRINCO_URL", "@other")
    assert find_service().stores == ("memory:other",)


def test_a_file_here_counts_before_the_users_own(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "config" / "trinco"
    own.mkdir(parents=True)
    (own / "trinco.toml").write_text('[service.default]\nurl = "memory:own"\n')
    assert find_service().stores == ("memory:own",)
    (home / "trinco.toml").write_text('[service.default]\nurl = "memory:here"\n')
    assert find_service().stores == ("memory:here",)


def test_a_whole_service_comes_from_a_file(home: Path) -> None:
    (home / "trinco.toml").write_text(
        '[service.backups]\nf = 1\nstores = ["sqlite:///a.db", "sqlite:///b.db", "sqlite:///c.db", "sqlite:///d.db"]\n'
        'ttl = "20s"\nauth = "none"\n'
    )
    with trinco.connect("@backups") as service, service.lock("door").hold(timeout=5) as lease:
        assert service.f == 1
        assert 15 < lease.remaining <= 20
        assert len(lease.votes) >= 3
    assert (home / "a.db").exists()


def test_a_quorum_is_a_url_too(tmp_path: Path) -> None:
    stores = "&".join(f"store={url}" for url in sqlite_urls(tmp_path))
    with trinco.connect(f"quorum:?f=1&auth=none&{stores}") as service, service.lock("door").hold(timeout=5) as lease:
        assert len(lease.votes) >= 3


@pytest.mark.parametrize(
    "url",
    [
        "redis://:s3cr%25t%2F@host/0",
        "sqlite:////srv/one+two.db",
        "sqlite:////srv/one%20two.db",
        "postgresql://ana@host/locks?options=-c%20timezone%3DUTC",
    ],
)
def test_a_url_in_the_url_of_a_quorum_is_what_it_is_by_itself(url: str) -> None:
    assert from_url(f"quorum:?f=0&store={url}&store=memory:b").stores == (url, "memory:b")


def test_an_ampersand_in_the_url_of_a_quorum_is_escaped() -> None:
    service = from_url("quorum:?store=redis://a/0?fresh=1%26t_max=20s&store=sqlite:////srv/one%26two.db")
    assert service.stores == ("redis://a/0?fresh=1&t_max=20s", "sqlite:////srv/one&two.db")


def test_what_may_be_a_password_is_not_repeated() -> None:
    for target in ("@redis://u:secret@h", "sqlite://u:secret@h/x", "dir://u:secret@h", "sqlite://u:secret@h/x?a=b"):
        with pytest.raises(ConfigError) as caught:
            trinco.connect(target)
        assert "secret" not in str(caught.value)


def test_a_number_that_nobody_can_mean_is_no_bug_of_ours() -> None:
    with pytest.raises(ConfigError, match="too large"):
        trinco.connect(f"quorum:?f={'9' * 5000}&store=memory:")


@pytest.mark.parametrize(
    "url", ["redis://:p%40ss@a/0?fresh=1&t_max=20s", "sqlite:////srv/one&two 50%.db", "memory:a=b"]
)
@pytest.mark.parametrize("safe", ["", "/"])
def test_the_url_of_a_store_in_a_quorum_may_be_quoted_as_a_whole(url: str, safe: str) -> None:
    assert from_url(f"quorum:?f=0&store={quote(url, safe=safe)}").stores == (url,)


def test_a_quorum_takes_stores_as_arguments(tmp_path: Path) -> None:
    with trinco.connect("quorum:?f=1&auth=none", stores=sqlite_urls(tmp_path)) as service:
        assert len(service.stores) == 4


def test_settings_beside_a_quorum_url_are_not_dropped(tmp_path: Path) -> None:
    """Least of all ``auth``: who asked for key pairs would silently get a shared secret."""
    url = "quorum:?f=1&" + "&".join(f"store={url}" for url in sqlite_urls(tmp_path))
    table: dict[str, Any] = {"url": url, "ttl": "20s", "auth": "ed25519", "keys": "ring.json"}
    service = from_table(table, "here", str(tmp_path))
    assert (service.f, service.ttl, service.auth) == (1, 20.0, "ed25519")
    assert service.keys is not None


def test_relative_files_are_relative_to_the_file_that_names_them(home: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    urls = "&".join(f"store=sqlite:///{each}.db" for each in "abcd")
    (place / "trinco.toml").write_text(
        f'[service.default]\nurl = "sqlite:///locks.db"\n[service.four]\nurl = "quorum:?f=1&auth=none&{urls}"\n'
    )
    for target, file in ((None, "locks.db"), ("@four", "a.db")):
        with trinco.connect(target, config=str(place / "trinco.toml")) as service:
            service.lock("door").hold(timeout=5).__enter__().release()
        assert (place / file).exists(), file


@pytest.mark.parametrize("name", ["a%20b", "50%", "why?", "a#b", "a&b=c", "a b", "é"])
def test_a_folder_may_have_any_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a path and no part of a URL, though URLs are made of it."""
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(folder))
    (folder / "trinco.toml").write_text('[service.default]\nurl = "sqlite:///locks.db"\n')
    for config, file in ((None, ".local/state/trinco/locks.db"), (str(folder / "trinco.toml"), "locks.db")):
        with trinco.connect(config=config) as service:
            service.lock("door").hold(timeout=5).__enter__().release()
        assert (folder / file).exists(), file


def test_relative_folders_of_the_system_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the XDG Base Directory Specification says: whoever stands in another folder would lock somewhere else."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    assert find_service().stores == (f"sqlite:///{tmp_path}/.local/state/trinco/locks.db",)
    own = tmp_path / ".config" / "trinco"
    own.mkdir(parents=True)
    (own / "trinco.toml").write_text('[service.default]\nurl = "memory:own"\n')
    assert find_service().stores == ("memory:own",)


@pytest.mark.parametrize("place", ["here", ""])
def test_a_home_that_is_no_whole_path_is_refused(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", place)
    with pytest.raises(ConfigError, match=f"HOME is '{place}'"):
        find_service()


@pytest.mark.skipif(os.geteuid() != 0, reason="to become a user whom the system does not know takes root")
def test_a_user_without_a_home_is_told_so() -> None:
    """As in a container that was started with ``--user 23456``, and without HOME."""
    look = "import os; os.setuid(23456); from trinco.locks.folders import default_url; default_url()"
    environment = {"PATH": os.environ["PATH"]}
    call = [sys.executable, "-c", "import trinco, trinco.core.errors, trinco.locks.folders; " + look]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert "ConfigError: HOME is not set, and this user has none: set it to the whole path of a folder" in done.stderr


# What is wrong


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "no URL"),
        ("locks", "no URL"),
        ("locks.db", "sqlite:///locks.db is that file"),
        ("/srv/locks.sqlite", "sqlite:////srv/locks.sqlite is that file"),
        ("reddis://localhost", "did you mean redis"),
        ("sqlit:///x.db", "did you mean sqlite"),
        ("SQLITE:///x.db", "did you mean sqlite"),
        ("sqlite:///x.db\r", "the end of a line"),
        ("sqlite:///x.db ", "the end of a line"),
        ("dir:///x\n", "the end of a line"),
        (" redis://localhost", "the end of a line"),
        ("quorum:?store=sqlite:///x.db\r", "the end of a line"),
        ("sqlite:///:memory:", "write memory:"),
        ("sqlite:x.db", "sqlite:///"),
        ("sqlite:///", "names no file"),
        ("sqlite:///x.db?wal=1", "no option 'wal'"),
        ("sqlite:///x.db?t_max=soon", "no duration"),
        pytest.param("sqlite:///x.db?t_max=0s", "t_max"),
        pytest.param("sqlite:///x.db?t_max=-5s", "t_max"),
        pytest.param("dir:///x?t_max=0s", "t_max"),
        ("redis://localhost:port/0", "port"),
        ("redis://localhost/0?fresh=yes", "fresh"),
        ("redis://localhost/0?t_max=0", "t_max"),
        ("sqlite:///a%00b.db", "NUL"),
        ("sqlite:///a\0b.db", "NUL"),
        ("dir:///a%00b", "NUL"),
        ("quorum:?store=sqlite:///a%00b.db", "NUL"),
        ("quorum:", "no store"),
        ("quorum:?f=1", "no store"),
        ("quorum:?f=x&store=memory:a", "whole number"),
        ("quorum:?f=-1&store=memory:a", "whole number"),
        pytest.param("quorum:?f=²&store=memory:a", "whole number"),
        ("quorum:?f=1&store=memory:a&store=memory:b&store=memory:c", "3f+1 = 4"),
        ("quorum:?f=1&auth=rot13", "auth"),
        ("quorum:?f=1&color=red", "no option 'color'"),
        ("quorum:?f=1&store=quorum:?f=0", "a quorum is no store of another one"),
        ("@nowhere", "trinco.toml"),
    ],
)
def test_a_wrong_url_is_one_clear_line(url: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        trinco.connect(url)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "\0" not in str(caught.value)


@pytest.mark.parametrize("target", [7, b"memory:", ["memory:"]])
def test_what_is_no_url_at_all_is_refused(target: Any) -> None:
    with pytest.raises(ConfigError):
        trinco.connect(target)


def test_a_password_is_not_repeated_in_an_error() -> None:
    with pytest.raises(trinco.TrincoError) as caught, trinco.connect("redis://ana:s3cret@127.0.0.1:1/0") as service:
        service.lock("door").hold(timeout=1).__enter__()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[service.default\n", "line 1"),
        ("x = " + "[" * 100_000, "nested too deeply"),
        ("[service.default]\nurl = 'memory:'\nurl = 'memory:'\n", "line 3"),
        ("[service.default]\n", "either a url or a list"),
        ("[service.default]\nurl = 'memory:'\nstores = ['memory:']\n", "either a url or a list"),
        ("[service.default]\nurl = 7\n", "stores are URLs"),
        ("[service.default]\nstores = []\n", "stores are URLs"),
        ("[service.default]\nstores = 'memory:'\n", "stores are URLs"),
        ("[service.default]\nurl = 'memory:'\nf = '1'\n", "f is a whole number"),
        ("[service.default]\nurl = 'memory:'\nf = true\n", "f is a whole number"),
        ("[service.default]\nurl = 'memory:'\ncolor = 'red'\n", "no setting 'color' (there are"),
        ("[service.default]\nurl = 'memory:'\ntll = '5s'\n", "no setting 'tll', did you mean 'ttl'?"),
        ("[service.other]\nurl = 'memory:'\n", "no [service.default] (there are @other); name one of them"),
        ("[service.default]\nurl = 'memory:'\nauth = 'magic'\n", "auth is one of"),
        ("[service.default]\nurl = 'memory:'\nttl = []\n", "ttl is a duration"),
        pytest.param("[service.default]\nurl = 'memory:'\nttl = 'soon'\n", "soon"),
        ("service = 7\n", "tables"),
        ("[service]\ndefault = 7\n", "tables"),
        ("\xff", "cannot be read"),
        ("[services.default]\nurl = 'memory:'\n", "'services' says nothing"),
        ("[default]\nurl = 'memory:'\n", "'default' says nothing"),
        ("url = 'memory:'\n", "'url' says nothing"),
        ("[service.deflaut]\nurl = 'memory:'\n", "no [service.default], did you mean '@deflaut'? (there are @deflaut)"),
        ("[service.default]\nurl = 'memory:'\nkeys = 5\n", "keys is the path"),
        ("[service.default]\nurl = 'memory:'\nkeys = \"a\\u0000b\"\n", "keys is the path"),
        ("[service.default]\nurl = 'memory:'\nttl = nan\n", "ttl is a duration"),
        ("[service.default]\nurl = 'memory:'\nttl = '90s'\n", "a ttl is 1 to 60 seconds"),
        ("[service.default]\nurl = '@default'\n", "no URL"),
        ("[service.default]\nurl = 'memory:'\nf = 1\n", "3f+1 = 4"),
        ("[service.default]\nstores = ['memory:a', 'memory:a']\n", "twice"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(home: Path, text: str, says: str) -> None:
    (home / "trinco.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        trinco.connect()
    assert says in str(caught.value)
    assert "trinco.toml" in str(caught.value)


def test_a_file_that_says_nothing_of_it_leaves_it_to_the_users_own(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "config" / "trinco"
    own.mkdir(parents=True)
    (own / "trinco.toml").write_text('[service.default]\nurl = "memory:own"\n[service.mine]\nurl = "memory:mine"\n')
    (home / "trinco.toml").write_text('[service.other]\nurl = "memory:other"\n')
    assert find_service().stores == ("memory:own",)
    assert find_service("@mine").stores == ("memory:mine",)
    assert find_service("@other").stores == ("memory:other",)


def test_a_link_to_nowhere_is_a_file_that_cannot_be_read(home: Path) -> None:
    (home / "trinco.toml").symlink_to(home / "gone.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        find_service()


def test_a_file_may_be_empty_or_begin_with_a_mark(home: Path, tmp_path: Path) -> None:
    (home / "trinco.toml").write_text("# nothing yet\n")
    assert find_service().stores == (f"sqlite:///{tmp_path}/state/trinco/locks.db",)
    (home / "trinco.toml").write_bytes(b"\xef\xbb\xbf[service.default]\nurl = 'memory:marked'\n")
    assert find_service().stores == ("memory:marked",)


def test_a_ttl_that_the_stores_do_not_keep_is_a_mistake_in_the_configuration(home: Path) -> None:
    (home / "trinco.toml").write_text("[service.default]\nurl = 'memory:'\nttl = '2h'\n")
    with pytest.raises(ConfigError, match="7200"):
        trinco.connect()


def test_the_url_of_a_quorum_is_not_repeated_in_an_error() -> None:
    for wrong in ("f=x", "auth=rot13", "color=red"):
        with pytest.raises(ConfigError) as caught:
            from_url(f"quorum:?{wrong}&store=redis://ana:s3cret@a/0")
        assert "s3cret" not in str(caught.value)


def test_a_file_that_no_file_can_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        find_service(file="a\0b")


def test_a_file_that_was_named_must_be_there(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.toml"):
        trinco.connect(config=str(home / "missing.toml"))
    (home / "trinco.toml").write_text('[service.backups]\nurl = "memory:"\n')
    with pytest.raises(ConfigError, match="did you mean '@backups'"):
        trinco.connect("@backup")


@pytest.mark.parametrize(
    ("file", "says"),
    [("", "'' cannot be read"), ("/dev/null", "nor any other service"), ("/dev/zero", "longer than 1 MiB")],
)
def test_a_file_that_is_none_is_one_clear_line(file: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        trinco.connect(config=file)


# What may stand together


def test_a_store_has_one_vote(tmp_path: Path) -> None:
    urls = sqlite_urls(tmp_path)
    with pytest.raises(ConfigError, match="twice"):
        trinco.connect("quorum:?f=1&auth=none", stores=[*urls, urls[0]])


@pytest.mark.parametrize("spelling", ["{folder}/./0.db", "{folder}/../{name}/0.db", pytest.param("{folder}/link.db")])
def test_a_file_has_one_vote_however_it_is_spelled(tmp_path: Path, spelling: str) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "0.db")
    other = spelling.format(folder=tmp_path, name=tmp_path.name)
    with pytest.raises(ConfigError, match="twice"):
        trinco.connect("quorum:?f=1&auth=none", stores=[*sqlite_urls(tmp_path, 3), f"sqlite:///{other}"])


def test_stores_of_this_host_do_not_vote_with_those_of_others(tmp_path: Path) -> None:
    others = [f"redis://host-{number}/0" for number in range(3)]
    with pytest.raises(ConfigError, match="this host"):
        trinco.connect("quorum:?f=1&auth=none", stores=[*others, sqlite_urls(tmp_path)[0]])


def test_two_stores_of_one_fault_domain_are_a_warning() -> None:
    urls = [f"redis://host-{number}/0" for number in range(3)]
    with pytest.warns(UserWarning, match="host-0"):
        trinco.connect("quorum:?f=1&auth=none", stores=[*urls, "redis://host-0/1"]).close()


@pytest.mark.parametrize("scheme", ["redis", "postgresql"])
@pytest.mark.parametrize("host", ["localhost", "LocalHost", "127.0.0.2", "[::1]"])
def test_a_host_that_calls_itself_by_two_names_is_one_fault_domain(scheme: str, host: str) -> None:
    urls = [f"{scheme}://{name}:7000/0" for name in ("127.0.0.1", host, "a", "b")]
    with pytest.warns(UserWarning, match="localhost:7000"):
        trinco.connect("quorum:?f=1&auth=none", stores=urls)


def test_two_servers_of_one_host_are_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    trinco.connect("quorum:?f=1&auth=none", stores=[f"redis://127.0.0.1:{7000 + each}/0" for each in range(4)])
    assert not recwarn


def test_a_quorum_works_in_a_folder_with_a_long_name(tmp_path: Path) -> None:
    """Ids of stores go into entries, which have limits; a user's folder may be deep."""
    deep = tmp_path / ("a folder with a long name " * 5) / ("and another one in it " * 5)
    deep.mkdir(parents=True)
    service = trinco.connect("quorum:?f=1&auth=none", stores=sqlite_urls(deep))
    with service, service.lock("door").hold(timeout=5) as lease:
        assert lease.valid


# Disks


def test_a_folder_that_cannot_be_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(trinco.StoreUnavailable) as caught,
        trinco.connect(f"sqlite:///{tmp_path}/file/locks.db") as service,
    ):
        service.lock("door").hold(timeout=1).__enter__()
    assert f"{tmp_path}/file" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_database_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "locks.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(trinco.StoreUnavailable) as caught, trinco.connect(f"sqlite:///{tmp_path}/locks.db") as service:
        service.lock("door").hold(timeout=1).__enter__()
    assert "locks.db" in str(caught.value)


def test_a_database_that_somebody_else_has_locked_is_waited_for_and_then_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with trinco.connect(url) as service:
        service.lock("door").hold(timeout=5).__enter__().release()
        blocker = sqlite3.connect(tmp_path / "locks.db")
        blocker.execute("BEGIN EXCLUSIVE")
        try:
            with pytest.raises((trinco.StoreUnavailable, trinco.AcquireTimeout)):
                service.lock("door").hold(timeout=0.5).__enter__()
        finally:
            blocker.rollback()
            blocker.close()
        assert service.lock("door").try_acquire() is not None


def test_a_url_says_what_it_means() -> None:
    assert from_url("quorum:?f=2&store=memory:a&store=memory:b") == Service(("memory:a", "memory:b"), 2)
    assert from_url("memory:a") == Service(("memory:a",))
