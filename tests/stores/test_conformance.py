"""The conformance suites over every store that Trinco ships, every base algorithm, and quorums of four."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock

import pytest

from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer
from trinco.core.instant import Instant
from trinco.leases.accesses import Access, Reply
from trinco.leases.item import Limits
from trinco.leases.keys import Keyring, MacKey
from trinco.leases.nodes.services import Service, service
from trinco.leases.operation import Answer
from trinco.locks.service import LockService
from trinco.stores.catalogue import open_store
from trinco.stores.memory import MemoryStore
from trinco.stores.sqlite import SQLiteStore
from trinco.stores.store import Link, Store
from trinco.testing import LyingStore, ManualClock, ServiceConformance, StoreConformance
from trinco.testing.bench import Bench


class ManualTime(StoreConformance):
    """Stores whose clock the test sets."""

    clock: ManualClock

    def bench(self, store: Store) -> Bench:
        return Bench(store, clock=self.clock, pass_time=self.clock.advance, exact=True)


class TestMemory(ManualTime):
    @pytest.fixture
    def store(self) -> Store:
        self.clock = ManualClock()
        return MemoryStore(clock=self.clock)


class TestMemoryInRealTime(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestSQLite(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return open_store(f"sqlite:///{tmp_path}/locks.db")


class TestSQLiteToTheMoment(ManualTime):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        self.clock = ManualClock()
        return SQLiteStore(str(tmp_path / "locks.db"), clock=self.clock)


class TestDirectory(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return open_store(f"dir://{tmp_path}/locks")


class TestRedis(StoreConformance):
    @pytest.fixture
    def store(self, redis_server: RedisServer) -> Store:
        return open_store(redis_server.url)


class TestPostgres(StoreConformance):
    @pytest.fixture
    def store(self, postgres_server: PostgresServer) -> Store:
        return open_store(f"{postgres_server.url}?fresh=1")


class KeptStore(Store):
    """A store of any kind, as the checker and the simulator have it, behind the links of the product."""

    def __init__(self, kind: str, clock: ManualClock) -> None:
        super().__init__(f"kept:{kind}", kind, "this process", local=True, t_max=60.0)
        self.clock = clock
        self.mutex = Lock()
        self.services: dict[str, Service] = {}
        self.clients = 0

    def connect(self, address: str, timeout: float = 5.0) -> Link:
        self.clients += 1
        return KeptLink(self, self.clients)


class KeptLink(Link):
    __slots__ = ("_client", "_store")

    def __init__(self, store: KeptStore, client: int) -> None:
        self._store = store
        self._client = client

    def send(self, resource: str, access: Access) -> Reply | Answer:
        store = self._store
        with store.mutex:
            found = store.services.get(resource) or service(store.kind, Limits(), 60.0)
            store.services[resource], reply = found.serve(self._client, access, Instant(store.clock()))
        return reply

    def names(self, prefix: str = "") -> Iterator[str]:
        return iter(sorted(name for name in self._store.services if name.startswith(prefix)))


class TestEveryBaseAlgorithm(ManualTime):
    @pytest.fixture(params=["object", "queue", "conditional", "transactional"])
    def store(self, request: pytest.FixtureRequest) -> Store:
        self.clock = ManualClock()
        return KeptStore(request.param, self.clock)


# Lock services, as their users see them

KEYRING = Keyring(MacKey(bytes(range(32))))


def quorum(stores: list[Store]) -> Callable[[], LockService]:
    return lambda: LockService(stores, 1, keyring=KEYRING)


class TestOneSQLiteFile(ServiceConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Callable[[], LockService]:
        return lambda: LockService([open_store(f"sqlite:///{tmp_path}/locks.db")])


class TestOneFolder(ServiceConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Callable[[], LockService]:
        return lambda: LockService([open_store(f"dir://{tmp_path}/locks")])


class TestOneRedis(ServiceConformance):
    @pytest.fixture
    def connect(self, redis_server: RedisServer) -> Callable[[], LockService]:
        return lambda: LockService([open_store(redis_server.url)])


class TestOnePostgres(ServiceConformance):
    @pytest.fixture
    def connect(self, postgres_server: PostgresServer) -> Callable[[], LockService]:
        return lambda: LockService([open_store(f"{postgres_server.url}?fresh=1")])


class TestAQuorumOfFourSQLiteFiles(ServiceConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Callable[[], LockService]:
        return quorum([open_store(f"sqlite:///{tmp_path}/{number}.db") for number in range(4)])


@pytest.fixture(scope="module")
def four_servers() -> Iterator[list[str]]:
    servers = [RedisServer().start() for _ in range(4)]
    yield [server.url for server in servers]
    for server in servers:
        server.stop()


class TestAQuorumOfFourRedisServers(ServiceConformance):
    @pytest.fixture
    def connect(self, four_servers: list[str]) -> Callable[[], LockService]:
        return quorum([open_store(url) for url in four_servers])


class TestAQuorumOfFourWithOneLiar(ServiceConformance):
    @pytest.fixture(params=["grant-all", "deny-all", "silent", "forget", "replay", "garbage", "slow"])
    def connect(self, request: pytest.FixtureRequest) -> Callable[[], LockService]:
        honest: list[Store] = [MemoryStore(str(number)) for number in range(3)]
        return quorum([*honest, LyingStore(MemoryStore("liar"), request.param, delay=0.02)])
