"""One store, and one who asks there: what is heard at once comes to the same as what is told later."""

import os
import threading
import time
from errno import EMFILE
from typing import Any

import pytest
from hypothesis import given

import trinco
from tests.locks.services import eventually, take
from tests.locks.test_interrupted import interrupted_at
from tests.locks.test_quick import HANDED, ONE, SCRIPT, WAITS, Scripted, World, steps
from tests.stores.postgres_server import PostgresServer
from tests.stores.servers import RedisServer
from trinco.leases.claim import Claim
from trinco.leases.operation import Release
from trinco.leases.terms import Policy
from trinco.locks.agenda import NEVER
from trinco.locks.claimant import Claimant
from trinco.locks.sole import LEFT_OUT, SoleClaimant, SoleHub


class Counted(Scripted):
    """``given``: how many answers it has given."""

    given = 0

    def receive(self) -> list[Any]:
        arrived = super().receive()
        self.given += len(arrived)
        return arrived


class Poller:
    """Sees what is there within a glance, or, blind, nothing. Who only looks without waiting sees nothing."""

    def __init__(self, *, is_blind: bool = False) -> None:
        self.glances = 0
        self._is_blind = is_blind

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        self.glances += timeout > 0
        return [(0, 1)] if timeout > 0 and not self._is_blind else []


def sole(script: list[str], policy: Policy, *, is_blind: bool = False) -> tuple[World, Poller]:
    world, poller = (
        World(SoleClaimant, [script], True, ONE.but(policy=policy), SoleHub, Counted),
        Poller(is_blind=is_blind),
    )
    world.hub.left_out, world.hub.poller = 0, poller
    return world, poller


def compare(script: list[str], steps: list[str], policy: Policy) -> None:
    """Whatever the one hears at once, the other hears right after."""
    plain = World(Claimant, [script], True, ONE.but(policy=policy), link=Counted)
    quick, _ = sole(script, policy)
    for step in ["start", *steps]:
        plain.does(step)
        quick.does(step)
        if quick.links[0].given > plain.links[0].given:
            plain.does("hear 0")
        assert quick.looks() == plain.looks(), step


@pytest.mark.parametrize("policy", [Policy.ONCE, Policy.PRIORITY])
@given(script=SCRIPT, steps=steps(["hear 0", "hear 0"]))
def test_what_is_heard_at_once_comes_to_the_same(policy: Policy, script: list[str], steps: list[str]) -> None:
    compare(script, steps, policy)


@given(script=WAITS, steps=steps(["hear 0", "hear 0", "handed", "handed", "handed", *HANDED]))
def test_so_it_does_for_who_waited_before(script: list[str], steps: list[str]) -> None:
    compare(["granted", "done", "refused", "refused", *script], ["leave", "start", "hear 0", *steps], Policy.PRIORITY)


@pytest.mark.parametrize(
    ("script", "steps"),
    [
        ([], ["renew", "hear 0", "leave", "hear 0", "start", "leave", "start"]),
        (["refused", "refused", "done"], ["leave", "hear 0", "hear 0", "start"]),
    ],
    ids=["renewals", "a ticket"],
)
def test_what_is_remembered_of_one_acquisition_says_nothing_in_the_next(script: list[str], steps: list[str]) -> None:
    compare(script, steps, Policy.PRIORITY)


def test_whoever_waits_after_all_looks_at_the_clock_each_time() -> None:
    world, _ = sole([], Policy.ONCE, is_blind=True)
    for step in ("start", "hear 0", "leave", "hear 0", "start", "hear 0"):
        world.does(step)
        assert bool(world.claimant.timers) == world.claimant.is_busy, step


def test_a_lock_of_one_who_is_alone_is_granted_before_anybody_takes_anything_in() -> None:
    world, _ = sole(["granted", "done"], Policy.ONCE)
    claimant = world.claimant
    claimant.starts()
    assert claimant.is_holding
    claimant.leaves()
    assert claimant.owner not in world.hub.active


def test_beside_others_nobody_waits_in_place() -> None:
    world, poller = sole(["granted"], Policy.ONCE)
    other = SoleClaimant(world.hub, "me/" + "b" * 32, "another lock", ONE)
    world.hub.active[other.owner] = other
    world.claimant.starts()
    assert (poller.glances, world.claimant.is_holding) == (0, False)
    world.hub.take_in()
    assert world.claimant.is_holding


def test_a_store_that_is_far_is_glanced_at_now_and_then() -> None:
    """Others would wait meanwhile."""
    world, poller = sole([], Policy.ONCE, is_blind=True)
    release = Release(Claim("me", 1))
    for _ in range(1 + LEFT_OUT):
        world.hub.converse(world.claimant, release, (-1, None))
        world.hub._outstanding[0].clear()
    assert poller.glances == 1
    world.hub.converse(world.claimant, release, (-1, None))
    assert poller.glances == 2


def test_who_has_no_file_left_to_poll_with_is_answered_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(hub: SoleHub) -> None:
        raise OSError(EMFILE, "Too many open files")

    world, _ = sole(["granted"], Policy.ONCE)
    world.hub.poller = None
    monkeypatch.setattr(SoleHub, "start_polling", too_many)
    world.claimant.starts()
    world.hub.take_in()
    assert world.claimant.is_holding


def test_a_task_never_waits_in_place() -> None:
    world, poller = sole(["granted"], Policy.ONCE)
    world.hub.left_out = NEVER
    world.claimant.starts()
    assert (poller.glances, world.hub.left_out) == (0, NEVER)


# Real servers


@pytest.fixture(params=["redis", "postgres"])
def url(request: pytest.FixtureRequest, redis_server: RedisServer, postgres_server: PostgresServer) -> str:
    return redis_server.url if request.param == "redis" else f"{postgres_server.url}?fresh=1"


def test_an_interrupt_while_it_waits_in_place_costs_no_link(url: str) -> None:
    with trinco.connect(url) as ana, trinco.connect(url) as bruno:
        take(ana.lock("warm")).release()
        link = ana.desk.hub.links[0]
        assert interrupted_at("or not self.poller.poll(GLANCE", lambda: take(ana.lock(f"door {url}")))
        take(ana.lock("warm")).release()
        assert ana.desk.hub.links[0] is link
        eventually(lambda: not bruno.inspect(f"door {url}").held)


def test_a_store_that_hangs_keeps_nobody_else_out_for_long() -> None:
    """Whoever waits in place has the mutex."""
    with RedisServer() as server, trinco.connect(server.url) as locks:
        take(locks.lock("warm")).release()
        server.pause()
        try:
            asker = threading.Thread(target=lambda: locks.lock("door").acquire(timeout=0.3))
            asker.start()
            longest = 0.0
            while asker.is_alive():
                began = time.monotonic()
                with locks.desk.waiting.mutex:
                    longest = max(longest, time.monotonic() - began)
                os.sched_yield()
            assert longest < 0.1
        finally:
            server.resume()
        asker.join()
