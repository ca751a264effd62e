"""The composite, driven by hand: the test is the network, the clock and the stores."""

from typing import Any

import pytest

from tests.leases.driving import ByHand, exactly
from trinco.leases.bases.conditional import Conditional
from trinco.leases.client import Stage
from trinco.leases.operation import NEXT, Answer, Commit, Extend, Grade, Release, Request, Yield
from trinco.leases.terms import Policy, Terms

YES = Answer(Grade.COMMITTED)
NO = Answer(Grade.REFUSED)
DONE = Answer(Grade.DONE)
GONE = Answer(Grade.GONE)


def asking(**changes: Any) -> ByHand:
    return ByHand(exactly(**changes)).starts()


def holding(*bases: int, **changes: Any) -> ByHand:
    """Holds by the answers of these bases; the others have not answered."""
    client = asking(**changes)
    client.hears_yes(*(bases or (0, 1, 2)))
    assert client.stage is Stage.HOLDING
    return client


def unfenced(**changes: Any) -> ByHand:
    return asking(fenced=False, **changes)


# An attempt


def test_everybody_is_asked_at_once() -> None:
    assert asking().sent_of("Request") == [0, 1, 2, 3]


def test_a_quorum_of_grants_is_the_lease() -> None:
    client = asking()
    client.hears_yes(0, 1)
    assert client.news == []
    client.hears_yes(3)
    assert client.news == [("granted", 100, 10.0)]
    assert client.hand.timers == {}


def test_belief_counts_from_before_the_request_and_has_margins() -> None:
    """E2: t_start + (T - g - sigma)(1 - rho), whenever the answers come."""
    client = ByHand(exactly(granularity=1.0, sigma=0.5, rho=0.1))
    client.hand.at = 7.0
    client.starts()
    client.hand.at = 9.0
    client.hears_yes(0, 1, 2)
    assert client.news == [("granted", 100, pytest.approx(7 + 8.5 * 0.9))]


def test_grants_that_come_too_late_to_be_useful_are_no_lease() -> None:
    """v - now must be at least min_useful: 2 of 10 seconds."""
    client = asking()
    client.hand.at = 8.01
    client.hears_yes(0, 1, 2)
    assert client.news == [("refused",)]
    assert client.sent_of("Release") == [0, 1, 2]


def test_grants_that_are_just_useful_enough_are_a_lease() -> None:
    client = asking()
    client.hand.at = 8.0
    client.hears_yes(0, 1, 2)
    assert client.news == [("granted", 100, 10.0)]


def test_too_many_refusals_end_an_attempt_at_once() -> None:
    client = asking()
    client.hears_no(0)
    assert client.news == []
    client.hears_no(2)
    assert client.news == [("refused",)]
    assert client.sent_of("Release") == [0, 2]


def test_an_error_is_a_refusal() -> None:
    """E3."""
    client = asking()
    client.hears(0, None)
    client.hears(1, "nonsense")
    assert client.news == [("refused",)]


def test_two_grants_a_refusal_and_silence_end_with_the_timer_and_release_everywhere() -> None:
    """E3, E6: T, T, F and nothing: neither enough nor too few, and one base that still owes an answer."""
    client = asking()
    client.hears_yes(0, 1)
    client.hears_no(2)
    assert client.news == []
    client.fires("attempt")
    assert client.hand.at == 5.0
    assert client.news == [("refused",)]
    assert client.sent_of("Release") == [0, 1, 2]
    client.hears(3, YES)
    assert client.sent_of("Release") == [0, 1, 2, 3]
    for base in range(4):
        client.hears(base, DONE)
    assert all(base.chain == () for base in client.bases)
    assert client.news == [("refused",)]


def test_an_attempt_takes_no_longer_than_half_a_term() -> None:
    client = asking(ttl=4.0)
    assert client.hand.timers == {"attempt": 2.0}


def test_every_release_names_the_attempt_that_it_ends() -> None:
    client = asking()
    client.fires("attempt")
    for base in range(4):
        client.hears(base, NO)
        assert client.outstanding(base) == Release(client.claim)


