"""A quorum of four of which one is down, silent, killed, full of garbage or lying; and of which two are."""

import socket
import time
from collections.abc import Callable, Iterator
from statistics import median
from threading import Event, Thread
from typing import Any

import pytest

import trinco
from tests.locks.services import (
    KEYS,
    LIMIT,
    Crowd,
    Outage,
    SlowToConnect,
    TamperedStore,
    Waiter,
    eventually,
    four_stores,
    in_line,
    one_store,
    quorum,
    take,
    with_a_liar,
    within,
)
from tests.stores.redis_fakes import FakeServer
from tests.stores.servers import RedisServer
from trinco.leases.accesses import Versioned
from trinco.leases.item import Item
from trinco.leases.item import Waiter as WaiterInLine
from trinco.locks.service import LockService
from trinco.stores.memory import MemoryStore
from trinco.stores.store import StaysOut, Store
from trinco.testing import Behaviour, LyingStore

Connect = Callable[..., LockService]
CLIENTS = 3
ROUNDS = 6


@pytest.fixture
def servers() -> Iterator[list[RedisServer]]:
    started = [RedisServer().start() for _ in range(4)]
    yield started
    for server in started:
        if server.is_running:
            server.resume()
        server.stop()


@pytest.fixture
def connect(servers: list[RedisServer]) -> Iterator[Connect]:
    made: list[LockService] = []

    def make(*others: str) -> LockService:
        """On these servers; ``others`` stand in for the first ones."""
        stores = [*others, *(server.url for server in servers)][:4] if others else [server.url for server in servers]
        made.append(trinco.connect("quorum:?f=1", stores=stores, keyring=KEYS))
        return made[-1]

    yield make
    for service in made:
        service.close()


class Rude(FakeServer):
    """Hangs up when it is asked for a lock. ``calls``: who called."""

    def __init__(self) -> None:
        super().__init__({b"SUBSCRIBE": b">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"})
        self.calls: list[socket.socket] = []

    def serve(self, connection: socket.socket) -> None:
        self.calls.append(connection)
        try:
            super().serve(connection)
        except KeyError:
            connection.shutdown(socket.SHUT_RDWR)


def warm(service: LockService) -> LockService:
    service.lock("warm").hold(LIMIT).__enter__().release()
    return service


def take_turns(services: list[LockService], rounds: int = ROUNDS) -> list[float]:
    """Everybody adds to a number that only the lock protects; how long each waited."""
    number, tokens, waits = 0, [], []

    def work(position: int) -> None:
        nonlocal number
        for _ in range(rounds):
            began = time.monotonic()
            with services[position].lock("counter").hold(3 * LIMIT) as lease:
                waits.append(time.monotonic() - began)
                seen = number
                time.sleep(0.001)
                lease.check()
                number = seen + 1
                tokens.append(lease.token or 0)

    Crowd(work, len(services)).join()
    assert number == len(services) * rounds
    assert tokens == sorted(set(tokens))
    return waits


# One of four: lies


@pytest.mark.parametrize("behaviour", list(Behaviour))
@pytest.mark.parametrize("position", [0, 3])
def test_nobody_overlaps_though_one_store_lies(behaviour: Behaviour, position: int) -> None:
    stores = with_a_liar(behaviour, position)
    services = [quorum(stores) for _ in range(CLIENTS)]
    take_turns(services)
    for service in services:
        service.close()


@pytest.mark.parametrize("behaviour", list(Behaviour))
def test_a_lease_is_renewed_broken_and_seen_though_one_store_lies(behaviour: Behaviour) -> None:
    stores = with_a_liar(behaviour)
    with quorum(stores, client="ana") as ana, quorum(stores, client="bruno") as bruno:
        lease = ana.lock("door", metadata="job").hold(LIMIT).__enter__()
        lease.renew()
        info = bruno.inspect("door")
        assert (info.owner, info.token, info.metadata) == ("ana", lease.token, "job")
        assert bruno.lock("door").try_acquire() is None
        assert bruno.break_("door", token=lease.token)
        assert bruno.lock("door").hold(LIMIT).__enter__().valid


