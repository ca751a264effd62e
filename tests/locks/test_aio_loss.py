"""Losing a lease is loud: it cancels the body, ``LeaseLost`` says why, ``lost`` is set, ``on_lost`` is called once."""

import asyncio
import logging
from _thread import get_ident
from contextvars import ContextVar
from functools import partial
from time import monotonic, process_time, sleep
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest

from tests.locks.cancelling import (
    BACKENDS,
    SOON,
    Connect,
    clients,
    connecting,
    eventually,
    four_redis,
    fresh_name,
    is_free,
    raising,
    run,
    take,
)
from tests.locks.services import TamperedStore, one_store, quorum, with_a_liar
from tests.stores.servers import RedisServer
from trinco.core.errors import LeaseLost, StoreUnavailable
from trinco.locks.aio.lease import AsyncLease
from trinco.locks.aio.service import AsyncLockService
from trinco.locks.service import connect
from trinco.stores.memory import MemoryStore

__all__ = ["connecting", "four_redis"]

pytestmark = pytest.mark.filterwarnings("ignore:several stores of this quorum")

on_both = pytest.mark.parametrize("backend", BACKENDS)
in_memory = pytest.mark.parametrize("connecting", ["memory"], indirect=True)
on_four_stores = pytest.mark.parametrize("connecting", ["memory", "sqlite", "redis", "redis-quorum"], indirect=True)
BRIEF = 1.0
"""The shortest ttl: it is renewed every third of a second."""


class Told:
    """An ``on_lost`` that remembers, and may raise."""

    def __init__(self, error: Exception | None = None) -> None:
        self.leases: list[AsyncLease] = []
        self.error = error

    def __call__(self, lease: AsyncLease) -> None:
        self.leases.append(lease)
        if self.error is not None:
            raise self.error

    async def later(self, lease: AsyncLease) -> None:
        await anyio.lowlevel.checkpoint()
        self(lease)


async def stay(service: AsyncLockService, name: str, **options: Any) -> LeaseLost:
    """Hold a lock until it is lost."""
    with raising(LeaseLost) as caught:
        async with service.lock(name, **options).hold():
            await anyio.sleep_forever()
    assert isinstance(caught.value, LeaseLost)
    return caught.value


def reason_of(error: Exception) -> str:
    assert isinstance(error, LeaseLost)
    return error.reason


async def is_held(service: AsyncLockService, name: str) -> bool:
    return (await service.inspect(name)).held


# Why it can be lost


