"""Cancelling at every await: a task is stopped at its first suspension, then at its second, and so on until it ends
before that. After each, nobody may hold, nobody may wait, and everything must still work.

    points = await sweep(connect, WaitForTheLock(), by_scope)

A *scene* is one operation on a fresh lock, with what comes before it and what others do meanwhile. ``by_scope`` cancels
as anyio and trio do; ``by_task`` as ``asyncio.timeout`` and ``asyncio.TaskGroup`` do, past every shield;
``by_task_twice`` does so again while the first cancellation is being handled.
"""

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest

from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer
from trinco.core.errors import StoreUnavailable
from trinco.locks.aio.lease import AsyncLease
from trinco.locks.aio.lock import AsyncLock
from trinco.locks.aio.service import AsyncLockService
from trinco.locks.hub import Hub
from trinco.locks.service import LockService, connect
from trinco.stores.memory import MemoryStore

BACKENDS = ("asyncio", "trio")
STORES = ("memory", "sqlite", "sqlite-quorum", "redis", "redis-quorum", "postgres")
TTL = 30.0
SOON = 1.0
"""Seconds: far less than a ttl, or than the 5 s after which an access is given up."""
LIMIT = 10.0
MOST_POINTS = 60

Connect = Callable[[], LockService]
_numbers = count(1)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server on this host may answer before we can even wait, and then there is nothing to cancel. Here an answer is
    never looked for before the first wait, as if it came from far away."""

    monkeypatch.setattr(Hub, "take_in", Hub.pump)


def fresh_name() -> str:
    return f"aio/{next(_numbers)}/{os.urandom(4).hex()}"


def run(backend: str, main: Callable[[], Awaitable[None]], limit: float = 40.0) -> None:
    """Run a test's body on a backend, and fail instead of hanging."""

    async def limited() -> None:
        with anyio.fail_after(limit):
            await main()

    anyio.run(limited, backend=backend)


@contextmanager
def raising(error: type[Exception]) -> Iterator["pytest.ExceptionInfo[Exception]"]:
    """As ``pytest.raises``, for a whole ``async with`` block: how that ends is what is tested."""
    with pytest.raises(error) as caught:
        yield caught


async def eventually(holds: Callable[[], bool] | Callable[[], Awaitable[bool]], what: str, limit: float = SOON) -> None:
    end = monotonic() + limit
    while True:
        result = holds()
        if result if isinstance(result, bool) else await result:
            return
        assert monotonic() < end, f"not within {limit:g} s: {what}"
        await anyio.sleep(0.005)


async def is_waiting(service: AsyncLockService, name: str) -> bool:
    return bool((await service.inspect(name)).waiters)


async def is_free(service: AsyncLockService, name: str) -> bool:
    info = await service.inspect(name)
    return not info.held and not info.waiters


async def is_in_touch(service: AsyncLockService) -> bool:
    await service.inspect("first contact")
    hub = service.desk.hub
    return hub.connected() == len(hub.stores)


async def take(service: AsyncLockService, name: str, **options: Any) -> AsyncLease:
    """The lease on a lock that is free. The look goes first: it waits for the links to be up."""
    await service.inspect(name)
    lease = await service.lock(name, **options).try_acquire()
    assert lease is not None, f"the lock '{name}' should be free"
    return lease


# Stores


@pytest.fixture(scope="module")
def four_redis() -> Iterator[list[RedisServer]]:
    servers = [RedisServer().start() for _ in range(4)]
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture
def connecting(request: pytest.FixtureRequest, tmp_path: Path) -> Connect:
    """Makes clients of the store that the test is parametrised with; each call is another client."""
    return _connecting(request.param, request, tmp_path)


def _connecting(store: str, request: pytest.FixtureRequest, folder: Path) -> Connect:
    if store == "memory":
        shared = MemoryStore("aio")
        return lambda: LockService([shared])
    if store == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        return partial(connect, f"{server.url}?fresh=1")
    if store.startswith("redis"):
        urls = [server.url for server in request.getfixturevalue("four_redis")]
    else:
        urls = [f"sqlite:///{folder}/{number}.db" for number in range(4)]
    return partial(connect, urls[0]) if "quorum" not in store else partial(quorum, urls)


def quorum(urls: list[str]) -> LockService:
    return connect({"stores": urls, "f": 1, "auth": "none"})


