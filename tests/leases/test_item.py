"""``Item.apply`` against a reference that was written from the specification, and its edges one by one."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trinco.core.instant import Instant
from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item, Limits, Waiter
from trinco.leases.operation import NEXT, Answer, Commit, Extend, Grade, Operation, Release, Request, Yield

A, B, C = Claim("a", 1), Claim("b", 1), Claim("c", 1)


def after(*steps: tuple[float, Operation], item: Item = Item(), limits: Limits = Limits()) -> tuple[Item, Answer]:
    """The item and the last answer after some operations, each at its time."""
    answer = None
    for now, operation in steps:
        item, answer, _ = item.apply(operation, now, limits)
    assert answer is not None
    return item, answer


def grade(*steps: tuple[float, Operation], **rest: Any) -> Grade:
    return after(*steps, **rest)[1].grade


# The boundary


def test_a_lease_that_ends_now_can_be_taken() -> None:
    assert grade((0, Request(A, 5)), (5, Request(B, 5))) is Grade.COMMITTED


def test_a_lease_that_ends_later_cannot() -> None:
    item, answer = after((0, Request(A, 5)), (4.999, Request(B, 5)))
    assert answer.grade is Grade.REFUSED
    assert answer.remaining == pytest.approx(0.001)
    assert item.holder is not None
    assert item.holder.claim == A


def test_instants_do_as_well_as_seconds() -> None:
    item, _, _ = Item().apply(Request(A, 5), Instant(10))
    assert item.apply(Request(B, 5), Instant(14))[1].grade is Grade.REFUSED
    assert item.apply(Request(B, 5), Instant(15))[1].grade is Grade.COMMITTED


def test_an_extension_at_the_boundary_comes_too_late() -> None:
    assert grade((0, Request(A, 5)), (5, Extend(A, 5, 1))) is Grade.GONE
    item, answer = after((0, Request(A, 5)), (4, Extend(A, 5, 1)))
    assert (answer.grade, answer.remaining) == (Grade.COMMITTED, 5)
    assert item.holder is not None
    assert item.holder.until == 9


def test_asking_again_never_makes_a_term_shorter() -> None:
    for shorter in (Request(A, 1), Extend(A, 1, 1)):
        item, answer = after((0, Request(A, 5)), (1, shorter))
        assert (answer.grade, answer.remaining) == (Grade.COMMITTED, 4)
        assert item.holder is not None
        assert item.holder.until == 5


def test_no_term_counts_for_longer_than_the_limit() -> None:
    """E21: a lease for a thousand years."""
    limits = Limits(t_max=60)
    assert after((0, Request(A, 1e10)), limits=limits)[1].remaining == 60
    assert grade((0, Request(A, 1e10)), (60, Request(B, 5)), limits=limits) is Grade.COMMITTED
    assert after((0, Request(A, 5)), (1, Extend(A, 1e10, 1)), limits=limits)[1].remaining == 60


# Claims


def test_a_release_removes_exactly_its_claim() -> None:
    """E8: neither another owner's lease nor a later one of our own."""
    for late in (Release(B), Release(Claim("a", 2)), Release(A.but(nonce=b"other"))):
        item, answer = after((0, Request(A, 5)), (1, late))
        assert answer.grade is Grade.GONE
        assert item.holder is not None
        assert item.holder.claim == A
    item, answer = after((0, Request(A, 5)), (1, Release(A)))
    assert answer.grade is Grade.DONE
    assert item.holder is None


def test_a_release_of_what_has_run_out_finds_nothing() -> None:
    assert grade((0, Request(A, 5)), (5, Release(A))) is Grade.GONE


def test_a_release_removes_a_waiter_too() -> None:
    item, answer = after((0, Request(A, 5)), (0, Request(B, 5, 1, 9)), (1, Release(B)))
    assert answer.grade is Grade.DONE
    assert item.waiters == ()


