"""Locks for tasks, as their users meet them: on asyncio and on trio, on real stores."""

import gc
from collections import Counter
from functools import partial
from select import select
from time import monotonic, process_time
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.locks.cancelling import (
    BACKENDS,
    LIMIT,
    SOON,
    STORES,
    Connect,
    Interrupted,
    clients,
    connecting,
    descriptors,
    eventually,
    far,
    four_redis,
    fresh_name,
    has_no_more_descriptors_than,
    is_free,
    is_waiting,
    raising,
    run,
    take,
)
from tests.locks.services import Silence, TamperedStore, four_stores, quorum, sleeps_for_long
from tests.stores.servers import RedisServer
from trinco.core.errors import AcquireTimeout, LeaseLost, NotHeld, StoreUnavailable, TrincoError, UsageError
from trinco.leases.client import POLL
from trinco.locks.aio.lease import AsyncLease
from trinco.locks.aio.service import AsyncLockService
from trinco.locks.claimant import Claimant
from trinco.locks.service import connect

__all__ = ["connecting", "far", "four_redis"]

pytestmark = pytest.mark.filterwarnings("ignore:several stores of this quorum")

on_both = pytest.mark.parametrize("backend", BACKENDS)
in_memory = pytest.mark.parametrize("connecting", ["memory"], indirect=True)
on_redis = pytest.mark.parametrize("connecting", ["redis"], indirect=True)
everywhere = pytest.mark.parametrize("connecting", STORES, indirect=True)
LATE = 0.2
"""Seconds by which a time-out may be late on a busy host; the next poll would be a second away."""


# The shape of a lock