@on_both
@on_four_stores
def test_breaking_a_lock_cancels_the_body_at_its_next_renewal(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name, told = fresh_name(), Told()
            errors: list[LeaseLost] = []

            async def body() -> None:
                errors.append(await stay(ours, name, ttl=BRIEF, on_lost=told))

            async with anyio.create_task_group() as group:
                group.start_soon(body)
                await eventually(partial(is_held, theirs, name), "the body runs")
                start = monotonic()
                assert await theirs.break_(name)
                assert await is_free(theirs, name)
            assert monotonic() - start < BRIEF * 0.6
            assert [error.reason for error in errors] == ["revoked"]
            assert name in str(errors[0])
            assert len(told.leases) == 1

    run(backend, main)


@on_both
def test_a_store_that_dies_ends_the_body_with_the_term(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(lose_the_store, server))


async def lose_the_store(server: RedisServer) -> None:
    service = connect(server.url)
    told = Told()
    start = monotonic()
    with raising(LeaseLost) as caught:
        async with service.aio.lock("nightly", ttl=BRIEF, on_lost=told).hold() as lease:
            start = monotonic()
            server.kill()
            await anyio.sleep_forever()
    assert monotonic() - start == pytest.approx(BRIEF, abs=0.15)
    assert reason_of(caught.value) == "unreachable"
    assert told.leases == [lease]
    assert lease.lost.is_set()
    await service.aio.close()
    service.close()


@on_both
def test_a_silent_store_ends_the_body_with_the_term(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(silence_the_store, server))


async def silence_the_store(server: RedisServer) -> None:
    async with clients(partial(connect, server.url), 1) as (ours,):
        start = monotonic()
        with raising(LeaseLost):
            async with ours.lock("nightly", ttl=BRIEF).hold():
                start = monotonic()
                server.pause()
                await anyio.sleep_forever()
        assert monotonic() - start == pytest.approx(BRIEF, abs=0.15)
        server.resume()


@on_both
def test_a_store_that_is_silent_for_less_than_a_term_costs_nothing(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(silence_for_a_while, server))


async def silence_for_a_while(server: RedisServer) -> None:
    async with clients(partial(connect, server.url), 1) as (ours,), ours.lock("nightly", ttl=BRIEF).hold() as lease:
        server.pause()
        await anyio.sleep(BRIEF * 0.6)
        server.resume()
        await anyio.sleep(BRIEF)
        lease.check()


@on_both
@in_memory
def test_max_hold_ends_the_body_on_time(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name, start = fresh_name(), monotonic()
            error = await stay(ours, name, ttl=BRIEF, max_hold=0.5)
            assert 0.5 <= monotonic() - start < 0.55
            assert error.reason == "overtime"
            assert await is_free(theirs, name)

    run(backend, main)


@on_both
@in_memory
def test_without_renewal_the_body_ends_with_its_term(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _):
            start = monotonic()
            error = await stay(ours, fresh_name(), ttl=BRIEF, auto_renew=False)
            assert monotonic() - start < BRIEF + 0.05
            assert error.reason == "expired"

    run(backend, main)


@on_both
@pytest.mark.parametrize("connecting", ["redis"], indirect=True)
def test_a_lease_is_renewed_for_as_long_as_its_body_lasts(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name, told = fresh_name(), Told()
            async with ours.lock(name, ttl=BRIEF, on_lost=told).hold() as lease:
                await anyio.sleep(BRIEF * 1.3)
                lease.check()
                assert (await theirs.inspect(name)).token == lease.token
            assert not told.leases
            assert not lease.lost.is_set()

    run(backend, main)


@on_both
def test_a_lease_is_renewed_though_a_silent_store_does_not_confirm_an_earlier_release(backend: str) -> None:
    async def main() -> None:
        async with quorum(with_a_liar("silent")).aio as ours:
            async with ours.lock("given back").hold():
                pass
            await eventually(lambda: bool(ours.desk.wakers), "the keeper listens")
            async with ours.lock("door", ttl=BRIEF).hold() as lease:
                await anyio.sleep(BRIEF * 1.3)
                lease.check()

    run(backend, main)


# What the body makes of it


@on_both
@in_memory
def test_an_error_of_the_body_is_not_hidden_by_the_loss(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _):
            with raising(ZeroDivisionError):
                async with ours.lock(fresh_name(), ttl=BRIEF, max_hold=0.1).hold() as lease:
                    try:
                        await anyio.sleep_forever()
                    finally:
                        lease.metadata = str(1 // 0)

    run(backend, main)


@on_both
@in_memory
def test_an_error_of_the_body_is_not_hidden_by_its_task_group(connecting: Connect, backend: str) -> None:
    """Of a group that has the error and the cancellations, the error is left."""

    async def fail_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ZeroDivisionError

    async def main() -> None:
        async with clients(connecting) as (ours, _):
            with raising(ExceptionGroup) as caught:
                async with ours.lock(fresh_name(), ttl=BRIEF, max_hold=0.1).hold(), anyio.create_task_group() as group:
                    group.start_soon(fail_when_cancelled)
                    group.start_soon(anyio.sleep_forever)
            assert caught.group_contains(ZeroDivisionError)
            assert not ours.desk.leases

    run(backend, main)


@on_both
@in_memory
def test_a_loss_comes_out_of_a_task_group_within_the_body(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _):
            with raising(LeaseLost):
                async with ours.lock(fresh_name(), ttl=BRIEF, max_hold=0.1).hold(), anyio.create_task_group() as group:
                    group.start_soon(anyio.sleep_forever)
                    group.start_soon(anyio.sleep_forever)

    run(backend, main)


@on_both
@in_memory
def test_a_body_that_swallows_its_cancellation_is_told_all_the_same(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _):
            with raising(LeaseLost) as caught:
                async with ours.lock(fresh_name(), ttl=BRIEF, max_hold=0.1).hold():
                    try:
                        await anyio.sleep_forever()
                    except anyio.get_cancelled_exc_class():
                        pass
            assert reason_of(caught.value) == "overtime"
            await anyio.sleep(0.01)  # the task is not cancelled any more

    run(backend, main)


@on_both
@in_memory
def test_a_body_that_never_awaits_is_told_at_its_end(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _):
            told = Told()
            with raising(LeaseLost) as caught:
                async with ours.lock(fresh_name(), ttl=BRIEF, max_hold=0.1, on_lost=told).hold():
                    sleep(0.15)
            assert reason_of(caught.value) == "overtime"
            assert len(told.leases) == 1

    run(backend, main)


@on_both
@in_memory
def test_a_cancellation_from_outside_wins_over_a_loss(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _):
            with anyio.CancelScope() as outside:
                async with ours.lock(fresh_name(), ttl=BRIEF).hold() as lease:
                    outside.cancel()
                    ours.desk.lose(lease, "revoked")
                    await anyio.sleep_forever()
            assert outside.cancelled_caught
            assert lease.reason == "revoked"

    run(backend, main)


@pytest.mark.parametrize("lost_first", [True, False])
@in_memory
def test_a_cancellation_of_the_task_wins_over_a_loss(connecting: Connect, lost_first: bool) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _):

            async def body() -> None:
                async with ours.lock(fresh_name(), ttl=BRIEF).hold() as lease:
                    if lost_first:
                        ours.desk.lose(lease, "revoked")
                    task.cancel()
                    ours.desk.lose(lease, "revoked")
                    await asyncio.sleep(5)

            task = asyncio.create_task(body())
            await asyncio.wait([task])
            assert task.cancelled()

    run("asyncio", main)


@on_both
@in_memory
def test_a_time_limit_around_the_block_is_not_taken_for_a_loss(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            with pytest.raises(TimeoutError), anyio.fail_after(0.05):
                async with ours.lock(name).hold():
                    await anyio.sleep_forever()
            assert await is_free(theirs, name)

    run(backend, main)


@on_both
@in_memory
def test_the_release_of_a_lost_lease_leaves_its_successor_alone(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            lease = await take(ours, name, ttl=BRIEF, auto_renew=False)
            assert await theirs.break_(name)
            successor = await take(theirs, name)
            await lease.release()
            assert (await ours.inspect(name)).token == successor.token
            successor.check()

    run(backend, main)


# on_lost


@on_both
@in_memory
@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("how", ["function", "coroutine"])
def test_on_lost_is_called_once_and_what_it_raises_ends_nothing(
    connecting: Connect, backend: str, how: str, raises: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1, "trinco")
    told = Told(ValueError("mine") if raises else None)
    on_lost = told if how == "function" else told.later

    async def main() -> None:
        async with clients(connecting) as (ours, _):
            async with ours.lock(fresh_name(), ttl=BRIEF).hold() as other:
                await stay(ours, fresh_name(), ttl=BRIEF, max_hold=0.1, on_lost=on_lost)
                await anyio.sleep(BRIEF * 0.4)
                assert other.remaining > BRIEF / 2, "renewals have ended"
            assert len(told.leases) == 1

    run(backend, main)


@on_both
@in_memory
def test_the_event_of_a_lease_is_set_by_its_loss(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _):
            lease = await take(ours, fresh_name(), ttl=BRIEF, max_hold=0.1)
            with anyio.fail_after(0.2):
                await lease.lost.wait()
            with pytest.raises(LeaseLost):
                lease.check()
            with pytest.raises(LeaseLost):
                await lease.renew()
            await lease.release()

    run(backend, main)


@on_both
@pytest.mark.parametrize("ending", ["check", "release"])
def test_a_loss_that_its_holder_finds_during_a_renewal_is_told_once(backend: str, ending: str) -> None:
    with RedisServer() as server:
        run(backend, partial(find_a_loss_during_a_renewal, server, ending))


async def find_a_loss_during_a_renewal(server: RedisServer, ending: str) -> None:
    async with clients(partial(connect, server.url), 1) as (ours,):
        told = Told()
        lease = await take(ours, fresh_name(), ttl=BRIEF, on_lost=told)
        server.pause()
        await anyio.sleep(BRIEF * 0.6)  # a renewal is under way
        sleep(BRIEF * 0.6)
        with pytest.raises(LeaseLost):
            lease.check()
        if ending == "release":
            await lease.release()
        server.resume()
        await anyio.sleep(0.1)
        assert len(told.leases) == 1


REQUEST: ContextVar[str] = ContextVar("REQUEST", default="nobody's")


@on_both
@in_memory
@pytest.mark.parametrize("how", ["function", "coroutine"])
def test_on_lost_sees_the_context_variables_of_whoever_acquired(connecting: Connect, backend: str, how: str) -> None:
    """The first to acquire starts the task that keeps the leases of all."""
    seen: list[tuple[str, str]] = []

    def on_lost(lease: AsyncLease) -> None:
        seen.append((lease.name, REQUEST.get()))

    async def on_lost_later(lease: AsyncLease) -> None:
        await anyio.lowlevel.checkpoint()
        on_lost(lease)

    async def request(service: AsyncLockService, name: str) -> None:
        REQUEST.set(name)
        await take(service, name, max_hold=0.1, on_lost=on_lost if how == "function" else on_lost_later)
        await eventually(lambda: name in dict(seen), "it is lost")

    async def main() -> None:
        async with clients(connecting) as (ours, _):
            names = [fresh_name() for _ in range(3)]
            async with anyio.create_task_group() as group:
                for name in names:
                    group.start_soon(request, ours, name)
            assert dict(seen) == dict(zip(names, names, strict=True))

    run(backend, main)


@on_both
def test_a_renewal_is_made_in_the_context_of_nobody(backend: str) -> None:
    """Else what one request has in its context lives, and is logged, for as long as anything is held."""
    seen: list[str] = []

    async def main() -> None:
        store = TamperedStore(MemoryStore("one"), before=lambda access: seen.append(REQUEST.get()))
        async with one_store(store).aio as ours:
            REQUEST.set("mine")
            async with ours.lock("door", ttl=BRIEF).hold():
                seen.clear()
                await eventually(lambda: bool(seen), "it is renewed")
                assert set(seen) == {"nobody's"}

    run(backend, main)


# Work in another thread


@on_both
@in_memory
def test_a_loss_that_a_worker_thread_finds_is_told_in_the_event_loop(connecting: Connect, backend: str) -> None:
    """The event loop is busy when the term ends, so that the thread is the first to look."""
    told: list[int] = []
    found: list[str] = []

    async def main() -> None:
        async with clients(connecting) as (ours, _):

            def work(lease: AsyncLease) -> None:
                anyio.from_thread.run_sync(at_work.set)
                with raising(LeaseLost) as caught:
                    while True:
                        lease.check()
                found.append(reason_of(caught.value))

            def on_lost(lease: AsyncLease) -> None:
                told.append(get_ident())

            at_work = anyio.Event()
            async with anyio.create_task_group() as group:
                start = monotonic()
                with raising(LeaseLost) as caught:
                    async with ours.lock(fresh_name(), max_hold=0.2, on_lost=on_lost).hold() as lease:
                        lost = lease.lost
                        group.start_soon(anyio.to_thread.run_sync, work, lease)
                        await at_work.wait()
                        sleep(0.3)
                        assert found == ["overtime"]
                        await anyio.sleep_forever()
                assert monotonic() - start < SOON
            assert reason_of(caught.value) == "overtime"
            assert lost.is_set()

    run(backend, main)
    assert found == ["overtime"]
    assert told == [get_ident()]


# Renewing by hand


@on_both
@on_four_stores
def test_a_young_lease_that_was_broken_cannot_be_renewed(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            lease = await take(ours, name, auto_renew=False)
            assert await theirs.break_(name)
            with pytest.raises(LeaseLost) as caught:
                await lease.renew()
            assert reason_of(caught.value) == "revoked"

    run(backend, main)


@on_both
def test_a_renewal_that_nobody_answers_is_not_taken_for_one(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(renew_in_vain, server))


async def renew_in_vain(server: RedisServer) -> None:
    async with clients(partial(connect, server.url), 1) as (ours,):
        lease = await take(ours, fresh_name(), ttl=3, auto_renew=False)
        server.kill()
        with pytest.raises(StoreUnavailable):
            await lease.renew()


@on_both
@in_memory
def test_a_loss_that_a_renewal_by_hand_finds_is_told(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name, told = fresh_name(), Told()
            with raising(LeaseLost):
                async with ours.lock(name, ttl=3, auto_renew=False, on_lost=told).hold() as lease:
                    alarm = lease.lost
                    assert await theirs.break_(name)
                    await anyio.sleep(1.1)
                    with pytest.raises(LeaseLost):
                        await lease.renew()
                    await anyio.sleep(0.1)
                    raise AssertionError("the body goes on")
            assert alarm.is_set()
            assert told.leases == [lease]

    run(backend, main)


@on_both
@on_four_stores
def test_many_renewals_of_one_lease_at_once_all_come_back(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _):
            lease = await take(ours, fresh_name(), ttl=20)
            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(lease.renew)
            assert lease.remaining > 19

    run(backend, main)


@on_both
@pytest.mark.parametrize("connecting", ["redis-quorum"], indirect=True)
def test_a_late_answer_to_the_renewal_before_does_not_spoil_this_one(
    connecting: Connect, backend: str, four_redis: list[RedisServer]
) -> None:
    """Of four stores the last grants nothing at first, and its repair is answered during the next renewal."""

    async def main() -> None:
        async with clients(connecting, 1) as (ours,):
            lease = await take(ours, fresh_name(), ttl=20, auto_renew=False)
            assert [base.mine for base in lease.claimant.bases] == [True, True, True, False]
            repaired, silent = four_redis[3], four_redis[2]
            try:
                repaired.pause()
                await lease.renew()
                silent.pause()
                async with anyio.create_task_group() as group:
                    group.start_soon(lease.renew)
                    await eventually(lambda: answers(lease) == 2, "two of four have renewed")
                    repaired.resume()
            finally:
                repaired.resume()
                silent.resume()

    run(backend, main)


def answers(lease: AsyncLease) -> int:
    return sum(base.grade is not None for base in lease.claimant.bases)


@on_both
@in_memory
def test_a_check_after_max_hold_says_so(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _):
            lease = await take(ours, fresh_name(), max_hold=0.1)
            sleep(0.15)
            with pytest.raises(LeaseLost) as caught:
                lease.check()
            assert reason_of(caught.value) == "overtime"

    run(backend, main)


# The keeper


@on_both
def test_a_body_ends_on_time_while_the_renewal_of_another_lease_is_unanswered(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(end_while_another_is_renewed, server))


async def end_while_another_is_renewed(server: RedisServer) -> None:
    async with clients(partial(connect, server.url), 1) as (ours,):
        await take(ours, fresh_name(), ttl=4)  # due after 1.3 s, and then for 2 s
        await anyio.sleep(1.0)
        start = monotonic()
        try:
            with raising(LeaseLost):
                async with ours.lock(fresh_name(), ttl=10, max_hold=0.7).hold():
                    server.pause()
                    await anyio.sleep_forever()
        finally:
            server.resume()
        assert monotonic() - start - 0.7 < 0.2


@on_both
def test_a_renewal_that_is_unanswered_costs_no_processor_time(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(wait_for_a_renewal, server))


async def wait_for_a_renewal(server: RedisServer) -> None:
    async with clients(partial(connect, server.url), 1) as (ours,):
        lease = await take(ours, fresh_name(), ttl=3)
        await anyio.sleep(0.9)  # it is due at 1.0
        server.pause()
        start = process_time()
        try:
            with pytest.raises((StoreUnavailable, LeaseLost)):
                await lease.renew()
        finally:
            server.resume()
        assert process_time() - start < 0.15


# An event loop that stands still


@on_both
@pytest.mark.parametrize("connecting", ["redis"], indirect=True)
def test_an_event_loop_that_stands_still_for_longer_than_the_ttl_loses_the_lease(
    connecting: Connect, backend: str
) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name, told = fresh_name(), Told()
            with raising(LeaseLost) as caught:
                async with ours.lock(name, ttl=BRIEF, on_lost=told).hold():
                    sleep(BRIEF * 1.1)
                    await anyio.sleep_forever()
            assert reason_of(caught.value) == "expired"
            assert len(told.leases) == 1
            (await take(theirs, name)).check()

    run(backend, main)


@on_both
@pytest.mark.parametrize("connecting", ["redis"], indirect=True)
def test_an_event_loop_that_stands_still_for_less_renews_afterwards(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, _), ours.lock(fresh_name(), ttl=BRIEF).hold() as lease:
            sleep(BRIEF * 0.7)
            await anyio.sleep(SOON / 5)
            assert lease.remaining > BRIEF / 2

    run(backend, main)