def test_an_older_attempt_never_replaces_a_newer_one_that_holds() -> None:
    """E4, and the release that follows it."""
    newer = Claim("a", 2)
    item, answer = after((0, Request(newer, 5)), (1, Request(A, 5)), (1, Release(A)))
    assert answer.grade is Grade.GONE
    assert item.holder is not None
    assert item.holder.claim == newer


def test_a_newer_attempt_replaces_an_older_one_and_needs_a_token_of_its_own() -> None:
    item, _ = after((0, Request(A, 5, token=7)))
    assert grade((1, Request(Claim("a", 2), 5, token=7)), item=item) is Grade.TENTATIVE
    replaced, answer = after((1, Request(Claim("a", 2), 5, token=8)), item=item)
    assert (answer.grade, answer.token) == (Grade.COMMITTED, 8)
    assert replaced.apply(Release(A), 1)[1].grade is Grade.GONE


def test_an_older_attempt_never_replaces_a_newer_one_that_waits_as_a_waiter() -> None:
    newer = Claim("b", 2)
    steps = [(0, Request(A, 5)), (0, Request(newer, 5, 3, 9)), (0, Request(B, 5, 1, 9))]
    assert [each.claim for each in after(*steps)[0].waiters] == [newer]


def test_an_older_attempt_is_refused_where_a_newer_one_waits() -> None:
    newer = Claim("b", 2)
    item, answer = after((0, Request(A, 5)), (0, Request(newer, 5, 3, 9)), (0, Release(A)), (0, Request(B, 5, 1, 9)))
    assert answer.grade is Grade.REFUSED
    assert [each.claim for each in item.waiters] == [newer]


def test_an_older_attempt_does_not_queue_behind_a_newer_one_that_holds() -> None:
    item, _ = after((0, Request(Claim("a", 2), 5)), (0, Request(A, 5, 1, 9)), (1, Release(Claim("a", 2))))
    assert item.waiters == ()
    assert item.apply(Request(B, 5), 1)[1].grade is Grade.COMMITTED


def test_an_older_attempt_can_neither_extend_nor_commit_nor_yield_a_newer_one() -> None:
    item, _ = after((0, Request(Claim("a", 2), 5, token=3)))
    for late in (Extend(A, 9, 1), Commit(A, 9), Yield(A, 1, 9)):
        changed, answer, _ = item.apply(late, 1)
        assert answer.grade is Grade.GONE
        assert changed == item


# Waiting


def test_only_who_has_a_ticket_and_asks_to_wait_is_remembered() -> None:
    assert after((0, Request(A, 5)), (0, Request(B, 5)))[0].waiters == ()
    assert after((0, Request(A, 5)), (0, Request(B, 5, ticket=1, wait=0)))[0].waiters == ()
    assert after((0, Request(A, 5)), (0, Request(B, 5, ticket=None, wait=9)))[0].waiters == ()
    assert len(after((0, Request(A, 5)), (0, Request(B, 5, ticket=0, wait=9)))[0].waiters) == 1


def test_a_free_lease_goes_to_the_smallest_ticket_and_to_nobody_without_one() -> None:
    item, _ = after((0, Request(A, 5)), (0, Request(B, 5, 4, 9)), (0, Release(A)))
    assert grade((1, Request(C, 5)), item=item) is Grade.REFUSED
    assert grade((1, Request(C, 5, 5, 9)), item=item) is Grade.REFUSED
    assert grade((1, Request(C, 5, 3, 9)), item=item) is Grade.COMMITTED
    assert grade((1, Request(B, 5, 4, 9)), item=item) is Grade.COMMITTED


def test_equal_tickets_are_told_apart_by_their_owners() -> None:
    item, _ = after((0, Request(A, 5)), (0, Request(C, 5, 4, 9)), (0, Request(B, 5, 4, 9)), (0, Release(A)))
    assert [each.claim for each in item.waiters] == [B, C]
    assert grade((1, Request(C, 5, 4, 9)), item=item) is Grade.REFUSED
    assert grade((1, Request(B, 5, 4, 9)), item=item) is Grade.COMMITTED


