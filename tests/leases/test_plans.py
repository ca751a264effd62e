"""The base algorithms, one operation at a time, on the services they are made for: what they cost, what they do when a
store fails in the middle, and what the paper's traces would do to them."""

import gc
import types
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.leases.driving import KINDS, LOST, Desk
from trinco.leases import accesses
from trinco.leases.accesses import (
    Abort,
    Access,
    Append,
    Appended,
    CompareAndSet,
    Delete,
    Done,
    List,
    Listing,
    Put,
    Read,
    Reply,
    Versioned,
    Written,
)
from trinco.leases.bases.catalogue import find
from trinco.leases.bases.conditional import Judge
from trinco.leases.bases.object_store import ObjectStore
from trinco.leases.bases.queue import Queue
from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item, Limits
from trinco.leases.nodes.services import ObjectService, QueueService
from trinco.leases.operation import Answer, Commit, Extend, Grade, Operation, Release, Request, Yield
from trinco.leases.plan import Outcome, Plan
from trinco.leases.row import Kind, Named, Row

ME, OTHER, THIRD = Claim(0, 1), Claim(1, 1), Claim(2, 1)
LISTED = ("object", "queue")
each_kind = pytest.mark.parametrize("kind", KINDS)
Prepare: TypeAlias = Callable[[Desk], Operation]
each_listed = pytest.mark.parametrize("kind", LISTED)


def held(desk: Desk) -> list[int]:
    """Who has a live entry that holds."""
    service: Any = desk.service
    if hasattr(service, "item"):
        holder = service.item.holder
        return [holder.claim.owner] if holder is not None and holder.until.at > desk.at else []
    return sorted({kept.named.claim.owner for kept in rows(desk) if kept.named.kind is Kind.HELD})


def waiting(desk: Desk) -> list[int]:
    service: Any = desk.service
    if hasattr(service, "item"):
        return [each.claim.owner for each in service.item.waiters if each.until.at > desk.at]
    return [kept.named.claim.owner for kept in rows(desk) if kept.named.kind is Kind.WAITING]


def rows(desk: Desk) -> list[Any]:
    service: Any = desk.service
    kept = service.objects if desk.kind == "object" else service.messages
    return [each for each in kept if each.until.at > desk.at]


# What an operation costs


@pytest.mark.parametrize(
    ("kind", "acquire", "renew", "release"),
    [
        ("object", 3, 4, 1),
        ("queue", 3, 4, 1),
        ("conditional", 2, 2, 1),
        ("transactional", 4, 4, 4),
        ("one-access", 1, 1, 1),
    ],
)
def test_a_lease_costs_as_many_accesses_as_the_paper_says(kind: str, acquire: int, renew: int, release: int) -> None:
    desk = Desk(kind)
    assert desk.cost(Request(ME, 5)) == acquire
    assert desk.cost(Release(ME)) == release
    assert desk.cost(Request(Claim(0, 2), 5)) == acquire
    desk.at = 1
    assert desk.cost(Extend(Claim(0, 2), 5, 1)) == renew


@pytest.mark.parametrize(
    ("kind", "first", "later"),
    [("object", 4, 5), ("conditional", 2, 2), ("transactional", 4, 4), ("one-access", 1, 1)],
)
def test_a_token_costs_nothing_but_on_an_object_store(kind: str, first: int, later: int) -> None:
    """There it is one more object, and later holders remove the one before."""
    desk = Desk(kind)
    assert desk.cost(Request(ME, 5, token=10)) == first
    desk.do(Release(ME))
    assert desk.cost(Request(OTHER, 5, token=20)) == later


@pytest.mark.parametrize(
    ("kind", "refused"), [("object", 1), ("queue", 1), ("conditional", 1), ("transactional", 3), ("one-access", 1)]
)
def test_a_refusal_costs_no_more_than_a_look(kind: str, refused: int) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 5))
    assert desk.cost(Request(OTHER, 5)) == refused


