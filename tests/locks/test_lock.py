"""A lock as a user holds it, on one store: the shape of ``threading.Lock``, time-outs, names, re-entrancy."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from threading import Event, Thread
from typing import Any

import pytest

import trinco
from tests.locks.services import (
    LIMIT,
    Clock,
    Outage,
    SlowToConnect,
    TamperedStore,
    Waiter,
    in_line,
    one_store,
    take,
    unattended,
    within,
)
from tests.stores.redis_caller import vendor
from tests.stores.servers import RedisServer
from trinco.core.errors import DamagedData
from trinco.locks.lease import Lease
from trinco.locks.service import LockService
from trinco.stores.clock import boottime
from trinco.stores.memory import MemoryLink, MemoryStore
from trinco.stores.wake import NotNow
from trinco.testing import ManualClock, memory_service


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore("locks")


@pytest.fixture
def ana(store: MemoryStore) -> Iterator[LockService]:
    with one_store(store, client="ana@here:1") as service:
        yield service


@pytest.fixture
def bruno(store: MemoryStore) -> Iterator[LockService]:
    with one_store(store, client="bruno@there:2") as service:
        yield service


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


# The shape of threading.Lock


def test_acquire_and_release_are_those_of_a_threading_lock(ana: LockService) -> None:
    lock = ana.lock("door")
    assert not lock.locked()
    assert lock.acquire()
    assert lock.locked()
    assert lock.lease is not None
    assert not lock.acquire(blocking=False)
    assert not lock.acquire(timeout=0.05)
    assert not lock.acquire(False, -1)
    lock.release()
    assert lock.lease is None
    assert not lock.locked()
    with pytest.raises(trinco.NotHeld):
        lock.release()


def test_locked_sees_what_others_hold(ana: LockService, bruno: LockService) -> None:
    with take(ana.lock("door")):
        assert bruno.lock("door").locked()
    assert not bruno.lock("door").locked()


def test_any_thread_may_release(ana: LockService) -> None:
    lock = ana.lock("door")
    lock.acquire()
    thread = Thread(target=lock.release)
    thread.start()
    thread.join(LIMIT)
    assert not lock.locked()


def test_who_does_not_block_gives_no_timeout(ana: LockService) -> None:
    with pytest.raises(trinco.UsageError, match="takes no timeout"):
        ana.lock("door").acquire(False, 1)


@pytest.mark.parametrize("timeout", [-2, -0.5, float("nan"), float("inf"), "5", True, timedelta(seconds=-1)])
def test_a_timeout_that_makes_no_sense_is_refused(ana: LockService, timeout: float) -> None:
    with pytest.raises(trinco.UsageError, match="timeout"):
        ana.lock("door").hold(timeout)
    with pytest.raises(trinco.UsageError, match="timeout"):
        ana.lock("door").acquire(timeout=timeout)


def test_whether_a_lease_is_what_is_seen_can_be_told(ana: LockService, bruno: LockService) -> None:
    with take(ana.lock("door")) as lease:
        seen = bruno.inspect("door")
        assert seen.held
        assert seen.token == lease.token
        assert lease.owner.startswith(f"{seen.owner}/")


def test_two_locks_of_one_name_exclude_each_other_and_two_names_do_not(ana: LockService) -> None:
    with take(ana.lock("door")), take(ana.lock("window")):
        assert ana.lock("door").try_acquire() is None


def test_a_with_block_holds_the_lock(ana: LockService, bruno: LockService) -> None:
    with ana.lock("door") as lease:
        assert lease.valid
        assert bruno.lock("door").try_acquire() is None
    assert not lease.valid


def test_the_end_of_a_with_block_releases_its_own_lease_only() -> None:
    """ana's thread is slow and loses the lock; bruno's enters with the same object; ana's leaves."""
    clock = ManualClock()
    with memory_service(clock) as service:
        lock = service.lock("door")
        entered, told = threading.Event(), threading.Event()

        def ana() -> None:
            with pytest.raises(trinco.LeaseLost), lock:  # noqa: PT012 (it is raised at the end of the block)
                entered.set()
                told.wait(10)

        slow = threading.Thread(target=ana)
        slow.start()
        assert entered.wait(10)
        clock.advance(31)
        with lock as second:
            told.set()
            slow.join(10)
            assert second.valid


