"""Many threads on one service, and several services in one process."""

import _thread
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest

import trinco
from tests.locks.services import (
    LIMIT,
    Crowd,
    Silence,
    SlowToConnect,
    TamperedStore,
    Waiter,
    eventually,
    four_stores,
    in_line,
    quorum,
    sleeps_for_long,
    take,
    within,
)
from tests.locks.workers import NAME, worker
from tests.stores.servers import RedisServer
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore
from trinco.stores.store import Store

Connect = Callable[[], LockService]
THREADS = 8
ROUNDS = 6


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", "redis", "quorum"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connect]:
    """Each call is another service on the same stores."""
    made: list[LockService] = []
    stores = four_stores()
    urls = {"memory": f"memory:{tmp_path}", "sqlite": f"sqlite:///{tmp_path}/locks.db"}

    def make() -> LockService:
        if request.param == "quorum":
            made.append(quorum(stores))
        elif request.param == "redis":
            made.append(trinco.connect(request.getfixturevalue("redis").url))
        else:
            made.append(trinco.connect(urls[request.param]))
        return made[-1]

    yield make
    for service in made:
        service.close()


def count_unprotected(services: list[LockService], rounds: int = ROUNDS) -> tuple[int, list[int]]:
    """Threads add to a number that only the lock protects."""
    name = f"counter {os.urandom(4).hex()}"
    number, tokens = 0, []

    def work(position: int) -> None:
        nonlocal number
        for _ in range(rounds):
            with services[position % len(services)].lock(name).hold(3 * LIMIT) as lease:
                seen = number
                time.sleep(0.0005)
                lease.check()
                number = seen + 1
                tokens.append(lease.token or 0)

    Crowd(work, THREADS).join()
    return number, tokens


def test_threads_that_share_a_service_exclude_each_other(connect: Connect) -> None:
    number, tokens = count_unprotected([connect()])
    assert number == THREADS * ROUNDS
    assert tokens == sorted(set(tokens)) or set(tokens) == {0}


def test_two_services_of_one_process_exclude_each_other(connect: Connect) -> None:
    number, tokens = count_unprotected([connect(), connect()])
    assert number == THREADS * ROUNDS
    assert tokens == sorted(set(tokens)) or set(tokens) == {0}


def test_threads_that_share_one_lock_object_exclude_each_other(connect: Connect) -> None:
    lock, number = connect().lock(f"shared {os.urandom(4).hex()}"), 0

    def work(_: int) -> None:
        nonlocal number
        for _ in range(ROUNDS):
            with lock:
                seen = number
                time.sleep(0.0005)
                number = seen + 1

    Crowd(work, THREADS).join()
    assert number == THREADS * ROUNDS
    assert not lock.locked()


def test_threads_with_locks_of_their_own_do_not_wait_for_each_other(connect: Connect) -> None:
    service, together = connect(), Barrier(THREADS)
    mark = os.urandom(4).hex()

    def work(number: int) -> None:
        with service.lock(f"own {mark} {number}").hold(LIMIT) as lease:
            together.wait(LIMIT)
            lease.check()

    Crowd(work, THREADS).join()


def test_first_contact_by_many_threads_at_once(redis: RedisServer) -> None:
    together = Barrier(THREADS)
    with trinco.connect(redis.url) as service:

        def work(number: int) -> None:
            together.wait(LIMIT)
            service.lock(f"first contact {number}").hold(LIMIT).__enter__().release()

        Crowd(work, THREADS).join()