@each_kind
def test_releasing_what_was_refused_changes_nothing(kind: str) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 5))
    desk.do(Request(OTHER, 5))
    desk.do(Release(OTHER))
    assert held(desk) == [0]


# What every base does


@each_kind
def test_a_live_lease_of_another_refuses_and_one_that_ends_now_does_not(kind: str) -> None:
    desk = Desk(kind)
    assert desk.do(Request(ME, 5)).grade is Grade.COMMITTED
    desk.at = 4.5
    assert desk.do(Request(OTHER, 5)).grade is Grade.REFUSED
    desk.at = 5
    assert desk.do(Request(OTHER, 5)).grade is Grade.COMMITTED
    assert held(desk) == [1]


@each_kind
def test_a_renewal_needs_a_lease_that_is_still_there(kind: str) -> None:
    desk = Desk(kind)
    assert desk.do(Extend(ME, 5, 1)).grade is Grade.GONE
    desk.do(Request(ME, 5))
    desk.at = 4
    assert desk.do(Extend(ME, 5, 1)).grade is Grade.COMMITTED
    desk.at = 8.5
    assert desk.do(Request(OTHER, 5)).grade is Grade.REFUSED
    desk.at = 9
    assert desk.do(Extend(ME, 5, 2)).grade is Grade.GONE
    assert desk.do(Request(OTHER, 5)).grade is Grade.COMMITTED


@each_kind
def test_after_a_renewal_one_release_leaves_nothing_behind(kind: str) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 5))
    for renewal in (1, 2, 3):
        desk.at += 1
        desk.do(Extend(ME, 5, renewal))
    desk.do(Release(ME, 3))
    assert held(desk) == []
    assert desk.do(Request(OTHER, 5)).grade is Grade.COMMITTED


@each_kind
def test_a_release_removes_nobody_elses_lease(kind: str) -> None:
    """E8: ours ran out, somebody else is in, and only then our release arrives."""
    desk = Desk(kind)
    desk.do(Request(ME, 5))
    desk.at = 5
    desk.do(Request(OTHER, 5))
    desk.do(Release(ME))
    assert held(desk) == [1]


@each_kind
def test_a_late_release_of_an_old_attempt_leaves_the_new_one_alone(kind: str) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 5))
    desk.do(Request(Claim(0, 2), 5))
    desk.do(Release(ME))
    assert held(desk) == [0]
    desk.do(Release(Claim(0, 2)))
    assert held(desk) == []


@each_kind
def test_a_late_request_of_an_old_attempt_does_not_replace_the_new_one(kind: str) -> None:
    """E4."""
    desk = Desk(kind)
    desk.do(Request(Claim(0, 2), 5))
    assert desk.do(Request(ME, 5)).grade is Grade.REFUSED
    desk.memory[0] = None
    desk.do(Release(ME))
    assert held(desk) == [0]
    assert desk.do(Extend(Claim(0, 2), 5, 1)).grade is Grade.COMMITTED


@each_kind
def test_a_waiter_is_remembered_until_it_releases(kind: str) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 5))
    answer = desk.do(Request(OTHER, 5, ticket=3, wait=9, entry="three"))
    assert (answer.grade, waiting(desk)) == (Grade.REFUSED, [1])
    assert desk.do(Request(THIRD, 5)).ticket == "three"
    desk.do(Release(OTHER))
    assert waiting(desk) == []


@each_kind
def test_a_free_store_goes_to_the_smallest_ticket_that_waits(kind: str) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 5))
    desk.do(Request(OTHER, 5, ticket=3, wait=9))
    desk.do(Release(ME))
    assert desk.do(Request(THIRD, 5)).grade is Grade.REFUSED
    assert desk.do(Request(THIRD, 5, ticket=4, wait=9)).grade is Grade.REFUSED
    assert desk.do(Request(OTHER, 5, ticket=3, wait=9)).grade is Grade.COMMITTED


