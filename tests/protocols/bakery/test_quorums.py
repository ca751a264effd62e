"""Dissemination quorums: "2f+1" is right for n = 3f+1 only."""

from itertools import combinations

import pytest

from trinco.core.errors import UsageError
from trinco.protocols.bakery.quorums import quorum


@pytest.mark.parametrize("f", range(20))
def test_with_as_few_servers_as_possible_a_quorum_is_2f_plus_1_as_the_paper_says(f: int) -> None:
    assert quorum(3 * f + 1, f) == 2 * f + 1


@pytest.mark.parametrize(("n", "f"), [(n, f) for n in range(1, 60) for f in range((n - 1) // 3 + 1)])
def test_two_quorums_share_f_plus_1_servers_and_one_is_left_when_f_are_silent(n: int, f: int) -> None:
    q = quorum(n, f)
    assert 2 * q - n >= f + 1
    assert q <= n - f
    assert 2 * (q - 1) - n < f + 1, "with one less they would not"


def test_of_five_servers_three_are_too_few() -> None:
    """{0, 1, 4} and {2, 3, 4} meet in 4 alone."""
    shared = {len({*one} & {*other}) for one in combinations(range(5), 3) for other in combinations(range(5), 3)}
    assert min(shared) == 1
    assert quorum(5, 1) == 4


@pytest.mark.parametrize(("n", "f"), [(3, 1), (6, 2), (0, 0), (4, -1)])
def test_fewer_than_3f_plus_1_servers_are_refused(n: int, f: int) -> None:
    with pytest.raises(UsageError, match="cannot outvote"):
        quorum(n, f)
