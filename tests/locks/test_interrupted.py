"""Somebody is interrupted in the middle of trinco: a signal handler raises, a finaliser runs, a process forks."""

import asyncio
import gc
import linecache
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest

import trinco
from tests.locks.cancelling import BACKENDS, run
from tests.locks.services import LIMIT, eventually, one_store, take
from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer
from trinco.leases.terms import Terms
from trinco.locks.lease import Lease
from trinco.stores.memory import MemoryStore
from trinco.stores.redis import RedisLink

SOURCES = str(Path(trinco.__file__).parent)
OF_ALL = [
    "sender, tag = outstanding.popleft()",
    "self._outstanding[base].append((sender, tag))",
    "self._inbox.append((sender, base, tag, each))",
]
AT_ONCE = [
    "reply = link.apply(claimant.resource, operation)",
    "outstanding.append((claimant, tag))",
    "or not self.poller.poll(GLANCE * self.poll_unit)",
    "self._handed_out = claimant, 0, tag, answer",
    "outstanding.popleft()",
    "claimant.replied(0, tag, answer)",
]
OF_EACH = {
    "redis": ["return self.reader.feed(data)", "arrived.append(said)", "decoded = decode(reply)"],
    "postgres": ["result = pgconn.get_result()", "self._told(errands[0], result)", "self._take(errands[0], result)"],
}
LATER, SOON = 1000, 0
"""How many glances at the store are left out: then its answers come by the way of all hubs."""
MET = [
    *((store, place, LATER) for store in OF_EACH for place in OF_ALL),
    *((store, place, SOON) for store, places in OF_EACH.items() for place in [*AT_ONCE, *places]),
]


@pytest.fixture
def url(request: pytest.FixtureRequest, redis_server: RedisServer, postgres_server: PostgresServer) -> str:
    return redis_server.url if request.param == "redis" else f"{postgres_server.url}?fresh=1"


@pytest.fixture(autouse=True, scope="module")
def _little_to_collect() -> Iterator[None]:
    """A run of all tests has much in memory: whoever collects garbage a hundred times need not look at it each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _no_tracing() -> Iterator[None]:
    before = sys.gettrace()
    yield
    sys.settrace(before)


def interrupted_at(words: str, work: Callable[[], object]) -> bool:
    """Whether the work came to the line with these words, and was interrupted there."""

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(SOURCES):
            return None
        if event == "line" and words in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize(("url", "place", "left_out"), MET, indirect=["url"])
def test_after_an_interrupt_no_answer_is_taken_for_another(url: str, place: str, left_out: int) -> None:
    """Answers are told apart by their order: if one is lost, all that follow would go to the wrong ones, and what was
    granted to one lock would be taken for another's."""
    names = [f"{place} {number}" for number in range(4)]
    began = time.monotonic()
    with trinco.connect(url) as ana, trinco.connect(url) as bruno:
        theirs = take(bruno.lock("taken"))
        take(ana.lock("warm")).release()
        ana.desk.hub.left_out = left_out
        assert interrupted_at(place, lambda: _taken_and_given_back(ana, f"free {place}"))
        granted: list[Lease | None] = []
        asker = threading.Thread(target=lambda: granted.append(_within(ana, "taken", 0.5)))
        asker.start()
        eventually(lambda: ana.desk.hub.active)
        others = [_within(ana, name, LIMIT) for name in names]
        asker.join(LIMIT)
        assert granted == [None]
        assert all(each is not None and each.valid for each in others)
        for each in others:
            assert each is not None
            each.release()
        theirs.release()
    assert time.monotonic() - began < 4, "somebody waited for the answer that was lost, which takes five seconds"


@pytest.mark.parametrize(
    "place", ["sender.replied(base, tag, reply)", "and reply.makes_sense()", "self.pending = None"]
)
def test_an_interrupt_of_who_is_told_that_it_has_the_lock_leaves_nothing_held(place: str) -> None:
    """The answer is out of the inbox then, and nobody else waits for it."""
    store = MemoryStore("door")
    with one_store(store) as ana, one_store(store) as bruno:
        assert interrupted_at(place, lambda: _taken_and_given_back(ana, "door"))
        assert not bruno.inspect("door").held


