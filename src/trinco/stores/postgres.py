"""PostgreSQL: one row per lock, and beside it the twin of ``Item.apply`` (``postgres.sql``).

This file knows how to connect: what the URL says, how the tables and functions are made, and whether the server may
have forgotten leases. A server that runs with ``fsync=off`` may come back without its newest ones: then it stays out
until they are over. ``postgres_link.py`` carries accesses out.
"""

import re
from functools import cache
from math import ceil
from pkgutil import get_data
from urllib.parse import unquote

from trinco.core.duration import seconds
from trinco.core.errors import ConfigError, StoreForbidden, StoreUnavailable, UsageError
from trinco.leases.terms import T_MAX
from trinco.stores.store import Store

try:
    import psycopg
except ImportError as missing:
    raise ConfigError("postgresql:// needs the package psycopg: pip install 'trinco[postgres]'") from missing

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo, PGconn

from trinco.stores import descriptors
from trinco.stores.postgres_asking import Asking
from trinco.stores.postgres_calls import NOT_ALLOWED, SIGN_OF_LIFE, microseconds, one_line
from trinco.stores.postgres_link import PostgresLink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LAYOUT = 4
"""Rises when ``postgres.sql`` changes; a store of an earlier layout is brought up to date by the first who connects."""
MOST_WAITERS = 256
"""In the row of a lock, which is read and written whole at every poll: with a thousand of them the server would do
little else. Those beyond poll until there is room."""
SCRIPT = (get_data("trinco.stores", "postgres.sql") or b"").decode()
CREATION = int.from_bytes(b"trinco")
"""The advisory lock behind which tables and functions are made."""

FORM = re.compile(r"postgres(ql)?://((?P<user>[^:@/?]*)(:[^@/?]*)?@)?(?P<place>[^@?]*)(\?(?P<query>[^@]*))?")
"""As libpq reads a URL, less what can be read in two ways: a second ``@``, or one behind a ``/`` or ``?``, may
belong to a password, and then nobody knows which part of the text is secret."""
OURS = frozenset({"fresh", "schema", "t_max"})
SECRETS = frozenset({"oauth_client_secret", "password", "scram_client_key", "scram_server_key", "sslpassword"})
WHOLE_NUMBERS = (
    "connect_timeout",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "tcp_user_timeout",
)
"""What libpq looks at only when it is connected."""
DENIALS = (
    "authentication failed",
    "no password supplied",
    "pg_hba.conf",
    "permission denied",
    "Permission denied",
    "not permitted to log in",
)
"""A refused login brings words, and no code."""
NO_CONNECTION = (psycopg.OperationalError, OSError, UnicodeError)
"""Of libpq, of whoever waits for it, and of a host's name that cannot be one."""
CONNECT_SHARE = 0.8
"""Of the time to connect: then there is time left to say that nobody answered."""
NO_ADDRESS = "no-address"
UNREADABLE = (
    "a PostgreSQL URL is postgresql://user:password@host:port/database?option=value; this one cannot be read:"
    " in a user, a password or an option write a space as %20, and the characters %/?#@:&= as"
    " %25 %2F %3F %23 %40 %3A %26 %3D"
)