def test_a_waiter_that_is_not_heard_of_again_is_forgotten() -> None:
    item, _ = after((0, Request(A, 50)), (0, Request(B, 5, 1, 9)), (0, Release(A)))
    assert grade((8, Request(C, 5)), item=item) is Grade.REFUSED
    assert grade((9, Request(C, 5)), item=item) is Grade.COMMITTED


def test_a_waiter_is_written_again_only_when_half_of_its_time_is_over() -> None:
    """A store that compares and sets need not be written at every poll."""
    item, _ = after((0, Request(A, 50)), (0, Request(B, 5, 1, 8)))
    assert after((3, Request(B, 5, 1, 8)), item=item)[0] == item
    assert after((4, Request(B, 5, 1, 8)), item=item)[0].waiters[0].until == 12
    assert after((1, Request(B, 5, 2, 8)), item=item)[0].waiters[0].ticket == 2


def test_whoever_is_granted_waits_no_longer() -> None:
    item, _ = after((0, Request(A, 5)), (0, Request(B, 5, 1, 9)), (0, Release(A)), (0, Request(B, 5, 1, 9)))
    assert item.waiters == ()


def test_a_grant_says_whether_somebody_smaller_waits() -> None:
    item, answer = after((0, Request(A, 5, 5, 9)), (0, Request(B, 5, 4, 9)), (1, Request(A, 5, 5, 9)))
    assert (answer.grade, answer.smaller) == (Grade.COMMITTED, True)
    assert after((1, Request(A, 5, 3, 9)), item=item)[1].smaller is False
    assert after((1, Request(A, 5, None)), item=item)[1].smaller is True


def test_an_answer_shows_the_largest_ticket_of_anybody_else() -> None:
    item, answer = after(
        (0, Request(A, 5, 2, 9, entry="a2")), (0, Request(B, 5, 7, 9, entry="b7")), (0, Request(C, 5, 4, 9, entry="c4"))
    )
    assert answer.ticket == "b7"
    assert after((0, Request(B, 5, 7, 9, entry="b7")), item=item)[1].ticket == "c4"
    assert after((0, Release(B)), (0, Release(C)), (0, Request(B, 5)), item=item)[1].ticket == "a2"
    assert after((0, Request(A, 5)), (0, Request(B, 5)))[1].ticket is None


def test_of_too_many_waiters_the_largest_goes() -> None:
    limits = Limits(waiters=2)
    queue = [(0, Request(A, 5)), (0, Request(B, 5, 5, 9)), (0, Request(C, 5, 6, 9))]
    late = Claim("d", 1)
    smaller, _ = after(*queue, (0, Request(late, 5, 4, 9)), limits=limits)
    assert [each.claim for each in smaller.waiters] == [late, B]
    larger, _ = after(*queue, (0, Request(late, 5, 7, 9)), limits=limits)
    assert [each.claim for each in larger.waiters] == [B, C]


# Yielding and waking


def test_who_yields_goes_back_among_the_waiters() -> None:
    steps = [(0, Request(A, 5, 5, 9)), (0, Request(B, 5, 4, 9)), (0, Request(C, 5, 6, 9))]
    item, answer = after(*steps, (1, Yield(A, 5, 9)))
    assert answer.grade is Grade.DONE
    assert item.holder is None
    assert [each.claim for each in item.waiters] == [B, A, C]


def test_a_yield_without_a_ticket_only_gives_up() -> None:
    item, answer = after((0, Request(A, 5)), (1, Yield(A, None, 9)))
    assert (answer.grade, item.holder, item.waiters) == (Grade.DONE, None, ())


def test_the_first_waiter_is_woken_when_the_lease_is_free_and_only_then() -> None:
    item, _ = after((0, Request(A, 5, 5, 9)), (0, Request(C, 5, 6, 9)), (0, Request(B, 5, 4, 9)))
    assert item.apply(Release(C), 1)[2] == ()
    assert item.apply(Release(A), 1)[2] == (B,)
    assert item.apply(Yield(A, 5, 9), 1)[2] == (B,)
    assert item.apply(Release(C), 5)[2] == (B,)
    assert Item().apply(Release(A), 1)[2] == ()