@each_kind
def test_who_yields_waits_again_and_the_smaller_ticket_gets_in(kind: str) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 5, ticket=7, wait=9))
    desk.do(Request(OTHER, 5, ticket=3, wait=9))
    assert desk.do(Yield(ME, 7, 9)).grade is Grade.DONE
    assert held(desk) == []
    assert sorted(waiting(desk)) == [0, 1]
    assert desk.do(Request(ME, 5, ticket=7, wait=9)).grade is Grade.REFUSED
    assert desk.do(Request(OTHER, 5, ticket=3, wait=9)).grade is Grade.COMMITTED


@pytest.mark.parametrize("kind", KINDS)
def test_a_holder_that_asks_again_is_granted_and_told_that_a_smaller_ticket_waits(kind: str) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 5))
    desk.do(Request(OTHER, 5, ticket=3, wait=9))
    answer = desk.do(Request(ME, 5, ticket=7, wait=9))
    assert (answer.grade, answer.smaller) == (Grade.COMMITTED, True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_waiter_that_asks_again_keeps_its_place(kind: str) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 50))
    for _ in range(8):
        desk.do(Request(OTHER, 5, ticket=3, wait=4))
        assert waiting(desk) == [1]
        desk.at += 1


@each_kind
def test_giving_up_after_a_lost_race_leaves_no_waiter_behind(kind: str) -> None:
    """We waited; the store is free, we go in, and in that moment somebody with a smaller ticket does too."""
    desk = Desk(kind)
    desk.do(Request(OTHER, 5))
    desk.do(Request(ME, 5, ticket=7, wait=9))
    desk.do(Release(OTHER))
    rival = Request(Claim(2, 1), 5, ticket=1, wait=9)
    raced = []

    def race(access: Access) -> None:
        if isinstance(access, Put | Append | CompareAndSet | accesses.CommitTransaction | accesses.Apply) and not raced:
            raced.append(desk.do(rival))

    answer = desk.do(Request(ME, 5, ticket=7, wait=9), race)
    assert answer.grade is Grade.REFUSED
    desk.do(Release(ME))
    assert 0 not in waiting(desk)
    assert 0 not in held(desk)


# A store that fails


def token(desk: Desk) -> int | None:
    return None if desk.kind == "queue" else 10 + 10 * int(desk.at)


def request(desk: Desk) -> Operation:
    return Request(ME, 5, token=token(desk))


def request_over_what_ran_out(desk: Desk) -> Operation:
    desk.do(Request(OTHER, 5, token=token(desk)))
    desk.at = 6
    return Request(ME, 5, token=token(desk))


def wait(desk: Desk) -> Operation:
    desk.do(Request(OTHER, 5))
    return Request(ME, 5, 3, 9)


def refresh(desk: Desk) -> Operation:
    desk.do(Request(ME, 5, token=token(desk)))
    desk.at = 1
    return Request(ME, 5, token=token(desk))


def extend(desk: Desk) -> Operation:
    desk.do(Request(ME, 5, token=token(desk)))
    desk.at = 1
    return Extend(ME, 5, 1)


def commit(desk: Desk) -> Operation:
    desk.do(Request(ME, 5, token=token(desk)))
    return Commit(ME, 20)


def give_way(desk: Desk) -> Operation:
    desk.do(Request(ME, 5, 3, 9))
    return Yield(ME, 3, 9)


def release(desk: Desk) -> Operation:
    desk.do(Request(ME, 5))
    return Release(ME)


def release_unsure(desk: Desk) -> Operation:
    desk.do(Request(ME, 5))
    desk.memory.clear()
    return Release(ME)


OPERATIONS: list[Prepare] = [
    request,
    request_over_what_ran_out,
    wait,
    refresh,
    extend,
    commit,
    give_way,
    release,
    release_unsure,
]
"""One of each; called, they first do what must have happened before."""
every_operation = pytest.mark.parametrize("prepare", OPERATIONS, ids=lambda prepare: prepare.__name__)