class PostgresStore(Store):
    """``postgresql://user:password@host:port/database``, with libpq's options and ours: ``t_max``, ``fresh=1`` (this
    server has never held a lock) and ``schema``."""

    __slots__ = ("conninfo", "fresh", "given", "schema")

    def __init__(self, url: str) -> None:
        if not url.startswith(("postgresql://", "postgres://")):
            raise ConfigError("a PostgreSQL URL begins with postgresql://, as in postgresql://user@host/database")
        form = FORM.fullmatch(url)
        if form is None or not url.isprintable():
            raise ConfigError(UNREADABLE)
        where = _where(form)
        pairs = [(unquote(pair.partition("=")[0]), pair) for pair in (form["query"] or "").split("&") if pair]
        ours = {name: unquote(pair.partition("=")[2]) for name, pair in pairs if name in OURS}
        t_max, fresh, self.schema = _duration(ours), ours.get("fresh", "0"), ours.get("schema", "trinco")
        if not t_max > 0 or fresh not in ("0", "1") or not 0 < len(self.schema.encode()) < 64:
            raise ConfigError(f"{where}: t_max is a duration like 60s, fresh is 0 or 1, schema is a name")
        self.fresh = fresh == "1"
        self.conninfo = _with_query(url[: form.end("place")], [pair for name, pair in pairs if name not in OURS])
        self.given = _understood(self.conninfo, where, [name for name, _ in pairs])
        shown = _with_query(where, [pair for name, pair in pairs if name not in SECRETS])
        super().__init__(shown, "handing-over", _domain(self.given), local=False, t_max=t_max)
        _judge(self.given, shown)

    def connect(self, address: str, timeout: float = 5.0) -> "PostgresLink":
        connection = self.open(timeout)
        try:
            asking = Asking(self.url, connection, timeout)
            try:
                self._make_layout(asking)
            except psycopg.errors.DeadlockDetected:  # with somebody who uses what is brought up to date
                self._make_layout(asking)
            closed_for, is_durable = self._enter(asking)
        except psycopg.errors.InsufficientPrivilege as error:
            connection.close()
            raise StoreForbidden(self.problem(NOT_ALLOWED, error)) from error
        except psycopg.Error as error:
            connection.close()
            raise StoreUnavailable(self.problem(error.sqlstate, error)) from error
        except BaseException:
            connection.close()
            raise
        return PostgresLink(self, connection, address, timeout, closed_for, is_durable)

    def open(self, timeout: float) -> "psycopg.Connection[Any]":
        settings = _settings(self.given, timeout)
        try:
            return psycopg.connect(self.conninfo, **settings)
        except NO_CONNECTION as error:
            if "unsupported startup parameter" not in str(error):
                raise _connect_problem(self.url, error) from error
        return self._open_through_pooler(settings)

    def _open_through_pooler(self, settings: "dict[str, Any]") -> "psycopg.Connection[Any]":
        """PgBouncer refuses connections that bring settings of their own."""
        try:
            return psycopg.connect(self.conninfo, **{**settings, "options": self.given.get("options", "")})
        except NO_CONNECTION as error:
            raise _connect_problem(self.url, error) from error

    @property
    def identifier(self) -> str:
        """The schema, quoted."""
        return _quoted(self.schema)

    @property
    def _role(self) -> str:
        return _quoted(self.given["user"]) if "user" in self.given else "you"

    def problem(self, state: str | None, error: "object") -> str:
        """One line about an error of the server: what happened, where, and what to do."""
        advice = {
            "25006": "it is read-only, a standby perhaps: give the address of the primary",
            NOT_ALLOWED: f"ask its owner to run: GRANT USAGE ON SCHEMA {self.identifier} TO {self._role}; "
            f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {self.identifier} TO {self._role}",
            "53100": "its disk is full: make room there",
            "55P03": "some transaction there has kept the row locked for too long: look for it in pg_stat_activity",
            "57014": "somebody there, or a statement_timeout, has cancelled it",
            "40001": "its transactions must be READ COMMITTED: set default_transaction_isolation back",
            "42P01": "its tables were removed: connect again to have them made",
            "42883": "its functions were removed: connect again to have them made",
        }
        line = f"{self.url} (schema {self.schema}) could not do it: {one_line(error)}"
        return f"{line}; {advice[state]}" if state in advice else line

    def _make_layout(self, asking: Asking) -> None:
        if self._layout(asking) == LAYOUT:
            return
        try:
            with asking.transaction():
                asking.rows(f"SELECT pg_advisory_xact_lock({CREATION})")
                if self._layout(asking) != LAYOUT:
                    asking.rows(self._script())
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreForbidden(self._not_ours_to_make(asking, error)) from error

    def _not_ours_to_make(self, asking: Asking, error: Exception) -> str:
        """Only their owner may change tables and functions."""
        query = (
            "SELECT pg_get_userbyid(relowner) FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS place"
            " ON place.oid = relnamespace WHERE nspname = $1 AND relname = 'lease'"
        )
        owner = next(iter(asking.rows(query, self.schema.encode())), None)
        line = f"{self.url} (schema {self.schema}) could not do it: {one_line(error)}"
        if owner is None:
            database = _quoted(asking.database)
            return (
                f"{line}; its tables are not made yet: ask the owner of the database to run GRANT CREATE ON DATABASE "
                f"{database} TO {self._role} (where the schema is there: GRANT USAGE, CREATE ON SCHEMA "
                f"{self.identifier}), or to connect once"
            )
        return (
            f"{line}; its tables or functions are of an earlier Trinco, or some were removed, and only their owner may"
            f" make them: ask the role {_quoted(asking.text(owner))} to connect once with this version of Trinco"
            f" (trinco list -u URL)"
        )

    def _layout(self, asking: Asking) -> int:
        """What is there: 0 for nothing, or not all. A later one than ours is somebody else's to understand. Tables and
        functions are looked for in the catalogue: a connection that has waited for others to make them may have it by
        heart that there are none."""
        query = (
            "SELECT (SELECT count(*) FROM pg_catalog.pg_class"
            " WHERE relnamespace = place.oid AND relname IN ('store', 'lease')),"
            " (SELECT count(DISTINCT proname) FROM pg_catalog.pg_proc"
            " WHERE pronamespace = place.oid AND proname = ANY(string_to_array($1, ' ')))"
            " FROM pg_catalog.pg_namespace AS place WHERE nspname = $2"
        )
        functions = _functions()
        tables, known = asking.numbers(2, query, " ".join(functions).encode(), self.schema.encode()) or (0, 0)
        if tables < 2:
            return 0
        (layout,) = asking.numbers(1, f"SELECT layout FROM {self.identifier}.store") or (0,)
        if layout > LAYOUT:
            raise StoreUnavailable(
                f"{self.url}: schema {self.schema} was made by a later Trinco (layout {layout}, not {LAYOUT}):"
                f" update Trinco here, or choose another schema=NAME for all who share its locks"
            )
        return layout if known == len(functions) else 0

    def _script(self) -> str:
        literal = "'" + self.identifier.replace("'", "''") + "'"
        script = SCRIPT.replace("{schema_text}", literal)
        for number, value in (("layout", LAYOUT), ("sign_of_life", SIGN_OF_LIFE), ("most_waiters", MOST_WAITERS)):
            script = script.replace(f"{{{number}}}", str(value))
        return script.replace("{schema}", self.identifier)

    def _enter(self, asking: Asking) -> tuple[float, bool]:
        """For how many seconds the store must stay out, and whether this session waits for the disk at every commit
        from now on, whatever somebody sets for all sessions meanwhile. A session that a pooler has lent us for the
        moment is not ours to set."""
        query = (
            f"SELECT {self.identifier}.entered({microseconds(self.t_max)}, {self.fresh}),"
            f" CASE WHEN current_setting('{OUR_SESSION}', true) = 'yes' THEN set_config('synchronous_commit',"
            f" replace(current_setting('synchronous_commit'), 'off', 'on'), false) <> 'off' ELSE false END::integer"
        )
        said = asking.numbers(2, query)
        if said is None:
            raise asking.nonsense()
        return said[0] / 1e6, said[1] == 1


