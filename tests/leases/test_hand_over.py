"""What a base hands over: what the client believes of it, driven by hand, and what the item does."""

from typing import Any

import pytest

from tests.leases.driving import ByHand, exactly, scenario
from trinco.core.instant import Instant
from trinco.leases.bases.handing_over import HandingOver
from trinco.leases.claim import Claim
from trinco.leases.client import Stage
from trinco.leases.item import Item, Limits
from trinco.leases.nodes.behaviours import BEHAVIOURS
from trinco.leases.nodes.system import QuorumLease
from trinco.leases.operation import NEXT, Answer, Extend, Grade, Handed, Release, Request, Yield
from trinco.leases.terms import Policy
from trinco.sim.simulation import run

YES, NO = Answer(Grade.COMMITTED), Answer(Grade.REFUSED)
TTL, WAIT = 10.0, 9.0


def in_line(at: float = 0.0, **changes: Any) -> ByHand:
    """Asks at 0, is refused at once, and stands in line at three of four bases with a request sent ``at`` this time."""
    usual = {"policy": Policy.PRIORITY, "poll": 1.0, "wait": WAIT, "fenced": False}
    client = ByHand(exactly(**usual | changes), algorithm=HandingOver()).starts()
    client.hand.at = at
    client.hears_no(0, 1, 2)  # takes a ticket, and asks again with it
    client.hears_no(0, 1, 2)
    return client


def handed(*, serial: int = 1, since: float = 0.0, answer: Answer = YES, attempt: int = 1) -> Handed:
    """By a base that got the request at once, ``since`` seconds later."""
    return Handed(Claim("me", attempt), serial, since + TTL - WAIT, answer)


def is_told(client: ByHand, *bases: int, **how: Any) -> None:
    for base in bases:
        client.handed(client.hand, base, handed(**how))


# The client


def test_a_request_in_line_has_a_number_and_the_first_has_none() -> None:
    client = in_line()
    assert [sent.operation.serial for sent in client.sent if sent.base == 0] == [None, 1]  # type: ignore[attr-defined]
    client.fires("poll")
    assert client.outstanding(0).serial == 2  # type: ignore[attr-defined]


def test_what_a_quorum_hands_over_is_the_lease() -> None:
    client = in_line()
    client.hand.at = 4.0
    is_told(client, 0, 1, since=4.0)
    assert client.news == []
    is_told(client, 2, since=4.0)
    assert client.news == [("granted", None, 14.0)]


def test_a_hand_over_that_was_under_way_for_long_is_believed_from_when_it_was() -> None:
    """Handed over at 1, heard of at 6: the stores keep it until 11."""
    client = in_line()
    client.hand.at = 6.0
    is_told(client, 0, 1, 2, since=1.0)
    assert client.news == [("granted", None, 11.0)]


def test_margins_are_taken_off_the_whole_time_since_the_request() -> None:
    client = in_line(at=2.0, granularity=1.0, sigma=0.5, rho=0.1)
    client.hand.at = 5.0
    is_told(client, 0, 1, 2, since=3.0)
    assert client.news == [("granted", None, pytest.approx(2 + (3 + TTL - 1.5) * 0.9))]


def test_a_store_whose_clock_went_forward_is_not_believed_for_longer_than_a_term() -> None:
    client = in_line()
    client.hand.at = 1.0
    is_told(client, 0, 1, 2, since=500.0)
    assert client.news == [("granted", None, 11.0)]


def test_a_hand_over_that_answers_an_earlier_request_counts_for_nothing() -> None:
    client = in_line()
    client.fires("poll")
    client.hears_no(0, 1, 2)
    is_told(client, 0, 1, 2, serial=1, since=1.0)
    assert client.news == []
    is_told(client, 0, 1, 2, serial=2, since=1.0)
    assert client.stage is Stage.HOLDING


def test_a_hand_over_while_a_poll_is_under_way_is_left_to_the_poll() -> None:
    client = in_line()
    client.fires("poll")
    is_told(client, 0, 1, 2, serial=1, since=1.0)
    assert client.news == []
    client.hears_yes(0, 1, 2)
    assert client.stage is Stage.HOLDING


def test_a_refusal_that_comes_after_a_hand_over_takes_it_back() -> None:
    """It may be older, and it may not: what is doubtful is no vote."""
    client = in_line()
    is_told(client, 0, 1)
    client.fires("poll")
    client.hears_no(0, 1)
    is_told(client, 2)
    assert client.news == []


def test_what_is_handed_over_when_the_wait_is_over_is_asked_about() -> None:
    client = in_line()
    client.hand.at = WAIT
    before = len(client.sent)
    is_told(client, 0, since=8.0)
    assert [sent.base for sent in client.sent[before:]] == [0]
    assert client.bases[0].grade is Grade.REFUSED


def test_who_has_gone_gives_back_what_it_is_handed() -> None:
    client = in_line()
    client.release(client.hand)
    for base in (0, 1, 2):
        client.hears(base, Answer(Grade.GONE))
    before = len(client.sent)
    is_told(client, 1)
    assert [(sent.base, sent.kind) for sent in client.sent[before:]] == [(1, "Release")]


def test_what_is_handed_to_an_earlier_attempt_is_given_back() -> None:
    client = in_line()
    client.release(client.hand)
    client.starts()
    for base in (0, 1, 2):
        client.hears(base, Answer(Grade.GONE))
        client.hears_no(base)
    before = len(client.sent)
    is_told(client, 0, attempt=1)
    client.hears_no(0)  # one thing after the other
    assert [sent.operation.claim.attempt for sent in client.sent[before:] if sent.kind == "Release"] == [1]


