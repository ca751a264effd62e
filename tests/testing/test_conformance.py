"""The conformance suite catches what it is there for: each kind of unfit store fails a check that says why."""

import threading
import time
from _thread import interrupt_main

import pytest

from tests.cli.unfit_stores import UnfitStore
from trinco.leases.accesses import Access, Reply
from trinco.leases.operation import Answer
from trinco.stores.memory import MemoryLink, MemoryStore
from trinco.stores.store import Store
from trinco.testing import LyingStore, StoreConformance, conformance
from trinco.testing.bench import Bench
from trinco.testing.conformance import CHECKS


def complaints(store: Store) -> dict[str, str]:
    """Which checks fail, and what they say; without the one that waits long for a hint that does not come."""
    found = {}
    for check in CHECKS:
        if isinstance(store, LyingStore) and check is conformance.a_release_wakes_the_first_in_line:
            continue
        with Bench(store) as bench:
            try:
                check(bench)
            except Exception as error:
                found[check.__name__] = str(error)
    return found


def test_every_check_is_a_test_of_the_suite() -> None:
    tests = [name for name in dir(StoreConformance) if name.startswith("test_")]
    assert sorted(tests) == sorted(f"test_{check.__name__}" for check in CHECKS)


def test_an_honest_store_passes_them_all() -> None:
    assert complaints(MemoryStore()) == {}


def test_a_store_that_grants_everything_fails() -> None:
    found = complaints(LyingStore(MemoryStore(), "grant-all"))
    assert found["a_lock_that_is_held_is_not_granted_to_another"] == "it granted one lock to two owners"
    assert "won one lock at the same moment" in found["one_wins_a_race"]
    assert "tokens_only_rise" in found
    assert "waiters_come_in_the_order_of_their_tickets" in found


def test_a_store_that_forgets_fails() -> None:
    found = complaints(LyingStore(MemoryStore(), "forget"))
    assert "a_lock_that_is_held_is_not_granted_to_another" in found
    assert "only_a_live_lease_is_extended" in found


@pytest.mark.parametrize("behaviour", ["deny-all", "garbage"])
def test_a_store_that_never_grants_fails(behaviour: str) -> None:
    with Bench(LyingStore(MemoryStore(), behaviour)) as bench, pytest.raises(Exception, match=r"refused|no sense"):
        conformance.a_lock_that_was_released_is_granted_to_the_next(bench)


def test_a_store_that_is_not_atomic_fails_the_race_and_nothing_else_of_doctor() -> None:
    store = UnfitStore("racy:x", "one-access")
    with Bench(store) as bench:
        conformance.a_lock_that_is_held_is_not_granted_to_another(bench)
    with Bench(store) as bench, pytest.raises(AssertionError, match="at the same moment"):
        conformance.one_wins_a_race(bench)


def test_a_store_that_does_not_compare_fails_the_precondition() -> None:
    with Bench(UnfitStore("ignoring:x", "conditional")) as bench, pytest.raises(AssertionError, match="preconditions"):
        conformance.a_write_of_what_has_changed_since_fails(bench)


class InterruptedStore(MemoryStore):
    """Ctrl-C comes while the first of several threads is asking it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_interrupted = False
        self.closed_in_use = 0

    def connect(self, address: str, timeout: float = 5.0) -> MemoryLink:
        return SlowLink(self, address)


class SlowLink(MemoryLink):
    def __init__(self, store: InterruptedStore, address: str) -> None:
        super().__init__(store, address)
        self._owner = store
        self._is_in_use = False

    def send(self, resource: str, access: Access) -> Reply | Answer:
        if threading.current_thread() is threading.main_thread():
            return super().send(resource, access)
        self._is_in_use = True
        if not self._owner.is_interrupted:
            self._owner.is_interrupted = True
            interrupt_main()
        time.sleep(0.1)
        reply = super().send(resource, access)
        self._is_in_use = False
        return reply

    def close(self) -> None:
        self._owner.closed_in_use += self._is_in_use
        super().close()


def test_a_race_that_is_interrupted_closes_no_link_that_is_in_use() -> None:
    store = InterruptedStore()
    with pytest.raises(KeyboardInterrupt), Bench(store) as bench:
        conformance.one_wins_a_race(bench)
    assert store.is_interrupted
    assert store.closed_in_use == 0
