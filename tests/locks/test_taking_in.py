"""Whoever takes something in for somebody who sleeps wakes them, wherever they sleep."""

import os
import threading
from time import monotonic

import anyio
import pytest

from tests.locks.cancelling import BACKENDS
from tests.locks.test_quick import Scripted, ScriptedStore
from trinco.leases.terms import Terms
from trinco.locks.aio.waiting import AsyncWaiting
from trinco.locks.claimant import Claimant
from trinco.locks.entries import PlainEntries
from trinco.locks.hub import Hub
from trinco.locks.waiting import LONGEST_SLEEP, Waiting

SOON = LONGEST_SLEEP / 2


class Silent(Scripted):
    """Has a descriptor at which nothing is ever to be seen."""

    def __init__(self) -> None:
        super().__init__(["granted"], later=True)
        self._descriptors = os.pipe()

    def fileno(self) -> int:
        return self._descriptors[0]

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


def asking() -> tuple[Hub, Claimant]:
    store = ScriptedStore(Silent())
    hub = Hub((store,), PlainEntries(), client="me", address="a" * 20, chance=lambda: 0.5)
    hub.wall_clock = lambda: 0
    hub.connect_missing()
    claimant = hub.claimant("lock", Terms(ttl=10.0), "")
    claimant.starts()
    return hub, claimant


def test_a_thread_that_sleeps_at_the_poller_hears_of_what_another_took_in() -> None:
    hub, claimant = asking()
    waiting = Waiting(hub)

    def wait() -> None:
        with waiting.mutex:
            waiting.until(lambda: claimant.is_holding, float("inf"), claimant)

    links, hub._outstanding = hub._outstanding, [type(hub._outstanding[0])()]  # the first look finds nothing
    thread = threading.Thread(target=wait)
    thread.start()
    while not waiting._at_poller:
        os.sched_yield()
    began = monotonic()
    with waiting.mutex:
        hub._outstanding = links
        hub.receive(0)
        hub.pump()
    thread.join(5)
    assert monotonic() - began < SOON
    hub.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_task_that_sleeps_at_the_poller_hears_of_what_another_took_in(backend: str) -> None:
    async def main() -> None:
        hub, claimant = asking()
        waiting = AsyncWaiting(hub)
        links, hub._outstanding = hub._outstanding, [type(hub._outstanding[0])()]

        async def take_in() -> None:
            while not waiting._at_poller:
                await anyio.lowlevel.checkpoint()
            hub._outstanding = links
            hub.receive(0)
            hub.pump()

        began = monotonic()
        async with anyio.create_task_group() as group:
            group.start_soon(take_in)
            await waiting.until(lambda: claimant.is_holding, float("inf"), claimant)
        assert monotonic() - began < SOON
        await waiting.leave_poller()
        hub.close()

    anyio.run(main, backend=backend)
