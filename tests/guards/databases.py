"""Databases for the guards' tests: a SQLite file, and a real PostgreSQL."""

import sqlite3
from pathlib import Path
from typing import Any, Protocol

import psycopg


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