def test_a_silent_store_does_not_collect_a_growing_chain() -> None:
    client = ByHand(exactly())
    lengths = []
    for _ in range(100):
        client.starts()
        for base in (0, 1, 2):
            while isinstance(client.outstanding(base), Release):
                client.hears(base, DONE)
        client.hears_no(0, 1)
        lengths.append(len(client.bases[3].chain))
    assert client.attempt == 100
    assert max(lengths) <= 3
    assert client.sent_of("Request").count(3) == 1


def test_when_the_silent_store_speaks_again_its_first_grant_is_given_back() -> None:
    client = ByHand(exactly())
    for _ in range(5):
        client.starts()
        client.fires("attempt")
        for base in (0, 1, 2):
            client.hears(base, NO)
            client.hears(base, DONE)
    client.hears(3, YES)
    assert client.outstanding(3) == Release(client.claim.but(attempt=1))
    client.hears(3, DONE)
    assert client.bases[3].chain == ()


# Attempts and answers


def test_an_answer_to_an_old_attempt_counts_for_nothing() -> None:
    """E1: late grants of the first attempt must not make up a quorum in the second."""
    client = asking()
    client.fires("attempt")
    client.starts()
    client.hears_yes(0, 1, 2)
    assert client.news == [("refused",)]
    assert client.stage is Stage.ASKING
    for base in (0, 1, 2):
        assert client.outstanding(base) == Release(client.claim.but(attempt=1))
        client.hears(base, DONE)
        assert client.outstanding(base).claim.attempt == 2
    client.hears_yes(0, 1, 2)
    assert client.news[-1][0] == "granted"


def test_a_new_attempt_counts_from_its_own_request_and_not_from_the_first() -> None:
    """...nor from when the chain let the request through: that would be the same attempt, later."""
    client = asking()
    client.fires("attempt")
    client.starts()
    client.hand.at = 6.0
    for base in (0, 1, 2):
        client.hears(base, NO)
        client.hears(base, DONE)
    client.hears_yes(0, 1, 2)
    assert client.news[-1][0] == "granted"
    assert client.news[-1][2] <= 6.0 + 10.0


def test_an_answer_that_nobody_waits_for_is_ignored() -> None:
    client = asking()
    client.hears_yes(0)
    client.hears(0, YES)
    client.hears(0, NO)
    client.hears_yes(1, 2)
    assert client.news == [("granted", 100, 10.0)]


def test_who_never_asked_for_anything_can_leave_without_a_word() -> None:
    client = ByHand(exactly())
    client.release(client.hand)
    assert client.sent_of("Release") == []


# Leaving


def test_a_release_goes_to_every_base() -> None:
    """E6."""
    client = holding()
    client.release(client.hand)
    assert client.sent_of("Release") == [0, 1, 2]
    client.hears(3, YES)
    assert client.sent_of("Release") == [0, 1, 2, 3]


def test_belief_is_over_before_the_first_release_leaves() -> None:
    """E5."""
    client = holding()
    client.release(client.hand)
    released = [sent for sent in client.sent if sent.kind == "Release"]
    assert len(released) == 3
    assert not any(sent.believed for sent in released)


def test_a_release_that_failed_is_tried_again() -> None:
    client = holding()
    client.release(client.hand)
    client.hears(0, None)
    for timer in list(client.hand.timers):
        client.fires(timer)
    assert client.sent_of("Release").count(0) == 2


def test_after_leaving_everything_starts_afresh() -> None:
    client = holding()
    client.release(client.hand)
    for base in (0, 1, 2):
        client.hears(base, DONE)
    client.starts()
    assert client.attempt == 2
    assert client.outstanding(0) == Request(client.claim, 10.0, None, 0, 101, ("signed", 101, None))


# Renewing


def renewing(**changes: Any) -> ByHand:
    client = holding(**changes)
    client.hears(3, NO)
    client.hand.at = 4.0
    client.renew(client.hand)
    return client


def extended(client: ByHand, *bases: int) -> None:
    for base in bases:
        client.hears(base, Answer(Grade.COMMITTED, 100))


def test_a_renewal_extends_what_is_ours_and_asks_for_the_rest() -> None:
    client = renewing()
    assert client.sent_of("Extend") == [0, 1, 2]
    assert isinstance(client.outstanding(3), Request)


