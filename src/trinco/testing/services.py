"""What every lock service must do, on one store or on a quorum of them, as its users see it.

    class TestOurLocks(ServiceConformance):
        @pytest.fixture
        def connect(self):
            return lambda: trinco.connect("@backups")

``connect`` makes a client of the service; each call is another client, as another process would be.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Barrier, Thread
from time import monotonic, sleep
from typing import Any

from trinco.core.errors import AcquireTimeout, LeaseLost, StoreUnavailable
from trinco.locks.lease import Lease
from trinco.locks.service import LockService
from trinco.testing.bench import LIMIT, must

RACERS = 4
ROUNDS = 3
_numbers = count(1)

Connect = Callable[[], LockService]


@contextmanager
def clients(connect: Connect, how_many: int = 2) -> "Iterator[list[LockService]]":
    made = [connect() for _ in range(how_many)]
    try:
        yield made
    finally:
        for service in made:
            service.close()


def fresh_name() -> str:
    from os import urandom

    return f"conformance/{urandom(6).hex()}/{next(_numbers)}"


def take(service: LockService, name: str, **options: Any) -> Lease:
    """The lease on a lock that is free."""
    lease = service.lock(name, **options).try_acquire()
    if lease is None:
        raise AssertionError(f"the lock '{name}' is free, and was refused")
    return lease


def two_clients_exclude_each_other(connect: Connect) -> None:
    with clients(connect) as (ana, bruno):
        name = fresh_name()
        lease = take(ana, name)
        must(bruno.lock(name).try_acquire() is None, "two clients hold one lock")
        must(bruno.lock(name).locked(), "a lock that is held does not look so")
        lease.release()
        take(bruno, name).release()


def threads_of_one_client_exclude_each_other(connect: Connect) -> None:
    with clients(connect, 1) as (ana,):
        name = fresh_name()
        with take(ana, name):
            must(ana.lock(name).try_acquire() is None, "one client holds one lock twice")


def tokens_rise_from_holder_to_holder(connect: Connect) -> None:
    with clients(connect) as (ana, bruno):
        name = fresh_name()
        tokens = []
        for service in (ana, bruno, bruno, ana):
            with take(service, name) as lease:
                tokens.append(lease.token)
        known = [token for token in tokens if token is not None]
        must(known == sorted(set(known)), f"tokens do not rise: {known}")
        must(len(known) in (0, len(tokens)), "some grants have a token and others have none")


def a_waiter_gets_the_lock_when_it_is_released(connect: Connect) -> None:
    with clients(connect) as (ana, bruno):
        name = fresh_name()
        lease = take(ana, name)
        got: list[Lease | BaseException] = []
        waiter = Thread(target=_hold, args=(bruno, name, got), daemon=True)
        waiter.start()
        _eventually(lambda: bool(ana.inspect(name).waiters), "nobody sees that somebody waits")
        must(not got, "a waiter got a lock that is held")
        lease.release()
        waiter.join(LIMIT)
        must(len(got) == 1 and isinstance(got[0], Lease), f"a waiter did not get a lock that was released: {got}")


def _hold(service: LockService, name: str, got: "list[Lease | BaseException]") -> None:
    try:
        with service.lock(name).hold(timeout=LIMIT) as lease:
            got.append(lease)
    except BaseException as error:
        got.append(error)


def whoever_waits_in_vain_is_told_who_holds(connect: Connect) -> None:
    with clients(connect) as (ana, bruno):
        name = fresh_name()
        with take(ana, name):
            try:
                bruno.lock(name).hold(timeout=0.2).__enter__()
            except AcquireTimeout as error:
                owner = ana.inspect(name).owner
                must(owner is not None and owner in str(error), f"the time-out does not say who holds: {error}")
            else:
                raise AssertionError("two clients hold one lock")
        must(not ana.inspect(name).waiters, "somebody who gave up is still in line")


def a_renewal_gives_a_full_term(connect: Connect) -> None:
    with clients(connect, 1) as (ana,):
        with take(ana, fresh_name(), ttl=20, auto_renew=False) as lease:
            lease.renew()
            must(lease.valid and lease.remaining > 15, f"a renewed lease of 20 s has {lease.remaining:.3g} s left")
        must(not lease.valid, "a released lease is still believed")


def a_broken_lock_is_lost_and_free(connect: Connect) -> None:
    with clients(connect) as (ana, bruno):
        name = fresh_name()
        lease = take(ana, name, auto_renew=False)
        must(not bruno.break_(name, token=-1), "a lock was broken though its token is another")
        must(bruno.break_(name, token=lease.token), "a lock that is held could not be broken")
        must(not bruno.break_(name), "a lock that is free was broken")
        with take(bruno, name):
            try:
                lease.renew()
            except (LeaseLost, StoreUnavailable):
                pass
            else:
                raise AssertionError("a lease was renewed though somebody else holds the lock")
            lease.release()
            must(bruno.inspect(name).held, "the release of a lost lease removed the entry of another")


def a_holder_can_be_looked_at(connect: Connect) -> None:
    with clients(connect) as (ana, bruno):
        name = fresh_name()
        must(not bruno.inspect(name).held, "a lock that nobody has used looks held")
        with take(ana, name, metadata="job 7, nação") as lease:
            info = bruno.inspect(name)
            must(info.held and info.token == lease.token, f"the lock's token is {lease.token}, not {info.token}")
            must(info.metadata == "job 7, nação", f"metadata came back as {info.metadata!r}")
            must(0 < info.remaining <= lease.options.ttl, f"a lease cannot have {info.remaining:.3g} s left")
            must(name in [each.name for each in bruno.list(name)], "a lock that is held is not listed")
        must(not bruno.inspect(name).held, "a lock that was released looks held")


def a_semaphore_has_so_many_units(connect: Connect) -> None:
    with clients(connect) as (ana, bruno):
        name = fresh_name()
        leases = [service.semaphore(name, 2).try_acquire() for service in (ana, bruno, ana)]
        must(leases[0] is not None and leases[1] is not None, "a semaphore with units left refused one")
        must(leases[2] is None, "a semaphore gave out more units than it has")
        slots = {lease.slot for lease in leases if lease is not None}
        must(slots == {0, 1}, f"the units are not 0 and 1: {slots}")
        for lease in filter(None, leases):
            lease.release()


def one_client_wins_a_race(connect: Connect) -> None:
    """At most one at any moment, and everybody in the end."""
    with clients(connect, RACERS) as crowd:
        name = fresh_name()
        inside: list[int] = []
        wrong: list[str] = []
        line = Barrier(RACERS)

        def run(position: int, service: LockService) -> None:
            try:
                line.wait(LIMIT)
                for _ in range(ROUNDS):
                    with service.lock(name).hold(timeout=LIMIT) as lease:
                        inside.append(position)
                        if len(inside) != 1:
                            wrong.append(f"{len(inside)} clients are inside at once")
                        lease.check()
                        inside.remove(position)
            except BaseException as error:
                wrong.append(f"{type(error).__name__}: {error}")

        threads = [Thread(target=run, args=each, daemon=True) for each in enumerate(crowd)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(4 * LIMIT)
        must(not wrong, "; ".join(wrong))
        must(not any(thread.is_alive() for thread in threads), "a client never got the lock")


def _eventually(holds: Callable[[], bool], sentence: str) -> None:
    end = monotonic() + LIMIT
    while not holds():
        must(monotonic() < end, sentence)
        sleep(0.01)


CHECKS: tuple[Callable[[Connect], None], ...] = (
    two_clients_exclude_each_other,
    threads_of_one_client_exclude_each_other,
    tokens_rise_from_holder_to_holder,
    a_waiter_gets_the_lock_when_it_is_released,
    whoever_waits_in_vain_is_told_who_holds,
    a_renewal_gives_a_full_term,
    a_broken_lock_is_lost_and_free,
    a_holder_can_be_looked_at,
    a_semaphore_has_so_many_units,
    one_client_wins_a_race,
)


class ServiceConformance:
    """Subclass it and give it a fixture ``connect``, a function that makes clients; each check is a test."""


def _as_test(check: Callable[[Connect], None]) -> "Callable[[ServiceConformance, Connect], None]":
    def test(self: ServiceConformance, connect: Connect) -> None:
        check(connect)

    test.__name__ = f"test_{check.__name__}"
    test.__qualname__ = f"ServiceConformance.{test.__name__}"
    test.__doc__ = check.__doc__
    return test


for _check in CHECKS:
    setattr(ServiceConformance, f"test_{_check.__name__}", _as_test(_check))
