"""Semaphores: k units, each with a token of its own."""

from collections.abc import Generator, Iterator
from threading import Barrier
from threading import Lock as Mutex

import pytest

import trinco
from tests.locks.services import LIMIT, Crowd, Waiter, eventually, four_stores, one_store, quorum, take
from trinco.locks.lease import Lease
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore


@pytest.fixture
def ana() -> Iterator[LockService]:
    with one_store(client="ana") as service:
        yield service


@pytest.mark.parametrize("limit", [0, -1, 1001, 2.0, "2", None, True])
def test_an_absurd_limit_is_refused(ana: LockService, limit: int) -> None:
    with pytest.raises(trinco.UsageError, match="units"):
        ana.semaphore("gpu", limit)


def test_there_are_as_many_units_as_it_says(ana: LockService) -> None:
    gpu = ana.semaphore("gpu", 3)
    leases = [take(gpu) for _ in range(3)]
    assert {lease.slot for lease in leases} == {0, 1, 2}
    assert {lease.name for lease in leases} == {"gpu"}
    assert gpu.try_acquire() is None
    assert gpu.locked()
    leases[1].release()
    assert not gpu.locked()
    assert take(gpu).slot == leases[1].slot


def test_one_unit_is_a_lock_with_a_slot(ana: LockService) -> None:
    gpu = ana.semaphore("gpu", 1)
    lease = take(gpu)
    assert lease.slot == 0
    assert gpu.try_acquire() is None


def test_tokens_rise_within_a_slot(ana: LockService) -> None:
    last: dict[int | None, int] = {}
    for _ in range(12):
        with take(ana.semaphore("gpu", 2)) as lease:
            assert (lease.token or 0) > last.get(lease.slot, 0)
            last[lease.slot] = lease.token or 0


def test_a_waiter_gets_whatever_unit_becomes_free(ana: LockService) -> None:
    gpu = ana.semaphore("gpu", 3)
    leases = [take(gpu) for _ in range(3)]
    waiter = Waiter(ana.semaphore("gpu", 3))
    eventually(lambda: all(ana.inspect(f"gpu[{slot}]").waiters for slot in range(3)))
    leases[2].release()
    assert waiter.join().slot == leases[2].slot
    eventually(lambda: not any(ana.inspect(f"gpu[{slot}]").waiters for slot in range(3)))
    assert leases[0].valid
    assert leases[1].valid


def test_a_timeout_names_the_holders(ana: LockService) -> None:
    gpu = ana.semaphore("gpu", 2)
    with take(gpu), take(gpu), pytest.raises(trinco.AcquireTimeout, match="ana"), gpu.hold(timeout=0.05):
        pass


def test_each_release_gives_one_unit_back(ana: LockService) -> None:
    """As ``threading.Semaphore`` does."""
    gpu = ana.semaphore("gpu", 2)
    assert gpu.acquire()
    assert gpu.acquire()
    assert not gpu.acquire(blocking=False)
    gpu.release()
    gpu.release()
    assert not any(info.held for info in ana.list("gpu"))


@pytest.mark.parametrize("by_hold", [True, False])
def test_threads_in_units_of_one_reentrant_semaphore_leave_their_own(ana: LockService, by_hold: bool) -> None:
    gpu = ana.semaphore("gpu", 2, reentrant=True)
    line = Barrier(2)

    def work(_: int) -> None:
        with gpu.hold(LIMIT) if by_hold else gpu as outer:
            line.wait(LIMIT)
            with gpu.hold(LIMIT) if by_hold else gpu as inner:
                assert inner is outer
                line.wait(LIMIT)
            assert outer.valid
            line.wait(LIMIT)
        assert not outer.valid

    Crowd(work, 2).join()
    assert not any(info.held for info in ana.list("gpu"))


def test_threads_that_release_what_others_acquired_give_each_unit_back_once(ana: LockService) -> None:
    gpu = ana.semaphore("gpu", 8)
    for _ in range(10):
        for _ in range(8):
            assert gpu.acquire()
        Crowd(lambda _: gpu.release(), 8).join()
        assert not any(info.held for info in ana.list("gpu"))
    with pytest.raises(trinco.NotHeld):
        gpu.release()


def test_a_semaphore_can_be_looked_at(ana: LockService) -> None:
    """As a lock can: somebody who asks about it must not hear that nobody is in."""
    gpu = ana.semaphore("gpu", 2)
    with take(gpu):
        assert gpu.inspect().held


def test_never_more_than_k_are_inside(ana: LockService) -> None:
    inside, most, mutex = 0, 0, Mutex()

    def work(_: int) -> None:
        nonlocal inside, most
        for _ in range(8):
            with ana.semaphore("gpu", 3).hold(LIMIT) as lease:
                with mutex:
                    inside += 1
                    most = max(most, inside)
                lease.check()
                with mutex:
                    inside -= 1

    Crowd(work, 8).join()
    assert 1 <= most <= 3
    assert not any(info.held for info in ana.list("gpu"))


def test_a_semaphore_works_on_a_quorum() -> None:
    stores = four_stores()
    with quorum(stores) as ana, quorum(stores) as bruno:
        leases = [take(each.semaphore("gpu", 2)) for each in (ana, bruno)]
        assert {lease.slot for lease in leases} == {0, 1}
        assert ana.semaphore("gpu", 2).try_acquire() is None
        waiter = Waiter(bruno.semaphore("gpu", 2))
        eventually(lambda: ana.inspect("gpu[0]").waiters)
        leases[0].release()
        assert waiter.join().slot == leases[0].slot


def test_a_long_name_is_refused_with_the_length_that_is_allowed(ana: LockService) -> None:
    """Units have names of their own, so less than 200 characters are left; whoever asks must learn how many."""
    with pytest.raises(trinco.UsageError, match="name"):
        ana.semaphore("x" * 199, 2)
    assert take(ana.semaphore("x" * 190, 1000)).valid


def test_two_stores_of_memory_are_two_semaphores() -> None:
    with one_store(MemoryStore("a")) as ana, one_store(MemoryStore("b")) as bruno:
        assert take(ana.semaphore("gpu", 1)).slot == take(bruno.semaphore("gpu", 1)).slot == 0


def test_holds_of_one_thread_that_end_in_another_order_give_their_own_units_back(ana: LockService) -> None:
    """As generators end: a ``with`` block on the semaphore itself could not tell which stay is over."""
    gpu = ana.semaphore("gpu", 2)

    def stay() -> Generator[Lease]:
        with gpu.hold(LIMIT) as lease:
            yield lease

    first, second = stay(), stay()
    one, other = next(first), next(second)
    first.close()
    assert other.valid
    assert take(gpu).slot == one.slot
    second.close()
