"""C(i,s): "clusters progressivamente maiores", for any number of processes."""

import pytest

from trinco.protocols.detection.clusters import cluster, dimensions, first_unsuspected

SIZES = pytest.mark.parametrize("n", range(2, 65))


def clusters(me: int, n: int) -> list[tuple[int, ...]]:
    return [cluster(me, s, n) for s in range(1, dimensions(n) + 1)]


def test_the_clusters_of_the_paper() -> None:
    assert clusters(0, 8) == [(1,), (2, 3), (4, 6, 7, 5)]
    assert cluster(0, 4, 16) == (8, 12, 14, 15, 13, 10, 11, 9)
    assert cluster(6, 2, 8) == (4, 5)
    assert cluster(2, 1, 8) == (3,)


@SIZES
def test_the_clusters_of_a_process_part_all_others(n: int) -> None:
    for me in range(n):
        everybody = [me, *(each for corners in clusters(me, n) for each in corners)]
        assert sorted(everybody) == list(range(n))


@pytest.mark.parametrize("n", [2, 4, 8, 16, 32, 64])
def test_in_a_whole_cube_each_cluster_is_twice_as_large_as_the_one_before(n: int) -> None:
    assert all([len(corners) for corners in clusters(me, n)] == [2**s for s in range(dimensions(n))] for me in range(n))


@SIZES
def test_anybody_in_a_cluster_can_stand_in_for_its_head(n: int) -> None:
    """{j} and C(j,1) to C(j,s-1) are C(i,s) again, whoever j is."""
    for me in range(n):
        for s, corners in enumerate(clusters(me, n), start=1):
            for substitute in corners:
                inner = [each for below in clusters(substitute, n)[: s - 1] for each in below]
                assert sorted([substitute, *inner]) == sorted(corners)


def test_corners_without_a_process_are_left_out_and_a_cluster_may_be_empty() -> None:
    assert clusters(0, 6) == [(1,), (2, 3), (4, 5)]
    assert clusters(2, 3) == [(), (0, 1)]


@pytest.mark.parametrize(("n", "d"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (64, 6), (65, 7)])
def test_a_process_has_as_many_clusters_as_the_cube_has_dimensions(n: int, d: int) -> None:
    assert dimensions(n) == d


@pytest.mark.parametrize(("suspects", "first"), [(0, 4), (0b1_0000, 6), (0b1101_0000, 5), (0b1111_0000, None)])
def test_the_first_that_nobody_suspects_is_taken_in_the_order_of_the_cluster(suspects: int, first: int | None) -> None:
    assert first_unsuspected(cluster(0, 3, 8), suspects) == first
