"""What a holder has in its hands: belief, renewal, loss, and the clock that all of them are counted on."""

import time
from collections.abc import Iterator
from threading import Event, Thread

import pytest

import trinco
from tests.locks.services import (
    LIMIT,
    Clock,
    Outage,
    TamperedStore,
    eventually,
    one_store,
    quorum,
    take,
    unattended,
    within,
)
from trinco.leases.accesses import Access, Apply
from trinco.leases.operation import Extend, Request
from trinco.locks.lease import Lease
from trinco.locks.service import LockService
from trinco.stores import clock as clocks
from trinco.stores.memory import MemoryStore
from trinco.stores.store import Store
from trinco.testing import ManualClock, memory_service
from trinco.testing.stores import catch_up


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def service(clock: ManualClock) -> Iterator[LockService]:
    with memory_service(clock) as service:
        yield service


@pytest.fixture
def two() -> Iterator[tuple[LockService, LockService]]:
    store = MemoryStore("two")
    with one_store(store, client="ana") as ana, one_store(store, client="bruno") as bruno:
        yield ana, bruno


# Renewal


def test_a_lease_is_renewed_for_as_long_as_it_is_held(clock: ManualClock, service: LockService) -> None:
    lease = take(service.lock("door"))
    for _ in range(12):
        clock.advance(10)
        lease.check()
    assert service.inspect("door").token == lease.token


def test_a_lease_whose_grant_was_long_under_way_is_renewed_before_it_ends() -> None:
    """What is left of it is less than the usual pause before a renewal."""
    clock = Clock()
    under_way = [20.0, 0.0, 8.0]

    def before(access: Access) -> None:
        if isinstance(access, Apply) and isinstance(access.operation, Request | Extend) and under_way:
            clock.pass_by(under_way.pop(0))

    with one_store(TamperedStore(MemoryStore("late", clock=clock), before=before), clock=clock) as service:
        lease = take(service.lock("door"))
        for _ in range(60):
            clock.pass_by(1)
            catch_up(service)
            lease.check()
        assert under_way == []


@pytest.mark.parametrize("stores", [1, 4])
def test_a_lock_that_is_held_for_long_is_in_nobody_elses_way(stores: int) -> None:
    """Timers of accesses that were answered long ago go off, and that is no reason to give a link up."""
    clock = Clock()
    memory: list[Store] = [MemoryStore(str(each), clock=clock) for each in range(stores)]
    with one_store(memory[0], clock=clock) if stores == 1 else quorum(memory, clock=clock) as service:
        held = take(service.lock("held"))
        for _ in range(60):
            clock.pass_by(1)
            catch_up(service)
            take(service.lock("other")).release()
        assert held.valid
        assert (service.desk.hub.losses, service.desk.hub.connected()) == (0, stores)


def test_a_lease_that_is_not_renewed_ends(clock: ManualClock, service: LockService) -> None:
    lease = take(service.lock("door", auto_renew=False))
    clock.advance(29)
    assert 0 < lease.remaining < 1
    clock.advance(1)
    assert lease.remaining == 0
    assert not lease.valid
    assert lease.lost.is_set()
    assert take(service.lock("door")).valid


def test_a_renewal_sets_the_term_and_never_adds_to_it(clock: ManualClock, service: LockService) -> None:
    lease = take(service.lock("door", auto_renew=False))
    for _ in range(5):
        clock.advance(1)
        lease.renew()
    assert 29.9 < lease.remaining <= 30
    assert service.inspect("door").remaining <= 30


def test_a_renewal_keeps_the_token(clock: ManualClock, service: LockService) -> None:
    lease = take(service.lock("door"))
    before = lease.token
    clock.advance(15)
    lease.renew()
    assert lease.token == before == service.inspect("door").token


def test_max_hold_ends_a_lease_however_often_it_is_renewed(clock: ManualClock, service: LockService) -> None:
    told: list[Lease] = []
    lease = take(service.lock("door", max_hold=25, on_lost=told.append))
    for _ in range(2):
        clock.advance(10)
        lease.renew()
        assert lease.remaining <= 25
    clock.advance(5)
    assert (lease.valid, lease.reason, told) == (False, "overtime", [lease])
    with pytest.raises(trinco.LeaseLost, match="max_hold"):
        lease.renew()
    assert take(service.lock("door")).valid


def test_a_renewal_that_failed_is_not_taken_for_one_that_worked() -> None:
    """Also right after the lease was taken, when the old term is still as good as new."""
    outage = Outage()
    with one_store(TamperedStore(MemoryStore(), before=outage)) as service:
        lease = take(service.lock("door", auto_renew=False))
        outage.lasts = True
        with pytest.raises(trinco.StoreUnavailable):
            lease.renew()
        assert lease.valid


def test_a_renewal_finds_that_the_lock_was_broken(two: tuple[LockService, LockService]) -> None:
    ana, bruno = two
    lease = take(ana.lock("door", auto_renew=False))
    assert bruno.break_("door")
    with pytest.raises(trinco.LeaseLost) as caught:
        lease.renew()
    assert caught.value.reason == "revoked"
    assert not lease.valid


