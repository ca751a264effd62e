"""Who is measured: Trinco on every store, and what people use today.

A subject is data, so that it can be sent to another process; ``opened`` makes a lock of it. Peers that are not
installed are left out, and named.
"""

import fcntl
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import redis
import redis.asyncio

import trinco
from trinco.stores.postgres_calls import GIVES_BACK, TAKES, interval, queries
from yardstick import CROSS, FREE, SAME

NAME = "bench"
PINNED = (SAME, CROSS)
"""Where nobody is pinned, the system may put a PING on one core and the subject beside it on two, or the other way."""
SIDE_BY_SIDE = (CROSS, FREE)
"""Several servers are to work at the same time: where all of them share a core, none does."""
PATIENCE_S = 20.0
"""Nobody waits for longer: a bench that hangs must say so."""


@dataclass(frozen=True)
class Subject:
    """``kind``: how it is opened. ``store``: its name for ``--only``; ``peer`` for what is not ours. ``call``: the way
    in, ``try_acquire`` or ``hold``. ``target``: the largest ratio to PING that is good enough. ``judged_in``: the modes
    in which it means something."""

    what: str
    store: str
    kind: str
    urls: tuple[str, ...]
    call: str = ""
    target: float | None = None
    judged_in: Sequence[str] = (SAME, CROSS, FREE)

    @property
    def is_async(self) -> bool:
        return self.kind.endswith("-aio")

    @property
    def is_peer(self) -> bool:
        return not self.kind.startswith("trinco")

    def target_in(self, mode: str) -> float | None:
        return self.target if mode in self.judged_in else None


def told(content: dict[str, Any]) -> Subject:
    """A subject that came from another process, as JSON."""
    return Subject(**{**content, "urls": tuple(content["urls"])})


@dataclass
class Opened:
    """``once``: acquire and release; awaitable where the subject is async."""

    once: Callable[[], Any]
    acquire: Callable[[], Any]
    release: Callable[[], Any]
    close: Callable[[], Any]


def opened(subject: Subject) -> Opened:
    return OPENERS[subject.kind](subject)


# Ours