@pytest.mark.parametrize("first", ["try_acquire", "acquire"])
def test_the_first_question_to_a_server_may_be_one_that_does_not_wait(redis: RedisServer, first: str) -> None:
    with trinco.connect(redis.url) as service:
        lock = service.lock(f"first {first}")
        assert lock.try_acquire() is not None if first == "try_acquire" else lock.acquire(blocking=False)


def full(redis: RedisServer, limit: int) -> None:
    with vendor(redis) as connection:
        connection.config_set("maxmemory", limit)


@pytest.mark.parametrize("ask", ["hold", "acquire", "with", "try_acquire"])
def test_a_store_that_can_do_nothing_is_told_and_not_taken_for_a_rival(redis: RedisServer, ask: str) -> None:
    """What it answers to the withdrawal, which needs no memory, must not hide that."""
    with trinco.connect(redis.url) as service:
        take(service.lock("warm")).release()
        lock = service.lock(f"full {ask}")
        ways: dict[str, Callable[[], object]] = {
            "hold": lambda: lock.hold().__enter__(),
            "acquire": lock.acquire,
            "with": lock.__enter__,
            "try_acquire": lock.try_acquire,
        }
        full(redis, 1)
        try:
            with pytest.raises(trinco.StoreUnavailable, match="memory is full"):
                ways[ask]()
        finally:
            full(redis, 0)


# Time-outs


def test_who_had_no_time_to_connect_hears_that_time_is_over_and_nothing_of_the_store() -> None:
    answer = Event()
    with LockService([SlowToConnect(MemoryStore("slow"), answer)]) as service:
        with pytest.raises(trinco.AcquireTimeout):
            service.lock("door").hold(timeout=0.01).__enter__()
        assert service.lock("door").acquire(timeout=0.01) is False
        answer.set()
        assert service.lock("door").hold(timeout=LIMIT).__enter__().valid


def test_a_timeout_names_the_lock_the_time_and_the_holder(ana: LockService, bruno: LockService) -> None:
    with take(ana.lock("door")), pytest.raises(trinco.AcquireTimeout) as caught, bruno.lock("door").hold(timeout=0.05):
        pass
    assert isinstance(caught.value, TimeoutError)
    for word in ("door", "50 ms", "ana@here:1"):
        assert word in str(caught.value)


def test_times_may_be_timedeltas(ana: LockService, bruno: LockService) -> None:
    lease = take(ana.lock("door", ttl=timedelta(minutes=1), max_hold=timedelta(hours=1)))
    assert 30 < lease.remaining <= 60
    with within(1), pytest.raises(trinco.AcquireTimeout), bruno.lock("door").hold(timedelta(milliseconds=20)):
        pass
    lease.release()


def test_a_timeout_of_zero_asks_once(ana: LockService, bruno: LockService) -> None:
    with take(ana.lock("door")), within(0.5), pytest.raises(trinco.AcquireTimeout), bruno.lock("door").hold(0):
        pass
    with bruno.lock("door").hold(0) as lease:
        assert lease.valid


def test_whoever_gives_up_leaves_the_line(ana: LockService, bruno: LockService) -> None:
    with take(ana.lock("door")):
        assert not bruno.lock("door").acquire(timeout=0.05)
        assert ana.inspect("door").waiters == ()
    assert take(ana.lock("door")).valid


def test_waiters_are_served_in_their_order(ana: LockService, bruno: LockService) -> None:
    held = take(ana.lock("door"))
    waiters = []
    for number in range(4):
        waiters.append(Waiter((ana, bruno)[number % 2].lock("door")))
        in_line(ana, "door", number + 1)
    held.release()
    tokens = []
    for waiter in waiters:
        lease = waiter.join()
        tokens.append(lease.token or 0)
        lease.release()
    assert tokens == sorted(tokens)


class Interrupted(BaseException):
    """As Ctrl-C is."""


def never() -> bool:
    return False