@cache
def _functions() -> frozenset[str]:
    """The names of those that the script makes."""
    return frozenset(re.findall(r"CREATE OR REPLACE FUNCTION \{schema\}\.(\w+)", SCRIPT))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _settings(given: dict[str, str], timeout: float) -> "dict[str, Any]":
    """How to connect. What the URL says goes first.

    What may take long is the wait for a row, so that has a limit. Not the whole statement: a statement_timeout that
    strikes while a commit waits for its standbys would turn a grant that is not replicated into a yes.
    """
    milliseconds = ceil(timeout * 1000)
    options = f"-c lock_timeout={milliseconds} -c default_transaction_isolation=read\\ committed -c {OUR_SESSION}=yes"
    settings = {
        "application_name": "trinco",
        "connect_timeout": max(2, int(timeout * CONNECT_SHARE)),
        "keepalives_idle": 10,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "tcp_user_timeout": milliseconds,
        "target_session_attrs": "read-write",
    }
    ours = {name: value for name, value in settings.items() if name not in given}
    always = {"autocommit": True, "prepare_threshold": None, "client_encoding": "UTF8"}
    return {**ours, **always, "options": f"{options} {given.get('options', '')}".strip()}


def _where(form: "re.Match[str]") -> str:
    """Neither a password nor options."""
    user = "" if form["user"] is None else form["user"] + "@"
    return f"{form[0].partition('://')[0]}://{user}{form['place']}"


def _with_query(where: str, pairs: list[str]) -> str:
    return "?".join(filter(None, (where, "&".join(pairs))))


def _duration(ours: dict[str, str]) -> float:
    """``t_max``; zero if it is no duration. (What ``seconds`` says about it quotes the URL.)"""
    try:
        return seconds(ours.get("t_max", str(T_MAX)))
    except UsageError:
        return 0.0


