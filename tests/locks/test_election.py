"""Elections: who leads, for which term, and what happens to those who wait for it."""

import asyncio
import time
from collections.abc import Iterator

import pytest

import trinco
from tests.locks.services import LIMIT, Crowd, Outage, TamperedStore, Waiter, eventually, in_line, one_store, within
from trinco.core.errors import UsageError
from trinco.locks.lease import Lease
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore
from trinco.testing import ManualClock, memory_service


@pytest.fixture
def two() -> Iterator[tuple[LockService, LockService]]:
    store = MemoryStore("two")
    with one_store(store, client="ana") as ana, one_store(store, client="bruno") as bruno:
        yield ana, bruno


def test_nobody_leads_before_somebody_does(two: tuple[LockService, LockService]) -> None:
    ana, bruno = two
    assert ana.election("boss").leader is None
    with ana.election("boss", metadata="10.0.0.7:80").lead() as lease:
        leader = bruno.election("boss").leader
        assert leader is not None
        assert (leader.owner, leader.token, leader.metadata) == ("ana", lease.token, "10.0.0.7:80")
    assert bruno.election("boss").leader is None


def test_the_next_candidate_leads_when_the_first_steps_down(two: tuple[LockService, LockService]) -> None:
    ana, bruno = two
    terms: list[int] = []

    def lead(lease: Lease) -> str:
        terms.append(lease.token or 0)
        return "done"

    Crowd(lambda number: two[number % 2].election("boss").run(lead, timeout=LIMIT), 4).join()
    assert len(terms) == 4
    assert terms == sorted(set(terms))
    assert ana.election("boss").leader is None
    assert bruno.election("boss").run(lead) == "done"


def test_the_next_candidate_leads_when_the_first_is_dead() -> None:
    clock = ManualClock()
    with memory_service(clock) as service:
        lease = service.election("boss", auto_renew=False).lead().__enter__()
        clock.advance(31)
        with service.election("boss").lead(timeout=0) as later:
            assert (later.token or 0) > (lease.token or 0)


def test_an_error_of_the_leader_is_its_own_and_it_steps_down(two: tuple[LockService, LockService]) -> None:
    def fail(lease: Lease) -> None:
        raise ValueError("the work")

    with pytest.raises(ValueError, match="the work"):
        two[0].election("boss").run(fail)
    assert two[1].election("boss").leader is None


def test_a_leader_that_was_deposed_is_told_at_the_end() -> None:
    clock = ManualClock()
    with memory_service(clock) as service, pytest.raises(trinco.LeaseLost):
        service.election("boss").run(lambda lease: clock.advance(31))


def test_what_cannot_be_called_is_refused_before_anything_is_taken(two: tuple[LockService, LockService]) -> None:
    with pytest.raises(trinco.UsageError, match="function"):
        two[0].election("boss").run("work")  # type: ignore[arg-type]
    assert two[1].election("boss").leader is None


def test_a_candidate_that_waits_in_vain_learns_who_leads(two: tuple[LockService, LockService]) -> None:
    with (
        two[0].election("boss").lead(),
        pytest.raises(trinco.AcquireTimeout, match="ana"),
        two[1].election("boss").lead(timeout=0.05),
    ):
        pass


def test_whoever_waits_for_a_leader_hears_of_it(two: tuple[LockService, LockService]) -> None:
    ana, bruno = two
    seen: list[object] = []
    crowd = Crowd(lambda _: seen.append(bruno.election("boss").wait_for_leader(LIMIT)), 1)
    with ana.election("boss").lead() as lease:
        crowd.join()
        assert [getattr(info, "token", None) for info in seen] == [lease.token]


def test_waiting_for_a_leader_has_an_end(two: tuple[LockService, LockService]) -> None:
    with within(1):
        assert two[0].election("boss").wait_for_leader(timeout=0.05) is None
    with pytest.raises(trinco.UsageError):
        two[0].election("boss").wait_for_leader(timeout=-7)


def test_waiting_for_a_leader_survives_an_outage() -> None:
    """While waiting, outages are retried until the timeout (DESIGN 6)."""
    outage, store = Outage(), MemoryStore("flaky")
    with one_store(TamperedStore(store, before=outage)) as ana, one_store(store, client="bruno") as bruno:
        assert ana.election("boss").leader is None
        seen: list[object] = []
        crowd = Crowd(lambda _: seen.append(ana.election("boss").wait_for_leader(LIMIT)), 1)
        outage.lasts = True
        with bruno.election("boss").lead():
            eventually(lambda: ana.desk.hub.troubles[0])
            outage.lasts = False
            crowd.join()
        assert len(seen) == 1


def test_a_waiting_candidate_is_in_line(two: tuple[LockService, LockService]) -> None:
    ana, bruno = two
    with ana.election("boss").lead():
        waiter = Waiter(bruno.election("boss")._lock)
        in_line(ana, "boss")
        assert ana.inspect("boss").waiters == ("bruno",)
    assert waiter.join().valid


@pytest.mark.parametrize("how", ["blocking", "tasks"])
def test_who_does_not_wait_sees_who_leads_now(two: tuple[LockService, LockService], how: str) -> None:
    ana, bruno = two
    with ana.election("head").lead():
        if how == "blocking":
            assert bruno.election("head").wait_for_leader(0) is not None
        else:
            assert asyncio.run(bruno.aio.election("head").wait_for_leader(0)) is not None
    began = time.monotonic()
    assert bruno.election("head").wait_for_leader(0.01) is None
    assert time.monotonic() - began < 0.2


def test_a_leader_that_steps_down_by_itself_keeps_its_result(two: tuple[LockService, LockService]) -> None:
    def work(lease: Lease) -> str:
        lease.release()
        return "done"

    assert two[0].election("head").run(work) == "done"


def test_what_an_election_calls_is_of_its_kind(two: tuple[LockService, LockService]) -> None:
    async def awaited(lease: object) -> None:
        pass

    with pytest.raises(UsageError, match=r"use the service's \.aio"):
        two[0].election("head").run(awaited)

    async def main() -> None:
        with pytest.raises(UsageError, match="async def"):
            await two[0].aio.election("head").run(lambda lease: None)  # type: ignore[arg-type, return-value]

    asyncio.run(main())