def test_a_renewal_counts_from_its_own_start_and_keeps_the_token() -> None:
    client = renewing()
    client.hand.at = 5.0
    extended(client, 0, 1, 2)
    assert client.news == [("granted", 100, 10.0), ("granted", 100, 14.0)]
    assert client.until is not None
    assert client.until.at == 14.0
    assert client.hand.timers == {}


def test_a_renewal_that_fails_keeps_the_old_term_and_releases_nothing() -> None:
    """E5."""
    client = renewing()
    extended(client, 0)
    client.hears(1, GONE)
    client.hears(2, GONE)
    assert client.stage is Stage.HOLDING
    assert client.until is not None
    assert client.until.at == 10.0
    assert client.sent_of("Release") == []
    assert client.news == [("granted", 100, 10.0)]


def test_a_renewal_that_takes_too_long_keeps_the_old_term_too() -> None:
    client = renewing()
    extended(client, 0, 1)
    client.fires("attempt")
    assert client.stage is Stage.HOLDING
    assert client.until is not None
    assert client.until.at == 10.0
    assert client.sent_of("Release") == []


def test_a_failed_renewal_can_be_tried_again_while_the_old_term_lasts() -> None:
    client = renewing()
    client.fires("attempt")
    client.hand.at = 9.5
    client.renew(client.hand)
    for base in (0, 1, 2):
        extended(client, base)
        extended(client, base)
    assert client.news[-1] == ("granted", 100, 19.5)


def test_a_late_answer_to_an_earlier_renewal_is_no_vote_in_the_next() -> None:
    client = renewing()
    client.fires("attempt")
    client.hand.at = 9.5
    client.renew(client.hand)
    extended(client, 0, 1, 2)
    assert client.stage is Stage.RENEWING
    assert client.news == [("granted", 100, 10.0)]


def test_once_belief_is_over_a_renewal_is_refused_without_asking_anybody() -> None:
    """E26: somebody may have been in since."""
    client = holding()
    client.hand.at = 10.0
    client.renew(client.hand)
    assert client.sent_of("Extend") == []
    assert client.stage is Stage.HOLDING


def test_a_base_that_gives_what_it_had_refused_repairs_a_renewal_before_the_old_end() -> None:
    client = renewing()
    client.hand.at = 9.0
    extended(client, 0, 1)
    client.hears(2, GONE)
    assert client.stage is Stage.RENEWING
    client.hand.at = 9.99
    client.hears(3, Answer(Grade.COMMITTED, 100))
    assert client.news[-1] == ("granted", 100, 14.0)


def test_a_repair_after_the_old_end_counts_for_nothing() -> None:
    """E26."""
    client = holding()
    client.hears(3, NO)
    client.hand.at = 9.0
    client.renew(client.hand)
    extended(client, 0, 1)
    client.hand.at = 10.6
    client.hears(3, Answer(Grade.COMMITTED, 100))
    assert client.news == [("granted", 100, 10.0)]
    client.hears(2, GONE)
    assert client.stage is Stage.HOLDING
    assert client.until is not None
    assert client.until.at == 10.0


def test_extensions_that_come_too_late_to_be_useful_are_no_renewal() -> None:
    client = renewing(attempt_timeout=50.0, ttl=10.0)
    client.hand.at = 12.5
    extended(client, 0, 1, 2)
    assert len(client.news) == 1


def test_releasing_during_a_renewal_releases_everywhere() -> None:
    client = renewing()
    client.release(client.hand)
    for base in range(4):
        client.hears(base, Answer(Grade.COMMITTED, 100))
        assert client.outstanding(base) == Release(client.claim, 1)
    assert client.news == [("granted", 100, 10.0)]


@pytest.mark.parametrize("token", [None, 7, 10**9])
def test_a_base_that_lies_about_the_token_of_a_renewal_changes_nothing(token: int | None) -> None:
    client = renewing()
    client.hears(0, Answer(Grade.COMMITTED, token))
    extended(client, 1, 2)
    client.hears(3, Answer(Grade.COMMITTED, 100))
    assert client.news[-1][:2] == ("granted", 100)


