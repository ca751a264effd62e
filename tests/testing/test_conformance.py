"""The conformance suite catches what it is there for: each kind of unfit store fails a check that says why."""

import pytest

from tests.cli.unfit_stores import UnfitStore
from trinco.stores.memory import MemoryStore
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
