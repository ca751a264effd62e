"""Locks on a clock that the test moves, as users of ``trinco.testing`` meet them."""

import gc
from datetime import timedelta
from threading import Thread
from time import monotonic
from weakref import ref

import pytest

from trinco.core.errors import AcquireTimeout, LeaseLost
from trinco.locks.keeper import Keeper
from trinco.locks.lease import Lease
from trinco.locks.service import LockService
from trinco.testing import ManualClock, memory_service
from trinco.testing.plugin import trinco_clock, trinco_service

__all__ = ["trinco_clock", "trinco_service"]

LIMIT = 10.0


def test_a_lease_is_lost_when_its_term_has_passed(trinco_service: LockService, trinco_clock: ManualClock) -> None:
    told: list[Lease] = []
    lease = trinco_service.lock("nightly", ttl=30, on_lost=told.append).try_acquire()
    assert lease is not None
    trinco_clock.advance(31)
    assert not lease.valid
    assert lease.lost.is_set()
    assert told == [lease]
    with pytest.raises(LeaseLost):
        lease.check()


def test_small_steps_keep_a_lease_alive(trinco_service: LockService, trinco_clock: ManualClock) -> None:
    lease = trinco_service.lock("nightly", ttl=30).try_acquire()
    assert lease is not None
    for _ in range(20):
        trinco_clock.advance(10)
        lease.check()
    assert lease.remaining > 15


def test_without_renewal_small_steps_end_it_too(trinco_service: LockService, trinco_clock: ManualClock) -> None:
    lease = trinco_service.lock("nightly", ttl=30, auto_renew=False).try_acquire()
    assert lease is not None
    for _ in range(3):
        trinco_clock.advance(10)
    assert lease.lost.is_set()


def test_max_hold_ends_a_lease_that_is_renewed(trinco_service: LockService, trinco_clock: ManualClock) -> None:
    lease = trinco_service.lock("nightly", ttl=30, max_hold=45).try_acquire()
    assert lease is not None
    for _ in range(4):
        trinco_clock.advance(10)
    assert lease.valid
    trinco_clock.advance(10)
    assert lease.reason == "overtime"


def test_no_time_passes_by_itself(trinco_service: LockService) -> None:
    lease = trinco_service.lock("nightly").try_acquire()
    assert lease is not None
    before = lease.remaining
    end = monotonic() + 0.05
    while monotonic() < end:
        assert lease.remaining == before


def test_a_lock_whose_holder_is_gone_can_be_taken() -> None:
    clock = ManualClock()
    with memory_service(clock) as crashed:
        assert crashed.lock("nightly", auto_renew=False).try_acquire() is not None
        clock.advance(29)
        assert crashed.lock("nightly").try_acquire() is None
        clock.advance(1)
        assert crashed.lock("nightly").try_acquire() is not None


@pytest.mark.parametrize("how_many", [1, 3])
def test_threads_that_wait_notice_that_time_has_passed(how_many: int) -> None:
    clock = ManualClock()
    with memory_service(clock) as service:
        assert service.lock("nightly", auto_renew=False).try_acquire() is not None
        outcomes: list[str] = []

        def wait() -> None:
            try:
                service.lock("nightly", auto_renew=False).hold(timeout=5).__enter__()
            except AcquireTimeout:
                outcomes.append("timed out")

        threads = [Thread(target=wait, daemon=True) for _ in range(how_many)]
        for thread in threads:
            thread.start()
        end = monotonic() + LIMIT
        while len(service.inspect("nightly").waiters) < how_many:
            assert monotonic() < end
        clock.advance(6)
        for thread in threads:
            thread.join(LIMIT)
        assert outcomes == ["timed out"] * how_many


@pytest.mark.parametrize("step", [-1, timedelta(seconds=-1)])
def test_time_does_not_run_backwards(step: float) -> None:
    with pytest.raises(ValueError, match="forwards"):
        ManualClock().advance(step)


def test_a_step_is_any_duration_that_a_lock_takes(trinco_service: LockService, trinco_clock: ManualClock) -> None:
    lease = trinco_service.lock("nightly", ttl=timedelta(minutes=1)).try_acquire()
    assert lease is not None
    trinco_clock.advance(timedelta(seconds=61))
    assert lease.lost.is_set()


def test_two_services_are_two_worlds() -> None:
    with memory_service() as one, memory_service() as other:
        assert one.lock("nightly").try_acquire() is not None
        assert other.lock("nightly").try_acquire() is not None


def test_advancing_after_the_end_is_harmless() -> None:
    clock = ManualClock()
    memory_service(clock).close()
    clock.advance(100)


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_clock_keeps_no_service_that_nobody_has(is_closed: bool) -> None:
    clock = ManualClock()
    service = memory_service(clock)
    assert service.lock("nightly").try_acquire() is not None
    clock.advance(1)
    seen = ref(service)
    if is_closed:
        service.close()
    del service
    gc.collect()
    assert seen() is None


def test_a_closed_service_that_somebody_has_costs_a_clock_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    caught_up: list[Keeper] = []
    plain = Keeper.catch_up
    monkeypatch.setattr(Keeper, "catch_up", lambda keeper: (caught_up.append(keeper), plain(keeper)))
    clock = ManualClock()
    closed, used = memory_service(clock), memory_service(clock)
    closed.close()
    clock.advance(1)
    caught_up.clear()
    clock.advance(1)
    assert caught_up == [used.desk.keeper]
    used.close()


def test_a_lease_whose_service_nobody_has_is_renewed_and_lost_by_the_clock() -> None:
    clock = ManualClock()
    lease = memory_service(clock).lock("nightly", ttl=30).try_acquire()
    assert lease is not None
    gc.collect()
    for _ in range(5):
        clock.advance(10)
        lease.check()
    clock.advance(31)
    assert lease.lost.is_set()
