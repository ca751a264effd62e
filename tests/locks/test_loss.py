"""A store that goes away while we hold, and a process that is stopped past its lease."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trinco
from tests.locks.services import LIMIT, Waiter, eventually, in_line, one_store, take, within
from tests.locks.workers import NAME, worker
from tests.stores.servers import RedisServer
from trinco.guards import FileGuard
from trinco.locks.lease import Lease
from trinco.stores.clock import boottime

Start = Callable[..., RedisServer]


@pytest.fixture
def start() -> Iterator[Start]:
    """A server of this test alone; it forgets nothing that matters for longer than two seconds."""
    started: list[RedisServer] = []

    def make(options: str = "fresh=1&t_max=2s") -> RedisServer:
        started.append(RedisServer(options=options))
        return started[-1].start()

    yield make
    for server in started:
        if server.is_running:
            server.resume()
        server.stop()


def lost_reason(lease: Lease, step: Callable[[], object]) -> str:
    """Repeat a step until it raises ``LeaseLost``; nothing else but ``StoreUnavailable`` may come before."""
    end = boottime() + LIMIT
    while boottime() < end:
        believed = lease.valid
        try:
            step()
        except trinco.LeaseLost as loss:
            return loss.reason
        except trinco.StoreUnavailable:
            assert believed, "it was over, and renew() did not say so"
    raise AssertionError("the lease was never lost")


def test_a_renewal_fails_while_belief_stands_and_then_the_lease_is_lost(start: Start) -> None:
    server = start()
    with trinco.connect(server.url) as service:
        lease = service.lock("door", ttl=1, auto_renew=False).hold(LIMIT).__enter__()
        eventually(lambda: lease.remaining < 0.6)
        server.kill()
        with pytest.raises(trinco.StoreUnavailable, match="stays ours"):
            lease.renew()
        assert lease.valid
        assert lost_reason(lease, lease.renew) in {"unreachable", "expired"}
        assert not lease.valid


def test_the_loss_is_told_in_the_background_with_its_reason(start: Start) -> None:
    server = start()
    told: list[tuple[str | None, float]] = []
    with trinco.connect(server.url) as service:
        lock = service.lock("door", ttl=1, on_lost=lambda lease: told.append((lease.reason, boottime())))
        lease = lock.hold(LIMIT).__enter__()
        ends = lease.until
        server.kill()
        assert lease.lost.wait(LIMIT)
        eventually(lambda: told)
        assert told[0][0] == "unreachable"
        assert ends <= told[0][1] < ends + 0.5
        with pytest.raises(trinco.LeaseLost, match="could be reached"):
            lease.check()


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_loss_that_check_and_the_background_find_together_is_told_once(start: Start, how: str) -> None:
    """Whoever calls ``check`` at the very end hears the same reason as the callback."""
    server = start()
    told: list[str | None] = []
    with trinco.connect(server.url) as service:
        lock = service.lock("door", ttl=1, on_lost=lambda lease: told.append(lease.reason))
        lease = lock.hold(LIMIT).__enter__()
        getattr(server, how)()
        reason = lost_reason(lease, lease.check)
        eventually(lambda: told)
        eventually(lambda: not service.desk.leases)
        if how == "pause":
            server.resume()
    assert told == [reason]


def test_whoever_is_slow_to_hear_of_a_loss_keeps_no_other_lease_from_being_renewed() -> None:
    """Somebody who could not wait has given the lease back, too late; it is done in the background."""
    hears = threading.Event()
    with trinco.connect("memory:slow to hear") as service:
        late = take(service.lock("door", ttl=1, auto_renew=False, on_lost=lambda lease: hears.wait(LIMIT)))
        other = take(service.lock("window", ttl=1))
        eventually(lambda: late.remaining < 0.1)
        with service.desk.waiting.mutex:  # in the middle of something, as the handler of a signal may find us
            eventually(lambda: not late.valid)
            late.release()
        end = boottime() + 1.2
        eventually(lambda: boottime() > end)
        other.check()
        hears.set()


def test_a_short_outage_costs_no_lease(start: Start) -> None:
    server = start("fresh=1")
    with trinco.connect(server.url) as service, service.lock("door", ttl=3).hold(LIMIT) as lease:
        before = lease.until
        server.pause()
        eventually(lambda: lease.remaining < 1.7)
        server.resume()
        eventually(lambda: lease.until > before)
        lease.check()


def test_nothing_is_held_longer_than_its_ttl_when_the_store_is_silent(start: Start) -> None:
    server = start("fresh=1")
    with trinco.connect(server.url) as service:
        lease = service.lock("door", ttl=1).hold(LIMIT).__enter__()
        server.pause()
        began = boottime()
        assert lease.lost.wait(LIMIT)
        assert boottime() - began < 1.5
        assert not lease.valid
        server.resume()
        with service.lock("door", ttl=1).hold(LIMIT) as later:
            assert (later.token or 0) > (lease.token or 0)


def test_a_wait_survives_an_outage_that_is_shorter_than_its_timeout(start: Start) -> None:
    server = start()
    with trinco.connect(server.url) as ana, trinco.connect(server.url) as bruno:
        ana.lock("door", ttl=1).hold(LIMIT).__enter__()
        waiter = Waiter(bruno.lock("door", ttl=1))
        in_line(ana, "door")
        server.kill()
        time.sleep(0.3)
        server.restart_empty()
        assert waiter.join().valid


def test_a_wait_does_not_outlast_its_timeout_by_much(start: Start) -> None:
    """Nobody answers: neither those whom we ask, nor those who could say who holds it."""
    server = start("fresh=1")
    with trinco.connect(server.url) as service:
        service.lock("door", ttl=2).hold(LIMIT).__enter__().release()
        server.pause()
        with within(2), pytest.raises((trinco.AcquireTimeout, trinco.StoreUnavailable)):
            service.lock("door", ttl=2).hold(timeout=0.3).__enter__()
        server.resume()


def test_silence_is_not_taken_for_somebody_who_holds(start: Start) -> None:
    """``try_acquire`` says None when somebody else has it; of a store that says nothing it must say that."""
    server = start("fresh=1")
    with trinco.connect(server.url) as service:
        service.lock("door", ttl=1).hold(LIMIT).__enter__().release()
        server.pause()
        try:
            with pytest.raises(trinco.StoreUnavailable):
                service.lock("door", ttl=1).try_acquire()
        finally:
            server.resume()


@pytest.mark.parametrize("ttl", [1, 2])
def test_who_hears_nothing_from_the_store_is_told_so(start: Start, ttl: int) -> None:
    server = start()
    with trinco.connect(server.url) as service:
        lease = take(service.lock("door", ttl=ttl))
        server.pause()
        assert lease.lost.wait(LIMIT)
        assert lease.reason == "unreachable"


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_since_when_somebody_holds_is_not_since_when_it_waited(start: Start, tmp_path: Path, kind: str) -> None:
    url = start().url if kind == "redis" else f"sqlite:///{tmp_path}/locks.db"
    with trinco.connect(url) as ana, trinco.connect(url) as bruno:
        lease = take(ana.lock("door"))
        waiter = Waiter(bruno.lock("door"))
        in_line(ana, "door")
        began = time.monotonic()
        eventually(lambda: time.monotonic() > began + 2.4)
        lease.release()
        waiter.join()
        assert (ana.inspect("door").age or 0.0) < 1.6


def test_an_unreachable_store_is_named_at_once() -> None:
    with RedisServer() as server:
        url = server.url
    with trinco.connect(url) as service, within(2):
        with pytest.raises(trinco.StoreUnavailable, match=r"127\.0\.0\.1"), service.lock("door").hold(timeout=LIMIT):
            pass
        with pytest.raises(trinco.StoreUnavailable, match=r"127\.0\.0\.1"):
            service.inspect("door")
        with pytest.raises(trinco.StoreUnavailable, match=r"127\.0\.0\.1"):
            service.lock("door").try_acquire()


def test_a_store_that_came_back_is_used_again(start: Start) -> None:
    server = start()
    with trinco.connect(server.url) as service:
        service.lock("door", ttl=1).hold(LIMIT).__enter__().release()
        server.kill()
        with pytest.raises(trinco.StoreUnavailable):
            service.lock("door", ttl=1).hold(timeout=1).__enter__()
        server.start(server.port)
        eventually(lambda: _has(service))


def _has(service: trinco.LockService) -> bool:
    try:
        service.lock("door", ttl=1).hold(timeout=3).__enter__().release()
    except trinco.StoreUnavailable:
        return False
    return True


def test_leaving_does_not_wait_for_a_store_that_is_gone(start: Start) -> None:
    server = start()
    with within(3), trinco.connect(server.url) as service, service.lock("door", ttl=2).hold(LIMIT):
        for number in range(5):
            service.lock(f"window {number}", ttl=2).hold(LIMIT).__enter__()
        server.kill()


def test_leaving_a_silent_store_takes_no_longer_for_many_leases_than_for_one(start: Start) -> None:
    server = start("fresh=1")
    service = trinco.connect(server.url)
    for number in range(3):
        service.lock(f"window {number}", ttl=2).hold(LIMIT).__enter__()
    server.pause()
    with within(6):
        service.close()


# Stopped and continued


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_a_process_that_was_stopped_past_its_lease_can_do_no_harm(tmp_path: Path, start: Start, kind: str) -> None:
    url = start("fresh=1").url if kind == "redis" else f"sqlite:///{tmp_path}/locks.db"
    path = tmp_path / "file"
    with worker("hold-and-write", url, str(path)) as process, trinco.connect(url) as service:
        first = int(process.hears())
        os.kill(process.pid, signal.SIGSTOP)
        with service.lock(NAME, ttl=10).hold(LIMIT) as lease:
            assert (lease.token or 0) > first
            FileGuard(path).write(b"second", lease.token or 0)
            process.tell()
            os.kill(process.pid, signal.SIGCONT)
            assert [process.hears() for _ in range(4)] == ["LeaseLost", "LeaseLost", "StaleToken", "released"]
            lease.check()
            lease.renew()
            assert service.inspect(NAME).token == lease.token
        assert path.read_bytes() == b"second"


class ShortOfMemory:
    """A latch that cannot be waited for the first time, as where there is no memory for the call."""

    def __init__(self, latch: Any) -> None:
        self.latch = latch
        self.waits = 0

    def acquire(self, *arguments: Any, **options: Any) -> Any:
        self.waits += 1
        if self.waits == 1:
            raise MemoryError
        return self.latch.acquire(*arguments, **options)

    def release(self) -> None:
        self.latch.release()


def test_renewals_go_on_after_a_moment_without_memory() -> None:
    with one_store() as service:
        keeper = service.desk.keeper
        assert keeper is not None
        keeper._latch = latch = ShortOfMemory(keeper._latch)
        lease = take(service.lock("door", ttl=1))
        first_term = lease.until
        eventually(lambda: lease.until > first_term)
        assert latch.waits > 1
