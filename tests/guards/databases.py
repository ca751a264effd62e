"""Databases for the guards' tests, a SQLite file and a real PostgreSQL, and effects in them."""

import sqlite3
import time
from pathlib import Path
from typing import Any, Protocol

import psycopg

from trinco.guards import SQLGuard, StaleToken


class Database(Protocol):
    def connect(self) -> Any: ...


class SQLite:
    def __init__(self, path: Path) -> None:
        self.path = path

    def connect(self, timeout: float = 20) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=timeout, check_same_thread=False)


class PostgreSQL:
    def __init__(self, url: str) -> None:
        self.url = url

    def connect(self, **options: Any) -> "psycopg.Connection[Any]":
        return psycopg.connect(self.url, **options)


def prepare(database: Database) -> None:
    connection = database.connect()
    SQLGuard(connection).create_table()
    serial = "SERIAL" if isinstance(database, PostgreSQL) else "INTEGER"
    connection.cursor().execute(f"CREATE TABLE effects (id {serial} PRIMARY KEY, token BIGINT)")
    connection.commit()
    connection.close()


def effect(cursor: Any, token: int) -> None:
    cursor.execute(f"INSERT INTO effects (token) VALUES ({token})")


def do(connection: Any, token: int, resource: str = "nightly") -> bool:
    try:
        with SQLGuard(connection).fenced(resource, token) as cursor:
            effect(cursor, token)
    except StaleToken:
        return False
    return True


def effects(connection: Any) -> list[int]:
    """In the order in which they took place: ids are given out under the row's lock."""
    cursor = connection.cursor()
    cursor.execute("SELECT token FROM effects ORDER BY id")
    found = [int(token) for (token,) in cursor.fetchall()]
    connection.rollback()
    return found


def wait_for_a_lock(watch: Any) -> None:
    end = time.monotonic() + 10
    while not watch.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone():
        assert time.monotonic() < end, "nobody waits"