def test_a_renewal_finds_that_somebody_else_has_it(two: tuple[LockService, LockService]) -> None:
    ana, bruno = two
    lease = take(ana.lock("door", auto_renew=False))
    assert bruno.break_("door")
    with bruno.lock("door").hold(timeout=0):
        with pytest.raises(trinco.LeaseLost, match="somebody else holds it") as caught:
            lease.renew()
        assert caught.value.reason == "stolen"


# Loss is loud, once


def lose_by_breaking(ana: LockService, bruno: LockService, told: list[Lease]) -> Lease:
    clock_of_ana = ana.desk.hub.clock
    lease = take(ana.lock("door", ttl=1, auto_renew=False, on_lost=told.append))
    bruno.break_("door")
    eventually(lambda: lease.until - clock_of_ana() < 0.6)
    return lease


def test_a_loss_that_renew_finds_is_told(two: tuple[LockService, LockService]) -> None:
    told: list[Lease] = []
    lease = lose_by_breaking(*two, told)
    event = lease.lost
    with pytest.raises(trinco.LeaseLost):
        lease.renew()
    assert event.is_set()
    assert told == [lease]


def test_a_broken_lock_is_lost_at_its_next_renewal(two: tuple[LockService, LockService]) -> None:
    ana, bruno = two
    told: list[Lease] = []
    lease = take(ana.lock("door", ttl=1, on_lost=told.append))
    bruno.break_("door")
    with take(bruno.lock("door")) as other:
        assert lease.lost.wait(LIMIT)
        eventually(lambda: told)
        assert lease.reason in {"revoked", "stolen"}
        lease.release()
        assert other.valid
        assert ana.inspect("door").token == other.token
    assert told == [lease]