def _understood(conninfo: str, where: str, names: list[str]) -> dict[str, str]:
    """What libpq takes from a URL. Its own complaints may quote a password, so they are not passed on."""
    try:
        return {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    except (psycopg.ProgrammingError, UnicodeDecodeError):
        raise ConfigError(_unknown_option(where, names) or UNREADABLE) from None


def _unknown_option(where: str, names: list[str]) -> str | None:
    from trinco.core.nearest import nearest

    known = OURS | {option.keyword.decode() for option in Conninfo.parse(b"")}
    before, name = next((pair for pair in zip(["", *names], names, strict=False) if pair[1] not in known), ("", ""))
    if not name or before in SECRETS:  # the rest, perhaps, of a password with an & in it
        return None
    close = nearest(name, known)
    meant = f"; did you mean {close}?" if close else ""
    return f"{where}: there is no option {name!r}{meant} (there are {', '.join(sorted(OURS))} and those of libpq)"


def _judge(given: dict[str, str], shown: str) -> None:
    """Refuse values that no connection can be made with.

    libpq looks at most of them just before it connects, so it gets an address that it cannot parse: it says what it
    thinks of the options, and no name is looked up and no socket opened. The password stays here, and one that is given
    keeps libpq from looking for it in ~/.pgpass.
    """
    for name in WHOLE_NUMBERS:
        if not re.fullmatch("-?[0-9]+", given.get(name, "0")):
            raise ConfigError(f"{shown}: {name} is a whole number, not {given[name]!r}")
    harmless = {name: value for name, value in given.items() if name not in SECRETS}
    nowhere = {"hostaddr": ",".join(NO_ADDRESS for _ in _hosts(given)), "password": "none"}
    conninfo = make_conninfo(**{"host": "", "port": "", **harmless, **nowhere})
    connection = PGconn.connect_start(conninfo.encode())
    complaints = connection.error_message.decode(errors="replace").splitlines()
    connection.finish()
    for complaint in complaints:
        if NO_ADDRESS not in complaint:
            raise ConfigError(f"{shown} cannot be used: {complaint}; correct that option")


def _hosts(given: dict[str, str]) -> list[str]:
    return [host or "localhost" for host in (given.get("host") or given.get("hostaddr") or "").split(",")]


def _domain(given: dict[str, str]) -> str:
    hosts, ports = _hosts(given), given.get("port", "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    named = ((f"[{host}]" if ":" in host else host, port or "5432") for host, port in zip(hosts, ports, strict=False))
    return ",".join(f"{host}:{port}" for host, port in named)


ALL_TAKEN = "all its connections are in use: end some, or raise max_connections there"
NOT_YET = "try again in a moment"
PRIMARY = "give the address of the primary, not of a standby"
OUR_SESSION = "trinco.session"
"""A setting that only a session has that was opened for us: a pooler does not pass it on."""
CONNECT_ADVICE = {
    "Connection refused": "is the server running there?",
    "pg_hba.conf": "let this host in there",
    "not permitted to log in": "give that role LOGIN there, or name another in the URL",
    "permission denied for database": "let somebody run GRANT CONNECT ON DATABASE there",
    "password": "check the user and the password in the URL (or in ~/.pgpass)",
    "does not exist": "create it, or correct its name in the URL",
    "resolve host": "correct the host in the URL",
    "'idna'": "correct the host in the URL",
    "read-only": PRIMARY,
    "hot standby": PRIMARY,
    "Hot standby": PRIMARY,
    "recovery mode": f"it has crashed and is about to come back: {NOT_YET}",
    "starting up": NOT_YET,
    "not yet accepting": NOT_YET,
    "shutting down": "somebody is stopping it: start it again there",
    "not currently accepting": "it is closed (ALLOW_CONNECTIONS): name another database in the URL",
    "connection slots": ALL_TAKEN,
    "too many clients": ALL_TAKEN,
    "too many connections for role": "raise that limit there (ALTER ROLE ... CONNECTION LIMIT), or use fewer clients",
    "too many connections for database": "raise that limit there (ALTER DATABASE ... CONNECTION LIMIT)",
    "timeout": "is the address right, is it a PostgreSQL server, and does a firewall let us through?",
    "invalid response": "is it a PostgreSQL server?",
}
"""By what libpq or the server says, the first that fits."""
DESCRIPTORS = 2
"""For a socket, and for whoever waits until it is connected."""


def _connect_problem(url: str, error: Exception) -> StoreUnavailable:
    line = one_line(error)
    hint = next((words for sign, words in CONNECT_ADVICE.items() if sign in line), "check the URL")
    if descriptors.are_used_up(DESCRIPTORS):
        hint = descriptors.ADVICE
    kind = StoreForbidden if any(sign in line for sign in DENIALS) else StoreUnavailable
    return kind(f"{url} cannot be reached: {line}; {hint}")
