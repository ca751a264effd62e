"""What ``trinco reproduce forks`` finds: section 6 of Campos & Carvalho 1988, sentence by sentence."""

from copy import copy
from dataclasses import replace
from math import sqrt

import pytest

from trinco.lab import forks_experiment
from trinco.lab.forks_experiment import QUICK, findings, panels, reproduce, tables
from trinco.lab.forks_measures import (
    APART,
    FORKS,
    RETURNING,
    Alone,
    Costing,
    Crowded,
    Measured,
    Pair,
    Preempting,
    Sharing,
    low,
    medium,
)
from trinco.lab.reproduction import Verdict

ORDERS = {7: 2, 13: 3, 21: 4, 31: 5, 57: 7, 73: 8, 91: 9, 133: 11}

every_plane = pytest.mark.parametrize(("n", "m"), ORDERS.items())


def cost(n, load, subject=FORKS):
    outcome = Costing(subject, n, load).do()
    assert outcome.violation is None
    return outcome.per_entry


class TestMessagesPerEntry:
    @every_plane
    def test_the_first_entry_takes_a_request_and_an_answer_for_each_arbiter_elsewhere(self, n, m):
        assert cost(n, Alone(again=False)) == 2 * m

    @every_plane
    def test_whoever_has_all_forks_may_enter_as_often_as_it_likes_for_nothing(self, n, m):
        assert cost(n, Alone(again=True)) == 0

    @every_plane
    def test_two_neighbours_take_2_messages_each_time_that_the_fork_changes_hands(self, n, m):
        assert cost(n, Pair(neighbours=True, order="in turn", counted=20)) == 2
        assert cost(n, Pair(neighbours=True, order="saturated", counted=20)) == 1

    @every_plane
    def test_with_an_arbiter_between_them_they_take_4(self, n, m):
        assert cost(n, Pair(neighbours=False, order="in turn", counted=20)) == 4
        assert cost(n, Pair(neighbours=False, order="saturated", counted=20)) == 2

    @pytest.mark.parametrize(("neighbours", "claimed"), [(True, 1), (False, 2)])
    def test_at_random_every_other_entry_finds_the_fork_where_it_is(self, neighbours, claimed):
        assert cost(7, Pair(neighbours, "at random", 3_000)) == pytest.approx(claimed, rel=0.05)

    @pytest.mark.parametrize(("n", "m"), [(7, 2), (21, 4), (57, 7)])
    def test_saturated_they_merge_to_half(self, n, m):
        assert (cost(n, Crowded()), cost(n, Crowded(), APART)) == (2 * m, 4 * m)
        assert cost(n, Crowded(pause=True)) == 3 * m, "whoever leaves does not know yet that it will ask again"

    @pytest.mark.parametrize(("n", "m"), [(7, 2), (31, 5)])
    def test_one_request_at_a_time_finds_one_fork_in_m_plus_1_at_home(self, n, m):
        assert cost(n, low(1_000)) == pytest.approx(4 * m * m / (m + 1), rel=0.05)

    @pytest.mark.parametrize(("n", "m"), [(7, 2), (31, 5)])
    def test_one_request_at_a_time_may_have_to_fetch_its_own_fork_too(self, n, m):
        """4m messages for the others' forks and 2 for that of the arbiter beside it: just below 4 sqrt n."""
        assert Costing(FORKS, n, low(1_000)).do().most == 4 * m + 2 < 4 * sqrt(n)

    def test_forks_that_are_given_back_unasked_save_messages_if_everybody_asks_now_and_then(self):
        for load in (low(300), medium(300)):
            assert cost(57, load, RETURNING) < 0.95 * cost(57, load)

    def test_a_fork_that_is_called_back_makes_an_entry_dearer_than_claimed(self):
        assert Preempting(FORKS, 21, seeds=1).do().most > 4 * sqrt(21)


class TestSymmetry:
    @pytest.mark.parametrize(("n", "m"), [(7, 2), (13, 3), (31, 5)])
    def test_on_a_plane_all_nodes_have_the_same_work(self, n, m):
        """Each sends and receives m messages as a client and m as an arbiter."""
        shares = Sharing(n).do()
        assert (shares.mean, shares.most, shares.jain) == (4 * m, 4 * m, 1)

    def test_whoever_runs_the_arbiter_of_a_fictitious_node_has_more(self):
        shares = Sharing(10).do()
        assert shares.most > 1.1 * shares.mean


