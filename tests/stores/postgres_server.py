"""A real PostgreSQL on a free port of this host, with its data in a folder of its own.

PostgreSQL refuses to run as root, so then it runs as ``nobody``. The data folder is made once per test process and
copied for every server.
"""

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.stores.binaries import are_for_all, copied, postgres_programs

MEMORY = Path("/dev/shm")
"""A disk in memory, where there is one: tests that sync need not wait for a real one."""
ENOUGH = 2 << 30
"""Bytes for the servers of a test run; in a container that disk may be a small one."""
LIMIT = 20.0
"""Seconds for a server to start or to stop; far more than it takes."""
GUARDED = "host all guarded 127.0.0.1/32 scram-sha-256\n"
"""The one role that must bring its password."""


def unprivileged() -> "dict[str, Any]":
    """As whom to run it."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def own_folder() -> Path:
    """Not one of pytest's: nobody may look into those."""
    place = MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH else None
    folder = Path(tempfile.mkdtemp(prefix="trinco-postgres-", dir=place))
    if run_as := unprivileged():
        os.chown(folder, run_as["user"], run_as["group"])
    return folder


@cache
def programs() -> Path:
    """Where whoever runs them can reach them."""
    folder = postgres_programs()
    if not unprivileged() or are_for_all(folder):
        return folder
    place = own_folder()
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return copied(folder, place)


def make_template(folder: Path) -> Path:
    data = folder / "data"
    arguments = ["-D", str(data), "-U", "trinco", "-A", "trust", "--no-sync", "-E", "UTF8"]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    initdb = [str(programs() / "initdb"), *arguments]
    subprocess.run(initdb, cwd=folder, env=environment, check=True, capture_output=True, **unprivileged())
    rules = data / "pg_hba.conf"
    rules.write_text(GUARDED + rules.read_text())
    return data


def copy_template(template: Path, data: Path) -> None:
    subprocess.run(["cp", "-a", str(template), str(data)], check=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """Started by ``start``; ``kill`` is a crash, ``restart`` comes back after one with the same data and port."""

    def __init__(self, template: Path, *settings: str) -> None:
        self.folder = own_folder()
        self.settings = ("fsync=off", "full_page_writes=off", *settings)
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        copy_template(template, self.folder / "data")

    @property
    def url(self) -> str:
        return f"postgresql://trinco@127.0.0.1:{self.port}/postgres"

    def start(self) -> "PostgresServer":
        options = [part for setting in self.settings for part in ("-c", setting)]
        place = ["-D", str(self.folder / "data"), "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            command = [str(programs() / "postgres"), *place, *options]
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **unprivileged())
        self._wait_until_ready()
        return self

    def kill(self) -> None:
        """As a crash of the machine would: no goodbye to anybody."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """The children of a killed server need a moment to notice; until then a new one refuses to start."""
        end = time.monotonic() + LIMIT
        while True:
            try:
                self.start()
            except RuntimeError:
                if time.monotonic() > end:
                    raise
            else:
                return

    def stop(self) -> None:
        self._end(signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self, **settings: Any) -> "psycopg.Connection[Any]":
        return psycopg.connect(self.url, autocommit=True, **settings)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(LIMIT)

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + LIMIT
        while True:
            try:
                self.connect(connect_timeout=2).close()
            except psycopg.OperationalError as error:
                assert self.process is not None
                if self.process.poll() is not None or time.monotonic() > end:
                    self._end(signal.SIGKILL)
                    log = (self.folder / "log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"PostgreSQL did not start: {error}\n{log}") from error
                time.sleep(0.02)
            else:
                return


@pytest.fixture(scope="session")
def postgres_template() -> Iterator[Path]:
    folder = own_folder()
    yield make_template(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server(postgres_template: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(postgres_template)
    try:
        yield server.start()
    finally:
        server.stop()