class InterruptingClock:
    """Goes on as usual; once it is armed, the first look at it after ``when`` holds is interrupted."""

    def __init__(self) -> None:
        self.when: Callable[[], bool] = never

    def __call__(self) -> float:
        if self.when():
            self.when = never
            raise Interrupted
        return boottime()


def test_an_interrupt_right_after_the_grant_leaves_nothing_held(store: MemoryStore, bruno: LockService) -> None:
    clock = InterruptingClock()
    with one_store(store, clock=clock) as service:
        clock.when = lambda: any(each.is_holding for each in service.desk.hub.active.values())
        with pytest.raises(Interrupted), service.lock("door").hold():
            pass
        assert not bruno.inspect("door").held


def test_an_interrupt_while_waiting_leaves_nobody_in_line(store: MemoryStore, bruno: LockService) -> None:
    clock = InterruptingClock()
    with one_store(store, clock=clock) as service, take(bruno.lock("door")):
        clock.when = lambda: bool(bruno.inspect("door").waiters)
        with pytest.raises(Interrupted), service.lock("door").hold(timeout=LIMIT):
            pass
        assert bruno.inspect("door").waiters == ()


# The end of a hold


def fail_after(step: Callable[[], object]) -> None:
    step()
    raise ValueError("body")


def test_a_hold_never_hides_the_error_of_its_body(ana: LockService) -> None:
    with pytest.raises(ValueError, match="body"), ana.lock("door").hold():
        raise ValueError("body")
    assert not ana.lock("door").locked()


def test_the_error_of_the_body_survives_a_loss() -> None:
    clock = ManualClock()
    with memory_service(clock) as service, pytest.raises(ValueError, match="body"), service.lock("door").hold():
        fail_after(lambda: clock.advance(31))


def test_the_error_of_the_body_survives_a_store_that_is_gone() -> None:
    outage = Outage()
    with (
        one_store(TamperedStore(MemoryStore(), before=outage)) as service,
        pytest.raises(ValueError, match="body"),
        service.lock("door").hold(),
    ):
        fail_after(outage.begin)


class Nonsense:
    """Makes a tampered store fail as no store may, once it is armed."""

    def __init__(self) -> None:
        self._is_armed = False

    def arm(self) -> None:
        self._is_armed = True

    def __call__(self, access: object) -> None:
        if self._is_armed:
            self._is_armed = False
            raise DamagedData("memory:nonsense says what nobody understands")


@pytest.mark.parametrize("by_hold", [True, False])
@pytest.mark.parametrize("reentrant", [True, False])
def test_the_error_of_the_body_survives_a_release_that_fails(by_hold: bool, reentrant: bool) -> None:
    nonsense = Nonsense()
    service = one_store(TamperedStore(MemoryStore(), before=nonsense))
    lock = service.lock("door", reentrant=reentrant)
    with pytest.raises(ValueError, match="body"), lock.hold() if by_hold else lock:
        fail_after(nonsense.arm)
    with service.lock("window").hold():
        nonsense.arm()
    assert service.lock("window").try_acquire(), "what could not be released was, on a new link"


def test_the_error_of_the_body_survives_a_service_that_was_closed(ana: LockService) -> None:
    with pytest.raises(ValueError, match="body"), ana.lock("door").hold():
        fail_after(ana.close)


def test_the_error_of_the_body_survives_a_callback_that_raises() -> None:
    clock = Clock()

    def complain(lease: object) -> None:
        raise RuntimeError("the callback")

    with (
        unattended(MemoryStore(clock=clock), clock) as service,
        pytest.raises(ValueError, match="body"),
        service.lock("door", on_lost=complain, auto_renew=False).hold(),
    ):
        fail_after(lambda: clock.pass_by(31))


def test_the_end_of_a_hold_tells_that_the_lock_was_lost() -> None:
    clock = ManualClock()
    with (
        memory_service(clock) as service,
        pytest.raises(trinco.LeaseLost, match="30 s") as caught,
        service.lock("door").hold(),
    ):
        clock.advance(31)
    assert caught.value.reason == "expired"


# Re-entrancy


def test_a_lock_is_not_reentrant_unless_asked(ana: LockService) -> None:
    lock = ana.lock("door")
    lock.acquire()
    assert not lock.acquire(timeout=0.05)
    lock.release()