# Leaks


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def has_no_more_descriptors_than(before: int) -> bool:
    if descriptors() > before:
        gc.collect()
    return descriptors() <= before


def tasks() -> int:
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return int(trio.lowlevel.current_statistics().tasks_living)
    return len(asyncio.all_tasks())


@asynccontextmanager
async def clients(connecting: Connect, how_many: int = 2) -> AsyncIterator[list[AsyncLockService]]:
    """Other clients, in touch with their stores and closed at the end; whatever they leave behind fails the test."""
    before = tasks(), descriptors()
    services = [connecting() for _ in range(how_many)]
    try:
        for service in services:
            await eventually(partial(is_in_touch, service.aio), "every store is connected", LIMIT)
        yield [service.aio for service in services]
    finally:
        with anyio.CancelScope(shield=True):
            for service in services:
                await service.aio.close()
                service.close()
    await eventually(lambda: tasks() <= before[0], "the tasks that the services started have ended", 2.0)
    await eventually(
        lambda: has_no_more_descriptors_than(before[1]), "the files that the services opened are closed", 2.0
    )


# Interrupting


class Interrupted:
    """Awaits an operation, and interrupts it whenever it is suspended for the n-th time, for each n in ``points``."""

    def __init__(self, operation: Coroutine[Any, Any, None], points: set[int], interrupt: Callable[[], object]) -> None:
        self._operation = operation
        self._points = points
        self._interrupt = interrupt
        self.suspensions = 0

    def __await__(self) -> Generator[Any, Any, None]:
        step: Callable[[], Any] = partial(self._operation.send, None)
        while True:
            try:
                suspended = step()
            except StopIteration:
                return
            self.suspensions += 1
            if self.suspensions in self._points:
                self._interrupt()
            try:
                answer = yield suspended
            except BaseException as error:
                step = partial(self._operation.throw, error)
            else:
                step = partial(self._operation.send, answer)


Cancel = Callable[[Coroutine[Any, Any, None], int], Coroutine[Any, Any, bool]]
"""Runs an operation and cancels it at a point; whether it got that far."""


async def by_scope(operation: Coroutine[Any, Any, None], point: int) -> bool:
    with anyio.CancelScope() as scope:
        interrupted = Interrupted(operation, {point}, scope.cancel)
        await interrupted
    return interrupted.suspensions >= point


async def by_task(operation: Coroutine[Any, Any, None], point: int) -> bool:
    return await _by_task(operation, {point})


async def by_task_twice(operation: Coroutine[Any, Any, None], point: int) -> bool:
    return await _by_task(operation, {point, point + 1})


async def _by_task(operation: Coroutine[Any, Any, None], points: set[int]) -> bool:
    def interrupt() -> None:
        task.cancel()

    interrupted = Interrupted(operation, points, interrupt)

    async def work() -> None:
        await interrupted

    task = asyncio.create_task(work())
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return interrupted.suspensions >= min(points)


# Scenes


class Scene:
    """One operation of ``ours`` on a lock that ``theirs`` may use, too."""

    def __init__(self) -> None:
        self.name = fresh_name()

    async def prepare(self, ours: AsyncLockService, theirs: AsyncLockService) -> None:
        self.ours, self.theirs = ours, theirs
        self.lock: AsyncLock = ours.lock(self.name, ttl=TTL)
        self.lease: AsyncLease | None = None
        self.their_lease: AsyncLease | None = None

    async def operate(self) -> None:
        raise NotImplementedError

    async def meanwhile(self) -> None:
        """What others do while it goes on."""

    async def clear_up(self) -> None:
        """Give back what is rightly held; what is left after that is lost."""
        for lease in (self.lease, self.lock.lease, self.their_lease):
            if lease is not None:
                await lease.release()


class Acquire(Scene):
    async def operate(self) -> None:
        await self.lock.acquire()


class TryAcquire(Scene):
    async def operate(self) -> None:
        self.lease = await self.lock.try_acquire()


class Hold(Scene):
    async def operate(self) -> None:
        async with self.lock.hold():
            await anyio.lowlevel.checkpoint()


