"""The conformance suite catches what it is there for: each kind of unfit store fails a check that says why."""

import threading
import time
from _thread import interrupt_main
from collections.abc import Callable

import pytest

from tests.cli.unfit_stores import UnfitStore
from tests.testing.far_store import FarStore
from trinco.leases.accesses import Access, Reply
from trinco.leases.operation import Answer
from trinco.stores.memory import MemoryLink, MemoryStore
from trinco.stores.store import Store
from trinco.testing import LyingStore, StoreConformance, conformance
from trinco.testing.bench import Bench, TooSlow
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


HELD_FOR_LONG = {
    conformance.an_old_attempt_changes_nothing,
    conformance.a_write_that_compares_with_what_is_gone_fails,
    conformance.a_release_is_of_exactly_one_claim,
    conformance.asking_again_changes_nothing,
}


def far_bench(store: FarStore) -> Bench:
    return Bench(store, clock=store.manual, pass_time=store.manual.advance)


@pytest.mark.parametrize("check", [check for check in CHECKS if check.__module__ == conformance.__name__])
@pytest.mark.parametrize("delay", [0.5, 1.2])
def test_nobody_accuses_a_store_whose_answers_come_when_a_lease_may_be_over(
    check: Callable[[Bench], None], delay: float
) -> None:
    with far_bench(FarStore(delay, t_max=2.0)) as bench:
        try:
            check(bench)
        except TooSlow:
            return
    assert check not in HELD_FOR_LONG, "nothing was shown, and it passed"


@pytest.mark.parametrize("delay", [0.5, 1.2])
def test_the_end_of_a_term_is_seen_at_a_slow_store_by_a_longer_term(delay: float) -> None:
    store = FarStore(delay)
    with far_bench(store) as bench:
        conformance.a_lease_ends_with_its_term(bench)


def test_a_term_that_no_answer_falls_into_shows_nothing() -> None:
    with far_bench(FarStore(3.0, t_max=2.0)) as bench, pytest.raises(TooSlow, match="within its longest lease"):
        conformance.a_lease_ends_with_its_term(bench)


def test_a_race_at_a_far_store_has_fewer_rounds() -> None:
    with far_bench(FarStore(0.1)) as bench:
        assert conformance.rounds_with_one_winner(bench) == conformance.FEWEST_ROUNDS
    with far_bench(FarStore(0.0)) as bench:
        assert conformance.rounds_with_one_winner(bench) == conformance.ROUNDS


def test_racers_give_back_at_the_same_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "ROUNDS", 2)
    start = time.monotonic()
    with Bench(LyingStore(MemoryStore(), "slow", delay=0.1)) as bench:
        conformance.one_wins_a_race(bench)
    assert time.monotonic() - start < conformance.RACERS * 0.1, "one round of giving back in turn takes so long"


class CountingStore(MemoryStore):
    connected = 0

    def connect(self, address: str, timeout: float = 5.0) -> MemoryLink:
        self.connected += 1
        return super().connect(address, timeout)


def test_checks_of_one_bench_share_their_links() -> None:
    store = CountingStore()
    with Bench(store) as bench:
        for check in (conformance.an_old_attempt_changes_nothing, conformance.tokens_only_rise):
            check(bench)
    assert store.connected == 2


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
