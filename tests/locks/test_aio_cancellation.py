"""Cancelling an async acquire, release, hold or renew at any await leaves nothing held and nothing lost."""

import _thread
import asyncio
import os
import socket
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest

from tests.locks.cancelling import (
    BACKENDS,
    LIMIT,
    SOON,
    STORES,
    TTL,
    Acquire,
    AcquireAUnit,
    AcquireContended,
    Cancel,
    Connect,
    GiveUp,
    Hold,
    HoldContended,
    Release,
    Renew,
    Scene,
    TryAcquire,
    by_scope,
    by_task,
    by_task_twice,
    clients,
    connecting,
    eventually,
    far,
    four_redis,
    fresh_name,
    is_free,
    is_waiting,
    run,
    sweep,
    take,
)
from tests.stores.servers import RedisServer
from trinco.core.errors import StoreUnavailable
from trinco.locks.aio.service import AsyncLockService
from trinco.locks.service import connect

__all__ = ["connecting", "far", "four_redis"]

pytestmark = [pytest.mark.filterwarnings("ignore:several stores of this quorum"), pytest.mark.usefixtures("far")]

FAR = ("redis", "redis-quorum", "postgres")
ASKING = (Acquire, TryAcquire, Hold, AcquireContended, HoldContended, GiveUp, AcquireAUnit)
SCENES = (*ASKING, Release, Renew)
SYNCHRONOUS = (Acquire, TryAcquire, Release, Renew)
"""What a store of this host answers at once need not be suspended."""

on_both = pytest.mark.parametrize("backend", BACKENDS)
on_redis = pytest.mark.parametrize("connecting", ["redis"], indirect=True)


def check_sweep(backend: str, connecting: Connect, scene: type[Scene], cancel: Cancel, *, near: bool) -> None:
    async def main() -> None:
        points = await sweep(connecting, scene, cancel)
        assert points > 0 or (near and scene in SYNCHRONOUS), "nothing was cancelled: the test says nothing"

    run(backend, main)


@pytest.mark.parametrize("scene", SCENES)
@on_both
@pytest.mark.parametrize("connecting", STORES, indirect=True)
def test_cancelled_by_a_scope_at_any_await_nothing_is_held_and_nothing_lost(
    connecting: Connect, backend: str, scene: type[Scene], request: pytest.FixtureRequest
) -> None:
    near = request.node.callspec.params["connecting"] not in FAR
    check_sweep(backend, connecting, scene, by_scope, near=near)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("connecting", FAR, indirect=True)
def test_cancelled_as_asyncio_does_at_any_await_nothing_is_held_and_nothing_lost(
    connecting: Connect, scene: type[Scene]
) -> None:
    check_sweep("asyncio", connecting, scene, by_task, near=False)


@pytest.mark.parametrize("scene", [Release, Renew])
@on_redis
def test_a_release_or_a_renewal_may_be_cancelled_twice(connecting: Connect, scene: type[Scene]) -> None:
    check_sweep("asyncio", connecting, scene, by_task_twice, near=False)


@pytest.mark.parametrize("scene", [Acquire, Hold, AcquireContended, AcquireAUnit])
@on_redis
def test_an_acquire_that_is_cancelled_again_while_it_withdraws_leaves_nothing(
    connecting: Connect, scene: type[Scene]
) -> None:
    check_sweep("asyncio", connecting, scene, by_task_twice, near=False)


@on_redis
def test_an_acquire_under_asyncio_timeout_leaves_nothing(connecting: Connect) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            lease = await take(theirs, name)
            start = monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await ours.lock(name).acquire()
            assert monotonic() - start < 0.5
            await eventually(partial(is_nobody_waiting, theirs, name), "we are out of line")
            await lease.release()
            assert await is_free(theirs, name)

    run("asyncio", main)


async def is_nobody_waiting(service: AsyncLockService, name: str) -> bool:
    return not await is_waiting(service, name)


# Who sleeps for the others


