"""Distributed mutual exclusion: locks, leases, k-semaphores and elections, from one laptop to clouds that may lie."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trinco.core.errors import AcquireTimeout as AcquireTimeout
    from trinco.core.errors import ConfigError as ConfigError
    from trinco.core.errors import LeaseLost as LeaseLost
    from trinco.core.errors import NotHeld as NotHeld
    from trinco.core.errors import QuorumUnavailable as QuorumUnavailable
    from trinco.core.errors import StoreForbidden as StoreForbidden
    from trinco.core.errors import StoreUnavailable as StoreUnavailable
    from trinco.core.errors import TrincoError as TrincoError
    from trinco.core.errors import UsageError as UsageError
    from trinco.locks.aio.election import AsyncElection as AsyncElection
    from trinco.locks.aio.lease import AsyncLease as AsyncLease
    from trinco.locks.aio.lock import AsyncLock as AsyncLock
    from trinco.locks.aio.lock import AsyncSemaphore as AsyncSemaphore
    from trinco.locks.aio.service import AsyncLockService as AsyncLockService
    from trinco.locks.election import Election as Election
    from trinco.locks.health import StoreHealth as StoreHealth
    from trinco.locks.inspection import LockInfo as LockInfo
    from trinco.locks.lease import Lease as Lease
    from trinco.locks.lock import Lock as Lock
    from trinco.locks.lock import Semaphore as Semaphore
    from trinco.locks.service import LockService as LockService
    from trinco.locks.service import connect as connect

_HOMES = {
    "connect": "trinco.locks.service",
    "LockService": "trinco.locks.service",
    "Lock": "trinco.locks.lock",
    "Semaphore": "trinco.locks.lock",
    "Election": "trinco.locks.election",
    "Lease": "trinco.locks.lease",
    "LockInfo": "trinco.locks.inspection",
    "StoreHealth": "trinco.locks.health",
    "AsyncLockService": "trinco.locks.aio.service",
    "AsyncLock": "trinco.locks.aio.lock",
    "AsyncSemaphore": "trinco.locks.aio.lock",
    "AsyncElection": "trinco.locks.aio.election",
    "AsyncLease": "trinco.locks.aio.lease",
    "TrincoError": "trinco.core.errors",
    "AcquireTimeout": "trinco.core.errors",
    "LeaseLost": "trinco.core.errors",
    "NotHeld": "trinco.core.errors",
    "StoreUnavailable": "trinco.core.errors",
    "StoreForbidden": "trinco.core.errors",
    "QuorumUnavailable": "trinco.core.errors",
    "ConfigError": "trinco.core.errors",
    "UsageError": "trinco.core.errors",
}
"""Where the public names are. They are loaded when they are used: ``trinco run`` must start fast."""

__all__ = [
    "AcquireTimeout",
    "AsyncElection",
    "AsyncLease",
    "AsyncLock",
    "AsyncLockService",
    "AsyncSemaphore",
    "ConfigError",
    "Election",
    "Lease",
    "LeaseLost",
    "Lock",
    "LockInfo",
    "LockService",
    "NotHeld",
    "QuorumUnavailable",
    "Semaphore",
    "StoreForbidden",
    "StoreHealth",
    "StoreUnavailable",
    "TrincoError",
    "UsageError",
    "__version__",
    "connect",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'trinco' has no attribute '{name}'")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