# Tokens


def test_a_guess_that_is_larger_than_all_before_is_committed() -> None:
    item, answer = after((0, Request(A, 5, token=10, entry="ten")), item=Item(9))
    assert (answer.grade, answer.token) == (Grade.COMMITTED, 10)
    assert (item.token, item.evidence) == (10, "ten")


@pytest.mark.parametrize("guess", [9, 3, 0])
def test_a_guess_that_is_too_small_is_granted_tentatively_with_evidence(guess: int) -> None:
    item, answer = after((0, Request(A, 5, token=guess)), item=Item(9, evidence="nine"))
    assert (answer.grade, answer.token, answer.evidence) == (Grade.TENTATIVE, None, "nine")
    assert (item.token, item.evidence) == (9, "nine")


def test_a_guess_beyond_the_clock_is_granted_tentatively_and_can_then_be_committed() -> None:
    limits = Limits(token=100)
    item, answer = after((0, Request(A, 5, token=101)), limits=limits)
    assert answer.grade is Grade.TENTATIVE
    assert after((0, Commit(A, 101)), item=item, limits=limits)[1].grade is Grade.COMMITTED


def test_a_store_that_counts_by_itself_needs_no_clock() -> None:
    answer = after((0, Request(A, 5, token=NEXT)), item=Item(100), limits=Limits(token=50))[1]
    assert (answer.grade, answer.token) == (Grade.COMMITTED, 101)


def test_a_store_on_its_own_counts_up() -> None:
    item, tokens = Item(41), []
    for now, claim in enumerate([A, B, C, Claim("a", 2)]):
        item, answer = after((now, Request(claim, 5, token=NEXT)), item=item)
        tokens.append(answer.token)
        item, _ = after((now, Release(claim)), item=item)
    assert tokens == [42, 43, 44, 45]


def test_asking_again_keeps_the_token() -> None:
    for token in (NEXT, 9):
        item, first = after((0, Request(A, 5, token=token)))
        item, second = after((1, Request(A, 5, token=token)), item=item)
        assert (second.grade, second.token) == (Grade.COMMITTED, first.token)
        assert after((2, Extend(A, 5, 1)), item=item)[1].token == first.token
        assert item.token == first.token


def test_a_commit_is_idempotent() -> None:
    item, first = after((0, Request(A, 5, token=3)), (1, Commit(A, 12)), item=Item(9))
    again, second = after((2, Commit(A, 12)), item=item)
    assert (first.grade, first.token) == (second.grade, second.token) == (Grade.COMMITTED, 12)
    assert again == item


def test_a_commit_that_is_too_small_is_refused_with_evidence() -> None:
    item, answer = after((0, Request(A, 5, token=3)), (1, Commit(A, 9)), item=Item(9, evidence="nine"))
    assert (answer.grade, answer.evidence, item.token) == (Grade.REFUSED, "nine", 9)


def test_a_commit_does_not_change_the_term() -> None:
    item, _ = after((0, Request(A, 5, token=3)), (4, Commit(A, 12)), item=Item(9))
    assert item.holder is not None
    assert item.holder.until == 5
    assert grade((5, Commit(A, 13)), item=item) is Grade.GONE


def test_a_commit_by_nobody_who_holds_is_answered_with_what_is_known() -> None:
    answer = after((0, Commit(A, 12)), item=Item(9, evidence="nine"))[1]
    assert (answer.grade, answer.evidence) == (Grade.GONE, "nine")


def test_what_is_left_of_a_lease_keeps_its_token() -> None:
    """The tombstone: released, run out, or replaced."""
    item, _ = after((0, Request(A, 5, token=7, entry="seven")))
    for left in (after((1, Release(A)), item=item)[0], item.settled(5), after((9, Request(B, 5)), item=item)[0]):
        assert (left.token, left.evidence) == (7, "seven")


# What travels

ends = st.integers(1, 50)