def length(kind: str, prepare: Prepare) -> int:
    desk = Desk(kind)
    return desk.cost(prepare(desk))


def disturbed(kind: str, prepare: Prepare, position: int, reply: Any) -> tuple[Access, Answer]:
    """The answer to an operation whose access at a position got this reply."""
    desk = Desk(kind)
    operation = prepare(desk)
    steps: Any = desk.stepwise(operation)
    step = next(steps)
    for place in range(100):
        if not isinstance(step, Access):
            break
        if place == position:
            hit = step
            step = steps.send(reply)
        else:
            step = steps.send(desk.serve(0, step))
    assert isinstance(step, Answer)
    return hit, step


@each_kind
@every_operation
def test_a_reply_that_never_comes_fails_the_operation_wherever_it_is(kind: str, prepare: Prepare) -> None:
    for position in range(length(kind, prepare)):
        _, answer = disturbed(kind, prepare, position, LOST)
        assert answer.grade is Grade.FAILED


class Garbage(Reply):
    __slots__ = ()


ODD = [Garbage(), "nonsense", 42, (), Answer, Answer(Grade.FAILED), Appended(None), object()]


@each_kind
@every_operation
def test_a_reply_that_no_store_gives_fails_the_operation_or_was_to_tidying_up(kind: str, prepare: Prepare) -> None:
    for position in range(length(kind, prepare)):
        for reply in ODD:
            access, answer = disturbed(kind, prepare, position, reply)
            tidies = isinstance(access, Delete | Abort) or _remembers_a_waiter(access)
            assert answer.grade is Grade.FAILED or tidies
            if _remembers_a_waiter(access):
                assert not answer.grade.is_grant


def _remembers_a_waiter(access: Access) -> bool:
    return isinstance(access, Put | Append) and access.named.kind is not Kind.HELD


NESTED = {
    "object": [Listing(None), Listing((None,)), Listing((Row(Named(Kind.HELD, OTHER, None), 0),)), Listing(7)],  # type: ignore[arg-type]
    "queue": [Listing(None), Listing((None,)), Listing((Row(Named(Kind.HELD, None, 5), 0),)), Listing(7)],  # type: ignore[arg-type]
    "conditional": [
        Versioned(None, 0),  # type: ignore[arg-type]
        Versioned(Item(waiters=None), 0),  # type: ignore[arg-type]
        Versioned(Item(waiters=(None,)), 0),  # type: ignore[arg-type]
        Versioned(Item(holder=Holder(OTHER, "soon", None, None, None)), 0),
        Versioned(Item(token="many"), 0),  # type: ignore[arg-type]
    ],
}
NESTED["transactional"] = NESTED["conditional"]


@pytest.mark.parametrize(("kind", "reply"), [(kind, reply) for kind, replies in NESTED.items() for reply in replies])
def test_a_reply_with_nonsense_inside_fails_the_operation(kind: str, reply: Any) -> None:
    position = 1 if kind == "transactional" else 0
    assert disturbed(kind, request, position, reply)[1].grade is Grade.FAILED


@pytest.mark.parametrize("kind", ["object", "queue", "conditional", "transactional"])
def test_more_than_anybody_can_read_is_a_failure(kind: str) -> None:
    crowd: Any = (0,) * 10_000
    bomb = Listing(crowd) if kind in LISTED else Versioned(Item(waiters=crowd), 0)
    position = 1 if kind == "transactional" else 0
    for prepare in (request, extend, release_unsure):
        assert disturbed(kind, prepare, position, bomb)[1].grade is Grade.FAILED


# Conflicts


