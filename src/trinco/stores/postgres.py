"""PostgreSQL: one row per lock, and beside it the twin of ``Item.apply`` (``postgres.sql``).

This file knows how to connect: what the URL says, how the tables and functions are made, and whether the server may
have forgotten leases. A server that runs with ``fsync=off`` may come back without its newest ones: then it stays out
until they are over. ``postgres_link.py`` carries accesses out.
"""

from math import ceil
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from trinco.core.duration import seconds
from trinco.core.errors import ConfigError, StoreUnavailable
from trinco.leases.terms import T_MAX
from trinco.stores.store import Store

try:
    import psycopg
except ImportError as missing:
    raise ConfigError("postgresql:// needs the package psycopg: pip install 'trinco[postgres]'") from missing

from trinco.stores.postgres_calls import SIGN_OF_LIFE, microseconds, one_line
from trinco.stores.postgres_link import PostgresLink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LAYOUT = 2
"""Rises when ``postgres.sql`` changes; a store of an earlier layout is brought up to date by the first who connects."""
SCRIPT = Path(__file__).with_suffix(".sql")
CREATION = int.from_bytes(b"trinco")
"""The advisory lock behind which tables and functions are made."""


class PostgresStore(Store):
    """``postgresql://user:password@host:port/database``, with libpq's options and ours: ``t_max``, ``fresh=1`` (this
    server has never held a lock) and ``schema``."""

    __slots__ = ("conninfo", "fresh", "given", "schema")

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        t_max = seconds(given.pop("t_max", str(T_MAX)))
        fresh = given.pop("fresh", "0")
        self.schema = given.pop("schema", "trinco")
        if not t_max > 0 or fresh not in ("0", "1") or not 0 < len(self.schema.encode()) < 64:
            raise ConfigError(f"{_without_password(url)}: t_max is a duration, fresh is 0 or 1, schema is a name")
        self.fresh = fresh == "1"
        self.given = given
        self.conninfo = urlunsplit(parts._replace(query=urlencode(given, quote_via=quote)))
        super().__init__(_without_password(url), "handing-over", _domain(parts.netloc, given), local=False, t_max=t_max)

    def connect(self, address: str, timeout: float = 5.0) -> "PostgresLink":
        connection = self.open(timeout)
        try:
            self._make_layout(connection)
            closed_for = self._enter(connection)
        except psycopg.Error as error:
            connection.close()
            raise StoreUnavailable(self.problem(error.sqlstate, error)) from error
        except BaseException:
            connection.close()
            raise
        return PostgresLink(self, connection, address, timeout, closed_for)

    def open(self, timeout: float) -> "psycopg.Connection[Any]":
        settings = _settings(self.given, timeout)
        try:
            return psycopg.connect(self.conninfo, **settings)
        except psycopg.OperationalError as error:
            if "unsupported startup parameter" not in str(error):
                raise StoreUnavailable(_connect_problem(self.url, error)) from error
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"{self.url} cannot be used: {one_line(error)}") from error
        return self._open_through_pooler(settings)

    def _open_through_pooler(self, settings: "dict[str, Any]") -> "psycopg.Connection[Any]":
        """PgBouncer refuses connections that bring settings of their own."""
        try:
            return psycopg.connect(self.conninfo, **{**settings, "options": self.given.get("options", "")})
        except psycopg.OperationalError as error:
            raise StoreUnavailable(_connect_problem(self.url, error)) from error

    @property
    def identifier(self) -> str:
        """The schema, quoted."""
        return '"' + self.schema.replace('"', '""') + '"'

    def problem(self, state: str | None, error: "object") -> str:
        """One line about an error of the server: what happened, where, and what to do."""
        advice = {
            "25006": "it is read-only, a standby perhaps: give the address of the primary",
            "42501": f"ask its owner to run: GRANT USAGE ON SCHEMA {self.identifier} TO you; "
            f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {self.identifier} TO you "
            f"(or, where the schema is not made yet, GRANT CREATE ON DATABASE)",
            "53100": "its disk is full: make room there",
            "55P03": "some transaction there has kept the row locked for too long: look for it in pg_stat_activity",
            "57014": "somebody there, or a statement_timeout, has cancelled it",
            "40001": "its transactions must be READ COMMITTED: set default_transaction_isolation back",
            "42P01": "its tables were removed: connect again to have them made",
            "42883": "its functions were removed: connect again to have them made",
        }
        line = f"{self.url} (schema {self.schema}) could not do it: {one_line(error)}"
        return f"{line}; {advice[state]}" if state in advice else line

    def _make_layout(self, connection: "psycopg.Connection[Any]") -> None:
        if self._layout(connection) == LAYOUT:
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [CREATION])
            if self._layout(connection) != LAYOUT:
                connection.execute(self._script())

    def _layout(self, connection: "psycopg.Connection[Any]") -> int:
        """What is there: 0 for nothing. A later one than ours is somebody else's to understand."""
        found = connection.execute("SELECT to_regclass(%s)", [f"{self.identifier}.store"]).fetchone()
        if found is None or found[0] is None:
            return 0
        row = connection.execute(f"SELECT layout FROM {self.identifier}.store").fetchone()
        layout = 0 if row is None else int(row[0])
        if layout > LAYOUT:
            raise StoreUnavailable(
                f"{self.url}: schema {self.schema} was made by a later Trinco (layout {layout}, not {LAYOUT}):"
                f" update Trinco here, or choose another schema=NAME for all who share its locks"
            )
        return layout

    def _script(self) -> str:
        literal = "'" + self.identifier.replace("'", "''") + "'"
        script = SCRIPT.read_text(encoding="utf-8").replace("{schema_text}", literal)
        script = script.replace("{layout}", str(LAYOUT)).replace("{sign_of_life}", str(SIGN_OF_LIFE))
        return script.replace("{schema}", self.identifier)

    def _enter(self, connection: "psycopg.Connection[Any]") -> float:
        """For how many seconds the store must stay out."""
        query: Any = f"SELECT {self.identifier}.entered(%s, %s)"
        row = connection.execute(query, [microseconds(self.t_max), self.fresh]).fetchone()
        assert row is not None
        return float(row[0]) / 1e6