def test_a_reentrant_lock_is_released_as_often_as_it_was_acquired(ana: LockService, bruno: LockService) -> None:
    lock = ana.lock("door", reentrant=True)
    assert lock.acquire()
    assert lock.acquire(blocking=False)
    lock.release()
    assert bruno.lock("door").locked()
    lock.release()
    assert not bruno.lock("door").locked()
    with pytest.raises(trinco.NotHeld):
        lock.release()


def test_a_reentrant_lock_lets_no_other_thread_in(ana: LockService) -> None:
    lock = ana.lock("door", reentrant=True)
    lock.acquire()
    seen: list[object] = []
    thread = Thread(target=lambda: seen.append(lock.acquire(timeout=0.05)))
    thread.start()
    thread.join(LIMIT)
    assert seen == [False]
    lock.release()


def test_a_reentrant_lock_that_was_lost_is_taken_anew() -> None:
    clock = ManualClock()
    with memory_service(clock) as service:
        lock = service.lock("door", reentrant=True)
        lock.acquire()
        first = lock.lease
        clock.advance(31)
        assert lock.acquire(blocking=False)
        assert lock.lease is not first
        assert lock.lease is not None
        assert lock.lease.valid


def test_a_reentrant_lock_may_be_held_in_nested_blocks(ana: LockService) -> None:
    lock = ana.lock("door", reentrant=True)
    with lock.hold() as outer, lock.hold(timeout=0.2) as inner:
        assert inner.token == outer.token


def test_a_reentrant_with_block_may_be_nested(ana: LockService) -> None:
    lock = ana.lock("door", reentrant=True)
    with lock as outer:
        with lock as inner:
            assert inner is outer
        assert outer.valid
    assert not outer.valid


class Overstayer:
    """A thread that enters and is still inside when its term is over; then its body fails."""

    def __init__(self, enter: Callable[[], AbstractContextManager[Lease]]) -> None:
        self.error: BaseException | None = None
        self.is_in, self.is_told = Event(), Event()
        self._enter = enter
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.is_in.wait(LIMIT)

    def _run(self) -> None:
        try:
            with self._enter():
                self.is_in.set()
                self.is_told.wait(LIMIT)
                raise KeyError("body")
        except BaseException as error:
            self.error = error

    def fail(self) -> None:
        self.is_told.set()
        self._thread.join(LIMIT)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("by_hold", [True, False])
def test_who_leaves_a_reentrant_lock_too_late_leaves_its_own_lease_and_fails_by_its_own_error(by_hold: bool) -> None:
    clock = ManualClock()
    with memory_service(clock) as service:
        lock = service.lock("door", ttl=1, auto_renew=False, reentrant=True)
        slow = Overstayer(lock.hold if by_hold else lambda: lock)
        clock.advance(2)
        with lock.hold() as mine, lock.hold():
            slow.fail()
            assert isinstance(slow.error, KeyError)
            assert mine.valid
            assert lock.lease is mine
        assert not lock.locked()
        with pytest.raises(trinco.NotHeld):
            lock.release()


def test_a_reentrant_lock_that_was_lost_amid_blocks_is_left_as_often_as_it_was_entered() -> None:
    clock = ManualClock()
    with memory_service(clock) as service:
        lock = service.lock("door", reentrant=True)
        with pytest.raises(trinco.LeaseLost), lock.hold() as first:  # noqa: PT012 (it is raised at the end of the block)
            clock.advance(31)
            with lock.hold() as second, lock.hold() as third:
                assert second is third is not first
            assert not lock.locked()
        assert lock.lease is None


def test_a_reentrant_lock_is_not_released_by_another_thread(ana: LockService) -> None:
    lock = ana.lock("door", reentrant=True)
    lock.acquire()
    seen: list[str] = []

    def release() -> None:
        try:
            lock.release()
        except trinco.NotHeld as error:
            seen.append(str(error))

    thread = Thread(target=release)
    thread.start()
    thread.join(LIMIT)
    assert "another thread" in seen[0]
    lock.release()
    assert not lock.locked()


