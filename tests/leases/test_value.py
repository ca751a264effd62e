"""Values: equal by class and content, hashable, and open to the checker, which looks for instants in them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinco.check.handlers import sink_instants
from trinco.core import snapshot
from trinco.core.instant import Instant
from trinco.core.value import Value, slots_of
from trinco.leases.accesses import Listing
from trinco.leases.claim import Claim
from trinco.leases.item import Holder, Item, Waiter
from trinco.leases.nodes.client import Client
from trinco.leases.nodes.services import ConditionalService, Kept, ObjectService, Session
from trinco.leases.nodes.store import Store
from trinco.leases.operation import Release, Request
from trinco.leases.plan import Plan
from trinco.leases.row import Kind, Named, Row
from trinco.leases.terms import Terms


class Point(Value):
    __slots__ = ("x", "y")

    def __init__(self, x: Any, y: Any = 0) -> None:
        self.x = x
        self.y = y


class Place(Point):
    """Nothing but another name."""

    __slots__ = ()


class Solid(Point):
    __slots__ = ("z",)

    def __init__(self, x: Any, y: Any, z: Any) -> None:
        super().__init__(x, y)
        self.z = z


class Single(Value):
    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x


class Nothing(Value):
    __slots__ = ()


def test_values_are_equal_when_class_and_slots_are() -> None:
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(2, 1)
    assert Point(1, 2) != (1, 2)
    assert Single((1, 2)) == Single((1, 2))
    assert Nothing() == Nothing()


def test_a_subclass_without_slots_of_its_own_differs_from_its_base() -> None:
    assert Place(1, 2) != Point(1, 2)
    assert Point(1, 2) != Place(1, 2)
    assert len({Place(1, 2), Point(1, 2)}) == 2


def test_slots_of_the_bases_count_too() -> None:
    assert slots_of(Solid) == ("x", "y", "z")
    assert slots_of(Single) == ("x",)
    assert Solid(1, 2, 3) != Solid(9, 2, 3)
    assert Release(Claim(0, 1), 2) != Release(Claim(0, 2), 2)


@given(st.integers(), st.integers(), st.integers(), st.integers())
def test_equal_values_hash_equal(a: int, b: int, c: int, d: int) -> None:
    left, right = Solid(a, Point(b), (c, d)), Solid(a, Point(b), (c, d))
    assert left == right
    assert hash(left) == hash(right)


def test_but_changes_what_it_names_and_nothing_else() -> None:
    solid = Solid(1, 2, 3)
    assert solid.but(y=5) == Solid(1, 5, 3)
    assert solid.but() == solid
    assert solid == Solid(1, 2, 3)
    assert type(Place(1).but(x=2)) is Place


def test_but_refuses_a_name_that_is_no_slot() -> None:
    with pytest.raises((TypeError, AttributeError)):
        Point(1, 2).but(z=3)


def test_a_value_shows_its_content() -> None:
    assert repr(Solid(1, "a", None)) == "Solid(x=1, y='a', z=None)"


# Nodes with slots


def lease_client() -> Client:
    from trinco.leases.bases.one_access import OneAccess

    return Client(0, Terms(4, 1), (OneAccess(),) * 4, (1, 2, 3, 4))


def test_a_plain_node_with_slots_is_taken_and_put_back() -> None:
    for node in (lease_client(), Store(3, ObjectService(), granularity=1.0, terse=True)):
        taken = snapshot.take(node)
        again = snapshot.restore(taken)
        assert type(again) is type(node)
        assert snapshot.take(again) == taken
        assert hash(snapshot.take(again)) == hash(taken)


def test_what_happens_to_a_restored_node_does_not_reach_the_snapshot() -> None:
    taken = snapshot.take(lease_client())
    changed = snapshot.restore(taken)
    changed.attempt = 7
    changed.bases = changed.bases[:1]
    assert snapshot.restore(taken).attempt == 0
    assert len(snapshot.restore(taken).bases) == 4


def test_two_classes_with_equal_slots_are_different_snapshots() -> None:
    class Liar(Store):
        __slots__ = ()

    assert snapshot.take(Store(0, ObjectService())) != snapshot.take(Liar(0, ObjectService()))


# Time in values


def test_a_tick_reaches_every_instant_wherever_it_stands() -> None:
    claim = Claim(0, 1)
    item = Item(3, Holder(claim, Instant(2), None, 3, None), (Waiter(claim, Instant(5), 1, None),))
    store = Store(2, ConditionalService(item, 4, (Session(0, Instant(1), 4, item),)))
    later = snapshot.restore(sink_instants(snapshot.take(store))).service
    assert later.item.holder.until == Instant(1)
    assert later.item.waiters[0].until == Instant(4)
    assert later.sessions[0].horizon == Instant(0)
    assert later.sessions[0].item == later.item
    assert later.version == 4


def test_a_tick_reaches_the_belief_of_a_plan_in_a_chain_and_leaves_durations_alone() -> None:
    row = Row(Named(Kind.HELD, Claim(1, 1), 2.0), 1.0)
    plan = Plan(Request(Claim(0, 1), 2.0), Instant(2), replies=(Listing((row,)),))
    later = sink_instants(plan)
    assert later.until == Instant(1)
    assert later.replies == plan.replies
    assert later.operation == plan.operation


def test_the_past_is_all_one() -> None:
    kept = Kept(Named(Kind.HELD, Claim(0, 1), 2), Instant(0), None)
    assert sink_instants(kept) == kept
    assert sink_instants(sink_instants(Holder(Claim(0, 1), Instant(1), None, None, None))).until == Instant(0)
