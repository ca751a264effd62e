"""The services behind the bases, and every base algorithm in all interleavings of two clients on one store.

The exact numbers of states are regressions: a change of any of them is a change of what an algorithm does.
"""

from typing import Any

import pytest

from tests.leases.driving import KINDS, one_store, one_store_one_renews
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.context import Context
from trinco.core.instant import Instant
from trinco.leases import accesses
from trinco.leases.accesses import Append, Appended, CompareAndSet, Delete, Done, List, Listing, Put, Read, Written
from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item
from trinco.leases.nodes.messages import INCARNATION, Access, Reply
from trinco.leases.nodes.services import SERVICES, ConditionalService, ObjectService, QueueService, TransactionalService
from trinco.leases.nodes.store import Store
from trinco.leases.operation import Release, Request
from trinco.leases.row import Kind, Named

A, B = Claim(0, 1), Claim(1, 1)
HELD = Named(Kind.HELD, A, 5)


def serve(service: Any, *steps: tuple[int, accesses.Access, float]) -> tuple[Any, Any]:
    """The service and its last reply after some accesses: (client, access, when)."""
    reply = None
    for client, access, at in steps:
        service, reply = service.serve(client, access, Instant(at))
    return service, reply


# The services


def test_an_object_store_shows_what_was_put_and_how_old_it_is() -> None:
    _, listing = serve(ObjectService(), (0, Put(HELD), 1), (1, List(), 3))
    assert [(row.named, row.age, row.key) for row in listing.rows] == [(HELD, 2, HELD)]


def test_an_object_that_has_run_out_is_still_shown_as_run_out() -> None:
    _, listing = serve(ObjectService(), (0, Put(HELD), 0), (1, List(), 5))
    assert [row.is_live(60) for row in listing.rows] == [False]


def test_an_object_under_the_same_name_is_the_same_object_only_younger() -> None:
    _, listing = serve(ObjectService(), (0, Put(HELD), 0), (0, Put(HELD), 3), (1, List(), 4))
    assert [row.age for row in listing.rows] == [1]


def test_deleting_what_is_not_there_is_done() -> None:
    service, reply = serve(ObjectService(), (0, Put(HELD), 0), (1, Delete(HELD.but(renewal=1)), 0))
    assert reply == Done()
    assert len(service.objects) == 1


def test_a_queue_keeps_its_order_gives_numbers_and_forgets_by_itself() -> None:
    service, reply = serve(QueueService(), (0, Append(HELD, 5), 0), (1, Append(HELD.but(claim=B), 9), 1))
    assert reply == Appended(2)
    assert [row.named.claim for row in serve(service, (0, List(), 4))[1].rows] == [A, B]
    assert [row.named.claim for row in serve(service, (0, List(), 5))[1].rows] == [B]
    assert serve(service, (0, Append(HELD, 5), 20))[1] == Appended(3)


def test_a_queue_shows_no_more_than_it_can() -> None:
    service: Any = QueueService(shows=2)
    service, _ = serve(service, *((0, Append(HELD, 5), 0) for _ in range(3)))
    assert len(serve(service, (0, List(), 0))[1].rows) == 2


def test_a_conditional_store_writes_for_the_version_that_is_there_and_no_other() -> None:
    service, read = serve(ConditionalService(), (0, Read(), 0))
    service, first = serve(service, (0, CompareAndSet(read.version, Item(1)), 0))
    assert first == Written(True, 1)
    assert serve(service, (0, CompareAndSet(read.version, Item(2)), 0))[1] == Written(False)
    assert serve(service, (1, CompareAndSet(1, Item(2)), 0))[1] == Written(False)


def test_times_in_a_conditional_write_count_from_the_read_of_the_one_who_writes() -> None:
    item = Item(1, Holder(A, 5, None, 1, None))
    service, _ = serve(ConditionalService(), (0, Read(), 10), (1, Read(), 12), (0, CompareAndSet(0, item), 13))
    assert service.item.holder.until == Instant(15)
    assert serve(service, (1, Read(), 14))[1].item.holder.until == 1
    assert serve(service, (1, Read(), 15))[1].item.holder is None


def test_a_transaction_commits_only_if_nobody_has_since_it_read() -> None:
    start = [(0, Read(), 0), (1, Read(), 0), (0, accesses.Write(Item(1)), 0), (1, accesses.Write(Item(2)), 0)]
    service, first = serve(TransactionalService(), *start, (0, accesses.CommitTransaction(), 0))
    service, second = serve(service, (1, accesses.CommitTransaction(), 0))
    assert (first.ok, second.ok) == (True, False)
    assert service.item == Item(1)


def test_a_transaction_that_wrote_nothing_commits_nothing() -> None:
    steps = [(0, accesses.Begin(), 0), (0, Read(), 0), (0, accesses.CommitTransaction(), 0)]
    assert serve(TransactionalService(), *steps)[1] == Written(False)
    committed = [(0, Read(), 0), (0, accesses.Write(Item(1)), 0), (0, accesses.CommitTransaction(), 0)]
    assert serve(TransactionalService(), *committed, (0, accesses.CommitTransaction(), 0))[1] == Written(False)


def test_an_aborted_transaction_cannot_be_committed() -> None:
    steps = [(0, Read(), 0), (0, accesses.Write(Item(1)), 0), (0, accesses.Abort(), 0)]
    assert serve(TransactionalService(), *steps, (0, accesses.CommitTransaction(), 0))[1] == Written(False)


