"""Locks of tasks on a clock that the test moves: what is due happens as soon as the event loop runs."""

from collections.abc import Awaitable, Callable
from threading import Thread
from time import monotonic

import anyio
import anyio.to_thread
import pytest

from trinco.core.errors import AcquireTimeout, LeaseLost
from trinco.locks.aio.lease import AsyncLease
from trinco.testing import ManualClock, memory_service

LIMIT = 10.0
AT_ONCE = 0.5
"""Seconds: less than the second after which a task that waits looks anyhow."""

on_both = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def run(backend: str, main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        with anyio.fail_after(LIMIT):
            await main()

    anyio.run(limited, backend=backend)


@on_both
def test_a_body_is_cancelled_when_its_term_has_passed(backend: str) -> None:
    async def main() -> None:
        clock = ManualClock()
        told: list[AsyncLease] = []
        async with memory_service(clock).aio as locks:
            with pytest.raises(LeaseLost) as caught:  # noqa: PT012 (it is raised at the end of the block)
                async with locks.lock("nightly", ttl=30, on_lost=told.append).hold() as lease:
                    await anyio.wait_all_tasks_blocked()
                    began = monotonic()
                    clock.advance(31)
                    await anyio.sleep(LIMIT)
            assert monotonic() - began < AT_ONCE
            assert caught.value.reason == "expired"
            assert told == [lease]
            assert lease.lost.is_set()

    run(backend, main)


@on_both
def test_steps_between_which_the_loop_runs_keep_a_lease_of_a_task_alive(backend: str) -> None:
    async def main() -> None:
        clock = ManualClock()
        async with memory_service(clock).aio as locks, locks.lock("nightly", ttl=30).hold() as lease:
            for _ in range(5):
                clock.advance(20)
                await anyio.wait_all_tasks_blocked()
                lease.check()
            assert lease.remaining > 25

    run(backend, main)


@on_both
def test_another_thread_may_move_the_clock(backend: str) -> None:
    async def main() -> None:
        clock = ManualClock()
        async with memory_service(clock).aio as locks:
            lease = await locks.lock("nightly", ttl=30).try_acquire()
            assert lease is not None
            await anyio.wait_all_tasks_blocked()
            mover = Thread(target=clock.advance, args=(31,))
            mover.start()
            with anyio.fail_after(AT_ONCE):
                await lease.lost.wait()
            await anyio.to_thread.run_sync(mover.join, LIMIT)

    run(backend, main)


@on_both
@pytest.mark.parametrize("how_many", [1, 3])
def test_tasks_that_wait_notice_that_time_has_passed(backend: str, how_many: int) -> None:
    async def main() -> None:
        clock, outcomes = ManualClock(), []
        async with memory_service(clock).aio as locks:
            assert await locks.lock("nightly", auto_renew=False).try_acquire() is not None

            async def wait() -> None:
                try:
                    await locks.lock("nightly", auto_renew=False).hold(timeout=5).__aenter__()
                except AcquireTimeout:
                    outcomes.append("timed out")

            async with anyio.create_task_group() as group:
                for _ in range(how_many):
                    group.start_soon(wait)
                while len((await locks.inspect("nightly")).waiters) < how_many:
                    await anyio.sleep(0.01)
                began = monotonic()
                clock.advance(6)
            assert monotonic() - began < AT_ONCE
            assert outcomes == ["timed out"] * how_many

    run(backend, main)


@on_both
def test_moving_the_clock_after_the_end_of_the_loop_is_harmless(backend: str) -> None:
    clock = ManualClock()
    service = memory_service(clock)

    async def main() -> None:
        assert await service.aio.lock("nightly").try_acquire() is not None

    run(backend, main)
    clock.advance(31)
    mover = Thread(target=clock.advance, args=(31,))
    mover.start()
    mover.join(LIMIT)
    service.close()
