from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from trinco.core import snapshot
from trinco.core.ids import NOBODY, Ids
from trinco.core.instant import Instant


@dataclass(frozen=True, slots=True)
class Stamp:
    clock: int
    node: int


@dataclass(slots=True)
class Empty:
    pass


@dataclass(slots=True)
class Single:
    value: int = 0


@dataclass(slots=True)
class Single2:
    value: int = 0


@dataclass(slots=True)
class Plain:
    me: int
    clock: int = 0
    queue: tuple[int, ...] = ()
    deferred: Ids = NOBODY
    best: Stamp | None = None
    until: Instant | None = None


@dataclass(slots=True)
class Layer:
    below: Single
    seen: int = 0


@dataclass(slots=True)
class Tower:
    me: int
    layer: Layer = field(default_factory=lambda: Layer(Single()))
    other: Single = field(default_factory=Single)


plain_nodes = st.builds(
    Plain,
    st.integers(),
    st.integers(),
    st.lists(st.integers()).map(tuple),
    st.integers(0, 2**64),
    st.none() | st.builds(Stamp, st.integers(), st.integers()),
    st.none() | st.builds(Instant, st.integers()),
)
towers = st.builds(
    Tower,
    st.integers(),
    st.builds(Layer, st.builds(Single, st.integers()), st.integers()),
    st.builds(Single, st.integers()),
)


@given(plain_nodes | towers | st.just(Empty()) | st.builds(Single, st.integers()))
def test_a_node_comes_back_from_its_snapshot_as_it_was(node):
    back = snapshot.restore(snapshot.take(node))
    assert back == node
    assert type(back) is type(node)


@given(towers, towers)
def test_snapshots_are_equal_exactly_when_the_nodes_are(one, other):
    assert (snapshot.take(one) == snapshot.take(other)) == (one == other)


@given(plain_nodes | towers)
def test_a_snapshot_is_a_value_that_a_set_can_hold(node):
    assert snapshot.take(node) in {snapshot.take(node)}


def test_classes_with_equal_fields_are_different_states():
    assert snapshot.take(Single(3)) != snapshot.take(Single2(3))


def test_a_snapshot_is_the_class_followed_by_the_fields():
    assert snapshot.take(Single(3)) == (Single, 3)
    assert snapshot.take(Empty()) == (Empty,)


def test_a_part_is_a_snapshot_within_the_snapshot_at_every_depth():
    tower = Tower(7, Layer(Single(1), 2), Single(3))
    assert snapshot.take(tower) == (Tower, 7, (Layer, (Single, 1), 2), (Single, 3))


def test_a_snapshot_does_not_follow_later_changes_of_a_part():
    tower = Tower(0)
    before = snapshot.take(tower)
    tower.layer.below.value = 9
    assert before == snapshot.take(Tower(0))
    assert snapshot.take(tower) != before


def test_two_nodes_from_one_snapshot_share_no_part():
    taken = snapshot.take(Tower(0))
    one, other = snapshot.restore(taken), snapshot.restore(taken)
    one.layer.below.value = 9
    assert other.layer.below.value == 0


def test_a_frozen_dataclass_is_a_plain_value_and_not_a_part():
    assert not snapshot.is_part(Stamp(1, 2))
    assert snapshot.is_part(Single())
    assert snapshot.fields_of(Plain(0, best=Stamp(1, 2)))[4] == Stamp(1, 2)


@given(plain_nodes | towers)
def test_the_quick_reader_reads_what_the_thorough_one_does(node):
    assert snapshot.reader(node)(node) == snapshot.fields_of(node)


def test_the_fields_that_hold_sets_of_ids_are_known():
    assert snapshot.field_names(Plain) == ("me", "clock", "queue", "deferred", "best", "until")
    assert snapshot.set_fields(Plain) == {"deferred"}


@dataclass
class Roomy:
    me: int = 0


class Forgetful(Single):
    """A subclass without ``__slots__ = ()``."""


class Slotted:
    __slots__ = ("extra",)


@dataclass(slots=True)
class MoreSlots(Slotted):
    me: int = 0


@dataclass(slots=True)
class WithRoomyPart:
    part: Roomy = field(default_factory=Roomy)


def test_what_is_kept_beside_the_fields_is_found_wherever_there_is_room_for_it():
    for node in (Roomy(), Forgetful(), MoreSlots()):
        assert snapshot.can_hide(node)
        assert snapshot.undeclared(node) is None
        node.extra = 1
        assert snapshot.undeclared(node) == "extra"


def test_what_a_part_hides_is_found_too():
    node = WithRoomyPart()
    node.part.extra = 1
    assert snapshot.can_hide(node)
    assert snapshot.undeclared(node) == "part.extra"


def test_a_class_with_room_for_its_fields_only_need_not_be_watched():
    assert not any(map(snapshot.can_hide, (Single(), Empty(), Plain(0), Tower(0))))
