"""Projective planes, with the sentences of Campos & Carvalho 1988 (seed 002) as tests."""

import sys
import time
from itertools import combinations, product

import pytest

from trinco.core.errors import UsageError
from trinco.protocols.quorums.fields import finite_field
from trinco.protocols.quorums.planes import Family, checks, dual, order_for, plane

ORDERS = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 25, 27, 31, 32]
FANO = plane(2)


def faults(order: int, lines: Family) -> dict[str, str]:
    return {check.claim: check.fault for check in checks(order, lines) if check.fault is not None}


@pytest.mark.parametrize("order", ORDERS)
def test_a_plane_of_order_m_has_m2_plus_m_plus_1_points_and_as_many_lines(order: int) -> None:
    """Theorems 1 to 3."""
    lines = plane(order)
    points = order * order + order + 1
    assert len(lines) == points
    assert {point for line in lines for point in line} == set(range(points))
    assert {len(set(line)) for line in lines} == {order + 1}
    assert {len(through) for through in dual(lines, points)} == {order + 1}


@pytest.mark.parametrize("order", ORDERS)
def test_two_distinct_lines_pass_through_one_and_only_one_common_point(order: int) -> None:
    """P 2, pair by pair."""
    lines = [frozenset(line) for line in plane(order)]
    assert all(len(one & other) == 1 for one, other in combinations(lines, 2))


@pytest.mark.parametrize("order", ORDERS)
def test_two_distinct_points_are_on_one_and_only_one_common_line(order: int) -> None:
    """P 1: no pair twice, and as many as there are pairs."""
    pairs = [pair for line in plane(order) for pair in combinations(line, 2)]
    points = order * order + order + 1
    assert len(pairs) == len(set(pairs)) == points * (points - 1) // 2


@pytest.mark.parametrize("order", ORDERS)
def test_a_plane_can_be_built_so_that_line_i_always_contains_point_i(order: int) -> None:
    assert all(number in line for number, line in enumerate(plane(order)))


@pytest.mark.parametrize("order", [1, *ORDERS])
def test_the_checks_find_nothing_wrong(order: int) -> None:
    assert faults(order, plane(order)) == {}


def test_a_triangle_is_valid_for_this_application() -> None:
    assert plane(1) == ((0, 1), (1, 2), (0, 2))


def test_the_example_of_order_2_in_the_paper_is_a_plane() -> None:
    printed = ((1, 2, 4), (2, 6, 7), (3, 4, 6), (4, 5, 7), (5, 2, 3), (6, 5, 1), (7, 3, 1))
    lines = tuple(tuple(sorted(point - 1 for point in line)) for line in printed)
    assert faults(2, lines) == {}


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7, 8, 9])
def test_the_textbook_plane_of_triples_over_the_field_passes_too_but_for_its_numbers(order: int) -> None:
    """Points and lines are the triples whose first entry other than 0 is 1; a dot product of 0 is "on"."""
    field = finite_field(order)
    triples = [each for each in product(range(order), repeat=3) if next(filter(None, each), 0) == 1]

    def dot(one: tuple[int, ...], other: tuple[int, ...]) -> int:
        first, second, third = (field.products[a][b] for a, b in zip(one, other, strict=True))
        return field.sums[field.sums[first][second]][third]

    lines = tuple(tuple(i for i, point in enumerate(triples) if dot(line, point) == 0) for line in triples)
    assert list(faults(order, lines)) == ["point i is on line i"]


def test_order_97_has_9507_nodes_and_is_built_within_5_seconds() -> None:
    start = time.process_time()
    lines = plane(97)
    assert time.process_time() - start < 5
    assert len(lines) == 9_507
    assert faults(97, lines) == {}


def test_order_97_takes_8_bytes_for_each_point_on_a_line() -> None:
    """A number is kept once, however many lines it is on."""
    lines = plane(97)
    assert sum(map(sys.getsizeof, lines)) < 9 * 98 * 9_507
    assert len({id(point) for line in lines for point in line}) == 9_507


# The checks


@pytest.mark.parametrize(
    ("lines", "claim", "told"),
    [
        (FANO[:-1], "there are 7 lines", "there are 6"),
        (((0, 1), *FANO[1:]), "3 points are on each line", "there are 2 points on line 0"),
        (((0, 1, 4), *FANO[1:]), "3 lines go through each point", "there are 2 lines through point 3"),
        (((0, 1, 4), *FANO[1:]), "two points are on exactly one common line", "points 0 and 3 share {}"),
        (((0, 1, 4), *FANO[1:]), "two lines meet in exactly one point", "lines 0 and 1 share {1, 4}"),
        ((*FANO[1:], FANO[0]), "point i is on line i", "line 0 is {1, 2, 4}"),
    ],
)
def test_a_check_that_fails_shows_where(lines: Family, claim: str, told: str) -> None:
    assert faults(2, lines)[claim] == told


@pytest.mark.parametrize("order", [2, 3, 4])
def test_no_point_of_any_line_can_be_exchanged_without_being_noticed(order: int) -> None:
    lines = plane(order)
    for number, line in enumerate(lines):
        for old, new in product(line, set(range(len(lines))) - set(line)):
            changed = tuple(sorted({*line, new} - {old}))
            found = faults(order, (*lines[:number], changed, *lines[number + 1 :]))
            assert "two lines meet in exactly one point" in found
            assert "two points are on exactly one common line" in found


# Orders


@pytest.mark.parametrize(("order", "following"), [(6, 7), (10, 11), (12, 13), (126, 127)])
def test_an_order_that_is_no_power_of_a_prime_is_refused_with_the_next_that_works(order: int, following: int) -> None:
    told = f"^{order} is not a power of a prime; the next order that works is {following}$"
    with pytest.raises(UsageError, match=told):
        plane(order)


@pytest.mark.parametrize(("order", "told"), [(0, "at least 1, not 0"), (-3, "not -3"), (131, "up to order 128")])
def test_an_order_out_of_range_is_refused(order: int, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        plane(order)


@pytest.mark.parametrize(
    ("n", "order"),
    [(1, 1), (2, 1), (3, 1), (4, 2), (7, 2), (8, 3), (31, 5), (32, 7), (57, 7), (58, 8), (92, 11), (9_507, 97)],
)
def test_the_order_for_n_is_the_smallest_with_n_points_or_more(n: int, order: int) -> None:
    assert order_for(n) == order


def test_more_nodes_than_the_largest_plane_has_are_refused() -> None:
    assert order_for(16_513) == 128
    with pytest.raises(UsageError, match="16,514 nodes are too many"):
        order_for(16_514)