def test_what_arrives_late_from_one_session_does_not_get_into_the_next() -> None:
    """A client that gave a transaction up goes on in a new session; in between client 1 commits."""
    old, new = 0, INCARNATION
    service, _ = serve(TransactionalService(), (old, accesses.Begin(), 0), (new, accesses.Begin(), 0), (new, Read(), 0))
    other = [(1, Read(), 0), (1, accesses.Write(Item(1)), 0), (1, accesses.CommitTransaction(), 0)]
    service, _ = serve(service, *other, (old, Read(), 0), (new, accesses.Write(Item(2)), 0))
    service, _ = serve(service, (new, accesses.CommitTransaction(), 0))
    assert service.item == Item(1)


# A store


class Heard(Context):
    """Where a store stands: a clock, and what it sent and stored."""

    __slots__ = ("at", "sent", "stored")

    def __init__(self, at: float = 0.0) -> None:
        self.at = at
        self.sent: list[tuple[int, Any]] = []
        self.stored: Any = None

    def now(self) -> Instant:
        return Instant(self.at)

    def send(self, to: int, message: Any) -> None:
        self.sent.append((to, message))

    def store(self, value: Any) -> None:
        self.stored = value


def ask(store: Store, ctx: Heard, client: int, operation: Any, quiet: bool = False) -> None:
    store.on_message(ctx, client, Access(operation.claim, accesses.Apply(operation), quiet))


def test_a_store_that_comes_back_still_has_its_leases_waiters_and_tokens() -> None:
    store, ctx = Store(2, SERVICES["one-access"]()), Heard()
    ask(store, ctx, 0, Request(A, 5, token=7))
    ask(store, ctx, 1, Request(B, 5, ticket=3, wait=9))
    again = Store(2, SERVICES["one-access"]())
    again.on_restart(ctx, ctx.stored)
    assert again.service == store.service
    assert again.service.item.token == 7  # type: ignore[attr-defined]


def test_a_store_that_had_nothing_comes_back_with_nothing() -> None:
    store = Store(2, SERVICES["one-access"]())
    store.on_restart(Heard(), None)
    assert store.service == SERVICES["one-access"]()


def test_a_reply_names_the_claim_that_it_is_for() -> None:
    store, ctx = Store(2, SERVICES["one-access"]()), Heard()
    ask(store, ctx, 0, Request(A, 5))
    [(to, reply)] = ctx.sent
    assert to == 0
    assert isinstance(reply, Reply)
    assert reply.claim == A


def test_nobody_answers_what_wants_no_answer() -> None:
    store, ctx = Store(2, SERVICES["one-access"]()), Heard()
    ask(store, ctx, 0, Release(A), quiet=True)
    assert ctx.sent == []


def test_a_coarse_clock_is_rounded_down() -> None:
    store, ctx = Store(2, SERVICES["object"](), granularity=2.0), Heard(5.9)
    store.on_message(ctx, 0, Access(A, Put(HELD)))
    ctx.at = 8.9
    assert store.clock(ctx) == Instant(8.0)
    store.on_message(ctx, 0, Access(A, List()))
    reply = ctx.sent[-1][1].reply
    assert isinstance(reply, Listing)
    assert [row.age for row in reply.rows] == [4.0]


# Two clients on one store, all interleavings


def states(model: Model) -> int:
    result = check(model, liveness=False)
    assert (result.verdict, result.violation) == (Verdict.HOLDS, None)
    return result.progress.states


@pytest.mark.parametrize(("kind", "expected"), list(zip(KINDS, [10_902, 9_617, 6_909, 69_641, 670, 930], strict=True)))
def test_two_clients_that_ask_give_up_and_leave_are_never_inside_together(kind: str, expected: int) -> None:
    assert states(one_store(kind)) == expected


@pytest.mark.parametrize(
    ("kind", "expected"), list(zip(KINDS, [19_686, 17_814, 12_498, 117_201, 1_226, 1_790], strict=True))
)
def test_nor_when_one_of_them_crashes(kind: str, expected: int) -> None:
    assert states(one_store(kind, crashes=1)) == expected


@pytest.mark.parametrize(
    ("kind", "fires", "expected"),
    [
        ("object", 0, 44_156),
        ("queue", 0, 44_542),
        ("conditional", 3, 33_761),
        ("transactional", 0, 82_831),
        ("one-access", 3, 2_177),
    ],
)
def test_nor_when_one_of_them_renews(kind: str, fires: int, expected: int) -> None:
    """``fires=0``: nobody gives up by itself, where that would be too many states."""
    assert states(one_store_one_renews(kind, fires=fires)) == expected


@pytest.mark.parametrize(("kind", "fires", "expected"), [("conditional", 0, 43_293), ("one-access", 3, 6_548)])
def test_nor_when_both_of_them_renew(kind: str, fires: int, expected: int) -> None:
    assert states(one_store(kind, inputs={"acquire": 1, "renew": 1}, fires=fires)) == expected


@pytest.mark.parametrize(("kind", "expected"), [("one-access", 21_480)])
def test_nor_when_they_come_back(kind: str, expected: int) -> None:
    assert states(one_store(kind, inputs={"acquire": 2})) == expected


def test_nor_when_accesses_are_given_up_and_carried_out_all_the_same() -> None:
    model = one_store("one-access", access_timeout=1, quiet=False, fires=1)
    assert states(model) == 61_439