@pytest.mark.parametrize("kind", ["conditional", "transactional"])
def test_of_two_that_read_the_same_one_writes(kind: str) -> None:
    desk = Desk(kind)
    raced = []

    def race(access: Access) -> None:
        if isinstance(access, CompareAndSet | accesses.CommitTransaction) and not raced:
            raced.append(desk.do(Request(OTHER, 5)).grade)

    assert desk.do(Request(ME, 5), race).grade is Grade.REFUSED
    assert raced == [Grade.COMMITTED]
    assert held(desk) == [1]


@pytest.mark.parametrize(
    "kind",
    [
        "conditional",
        "transactional",
    ],
)
def test_a_release_that_meets_a_conflict_is_tried_again(kind: str) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 5))
    raced = []

    def race(access: Access) -> None:
        if isinstance(access, CompareAndSet | accesses.CommitTransaction) and not raced:
            raced.append(desk.do(Request(OTHER, 5, 3, 9)))

    assert desk.do(Release(ME), race).grade is Grade.DONE
    assert held(desk) == []


def test_a_release_that_only_meets_conflicts_ends() -> None:
    desk = Desk("conditional")
    desk.do(Request(ME, 5))
    steps: Any = desk.stepwise(Release(ME))
    step = next(steps)
    count = 0
    while isinstance(step, Access):
        count += 1
        assert count < 20
        step = steps.send(Written(False) if isinstance(step, CompareAndSet) else desk.serve(0, step))
    assert not step.grade.is_grant
    assert step.grade is not Grade.DONE


def test_a_release_that_remembers_its_version_does_not_bring_back_what_others_removed() -> None:
    """A waiter that came and went since: the remembered item must not be written over it."""
    desk = Desk("conditional")
    desk.do(Request(ME, 5))
    desk.do(Request(OTHER, 5, 3, 9))
    desk.do(Request(THIRD, 5, 4, 9))
    desk.do(Release(OTHER))
    assert desk.do(Release(ME)).grade is Grade.DONE
    assert waiting(desk) == [2]


def test_a_term_that_is_written_late_counts_from_the_read() -> None:
    """The client computes the end from the time it was told; a slow write must not make the lease longer or shorter."""
    desk = Desk("conditional")

    def linger(access: Access) -> None:
        if isinstance(access, CompareAndSet):
            desk.at = 3

    desk.do(Request(ME, 5), linger)
    desk.at = 4.5
    assert desk.do(Request(OTHER, 5)).grade is Grade.REFUSED
    desk.at = 5
    assert desk.do(Request(OTHER, 5)).grade is Grade.COMMITTED


# Accesses that are carried out after everybody has given them up


def lost_race(desk: Desk, ask: Request) -> list[Access]:
    """A request that meets somebody smaller, up to the delete of its own row, which is under way and gets no answer."""
    rival = Request(OTHER, 5, ticket=1, wait=9)
    steps: Any = desk.stepwise(ask)
    step = next(steps)
    met = False
    while not isinstance(step, Delete):
        if isinstance(step, Put | Append) and not met:
            met = True
            desk.do(rival)
        step = steps.send(desk.serve(0, step))
    steps.send(LOST)
    desk.do(Release(OTHER))
    return [step]


def test_a_delete_from_a_queue_that_arrives_late_takes_away_no_later_grant() -> None:
    """In an object store it does: an attempt may use a name again. So there the client counts no base on which an
    access got no answer in time (``test_client``)."""
    desk = Desk("queue")
    ask = Request(ME, 5, ticket=7, wait=9)
    late = lost_race(desk, ask)
    desk.at = 6
    assert desk.do(ask).grade is Grade.COMMITTED
    for access in late:
        desk.serve(0, access)
    assert held(desk) == [0]


@pytest.mark.parametrize("kind", ["conditional", "transactional"])
def test_a_write_that_arrives_late_changes_nothing(kind: str) -> None:
    """The request was given up before its write; somebody else holds when it arrives."""
    desk = Desk(kind)
    steps: Any = desk.stepwise(Request(ME, 5))
    step = next(steps)
    while not isinstance(step, CompareAndSet | accesses.CommitTransaction):
        step = steps.send(desk.serve(0, step))
    steps.send(LOST)
    desk.do(Request(OTHER, 5))
    desk.serve(0, step)
    assert held(desk) == [1]