def test_renewing_past_a_silent_store_does_not_collect_a_growing_chain() -> None:
    client = holding()
    for _ in range(100):
        client.hand.at += 3.0
        client.renew(client.hand)
        extended(client, 0, 1, 2)
    assert client.news[-1][2] == client.hand.at + 10.0
    assert len(client.bases[3].chain) <= 3


def test_a_late_answer_to_the_first_request_is_no_refusal_of_a_renewal() -> None:
    client = holding()
    client.hand.at = 4.0
    client.renew(client.hand)
    client.hears(0, GONE)
    client.hears(3, Answer(Grade.COMMITTED, 100))
    extended(client, 1, 2)
    client.hears(3, Answer(Grade.COMMITTED, 100))
    assert client.news[-1] == ("granted", 100, 14.0)


# Tokens


def test_a_guess_is_the_clock_or_one_more_than_the_last_token() -> None:
    client = holding()
    client.release(client.hand)
    client.hand.wall = 50
    client.starts()
    assert client.guess == 101
    client.hand.wall = 5_000
    client.release(client.hand)
    client.starts()
    assert client.guess == 5_000


def test_where_one_store_is_all_there_is_it_counts_by_itself() -> None:
    client = ByHand(Terms(1, 0, ttl=10.0, rho=0.0)).starts()
    request = client.outstanding(0)
    assert isinstance(request, Request)
    assert request.token is NEXT
    client.hears(0, Answer(Grade.COMMITTED, 7))
    assert client.news == [("granted", 7, 10.0)]


def test_a_tentative_grant_is_no_vote() -> None:
    client = asking()
    client.hears_yes(0, 1)
    client.hears(2, Answer(Grade.TENTATIVE, evidence=("signed", 500, None)))
    assert client.news == []


def test_a_token_that_was_too_small_is_followed_by_a_round_that_commits_a_larger_one() -> None:
    client = asking()
    client.hears_yes(0, 1)
    client.hears(2, Answer(Grade.TENTATIVE, evidence=("signed", 500, None)))
    assert client.sent_of("Commit") == [0, 1, 2]
    assert client.outstanding(0) == Commit(client.claim, 501, ("signed", 501, None))
    client.hears_yes(0, 1)
    assert client.news == []
    client.hears_yes(2)
    assert client.news == [("granted", 501, 10.0)]


def test_the_commit_round_does_not_make_the_lease_longer() -> None:
    client = asking()
    client.hears_yes(0, 1)
    client.hears(2, Answer(Grade.TENTATIVE, evidence=("signed", 500, None)))
    client.hand.at = 3.0
    client.hears_yes(0, 1, 2)
    assert client.news == [("granted", 501, 10.0)]


def test_a_commit_of_another_token_is_no_vote() -> None:
    """Section 6.1 of the prototypes: a late ok for token 501 must not count for token 801."""
    client = asking()
    client.hears_yes(0, 1)
    client.hears(2, Answer(Grade.TENTATIVE, evidence=("signed", 500, None)))
    client.hears(3, Answer(Grade.TENTATIVE, evidence=("signed", 800, None)))
    assert client.guess == 801
    client.hears(0, Answer(Grade.COMMITTED, 501))
    client.hears(1, Answer(Grade.COMMITTED, 501))
    client.hears(2, Answer(Grade.COMMITTED, 501))
    assert client.news == []
    client.hears_yes(0, 1, 2)
    assert client.news == [("granted", 801, 10.0)]


def test_evidence_that_proves_nothing_raises_no_token() -> None:
    client = asking()
    client.hears_yes(0, 1)
    client.hears(3, Answer(Grade.TENTATIVE, evidence=("forged", 10**15, None)))
    assert client.guess == 100
    client.hears_yes(2)
    assert client.news == [("granted", 100, 10.0)]


@pytest.mark.parametrize("grade", [Grade.COMMITTED, Grade.TENTATIVE])
def test_a_bare_number_in_an_answer_raises_no_token(grade: Grade) -> None:
    client = asking()
    client.hears_yes(0, 1)
    client.hears(3, Answer(grade, 2**60))
    assert client.guess == 100


