from hypothesis import given
from hypothesis import strategies as st

from trinco.core.ids import NOBODY, bit, members

groups = st.frozensets(st.integers(0, 300))


def as_ids(nodes):
    ids = NOBODY
    for node in nodes:
        ids |= bit(node)
    return ids


@given(groups)
def test_the_members_of_a_set_come_back_smallest_first(nodes):
    assert list(members(as_ids(nodes))) == sorted(nodes)


@given(groups, groups)
def test_sets_of_ids_join_meet_and_differ_as_sets_do(some, others):
    a, b = as_ids(some), as_ids(others)
    assert set(members(a | b)) == some | others
    assert set(members(a & b)) == some & others
    assert set(members(a & ~b)) == some - others


@given(groups)
def test_the_bits_count_the_members(nodes):
    assert as_ids(nodes).bit_count() == len(nodes)


@given(groups, groups)
def test_equal_sets_are_equal_values(some, others):
    assert (as_ids(some) == as_ids(others)) == (some == others)


def test_nobody_has_no_members():
    assert list(members(NOBODY)) == []
