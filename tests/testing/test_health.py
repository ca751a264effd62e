"""Challenging stores: liars are caught at what they do, and nobody else is accused."""

from collections.abc import Callable
from errno import EMFILE
from pathlib import Path
from threading import Thread

import anyio
import pytest

import trinco
from tests.cli.unfit_stores import RaisingStore
from tests.stores.servers import RedisServer, free_port
from tests.testing.far_store import FarStore
from trinco.cli.health import SOUND, _state
from trinco.core.errors import UsageError
from trinco.leases.accesses import Apply
from trinco.leases.operation import Request
from trinco.locks.caller import Caller
from trinco.locks.health import BUSY, FOLDER, LONGEST, StoreHealth, examine, examine_all, probe_name
from trinco.locks.service import LockService
from trinco.stores.catalogue import open_store
from trinco.stores.memory import MemoryLink, MemoryStore
from trinco.stores.store import Store
from trinco.testing import Behaviour, LyingStore

CAUGHT = {
    Behaviour.GRANT_ALL: "it granted one lock to two owners",
    Behaviour.DENY_ALL: "nobody asks for so long",
    Behaviour.FORGET: "it lost an entry that it had confirmed",
    Behaviour.REPLAY: "it refused a larger token to the holder",
    Behaviour.GARBAGE: "makes no sense",
}


@pytest.mark.parametrize("behaviour", CAUGHT)
def test_a_liar_is_caught_and_what_it_did_is_said(behaviour: Behaviour) -> None:
    health = examine(LyingStore(MemoryStore(), behaviour), None)
    assert health.reachable
    assert CAUGHT[behaviour] in "; ".join(health.lies)


def test_a_liar_behind_a_network_is_caught_too(redis_server: RedisServer) -> None:
    health = examine(LyingStore(open_store(redis_server.url), "replay"), None)
    assert health.lies


def test_a_silent_store_is_unreachable_and_no_liar() -> None:
    health = examine(LyingStore(MemoryStore(), "silent"), None, patience=0.2)
    assert not health.reachable
    assert not health.lies
    assert "no answer within 0.2 s" in health.trouble


def test_a_slow_store_is_slow_and_no_liar() -> None:
    health = examine(LyingStore(MemoryStore(), "slow", delay=0.05), None)
    assert health.latency is not None
    assert health.latency >= 0.05
    assert not health.lies
    assert not health.trouble


def test_a_store_too_slow_to_be_judged_is_not_accused() -> None:
    health = examine(LyingStore(MemoryStore(t_max=0.1), "slow", delay=0.05), None)
    assert not health.lies
    assert "too slow" in health.trouble
    assert health.reachable
    assert health.latency is not None
    assert _state(health) == "slow"
    assert _state(health) in SOUND


@pytest.mark.parametrize("delay", [1.2, 2.0, 4.5])
def test_a_store_that_answers_late_is_challenged_for_longer(delay: float, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FarStore(delay)
    monkeypatch.setattr("trinco.locks.health.boottime", store.manual)
    monkeypatch.setattr("trinco.locks.caller.perf_counter", store.manual)
    health = examine(store, None)
    assert (health.reachable, health.lies, health.trouble) == (True, (), "")
    assert _state(health) == "slow"


def test_a_challenge_that_was_given_a_long_term_and_died_accuses_nobody() -> None:
    store = MemoryStore()
    with Caller(store) as other:
        other.access(probe_name(FOLDER), Apply(Request(other.claim(), LONGEST)))
        health = examine(store, None)
    assert (health.lies, health.trouble) == ((), BUSY)


def test_a_store_that_is_down_is_named() -> None:
    health = examine(open_store(f"redis://127.0.0.1:{free_port()}/0"), None)
    assert not health.reachable
    assert "cannot connect" in health.trouble


@pytest.mark.parametrize("moment", ["connect", "send", "receive"])
def test_a_store_whose_link_raises_is_in_trouble_and_the_others_are_looked_at(moment: str) -> None:
    with LockService([RaisingStore(moment), *(MemoryStore(name) for name in "abc")], f=1) as locks:
        broken, *others = examine_all(locks.stores, locks.desk.hub)
    assert not broken.reachable
    assert not broken.lies
    assert "KeyError" in broken.trouble
    assert all(health.reachable and not health.trouble for health in others)


def test_a_process_that_is_short_of_files_accuses_no_store() -> None:
    class Short(MemoryStore):
        def connect(self, address: str, timeout: float = 5.0) -> MemoryLink:
            raise OSError(EMFILE, "too many open files")

    with pytest.raises(OSError, match="too many"):
        Caller(Short())


def test_a_service_knows_when_a_store_has_answered_last() -> None:
    with RedisServer() as server, trinco.connect(server.url) as locks:
        with locks.lock("x").hold():
            pass
        (health,) = locks.health()
        assert health.last_answer == 0
        server.stop()
        (health,) = locks.health()
        assert not health.reachable
        assert health.last_answer is not None
        assert 0 < health.last_answer < 30
    with trinco.connect(f"redis://127.0.0.1:{free_port()}/0") as locks:
        assert [health.last_answer for health in locks.health()] == [None]


def test_a_service_for_tasks_knows_when_a_store_has_answered_last() -> None:
    async def main() -> None:
        with RedisServer() as server:
            async with trinco.connect(server.url).aio as locks:
                async with locks.lock("x").hold():
                    pass
                server.stop()
                (health,) = await locks.health()
                assert (health.reachable, health.last_answer is not None) == (False, True)

    anyio.run(main)


STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: open_store(f"sqlite:///{folder}/locks.db"),
    "directory": lambda folder: open_store(f"dir://{folder}/locks"),
}


@pytest.mark.parametrize("kind", STORES)
def test_an_honest_store_passes_again_and_again(kind: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path)
    for _ in range(3):
        health = examine(store, None)
        assert (health.reachable, health.lies, health.trouble) == (True, (), "")
    with Caller(store) as caller:
        assert list(caller.link.names()) == [probe_name(FOLDER)], "a challenge leaves one name behind, and no more"


def test_a_redis_server_passes_and_its_clock_is_ours(redis_server: RedisServer) -> None:
    health = examine(open_store(redis_server.url), None)
    assert (health.reachable, health.lies, health.trouble) == (True, (), "")
    assert health.clock is not None
    assert abs(health.clock) < 1


@pytest.mark.parametrize("kind", STORES)
def test_many_who_challenge_at_once_accuse_nobody(kind: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path)
    found: list[StoreHealth] = []
    threads = [Thread(target=lambda: found.extend(examine(store, None) for _ in range(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 20
    assert not any(health.lies for health in found), {health.lies for health in found}
    assert {health.trouble for health in found} <= {"", BUSY}


def test_another_prober_in_the_way_is_said(tmp_path: Path) -> None:
    store = MemoryStore()
    with Caller(store) as other:
        other.access(probe_name(FOLDER), Apply(Request(other.claim(), 5.0)))
        health = examine(store, None)
    assert (health.lies, health.trouble) == ((), BUSY)


def test_what_was_known_against_a_store_is_kept() -> None:
    assert examine(MemoryStore(), "its disk is full").trouble == "its disk is full"


def test_only_stores_of_one_access_can_lie(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one-access"):
        LyingStore(open_store(f"dir://{tmp_path}"), "silent")
    with pytest.raises(UsageError, match="grant-all"):
        LyingStore(MemoryStore(), "grant-some")
