"""``trinco doctor``: green where locks are safe, red where two could hold one."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.cli import unfit_stores
from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer, free_port

ROOT = Path(__file__).parents[2]
TRINCO = [sys.executable, "-m", "trinco"]


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    unfit_stores.install(folder)
    return folder


def doctor(packages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return trinco(packages, "doctor", *arguments)


def trinco(packages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TRINCO, *arguments], env=with_path(packages), capture_output=True, text=True, timeout=60, check=False
    )


def with_path(packages: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{packages}{os.pathsep}{ROOT}"}


def findings(done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    """What is not ok, of the first store."""
    return [probe for probe in json.loads(done.stdout)[0]["probes"] if probe["state"] != "ok"]


def test_sqlite_is_fit(packages: Path, tmp_path: Path) -> None:
    done = doctor(packages, f"sqlite:///{tmp_path}/locks.db", "--json")
    assert (done.returncode, findings(done)) == (0, []), done.stderr


def test_a_folder_is_fit(packages: Path, tmp_path: Path) -> None:
    done = doctor(packages, f"dir://{tmp_path}/locks", "--json")
    assert (done.returncode, findings(done)) == (0, []), done.stderr


def test_redis_is_fit(packages: Path, redis_server: RedisServer) -> None:
    done = doctor(packages, redis_server.url, "--json")
    assert (done.returncode, findings(done)) == (0, []), done.stderr


def test_postgres_is_fit(packages: Path, postgres_server: PostgresServer) -> None:
    done = doctor(packages, f"{postgres_server.url}?fresh=1", "--json")
    assert (done.returncode, findings(done)) == (0, []), done.stderr


@pytest.mark.parametrize(("connections", "code"), [(20, 0), (8, 69)])
def test_a_race_is_all_that_takes_many_connections(
    packages: Path, postgres_server: PostgresServer, connections: int, code: int
) -> None:
    """Sixteen; a few of those before it may still be ending."""
    role = f"has_{connections}"
    with postgres_server.connect() as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT {connections}")
        connection.execute(f"GRANT CREATE ON DATABASE postgres TO {role}")
    url = f"{postgres_server.url}?fresh=1&schema={role}".replace("trinco@", f"{role}@")
    done = doctor(packages, url, "--json")
    assert done.returncode == code, done.stdout
    assert [probe["probe"] for probe in findings(done)] == (["race of creates"] if code else [])
    assert all("ALTER ROLE ... CONNECTION LIMIT" in probe["says"] for probe in findings(done))


def test_every_probe_has_a_line(packages: Path, tmp_path: Path) -> None:
    lines = doctor(packages, f"sqlite:///{tmp_path}/locks.db").stdout.splitlines()
    words = ("reachable", "clock", "conditional create", "stale compare-and-set", "stale delete", "race", "latency")
    for word in words:
        assert any(line.strip().startswith(word) for line in lines), word
    assert any("in steps of" in line for line in lines)


def test_a_second_visit_finds_the_same(packages: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert doctor(packages, f"sqlite:///{tmp_path}/locks.db").returncode == 0


def test_a_store_that_ignores_preconditions_is_unfit(packages: Path) -> None:
    done = doctor(packages, "ignoring:a", "--json")
    assert done.returncode == 1, done.stderr
    unfit = {probe["probe"]: probe["says"] for probe in findings(done)}
    assert "ignores preconditions" in unfit["stale compare-and-set"]


def test_a_store_that_is_not_atomic_is_unfit(packages: Path) -> None:
    done = doctor(packages, "racy:a", "--json")
    assert done.returncode == 1, done.stderr
    assert [probe["probe"] for probe in findings(done)] == ["race of creates"]
    assert "won one lock at the same moment" in findings(done)[0]["says"]


@pytest.mark.parametrize("behaviour", ["grant-all", "deny-all", "forget", "replay", "garbage"])
def test_a_store_that_lies_is_unfit(packages: Path, tmp_path: Path, behaviour: str) -> None:
    done = doctor(packages, f"lying:{behaviour}:{tmp_path}/locks.db")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "UNFIT" in done.stdout


def test_a_store_that_is_down_is_named(packages: Path) -> None:
    done = doctor(packages, f"redis://127.0.0.1:{free_port()}/0")
    assert done.returncode == 69
    assert "cannot connect" in done.stdout


def test_a_server_that_stays_out_is_not_called_unreachable(
    packages: Path, redis_servers: Callable[..., RedisServer]
) -> None:
    done = doctor(packages, redis_servers(options="").url, "--json")
    assert done.returncode == 69
    (found,) = findings(done)
    assert found["state"] == "not now"
    assert "stays out" in found["says"]


def test_a_store_that_answers_too_late_is_not_accused_and_not_called_fit(packages: Path) -> None:
    done = doctor(packages, "late:0.02:0.07", "--json")
    assert done.returncode == 69, done.stdout
    found = {probe["probe"]: probe["state"] for probe in findings(done)}
    assert set(found.values()) == {"too slow"}, done.stdout
    assert "stale compare-and-set" in found
    assert "race of creates" not in found, "one probe that shows nothing does not keep others from it"


def test_the_probe_at_work_is_shown_to_who_looks_and_kept_out_of_what_is_said(packages: Path, tmp_path: Path) -> None:
    terminal, other_end = pty.openpty()
    url = f"sqlite:///{tmp_path}/locks.db"
    environment = with_path(packages) | {"TERM": "xterm"}
    done = subprocess.run(
        [*TRINCO, "doctor", url], env=environment, stdout=subprocess.PIPE, stderr=other_end, timeout=60, check=True
    )
    os.close(other_end)
    shown = os.read(terminal, 1 << 16)
    os.close(terminal)
    assert b"reachable (1 of 9)" in shown
    assert b" of 9)" not in done.stdout
    assert b"stale delete" in done.stdout


@pytest.mark.parametrize("right", ["evalsha", "set", "@hash", "@sortedset"])
def test_a_right_that_is_missing_at_redis_is_77(
    packages: Path, redis_servers: Callable[..., RedisServer], right: str
) -> None:
    server = redis_servers()
    with redis.Redis(port=server.port) as connection:
        connection.execute_command("ACL", "SETUSER", "default", f"-{right}")
    done = doctor(packages, server.url, "--json")
    assert done.returncode == 77, done.stdout
    assert [probe["state"] for probe in findings(done)] == ["forbidden"]
    seen = trinco(packages, "health", "--json", "-u", server.url)
    assert seen.returncode == 77, seen.stdout
    assert "may not do what locks need" in json.loads(seen.stdout)["stores"][0]["trouble"]


@pytest.mark.parametrize("moment", ["send", "receive"])
def test_a_store_whose_link_raises_what_it_likes_is_unfit(packages: Path, moment: str) -> None:
    done = doctor(packages, f"raising:{moment}", "--json")
    assert done.returncode == 1, done.stderr
    assert {probe["state"] for probe in findings(done)} == {"unfit"}
    assert findings(done)[0]["says"].startswith(f"raising:{moment}: its driver fails with KeyError: ")
    assert len(findings(done)[0]["says"].splitlines()) == 1


def test_a_store_that_cannot_be_connected_to_for_whatever_reason_is_unreachable(packages: Path) -> None:
    done = doctor(packages, "raising:connect", "--json")
    assert done.returncode == 69, done.stderr
    assert [probe["state"] for probe in findings(done)] == ["unreachable"]
    assert "KeyError" in findings(done)[0]["says"]


def test_one_unfit_store_among_good_ones_is_enough(packages: Path, tmp_path: Path) -> None:
    config = tmp_path / "trinco.toml"
    config.write_text(f'[service.mixed]\nstores = ["sqlite:///{tmp_path}/a.db", "racy:b"]\n')
    done = doctor(packages, "@mixed", "-c", str(config))
    assert done.returncode == 1, done.stderr
    assert "a.db" in done.stdout


def test_an_unknown_kind_of_store_is_a_wrong_configuration(packages: Path) -> None:
    done = doctor(packages, "reddis://localhost")
    assert done.returncode == 78
    assert "did you mean" in done.stderr
