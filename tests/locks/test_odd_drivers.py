"""Links that raise what no link may, since their driver cannot make sense of what their store says, or has a bug; and
bugs of our own. One store of a quorum may have any of these, and a loss is loud whatever goes wrong."""

import functools
import logging
import signal
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

import trinco
from tests.locks.cancelling import BACKENDS
from tests.locks.services import LIMIT, Clock, TamperedStore, eventually, one_store, quorum, take, within
from trinco.leases.accesses import Access, Versioned
from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item, Waiter
from trinco.leases.operation import Answer, Grade, Handed
from trinco.locks import keeper
from trinco.locks.aio.keeping import Keeping
from trinco.locks.books import Books
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore
from trinco.stores.store import Hint, Link, Store
from trinco.testing import ManualClock, memory_service
from trinco.testing.lying import WrappedLink

ERRORS = [KeyError(None), TypeError("no number"), OSError("boom"), AssertionError(), ConnectionResetError("gone")]


class Sabotage:
    """Has a driver fail from the time on when it is armed."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.is_armed = False

    def __call__(self, access: Access) -> None:
        if self.is_armed:
            raise self._error


def with_an_odd_one(odd: Store, **options: Any) -> LockService:
    return quorum([odd, *(MemoryStore(f"sound-{each}") for each in range(3))], **options)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_quorum_bears_one_driver_that_fails(error: Exception) -> None:
    sabotage = Sabotage(error)
    with with_an_odd_one(TamperedStore(MemoryStore("odd"), before=sabotage)) as locks:
        lease = take(locks.lock("door"))
        sabotage.is_armed = True
        for _ in range(3):
            before = lease.until
            lease.renew()
            assert lease.until > before, "the others do it"
        lease.release()
        assert "memory:odd" not in take(locks.lock("door")).votes


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_driver_that_fails_is_a_store_that_cannot_be_used(error: Exception) -> None:
    sabotage = Sabotage(error)
    with one_store(TamperedStore(MemoryStore("odd"), before=sabotage)) as locks:
        sabotage.is_armed = True
        with pytest.raises(trinco.StoreUnavailable, match=f"memory:odd: its driver fails with {type(error).__name__}"):
            locks.lock("door").try_acquire()


PROMPTLY = 2.0
"""Seconds: nobody waits for an answer to what was not sent."""


class Alarm(Exception):
    """What a program's own handler raises."""


def _ring(number: int, frame: object) -> None:
    raise Alarm


def _ring_once(*arguments: Any) -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    raise Alarm


class Ringer:
    def ring(self, number: int, frame: object) -> None:
        _ring(number, frame)

    def __call__(self, number: int, frame: object) -> None:
        _ring(number, frame)


@pytest.mark.parametrize("handler", [_ring, Ringer().ring, Ringer(), functools.partial(_ring), _ring_once])
def test_what_the_handler_of_a_signal_raises_is_not_the_fault_of_a_driver(handler: Callable[..., None]) -> None:
    rings = [True]

    def interrupt(access: Access) -> None:
        if rings and rings.pop():
            signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with one_store(TamperedStore(MemoryStore("door"), before=interrupt)) as locks, within(PROMPTLY):
            with pytest.raises(Alarm):
                locks.lock("door").try_acquire()
            locks.close()
    finally:
        signal.signal(signal.SIGUSR1, before)


# What no store says


class Chatty(Store):
    """Says something unasked with each reply."""

    def __init__(self, said: Any) -> None:
        super().__init__("memory:chatty", "one-access", "chatty", local=True, t_max=60.0)
        self.said = said

    def connect(self, address: str, timeout: float = 5.0) -> Link:
        return ChattyLink(MemoryStore("chatty").connect(address), self.said)


class ChattyLink(WrappedLink):
    def __init__(self, honest: Link, said: Any) -> None:
        super().__init__(honest)
        self._said = said
        self._replies: list[Any] = []

    def send(self, resource: str, access: Access) -> None:
        self._replies += [self._said, self._honest.send(resource, access)]

    def receive(self) -> list[Any]:
        replies, self._replies = self._replies, []
        return replies


@pytest.mark.parametrize(
    "said",
    [
        Hint([]),  # type: ignore[arg-type]
        Hint(None),  # type: ignore[arg-type]
        Handed("no claim", 1, 1.0, Answer(Grade.COMMITTED)),  # type: ignore[arg-type]
        Handed(Claim([], 1), 1, 1.0, Answer(Grade.COMMITTED)),
    ],
)
def test_what_is_said_to_nobody_is_not_heard(said: Any) -> None:
    with one_store(Chatty(said)) as locks, locks.lock("door").hold(timeout=LIMIT) as lease:
        assert lease.valid


