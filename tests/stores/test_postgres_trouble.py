"""The PostgreSQL store where things go wrong: servers that take nobody in, and schemas of which a part is missing."""

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import trinco
from tests.cli.running import Run
from tests.locks.services import eventually
from tests.stores.postgres_server import PostgresServer
from tests.stores.redis_fakes import Listener, Speaker
from trinco.core.errors import StoreForbidden, StoreUnavailable
from trinco.stores.postgres import PostgresStore
from trinco.stores.resp import CHUNK

HERE = "a" * 20
WITHOUT_TLS = "sslmode=disable&gssencmode=disable"


class Refusing(Listener):
    """Hears whoever wants to connect, and says no as a PostgreSQL server does."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__()
        fields = f"SFATAL\0VFATAL\0C{code}\0M{words}\0\0".encode()
        self._refusal = b"E" + struct.pack("!i", 4 + len(fields)) + fields

    @property
    def url(self) -> str:
        return f"postgresql://ana@127.0.0.1:{self.port}/locks?{WITHOUT_TLS}"

    def serve(self, connection: socket.socket) -> None:
        connection.recv(CHUNK)
        connection.sendall(self._refusal)
        connection.shutdown(socket.SHUT_WR)


def refusal(url: str) -> str:
    with pytest.raises(StoreUnavailable) as refused:
        PostgresStore(url).connect(HERE)
    assert type(refused.value) is StoreUnavailable
    assert "\n" not in str(refused.value)
    return str(refused.value)


def denial(url: str) -> str:
    with pytest.raises(StoreForbidden) as refused:
        PostgresStore(url).connect(HERE)
    return str(refused.value)


# Servers that take nobody in


@pytest.mark.parametrize(
    ("code", "words", "advice"),
    [
        ("57P03", "the database system is in recovery mode", "try again in a moment"),
        ("57P03", "the database system is starting up", "try again in a moment"),
        ("57P03", "the database system is not yet accepting connections", "try again in a moment"),
        ("57P03", "the database system is shutting down", "start it again"),
        ("53300", "sorry, too many clients already", "raise max_connections"),
        ("53300", "remaining connection slots are reserved for roles with the SUPERUSER attribute", "max_connections"),
        ("53300", 'too many connections for role "ana"', "ALTER ROLE"),
        ("53300", 'too many connections for database "locks"', "ALTER DATABASE"),
        ("55000", 'database "locks" is not currently accepting connections', "name another database"),
    ],
)
def test_a_server_that_takes_nobody_in_says_for_how_long_or_what_to_do(code: str, words: str, advice: str) -> None:
    with Refusing(code, words) as server:
        line = refusal(server.url)
    assert words in line
    assert advice in line.partition(words)[2]


@pytest.mark.parametrize("words", ['role "ana" is not permitted to log in', 'permission denied for database "locks"'])
def test_who_may_not_come_in_is_denied(words: str) -> None:
    with Refusing("28000", words) as server:
        assert words in denial(server.url)


def test_who_says_nothing_is_perhaps_no_postgresql_server(tmp_path: Path) -> None:
    with Speaker(b"") as silent:
        code, _, said = Run(("nightly", "--", "true"), f"postgresql://127.0.0.1:{silent.port}/x", tmp_path).end()
    assert code == 69
    assert "is it a PostgreSQL server" in said


def test_a_host_that_nobody_knows_is_corrected_in_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert "correct the host" in refusal("postgresql://nobody.invalid/locks")


def test_a_host_that_there_cannot_be_is_corrected_in_the_url() -> None:
    assert "correct the host" in refusal("postgresql://a..b/locks")


@pytest.fixture
def crowded_server(postgres_template: Path) -> Iterator[PostgresServer]:
    """For two ordinary roles at a time, one of which is there."""
    server = PostgresServer(postgres_template, "max_connections=5", "superuser_reserved_connections=3")
    try:
        with server.start().connect() as connection:
            connection.execute("CREATE ROLE ana LOGIN")
            connection.execute("GRANT CREATE ON DATABASE postgres TO ana")
            yield server
    finally:
        server.stop()


def test_run_on_a_server_without_a_free_connection_is_69(crowded_server: PostgresServer, tmp_path: Path) -> None:
    url = f"postgresql://ana@127.0.0.1:{crowded_server.port}/postgres"
    with crowded_server.connect():
        code, _, said = Run(("nightly", "--", "true"), url, tmp_path).end()
    assert code == 69
    assert "all its connections are in use" in said
    assert len(said.splitlines()) == 1


# Servers that somebody sets otherwise meanwhile


def test_grants_wait_for_the_disk_whatever_is_set_for_everybody_meanwhile(postgres_template: Path) -> None:
    server = PostgresServer(postgres_template)
    try:
        with server.start().connect() as admin:
            link = PostgresStore(f"{server.url}?fresh=1").connect(HERE)
            admin.execute("ALTER SYSTEM SET synchronous_commit = off")
            admin.execute("SELECT pg_reload_conf()")
            eventually(lambda: admin.execute("SHOW synchronous_commit").fetchone() == ("off",))
            late = PostgresStore(server.url).connect(HERE)
            for each in (link, late):
                assert each._pgconn.exec_(b"SHOW synchronous_commit").get_value(0, 0) == b"on"
                each.close()
    finally:
        server.stop()


# Schemas of which a part is missing


def test_a_schema_that_was_just_made_is_known_to_be_small(postgres_server: PostgresServer) -> None:
    """Else PostgreSQL goes through the index of a table of one page, until autovacuum comes by."""
    PostgresStore(f"{postgres_server.url}?fresh=1&schema=small").connect(HERE).close()
    with postgres_server.connect() as connection:
        query = "SELECT reltuples FROM pg_class WHERE oid = 'small.lease'::regclass"
        assert connection.execute(query).fetchone() == (0.0,)


@pytest.mark.parametrize("function", ["entered", "request", "release", "pass_on"])
def test_functions_that_vanish_are_made_anew(postgres_server: PostgresServer, function: str) -> None:
    url = f"{postgres_server.url}?fresh=1&schema=without_{function}"
    with trinco.connect(url) as locks:
        held, waiting = locks.lock("nightly"), locks.lock("nightly")
        assert held.acquire()
        with postgres_server.connect() as connection:
            connection.execute(f"DROP FUNCTION without_{function}.{function}")
        assert not waiting.acquire(timeout=2)
        held.release()
        assert waiting.acquire(timeout=10)
        with trinco.connect(url) as others:
            assert others.lock("weekly").try_acquire() is not None


def test_what_only_their_owner_may_make_the_owner_is_asked_for(postgres_server: PostgresServer) -> None:
    url = f"{postgres_server.url}?fresh=1&schema=of_others"
    PostgresStore(url).connect(HERE).close()
    guest = url.replace("trinco@", "guest@")
    with postgres_server.connect() as connection:
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA of_others TO guest")
        connection.execute("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA of_others TO guest")
        for change in ("UPDATE of_others.store SET layout = 2", "DROP FUNCTION of_others.request"):
            connection.execute(change)
            assert 'ask the role "trinco" to connect once with this version of Trinco' in denial(guest)
            PostgresStore(url).connect(HERE).close()
            PostgresStore(guest).connect(HERE).close()


def test_the_grant_that_is_missing_is_spelt_out(postgres_server: PostgresServer) -> None:
    with postgres_server.connect() as connection:
        connection.execute('CREATE ROLE "new-comer" LOGIN')
    url = f"postgresql://new-comer@127.0.0.1:{postgres_server.port}/postgres?schema=untold"
    assert 'GRANT CREATE ON DATABASE "postgres" TO "new-comer"' in denial(url)
    PostgresStore(f"{postgres_server.url}?fresh=1&schema=untold").connect(HERE).close()
    line = denial(url)
    assert 'GRANT USAGE ON SCHEMA "untold" TO "new-comer"' in line
    assert "LINE 1" not in line


def test_a_schema_may_be_called_like_a_parameter(postgres_server: PostgresServer) -> None:
    """How many parameters a statement has is not to be read off its text."""
    with trinco.connect(f"{postgres_server.url}?fresh=1&schema=costs%249") as locks:
        for _ in range(2):
            with locks.lock("nightly").hold(timeout=5) as lease:
                assert lease.valid
