"""What you need to test programs that lock, and stores that locks are kept in.

    clock = ManualClock()
    with memory_service(clock) as locks:            # no server, no file, and time passes when you say so
        lease = locks.lock("nightly").try_acquire()
        clock.advance(31)
        assert lease.lost.is_set()

- ``ManualClock``, ``memory_service``: locks in memory, on a clock that you move. As pytest fixtures: ``trinco_clock``
  and ``trinco_service``.
- ``LyingStore``: a store that breaks its word, to see what your quorum makes of it.
- ``StoreConformance``, ``ServiceConformance``: what every store, and every lock service, must do. Subclass them in the
  tests of a store of your own.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trinco.testing.conformance import StoreConformance as StoreConformance
    from trinco.testing.lying import Behaviour as Behaviour
    from trinco.testing.lying import LyingStore as LyingStore
    from trinco.testing.services import ServiceConformance as ServiceConformance
    from trinco.testing.stores import ManualClock as ManualClock
    from trinco.testing.stores import memory_service as memory_service

_HOMES = {
    "ManualClock": "trinco.testing.stores",
    "memory_service": "trinco.testing.stores",
    "Behaviour": "trinco.testing.lying",
    "LyingStore": "trinco.testing.lying",
    "StoreConformance": "trinco.testing.conformance",
    "ServiceConformance": "trinco.testing.services",
}
"""Where the public names are. They are loaded when they are used: the pytest plugin is in every run of pytest."""

__all__ = [*sorted(_HOMES)]  # noqa: PLE0604 (they are all text)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'trinco.testing' has no attribute '{name}'")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