@given(st.none() | ends, st.lists(ends, max_size=4), st.integers(0, 40), st.integers(0, 10_000))
def test_durations_placed_back_where_they_were_counted_are_the_same_item(
    held: int | None, waits: list[int], since: int, start: int
) -> None:
    now = Instant(start + since)
    holder = None if held is None else Holder(A, now + held, 1, 2, "e")
    waiters = tuple(Waiter(Claim(str(place), 1), now + wait, place, None) for place, wait in enumerate(waits))
    item = Item(5, holder, waiters, "e")
    assert item.settled(now).counted_from(now).placed_at(now) == item


def test_what_ran_out_travels_as_nothing_left() -> None:
    travels = Item(5, Holder(A, 3, None, None, None)).counted_from(7)
    assert travels.holder is not None
    assert travels.holder.until == 0
    assert travels.settled(0).holder is None


def test_an_item_that_is_read_and_judged_elsewhere_gives_the_same_answer() -> None:
    item, _ = after((100, Request(A, 5, 3, 9, 8)), (101, Request(B, 5, 4, 9)))
    for now in (102, 104.5, 105, 120):
        for operation in (Request(B, 5, 4, 9), Extend(A, 5, 1), Release(A), Commit(A, 9), Yield(A, 3, 9)):
            here, answer, _ = item.apply(operation, now)
            travelled = item.settled(now).counted_from(now)
            there, same, _ = travelled.apply(operation, 0)
            assert same == answer
            assert there.placed_at(now) == here


# Against the reference


@dataclass
class Record:
    attempt: int
    until: int
    ticket: int | None
    token: int | None = None


@dataclass
class Reference:
    """The item of section 8 and 9 of the specification, as a clerk with a notebook would keep it."""

    t_max: int
    most: int
    token: int = 0
    held: dict[str, Record] = field(default_factory=dict)
    queue: dict[str, Record] = field(default_factory=dict)

    def strike_out(self, now: int) -> None:
        self.held = {owner: record for owner, record in self.held.items() if record.until > now}
        self.queue = {owner: record for owner, record in self.queue.items() if record.until > now}

    def line(self) -> list[str]:
        return sorted(self.queue, key=lambda owner: (self.queue[owner].ticket, owner))

    def goes_first(self, owner: str, ticket: int | None) -> bool:
        others = [(self.queue[other].ticket, other) for other in self.queue if other != owner]
        return bool(others) and (ticket is None or min(others) < (ticket, owner))

    def request(self, now: int, owner: str, request: Request) -> tuple[Grade, int | None]:
        attempt, ticket = request.claim.attempt, request.ticket
        mine = self.held.get(owner)
        if any(owner in book and attempt < book[owner].attempt for book in (self.held, self.queue)):
            return Grade.REFUSED, None
        if mine is None and (self.held or self.goes_first(owner, ticket)):
            if request.wait and ticket is not None and not self.knows_for_long(now, owner, request):
                self.join(owner, Record(attempt, now + int(request.wait), ticket))
            return Grade.REFUSED, None
        until = now + min(int(request.ttl), self.t_max)
        same = mine is not None and mine.attempt == attempt
        if mine is not None and same:
            until = max(until, mine.until)
        record = self.held[owner] = Record(attempt, until, ticket, mine.token if mine is not None and same else None)
        self.queue.pop(owner, None)
        wanted = self.token + 1 if request.token == NEXT else request.token
        if record.token is None and wanted is not None:
            if wanted <= self.token:
                return Grade.TENTATIVE, None
            record.token = self.token = wanted
        return Grade.COMMITTED, record.token

    def knows_for_long(self, now: int, owner: str, request: Request) -> bool:
        """Whether it waits already with this ticket, for more than half of the time that it asks for."""
        known = self.queue.get(owner)
        same = known is not None and (known.attempt, known.ticket) == (request.claim.attempt, request.ticket)
        return known is not None and same and 2 * (known.until - now) > request.wait

    def join(self, owner: str, record: Record) -> None:
        self.queue[owner] = record
        for surplus in self.line()[self.most :]:
            del self.queue[surplus]

    def commit(self, owner: str, commit: Commit) -> tuple[Grade, int | None]:
        mine = self.held.get(owner)
        if mine is None or mine.attempt != commit.claim.attempt:
            return Grade.GONE, None
        if mine.token != commit.token:
            if commit.token <= self.token:
                return Grade.REFUSED, None
            mine.token = self.token = commit.token
        return Grade.COMMITTED, commit.token

    def extend(self, now: int, owner: str, extend: Extend) -> tuple[Grade, int | None]:
        mine = self.held.get(owner)
        if mine is None or mine.attempt != extend.claim.attempt:
            return Grade.GONE, None
        mine.until = max(mine.until, now + min(int(extend.ttl), self.t_max))
        return Grade.COMMITTED, mine.token

    def give_up(self, owner: str, attempt: int) -> bool:
        mine = self.held.get(owner)
        if mine is None or mine.attempt != attempt:
            return False
        del self.held[owner]
        return True

    def leave(self, owner: str, attempt: int) -> bool:
        waits = owner in self.queue and self.queue[owner].attempt == attempt
        if waits:
            del self.queue[owner]
        return self.give_up(owner, attempt) or waits


