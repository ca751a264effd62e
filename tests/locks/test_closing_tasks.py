"""A lock service that is closed from outside its event loop, and event loops that come and go."""

import asyncio
import gc
import socket
import threading
import time
import weakref
from contextlib import suppress

import anyio
import pytest

import trinco
from tests.locks.cancelling import BACKENDS, descriptors, fresh_name, has_no_more_descriptors_than, raising, run
from tests.locks.services import LIMIT, Crowd, TamperedLink, TamperedStore, eventually, one_store, take
from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer
from trinco.core.errors import LeaseLost, StoreUnavailable
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_blocking_close_is_loud_for_tasks(backend: str) -> None:
    """``with trinco.connect(...)`` around tasks: what they hold is given away, so they must not go on."""
    store = MemoryStore("shared")
    told: list[str | None] = []
    ends: list[str] = []

    async def body(locks: LockService) -> None:
        try:
            async with locks.aio.lock("door", on_lost=lambda lease: told.append(lease.reason)).hold():
                await anyio.sleep(LIMIT)
                ends.append("went on")
        except LeaseLost as error:
            ends.append(error.reason)

    async def wait(locks: LockService) -> None:
        with pytest.raises(StoreUnavailable, match="closed"):
            await locks.aio.lock("taken").acquire()
        ends.append("sent away")

    async def main() -> None:
        locks, others = one_store(store), one_store(store)
        take(others.lock("taken"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(body, locks)
            tasks.start_soon(wait, locks)
            await anyio.sleep(0.05)
            locks.close()
            assert others.lock("door").try_acquire() is not None
        others.close()

    run(backend, main)
    assert sorted(ends) == ["closed", "sent away"]
    assert told == ["closed"]


def test_a_close_by_another_thread_is_done_in_the_event_loop() -> None:
    store = MemoryStore("shared")
    ends: list[str] = []

    async def main() -> None:
        locks = one_store(store)
        closer = threading.Timer(0.05, locks.close)
        closer.start()
        try:
            async with locks.aio.lock("door").hold():
                await asyncio.sleep(LIMIT)
        except LeaseLost as error:
            ends.append(error.reason)
        closer.join()

    asyncio.run(main())
    assert ends == ["closed"]


def test_an_event_loop_forgets_the_descriptor_of_a_closed_service() -> None:
    """Else the next connection that gets its number is never heard."""

    async def main() -> None:
        store = MemoryStore("shared")
        with one_store(store) as others:
            theirs = take(others.lock("door"))
            locks = one_store(store)
            assert not await locks.aio.lock("door").acquire(timeout=0.05)
            poller = locks.aio.desk.hub.poller.fileno()
            locks.close()
            theirs.release()
            await asyncio.sleep(0.1)
        pairs = []
        while True:
            pairs.append(socket.socketpair())
            near = next((each for each in pairs[-1] if each.fileno() == poller), None)
            if near is not None or len(pairs) > 50:
                break
        assert near is not None, "the number was not given out again"
        heard = asyncio.Event()
        asyncio.get_running_loop().add_reader(near, heard.set)
        next(each for each in pairs[-1] if each is not near).send(b"!")
        await asyncio.wait_for(heard.wait(), LIMIT)
        asyncio.get_running_loop().remove_reader(near)
        for pair in pairs:
            for each in pair:
                each.close()

    asyncio.run(main())


@pytest.mark.parametrize("backend", BACKENDS)
def test_whoever_holds_in_a_busy_event_loop_hears_of_a_close_when_that_runs_again(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else gets the lock before."""
    monkeypatch.setattr("trinco.locks.aio.desk.PARTING", 0.05)
    store = MemoryStore("shared")
    told: list[str | None] = []
    locks = one_store(store)
    closed = threading.Event()

    def close() -> None:
        locks.close()
        closed.set()

    async def main() -> None:
        with one_store(store) as others:
            with raising(LeaseLost) as caught:
                async with locks.aio.lock("door", on_lost=lambda lease: told.append(lease.reason)).hold() as lease:
                    lost = lease.lost
                    threading.Thread(target=close).start()
                    assert closed.wait(LIMIT)
                    assert others.inspect("door").held
                    await anyio.sleep(LIMIT)
            assert isinstance(caught.value, LeaseLost)
            assert caught.value.reason == "closed"
            assert lost.is_set()
            assert told == ["closed"]
            assert not others.inspect("door").held

    run(backend, main, LIMIT / 2)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_whoever_waits_in_a_loop_that_was_closed_is_not_woken() -> None:
    """What becomes of these tasks is between asyncio and whoever closed it; what others hold is given back."""
    store = MemoryStore("shared")
    loop = asyncio.new_event_loop()
    with one_store(store) as others, one_store(store) as locks:
        taken = [take(others.lock(name)) for name in ("one", "two")]

        async def main() -> None:
            take_it = [asyncio.ensure_future(locks.aio.lock(lease.name).acquire()) for lease in taken]
            await locks.aio.lock("door").acquire()
            await asyncio.wait(take_it, timeout=0.05)

        loop.run_until_complete(main())
        loop.close()
        locks.close()
        assert not others.inspect("door").held
    del loop
    gc.collect()


async def _hold_once(url: str) -> None:
    async with trinco.connect(url).aio.lock("door").hold():
        pass


def test_a_service_that_an_ended_event_loop_had_is_closed() -> None:
    with RedisServer() as server:
        before = descriptors()
        for _ in range(5):
            asyncio.run(_hold_once(server.url))
        eventually(lambda: has_no_more_descriptors_than(before))


async def _forget_a_lease(url: str) -> None:
    assert await trinco.connect(url).aio.lock(fresh_name(), ttl=1, auto_renew=False).try_acquire() is not None


@pytest.mark.parametrize("when", ["before its end", "after its end"])
def test_a_service_whose_event_loop_ended_with_a_lease_held_is_closed(when: str) -> None:
    """Its finaliser may run at any time; an event loop that ends while something is held tells nobody."""

    async def main() -> None:
        await _forget_a_lease(server.url)
        if when == "before its end":
            gc.collect()

    with RedisServer() as server:
        before = descriptors()
        for _ in range(5):
            asyncio.run(main())
        gc.collect()
        assert trinco.connect(server.url).aio is not None  # whoever comes next looks after those before
        eventually(lambda: descriptors() <= before)


class _Noting(TamperedStore):
    """Notes in which thread its links are closed."""

    __slots__ = ("closers",)

    def __init__(self) -> None:
        super().__init__(MemoryStore("one"))
        self.closers: list[int] = []

    def connect(self, address: str, timeout: float = 5.0) -> "_NotingLink":
        return _NotingLink(self, self.store.connect(address, timeout))


class _NotingLink(TamperedLink):
    __slots__ = ()

    def close(self) -> None:
        assert isinstance(self._owner, _Noting)
        self._owner.closers.append(threading.get_ident())
        super().close()


@pytest.mark.parametrize("held", [False, True])
def test_a_finaliser_closes_nothing_itself(held: bool) -> None:
    """It may have interrupted somebody inside the very store that it would wait for."""
    store = _Noting()

    async def main() -> None:
        lease = await one_store(store).aio.lock("door").try_acquire()
        assert lease is not None
        if not held:
            await lease.release()

    asyncio.run(main())
    gc.collect()
    eventually(lambda: store.closers)
    assert threading.get_ident() not in store.closers


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_service_that_no_task_has_any_more_is_closed(backend: str) -> None:
    """In a function that is called often, a service is made each time."""

    async def main() -> None:
        with RedisServer() as server:
            await _hold_once(server.url)
            gc.collect()
            await anyio.sleep(0.05)
            before = descriptors()
            for _ in range(5):
                await _hold_once(server.url)
            with anyio.fail_after(LIMIT):
                while not has_no_more_descriptors_than(before):
                    await anyio.sleep(0.01)

    run(backend, main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_lease_outlives_the_last_word_about_its_service(backend: str) -> None:
    async def main() -> None:
        with RedisServer() as server:
            lease = await trinco.connect(server.url).aio.lock("door", ttl=2).try_acquire()
            assert lease is not None
            gc.collect()
            await anyio.sleep(2.2)
            lease.check()
            with trinco.connect(server.url) as others:
                assert others.inspect("door").held
                await lease.release()
                assert not others.inspect("door").held
            desk = weakref.ref(lease._service)
            del lease
            with anyio.fail_after(LIMIT):
                while (closing := desk()) is not None and not closing.hub.is_closed:
                    del closing
                    await anyio.sleep(0.01)

    run(backend, main)


def test_closing_tells_everybody_before_it_waits_for_anybody() -> None:
    """A server that is silent keeps no body going: each would go on without its lock."""
    with RedisServer() as server:

        async def main() -> None:
            locks = trinco.connect(server.url)
            cancelled: list[float] = []

            async def body(name: str) -> None:
                try:
                    async with locks.aio.lock(name).hold():
                        await asyncio.sleep(LIMIT)
                except LeaseLost:
                    cancelled.append(time.monotonic())

            tasks = [asyncio.create_task(body(str(each))) for each in range(3)]
            await asyncio.sleep(0.2)
            server.pause()
            began = time.monotonic()
            closing = asyncio.create_task(locks.aio.close())
            await asyncio.sleep(0.5)
            server.resume()
            await asyncio.gather(closing, *tasks)
            assert len(cancelled) == 3
            assert max(cancelled) - began < 0.5

        asyncio.run(main())


def test_a_second_event_loop_renews_and_cancels_too() -> None:
    """The first was closed without ending its tasks, as ``run_until_complete`` and ``close`` leave it."""
    with one_store() as locks:
        first = asyncio.new_event_loop()
        lease = first.run_until_complete(locks.aio.lock("first", ttl=1).try_acquire())
        assert lease is not None
        first.close()

        async def hold() -> None:
            async with locks.aio.lock("second", ttl=1).hold() as lease:
                await asyncio.sleep(1.5)
                assert lease.valid
                locks.break_("second")
                await asyncio.sleep(LIMIT)

        with pytest.raises(LeaseLost) as caught:
            asyncio.run(hold())
        assert caught.value.reason == "revoked"


def test_a_lease_that_is_renewed_in_a_second_event_loop_is_kept_there() -> None:
    with one_store() as locks:
        lease = asyncio.run(locks.aio.lock("door", ttl=1).try_acquire())
        assert lease is not None

        async def hold() -> None:
            await lease.renew()
            await asyncio.sleep(1.5)
            lease.check()
            await lease.release()

        asyncio.run(hold())


def test_a_service_that_is_closed_has_no_tasks() -> None:
    locks = one_store()
    locks.close()

    async def main() -> None:
        with pytest.raises(StoreUnavailable, match="closed"):
            await locks.aio.lock("door").acquire()

    asyncio.run(main())


def test_a_close_that_was_interrupted_can_be_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore("shared")
    with one_store(store) as others:
        locks = one_store(store)
        take(locks.lock("door"))
        with monkeypatch.context() as patch:
            patch.setattr(locks.desk, "lose", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                locks.close()
        locks.close()
        eventually(lambda: not others.inspect("door").held)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("backend", BACKENDS)
def test_of_two_event_loops_that_come_first_together_one_is_refused(backend: str) -> None:
    """First contact counts, though nothing is held yet: what one of them waits for, the other would take in."""
    with RedisServer() as server:
        for _ in range(10):
            locks = trinco.connect(server.url)
            together, ends = threading.Barrier(2), []
            assert locks.aio is not None  # both are to have the same

            async def main(
                locks: LockService = locks, together: threading.Barrier = together, ends: list[str] = ends
            ) -> None:
                together.wait(LIMIT)
                try:
                    async with locks.aio.lock("door").hold(LIMIT):
                        ends.append("held")
                except trinco.UsageError:
                    ends.append("refused")
                await anyio.to_thread.run_sync(together.wait, LIMIT)

            crowd = Crowd(lambda _, main=main: run(backend, main), 2)  # type: ignore[misc]
            crowd.join()
            assert sorted(ends) == ["held", "refused"]
            locks.close()


def test_what_an_ended_event_loop_held_on_postgres_is_given_back_by_close(postgres_server: PostgresServer) -> None:
    """Its first release has to be prepared, and waits for the answer to that."""
    url, name = f"{postgres_server.url}?fresh=1", fresh_name()
    locks = trinco.connect(url)
    asyncio.run(locks.aio.lock(name).acquire())
    locks.close()
    with trinco.connect(url) as others:
        assert not others.inspect(name).held


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hold_that_another_task_leaves_is_given_back_and_says_what_to_do(backend: str) -> None:
    async def main() -> None:
        with one_store() as locks:
            hold = locks.aio.lock("door").hold()
            entered, left = anyio.Event(), anyio.Event()

            async def enter() -> None:
                await hold.__aenter__()
                entered.set()
                await left.wait()

            with suppress(RuntimeError, ExceptionGroup):  # trio tells the task that entered, too
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(enter)
                    await entered.wait()
                    with pytest.raises(trinco.UsageError, match="another task"):
                        await hold.__aexit__(None, None, None)
                    assert not locks.inspect("door").held
                    told.append(True)
                    left.set()

    told: list[bool] = []
    run(backend, main)
    assert told