@pytest.fixture(scope="module")
def measured():
    return Measured(replace(QUICK, sizes=(7, 13, 21), counted=100, seeds=2), None, None)


def verdicts(measured):
    return [finding.verdict for finding in findings(measured)]


def changed(measured, kind, **changes):
    """The same, had all pieces of a kind come to something else."""
    other = copy(measured)
    other.outcomes = {
        piece: replace(outcome, **changes) if isinstance(piece, kind) else outcome
        for piece, outcome in measured.outcomes.items()
    }
    return other


class TestVerdicts:
    def test_say_what_is_left_of_each_claim(self, measured):
        holds, only_if, refuted = Verdict.HOLDS, Verdict.ONLY_IF, Verdict.REFUTED
        assert verdicts(measured) == [holds, holds, *[only_if] * 2, refuted, *[only_if] * 5]

    def test_stand_beside_our_numbers(self, measured):
        best, first, worst, *_ = findings(measured)
        assert (best.published, best.ours) == ("0", "0")
        assert (first.published, first.ours) == ("2 sqrt n", "2m: 4 at n=7, 8 at n=21")
        assert worst.ours.startswith("one request at a time 4m + 2: 10 at n=7, 18 at n=21; among others ")

    def test_would_be_refutations_if_entries_cost_more(self, measured):
        """The last two are not about messages."""
        dear = changed(changed(measured, Costing, per_entry=99.0, most=99), Preempting, per_entry=99.0, most=99)
        assert verdicts(dear)[:8] == [Verdict.REFUTED] * 8

    def test_would_be_without_conditions_if_nothing_cost_more_than_claimed(self, measured):
        cheap = changed(changed(measured, Costing, per_entry=0.0, most=0), Preempting, per_entry=0.0, most=0)
        best, first, *others = verdicts(cheap)[:7]
        assert [best, *others] == [Verdict.HOLDS] * 6
        assert first is Verdict.REFUTED, "2m is exact"

    def test_see_a_violation(self, measured):
        *_, last = findings(changed(measured, Sharing, violation="p0 and p1 are inside together"))
        assert (last.verdict, last.ours) == (Verdict.REFUTED, "p0 and p1 are inside together")

    def test_see_unequal_work(self, measured):
        *_, symmetry, _ = findings(changed(measured, Sharing, mean=1.0, most=3.0))
        assert symmetry.verdict is Verdict.REFUTED


class TestWhatIsShown:
    def test_every_algorithm_has_a_number_for_every_n_and_load(self, measured):
        low_load, medium_load, saturated, *_ = tables(measured)
        for table in (low_load, medium_load, saturated):
            assert table.headings == ("n", "7", "13", "21")
            assert len(table.rows) == 1 + 7 + 2
        rows = {row[0]: row[1:] for row in saturated.rows}
        assert rows["Ricart-Agrawala"] == rows["Carvalho-Roucairol"] == rows["Chandy-Misra"] == ("12", "24", "40")
        assert rows["Forks (Campos-Carvalho)"] == ("4", "6", "8")

    def test_no_two_columns_have_the_same_heading(self, measured):
        for table in tables(measured):
            assert len(set(table.headings)) == len(table.headings) == len(table.rows[0])

    def test_a_curve_that_cannot_be_seen_says_which_one_covers_it(self, measured):
        *_, saturated = panels(measured)
        labels = [curve.label for curve in saturated.curves]
        assert "Chandy-Misra, beneath Ricart-Agrawala" in labels
        assert "Ricart-Agrawala" in labels

    def test_past_the_machine_there_are_the_forks_only(self, measured):
        beyond = copy(measured)
        beyond.extent = replace(measured.extent, sizes=(7, 13), beyond=(21,))
        rows = {row[0]: row[1:] for row in next(tables(beyond)).rows}
        assert rows["Maekawa, on planes"][2] == "-"
        assert float(rows["Forks (Campos-Carvalho)"][2]) > 10


def test_pieces_are_done_one_by_one_and_told(monkeypatch):
    monkeypatch.setattr(forks_experiment, "QUICK", replace(QUICK, sizes=(7,), padded=(10,), counted=20, paired=20))
    told = []
    made = reproduce(None, lambda title, share: told.append((title, share)), quick=True)
    assert told[-1][1] == 1.0
    assert ("the load of each node, n=10", 1 / len(told)) == told[0], "the largest first"
    assert len(made.findings) == 10