# Listings


@each_listed
def test_an_entry_that_ran_out_between_two_listings_is_in_nobodys_way(kind: str) -> None:
    """E15: the second listing is judged by its own time. The other wrote at 0; we list before that, and again at 5."""
    desk = Desk(kind)
    came = []

    def come(access: Access) -> None:
        if isinstance(access, Put | Append) and not came:
            came.append(desk.do(Request(OTHER, 5)))
            desk.at = 5

    assert desk.do(Request(ME, 5), come).grade is Grade.COMMITTED


def test_two_writers_to_an_object_store_may_both_give_up_and_leave_nothing() -> None:
    desk = Desk("object")
    one: Any = desk.stepwise(Request(ME, 5))
    two: Any = desk.stepwise(Request(OTHER, 5))
    first, second = next(one), next(two)
    while isinstance(first, Access) or isinstance(second, Access):
        first = one.send(desk.serve(0, first)) if isinstance(first, Access) else first
        second = two.send(desk.serve(1, second)) if isinstance(second, Access) else second
    assert (first.grade, second.grade) == (Grade.REFUSED, Grade.REFUSED)
    assert held(desk) == []


def test_with_tickets_the_smaller_one_stays_and_gets_in() -> None:
    desk = Desk("object")
    small: Any = desk.stepwise(Request(ME, 5, 1, 9))
    large: Any = desk.stepwise(Request(OTHER, 5, 2, 9))
    first, second = next(small), next(large)
    while isinstance(first, Access) or isinstance(second, Access):
        second = large.send(desk.serve(1, second)) if isinstance(second, Access) else second
        first = small.send(desk.serve(0, first)) if isinstance(first, Access) else first
    assert (first.grade, second.grade) == (Grade.COMMITTED, Grade.REFUSED)


def test_whoever_is_first_in_a_queue_holds() -> None:
    desk = Desk("queue")
    one: Any = desk.stepwise(Request(ME, 5))
    two: Any = desk.stepwise(Request(OTHER, 5))
    first, second = next(one), next(two)
    while isinstance(first, Access) or isinstance(second, Access):
        first = one.send(desk.serve(0, first)) if isinstance(first, Access) else first
        second = two.send(desk.serve(1, second)) if isinstance(second, Access) else second
    assert (first.grade, second.grade) == (Grade.COMMITTED, Grade.REFUSED)
    assert held(desk) == [0]


@each_listed
def test_a_renewal_that_fails_leaves_the_old_term_alone(kind: str) -> None:
    """E10: somebody slow, who looked before we came, writes while we renew."""
    desk = Desk(kind)
    slow: Any = desk.stepwise(Request(OTHER, 5))
    slow.send(None)
    put = slow.send(desk.serve(1, List()))
    desk.do(Request(ME, 5))
    look = slow.send(desk.serve(1, put))
    desk.at = 1
    assert desk.do(Extend(ME, 5, 1)).grade is Grade.REFUSED
    assert 0 in held(desk)
    delete = slow.send(desk.serve(1, look))
    assert isinstance(delete, Delete)
    assert slow.send(desk.serve(1, delete)).grade is Grade.REFUSED
    desk.at = 4.5
    assert desk.do(Request(THIRD, 5)).grade is Grade.REFUSED
    desk.at = 5
    assert desk.do(Request(THIRD, 5)).grade is Grade.COMMITTED


@each_listed
def test_a_renewal_with_a_gap_is_none(kind: str) -> None:
    """E23: the old row ran out before the second listing, so somebody may have been in."""
    desk = Desk(kind)
    desk.do(Request(ME, 5))
    desk.at = 4.5

    def dawdle(access: Access) -> None:
        if isinstance(access, Put | Append):
            desk.at = 5

    assert desk.do(Extend(ME, 5, 1), dawdle).grade is Grade.REFUSED
    assert held(desk) == []