def test_a_queue_among_stores_that_keep_tokens_is_no_vote() -> None:
    client = asking()
    client.hears_yes(0, 1)
    client.hears(2, YES)
    assert client.news == []
    client.hears(2, Answer(Grade.FAILED))
    client.hears_yes(3)
    assert client.news == [("granted", 100, 10.0)]


def test_a_lease_that_is_not_fenced_has_no_token_whatever_a_base_says() -> None:
    client = unfenced()
    client.hears(0, Answer(Grade.COMMITTED, 99))
    client.hears(1, YES)
    client.hears(2, YES)
    assert client.news == [("granted", None, 10.0)]


# Waiting


def priority(**changes: Any) -> ByHand:
    return unfenced(policy=Policy.PRIORITY, poll=1.0, wait=9.0, **changes)


def refusal(ticket: int = 0) -> Answer:
    return Answer(Grade.REFUSED, ticket=("signed", None, ticket) if ticket else None)


def test_the_first_question_carries_no_ticket() -> None:
    request = priority().outstanding(0)
    assert isinstance(request, Request)
    assert (request.ticket, request.wait) == (None, 0)


def test_who_is_refused_takes_a_ticket_larger_than_all_that_a_quorum_knows_of() -> None:
    client = priority()
    client.hears(0, refusal(4))
    client.hears(1, refusal(9))
    assert client.ticket is None
    client.hears(2, refusal(2))
    assert client.ticket == 10
    request = client.outstanding(0)
    assert isinstance(request, Request)
    assert (request.ticket, request.wait) == (10, 9.0)


def test_a_ticket_is_kept_until_it_is_served() -> None:
    client = priority()
    for _ in range(3):
        for base in (0, 1, 2):
            client.hears(base, refusal(4))
        if "poll" in client.hand.timers:
            client.fires("poll")
    for base in (0, 1, 2):
        client.hears(base, refusal(77))
    assert client.ticket == 5


def test_an_unsigned_ticket_is_worth_nothing() -> None:
    client = priority()
    for base in (0, 1):
        client.hears(base, refusal(4))
    client.hears(2, Answer(Grade.REFUSED, ticket=("forged", None, 10**9)))
    assert client.ticket == 5


def waiting_at(*granted: int) -> ByHand:
    """Has a ticket, is granted at some bases and refused at the others but the last."""
    client = priority()
    for base in (0, 1, 2):
        client.hears(base, refusal())
    for base in (0, 1, 2):
        client.hears(base, YES if base in granted else refusal())
    return client


def test_a_waiter_asks_again_at_the_next_poll() -> None:
    client = waiting_at()
    before = len(client.sent)
    client.fires("poll")
    assert [sent.base for sent in client.sent[before:]] == [0, 1, 2]


def test_a_vote_is_forgotten_before_it_is_given_away() -> None:
    client = waiting_at(0, 1)
    client.fires("poll")
    client.hears(0, Answer(Grade.COMMITTED, smaller=True))
    assert isinstance(client.outstanding(0), Yield)
    assert client.bases[0].until is None
    client.hears(1, YES)
    client.hears(2, YES)
    assert client.news == []
    client.hears(0, DONE)
    client.fires("poll")
    assert isinstance(client.outstanding(0), Request)


def test_a_smaller_ticket_at_one_base_yields_no_other() -> None:
    client = waiting_at(0, 1)
    client.fires("poll")
    client.hears(0, Answer(Grade.COMMITTED, smaller=True))
    client.hears(1, YES)
    assert not isinstance(client.bases[1].chain and client.outstanding(1), Yield)


def test_who_has_a_quorum_does_not_yield() -> None:
    client = waiting_at(0, 1)
    client.fires("poll")
    client.hears(1, YES)
    client.hears(2, Answer(Grade.COMMITTED, smaller=True))
    assert client.news[-1][0] == "granted"
    assert client.sent_of("Yield") == []


