"""A thread is interrupted inside the store in memory, and what interrupts it uses the same store."""

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Thread
from types import FrameType
from typing import Any

import pytest

from tests.locks.services import one_store, take
from tests.stores.local_stores import apply, claim, hints_within, is_granted, read, stand_in_line
from tests.stores.local_stores import take as ask
from trinco.leases.operation import Release, Request
from trinco.locks.lease import Lease
from trinco.stores import memory
from trinco.stores.clock import boottime
from trinco.stores.memory import MemoryStore

LIMIT = 10
FEWEST_LINES = 3
ONE, TWO = "1" * 20, "2" * 20
ANA, EVE, EVA = claim("ana", ONE), claim("eve", TWO), claim("eva", TWO)

Interrupt = Callable[[Callable[[], object]], None]


class Interruption:
    """As a store's clock: while it is read, somebody else has the floor, once."""

    def __init__(self, interrupt: Interrupt) -> None:
        self.interrupt = interrupt
        self.pending: list[Callable[[], object]] = []

    def __call__(self) -> float:
        if self.pending:
            self.interrupt(self.pending.pop())
        return boottime()


def by_signal(work: Callable[[], object]) -> None:
    signal.signal(signal.SIGUSR1, lambda number, frame: work())
    signal.raise_signal(signal.SIGUSR1)


def by_finaliser(work: Callable[[], object]) -> None:
    class Garbage:
        def __init__(self) -> None:
            self.myself = self

        def __del__(self) -> None:
            work()

    Garbage()
    gc.collect()


@pytest.fixture
def _no_endless_wait() -> Iterator[None]:
    """The main thread is to fail, not to hang, where it waits for itself."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = [signal.signal(each, give_up) for each in (signal.SIGALRM, signal.SIGUSR1)]
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    for each, handler in zip((signal.SIGALRM, signal.SIGUSR1), before, strict=True):
        signal.signal(each, handler)


@pytest.mark.usefixtures("_no_endless_wait")
@pytest.mark.parametrize("interrupt", [by_signal, by_finaliser])
def test_who_interrupts_the_store_can_give_a_lease_of_another_service_back(interrupt: Interrupt) -> None:
    clock = Interruption(interrupt)
    store = MemoryStore("one", clock=clock)
    with one_store(store) as ana, one_store(store) as bruno:
        take(ana.lock("warm"))
        theirs = take(bruno.lock("theirs"))
        clock.pending.append(theirs.release)
        mine = take(ana.lock("mine"))
        assert not clock.pending
        assert mine.valid
        assert {info.name for info in ana.list() if info.held} == {"warm", "mine"}


@pytest.mark.usefixtures("_no_endless_wait")
@pytest.mark.parametrize("interrupt", [by_signal, by_finaliser])
def test_a_lock_is_granted_once_where_who_is_interrupted_asks_for_what_the_other_takes(interrupt: Interrupt) -> None:
    clock = Interruption(interrupt)
    store = MemoryStore("one", clock=clock)
    with one_store(store) as ana, one_store(store) as bruno:
        for locks in (ana, bruno):
            take(locks.lock("warm")).release()
        for door in ("first", "second"):
            granted: list[Lease | None] = []
            clock.pending.append(lambda to=granted, name=door: to.append(bruno.lock(name).try_acquire()))  # type: ignore[misc]
            granted.append(ana.lock(door).try_acquire())
            assert len(granted) == 2
            held = [lease for lease in granted if lease is not None]
            assert len(held) == 1
            assert ana.inspect(door).token == held[0].token


def interrupted_at_line(number: int, work: Callable[[], object], interruption: Callable[[], object]) -> bool:
    """Do the work, and the other thing just before its so manieth line in the store's file. Whether there was one."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if event == "line" and frame.f_code.co_filename == memory.__file__:
            lines += 1
            if lines == number:
                sys.settrace(None)
                interruption()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines >= number


def within_limit(work: Callable[[], None]) -> None:
    """In a thread of its own, which may wait for itself without keeping us."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert not thread.is_alive(), "it waits for itself"
    if errors:
        raise errors[0]


def at_every_line(scene: Callable[[int], bool]) -> None:
    def run() -> None:
        number = 1
        while scene(number):
            number += 1
        assert number > FEWEST_LINES

    within_limit(run)


def test_at_whatever_line_another_asks_for_the_same_item_one_of_them_gets_it() -> None:
    def scene(number: int) -> bool:
        store = MemoryStore()
        with closing(store.connect(ONE)) as link, closing(store.connect(TWO)) as other:
            answers: list[Any] = []
            met = interrupted_at_line(
                number, lambda: answers.append(ask(link, ANA)), lambda: answers.append(ask(other, EVE))
            )
            granted = [answer for answer in answers if is_granted(answer)]
            assert len(granted) == 1
            assert read(link).token == granted[0].token
        return met

    at_every_line(scene)


def test_at_whatever_line_several_others_come_and_go_nothing_is_forgotten() -> None:
    """They leave a version of their own each: whoever was interrupted finds the last."""

    def scene(number: int) -> bool:
        store = MemoryStore()
        with closing(store.connect(ONE)) as link, closing(store.connect(TWO)) as other:
            token = ask(link, ANA).token

            def others() -> None:
                for handle in range(5):
                    stand_in_line(other, claim("eve", TWO, handle), ticket=2 + handle)

            met = interrupted_at_line(number, lambda: apply(link, Release(ANA)), others)
            waiting = {each.claim.owner for each in read(link).waiters}
            holder = read(link).holder
            known = waiting | ({holder.claim.owner} if holder else set())
            assert ANA.owner not in known
            assert known == ({claim("eve", TWO, handle).owner for handle in range(5)} if met else set())
            assert read(link).token >= token
        return met

    at_every_line(scene)


def test_at_whatever_line_of_the_hearing_another_rings_both_are_heard() -> None:
    def scene(number: int) -> bool:
        store = MemoryStore()
        with closing(store.connect(ONE)) as holder, closing(store.connect(TWO)) as waiter:
            for owner, name in ((EVE, "door"), (EVA, "gate")):
                apply(holder, Request(ANA, 30), name)
                apply(waiter, Request(owner, 30, ticket=1, wait=10), name)
            apply(holder, Release(ANA), "door")
            heard: list[str] = []
            met = interrupted_at_line(
                number, lambda: heard.extend(hints_within(waiter, LIMIT)), lambda: apply(holder, Release(ANA), "gate")
            )
            while more := hints_within(waiter, 0) or hints_within(waiter, 0):  # a ring may find nothing
                heard += more
            assert set(heard) == ({EVE.owner, EVA.owner} if met else {EVE.owner})
        return met

    at_every_line(scene)


def test_at_whatever_line_of_the_ringing_somebody_listens_the_hint_arrives() -> None:
    def scene(number: int) -> bool:
        store = MemoryStore()
        with closing(store.connect(ONE)) as holder, closing(store.connect(TWO)) as waiter:
            ask(holder, ANA)
            stand_in_line(waiter, EVE, ticket=1)
            heard: list[str] = []
            met = interrupted_at_line(
                number, lambda: apply(holder, Release(ANA)), lambda: heard.extend(hints_within(waiter, 0))
            )
            assert EVE.owner in heard + hints_within(waiter, 0)
        return met

    at_every_line(scene)