def _settings(given: dict[str, str], timeout: float) -> "dict[str, Any]":
    """How to connect. What the URL says goes first.

    What may take long is the wait for a row, so that has a limit. Not the whole statement: a statement_timeout that
    strikes while a commit waits for its standbys would turn a grant that is not replicated into a yes.
    """
    milliseconds = ceil(timeout * 1000)
    options = f"-c lock_timeout={milliseconds} -c default_transaction_isolation=read\\ committed"
    settings = {
        "application_name": "trinco",
        "connect_timeout": max(2, ceil(timeout)),
        "keepalives_idle": 10,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "tcp_user_timeout": milliseconds,
        "target_session_attrs": "read-write",
    }
    ours = {name: value for name, value in settings.items() if name not in given}
    always = {"autocommit": True, "prepare_threshold": None, "client_encoding": "UTF8"}
    return {**ours, **always, "options": f"{options} {given.get('options', '')}".strip()}


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    query = [pair for pair in parts.query.split("&") if pair and not pair.startswith(("password=", "sslpassword="))]
    return urlunsplit(parts._replace(netloc=user.partition(":")[0] + at + hosts, query="&".join(query)))


def _domain(netloc: str, given: dict[str, str]) -> str:
    hosts = netloc.rpartition("@")[2] or given.get("host") or given.get("hostaddr") or "localhost"
    port = given.get("port", "5432")
    return ",".join(host if _has_port(host) else f"{host}:{port}" for host in hosts.split(","))


def _has_port(host: str) -> bool:
    return host.rpartition("]")[2].rpartition(":")[2].isdigit() and ":" in host.rpartition("]")[2]


def _connect_problem(url: str, error: Exception) -> str:
    line = one_line(error)
    advice = {
        "Connection refused": "is the server running there?",
        "password": "check the user and the password in the URL (or in ~/.pgpass)",
        "does not exist": "create it, or correct its name in the URL",
        "read-only": "give the address of the primary, not of a standby",
        "recovery": "give the address of the primary, not of a standby",
        "starting up": "try again in a moment",
        "too many": "raise max_connections there, or use fewer clients",
        "timeout": "is the address right, and does a firewall let us through?",
        "pg_hba.conf": "let this host in there",
    }
    hint = next((words for sign, words in advice.items() if sign in line), "check the URL")
    return f"{url} cannot be reached: {line}; {hint}"