@pytest.mark.parametrize(
    "nonsense",
    [
        Handed(Claim("you", 1), 1, 1.0, YES),
        Handed(Claim("me", 1), 1, float("nan"), YES),
        Handed(Claim("me", 1), 1, "long", YES),  # type: ignore[arg-type]
        Handed(Claim("me", 1), 1, 1.0, NO),
        Handed(Claim("me", 1), 1, 1.0, Answer(Grade.COMMITTED, token="7")),  # type: ignore[arg-type]
        Handed("me", 1, 1.0, YES),  # type: ignore[arg-type]
        Handed(Claim("me", 1), "1", 1.0, YES),  # type: ignore[arg-type]
    ],
)
def test_nonsense_is_handed_over_to_nobody(nonsense: Handed) -> None:
    client = in_line()
    before = len(client.sent)
    client.handed(client.hand, 0, nonsense)
    assert client.bases[0].grade is Grade.REFUSED
    assert len(client.sent) == before


def test_a_base_hands_over_once_however_often_it_says_so() -> None:
    client = in_line()
    for _ in range(9):
        is_told(client, 0, 1)
    assert client.news == []


def test_a_tentative_hand_over_is_followed_by_a_round_that_commits_a_token() -> None:
    client = in_line(fenced=True)
    shown = Answer(Grade.TENTATIVE, evidence=("signed", 500, None))
    is_told(client, 0, 1, 2, answer=shown)
    assert client.sent_of("Commit") == [0, 1, 2]
    client.hears_yes(0, 1, 2)
    assert client.news == [("granted", 501, 10.0)]


def test_what_is_yielded_is_stood_in_line_for_again_at_once() -> None:
    client = in_line()
    is_told(client, 0, answer=YES.but(smaller=True))
    assert isinstance(client.outstanding(0), Yield)
    client.hears(0, Answer(Grade.DONE))
    assert client.outstanding(0).serial == 2  # type: ignore[attr-defined]


# The item


def waiting(serial: int | None = 7, token: Any = NEXT) -> Item:
    """Ana holds, Bruno and Carla wait."""
    ana, bruno, carla = (Claim(name, 1) for name in ("ana", "bruno", "carla"))
    item = Item(5)
    for at, request in (
        (0, Request(ana, 10, token=NEXT, entry="a")),
        (1, Request(bruno, 20, 1, WAIT, token, "b", serial)),
        (2, Request(carla, 20, 2, WAIT, NEXT, "c", 8)),
    ):
        item, _, _ = item.apply(request, Instant(at))
    return item


def test_nothing_is_handed_over_while_somebody_holds() -> None:
    item = waiting()
    assert item.hand_over(Instant(3)) == (item, None)


def test_the_first_in_line_is_handed_what_is_let_go_of_for_a_whole_term() -> None:
    item, _, _ = waiting().apply(Release(Claim("ana", 1)), Instant(4))
    item, said = item.hand_over(Instant(4))
    assert said == Handed(Claim("bruno", 1), 7, 24 - (1 + WAIT), Answer(Grade.COMMITTED, 7))
    assert item.holder is not None
    assert (item.holder.claim.owner, item.holder.until, item.holder.entry) == ("bruno", Instant(24), "b")
    assert [each.claim.owner for each in item.waiters] == ["carla"]


def test_what_is_handed_over_can_be_renewed_and_given_back() -> None:
    bruno = Claim("bruno", 1)
    item, _ = waiting().apply(Release(Claim("ana", 1)), Instant(4))[0].hand_over(Instant(4))
    item, answer, _ = item.apply(Extend(bruno, 20, 1), Instant(5))
    assert (answer.grade, answer.token) == (Grade.COMMITTED, 7)
    item, answer, _ = item.apply(Release(bruno), Instant(6))
    assert answer.grade is Grade.DONE
    _, said = item.hand_over(Instant(6))
    assert said is not None
    assert said.claim.owner == "carla"


def test_a_poll_makes_the_base_count_from_it() -> None:
    again = Request(Claim("bruno", 1), 20, 1, WAIT, NEXT, "b", 9)
    item, _, _ = waiting().apply(again, Instant(3))
    _, said = item.apply(Release(Claim("ana", 1)), Instant(4))[0].hand_over(Instant(4))
    assert said is not None
    assert (said.serial, said.beyond) == (9, 24 - (3 + WAIT))


def test_a_waiter_that_wants_to_be_woken_is_handed_nothing() -> None:
    item, _, woken = waiting(serial=None).apply(Release(Claim("ana", 1)), Instant(4))
    assert item.hand_over(Instant(4)) == (item, None)
    assert [claim.owner for claim in woken] == ["bruno"]


def test_a_guess_that_is_too_small_is_handed_over_tentatively() -> None:
    item, _, _ = waiting(token=6).apply(Release(Claim("ana", 1)), Instant(4))
    _, said = item.hand_over(Instant(4), Limits())
    assert said is not None
    assert said.answer == Answer(Grade.TENTATIVE, evidence="a")


# Liars and chance


@pytest.mark.parametrize("behaviour", [name for name in BEHAVIOURS if name != "honest"])
@pytest.mark.parametrize("seed", range(3))
def test_with_any_liar_everybody_gets_in_and_nobody_together(behaviour: str, seed: int) -> None:
    system = QuorumLease(stores=("handing-over",) * 4, clients=3, ttl=3.0)
    ended = run(scenario(system, liars={3: BEHAVIOURS[behaviour]}, seed=seed, entries=18))
    assert (ended.violation, ended.metrics.entries) == (None, 18)
