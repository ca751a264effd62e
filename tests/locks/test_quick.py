"""Nobody in the way: what is put off comes to the same as what the lease client does at once."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.core.errors import StoreUnavailable
from trinco.leases.accesses import Apply, Done
from trinco.leases.client import POLL
from trinco.leases.operation import Answer, Grade, Handed, Operation, Request
from trinco.leases.terms import Policy, Terms
from trinco.locks.claimant import AHEAD, AT_ONCE, Claimant
from trinco.locks.entries import PlainEntries
from trinco.locks.hub import Hub
from trinco.locks.quick import QuickClaimant
from trinco.stores.store import Failed, Link, Store

TTL = 10.0
ANSWERS = {
    "granted": Answer(Grade.COMMITTED, 7, TTL),
    "granted, no token": Answer(Grade.COMMITTED, None, TTL),
    "coarse": Answer(Grade.COMMITTED, 7, TTL, granularity=1.0),
    "tentative": Answer(Grade.TENTATIVE, None, TTL),
    "refused": Answer(Grade.REFUSED, None, 3.0),
    "refused, others wait": Answer(Grade.REFUSED, None, 0.0, True, None, b"4 0 1 x"),
    "done": Answer(Grade.DONE),
    "gone": Answer(Grade.GONE),
    "nonsense": Answer(Grade.COMMITTED, -5, TTL),
    "another reply": Done(),
    "failed": Failed("out of order"),
}


HANDED: dict[str, dict[str, Any]] = {
    "handed": {},
    "handed, for a while": {"beyond": 3.5 - Terms().wait},
    "handed, for too short a while": {"beyond": 1.0 - Terms().wait},
    "handed, for long": {"beyond": 100.0},
    "handed, and read after a long stop": {"beyond": 100.0, "stop": 2 * Terms().wait},
    "handed, before the request is answered": {"early": True},
    "handed, tentatively": {"grade": Grade.TENTATIVE, "token": None},
    "handed, no token": {"token": None},
    "handed, nonsense": {"token": -3},
    "handed, for another request": {"later": 1},
    "handed, for an earlier attempt": {"claim": {"attempt": 0}},
    "handed, by another nonce": {"claim": {"nonce": b"x"}},
}


class Scripted(Link):
    """Answers what the script says, at once or later; ``lost`` breaks the link."""

    def __init__(self, script: list[str], later: bool) -> None:
        self.script = script
        self.later = later
        self.heard: list[Operation] = []
        self.waiting: list[Any] = []

    def send(self, resource: str, access: Any) -> Any:
        assert isinstance(access, Apply)
        self.heard.append(access.operation)
        word = self.script.pop(0) if self.script else "granted"
        if word == "lost":
            raise StoreUnavailable("gone")
        if self.later:
            self.waiting.append(ANSWERS[word])
            return None
        return ANSWERS[word]

    def receive(self) -> list[Any]:
        arrived, self.waiting = self.waiting, []
        return arrived

    def hands_over(self, how: dict[str, Any]) -> None:
        """What somebody let go of, to whoever asked last, or nearly so."""
        asked = [operation for operation in self.heard if isinstance(operation, Request) and operation.serial]
        if asked:
            last = asked[-1]
            claim, serial = last.claim.but(**how.get("claim", {})), (last.serial or 0) + how.get("later", 0)
            answer = Answer(how.get("grade", Grade.COMMITTED), how.get("token", 9))
            self.waiting.append(Handed(claim, serial, how.get("beyond", TTL - ONE.wait), answer))


class ScriptedStore(Store):
    def __init__(self, link: Scripted) -> None:
        super().__init__("script:", "handing-over", "here", local=True, t_max=60.0)
        self.link = link

    def connect(self, address: str, timeout: float = 5.0) -> Link:
        return self.link


class World:
    """A claimant of one kind, on stores that follow scripts, on a clock that a script moves."""

    def __init__(
        self,
        kind: Callable[..., Claimant],
        scripts: list[list[str]],
        later: bool,
        terms: Terms,
        hub: type[Hub] = Hub,
        link: Callable[[list[str], bool], Scripted] = Scripted,
    ) -> None:
        self.now = 1000.0
        self.links = [link(list(script), later) for script in scripts]
        stores = tuple(ScriptedStore(link) for link in self.links)
        self.hub = hub(
            stores, PlainEntries(), client="me", address="a" * 20, chance=lambda: 0.5, clock=lambda: self.now
        )
        self.hub.wall_clock = lambda: 7 - AHEAD
        self.hub.connect_missing()
        self.claimant = kind(self.hub, "me/" + "a" * 32, "lock", terms)
        self.claimant.prepare(self.claimant.terms, "")
        self.hub.active[self.claimant.owner] = self.claimant

    def does(self, step: str) -> None:
        claimant = self.claimant
        if step == "start" and not claimant.is_busy and claimant.stage.value == "idle":
            claimant.prepare(claimant.terms, "")
            self.hub.active[claimant.owner] = claimant
            claimant.starts()
        elif step == "leave" and not claimant.leaving and claimant.refusal is None and claimant.attempt:
            claimant.leaves()
        elif step == "renew" and claimant.is_holding:
            claimant.renew(claimant.world)
        elif step.startswith("hear") and int(step[-1]) < len(self.links):
            self.hub.receive(int(step[-1]))
        elif step.startswith("handed"):
            link, how = self.links[0], HANDED[step]
            kept, link.waiting = (link.waiting, []) if "early" in how else ([], link.waiting)
            link.hands_over(how)
            self.now += how.get("stop", 0.0)
            self.hub.receive(0)
            link.waiting += kept
        elif step == "time":
            self.now += 3.0
        elif step == "moment":
            self.now += 0.02
        self.hub.pump()
        self.hub.next_due()  # a shell looks when to wake up, and then sleeps

    def looks(self) -> tuple[Any, ...]:
        claimant = self.claimant
        return (
            claimant.stage,
            claimant.attempt,
            claimant.granted,
            claimant.grants,
            claimant.refusal,
            claimant.until,
            claimant.ticket,
            claimant.token,
            claimant.unanswered(),
            claimant.is_busy,
            [link.heard for link in self.links],
        )


HEAR = ["hear 0", "hear 1", "hear 2", "hear 3"]
SCRIPT = st.lists(st.sampled_from([*ANSWERS, "granted", "done", "lost"]), max_size=8)
ONE = Terms(ttl=TTL)
QUORUM = Terms(4, 1, ttl=TTL, widen=0.01)


def steps(hear: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(["start", "leave", "renew", "time", "moment", *hear]), max_size=16)


WAITS = st.lists(st.sampled_from(["refused", "refused, others wait", "granted", "done", "lost"]), max_size=8)
"""Scripts in which somebody often has to wait."""


def compare(scripts: list[list[str]], steps: list[str], later: bool, terms: Terms) -> None:
    plain, quick = (World(kind, scripts, later, terms) for kind in (Claimant, QuickClaimant))
    for step in ["start", *steps]:
        plain.does(step)
        quick.does(step)
        assert quick.looks() == plain.looks(), step


@pytest.mark.parametrize("policy", [Policy.ONCE, Policy.PRIORITY])
@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
@given(script=SCRIPT, steps=steps(["hear 0", "hear 0"]))
def test_with_one_store_what_is_put_off_comes_to_the_same(
    later: bool, policy: Policy, script: list[str], steps: list[str]
) -> None:
    compare([script], steps, later, ONE.but(policy=policy))


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("again", [False, True], ids=["at first", "by who has held it before"])
@given(script=WAITS, steps=steps(["hear 0", "hear 0", "handed", "handed", "handed", *HANDED]))
def test_what_one_store_hands_over_comes_to_the_same(
    again: bool, later: bool, script: list[str], steps: list[str]
) -> None:
    before = ["hear 0", "leave", "hear 0", "start"] if again else []
    granted = ["granted", "done"] if again else []
    compare([[*granted, "refused", "refused", *script]], [*before, "hear 0", "hear 0", *steps], later, ONE)


@pytest.mark.parametrize("how", HANDED)
def test_only_what_was_handed_over_for_our_last_request_is_held(how: str) -> None:
    world = World(QuickClaimant, [["refused"] * 9], False, ONE)
    for step in ("start", "moment", how):
        world.does(step)
    believed = world.claimant.until.at - world.now if world.claimant.until else 0.0
    assert believed == pytest.approx(BELIEVED.get(how, 0.0), abs=0.01)


def test_what_was_noted_before_a_link_broke_is_not_taken_up_again_by_who_is_handed_the_lock() -> None:
    """An answer from before would be taken for one to what is asked now."""
    world = World(QuickClaimant, [["granted", "done", "refused", *["refused"] * 9]], True, ONE)
    for step in ("start", "hear 0", "leave", "hear 0", "start"):
        world.does(step)
    world.hub.lose(0, "gone")
    world.hub.connect_missing()
    for step in ("time", "hear 0", "moment", "hear 0", "moment", "handed"):
        world.does(step)
    assert world.claimant.is_holding
    assert world.claimant.bases[0].epoch == 1


BELIEVED = {
    "handed": TTL - 0.02,
    "handed, before the request is answered": TTL - 0.02,
    "handed, for a while": 3.5 - 0.02,
    "handed, for long": TTL,
}


@pytest.mark.parametrize("policy", [Policy.ONCE, Policy.PRIORITY])
@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
@given(scripts=st.lists(SCRIPT, min_size=4, max_size=4), steps=steps(HEAR))
def test_with_a_quorum_what_is_put_off_comes_to_the_same(
    later: bool, policy: Policy, scripts: list[list[str]], steps: list[str]
) -> None:
    compare(scripts, steps, later, QUORUM.but(policy=policy))


@pytest.mark.parametrize("terms", [ONE, QUORUM], ids=["one store", "a quorum of three"])
def test_a_plain_lock_is_two_accesses_to_each_and_writes_nothing_down(terms: Terms) -> None:
    world = World(QuickClaimant, [["granted", "done"] for _ in range(terms.n)], False, terms)
    world.does("start")
    assert world.claimant.granted == 7
    before = world.claimant.bases
    world.does("leave")
    assert world.claimant.bases is before
    heard = [[type(each).__name__ for each in link.heard] for link in world.links]
    assert heard == [["Request", "Release"]] * terms.quorum + [[]] * (terms.n - terms.quorum)


@pytest.mark.parametrize("terms", [ONE, QUORUM], ids=["one store", "a quorum of three"])
@pytest.mark.parametrize("later", [False, True], ids=["at once", "before we could sleep"])
def test_who_is_answered_at_once_holds_before_anybody_waits(terms: Terms, later: bool) -> None:
    world = World(QuickClaimant, [["granted", "done"] for _ in range(terms.n)], later, terms)
    claimant = world.claimant
    claimant.starts()
    world.hub.take_in()
    assert claimant.is_holding
    claimant.leaves()
    world.hub.take_in()
    assert (claimant.unanswered(), claimant.owner in world.hub.active) == (0, False)


def test_what_others_have_to_do_by_now_is_not_forgotten_where_everything_is_answered_at_once() -> None:
    world = World(QuickClaimant, [["granted"]], False, ONE)
    other = Claimant(world.hub, "me/" + "b" * 32, "another lock", ONE)
    world.hub.active[other.owner] = other
    other.timers["owed"] = world.now
    world.claimant.starts()
    world.hub.take_in()
    assert not other.timers


def test_a_late_answer_to_an_earlier_claim_is_undone_although_the_next_is_granted_right_after() -> None:
    world = World(QuickClaimant, [[]], True, ONE.but(policy=Policy.ONCE))
    claimant, link = world.claimant, world.links[0]
    world.does("start")
    while claimant.is_busy:
        claimant.hub.heard[0] += 1  # others are answered, so the link is not given up
        world.does("time")  # nothing is heard of it, until it must have run out
    late = len(link.waiting)
    world.does("start")
    world.does("hear 0")
    assert (claimant.attempt, claimant.is_holding, claimant.is_busy) == (2, True, True)
    undone = [operation.claim.attempt for operation in link.heard[late + 1 :]]
    assert undone
    assert set(undone) == {1}


def test_a_poll_that_has_become_urgent_is_not_put_off_by_an_answer_from_before() -> None:
    """A link came up while somebody waited, and then it heard that it could not be asked: it waited for a second."""
    world = World(QuickClaimant, [["granted"]], False, ONE)
    claimant = world.claimant
    claimant.timers[POLL] = AT_ONCE
    claimant.world.set_timer(POLL, 1.0)
    assert claimant.timers[POLL] <= world.now
    claimant.timers.clear()
    claimant.world.set_timer(POLL, 1.0)
    assert claimant.timers[POLL] == world.now + 1.0


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
def test_two_of_four_stores_that_grant_are_no_quorum_although_the_others_are_gone(later: bool) -> None:
    world = World(QuickClaimant, [[], [], ["granted"], ["granted"]], later, QUORUM)
    for base in (0, 1):
        world.hub.lose(base, "gone")
    for step in ("start", *HEAR):
        world.does(step)
    assert not world.claimant.is_holding


def test_a_store_that_could_not_be_reached_and_now_can_has_not_failed_whoever_waits() -> None:
    """One of four is down, the link to another comes up after it was asked: three answers can come together."""
    world = World(QuickClaimant, [["lost"], ["refused"], ["refused"], ["refused"]], False, QUORUM)
    link = world.links[3]
    world.hub.hang_up(3, "not connected yet")
    world.does("start")
    claimant = world.claimant
    assert (set(claimant.failures), claimant.is_cut_off()) == ({0, 3}, True)
    world.hub.links[3] = link
    before = len(link.heard)
    world.hub.greet(3, link)
    assert not claimant.is_cut_off()
    world.does("moment")
    assert len(link.heard) == before + 1, "it is asked at once"