class Contended(Scene):
    """Somebody else holds it, and gives it back as soon as we are in line."""

    async def prepare(self, ours: AsyncLockService, theirs: AsyncLockService) -> None:
        await super().prepare(ours, theirs)
        self.their_lease = await take(theirs, self.name, ttl=TTL)

    async def meanwhile(self) -> None:
        assert self.their_lease is not None
        await eventually(lambda: is_waiting(self.theirs, self.name), "we are in line", LIMIT)
        await self.their_lease.release()


class AcquireContended(Contended, Acquire):
    pass


class HoldContended(Contended, Hold):
    pass


class GiveUp(Contended):
    """Somebody else holds it, for longer than we wait."""

    async def operate(self) -> None:
        assert not await self.lock.acquire(timeout=0.03)

    async def meanwhile(self) -> None:
        pass


class AcquireAUnit(Contended):
    """Both units of a semaphore are taken; one is given back as soon as we are in line."""

    async def prepare(self, ours: AsyncLockService, theirs: AsyncLockService) -> None:
        await Scene.prepare(self, ours, theirs)
        unit = self.name
        leases = [await theirs.semaphore(unit, 2, ttl=TTL).try_acquire() for _ in range(2)]
        self.their_lease, self.their_other_lease = leases
        self.lock = ours.semaphore(unit, 2, ttl=TTL)
        assert self.their_lease is not None
        self.name = self.their_lease.claimant.resource

    async def operate(self) -> None:
        await self.lock.acquire()

    async def clear_up(self) -> None:
        await super().clear_up()
        assert self.their_other_lease is not None
        await self.their_other_lease.release()
        await eventually(partial(is_free, self.theirs, self.their_other_lease.claimant.resource), "both units are free")


class Held(Scene):
    async def prepare(self, ours: AsyncLockService, theirs: AsyncLockService) -> None:
        await super().prepare(ours, theirs)
        self.lease = await take(ours, self.name, ttl=TTL)


class Release(Held):
    async def operate(self) -> None:
        assert self.lease is not None
        lease, self.lease = self.lease, None
        await lease.release()


class Renew(Held):
    async def operate(self) -> None:
        assert self.lease is not None
        await self.lease.renew()

    async def clear_up(self) -> None:
        """Nothing is lost: it is ours, and can be renewed."""
        assert self.lease is not None
        self.lease.check()
        await eventually(self._is_renewed, "it can be renewed")
        assert (await self.theirs.inspect(self.name)).token == self.lease.token
        await super().clear_up()

    async def _is_renewed(self) -> bool:
        """What the cancelled renewal left behind may spoil the next one; that has a test of its own."""
        assert self.lease is not None
        try:
            await self.lease.renew()
        except StoreUnavailable:
            return False
        return True


async def sweep(connecting: Connect, scene: type[Scene], cancel: Cancel = by_scope) -> int:
    """Cancel the scene's operation at every point it has; how many there are."""
    async with clients(connecting) as (ours, theirs):
        for point in range(1, MOST_POINTS):
            if not await _once(scene(), ours, theirs, cancel, point):
                return point - 1
    raise AssertionError(f"{scene.__name__} is suspended more than {MOST_POINTS} times")


async def _once(scene: Scene, ours: AsyncLockService, theirs: AsyncLockService, cancel: Cancel, point: int) -> bool:
    await scene.prepare(ours, theirs)
    token = (await theirs.inspect(scene.name)).token
    async with anyio.create_task_group() as group:
        group.start_soon(scene.meanwhile)
        reached = await cancel(scene.operate(), point)
        group.cancel_scope.cancel()
    await scene.clear_up()
    where = f"{type(scene).__name__} cancelled at point {point}"
    await eventually(partial(is_free, theirs, scene.name), f"{where} leaves the lock free")
    await _works(theirs, scene.name, token, where)
    await _works(ours, scene.name, (await theirs.inspect(scene.name)).token, where)
    assert not ours.desk.leases
    return reached


async def _works(service: AsyncLockService, name: str, last: int | None, where: str) -> None:
    start = monotonic()
    lock = service.lock(name, ttl=TTL)
    assert await lock.acquire(timeout=SOON), f"{where}: then the lock cannot be had"
    assert monotonic() - start < SOON / 2, f"{where}: then the lock is slow to be had"
    assert lock.lease is not None
    assert lock.lease.token is not None
    assert lock.lease.token > (last or 0), f"{where}: a token came back"
    await lock.release()
