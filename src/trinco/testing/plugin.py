"""The pytest plugin: locks in memory, on a clock that your test moves.

    def test_a_job_stops_when_it_loses_its_lock(trinco_service, trinco_clock):
        job = Job(trinco_service)
        job.start()
        trinco_clock.advance(60)
        assert job.has_stopped

Nothing of Trinco is loaded before a test asks for one of these.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from trinco.locks.service import LockService
    from trinco.testing.stores import ManualClock


@pytest.fixture
def trinco_clock() -> "ManualClock":
    """A clock that stands still until ``advance(seconds)`` is called."""
    from trinco.testing.stores import ManualClock

    return ManualClock()


@pytest.fixture
def trinco_service(trinco_clock: "ManualClock") -> "Iterator[LockService]":
    """A lock service in memory on ``trinco_clock``, which nobody else has."""
    from trinco.testing.stores import memory_service

    with memory_service(trinco_clock) as service:
        yield service
