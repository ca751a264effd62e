"""Coordinators that forget: the formula against the specification's figures, the simulation against the formula."""

from math import sqrt

import pytest

from trinco.core.errors import UsageError
from trinco.lab.vote_loss import HOUR, Loss, Measured, probability, simulate, table

COMPUTED = {
    3: {(8, 5): 6.9e-6, (8, 6): 7.2e-12, (16, 9): 2.5e-5, (16, 12): 1.2e-22, (32, 17): 9.4e-5, (32, 24): 4.0e-44},
    30: {(8, 5): 6.8e-4, (8, 6): 7.1e-8, (16, 9): 2.4e-3, (16, 12): 1.1e-14, (32, 17): 8.7e-3, (32, 24): 3.7e-28},
}
"""By seconds away in every hour and (coordinators, votes): specification, S-3, two digits each."""

BOOK = {(8, 5): 1e-5, (8, 6): 1e-11, (16, 9): 1e-4, (16, 12): 1e-21, (32, 17): 1e-4, (32, 24): 1e-43}
"""What the textbook bounds them by, for 3 seconds in every hour."""


def test_the_table_has_the_specification_s_twelve_figures() -> None:
    rows = {(round(row.p * HOUR), (row.m, row.v)): row.probability for row in table()}
    wanted = {(seconds, size): figure for seconds, sizes in COMPUTED.items() for size, figure in sizes.items()}
    assert rows.keys() == wanted.keys()
    assert len(rows) == 12
    for key, figure in wanted.items():
        assert rows[key] == pytest.approx(figure, rel=0.05), key


def test_eleven_of_them_agree_to_the_last_digit_and_one_is_off_by_one_in_it() -> None:
    """(16, 12) at 3 s/h is 1.147e-22, which is no 1.2e-22; C(12, 8) p^8 alone, 1.151e-22, would be."""
    differ = [
        (row.m, row.v)
        for row in table()
        if f"{row.probability:.1e}" != f"{COMPUTED[round(row.p * HOUR)][row.m, row.v]:.1e}"
    ]
    assert differ == [(16, 12)]
    assert probability(16, 12, 3 / HOUR) == pytest.approx(1.147e-22, rel=1e-3)


def test_the_textbook_s_bounds_hold() -> None:
    for size, bound in BOOK.items():
        assert bound / 20 < probability(*size, 3 / HOUR) < bound


def test_one_reset_is_enough_for_a_bare_majority_of_an_odd_number_and_it_takes_all_where_all_must_agree() -> None:
    assert probability(3, 2, 0.1) == pytest.approx(1 - 0.9**2)
    assert probability(3, 3, 0.1) == pytest.approx(0.1**3)


@pytest.mark.parametrize(("p", "chance"), [(0.0, 0.0), (1.0, 1.0)])
def test_nothing_happens_to_coordinators_that_never_forget_and_always_to_those_that_do(p: float, chance: float) -> None:
    (row,) = simulate(((5, 4),), p=p, trials=20)
    assert (row.share, row.predicted) == (chance, chance)


def test_the_simulation_shows_the_violations_that_the_formula_predicts() -> None:
    rows = simulate(((5, 3), (5, 4), (8, 5), (8, 6)), p=0.25, trials=250)
    assert all(row.violations for row in rows)
    for row in rows:
        deviation = sqrt(row.predicted * (1 - row.predicted) / row.trials)
        assert abs(row.share - row.predicted) < 3.5 * deviation, row


def test_more_votes_bear_more_resets() -> None:
    shares = [row.share for row in simulate(((5, 3), (5, 4), (5, 5)), p=0.5, trials=150)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.7
    assert shares[2] < 0.1


def test_the_same_seed_gives_the_same_rows_and_another_seed_others() -> None:
    def figures(seed: int) -> list[Measured]:
        return simulate(((5, 3), (5, 4)), p=0.3, trials=60, seed=seed)

    assert figures(0) == figures(0)
    assert figures(0) != figures(1)


def test_rows_say_what_they_are_about() -> None:
    assert table(sizes=[(3, 2)], rates=[0.5]) == [Loss(m=3, v=2, p=0.5, probability=0.75)]


@pytest.mark.parametrize(("m", "v", "p"), [(4, 2, 0.1), (3, 4, 0.1), (3, 2, 1.5), (3, 2, -0.1)])
def test_votes_that_two_could_have_and_chances_that_are_none_are_refused(m: int, v: int, p: float) -> None:
    with pytest.raises(UsageError):
        probability(m, v, p)