@on_both
@everywhere
def test_a_lock_has_the_shape_of_a_lock(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            lock, other = ours.lock(name), theirs.lock(name)
            assert await lock.acquire()
            assert lock.lease is not None
            assert await lock.locked()
            assert await other.locked()
            assert not await other.acquire(blocking=False)
            assert await other.try_acquire() is None
            token = lock.lease.token
            await lock.release()
            assert lock.lease is None
            assert not await other.locked()
            async with other as lease:
                assert lease.token is not None
                assert token is not None
                assert lease.token > token
            assert await is_free(ours, name)

    run(backend, main)


@on_both
@in_memory
def test_what_makes_no_sense_is_refused(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting, 1) as (ours,):
            lock = ours.lock(fresh_name())
            with pytest.raises(NotHeld):
                await lock.release()
            with pytest.raises(UsageError):
                await lock.acquire(blocking=False, timeout=1)
            with pytest.raises(UsageError):
                await lock.acquire(timeout=-2)
            with pytest.raises(UsageError):
                lock.hold(timeout=-0.5)
            with pytest.raises(UsageError):
                ours.lock("x", reentrant=True)
            with pytest.raises(UsageError):
                await ours.election("x").run(None)  # type: ignore[arg-type]
            lease = await take(ours, fresh_name())
            with pytest.raises(TypeError), lease:
                pass
            await lease.release()
            await lease.release()
            with pytest.raises(LeaseLost) as caught:
                await lease.renew()
            assert caught.value.reason == "released"

    run(backend, main)


@on_both
@pytest.mark.parametrize("connecting", ["redis", "redis-quorum", "postgres"], indirect=True)
def test_try_acquire_may_be_the_first_that_is_asked(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        service = connecting()
        try:
            lease = await service.aio.lock(fresh_name()).try_acquire()
            assert lease is not None
        finally:
            await eventually(
                lambda: not service.aio.desk.hub.is_connecting or bool(service.aio.desk.hub._newcomers), "connected", 5
            )
            await service.aio.close()
            service.close()

    run(backend, main)


@on_both
def test_an_unreachable_store_is_named_at_once(backend: str) -> None:
    async def main() -> None:
        service = connect("redis://127.0.0.1:1/0")
        start = monotonic()
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1"):
            await service.aio.lock("nightly").acquire()
        assert monotonic() - start < SOON
        await service.aio.close()
        service.close()

    run(backend, main)


@on_both
@in_memory
def test_a_closed_service_says_so(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            await take(ours, name)
            await ours.close()
            await ours.close()
            assert await is_free(theirs, name)
            for operation in (ours.lock(name).acquire, partial(ours.inspect, name), partial(ours.break_, name)):
                with pytest.raises(StoreUnavailable, match="closed"):
                    await operation()

    run(backend, main)


@on_both
@in_memory
def test_a_task_that_overstays_does_not_release_the_lock_of_its_successor(connecting: Connect, backend: str) -> None:
    """One ``AsyncLock`` for all tasks is how people write it."""

    async def main() -> None:
        async with clients(connecting, 1) as (ours,):
            lock = ours.lock(fresh_name(), max_hold=0.2)
            successor_is_in, overstayer_is_out = anyio.Event(), anyio.Event()

            async def overstay() -> None:
                with pytest.raises(LeaseLost):
                    async with lock:
                        await successor_is_in.wait()
                overstayer_is_out.set()

            async with anyio.create_task_group() as group:
                group.start_soon(overstay)
                await eventually(lambda: lock.lease is not None, "the first is in")
                async with lock as lease:
                    successor_is_in.set()
                    await overstayer_is_out.wait()
                    lease.check()

    run(backend, main)


@on_both
@in_memory
def test_a_semaphore_that_tasks_share_gets_all_its_units_back(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting, 1) as (ours,):
            semaphore = ours.semaphore(fresh_name(), 2)
            inside: list[AsyncLease] = []

            async def use() -> None:
                async with semaphore as lease:
                    inside.append(lease)
                    await eventually(lambda: len(inside) == 2, "both are in")

            async with anyio.create_task_group() as group:
                group.start_soon(use)
                group.start_soon(use)
            assert not ours.desk.leases

    run(backend, main)


# Time


@on_both
@everywhere
def test_a_timeout_is_kept_to_the_moment(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            await take(theirs, name)
            for timeout in (0.15, 0.03):
                start = monotonic()
                assert not await ours.lock(name).acquire(timeout=timeout)
                assert timeout <= monotonic() - start < timeout + LATE
                start = monotonic()
                with pytest.raises(AcquireTimeout, match="held by"):
                    async with ours.lock(name).hold(timeout):
                        raise AssertionError("two hold one lock")
                assert timeout <= monotonic() - start < timeout + LATE
            await eventually(partial(is_in_line_no_more, theirs, name), "whoever gave up is out of line")

    run(backend, main)


async def is_in_line_no_more(service: AsyncLockService, name: str) -> bool:
    return not await is_waiting(service, name)


@on_both
@on_redis
def test_a_timeout_is_kept_while_another_task_waits(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            await take(theirs, name)
            async with anyio.create_task_group() as group:
                group.start_soon(ours.lock(name).acquire)
                await eventually(partial(is_waiting, theirs, name), "the other is in line")
                start = monotonic()
                with pytest.raises(AcquireTimeout):
                    async with ours.lock(name).hold(timeout=0.1):
                        pass
                late = monotonic() - start - 0.1
                group.cancel_scope.cancel()
            assert late < LATE

    run(backend, main)


@on_both
def test_a_store_that_falls_silent_is_noticed_in_time_while_another_task_waits(backend: str) -> None:
    stores, silence = four_stores(), Silence()
    theirs, ours = quorum(stores), quorum([TamperedStore(stores[0], silence), *stores[1:]])

    async def main() -> None:
        async with theirs.aio, ours.aio, anyio.create_task_group() as group:
            await take(theirs.aio, "kept")
            await ours.aio.inspect("kept")
            group.start_soon(ours.aio.lock("kept").acquire)
            await eventually(partial(is_waiting, theirs.aio, "kept"), "the other is in line")
            await eventually(lambda: sleeps_for_long(ours.aio.desk.waiting), "the other sleeps")
            silence.begin()
            start = monotonic()
            async with ours.aio.lock("free").hold():
                late = monotonic() - start
            group.cancel_scope.cancel()
        assert late < LATE, "the one who waits looks again after a second"

    run(backend, main)


@on_both
@on_redis
def test_a_look_is_quick_while_another_task_waits(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            await take(theirs, name)
            async with anyio.create_task_group() as group:
                group.start_soon(ours.lock(name).acquire)
                await eventually(partial(is_waiting, theirs, name), "the other is in line")
                start = monotonic()
                await ours.inspect(name)
                spent = monotonic() - start
                group.cancel_scope.cancel()
            assert spent < 0.2

    run(backend, main)


@on_both
def test_a_timeout_is_kept_on_a_silent_store(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(time_out_on_a_silent_store, server, "lock"))


@on_both
def test_the_timeout_of_a_semaphore_is_kept_on_a_silent_store(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(time_out_on_a_silent_store, server, "semaphore"))


async def time_out_on_a_silent_store(server: RedisServer, what: str) -> None:
    async with clients(partial(connect, server.url), 1) as (ours,):
        server.pause()
        try:
            with anyio.fail_after(SOON), raising(TrincoError):
                if what == "lock":
                    await ours.lock("nightly").hold(timeout=0.2).__aenter__()
                else:
                    assert not await ours.semaphore("gpu", 2, ttl=3).acquire(timeout=0.2)
                    raise AcquireTimeout("in time")
        finally:
            server.resume()


@on_both
@pytest.mark.parametrize("connecting", ["redis", "redis-quorum"], indirect=True)
@pytest.mark.usefixtures("far")
def test_whoever_gives_up_while_the_store_grants_leaves_nothing(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            assert not await ours.lock(name).acquire(timeout=1e-6)
            await anyio.sleep(0.1)
            await eventually(partial(is_free, theirs, name), "nothing is held")

    run(backend, main)


# Semaphores and elections


@on_both
@everywhere
def test_a_semaphore_gives_out_its_units_and_no_more(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            semaphore = ours.semaphore(name, 3)
            assert semaphore.limit == 3
            leases = [lease for _ in range(3) if (lease := await semaphore.try_acquire())]
            assert {lease.slot for lease in leases} == {0, 1, 2}
            assert await theirs.semaphore(name, 3).locked()
            assert not await theirs.semaphore(name, 3).acquire(timeout=0.05)
            await leases[1].release()
            while await theirs.semaphore(name, 3).locked():  # what was given up after 0.05 s may still be under way
                await anyio.sleep(0.01)
            async with theirs.semaphore(name, 3).hold(timeout=SOON) as lease:
                assert lease.slot == leases[1].slot
                assert lease.token is not None
                assert leases[1].token is not None
                assert lease.token > leases[1].token

    run(backend, main)


@on_both
@pytest.mark.parametrize("connecting", ["memory", "sqlite", "redis", "redis-quorum"], indirect=True)
def test_many_tasks_share_a_semaphore_and_never_too_many_are_inside(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name, slots, served = fresh_name(), Counter[int | None](), 0

            async def use(service: AsyncLockService) -> None:
                nonlocal served
                async with service.semaphore(name, 3).hold(timeout=LIMIT) as lease:
                    slots[lease.slot] += 1
                    assert slots[lease.slot] == 1, "two hold one unit"
                    await anyio.sleep(0.002)
                    slots[lease.slot] -= 1
                    served += 1

            async with anyio.create_task_group() as group:
                for number in range(24):
                    group.start_soon(use, (ours, theirs)[number % 2])
            assert served == 24

    run(backend, main)


@on_both
@pytest.mark.parametrize("connecting", ["memory", "redis"], indirect=True)
def test_one_leads_and_the_next_follows(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting, 3) as (ours, theirs, onlooker):
            name = fresh_name()
            terms: list[int | None] = []
            assert await onlooker.election(name).leader() is None
            assert await onlooker.election(name).wait_for_leader(timeout=0.05) is None

            async def govern(lease: AsyncLease) -> str:
                terms.append(lease.token)
                leader = await onlooker.election(name).wait_for_leader(timeout=SOON)
                assert leader is not None
                assert leader.token == lease.token
                return "done"

            async def stand(service: AsyncLockService) -> None:
                assert await service.election(name).run(govern) == "done"

            async with anyio.create_task_group() as group:
                group.start_soon(stand, ours)
                group.start_soon(stand, theirs)
            assert terms == sorted(terms, key=lambda term: term or 0)
            assert len(set(terms)) == 2
            async with ours.election(name).lead(timeout=SOON) as lease:
                assert lease.valid
            assert await onlooker.election(name).leader() is None

    run(backend, main)


@on_both
@in_memory
def test_a_leader_that_is_deposed_is_cancelled(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()

            async def govern(lease: AsyncLease) -> None:
                assert await theirs.break_(name, token=lease.token)
                await anyio.sleep_forever()

            with pytest.raises(LeaseLost) as caught:
                await ours.election(name, ttl=1).run(govern)
            assert caught.value.reason == "revoked"

    run(backend, main)


# Looking


@on_both
@everywhere
def test_a_lock_can_be_looked_at_listed_and_broken(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()
            lease = await take(ours, name, metadata="nação 7", auto_renew=False)
            info = await theirs.inspect(name)
            assert (info.token, info.metadata, info.waiters) == (lease.token, "nação 7", ())
            assert 29 < info.remaining <= 30
            assert [each.token async for each in theirs.list(name)] == [lease.token]
            assert not await theirs.break_(name, token=-1)
            assert await theirs.break_(name, token=lease.token)
            assert not await theirs.break_(name)
            assert await is_free(ours, name)
            assert all(each.reachable for each in await theirs.health())

    run(backend, main)


@pytest.mark.usefixtures("far")
@on_both
def test_a_break_that_no_store_confirms_is_not_taken_for_one(backend: str) -> None:
    with RedisServer() as server:
        run(backend, partial(break_while_the_server_dies, server))


async def break_while_the_server_dies(server: RedisServer) -> None:
    async with clients(partial(connect, server.url)) as (ours, theirs):
        name = fresh_name()
        await take(ours, name, auto_renew=False)
        broken: list[bool] = []

        async def try_to_break() -> None:
            broken.append(await theirs.break_(name))

        def die_after_the_look() -> None:
            assert select([theirs.desk.hub.poller], [], [], SOON)[0]
            server.kill()

        with pytest.raises(StoreUnavailable):
            await Interrupted(try_to_break(), {1}, die_after_the_look)
        assert not broken


# Crowds


class Watch:
    """What woke each claimant last, and how many fallback polls there were."""

    def __init__(self) -> None:
        self.polls = 0
        self.woken: dict[int, str] = {}


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch()
    prepare, hinted, on_timer = Claimant.prepare, Claimant.hinted, Claimant.on_timer

    def watched_start(self: Claimant, terms: Any, info: str) -> None:
        watch.woken[id(self)] = "start"
        prepare(self, terms, info)

    def watched_hint(self: Claimant, ctx: Any, position: int) -> None:
        watch.woken[id(self)] = "hint"
        hinted(self, ctx, position)

    def watched_timer(self: Claimant, ctx: Any, name: str) -> None:
        if name == POLL:
            watch.polls += 1
            watch.woken[id(self)] = "poll"
        on_timer(self, ctx, name)

    monkeypatch.setattr(Claimant, "prepare", watched_start)
    monkeypatch.setattr(Claimant, "hinted", watched_hint)
    monkeypatch.setattr(Claimant, "on_timer", watched_timer)
    return watch


class Crowd:
    """So many tasks of one service that go on until so many grants were given out on so many locks."""

    def __init__(self, service: AsyncLockService, tasks: int, locks: int, rounds: int, watch: Watch) -> None:
        self.service = service
        self.names = [fresh_name() for _ in range(locks)]
        self.grants = [0] * tasks
        self.goal = tasks * rounds
        self.tokens: dict[str, list[int]] = {name: [] for name in self.names}
        self.inside: set[str] = set()
        self.watch = watch
        self.polled = 0

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            for number in range(len(self.grants)):
                group.start_soon(self._work, number, self.names[number % len(self.names)])

    async def _work(self, number: int, name: str) -> None:
        while sum(self.grants) < self.goal:
            async with self.service.lock(name).hold() as lease:
                assert name not in self.inside, "two tasks are inside"
                self.inside.add(name)
                self.polled += self.watch.woken[id(lease.claimant)] == "poll"
                assert lease.token is not None
                self.tokens[name].append(lease.token)
                self.grants[number] += 1
                await anyio.lowlevel.checkpoint()
                self.inside.remove(name)

    def judge(self) -> None:
        assert min(self.grants) > 0, "somebody was never served"
        assert all(tokens == sorted(set(tokens)) for tokens in self.tokens.values())
        fairness = sum(self.grants) ** 2 / (len(self.grants) * sum(each * each for each in self.grants))
        assert fairness > 0.95, f"Jain's index is {fairness:.3f}"
        # On a busy host a turn may be a second away, and then a poll may come just when it is ours.
        assert self.polled <= self.goal // 100, f"{self.polled} of {self.goal} grants came from a fallback poll"


def crowd_test(backend: str, connecting: Connect, tasks: int, locks: int, watch: Watch, rounds: int = 3) -> None:
    async def main() -> None:
        async with clients(connecting, 1) as (ours,):
            crowd = Crowd(ours, tasks, locks, rounds, watch)
            await crowd.run()
            crowd.judge()

    run(backend, main, 25.0)


@on_both
@pytest.mark.parametrize("connecting", ["memory", "sqlite", "redis"], indirect=True)
def test_sixty_tasks_take_turns_at_one_lock(connecting: Connect, backend: str, watch: Watch) -> None:
    crowd_test(backend, connecting, 60, 1, watch)


@on_both
@pytest.mark.parametrize("connecting", ["memory", "sqlite"], indirect=True)
def test_two_hundred_tasks_take_turns_at_twenty_locks(connecting: Connect, backend: str, watch: Watch) -> None:
    crowd_test(backend, connecting, 200, 20, watch, rounds=2)


@on_both
@on_redis
def test_two_hundred_tasks_take_turns_at_twenty_locks_on_redis(connecting: Connect, backend: str, watch: Watch) -> None:
    crowd_test(backend, connecting, 200, 20, watch)


@on_both
@in_memory
def test_two_hundred_tasks_take_turns_at_one_lock(connecting: Connect, backend: str, watch: Watch) -> None:
    crowd_test(backend, connecting, 200, 1, watch, rounds=1)


@on_both
@pytest.mark.parametrize(
    ("connecting", "in_line"), [("redis", 900), ("redis-quorum", 900), ("postgres", 250)], indirect=["connecting"]
)
def test_a_thousand_tasks_wait_for_one_lock(connecting: Connect, backend: str, watch: Watch, in_line: int) -> None:
    """What one of them costs must not depend on how many wait beside it: neither here nor at the store."""

    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            crowd = Crowd(ours, 1000, 1, 1, watch)
            lease = await take(theirs, crowd.names[0])
            async with anyio.create_task_group() as group:
                group.start_soon(crowd.run)
                await eventually(partial(has_waiters, theirs, crowd.names[0], in_line), "they are in line", 60.0)
                await lease.release()
            assert min(crowd.grants) > 0
            assert crowd.tokens[crowd.names[0]] == sorted(set(crowd.tokens[crowd.names[0]]))

    run(backend, main, 90.0)


async def has_waiters(service: AsyncLockService, name: str, at_least: int) -> bool:
    return len((await service.inspect(name)).waiters) >= at_least


def our_objects() -> int:
    """Event loops keep some of theirs for a while, so only ours are counted."""
    gc.collect()
    return sum(str(type(each).__module__).startswith("trinco") for each in gc.get_objects())


@pytest.mark.parametrize(("connecting", "backend"), [("memory", "trio"), ("redis", "asyncio")], indirect=["connecting"])
def test_thousands_of_cycles_leave_nothing_behind(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting) as (ours, theirs):
            name = fresh_name()

            async def cycle(times: int) -> None:
                for _ in range(times):
                    async with ours.lock(name).hold():
                        with anyio.move_on_after(0):
                            await theirs.lock(name).acquire()

            await cycle(200)
            objects, files = our_objects(), descriptors()
            await cycle(2000)
            assert our_objects() - objects < 100
            assert has_no_more_descriptors_than(files)
            assert not ours.desk.leases
            await eventually(
                lambda: not ours.desk.hub.active and not theirs.desk.hub.active, "nobody is left active", 6
            )

    run(backend, main)


@on_both
@pytest.mark.parametrize("connecting", ["memory", "sqlite"], indirect=True)
def test_a_loop_of_acquire_and_release_lets_others_run(connecting: Connect, backend: str) -> None:
    async def main() -> None:
        async with clients(connecting, 1) as (ours,):
            lock = ours.lock(fresh_name())
            turns = 0

            async def other() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await anyio.lowlevel.checkpoint()

            async with anyio.create_task_group() as group:
                group.start_soon(other)
                await anyio.lowlevel.checkpoint()
                end = process_time() + 0.1  # ours alone: the machine may be busy with something else
                while process_time() < end:
                    await lock.acquire()
                    await lock.release()
                seen = turns
                group.cancel_scope.cancel()
            assert seen >= 25, "not even every 4 ms"

    run(backend, main)


# Event loops


@pytest.mark.parametrize(("first", "second"), [("asyncio", "asyncio"), ("asyncio", "trio"), ("trio", "trio")])
@pytest.mark.parametrize("connecting", ["memory", "redis"], indirect=True)
def test_a_service_goes_on_in_the_next_event_loop(connecting: Connect, first: str, second: str) -> None:
    """A lease that was still held when the first loop ended is renewed again in the second."""
    service = connecting()
    leases: list[AsyncLease] = []
    name = fresh_name()

    async def first_loop() -> None:
        leases.append(await take(service.aio, name, ttl=1))

    async def second_loop() -> None:
        async with service.aio.lock(fresh_name(), ttl=1).hold():
            await anyio.sleep(0.6)
            assert leases[0].remaining > 0.5
        await leases[0].release()
        assert await is_free(service.aio, name)
        await service.aio.close()

    run(first, first_loop)
    run(second, second_loop)
    service.close()


def test_two_event_loops_at_once_are_told_to_connect_twice() -> None:
    service = connect("memory:")
    refusals: list[str] = []

    async def second() -> None:
        try:
            await service.aio.lock("door").try_acquire()
        except UsageError as error:
            refusals.append(str(error))

    async def first() -> None:
        async with service.aio.lock("door").hold():
            await anyio.to_thread.run_sync(anyio.run, second)
        await service.aio.close()

    anyio.run(first)
    assert refusals == ["this async lock service is in use by another event loop: connect once for each of them"]