# What may be asked for


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00", "a\x7f", "\ud800", "x" * 201, "\u202e", 7, None, b"bytes"])
def test_an_odd_name_is_refused(ana: LockService, name: str) -> None:
    for make in (ana.lock, ana.election, ana.inspect, ana.break_, lambda name: ana.semaphore(name, 2)):
        with pytest.raises(trinco.UsageError, match="name"):
            make(name)


@pytest.mark.parametrize(
    "name", ["x" * 200, "a b", "a/b/../c", "{tag}", "}{", "*?[]\\", "nação", "😀" * 200, "'; DROP TABLE", "%s%00"]
)
def test_every_printable_name_is_its_own_lock(name: str, redis: RedisServer) -> None:
    with trinco.connect(redis.url) as service, service.lock(name).hold(LIMIT) as lease:
        info = service.inspect(name)
        assert (info.held, info.token, info.name) == (True, lease.token, name)
        assert [each.name for each in service.list(name)] == [name]
        assert not service.inspect(name[:-1] + "!").held


@pytest.mark.parametrize("ttl", [0, -1, 0.5, 60.5, 1e9, float("nan"), float("inf"), "30", True])
def test_an_absurd_ttl_is_refused(ana: LockService, ttl: float) -> None:
    with pytest.raises(trinco.UsageError, match="ttl"):
        ana.lock("door", ttl=ttl)


@pytest.mark.parametrize("max_hold", [0, -1, float("nan"), "9"])
def test_an_absurd_max_hold_is_refused(ana: LockService, max_hold: float) -> None:
    with pytest.raises(trinco.UsageError, match="max_hold"):
        ana.lock("door", max_hold=max_hold)


def test_metadata_has_a_limit_in_bytes(ana: LockService, bruno: LockService) -> None:
    words = "nação " * 128
    assert len(words.encode()) == 1024
    with take(ana.lock("door", metadata=words)):
        assert bruno.inspect("door").metadata == words
    bad: Any
    for bad in (words + "x", b"bytes", {"a": 1}, "\ud800"):
        with pytest.raises(trinco.UsageError, match="metadata"):
            ana.lock("door", metadata=bad)


def test_where_leases_are_shorter_than_the_default_the_default_is_shorter() -> None:
    """A store with t_max=2s takes no lease of 30 s; its locks and ``break_`` must work without saying so each time."""
    with one_store(MemoryStore(t_max=2.0)) as service:
        lease = take(service.lock("door"))
        assert lease.remaining <= 2
        assert service.break_("door")


# A service that was closed


def test_a_closed_service_has_released_everything(ana: LockService, bruno: LockService) -> None:
    leases = [take(ana.lock(f"door {number}")) for number in range(3)]
    ana.close()
    ana.close()
    assert not any(lease.valid for lease in leases)
    assert not any(info.held for info in bruno.list("door"))
    with pytest.raises(trinco.StoreUnavailable, match="closed"):
        ana.lock("door").try_acquire()
    with pytest.raises(trinco.StoreUnavailable, match="closed"):
        ana.inspect("door")
    leases[0].release()


# Breaking


def test_only_the_token_that_was_named_is_broken(ana: LockService, bruno: LockService) -> None:
    first = take(ana.lock("door"))
    assert first.token is not None
    assert not bruno.break_("door", token=first.token + 1)
    assert bruno.break_("door", token=first.token)
    assert not bruno.break_("door")
    second = take(bruno.lock("door"))
    assert second.token is not None
    assert second.token > first.token
    assert not ana.break_("door", token=first.token)
    first.release()
    assert second.valid
    assert ana.inspect("door").token == second.token


# A store that was reached and did nothing


def test_a_store_that_did_nothing_is_quoted_and_not_taken_for_a_rival(
    ana: LockService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NotNow("memory:locks cannot do it today")

    take(ana.lock("door")).release()
    monkeypatch.setattr(MemoryLink, "_transact", refuse)
    with pytest.raises(trinco.StoreUnavailable, match="cannot do it today"):
        ana.lock("door").try_acquire()
    with pytest.raises(trinco.StoreUnavailable, match="cannot do it today"):
        ana.lock("door").acquire(timeout=1)