def test_a_loss_is_told_once_though_many_find_it() -> None:
    """The thread that renews is in the middle of a renewal when the owner's ``check`` finds the end of belief."""
    outage = Outage()
    told: list[Lease] = []
    with one_store(TamperedStore(MemoryStore(), before=outage)) as service:
        lease = take(service.lock("door", ttl=1, on_lost=told.append))
        outage.lasts = True
        threads = [Thread(target=_check_until_lost, args=(lease,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        assert lease.lost.wait(LIMIT)
        eventually(lambda: not service.desk.leases)
        eventually(lambda: bool(told))
    assert told == [lease]


def _check_until_lost(lease: Lease) -> None:
    try:
        while True:
            lease.check()
            time.sleep(0.0005)
    except trinco.LeaseLost:
        return


def test_the_event_is_set_whenever_it_is_asked_for(clock: ManualClock, service: LockService) -> None:
    early, late = take(service.lock("door")), take(service.lock("window"))
    event = early.lost
    clock.advance(40)
    assert event.is_set()
    assert late.lost.is_set()


def test_a_release_is_no_loss(clock: ManualClock, service: LockService) -> None:
    told: list[Lease] = []
    lease = take(service.lock("door", on_lost=told.append))
    lease.release()
    lease.release()
    clock.advance(100)
    assert not lease.lost.is_set()
    assert told == []
    with pytest.raises(trinco.LeaseLost, match="given back") as caught:
        lease.check()
    assert caught.value.reason == "released"


def test_check_raises_lease_lost_though_the_callback_fails() -> None:
    clock = Clock()

    def complain(lease: object) -> None:
        raise RuntimeError("the callback")

    with unattended(MemoryStore(clock=clock), clock) as service:
        lease = take(service.lock("door", on_lost=complain, auto_renew=False))
        clock.now += 31
        with pytest.raises(trinco.LeaseLost):
            lease.check()


def test_check_says_that_max_hold_is_over_before_anybody_else_does() -> None:
    clock = Clock()
    with unattended(MemoryStore(clock=clock), clock) as service:
        lease = take(service.lock("door", max_hold=5, auto_renew=False))
        clock.now += 6
        with pytest.raises(trinco.LeaseLost, match="max_hold") as caught:
            lease.check()
        assert caught.value.reason == "overtime"


@pytest.mark.parametrize("step", ["check", "renew"])
def test_whoever_asks_first_hears_that_the_stores_could_not_be_reached(step: str) -> None:
    clock, outage = Clock(), Outage()
    with unattended(TamperedStore(MemoryStore(clock=clock), before=outage), clock) as service:
        lease = take(service.lock("door", auto_renew=False))
        outage.lasts = True
        clock.now += 15
        with pytest.raises(trinco.StoreUnavailable):
            lease.renew()
        clock.now += 16
        with pytest.raises(trinco.LeaseLost) as caught:
            getattr(lease, step)()
        assert caught.value.reason == "unreachable"


def test_a_callback_that_takes_its_time_holds_up_no_other_lease(two: tuple[LockService, LockService]) -> None:
    ana, bruno = two
    entered, leave = Event(), Event()

    def linger(lease: object) -> None:
        entered.set()
        leave.wait(LIMIT)

    take(ana.lock("door", ttl=1, on_lost=linger))
    other = take(ana.lock("window", ttl=1))
    bruno.break_("door")
    assert entered.wait(LIMIT)
    try:
        assert not other.lost.wait(1.5)
        assert other.valid
    finally:
        leave.set()


def test_a_callback_may_take_the_lock_again(clock: ManualClock, service: LockService) -> None:
    again: list[Lease | None] = []
    lock = service.lock("door", on_lost=lambda lease: again.append(service.lock("door").try_acquire()))
    lease = take(lock)
    clock.advance(31)
    assert not lease.valid
    assert again[0] is not None
    assert again[0].valid


def test_a_released_lease_is_not_renewed(two: tuple[LockService, LockService]) -> None:
    ana, bruno = two
    lease = take(ana.lock("door"))
    lease.release()
    with take(bruno.lock("door")), pytest.raises(trinco.LeaseLost):
        lease.renew()
    assert not ana.inspect("door").held


def test_any_thread_may_renew_and_release(two: tuple[LockService, LockService]) -> None:
    ana, bruno = two
    lease = take(ana.lock("door"))
    for step in (lease.renew, lease.check, lease.release):
        thread = Thread(target=step)
        thread.start()
        thread.join(LIMIT)
    assert take(bruno.lock("door")).valid


# The clock


def test_belief_is_counted_on_the_clock_that_goes_on_while_the_host_sleeps() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= clocks.boottime() <= time.clock_gettime(time.CLOCK_BOOTTIME)


@pytest.mark.parametrize("pause", [1.0, 20.0])
def test_time_that_passes_between_question_and_answer_is_not_believed_in(pause: float) -> None:
    """The process is suspended while its request is under way: the store's term began before it woke."""
    ours, theirs = Clock(), Clock()

    def suspend(access: Access) -> None:
        if isinstance(access, Apply) and isinstance(access.operation, Request):
            ours.now += pause

    with unattended(TamperedStore(MemoryStore(clock=theirs), before=suspend), ours) as service:
        lease = take(service.lock("door", auto_renew=False))
        assert lease.remaining <= 30 - pause


def test_a_grant_that_was_slept_through_is_none() -> None:
    ours, theirs = Clock(), Clock()

    def suspend(access: Access) -> None:
        if isinstance(access, Apply) and isinstance(access.operation, Request):
            ours.now += 31

    with unattended(TamperedStore(MemoryStore(clock=theirs), before=suspend), ours) as service:
        assert service.lock("door").try_acquire() is None


def test_a_renewal_that_was_slept_through_extends_nothing() -> None:
    """The store's clock stands still meanwhile, so that it would be glad to extend."""
    ours, theirs = Clock(), Clock()

    def suspend(access: Access) -> None:
        if isinstance(access, Apply) and isinstance(access.operation, Extend):
            ours.now += 31

    with unattended(TamperedStore(MemoryStore(clock=theirs), before=suspend), ours) as service:
        lease = take(service.lock("door", auto_renew=False))
        ours.now += 15
        with pytest.raises((trinco.LeaseLost, trinco.StoreUnavailable)):
            lease.renew()
        assert not lease.valid


def test_no_renewal_revives_a_lease_whose_belief_is_over() -> None:
    """A clock that froze at the store would still extend it; somebody may have been in since all the same."""
    ours, theirs = Clock(), Clock()
    with unattended(MemoryStore(clock=theirs), ours) as service:
        lease = take(service.lock("door"))
        ours.now += 31
        with pytest.raises(trinco.LeaseLost):
            lease.renew()
        assert lease.remaining == 0


def test_a_frozen_clock_extends_no_belief() -> None:
    """Our clock stands while the store's goes on; belief does not grow, and ends as soon as the store says so."""
    ours, theirs = Clock(), Clock()
    with unattended(MemoryStore(clock=theirs), ours) as service:
        lease = take(service.lock("door", auto_renew=False))
        before = lease.remaining
        theirs.now += 31
        assert lease.remaining == before
        with pytest.raises((trinco.LeaseLost, trinco.StoreUnavailable)):
            lease.renew()
        assert lease.remaining <= before
        ours.now += 31
        assert not lease.valid


# The rest


def test_a_lease_tells_what_it_is(two: tuple[LockService, LockService]) -> None:
    ana, _ = two
    lease = take(ana.lock("door", metadata="job 7"))
    assert (lease.name, lease.slot, lease.metadata, lease.votes) == ("door", None, "job 7", ("memory:two",))
    assert lease.owner.startswith("ana/")
    assert "door" in repr(lease)
    info = ana.inspect("door")
    assert (info.owner, info.token, info.metadata) == ("ana", lease.token, "job 7")
    assert info.age is not None
    assert info.age < LIMIT
    with lease as same:
        assert same is lease
    assert "released" in repr(lease)


def test_a_release_does_not_wait_for_a_store_that_is_gone() -> None:
    outage = Outage()
    with within(2), one_store(TamperedStore(MemoryStore(), before=outage)) as service:
        leases = [take(service.lock(f"door {number}")) for number in range(5)]
        outage.lasts = True
        leases[0].release()
