"""A store that is far away, in virtual time: every answer of it takes a while on a clock that is its own and ours."""

from trinco.leases.accesses import Access, Reply
from trinco.leases.operation import Answer
from trinco.stores.memory import MemoryLink, MemoryStore
from trinco.stores.store import Link
from trinco.testing import ManualClock


class FarStore(MemoryStore):
    def __init__(self, delay: float, t_max: float = 60.0) -> None:
        self.manual = ManualClock()
        super().__init__("far", t_max=t_max, clock=self.manual)
        self.delay = delay

    def connect(self, address: str, timeout: float = 5.0) -> Link:
        return FarLink(self, address)


class FarLink(MemoryLink):
    def __init__(self, store: FarStore, address: str) -> None:
        super().__init__(store, address)
        self._far = store

    def send(self, resource: str, access: Access) -> Reply | Answer:
        reply = super().send(resource, access)
        self._far.manual.advance(self._far.delay)
        return reply
