"""Whose lease is whose: holds that are used twice, locks that are left by others than entered them, forks, exits."""

import asyncio
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest

import trinco
from tests.locks.services import LIMIT, one_store, take
from trinco.core.errors import LeaseLost, UsageError
from trinco.locks import service as service_module
from trinco.locks.lease import Lease
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore


@pytest.fixture
def service() -> Iterator[LockService]:
    with one_store() as locks:
        yield locks


# Holds


def test_a_hold_is_one_stay(service: LockService) -> None:
    for lock in (service.lock("door", reentrant=True), service.semaphore("gpu", 2)):
        hold = lock.hold(LIMIT)
        with hold:
            with pytest.raises(UsageError, match="call hold"), hold:
                pass
            assert lock.inspect().held
        assert not lock.inspect().held
        with hold:  # one after the other is no harm
            assert lock.inspect().held


def test_a_hold_that_waited_in_vain_can_be_used_again() -> None:
    store = MemoryStore("shared")
    with one_store(store) as ana, one_store(store) as bruno:
        theirs = take(bruno.lock("door"))
        hold = ana.lock("door").hold(0.01)
        with pytest.raises(trinco.AcquireTimeout), hold:
            pass
        theirs.release()
        with hold as lease:
            assert lease.valid


def test_a_hold_of_a_task_is_one_stay(service: LockService) -> None:
    async def main() -> None:
        hold = service.aio.semaphore("gpu", 2).hold(LIMIT)
        async with hold:
            with pytest.raises(UsageError, match="call hold"):
                await hold.__aenter__()
        async with hold:
            pass

    asyncio.run(main())


def test_leases_and_holds_can_be_referred_to_weakly(service: LockService) -> None:
    lease = take(service.lock("door"))
    assert weakref.ref(lease)() is lease
    hold = service.lock("door").hold()
    assert weakref.ref(hold)() is hold


# Who leaves


def test_a_block_that_another_thread_leaves_is_left(service: LockService) -> None:
    lock = service.lock("door")

    def inside() -> Iterator[None]:
        with lock:
            yield

    entered = inside()
    next(entered)
    closer = threading.Thread(target=entered.close)
    closer.start()
    closer.join()
    assert not lock.locked()


def test_a_block_that_another_task_leaves_is_left(service: LockService) -> None:
    lock = service.aio.lock("door")

    async def inside() -> AsyncIterator[None]:
        async with lock:
            yield

    async def main() -> None:
        entered = inside()
        await anext(entered)
        await asyncio.create_task(entered.aclose())
        assert not await lock.locked()

    asyncio.run(main())


def test_who_lost_a_lock_does_not_release_the_one_who_has_it_now(service: LockService) -> None:
    """``asyncio.wait_for`` may acquire in a task of its own, so it is not known whose the first lease is."""
    lock = service.aio.lock("door")

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lock.acquire)
        lost = lock.lease
        assert lost is not None
        service.break_("door")
        with pytest.raises(LeaseLost):
            await lost.renew()
        assert await lock.acquire()
        mine = lock.lease
        assert mine is not None
        await asyncio.create_task(lock.release())
        assert mine.valid

    asyncio.run(main())


def test_the_same_in_threads(service: LockService) -> None:
    lock = service.lock("door")
    _in_a_thread(lock.acquire)
    lost = lock.lease
    assert lost is not None
    service.break_("door")
    with pytest.raises(LeaseLost):
        lost.renew()
    lock.acquire()
    mine = lock.lease
    assert mine is not None
    _in_a_thread(lock.release)
    assert mine.valid


def _in_a_thread(work: object) -> None:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    thread.join()


def test_the_block_of_a_lease_ends_loudly_if_it_was_lost(service: LockService) -> None:
    def body(error: Exception | None) -> None:
        with take(service.lock("door")) as lease:
            service.break_("door")
            with pytest.raises(LeaseLost):
                lease.renew()
            if error is not None:
                raise error

    with pytest.raises(LeaseLost) as caught:
        body(None)
    assert caught.value.reason == "revoked"
    with pytest.raises(KeyError, match="its own"):
        body(KeyError("its own is the one to tell"))


def test_a_lease_that_was_given_back_meanwhile_is_not_told_as_lost(service: LockService) -> None:
    told: list[Lease] = []
    lease = take(service.lock("door", on_lost=told.append))
    lease.release()
    service.desk.lose(lease)
    assert told == []


# Processes

FORKED = """
import asyncio, os, sys, trinco
locks = trinco.connect(sys.argv[1])
door = locks.aio.lock("door")  # at the top of a module that is loaded before its workers are forked

async def hold(said, over):
    async with door.hold(5):
        os.write(said, b"in\\n")
        await asyncio.to_thread(os.read, over, 1)

async def look():
    return await door.try_acquire()

said, over = os.pipe(), os.pipe()
if not os.fork():
    asyncio.run(hold(said[1], over[0]))
    os._exit(0)
assert os.read(said[0], 3) == b"in\\n"
if not os.fork():
    os._exit(0 if asyncio.run(look()) is None else 1)
second = os.waitstatus_to_exitcode(os.wait()[1])
os.write(over[1], b"!")
os.wait()
sys.exit(second)
"""
HASTY = """
import sys, threading, time, trinco
locks = trinco.connect(sys.argv[1])
begun = threading.Event()

def work():
    while True:
        with locks.lock("door").hold():
            begun.set()

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
begun.wait(10)
time.sleep(0.05)
"""


def test_forked_children_that_share_an_async_service_exclude_each_other(tmp_path: Path) -> None:
    """With one name for both, a store would take the second for the first and grant it its own lease again."""
    assert _ended(FORKED, f"sqlite:///{tmp_path}/locks.db") == 0


def test_a_process_that_ends_leaves_nothing_held_by_its_daemon_threads(tmp_path: Path) -> None:
    for number in range(4):
        url = f"sqlite:///{tmp_path}/{number}.db"
        assert _ended(HASTY, url) == 0
        with trinco.connect(url) as locks:
            assert locks.lock("door").try_acquire() is not None


def _ended(code: str, url: str) -> int:
    return subprocess.run([sys.executable, "-c", code, url], timeout=60, check=False).returncode


def test_a_child_forked_while_a_thread_was_connecting_can_connect() -> None:
    service_module._making.acquire()
    child = os.fork()
    if not child:
        with one_store() as locks:
            os._exit(0 if locks.lock("door").try_acquire() is not None else 1)
    service_module._making.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


SIGTERM_AT_A_FORK = """
import os, signal, sys, trinco
locks = trinco.connect("memory:")

def trace(frame, event, argument):
    if event == "call" and frame.f_code.co_name == sys.argv[1] and frame.f_code.co_filename.endswith("endings.py"):
        sys.settrace(None)
        signal.raise_signal(signal.SIGTERM)

sys.settrace(trace)
if not os.fork():
    os._exit(0)
sys.settrace(None)
os.wait()
import time
time.sleep(20)
"""


@pytest.mark.parametrize("place", ["_hold_sigterm_back", "_go_on"])
def test_sigterm_that_comes_just_when_a_process_forks_ends_it(place: str) -> None:
    """What a handler raises there is swallowed by Python."""
    assert _ended(SIGTERM_AT_A_FORK, place) == 128 + 15
