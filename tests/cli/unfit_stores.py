"""Stores that must not be trusted with locks, as a package of somebody else would bring them: by an entry point.

ignoring:NAME             compares and sets, and does not compare
racy:NAME                 reads, applies and writes, and lets others in between
lying:BEHAVIOUR:PATH      an SQLite file behind a ``LyingStore``
late:DELAY:T_MAX          sound, and late with every answer
raising:MOMENT            its library raises errors of its own: to connect, to send or to receive
vast:                     takes more memory than there is
"""

import time
from collections.abc import Iterator
from pathlib import Path

from trinco.leases.accesses import Access, Apply, CompareAndSet, Reply, Versioned, Written
from trinco.leases.item import Item
from trinco.leases.operation import Answer
from trinco.stores.catalogue import open_store
from trinco.stores.clock import boottime, wall_microseconds
from trinco.stores.memory import MemoryStore
from trinco.stores.store import Link, Store
from trinco.testing import LyingStore

MOMENT_S = 0.002
SCHEMES = {scheme: scheme for scheme in ("ignoring", "racy", "lying", "late", "raising", "vast")}


def install(folder: Path) -> None:
    """What pip would write for a package that has these stores; ``folder`` goes on the path."""
    package = folder / "unfit_stores-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: unfit-stores\nVersion: 1\n")
    lines = [f"{scheme} = tests.cli.unfit_stores:{function}" for scheme, function in SCHEMES.items()]
    (package / "entry_points.txt").write_text("\n".join(["[trinco.stores]", *lines, ""]))


class UnfitStore(Store):
    """Items of one process, with times on the host's clock."""

    def __init__(self, url: str, kind: str) -> None:
        super().__init__(url, kind, "this process", local=True, t_max=60.0)
        self.items: dict[str, tuple[int, Item]] = {}

    def connect(self, address: str, timeout: float = 5.0) -> Link:
        return UnfitLink(self)

    def found(self, resource: str) -> tuple[int, Item]:
        return self.items.get(resource) or (0, Item(wall_microseconds()))


class UnfitLink(Link):
    __slots__ = ("_store",)

    def __init__(self, store: UnfitStore) -> None:
        self._store = store

    def send(self, resource: str, access: Access) -> Reply | Answer:
        version, item = self._store.found(resource)
        if isinstance(access, CompareAndSet):
            self._store.items[resource] = version + 1, access.item.placed_at(boottime())
            return Written(True, version + 1)
        if isinstance(access, Apply):
            after, answer, _ = item.apply(access.operation, boottime())
            time.sleep(MOMENT_S)
            self._store.items[resource] = version + 1, after
            return answer
        return Versioned(item.counted_from(boottime()), version)

    def names(self, prefix: str = "") -> Iterator[str]:
        return iter(sorted(name for name in self._store.items if name.startswith(prefix)))


class RaisingStore(UnfitStore):
    def __init__(self, moment: str) -> None:
        super().__init__(f"raising:{moment}", "one-access")
        self.moment = moment

    def reach(self, moment: str) -> None:
        if moment == self.moment:
            raise KeyError(f"no\nway to {moment}")

    def connect(self, address: str, timeout: float = 5.0) -> Link:
        self.reach("connect")
        return RaisingLink(self)


class RaisingLink(Link):
    """Answers nothing."""

    __slots__ = ("_store",)

    def __init__(self, store: RaisingStore) -> None:
        self._store = store

    def send(self, resource: str, access: Access) -> None:
        self._store.reach("send")

    def receive(self) -> list[Reply | Answer]:  # type: ignore[override]
        self._store.reach("receive")
        return []


def ignoring(url: str) -> Store:
    return UnfitStore(url, "conditional")


def racy(url: str) -> Store:
    return UnfitStore(url, "one-access")


def lying(url: str) -> Store:
    _, behaviour, path = url.split(":", 2)
    return LyingStore(open_store(f"sqlite:///{path}"), behaviour, delay=0.11)


def late(url: str) -> Store:
    _, delay, t_max = url.split(":")
    return LyingStore(MemoryStore("late", t_max=float(t_max)), "slow", delay=float(delay))


def raising(url: str) -> Store:
    return RaisingStore(url.partition(":")[2])


def vast(url: str) -> Store:
    raise MemoryError(url)
