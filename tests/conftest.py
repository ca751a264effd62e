"""The same examples on every machine, and no complaint when a machine is slow: a test run must not depend on luck. And
the servers that any test may ask for: one of each for a whole run."""

import signal

from hypothesis import HealthCheck, settings

from tests.stores.postgres_server import postgres_server, postgres_template
from tests.stores.servers import redis_server, redis_servers

__all__ = ["postgres_server", "postgres_template", "redis_server", "redis_servers"]

settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""A run under nohup, or in the background of a script, would hand them on, ignored, to every process that a test
starts."""