def test_threads_that_come_first_together_get_one_desk() -> None:
    """Leases that were taken at another one would neither be released at the end nor given up after a fork."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            with quorum(four_stores()) as service:
                desks: list[object] = []
                together = Barrier(THREADS)

                def look(
                    _: int, service: LockService = service, desks: list[object] = desks, at: Barrier = together
                ) -> None:
                    at.wait(LIMIT)
                    desks.append(service.desk)

                Crowd(look, THREADS).join()
                assert len(set(map(id, desks))) == 1
    finally:
        sys.setswitchinterval(interval)


def test_a_look_is_quick_while_another_thread_waits(redis: RedisServer) -> None:
    """The one at the poller takes in what the one who looks is waiting for, and must wake it."""
    with trinco.connect(redis.url) as ana, trinco.connect(redis.url) as bruno:
        with ana.lock("busy").hold(LIMIT):
            waiter = Waiter(bruno.lock("busy"))
            in_line(ana, "busy")
            took = []
            for _ in range(5):
                began = time.monotonic()
                bruno.inspect("idle")
                took.append(time.monotonic() - began)
        waiter.join()
    assert max(took) < 0.3, took


def test_a_lock_is_quick_while_another_thread_waits(redis: RedisServer) -> None:
    with trinco.connect(redis.url) as ana, trinco.connect(redis.url) as bruno:
        with ana.lock("busy too").hold(LIMIT):
            waiter = Waiter(bruno.lock("busy too"))
            in_line(ana, "busy too")
            took = []
            for _ in range(20):
                began = time.monotonic()
                with bruno.lock("idle too").hold(LIMIT) as lease:
                    lease.renew()
                took.append(time.monotonic() - began)
        waiter.join()
    assert sorted(took)[-2] < 0.2, took


def test_a_store_that_falls_silent_is_noticed_in_time_while_another_thread_waits() -> None:
    """Whoever sleeps at the poller looks after the timers of all: it has to hear of one that is due earlier."""
    stores, silence = four_stores(), Silence()
    theirs, ours = quorum(stores), quorum([TamperedStore(stores[0], silence), *stores[1:]])
    kept = take(theirs.lock("kept"))
    first = Waiter(ours.lock("kept"))
    in_line(theirs, "kept")
    eventually(lambda: sleeps_for_long(ours.desk.waiting))
    silence.begin()
    with within(0.5), ours.lock("free").hold():
        pass
    kept.release()
    first.join().release()


def test_all_who_wait_for_the_same_renewal_are_woken(redis: RedisServer) -> None:
    """One of them takes the answer in for all."""
    with trinco.connect(redis.url) as locks, locks.lock("renewed").hold(LIMIT) as lease:
        redis.pause()
        ended: list[float] = []

        def renew() -> None:
            lease.renew()
            ended.append(time.monotonic())

        threads = [Thread(target=renew) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            eventually(lambda: len(lease.claimant.wakers) >= 3)  # the keeper may have come across it, too
        finally:
            redis.resume()
        began = time.monotonic()
        for thread in threads:
            thread.join(LIMIT)
        assert len(ended) == 3
        assert max(ended) - began < 0.5


def test_a_service_that_is_closed_ends_the_waits_for_its_locks(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with trinco.connect(url) as holder, take(holder.lock(NAME)), worker("close-under-a-waiter", url) as process:
        in_line(holder, NAME)
        process.tell()
        assert process.hears() == "StoreUnavailable"
        assert holder.inspect(NAME).waiters == ()


def test_whoever_replaces_the_locks_of_threading_replaces_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """As gevent does: with a lock that knows only threads, all greenlets of one would be inside at once."""
    made: list[object] = []
    real = threading.RLock

    def replaced() -> object:
        made.append(real())
        return made[-1]

    monkeypatch.setattr(threading, "RLock", replaced)
    with trinco.connect("memory:") as service, service.lock(NAME).hold(LIMIT):
        assert service.desk.waiting.mutex in made


def test_two_threads_that_close_a_service_whose_store_is_silent_both_return(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trinco.locks.desk.FAREWELL", 0.3)
    service = trinco.connect(redis.url)
    assert service.lock("door").try_acquire() is not None
    redis.pause()
    try:
        with ThreadPoolExecutor(2) as pool:
            for closed in [pool.submit(service.close) for _ in range(2)]:
                assert closed.result() is None
    finally:
        redis.resume()


def test_a_service_that_nobody_has_any_more_is_closed(redis: RedisServer, tmp_path: Path) -> None:
    """In a function that is called often, a service is made each time."""
    for url in ("memory:", f"sqlite:///{tmp_path}/locks.db", redis.url):
        before = _thread._count(), len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            with trinco.connect(url).lock("nightly").hold(LIMIT):
                pass
        eventually(partial(_has_no_more_than, *before))


def _has_no_more_than(threads: int, descriptors: int) -> bool:
    return _thread._count() <= threads and len(os.listdir("/proc/self/fd")) <= descriptors + 2


def test_a_lease_outlives_the_last_word_about_its_service(redis: RedisServer) -> None:
    lease = take(trinco.connect(redis.url).lock("kept", ttl=1))
    before = lease.until
    eventually(lambda: lease.until > before + 1)
    lease.check()
    lease.release()
    eventually(lambda: lease.claimant.hub.is_closed)


def test_a_connection_that_comes_after_the_close_writes_into_nobody_elses_file(tmp_path: Path) -> None:
    """The number of the closed pipe is given to the next file that the program opens."""
    ready, late = Event(), Event()
    ready.set()
    stores: list[Store] = [SlowToConnect(MemoryStore(str(each)), ready if each else late) for each in range(4)]
    service = quorum(stores)
    service.lock("door").hold(LIMIT).__enter__().release()
    bell = service.desk.hub._bell
    assert bell is not None
    service.close()
    files = [(tmp_path / f"data {each}").open("wb") for each in range(max(bell))]
    late.set()
    time.sleep(0.3)
    for file in files:
        file.close()
    assert [path.read_bytes() for path in tmp_path.iterdir() if path.read_bytes()] == []


def test_a_bell_that_somebody_else_has_heard_is_no_error(redis: RedisServer) -> None:
    """One thread slept at the poller and was told of the bell; before it had the mutex, another read the bell."""
    with trinco.connect(redis.url) as service:
        service.lock("door").hold(LIMIT).__enter__().release()
        hub = service.desk.hub
        with service.desk.waiting.mutex:
            hub.ring()
            events = hub.poller.poll(1)
            hub.ready(events)
            hub.ready(events)


def test_renewals_by_many_threads_at_once_are_one_lease(redis: RedisServer) -> None:
    with trinco.connect(redis.url) as service, service.lock("renewed").hold(LIMIT) as lease:
        Crowd(lambda _: _renew_often(lease), THREADS).join()
        assert lease.valid
        assert service.inspect("renewed").token == lease.token


def _renew_often(lease: trinco.Lease) -> None:
    for _ in range(10):
        lease.renew()


def test_releases_by_many_threads_at_once_are_one_release(redis: RedisServer) -> None:
    with trinco.connect(redis.url) as service:
        lease = service.lock("released").hold(LIMIT).__enter__()
        Crowd(lambda _: lease.release(), THREADS).join()
        with service.lock("released").hold(LIMIT) as later:
            lease.release()
            later.check()
            assert service.inspect("released").held


def test_everybody_sees_the_same_event() -> None:
    with quorum(four_stores()) as service:
        for number in range(50):
            lease = take(service.lock(f"door {number}"))
            events: list[object] = []
            together = Barrier(4)

            def look(
                _: int, lease: trinco.Lease = lease, events: list[object] = events, at: Barrier = together
            ) -> None:
                at.wait(LIMIT)
                events.append(lease.lost)

            Crowd(look, 4).join()
            assert len(set(map(id, events))) == 1
            lease.release()


def test_a_thread_that_gives_up_wakes_another_to_take_its_place() -> None:
    """The one who sleeps at the poller for all others leaves; they must not wait for its return."""
    store = MemoryStore("place")
    with LockService([store]) as ana, LockService([store]) as bruno:
        held = take(bruno.lock("door"))
        first = Waiter(ana.lock("door"), timeout=0.3)
        in_line(bruno, "door", 1)

        def work(_: int) -> None:
            with ana.lock("door").hold(LIMIT):
                return

        others = Crowd(work, 3)
        in_line(bruno, "door", 4)
        with pytest.raises(trinco.AcquireTimeout):
            first.join()
        held.release()
        with within(2):
            others.join()