def service(urls: tuple[str, ...]) -> "trinco.LockService":
    if len(urls) == 1:
        return trinco.connect(urls[0])
    return trinco.connect("quorum:", stores=list(urls), f=(len(urls) - 1) // 3)


def _trinco(subject: Subject) -> Opened:
    locks = service(subject.urls)
    lock = locks.lock(NAME)

    def try_acquire() -> None:
        lease = lock.try_acquire()
        assert lease is not None, "somebody else holds it"
        lease.release()

    def hold() -> None:
        with lock.hold():
            pass

    once = hold if subject.call == "hold" else try_acquire
    return Opened(once, lambda: lock.acquire(timeout=PATIENCE_S), lock.release, locks.close)


def _trinco_aio(subject: Subject) -> Opened:
    locks = service(subject.urls)
    lock = locks.aio.lock(NAME)

    async def try_acquire() -> None:
        lease = await lock.try_acquire()
        assert lease is not None, "somebody else holds it"
        await lease.release()

    async def hold() -> None:
        async with lock.hold():
            pass

    once = hold if subject.call == "hold" else try_acquire
    return Opened(once, lock.acquire, lock.release, locks.aio.close)


# Peers


def _in_turn(acquire: Callable[[], Any], release: Callable[[], Any], close: Callable[[], Any]) -> Opened:
    def once() -> None:
        acquire()
        release()

    return Opened(once, acquire, release, close)


def _redis_py(subject: Subject) -> Opened:
    client = redis.Redis.from_url(_plain(subject))
    lock = client.lock("redis-py", timeout=30)
    return _in_turn(lock.acquire, lock.release, client.close)


def _redis_py_aio(subject: Subject) -> Opened:
    client = redis.asyncio.Redis.from_url(_plain(subject))
    lock = client.lock("redis-py-aio", timeout=30)

    async def once() -> None:
        await lock.acquire()
        await lock.release()

    close: Callable[[], Awaitable[None]] = client.aclose
    return Opened(once, lock.acquire, lock.release, close)


def _advisory(subject: Subject) -> Opened:
    connection = psycopg.connect(_plain(subject), autocommit=True)
    cursor = connection.cursor()
    return _in_turn(
        lambda: cursor.execute("SELECT pg_advisory_lock(%s)", (7,)),
        lambda: cursor.execute("SELECT pg_advisory_unlock(%s)", (7,)),
        connection.close,
    )


def _statements(subject: Subject) -> Opened:
    """The least that our lock can cost: its two statements, one after the other, and nothing around them."""
    with trinco.connect(subject.urls[0]) as locks, locks.lock(NAME).hold():
        pass  # the table and the row are there
    connection = psycopg.connect(_plain(subject), autocommit=True)
    pgconn, texts = connection.pgconn, queries("trinco")
    claim: list[Any] = [NAME.encode(), b"bench", bytes(8)]
    grant = [*claim, interval(30.0), b"0 0 0 "]
    for name, text in ((b"take", texts[TAKES[None]]), (b"give", texts[GIVES_BACK])):
        pgconn.prepare(name, text)

    def run(name: bytes, parameters: list[Any]) -> None:
        result = pgconn.exec_prepared(name, parameters, [1] * len(parameters), 1)
        assert result.command_tuples == 1, result.error_message

    return _in_turn(lambda: run(b"take", grant), lambda: run(b"give", claim), connection.close)


def _statements_beside(subject: Subject) -> Opened:
    """The same, and a whole lock in memory beside them: what client and server on one core cost each other."""
    bare, memory = _statements(subject), service(("memory:beside",))
    lock = memory.lock(NAME)

    def release() -> None:
        bare.release()
        lock.release()

    return _in_turn(lambda: (bare.acquire(), lock.acquire()), release, lambda: (bare.close(), memory.close()))


def _flock(subject: Subject) -> Opened:
    file = os.open(subject.urls[0], os.O_RDWR | os.O_CREAT, 0o600)
    return _in_turn(
        lambda: fcntl.flock(file, fcntl.LOCK_EX), lambda: fcntl.flock(file, fcntl.LOCK_UN), lambda: os.close(file)
    )


def _filelock(subject: Subject) -> Opened:
    from filelock import FileLock

    lock = FileLock(subject.urls[0])
    return _in_turn(lock.acquire, lock.release, lambda: None)


def _redis_lock(subject: Subject) -> Opened:
    import redis_lock  # type: ignore[import-untyped]

    client = redis.Redis.from_url(_plain(subject))
    lock = redis_lock.Lock(client, "python-redis-lock", expire=30)
    return _in_turn(lock.acquire, lock.release, client.close)


def _pottery(subject: Subject) -> Opened:
    from pottery import Redlock

    clients = {redis.Redis.from_url(url.partition("?")[0]) for url in subject.urls}
    lock = Redlock(key="pottery", masters=clients, auto_release_time=30)

    def close() -> None:
        for client in clients:
            client.close()

    return _in_turn(lock.acquire, lock.release, close)


def _plain(subject: Subject) -> str:
    """The URL without what only we understand."""
    return subject.urls[0].partition("?")[0]


OPENERS: dict[str, Callable[[Subject], Opened]] = {
    "trinco": _trinco,
    "trinco-aio": _trinco_aio,
    "redis-py": _redis_py,
    "redis-py-aio": _redis_py_aio,
    "advisory": _advisory,
    "statements": _statements,
    "statements-beside": _statements_beside,
    "flock": _flock,
    "filelock": _filelock,
    "redis_lock": _redis_lock,
    "pottery": _pottery,
}


# All of them


class Places:
    """Where the subjects lock: the servers' URLs, and files in a folder of this run."""

    def __init__(self, redis_urls: list[str], postgres: str, folder: str) -> None:
        self.redis = (redis_urls[0],)
        self.quorum = tuple(redis_urls)
        self.postgres = (postgres,)
        self.sqlite = (f"sqlite:///{folder}/locks.db",)
        self.sqlite_quorum = tuple(f"sqlite:///{folder}/locks-{each}.db" for each in range(4))
        self.memory = ("memory:bench",)
        self.folder = folder


def uncontended(places: Places) -> list[Subject]:
    ours = [
        ("Redis", "redis", "trinco", places.redis, 3.0),
        ("Redis, async", "redis", "trinco-aio", places.redis, 4.0),
        ("PostgreSQL, fsync off", "postgres", "trinco", places.postgres, 3.5),
        ("quorum of 4 Redis", "quorum-redis", "trinco", places.quorum, 8.0),
        ("quorum of 4 Redis, async", "quorum-redis", "trinco-aio", places.quorum, 8.0),
        ("SQLite", "sqlite", "trinco", places.sqlite, 1.5),
        ("quorum of 4 SQLite", "quorum-sqlite", "trinco", places.sqlite_quorum, 5.0),
        ("memory", "memory", "trinco", places.memory, None),
    ]
    subjects = [
        Subject(f"{what}, {call}", store, kind, urls, call, target, SIDE_BY_SIDE if store == "quorum-redis" else PINNED)
        for what, store, kind, urls, target in ours
        for call in ("try_acquire", "hold")
    ]
    return [*subjects, *peers(places)]


def peers(places: Places) -> list[Subject]:
    return [
        Subject("redis-py Lock", "peers", "redis-py", places.redis),
        Subject("redis-py asyncio Lock", "peers", "redis-py-aio", places.redis),
        Subject("python-redis-lock", "peers", "redis_lock", places.redis),
        Subject("pottery Redlock, 3 Redis", "peers", "pottery", places.quorum[:3]),
        Subject("pg_advisory_lock", "peers", "advisory", places.postgres),
        Subject("our two statements to PostgreSQL, bare", "peers", "statements", places.postgres),
        Subject("the same, a lock in memory beside them", "peers", "statements-beside", places.postgres),
        Subject("filelock", "peers", "filelock", (f"{places.folder}/filelock",)),
        Subject("fcntl.flock", "peers", "flock", (f"{places.folder}/flock",)),
    ]


def wakers(places: Places) -> list[Subject]:
    """``pg_advisory_lock`` stands first: PostgreSQL's target is a ratio to it."""
    return [
        Subject("pg_advisory_lock", "postgres", "advisory", places.postgres),
        Subject("PostgreSQL, fsync off", "postgres", "trinco", places.postgres),
        Subject("Redis", "redis", "trinco", places.redis, target=12.0),
        Subject("quorum of 4 Redis", "quorum-redis", "trinco", places.quorum, target=25.0),
        Subject("SQLite", "sqlite", "trinco", places.sqlite, target=60.0),
        Subject("python-redis-lock", "peers", "redis_lock", places.redis),
        Subject("fcntl.flock", "peers", "flock", (f"{places.folder}/flock",)),
    ]


def contenders(places: Places) -> list[Subject]:
    return [
        Subject("memory, threads", "memory", "trinco", places.memory),
        Subject("SQLite", "sqlite", "trinco", places.sqlite),
        Subject("Redis", "redis", "trinco", places.redis),
        Subject("quorum of 4 Redis", "quorum-redis", "trinco", places.quorum),
        Subject("PostgreSQL, fsync off", "postgres", "trinco", places.postgres),
    ]