@on_both
@pytest.mark.parametrize("connecting", ["memory", "sqlite", "redis", "redis-quorum"], indirect=True)
def test_when_the_one_at_the_poller_is_cancelled_the_others_go_on_at_once(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            names = [fresh_name() for _ in range(3)]
            leases = [await take(theirs, name) for name in names]
            served: list[float] = []

            async def wait_for(name: str) -> None:
                async with ours.lock(name).hold():
                    served.append(monotonic())

            async with anyio.create_task_group() as group:
                first = anyio.CancelScope()

                async def be_first() -> None:
                    with first:
                        await wait_for(names[0])

                group.start_soon(be_first)
                await eventually(partial(is_waiting, theirs, names[0]), "the first is in line")
                for name in names[1:]:
                    group.start_soon(wait_for, name)
                    await eventually(partial(is_waiting, theirs, name), "the others are in line")
                first.cancel()
                for lease in leases[1:]:
                    await lease.release()
                released = monotonic()
            assert len(served) == 2
            assert max(served) - released < 0.3
            await leases[0].release()
            await eventually(partial(is_free, theirs, names[0]), "the one that was cancelled left nothing")

    run(backend, main)


@on_both
@pytest.mark.parametrize("connecting", ["memory", "redis"], indirect=True)
def test_of_many_waiters_half_are_cancelled_and_the_rest_are_served_in_order(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            lease = await take(theirs, name)
            served: list[int] = []
            scopes = [anyio.CancelScope() for _ in range(20)]

            async def wait(number: int) -> None:
                with scopes[number]:
                    async with ours.lock(name).hold():
                        served.append(number)

            async with anyio.create_task_group() as group:
                for number in range(len(scopes)):
                    group.start_soon(wait, number)
                    await eventually(partial(has_waiters, theirs, name, number + 1), "it is in line", LIMIT)
                for scope in scopes[::2]:
                    scope.cancel()
                await lease.release()
            assert served == list(range(1, len(scopes), 2))
            await eventually(partial(is_free, theirs, name), "nobody is left")

    run(backend, main)


async def has_waiters(service: AsyncLockService, name: str, how_many: int) -> bool:
    return len((await service.inspect(name)).waiters) == how_many


# Closing


@on_both
@pytest.mark.parametrize("connecting", ["memory", "redis"], indirect=True)
def test_whoever_waits_when_the_service_is_closed_gets_a_clear_error(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            await take(theirs, name)
            errors: list[Exception] = []

            async def wait() -> None:
                try:
                    await ours.lock(name).acquire()
                except StoreUnavailable as error:
                    errors.append(error)

            with anyio.move_on_after(SOON):
                async with anyio.create_task_group() as group:
                    group.start_soon(wait)
                    group.start_soon(wait)
                    await eventually(partial(has_waiters, theirs, name, 2), "both are in line")
                    await ours.close()
            ours.desk.hub.close()  # a waiter that goes on makes a poller of its own
            assert [str(error) for error in errors] == ["this lock service was closed: connect again"] * 2

    run(backend, main)


@on_both
@on_redis
def test_the_descriptor_of_a_closed_service_can_be_used_again(connecting: Connect, backend: str) -> None:
    """Event loops must hear that a descriptor goes before its number goes to somebody else."""

    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            await take(theirs, name)
            async with anyio.create_task_group() as group:
                group.start_soon(wait_in_vain, ours, name)
                await eventually(partial(is_waiting, theirs, name), "it is in line")
                number = ours.desk.hub.poller.fileno()
                await ours.close()
                try:
                    await use_descriptor(number)
                finally:
                    group.cancel_scope.cancel()
                    ours.desk.hub.close()

    run(backend, main)


async def wait_in_vain(ours: Any, name: str) -> None:
    with pytest.raises(StoreUnavailable, match="closed"):
        await ours.lock(name).acquire()


async def use_descriptor(number: int) -> None:
    reader, writer = socket.socketpair()
    with reader, writer:
        is_ours = reader.fileno() == number
        if not is_ours:
            os.dup2(reader.fileno(), number)
        try:
            writer.send(b"!")
            with anyio.fail_after(SOON):
                await anyio.wait_readable(number)
        finally:
            if not is_ours:
                os.close(number)


@on_both
def test_a_link_that_comes_up_after_close_is_closed_and_rings_nowhere(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(close_while_connecting, server))


async def close_while_connecting(server: RedisServer) -> None:
    """A link that nobody closes is a warning when it is thrown away, and warnings are errors here."""
    service = connect(server.url)
    hub = service.aio.desk.hub
    threads = _thread._count()
    server.pause()
    with anyio.move_on_after(0.1):
        await service.aio.lock(fresh_name()).acquire()
    assert hub._bell is not None
    number = hub._bell[1]
    await service.aio.close()
    reader, writer = os.pipe()
    os.dup2(writer, number)
    server.resume()
    try:
        await eventually(lambda: _thread._count() <= threads, "the link is up, and its thread is done", 3.0)
        os.set_blocking(reader, False)
        with pytest.raises(BlockingIOError):
            os.read(reader, 1)
    finally:
        for descriptor in (reader, writer, number):
            os.close(descriptor)
        service.close()


@on_both
def test_cancelled_at_first_contact_the_service_still_works(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(cancel_at_first_contact, server))


async def cancel_at_first_contact(server: RedisServer) -> None:
    service = connect(server.url)
    server.pause()
    with anyio.move_on_after(0.1) as scope:
        await service.aio.lock("nightly").acquire()
    assert scope.cancelled_caught
    server.resume()
    async with service.aio.lock("nightly").hold(timeout=2) as lease:
        lease.check()
    await service.aio.close()
    service.close()


# A silent store among four


@on_both
@pytest.mark.parametrize("connecting", ["redis-quorum"], indirect=True)
def test_a_silent_store_of_a_quorum_holds_up_neither_acquire_nor_release_nor_cancellation(
    connecting: Connect, backend: str, four_redis: list[RedisServer]
) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            four_redis[0].pause()  # one of those that are asked first
            try:
                for point in range(1, 8):
                    name = fresh_name()
                    await by_scope(hold_and_leave(ours, name), point)
                    start = monotonic()
                    async with theirs.lock(name, ttl=TTL).hold(timeout=SOON):
                        pass
                    assert monotonic() - start < SOON / 2, f"slow after a cancellation at point {point}"
            finally:
                four_redis[0].resume()

    run(backend, main)


async def hold_and_leave(service: AsyncLockService, name: str) -> None:
    start = monotonic()
    async with service.lock(name, ttl=TTL).hold():
        assert monotonic() - start < SOON / 2
        start = monotonic()
    assert monotonic() - start < SOON / 2


@on_both
@pytest.mark.parametrize("connecting", ["redis-quorum"], indirect=True)
def test_a_silent_store_of_a_quorum_does_not_hold_up_a_look(
    connecting: Connect, backend: str, four_redis: list[RedisServer]
) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            lease = await take(ours, name)
            four_redis[3].pause()
            try:
                with anyio.fail_after(SOON):
                    assert (await theirs.inspect(name)).token == lease.token
            finally:
                four_redis[3].resume()

    run(backend, main)


@on_both
def test_a_silent_store_can_be_walked_away_from(backend: str) -> None:
    """Whoever is cancelled waits a second for the store to hear of it, and no more; when it wakes, nothing is held."""
    with RedisServer() as server:
        run(backend, partial(walk_away, server))


async def walk_away(server: RedisServer) -> None:
    async with clients(partial(connect, server.url)) as (ours, theirs):
        name = fresh_name()
        server.pause()
        start = monotonic()
        with anyio.move_on_after(0.1):
            await ours.lock(name).acquire()
        assert monotonic() - start < 1.5
        server.resume()
        await ours.inspect(name)
        await eventually(partial(is_free, theirs, name), "what the server did on waking was undone")


@on_both
def test_two_services_on_one_file_are_swept_alike(backend: str, tmp_path: Path) -> None:
    """The one that is cancelled and the one that looks share a file, and no memory."""
    check_sweep(backend, partial(connect, f"sqlite:///{tmp_path}/locks.db"), AcquireContended, by_scope, near=True)
