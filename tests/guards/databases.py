"""Databases for the guards' tests: a SQLite file, and a PostgreSQL of our own that listens on a socket in its folder
and needs no port that somebody else might take."""

import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import psycopg

START_SECONDS = 20.0


def binary(name: str) -> str:
    """Of the package's folder only: to import it would warn about things that we do not use."""
    package = find_spec("pgserver")
    assert package is not None, "there is no PostgreSQL: install the pgserver package"
    assert package.origin is not None
    return str(Path(package.origin).parent / "pginstall" / "bin" / name)


class Database(Protocol):
    def connect(self) -> Any: ...


class SQLite:
    def __init__(self, path: Path) -> None:
        self.path = path

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=20, check_same_thread=False)


class PostgreSQL:
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def connect(self, **options: Any) -> "psycopg.Connection[Any]":
        return psycopg.connect(host=self.folder, user="trinco", dbname="postgres", **options)


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """A server that ends with the block. It refuses to run as root."""
    with tempfile.TemporaryDirectory(prefix="trinco-guards-") as folder:
        who: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        process = _started(folder, who)
        try:
            yield _answering(folder, process)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(10)
            shutil.rmtree(Path(folder) / "data", ignore_errors=True)


def _started(folder: str, who: dict[str, Any]) -> "subprocess.Popen[bytes]":
    data = f"{folder}/data"
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    with open(f"{folder}/log", "wb") as log:
        rest: dict[str, Any] = {"cwd": folder, "env": environment, "stdout": log, "stderr": log, **who}
        make = [binary("initdb"), "-D", data, "-U", "trinco", "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run(make, check=True, timeout=60, **rest)
        quick = ["-c", "fsync=off", "-c", "full_page_writes=off"]
        return subprocess.Popen([binary("postgres"), "-D", data, "-h", "", "-k", folder, *quick], **rest)


def _answering(folder: str, process: "subprocess.Popen[bytes]") -> PostgreSQL:
    database = PostgreSQL(folder)
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            database.connect().close()
        except psycopg.OperationalError:
            log = Path(folder, "log").read_text(encoding="utf-8", errors="replace")[-2000:]
            assert process.poll() is None, log
            assert time.monotonic() < end, log
            time.sleep(0.02)
        else:
            return database