LIMITS = Limits(t_max=12, waiters=2)
owners = st.sampled_from("abcd")
tickets = st.none() | st.integers(0, 3)
spans = st.integers(1, 20)
tokens = st.sampled_from([None, NEXT, -1, 0, 1, 3])
"""Guesses are relative to the largest token."""


class SeveralOwners(RuleBasedStateMachine):
    """Random operations of several owners in rising time: the item and the clerk agree on everything."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.item = Item()
        self.clerk = Reference(12, 2)
        self.attempts = dict.fromkeys("abcd", 1)
        self.issued: dict[int, Claim] = {}

    def claim(self, owner: str, late: bool = False) -> Claim:
        return Claim(owner, self.attempts[owner] - (late and self.attempts[owner] > 1))

    def applies(self, operation: Operation, expected: tuple[Grade, int | None]) -> Answer:
        before = self.item.token
        self.item, answer, woken = self.item.apply(operation, self.now, LIMITS)
        assert (answer.grade, answer.token) == expected
        assert self.item.token >= before
        if answer.token is not None:
            assert self.issued.setdefault(answer.token, operation.claim) == operation.claim
        if isinstance(operation, Release | Yield):
            line = self.clerk.line()
            assert [each.owner for each in woken] == ([] if self.clerk.held else line[:1])
        else:
            assert all(self.must_yield(each, operation) for each in woken)
        return answer

    def must_yield(self, woken: Claim, operation: Operation) -> bool:
        """Only a holder with a larger ticket than the one who came is disturbed."""
        holder = self.item.holder
        assert isinstance(operation, Request)
        assert operation.ticket is not None
        return holder is not None and holder.claim == woken and (operation.ticket, operation.claim.owner) < (
            holder.ticket, woken.owner
        )  # fmt: skip

    @rule(seconds=st.integers(0, 6))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(owner=owners)
    def starts_over(self, owner: str) -> None:
        """Abandons what it had; a late release may or may not come."""
        self.attempts[owner] += 1

    @rule(owner=owners, ticket=tickets, wait=st.sampled_from([0, 5, 9]), ttl=spans, token=tokens)
    def requests(self, owner: str, ticket: int | None, wait: int, ttl: int, token: Any) -> None:
        self.clerk.strike_out(self.now)
        guess = self.clerk.token + token if isinstance(token, int) else token
        request = Request(self.claim(owner), ttl, ticket, wait, guess)
        answer = self.applies(request, self.clerk.request(self.now, owner, request))
        assert answer.smaller == self.clerk.goes_first(owner, ticket)
        blocking = [record.until - self.now for record in self.clerk.held.values()]
        assert answer.remaining == (blocking[0] if blocking else 0)

    @rule(owner=owners, ticket=tickets, wait=st.sampled_from([0, 5]), ttl=spans)
    def requests_late(self, owner: str, ticket: int | None, wait: int, ttl: int) -> None:
        """What an old attempt had sent arrives; where nothing newer of the owner is there, it is as good as any."""
        self.clerk.strike_out(self.now)
        request = Request(self.claim(owner, late=True), ttl, ticket, wait)
        self.applies(request, self.clerk.request(self.now, owner, request))

    @rule(owner=owners, ttl=spans, late=st.booleans())
    def extends(self, owner: str, ttl: int, late: bool) -> None:
        self.clerk.strike_out(self.now)
        extend = Extend(self.claim(owner, late), ttl, 1)
        self.applies(extend, self.clerk.extend(self.now, owner, extend))

    @rule(owner=owners, step=st.integers(-2, 3), late=st.booleans())
    def commits(self, owner: str, step: int, late: bool) -> None:
        self.clerk.strike_out(self.now)
        commit = Commit(self.claim(owner, late), self.clerk.token + step)
        self.applies(commit, self.clerk.commit(owner, commit))

    @rule(owner=owners, ticket=tickets, wait=st.sampled_from([0, 5]), late=st.booleans())
    def yields(self, owner: str, ticket: int | None, wait: int, late: bool) -> None:
        self.clerk.strike_out(self.now)
        claim = self.claim(owner, late)
        had_it = self.clerk.give_up(owner, claim.attempt)
        if had_it and wait and ticket is not None:
            self.clerk.join(owner, Record(claim.attempt, self.now + wait, ticket))
        self.applies(Yield(claim, ticket, wait), (Grade.DONE if had_it else Grade.GONE, None))

    @rule(owner=owners, late=st.booleans())
    def releases(self, owner: str, late: bool) -> None:
        self.clerk.strike_out(self.now)
        claim = self.claim(owner, late)
        was_there = self.clerk.leave(owner, claim.attempt)
        self.applies(Release(claim), (Grade.DONE if was_there else Grade.GONE, None))

    @invariant()
    def the_item_and_the_clerk_agree(self) -> None:
        self.clerk.strike_out(self.now)
        item = self.item.settled(self.now)
        assert len(self.clerk.held) <= 1
        holder = item.holder
        held = {} if holder is None else {holder.claim.owner: _record(holder)}
        assert held == self.clerk.held
        assert [each.claim.owner for each in item.waiters] == self.clerk.line()
        assert {each.claim.owner: _record(each) for each in item.waiters} == self.clerk.queue
        assert item.token == self.clerk.token


def _record(entry: Any) -> Record:
    return Record(entry.claim.attempt, entry.until, entry.ticket, getattr(entry, "token", None))


SeveralOwners.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestSeveralOwners = SeveralOwners.TestCase


operations = st.one_of(
    st.builds(Request, st.builds(Claim, owners, st.integers(1, 3)), spans, tickets, st.sampled_from([0, 5]), tokens),
    st.builds(Extend, st.builds(Claim, owners, st.integers(1, 3)), spans, st.just(1)),
    st.builds(Commit, st.builds(Claim, owners, st.integers(1, 3)), st.integers(0, 9)),
    st.builds(Yield, st.builds(Claim, owners, st.integers(1, 3)), tickets, st.sampled_from([0, 5])),
    st.builds(Release, st.builds(Claim, owners, st.integers(1, 3))),
)


@given(st.lists(st.tuples(st.integers(0, 3), operations), max_size=30))
def test_a_grant_is_never_taken_away_before_its_time_but_by_its_owner(steps: list[tuple[int, Operation]]) -> None:
    item, now = Item(), 0
    for seconds, operation in steps:
        now += seconds
        before = item.settled(now).holder
        item, answer, _ = item.apply(operation, now, LIMITS)
        if before is not None and before.claim.owner != operation.claim.owner:
            assert item.holder == before
            assert not (isinstance(operation, Request) and answer.grade.is_grant)
        if before is not None and operation.claim.is_older_than(before.claim):
            assert item.holder == before