def test_votes_are_believed_until_the_first_of_them_might_end() -> None:
    client = waiting_at(0, 1)
    client.hand.at = 3.0
    client.fires("poll")
    client.hears(2, YES)
    assert client.news == [("granted", None, 10.0)]
    again = waiting_at(0, 1)
    again.hand.at = 3.0
    again.fires("poll")
    again.hears(0, YES)
    again.hears(1, YES)
    again.hears(2, YES)
    assert again.news == [("granted", None, 13.0)]


def test_a_vote_that_has_grown_old_is_refreshed_and_not_counted() -> None:
    """Section 6.2 of the prototypes: granted at the start, and the others came a term later."""
    client = waiting_at(0, 1)
    client.hand.at = 9.0
    client.fires("poll")
    client.hears(2, YES)
    assert client.news == []
    client.hears(0, YES)
    client.hears(1, YES)
    assert client.news == [("granted", None, 19.0)]


def test_giving_up_waiting_releases_everywhere() -> None:
    client = waiting_at(0)
    client.release(client.hand)
    assert client.sent_of("Release") == [0, 1, 2]
    client.hears(3, refusal())
    assert client.sent_of("Release") == [0, 1, 2, 3]
    assert client.hand.timers == {}


def test_a_base_that_always_knows_of_somebody_smaller_is_not_asked_without_end() -> None:
    client = waiting_at()
    client.fires("poll")
    before = len(client.sent)
    for _ in range(50):
        yields = client.bases[0].chain and isinstance(client.outstanding(0), Yield)
        client.hears(0, DONE if yields else Answer(Grade.COMMITTED, smaller=True))
    assert len(client.sent) - before <= 6


# Backing off


def test_who_backs_off_releases_rests_and_tries_again() -> None:
    client = unfenced(policy=Policy.BACKOFF, backoff=2.0)
    client.hand.choice = 250
    client.hears_no(0, 1)
    assert client.news == []
    assert client.hand.timers == {"retry": 0.5}
    assert client.sent_of("Release") == [0, 1]
    client.fires("retry")
    assert client.attempt == 2


def test_leaving_while_resting_ends_it() -> None:
    client = unfenced(policy=Policy.BACKOFF)
    client.hears_no(0, 1)
    client.release(client.hand)
    assert client.hand.timers == {}
    assert client.stage is Stage.IDLE


# Answers that do not come in time


def impatient(**changes: Any) -> ByHand:
    return unfenced(access_timeout=2.0, **changes)


def test_an_access_that_takes_too_long_is_a_refusal() -> None:
    client = impatient()
    client.hears(0, YES)
    client.fires("access/1")
    assert client.news == []
    client.fires("access/2")
    assert client.news == [("refused",)]


def test_a_base_that_took_too_long_is_asked_again_at_the_next_poll() -> None:
    client = impatient(policy=Policy.PRIORITY)
    client.hears(0, YES)
    client.hears(1, YES)
    client.fires("access/2")
    client.fires("access/3")
    client.fires("poll")
    assert isinstance(client.outstanding(2), Request)
    client.hears(2, YES)
    assert client.news[-1][0] == "granted"


def test_an_access_that_was_answered_does_not_take_too_long() -> None:
    client = impatient()
    client.hears(0, YES)
    client.fires("access/0")
    assert client.bases[0].grade is Grade.COMMITTED


def waiting_impatiently() -> ByHand:
    """Granted at the first two bases, with a ticket, and asked to yield them."""
    client = impatient(policy=Policy.PRIORITY, poll=1.0, wait=9.0)
    for base in (0, 1, 2):
        client.hears(base, refusal())
    for base in (0, 1):
        client.hears(base, Answer(Grade.COMMITTED, smaller=True))
    return client


def test_a_base_whose_yield_may_still_be_carried_out_is_no_vote_in_this_attempt() -> None:
    client = waiting_impatiently()
    client.fires("access/0")
    client.hears(1, DONE)
    client.hears(2, YES)
    client.fires("poll")
    assert client.bases[0].chain == ()
    client.hears(1, YES)
    assert client.news == []
    client.hears(3, YES)
    assert [each[0] for each in client.news] == ["granted"]
    assert client.attempt == 1


