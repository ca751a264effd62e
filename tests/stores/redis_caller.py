"""How tests speak to the Redis store."""

import select
import time
from collections.abc import Callable
from typing import Any, ClassVar

import redis

from tests.stores.servers import RedisServer
from trinco.leases.accesses import Access, Apply, Read, Versioned
from trinco.leases.claim import Claim
from trinco.leases.item import Item
from trinco.leases.operation import Handed, Operation
from trinco.leases.owner import owner_name
from trinco.stores.redis import RedisLink, RedisStore
from trinco.stores.store import Hint

LIMIT_S = 10.0
ADDRESS = "0123456789abcdef0123"
ELSEWHERE = "fedcba9876543210fedc"

Servers = Callable[..., RedisServer]


class Caller:
    """A link driven as the locks drive it: send, wait until it is readable, receive. It is closed after the test."""

    opened: ClassVar[list["Caller"]] = []

    def __init__(self, url: str, address: str = ADDRESS) -> None:
        self.link: RedisLink = RedisStore(url).connect(address)
        self.opened.append(self)
        self.hints: list[str] = []
        self.handed: list[Handed] = []
        self._replies: list[Any] = []

    def send(self, resource: str, operation: Operation | Access) -> None:
        access = Apply(operation) if isinstance(operation, Operation) else operation
        reply = self.link.send(resource, access)
        if reply is not None:
            self._replies.append(reply)

    def ask(self, resource: str, operation: Operation | Access) -> Any:
        self.send(resource, operation)
        return self.reply()

    def reply(self) -> Any:
        self._wait_for(lambda: bool(self._replies))
        return self._replies.pop(0)

    def hint(self) -> str:
        self._wait_for(lambda: bool(self.hints))
        return self.hints.pop(0)

    def item(self, resource: str) -> Item:
        read = self.ask(resource, Read())
        assert isinstance(read, Versioned)
        return read.item

    def _wait_for(self, is_there: Callable[[], bool]) -> None:
        limit = time.monotonic() + LIMIT_S
        while not is_there():
            assert select.select([self.link], [], [], limit - time.monotonic())[0], "nothing came"
            for each in self.link.receive():
                if isinstance(each, Hint):
                    self.hints.append(each.owner)
                elif isinstance(each, Handed):
                    self.handed.append(each)
                else:
                    self._replies.append(each)


def mine(handle: int = 1, attempt: int = 1, client: str = "ana", address: str = ADDRESS) -> Claim:
    return Claim(owner_name(client, address, handle), attempt)


def close_callers() -> None:
    while Caller.opened:
        Caller.opened.pop().link.close()


def vendor(server: RedisServer) -> "redis.Redis":
    return redis.Redis(port=server.port)