def test_the_winner_in_a_queue_deletes_only_what_is_its_own() -> None:
    """E11, E12: every delete names a number that we were given for an entry of ours."""
    desk = Desk("queue")
    desk.do(Request(ME, 5))
    desk.do(Request(OTHER, 5, 3, 9))
    desk.at = 1
    own = {kept.key for kept in rows(desk) if kept.named.claim.owner == 0}
    before = len(desk.accesses)
    desk.do(Extend(ME, 5, 1))
    desk.do(Release(ME, 1))
    deleted = {access.key for access in desk.accesses[before:] if isinstance(access, Delete)}
    appended = {access.named.claim.owner for access in desk.accesses[before:] if isinstance(access, Append)}
    assert own <= deleted
    assert appended == {0}
    assert waiting(desk) == [1]


@pytest.mark.parametrize("entries", [31, 32, 40])
def test_a_queue_that_shows_only_its_first_32_entries_refuses_and_never_grants(entries: int) -> None:
    desk = Desk("queue", QueueService(shows=32))
    for owner in range(10, 10 + entries):
        desk.serve(owner, Append(Named(Kind.WAITING, Claim(owner, 1), 50, ticket=9), 50))
    first = desk.do(Request(ME, 5, 1, 9))
    second = desk.do(Request(OTHER, 5, 2, 9))
    assert not (first.grade.is_grant and second.grade.is_grant)
    assert first.grade is (Grade.COMMITTED if entries < 32 else Grade.REFUSED)


@each_listed
def test_an_entry_that_nobody_can_read_counts_as_held_but_not_for_ever(kind: str) -> None:
    """E9: a key that we lack, a version that we do not know."""
    algorithm = {"object": ObjectStore, "queue": Queue}[kind](Limits(t_max=8))
    desk = Desk(kind, algorithm=algorithm)
    named = Named(Kind.UNKNOWN, Claim("?", 0), 1e9)
    desk.serve(7, Put(named) if kind == "object" else Append(named, 1e9))
    desk.at = 7.5
    assert desk.do(Request(ME, 5)).grade is Grade.REFUSED
    desk.at = 8
    assert desk.do(Request(ME, 5)).grade is Grade.COMMITTED


class Suspicious(Judge):
    """Takes for forged what says so."""

    __slots__ = ()

    def is_forged(self, entry: Any) -> bool:
        return entry == "forged"


@pytest.mark.parametrize("kind", ["object", "queue", "conditional", "transactional"])
def test_a_forged_entry_is_nobodys(kind: str) -> None:
    desk = Desk(kind, algorithm=find(kind)(judge=Suspicious()))
    honest = Desk(kind, desk.service)
    honest.do(Request(OTHER, 50, entry="forged"))
    honest.do(Request(THIRD, 50, 1, 50, entry="forged"))
    desk.service = honest.service
    assert desk.do(Request(ME, 5)).grade is Grade.COMMITTED


@each_listed
def test_a_lease_for_a_thousand_years_counts_for_the_limit(kind: str) -> None:
    """E21."""
    algorithm = {"object": ObjectStore, "queue": Queue}[kind](Limits(t_max=8))
    desk = Desk(kind, algorithm=algorithm)
    desk.do(Request(OTHER, 1e10))
    desk.at = 7.5
    assert desk.do(Request(ME, 5)).grade is Grade.REFUSED
    desk.at = 8
    assert desk.do(Request(ME, 5)).grade is Grade.COMMITTED


