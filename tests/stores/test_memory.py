import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.stores.local_stores import (
    ADDRESS,
    Clock,
    apply,
    assert_answers_like_an_item,
    claim,
    hints_within,
    is_granted,
    read,
    stand_in_line,
    take,
)
from tests.stores.local_workers import run_worker
from trinco.leases.operation import Grade, Release, Request
from trinco.stores.memory import MemoryLink, MemoryStore
from trinco.stores.store import NO_DESCRIPTOR

Connect = Callable[[MemoryStore, str], MemoryLink]
ONE, TWO, THREE = "1" * 20, "2" * 20, "3" * 20
ANA, EVE, KIM = claim("ana", ONE), claim("eve", TWO), claim("kim", THREE)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Links that are closed at the end of the test."""
    with ExitStack() as links:
        yield lambda store, address: links.enter_context(closing(store.connect(address)))


@pytest.mark.parametrize("seed", range(5))
def test_random_operations_are_answered_as_a_plain_item_would(connect: Connect, seed: int) -> None:
    clock = Clock()
    store = MemoryStore(t_max=20, clock=clock)
    assert_answers_like_an_item([connect(store, ADDRESS), connect(store, ADDRESS)], clock, 20, seed, 400)


def test_links_of_one_store_exclude_each_other_and_those_of_two_stores_do_not(connect: Connect) -> None:
    store = MemoryStore()
    assert is_granted(take(connect(store, ONE), ANA))
    assert take(connect(store, TWO), EVE).grade is Grade.REFUSED
    assert is_granted(take(connect(MemoryStore(), TWO), EVE))


def test_a_name_stands_for_one_store_in_the_process() -> None:
    assert MemoryStore.named("some") is MemoryStore.named("some")
    assert MemoryStore.named("some") is not MemoryStore.named("other")


def test_no_lease_counts_for_longer_than_t_max(connect: Connect) -> None:
    clock = Clock()
    link = connect(MemoryStore(t_max=20, clock=clock), ONE)
    assert take(link, ANA, ttl=1000).remaining == 20
    clock.now += 20
    assert is_granted(take(link, EVE))


def test_a_release_wakes_the_first_in_line(connect: Connect) -> None:
    store = MemoryStore()
    holder, waiter = connect(store, ONE), connect(store, TWO)
    assert waiter.fileno() == NO_DESCRIPTOR
    waiter.expect_hints(EVE.owner)
    for _ in range(2):
        take(holder, ANA)
        assert stand_in_line(waiter, EVE, ticket=1).grade is Grade.REFUSED
        apply(holder, Release(ANA))
        assert hints_within(waiter, 5) == [EVE.owner]
        assert hints_within(waiter, 0) == []
        assert is_granted(stand_in_line(waiter, EVE, ticket=1))
        apply(waiter, Release(EVE))


def test_hints_that_pile_up_are_given_once_each(connect: Connect) -> None:
    store = MemoryStore()
    holder, waiter = connect(store, ONE), connect(store, TWO)
    waiter.expect_hints(EVE.owner)
    for _ in range(100):
        take(holder, ANA, ticket=1)
        stand_in_line(waiter, EVE, ticket=2)
        apply(holder, Release(ANA))
    assert hints_within(waiter, 5) == [EVE.owner]


def test_a_waiter_whose_link_was_closed_is_skipped(connect: Connect) -> None:
    store = MemoryStore()
    holder, lost, waiter = connect(store, ONE), connect(store, TWO), connect(store, THREE)
    take(holder, ANA)
    stand_in_line(lost, EVE, ticket=1)
    stand_in_line(waiter, KIM, ticket=2)
    lost.close()
    apply(holder, Release(ANA))
    assert hints_within(waiter, 5) == [KIM.owner]
    assert [each.claim for each in read(holder).waiters] == [KIM]


def test_threads_never_hold_at_the_same_time(connect: Connect) -> None:
    store = MemoryStore()
    tokens: list[int] = []
    inside = 0
    overlaps = 0

    def work(number: int) -> None:
        nonlocal inside, overlaps
        link = connect(store, f"{number:020x}")
        for attempt in range(100):
            mine = claim("worker", f"{number:020x}", attempt=attempt)
            while not is_granted(answer := stand_in_line(link, mine, ticket=attempt)):
                hints_within(link, min(answer.remaining, 0.05))
            overlaps += inside
            inside += 1
            tokens.append(answer.token)
            inside -= 1
            apply(link, Release(mine))

    threads = [threading.Thread(target=work, args=(each,)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert overlaps == 0
    assert len(tokens) == 400
    assert tokens == sorted(set(tokens))


def test_a_forked_child_is_refused() -> None:
    assert run_worker("fork-memory") == ["parent: granted", "child: refused", "child: refused", "parent: granted"]


def test_names_are_given_in_order(connect: Connect) -> None:
    link = connect(MemoryStore(), ONE)
    for name in ("b/2", "a", "b/1"):
        apply(link, Release(ANA), name)
        assert name not in link.names()
        assert is_granted(apply(link, Request(ANA, 30), name))
    assert list(link.names()) == ["a", "b/1", "b/2"]
    assert list(link.names("b/")) == ["b/1", "b/2"]