def test_when_too_many_yields_were_lost_a_new_attempt_begins_with_the_same_ticket() -> None:
    client = waiting_impatiently()
    ticket = client.ticket
    client.fires("access/0")
    assert client.attempt == 1
    client.fires("access/1")
    assert client.attempt == 2
    assert client.ticket == ticket
    assert client.outstanding(0) == Release(client.claim.but(attempt=1))


def test_a_release_that_took_too_long_is_tried_again_until_its_term_is_over() -> None:
    client = holding(access_timeout=2.0, fenced=False)
    client.release(client.hand)
    tries = 0
    while "access/0" in client.hand.timers and client.hand.at < 100.0:
        tries += 1
        client.fires("access/0")
        if "owed" in client.hand.timers:
            client.fires("owed")
    assert 2 <= tries <= 10
    assert client.hand.at <= 20.0
    assert client.bases[0].chain == ()


def test_a_release_that_got_through_at_last_is_not_sent_again() -> None:
    client = holding()
    client.release(client.hand)
    client.hears(0, None)
    client.fires("owed")
    client.hears(0, DONE)
    client.hears(1, None)
    client.fires("owed")
    assert client.sent_of("Release").count(0) == 2


def test_a_release_that_is_owed_is_paid_also_when_the_base_was_busy() -> None:
    """We asked for something else meanwhile, and that base does not answer."""
    client = holding()
    client.release(client.hand)
    client.hears(0, None)
    client.starts()
    client.fires("owed")
    client.hears(0, None)
    while client.hand.timers.keys() & {"owed"}:
        client.fires("owed")
    assert [sent.operation.claim.attempt for sent in client.sent if sent.kind == "Release" and sent.base == 0] == [1, 1]


def test_a_base_that_always_refuses_a_release_is_not_told_without_end() -> None:
    client = holding()
    client.release(client.hand)
    for _ in range(50):
        client.hears(0, NO)
    assert client.sent_of("Release").count(0) <= 10


def test_a_poll_that_meets_a_release_under_way_is_not_lost() -> None:
    """One store. What we had given up is released late; meanwhile we wait again."""
    client = ByHand(exactly(n=1, f=0, fenced=False, policy=Policy.PRIORITY, poll=1.0, wait=9.0)).starts()
    client.release(client.hand)
    client.hears_no(0)
    client.hears(0, None)
    client.starts()
    client.hears_no(0)
    client.hears_no(0)
    client.fires("owed")
    client.fires("poll")
    client.hears(0, DONE)
    assert client.bases[0].chain or client.hand.timers


# What no store says

ODD_ANSWERS = [
    Answer(None),  # type: ignore[arg-type]
    Answer("committed"),  # type: ignore[arg-type]
    Answer(Grade.COMMITTED, "many"),  # type: ignore[arg-type]
    Answer(Grade.COMMITTED, 500.5),  # type: ignore[arg-type]
    Answer(Grade.TENTATIVE, (1,)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("odd", ODD_ANSWERS, ids=range(len(ODD_ANSWERS)))
def test_an_answer_with_nonsense_inside_is_a_failed_base(odd: Answer) -> None:
    client = asking()
    client.hears(3, odd)
    client.hears_yes(0, 1)
    assert isinstance(client.guess, int)
    client.hears_yes(2)
    assert client.news == [("granted", 100, 10.0)]


@pytest.mark.parametrize("reply", [None, "nonsense", 42, (), Answer(Grade.DONE), Answer(Grade.GONE)])
def test_one_base_that_talks_nonsense_changes_nothing(reply: Any) -> None:
    client = asking()
    client.hears(3, reply)
    client.hears_yes(0, 1, 2)
    assert client.news == [("granted", 100, 10.0)]


def test_a_plan_of_several_accesses_that_fails_in_the_middle_frees_its_chain() -> None:
    class Several(ByHand):
        __slots__ = ()

        def access(self, ctx: Any, base: int, access: Any) -> None:
            pass

    client = Several(exactly(), algorithm=Conditional()).starts()
    for base in range(2):
        client.hears(base, None)
    assert client.news == [("refused",)]
    assert [type(base.chain[0].operation) for base in client.bases] == [Release, Release, Request, Request]
    assert Extend(client.claim, 1.0, 1) != Extend(client.claim, 1.0, 2)