def interrupted_at_call(number: int, work: Callable[[], object]) -> str | None:
    """Which function of ours, the so manieth that is called, was interrupted before it could begin; None: there are
    fewer. That is where Python lets handlers of signals run."""
    left = number
    where = None

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left, where
        if frame.f_code.co_filename.startswith(SOURCES):
            left -= 1
            if left == 0:
                where = frame.f_code.co_qualname
                sys.settrace(None)
                raise KeyboardInterrupt

    gc.collect()
    gc.disable()  # an interrupt of some other test's finaliser would be lost
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return where
    finally:
        sys.settrace(None)
        gc.enable()
    return None


def _held_and_left(locks: trinco.LockService) -> None:
    with locks.lock("door").hold(LIMIT):
        pass


def _entered_and_left(locks: trinco.LockService) -> None:
    with locks.lock("door"):
        pass


@pytest.mark.parametrize("by", ["hold", "with"])
def test_an_interrupt_of_who_leaves_takes_nothing_from_who_entered_before_with_the_same_lease(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lease, "release_soon", Lease.release)  # so that we see at once what it takes
    with one_store() as locks:
        lock = locks.lock("door", reentrant=True)
        with lock.hold() as outer:
            for number in range(1, 200):
                place = interrupted_at_call(number, partial(_entered, lock.hold if by == "hold" else lambda: lock))
                assert outer.valid, place
                if place is None:
                    return
        pytest.fail("it has no end")


def _entered(make: Callable[[], Any]) -> None:
    with make():
        pass


