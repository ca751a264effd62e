"""The servers that tests of stores may ask for."""

from tests.stores.servers import redis_server, redis_servers

__all__ = ["redis_server", "redis_servers"]