def odd_items(reply: Any) -> list[Any]:
    waiter = WaiterInLine("nobody", "soon", "first", None)  # type: ignore[arg-type]
    return [
        Versioned("item", -1),  # type: ignore[arg-type]
        Versioned(None, 1),  # type: ignore[arg-type]
        Versioned(Item("token"), 1),  # type: ignore[arg-type]
        Versioned(Item(2**60), 1, now="now"),
        Versioned(Item(1, None, (waiter,)), 1),
        Versioned(Item(1, "holder"), 1),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("which", range(6))
def test_a_look_survives_whatever_a_store_says(which: int) -> None:
    stores = four_stores()

    def tamper(reply: Any) -> Any:
        return odd_items(reply)[which] if isinstance(reply, Versioned) else reply

    stores[0] = TamperedStore(stores[0], tamper)
    with quorum(stores, client="ana") as service:
        lease = take(service.lock("door"))
        info = service.inspect("door")
        assert (info.owner, info.token) == ("ana", lease.token)


def test_a_liar_does_not_speak_for_the_others() -> None:
    """It names the right holder, with a token and a time of its own making."""
    stores = four_stores()

    def tamper(reply: Any) -> Any:
        if not isinstance(reply, Versioned) or reply.item.holder is None:
            return reply
        holder = reply.item.holder.but(token=7, until=3600.0, entry=b"")
        return Versioned(reply.item.but(holder=holder), reply.version, reply.now)

    stores[0] = TamperedStore(stores[0], tamper)
    with quorum(stores, client="ana") as service:
        lease = take(service.lock("door", metadata="job"))
        info = service.inspect("door")
        assert (info.token, info.metadata) == (lease.token, "job")
        assert info.remaining <= 30
        assert service.break_("door", token=lease.token)


def test_a_liar_cannot_keep_everybody_out_with_a_huge_token() -> None:
    stores = four_stores()

    def tamper(reply: Any) -> Any:
        token = getattr(reply, "token", None)
        return reply.but(token=2**53 - 1, evidence=b"forged", ticket=b"forged") if token is not None else reply

    stores[0] = TamperedStore(stores[0], tamper)
    with quorum(stores) as ana, quorum(stores) as bruno:
        tokens = []
        for service in (ana, bruno, ana, bruno):
            with within(2), service.lock("door", ttl=1).hold(LIMIT) as lease:
                tokens.append(lease.token or 0)
        assert tokens == sorted(set(tokens))
        assert tokens[-1] < 2**53 - 1000


# One of four: down, silent, killed, garbage


def test_a_lock_works_though_one_store_was_never_up(servers: list[RedisServer], connect: Connect) -> None:
    servers[0].kill()
    service = connect()
    with within(1), service.lock("door").hold(LIMIT) as lease:
        assert len(lease.votes) == 3
        lease.renew()
        assert service.inspect("door").held


def test_a_lock_works_though_one_server_talks_garbage(servers: list[RedisServer], connect: Connect) -> None:
    with FakeServer({b"EVALSHA": b"+rubbish\r\n", b"SUBSCRIBE": b":7\r\n", b"EVAL": b"*-1\r\n"}) as fake:
        services = [connect(fake.url) for _ in range(2)]
        take_turns(services)
        assert not services[0].inspect("counter").held
        for service in services:
            service.close()


def test_a_server_that_hangs_up_whatever_it_is_asked_is_not_called_again_and_again(
    servers: list[RedisServer], connect: Connect
) -> None:
    with Rude() as rude:
        holder, waiter = connect(f"{rude.url}?fresh=1"), connect(f"{rude.url}?fresh=1")
        with holder.lock("door").hold(LIMIT):
            assert not waiter.lock("door").acquire(timeout=1.5)
        assert 3 <= len(rude.calls) <= 10
        for service in (holder, waiter):
            service.close()


def test_a_contended_lock_is_quick_though_one_store_is_down(servers: list[RedisServer], connect: Connect) -> None:
    """Exactly a quorum is left, so everybody needs every store that there is. Nobody may wait for a poll."""
    services = [warm(connect()) for _ in range(2)]
    servers[0].kill()
    assert max(take_turns(services)) < 0.6


def test_a_contended_lock_is_quick_though_one_store_refuses_everybody() -> None:
    stores = with_a_liar("deny-all")
    with quorum(stores) as ana, quorum(stores) as bruno:
        assert max(take_turns([ana, bruno])) < 0.6


def test_a_contended_lock_is_quick_though_one_store_is_silent(servers: list[RedisServer], connect: Connect) -> None:
    services = [warm(connect()) for _ in range(2)]
    servers[0].pause()
    assert median(take_turns(services)) < 0.2


@pytest.mark.parametrize("position", [0, 3])
def test_a_silent_store_costs_little(servers: list[RedisServer], connect: Connect, position: int) -> None:
    """About ten milliseconds at most, on a service that is warm."""
    service = warm(connect())

    def seconds() -> float:
        took = []
        for _ in range(30):
            began = time.monotonic()
            service.lock("door").hold(LIMIT).__enter__().release()
            took.append(time.monotonic() - began)
        return median(took)

    before = seconds()
    servers[position].pause()
    assert seconds() - before < 0.012


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_looking_does_not_wait_for_a_store_that_says_nothing(
    servers: list[RedisServer], connect: Connect, how: str
) -> None:
    service = warm(connect())
    getattr(servers[0], how)()
    with service.lock("door").hold(LIMIT), within(1.5):
        assert service.inspect("door").held
        assert service.lock("door").locked()
        with pytest.raises(trinco.AcquireTimeout, match="held by"), service.lock("door").hold(timeout=0.1):
            pass


def test_a_store_that_is_killed_while_we_hold_costs_nothing(servers: list[RedisServer], connect: Connect) -> None:
    ana, bruno = connect(), warm(connect())
    lease = ana.lock("door", ttl=1).hold(LIMIT).__enter__()
    servers[1].kill()
    before = lease.until
    eventually(lambda: lease.until > before + 1)
    assert bruno.lock("door").try_acquire() is None
    waiter = Waiter(bruno.lock("door"))
    in_line(ana, "door")
    lease.release()
    assert (waiter.join().token or 0) > (lease.token or 0)


@pytest.mark.parametrize("position", [0, 3])
@pytest.mark.parametrize("taken", [False, True], ids=["broken", "taken by another"])
def test_a_holder_hears_that_its_lock_was_broken_though_one_store_is_away(position: int, taken: bool) -> None:
    outage, stores = Outage(), four_stores()
    stores[position] = TamperedStore(stores[position], before=outage)
    outage.begin()
    with quorum(stores) as ana, quorum(stores) as bruno:
        lease = take(ana.lock("door"))
        assert bruno.break_("door")
        if taken:
            take(bruno.lock("door"))
        with pytest.raises(trinco.LeaseLost) as loss:
            lease.renew()
        assert loss.value.reason == ("stolen" if taken else "revoked")


def test_who_waits_for_a_silent_store_to_confirm_a_release_renews_what_is_taken_meanwhile() -> None:
    with quorum(with_a_liar(Behaviour.SILENT)) as service:
        take(service.lock("given back")).release()
        keeper = service.desk.keeper
        assert keeper is not None
        eventually(lambda: keeper.wakers)  # it listens
        lease = take(service.lock("door", ttl=1))
        before = lease.until
        eventually(lambda: lease.until > before + 1 or not lease.valid)
        lease.check()


def test_a_store_that_comes_back_votes_again(servers: list[RedisServer], connect: Connect) -> None:
    service = warm(connect())
    servers[0].kill()
    service.lock("door").hold(LIMIT).__enter__().release()
    servers[0].restart_empty()

    def is_there() -> bool:
        with service.lock("door").hold(LIMIT) as lease, trinco.connect(servers[0].url) as alone:
            lease.renew()
            try:
                return alone.inspect("door").held
            except trinco.StoreUnavailable:  # it has only just come back
                return False

    eventually(is_there, 4 * LIMIT)


def test_a_store_that_stays_out_is_not_waited_for_at_the_end() -> None:
    """It has changed nothing, and will say so for as long as it stays out."""
    out = TamperedStore(MemoryStore("0"), lambda reply: StaysOut("memory:0: it stays out", 60.0))
    service = one_store(out)
    with pytest.raises(trinco.StoreUnavailable, match="stays out"):
        service.lock("door").try_acquire()
    began = time.monotonic()
    service.close()
    assert time.monotonic() - began < 2


def test_a_store_that_is_still_being_connected_to_has_not_failed() -> None:
    """First contact is over when three links are up. One of the three stays out, so the fourth is needed."""
    up, late = Event(), Event()
    up.set()
    out = TamperedStore(MemoryStore("0"), lambda reply: StaysOut("memory:0: it stays out", 60.0))
    slow = [LyingStore(MemoryStore(str(each)), "slow", delay=0.05) for each in (1, 2)]
    stores: list[Store] = [SlowToConnect(store, up) for store in (out, *slow)]
    stores.append(last := SlowToConnect(MemoryStore("3"), late))
    with quorum(stores) as service:
        waiter = Waiter(service.lock("door"))
        assert last.asked.wait(LIMIT)
        eventually(lambda: service.desk.hub.active or waiter.error)
        late.set()
        assert waiter.join().valid


@pytest.mark.parametrize("is_there", [True, False])
def test_who_tries_once_waits_for_the_store_that_decides_it_to_be_connected_to(is_there: bool) -> None:
    up, late = Event(), Event()
    up.set()
    failing = Outage()
    failing.begin()
    stores: list[Store] = [SlowToConnect(TamperedStore(MemoryStore("0"), before=failing), up)]
    stores += [SlowToConnect(MemoryStore(str(each)), up) for each in (1, 2)]
    stores.append(last := SlowToConnect(MemoryStore("3"), late))
    got: list[object] = []

    def try_once() -> None:
        try:
            got.append(service.lock("door").try_acquire())
        except trinco.QuorumUnavailable as error:
            got.append(error)

    with quorum(stores) as service:
        thread = Thread(target=try_once)
        thread.start()
        assert last.asked.wait(LIMIT)
        eventually(lambda: any(service.desk.hub.troubles))
        last.fails = not is_there
        late.set()
        thread.join(LIMIT)
        assert isinstance(got[0], trinco.Lease if is_there else trinco.QuorumUnavailable)


def test_a_server_that_is_back_is_not_called_unreachable_because_it_was(servers: list[RedisServer]) -> None:
    with trinco.connect(servers[0].url) as service:
        warm(service)
        servers[0].kill()
        with pytest.raises(trinco.StoreUnavailable):
            service.lock("door").try_acquire()
        servers[0].restart_empty()
        service.lock("door").hold(LIMIT).__enter__().release()


# Two of four


def test_two_that_are_down_at_first_contact_are_named_at_once(servers: list[RedisServer], connect: Connect) -> None:
    servers[0].kill()
    servers[2].kill()
    service = connect()
    with within(2), pytest.raises(trinco.QuorumUnavailable) as caught, service.lock("door").hold(timeout=LIMIT):
        pass
    for word in (str(servers[0].port), str(servers[2].port), "2 of 4", "3"):
        assert word in str(caught.value)


@pytest.mark.parametrize("is_connected", [False, True])
def test_one_that_is_down_and_one_that_hangs_are_both_named_and_neither_counted(
    servers: list[RedisServer], connect: Connect, is_connected: bool
) -> None:
    service = warm(connect()) if is_connected else connect()
    servers[0].kill()
    servers[2].pause()
    with pytest.raises(trinco.QuorumUnavailable) as caught:
        service.lock("door", ttl=2).try_acquire()
    for word in (str(servers[0].port), str(servers[2].port), "2 of 4"):
        assert word in str(caught.value)


def test_too_few_while_waiting_is_retried(servers: list[RedisServer], connect: Connect) -> None:
    ana, bruno = warm(connect()), warm(connect())
    lease = ana.lock("door").hold(LIMIT).__enter__()
    waiter = Waiter(bruno.lock("door"))
    in_line(ana, "door")
    servers[0].pause()
    servers[1].pause()
    time.sleep(0.3)
    assert waiter.lease is None
    assert waiter.error is None
    servers[0].resume()
    servers[1].resume()
    lease.release()
    assert waiter.join().valid


def test_too_few_that_say_anything_are_not_taken_for_somebody_who_holds(
    servers: list[RedisServer], connect: Connect
) -> None:
    service = warm(connect())
    servers[0].pause()
    servers[1].pause()
    with pytest.raises(trinco.QuorumUnavailable):
        service.lock("door", ttl=1).try_acquire()


def test_what_is_left_of_a_failed_attempt_is_given_back() -> None:
    """Two stores fail, two grant: nobody holds, and those two must be free again when the others are back."""
    outages = [Outage(), Outage()]
    stores: list[Store] = [TamperedStore(MemoryStore(str(each)), before=outage) for each, outage in enumerate(outages)]
    stores += [MemoryStore("2"), MemoryStore("3")]
    with quorum(stores) as ana, quorum(stores) as bruno:
        warm(ana)
        warm(bruno)
        for outage in outages:
            outage.lasts = True
        with pytest.raises(trinco.QuorumUnavailable):
            ana.lock("door").try_acquire()
        for outage in outages:
            outage.lasts = False
        with within(3):
            assert bruno.lock("door").hold(LIMIT).__enter__().valid


def test_a_lease_is_lost_when_too_few_can_be_reached(servers: list[RedisServer], connect: Connect) -> None:
    service = connect()
    lease = service.lock("door", ttl=1).hold(LIMIT).__enter__()
    servers[0].kill()
    servers[1].kill()
    assert lease.lost.wait(LIMIT)
    assert lease.reason == "unreachable"
    with pytest.raises(trinco.LeaseLost):
        lease.check()


def test_three_of_four_free_a_lock_whose_holder_is_gone(servers: list[RedisServer], connect: Connect) -> None:
    ana, bruno = connect(), connect()
    ana.lock("door", ttl=1, auto_renew=False).hold(LIMIT).__enter__()
    servers[3].kill()
    with within(3):
        assert bruno.lock("door").hold(LIMIT).__enter__().valid
