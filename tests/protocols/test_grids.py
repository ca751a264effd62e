"""Quorums from grids, and what makes a set of quorums one."""

from itertools import combinations
from math import ceil, sqrt

import pytest

from trinco.core.errors import UsageError
from trinco.core.ids import bit, members
from trinco.protocols.quorums import ARRANGEMENTS, arrangement
from trinco.protocols.quorums.grids import grid
from trinco.protocols.quorums.quorum_set import QuorumSet

ANY_NUMBER = range(1, 151)


def test_a_quorum_is_the_row_and_the_column_of_its_process() -> None:
    """
    0 1 2
    3 4 5
    6 7 8
    """
    assert [set(members(quorum)) for quorum in grid(9)] == [
        {0, 1, 2, 3, 6},
        {0, 1, 2, 4, 7},
        {0, 1, 2, 5, 8},
        {3, 4, 5, 0, 6},
        {3, 4, 5, 1, 7},
        {3, 4, 5, 2, 8},
        {6, 7, 8, 0, 3},
        {6, 7, 8, 1, 4},
        {6, 7, 8, 2, 5},
    ]


def test_a_last_row_that_is_short_makes_columns_shorter() -> None:
    """
    0 1 2
    3 4
    """
    assert [set(members(quorum)) for quorum in grid(5)] == [{0, 1, 2, 3}, {0, 1, 2, 4}, {0, 1, 2}, {0, 3, 4}, {1, 3, 4}]


def test_any_two_quorums_of_a_grid_meet_and_everybody_is_in_its_own() -> None:
    for n in ANY_NUMBER:
        quorums = grid(n)
        assert len(quorums) == n
        assert all(quorum & bit(me) for me, quorum in enumerate(quorums))
        assert all(one & other for one, other in combinations(quorums, 2))


def test_a_quorum_of_a_grid_has_at_most_2_ceil_sqrt_n_minus_1_members() -> None:
    for n in ANY_NUMBER:
        assert max(quorum.bit_count() for quorum in grid(n)) <= 2 * ceil(sqrt(n)) - 1


def test_in_a_full_grid_all_quorums_have_that_many_and_everybody_is_in_as_many() -> None:
    """Maekawa: everybody asks equally many, and is asked by equally many."""
    for side in range(1, 13):
        quorums = grid(side * side)
        assert {quorum.bit_count() for quorum in quorums} == {2 * side - 1}
        asked_by = [sum(bool(quorum & bit(node)) for quorum in quorums) for node in range(side * side)]
        assert set(asked_by) == {2 * side - 1}


def test_quorums_that_do_not_meet_are_refused() -> None:
    with pytest.raises(UsageError, match=r"quorums \{0, 1\} of process 0 and \{2, 3\} of 2 do not meet"):
        QuorumSet((0b0011, 0b0011, 0b1100, 0b1110))


def test_a_process_must_be_in_its_own_quorum() -> None:
    with pytest.raises(UsageError, match=r"process 1 must be in its own quorum \{0\}"):
        QuorumSet((0b01, 0b01))


def test_members_must_be_processes() -> None:
    with pytest.raises(UsageError, match=r"\{0, 2\} has members that are none of the 2 processes"):
        QuorumSet((0b101, 0b011))


@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_an_arrangement_is_found_by_its_name_and_arranges_any_number(name: str) -> None:
    assert [len(arrangement(name)(n)) for n in range(2, 20)] == list(range(2, 20))


def test_an_unknown_arrangement_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="there are no quorums 'circle'; there are: grid"):
        arrangement("circle")