@pytest.mark.parametrize("work", [_held_and_left, _entered_and_left], ids=["hold", "with"])
def test_an_interrupt_at_any_call_leaves_nothing_held(
    work: Callable[[trinco.LockService], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for one that comes just when the block ends, before our first word: Python has no place for that."""
    monkeypatch.setitem(Terms.__init__.__kwdefaults__ or {}, "access_timeout", 0.03)
    for pause in ("leases.chains.OWED_PAUSE", "locks.links.RECONNECT_PAUSE"):
        monkeypatch.setattr(f"trinco.{pause}", 0.03)
    store = MemoryStore("door")
    places: list[str] = []
    with one_store(store) as bruno:
        while True:
            with one_store(store) as ana:
                take(ana.lock("warm")).release()
                place = interrupted_at_call(len(places) + 1, partial(work, ana))
                if place is None:
                    break
                places.append(place)
                if place not in ("Hold.__exit__", "Lock.__exit__"):
                    end = time.monotonic() + LIMIT  # far less than its term
                    while bruno.inspect("door").held:
                        assert time.monotonic() < end, f"interrupted at {place}, it stays held"
                        time.sleep(0.001)
            bruno.break_("door")
    assert len(places) > 50


def _within(service: trinco.LockService, name: str, timeout: float) -> Lease | None:
    try:
        return service.lock(name).hold(timeout).__enter__()
    except trinco.AcquireTimeout:
        return None


def _taken_and_given_back(locks: trinco.LockService, name: str) -> None:
    with locks.lock(name).hold(LIMIT):
        pass


def test_after_an_interrupt_of_who_waits_no_answer_is_taken_for_another() -> None:
    """The answer to the request that was interrupted says "committed", and comes when somebody else asks for a lock
    that is taken."""
    with RedisServer() as server, trinco.connect(server.url) as ana, trinco.connect(server.url) as bruno:
        first, taken = take(bruno.lock("first")), take(bruno.lock("taken"))
        take(ana.lock("warm")).release()
        sent = 0

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal sent
            if not frame.f_code.co_filename.startswith(SOURCES):
                return None
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if event == "line" and "reply = link.send(sender.resource, access)" in line:
                sent += 1
                if sent == 2:  # it was refused, and gets in line
                    sys.settrace(None)
                    first.release()
                    server.pause()
                    sys.settrace(trace)
            if sent == 2 and event == "line" and "self._outstanding[base].append((sender, tag))" in line:
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        with pytest.raises(KeyboardInterrupt):
            ana.lock("first").hold(LIMIT).__enter__()
        server.resume()
        assert ana.lock("taken").try_acquire() is None
        assert taken.valid


def test_a_second_interrupt_while_a_link_is_given_up_is_no_different(monkeypatch: pytest.MonkeyPatch) -> None:
    close, interrupts = RedisLink.close, [True]

    def interrupted_once(link: RedisLink) -> None:
        if interrupts:
            interrupts.clear()
            raise KeyboardInterrupt
        close(link)

    with RedisServer() as server, trinco.connect(server.url) as ana, trinco.connect(server.url) as bruno:
        theirs = take(bruno.lock("taken"))
        take(ana.lock("warm")).release()
        server.pause()
        granted: list[Lease | None] = []
        asker = threading.Thread(target=lambda: granted.append(_within(ana, "taken", 1.5)))
        asker.start()
        eventually(lambda: ana.desk.hub._outstanding[0])
        monkeypatch.setattr(RedisLink, "close", interrupted_once)
        assert interrupted_at("self._outstanding[base].append((sender, tag))", lambda: ana.lock("a").try_acquire())
        assert not interrupts
        server.resume()
        assert _within(ana, "free", LIMIT) is not None
        asker.join(LIMIT)
        assert granted == [None]
        assert theirs.valid


@pytest.mark.parametrize("place", ["self.mutex.acquire()", "self.mutex.release()"])
def test_an_interrupt_around_sleep_leaves_the_service_in_order(place: str) -> None:
    with RedisServer() as server, trinco.connect(server.url) as ana, trinco.connect(server.url) as bruno:
        theirs = take(bruno.lock("door"))
        take(ana.lock("warm")).release()
        assert interrupted_at(place, lambda: _within(ana, "door", 0.5))
        theirs.release()
        assert _within(ana, "door", LIMIT) is not None


# In the middle of something of our own


def test_a_handler_may_give_back_what_it_likes_in_the_middle_of_anything() -> None:
    """It runs in the thread that it interrupts, which may have what it would wait for."""
    with one_store() as locks:
        lease = take(locks.lock("first"))
        with locks.desk.waiting.mutex:
            lease.release()
        eventually(lambda: not locks.inspect("first").held)


def test_a_handler_that_would_lock_in_the_middle_of_something_is_told_so() -> None:
    """It could wait for ever for what it has interrupted."""
    with one_store() as locks, locks.desk.waiting.mutex:
        for work in (locks.lock("door").try_acquire, lambda: locks.inspect("door"), locks.close):
            with pytest.raises(trinco.UsageError, match="in the middle"):
                work()


def test_a_handler_that_runs_while_its_thread_sleeps_gives_back_at_once(redis_server: RedisServer) -> None:
    """Nobody but itself could wake it, since it is the one at the poller."""
    with trinco.connect(redis_server.url) as ana, trinco.connect(redis_server.url) as bruno:
        theirs, mine = take(bruno.lock("door")), take(ana.lock("mine"))
        took: list[float] = []

        def handle(number: int, frame: FrameType | None) -> None:
            began = time.monotonic()
            mine.release()
            took.append(time.monotonic() - began)

        before = signal.signal(signal.SIGUSR1, handle)
        threading.Timer(0.3, signal.raise_signal, [signal.SIGUSR1]).start()
        try:
            assert _within(ana, "door", 0.6) is None
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert took
        assert took[0] < 0.1
        theirs.release()


# Closing


def test_who_waits_when_the_service_is_closed_is_sent_away_with_nothing() -> None:
    store = MemoryStore("shared")
    with one_store(store) as locks, one_store(store) as others:
        theirs = take(others.lock("door"))
        raised: list[BaseException] = []

        def wait() -> None:
            try:
                locks.lock("door").hold(LIMIT).__enter__()
            except trinco.TrincoError as error:
                raised.append(error)

        waiter = threading.Thread(target=wait)
        waiter.start()
        eventually(lambda: others.inspect("door").waiters)
        locks.close()
        waiter.join(LIMIT)
        assert [type(each) for each in raised] == [trinco.StoreUnavailable]
        assert "closed" in str(raised[0])
        assert not others.inspect("door").waiters
        theirs.release()
        assert not others.inspect("door").held


def test_who_holds_when_the_service_is_closed_hears_of_it() -> None:
    store = MemoryStore("held")
    told: list[Lease] = []
    with one_store(store) as locks, one_store(store) as others:
        hold = locks.lock("door", on_lost=told.append).hold()
        lease = hold.__enter__()
        locks.close()
        assert lease.lost.is_set()
        assert (lease.reason, told) == ("closed", [lease])
        assert not others.inspect("door").held
        with pytest.raises(trinco.LeaseLost, match="closed"):
            hold.__exit__(None, None, None)


def test_a_service_that_was_closed_before_its_first_use_is_closed() -> None:
    locks = one_store()
    locks.close()
    with pytest.raises(trinco.StoreUnavailable, match="closed"):
        locks.lock("door").try_acquire()


# Forking


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_can_lock_though_other_threads_were_in_the_middle_of_it(tmp_path: Path) -> None:
    stop = threading.Event()
    with trinco.connect(f"sqlite:///{tmp_path}/locks.db") as locks:

        def work(number: int) -> None:
            while not stop.is_set():
                with locks.lock(f"thread {number}").hold(LIMIT):
                    pass

        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        try:
            for number in range(15):
                assert _forked(lambda: locks.lock("child").hold(LIMIT).__enter__().release()) == 0, number
        finally:
            stop.set()
            for thread in threads:
                thread.join(LIMIT)


def _forked(work: Callable[[], object]) -> int:
    """The exit status of a child that does this, within the limit."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


# Tasks


@pytest.mark.parametrize("backend", BACKENDS)
def test_tasks_that_wait_or_hold_when_the_service_is_closed_hear_of_it(backend: str) -> None:
    store = MemoryStore("tasks")

    async def hold(service: trinco.AsyncLockService, seen: list[str]) -> None:
        try:
            async with service.lock("held").hold():
                seen.append("inside")
                await anyio.sleep(LIMIT)
        except trinco.LeaseLost as lost:
            seen.append(str(lost.reason))

    async def wait(service: trinco.AsyncLockService, seen: list[str]) -> None:
        try:
            await service.lock("taken").acquire()
        except trinco.StoreUnavailable:
            seen.append("sent away")

    async def main() -> None:
        with one_store(store) as others, one_store(store) as locks:
            theirs, seen = take(others.lock("taken")), list[str]()
            async with anyio.create_task_group() as group:
                group.start_soon(hold, locks.aio, seen)
                group.start_soon(wait, locks.aio, seen)
                while not others.inspect("taken").waiters or not seen:
                    await anyio.sleep(0.01)
                await locks.aio.close()
            assert sorted(seen) == ["closed", "inside", "sent away"]
            theirs.release()
            assert not others.inspect("taken").held

    run(backend, main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_async_side_can_be_closed_and_used_again(backend: str) -> None:
    with one_store() as locks:

        async def main() -> None:
            async with locks.aio as service, service.lock("door").hold():
                pass

        run(backend, main)
        run(backend, main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_who_is_cancelled_already_takes_nothing(backend: str) -> None:
    with one_store() as locks:

        async def main() -> None:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await locks.aio.lock("door").acquire()
            assert scope.cancelled_caught

        run(backend, main)
        assert not locks.inspect("door").held


@pytest.mark.parametrize("backend", BACKENDS)
def test_who_asks_again_and_again_lets_others_run(backend: str) -> None:
    async def main() -> None:
        with one_store() as locks:
            lock = locks.aio.lock("door")
            await lock.acquire()

            async def let_go() -> None:
                await anyio.sleep(0.02)
                await lock.release()

            async with anyio.create_task_group() as group:
                group.start_soon(let_go)
                while await lock.try_acquire() is None:
                    pass

    run(backend, main)


async def _taken_by_a_task(locks: trinco.LockService) -> None:
    await locks.aio.lock("door").acquire(timeout=LIMIT)


def test_an_interrupt_of_a_task_that_acquires_at_any_call_leaves_nothing_that_closing_does_not_give_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The event loop ends with it; at the end of the process every lock service is closed."""
    monkeypatch.setitem(Terms.__init__.__kwdefaults__ or {}, "access_timeout", 0.03)
    for pause in ("leases.chains.OWED_PAUSE", "locks.links.RECONNECT_PAUSE"):
        monkeypatch.setattr(f"trinco.{pause}", 0.03)
    store = MemoryStore("door")
    places: list[str] = []
    with one_store(store) as bruno:
        while True:
            with one_store(store) as ana:
                place = interrupted_at_call(len(places) + 1, partial(asyncio.run, _taken_by_a_task(ana)))
            if place is None:
                break
            places.append(place)
            assert not bruno.inspect("door").held, f"interrupted at {place}, it stays held"
    assert len(places) > 100