def test_an_object_store_never_gives_up_a_larger_token() -> None:
    desk = Desk("object")
    assert desk.do(Request(ME, 5, token=10, entry="ten")).token == 10
    desk.do(Release(ME))
    answer = desk.do(Request(OTHER, 5, token=10))
    assert (answer.grade, answer.evidence) == (Grade.TENTATIVE, "ten")
    assert desk.do(Commit(OTHER, 10)).grade is Grade.REFUSED
    assert desk.do(Commit(OTHER, 11, "eleven")).token == 11
    desk.do(Release(OTHER))
    assert desk.do(Request(THIRD, 5, token=5)).evidence == "eleven"
    assert len([kept for kept in desk.service.objects if kept.named.kind is Kind.TOKEN]) == 1  # type: ignore[attr-defined]


def test_a_token_that_arrives_late_does_not_hide_a_larger_one() -> None:
    """The object of the one before is written after its lease ran out and the next one wrote its own."""
    desk = Desk("object")
    late: Any = desk.stepwise(Request(ME, 5, token=10))
    step = next(late)
    while not (isinstance(step, Put) and step.named.kind is Kind.TOKEN):
        step = late.send(desk.serve(0, step))
    desk.at = 5
    assert desk.do(Request(OTHER, 5, token=20, entry="twenty")).token == 20
    desk.serve(0, step)
    desk.at = 10
    assert desk.do(Request(THIRD, 5, token=15)).evidence == "twenty"


@pytest.mark.parametrize("kind", ["object"])
def test_a_commit_needs_a_live_lease(kind: str) -> None:
    desk = Desk(kind)
    desk.do(Request(ME, 5, token=10))
    desk.at = 5
    assert desk.do(Commit(ME, 11)).grade is Grade.GONE


def test_a_queue_keeps_no_token() -> None:
    desk = Desk("queue")
    answer = desk.do(Request(ME, 5, token=10))
    assert (answer.grade, answer.token) == (Grade.COMMITTED, None)
    assert desk.do(Commit(ME, 11)).grade is Grade.FAILED


def test_object_listings_show_tokens_to_nobody_as_leases() -> None:
    desk = Desk("object", ObjectService())
    desk.do(Request(ME, 5, token=10))
    desk.do(Release(ME))
    assert desk.do(Request(OTHER, 5)).grade is Grade.COMMITTED


# A plan is a value


@each_kind
def test_a_plan_replayed_gives_the_same_step(kind: str) -> None:
    desk = Desk(kind)
    plan = Plan(Request(ME, 5, 3, 9))
    while isinstance(step := plan.step(desk.algorithm), Access):
        assert plan.step(desk.algorithm) == step
        assert plan.step(find(kind)()) == step
        plan = plan.told(desk.serve(0, step))
    again = Plan(Request(ME, 5, 3, 9), replies=plan.replies)
    assert again == plan
    assert hash(again) == hash(plan)
    assert again.step(desk.algorithm) == step
    assert isinstance(step, Outcome)


def test_a_plan_that_was_told_something_is_another_plan() -> None:
    plan = Plan(Request(ME, 5))
    told = plan.told(Done())
    assert plan.replies == ()
    assert told != plan
    assert told == plan.told(Done())


@each_kind
def test_no_generator_is_kept(kind: str) -> None:
    desk = Desk(kind)
    plan = Plan(Request(ME, 5))
    step = plan.step(desk.algorithm)
    assert isinstance(step, Access)
    plan = plan.told(desk.serve(0, step))
    reachable, unseen = set(), [plan, desk.algorithm]
    while unseen:
        each = unseen.pop()
        if id(each) not in reachable and not isinstance(each, type | types.ModuleType | types.FunctionType):
            reachable.add(id(each))
            assert not isinstance(each, types.GeneratorType)
            unseen += gc.get_referents(each)


def test_a_base_algorithm_is_found_by_its_name() -> None:
    from trinco.core.errors import UsageError

    assert find("object") is ObjectStore
    with pytest.raises(UsageError, match="there is no base algorithm 'floppy'; there are object, queue"):
        find("floppy")
    assert Read() == Read()