SOMEBODY = Claim("ana/00000000000000000000/1", 1)
ODD_ITEMS = [
    Item(token="x", evidence=b"e"),  # type: ignore[arg-type]
    Item(-1),
    Item(1, SOMEBODY),  # type: ignore[arg-type]
    Item(1, Holder(SOMEBODY, float("nan"), None, 1, b"")),
    Item(1, Holder(SOMEBODY, float("inf"), None, 1, b"")),
    Item(1, Holder(SOMEBODY, 5.0, None, "1", b"")),  # type: ignore[arg-type]
    Item(1, Holder(Claim(None, 1), 5.0, None, 1, b"")),
    Item(1, waiters=("nobody",)),  # type: ignore[arg-type]
    Item(1, waiters=(Waiter("nobody", 5.0, 1, b""),)),  # type: ignore[arg-type]
    Item(1, waiters=(Waiter(SOMEBODY, 5.0, "first", b""),)),  # type: ignore[arg-type]
    Item(1, waiters=7),  # type: ignore[arg-type]
    None,
]


@pytest.mark.parametrize("item", ODD_ITEMS, ids=str)
def test_whoever_looks_passes_over_an_item_that_makes_no_sense(item: Any) -> None:
    def tamper(reply: Any) -> Any:
        return Versioned(item, 0) if isinstance(reply, Versioned) else reply

    with with_an_odd_one(TamperedStore(MemoryStore("odd"), tamper)) as locks, locks.lock("door").hold() as lease:
        info = locks.inspect("door")
        assert (info.held, info.token) == (True, lease.token)


def test_a_single_item_that_makes_no_sense_is_no_free_lock() -> None:
    odd = TamperedStore(MemoryStore("odd"), lambda reply: Versioned(Item(-1), 0))
    with one_store(odd) as locks, pytest.raises(trinco.StoreUnavailable):
        locks.inspect("door")


# Bugs of ours


def test_after_a_bug_of_ours_a_loss_is_told_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str | None] = []
    heard = threading.Event()

    def on_lost(lease: trinco.Lease) -> None:
        told.append(lease.reason)
        heard.set()

    clock = Clock()
    with one_store(clock=clock) as locks, caplog.at_level(logging.ERROR, "trinco"):
        lease = take(locks.lock("door", ttl=30, on_lost=on_lost))
        monkeypatch.setattr(Books, "start_due_renewals", lambda self: 1 // 0)
        locks.desk.keeper._wake()  # type: ignore[union-attr]
        clock.pass_by(31)
        assert heard.wait(LIMIT)
        assert (told, lease.valid, lease.lost.is_set()) == (["expired"], False, True)
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError], "once"


@pytest.mark.parametrize("backend", BACKENDS)
def test_after_a_bug_of_ours_a_task_is_told_all_the_same(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        clock = ManualClock()
        async with memory_service(clock).aio as locks, locks.lock("door", ttl=30).hold():
            monkeypatch.setattr(Keeping, "start_due_renewals", lambda self: 1 // 0, raising=False)
            clock.advance(31)
            await anyio.sleep(LIMIT)

    with pytest.raises(trinco.LeaseLost) as caught:
        anyio.run(main, backend=backend)
    assert caught.value.reason == "expired"


# A system without threads


def _no_thread(function: object, arguments: object) -> None:
    raise RuntimeError("can't start new thread")


def test_who_found_no_thread_to_renew_is_told_and_the_next_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    with one_store() as locks:
        with monkeypatch.context() as shortage:
            shortage.setattr(keeper, "start_new_thread", _no_thread)
            with pytest.raises(RuntimeError, match="thread"):
                locks.lock("door").try_acquire()
        assert not locks.inspect("door").held
        lease = take(locks.lock("door", ttl=1))
        eventually(lambda: lease.claimant.grants > lease.grants)


def test_a_loss_is_told_where_there_is_no_thread_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str | None] = []
    with one_store() as locks:
        lease = take(locks.lock("door", ttl=1, on_lost=lambda lease: told.append(lease.reason)))
        other = take(locks.lock("window", ttl=1))
        monkeypatch.setattr(keeper, "start_new_thread", _no_thread)
        assert locks.break_("door")
        assert lease.lost.wait(LIMIT)
        before = other.until
        eventually(lambda: other.until > before)
    assert told == ["revoked"]
