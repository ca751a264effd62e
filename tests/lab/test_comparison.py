"""What ``trinco compare`` measures: the slides' table with its blanks filled in."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import pytest

from tests.mutants import coordinator as broken_coordinators
from tests.mutants import ricart_agrawala as broken
from trinco.core.errors import UsageError
from trinco.lab.comparison import OVERLAP, Compared, Subject, compare, everybody, subjects
from trinco.lab.comparison_measures import measure
from trinco.lab.election_comparison import by_rank, elect, elections, ranks
from trinco.lab.properties import establish
from trinco.lab.utilisation import utilisation
from trinco.protocols.catalogue import ENTRIES, Entry, find
from trinco.protocols.election import bully, ring

ALGORITHMS = [subject.entry for subject in everybody()]
BULLY = Entry("bully", bully, bully.BullyElection(), bully.CLAIMS)
RING = Entry("ring-election", ring, ring.RingElection(), ring.CLAIMS)

every = pytest.mark.parametrize("entry", ALGORITHMS, ids=lambda entry: entry.name)


def exact(entry):
    return ".." not in entry.claims.messages_per_entry.text


class TestMessagesPerEntry:
    @pytest.mark.parametrize("entry", list(filter(exact, ALGORITHMS)), ids=lambda entry: entry.name)
    @pytest.mark.parametrize("n", [4, 13, 32])
    def test_an_exact_claim_is_met_under_every_load(self, entry, n):
        claimed = entry.claims.messages_per_entry.high(**entry.letters(n))
        assert set(asdict(measure(entry, n).messages).values()) == {claimed}

    @every
    @pytest.mark.parametrize("n", [4, 16])
    def test_no_load_costs_more_than_is_claimed(self, entry, n):
        measures = measure(entry, n)
        claimed = entry.claims.messages_per_entry.high(**entry.letters(n))
        edge = OVERLAP if entry.claims.k.high(**entry.letters(n)) > 1 else 0
        assert max(asdict(measures.messages).values()) <= claimed * (1 + edge)
        assert measures.violations == ()

    @pytest.mark.parametrize("n", [4, 8, 32])
    def test_the_ring_takes_1_if_everybody_asks_and_n_for_one_that_asks_alone(self, n):
        messages = measure(find("token-ring"), n).messages
        assert (messages.saturated, messages.alone) == (1, n)

    def test_who_keeps_its_permissions_pays_nothing_alone_and_everything_when_everybody_asks(self):
        messages = measure(find("carvalho-roucairol"), 8).messages
        assert messages.alone == 0
        assert 0 < messages.light < messages.in_turn < messages.saturated == 14

    def test_the_release_of_the_last_entry_is_not_forgotten(self):
        """Its way through the sequencer is longer than the run of the last process."""
        assert measure(find("ordered-voting"), 8).messages.in_turn == 3 * 3 + 2

    def test_votes_that_are_returned_come_on_top(self):
        messages = measure(find("voting"), 16).messages
        assert messages.alone == messages.in_turn == 3 * 3
        assert messages.saturated > messages.light > 3 * 3


class TestDelays:
    @pytest.mark.parametrize("n", [4, 16, 64])
    def test_ricart_agrawala_takes_2_in_parallel_and_2_n_minus_2_one_after_another(self, n):
        """The slides: "2(N-1)"; with messages sent together, one round trip."""
        measures = measure(find("ricart-agrawala"), n)
        assert asdict(measures.delay) == {"least": 2, "mean": 2, "most": 2}
        assert measures.sequential_delay.mean == 2 * (n - 1)

    def test_lin_takes_2_in_parallel_and_2m_one_after_another(self):
        measures = measure(find("voting").set("m=5"), 10)
        assert (measures.delay.mean, measures.sequential_delay.mean) == (2, 2 * 5)

    def test_ordered_voting_takes_3(self):
        assert measure(find("ordered-voting"), 8).delay.mean == 3

    @pytest.mark.parametrize("n", [4, 16])
    def test_the_ring_takes_0_to_n_minus_1(self, n):
        delay = measure(find("token-ring"), n, seed=1).delay
        assert 0 <= delay.least <= 1
        assert delay.most == n - 1

    def test_the_next_enters_one_message_after_the_last_or_two_by_a_coordinator(self):
        """But for the last digit: everybody begins at a random moment, and a delay is a difference."""
        assert measure(find("ricart-agrawala"), 8).synchronisation_delay == pytest.approx(1, rel=1e-12)
        assert measure(find("coordinator"), 8).synchronisation_delay == pytest.approx(2, rel=1e-12)

    def test_when_everybody_asks_everybody_waits_for_everybody(self):
        """Eight processes, each inside for 1 and a message behind the one before."""
        assert measure(find("ricart-agrawala"), 8).saturated_response == 8 * 2

    def test_those_who_never_get_in_count_in_the_response(self):
        """One client of Lin's enters again and again, every 3 message times; the others back off ever longer."""
        measures = measure(find("voting"), 32)
        assert measures.jain < 0.1
        assert measures.saturated_response == 29 * 3


class TestFairness:
    def test_queues_are_fair_and_lin_is_not(self):
        assert measure(find("ricart-agrawala"), 8).jain == 1
        lin = measure(find("voting"), 16)
        assert lin.jain < 0.5
        assert lin.bypass > 30


class TestProperties:
    def test_are_checked_exhaustively_where_that_ends_soon(self):
        found = establish(find("ricart-agrawala"))
        assert found.established == "checked exhaustively: n=3, 2 entries each, 25,674 states"
        assert [finding.holds for finding in found.findings.values()] == [True, True, True]
        assert found.violation is None

    def test_take_three_processes_and_their_servers_and_no_bound_on_entries_where_there_need_not_be_one(self):
        assert establish(find("coordinator")).evidence.startswith("n=4, unbounded entries, ")

    def test_fall_back_on_fewer_entries_and_then_on_random_runs(self):
        entry = find("ricart-agrawala")
        assert establish(entry, most_states=3000).evidence.startswith("n=3, 1 entry each")
        simulated = establish(entry, most_states=10)
        assert simulated.established == "simulated, 40 seeds: n=5, 1,000 entries"
        assert simulated.findings["V2"].holds

    def test_that_nobody_claims_are_not_judged(self):
        found = establish(find("voting"), most_states=20_000)
        assert found.findings["S1"].holds
        assert [(found.findings[name].holds, found.findings[name].how) for name in ("V1", "V2")] == [
            (None, "not claimed")
        ] * 2

    def test_two_inside_together_are_told(self):
        found = establish(replace(find("ricart-agrawala"), build=broken.never_defers))
        assert found.findings["S1"].holds is False
        assert "inside together" in found.violation

    def test_that_were_not_looked_for_to_the_end_are_not_established(self):
        """Two inside together end the search: whoever would have waited for ever was not seen."""
        found = establish(replace(find("ricart-agrawala"), build=broken.never_defers))
        assert [(found.findings[name].holds, found.findings[name].how) for name in ("V1", "V2")] == [
            (None, "not established")
        ] * 2

    def test_a_deadlock_breaks_both_V1_and_V2(self):  # noqa: N802
        found = establish(replace(find("ricart-agrawala"), build=broken.always_defers))
        assert [finding.holds for finding in found.findings.values()] == [None, False, False]
        assert found.violation

    def test_somebody_who_waits_while_others_enter_breaks_V2(self):  # noqa: N802
        found = establish(replace(find("coordinator"), build=broken_coordinators.serves_the_last))
        assert [finding.holds for finding in found.findings.values()] == [True, None, False]
        assert "others enter again and again" in found.violation

    def test_random_runs_tell_the_same(self):
        served, stuck = (
            establish(replace(find(name), build=build), most_states=1)
            for name, build in (
                ("coordinator", broken_coordinators.ignores_one),
                ("ricart-agrawala", broken.always_defers),
            )
        )
        assert served.how == stuck.how == "simulated, 1 seed"
        assert [finding.holds for finding in served.findings.values()] == [None, None, False]
        assert [finding.holds for finding in stuck.findings.values()] == [None, False, False]

    def test_a_deadlock_that_is_allowed_proves_nothing_about_what_lies_behind_it(self):
        """So safety is left to random runs."""
        entry = find("ricart-agrawala")
        claims = replace(entry.claims, deadlock_free=False, starvation_free=False)
        found = establish(replace(entry, build=broken.always_defers, claims=claims))
        assert found.findings["S1"].how == "simulated, 40 seeds"
        assert found.violation is None


class TestUtilisation:
    def test_a_light_load_is_carried_and_a_heavy_one_as_far_as_entries_can_follow_each_other(self):
        shares = {each.offered: each.share for each in utilisation(find("ricart-agrawala"), 8)}
        assert shares[0.1] == pytest.approx(0.1, abs=0.02)
        assert shares[2.0] == pytest.approx(5 / (5 + 1), abs=0.02), "5 inside, 1 until the next is"

    def test_lin_s_falls_when_clients_are_in_each_other_s_way(self):
        """The slides: "it gets hard to have a majority, and the use of the resource falls"."""
        shares = {each.offered: each.share for each in utilisation(find("voting").set("doublings=1"), 32)}
        assert shares[2.0] < 0.8 * shares[0.5]


@pytest.fixture(scope="module")
def compared():
    return compare(subjects(["coordinator", "token-ring"]), (3, 6))


class TestTheWhole:
    def test_takes_every_algorithm_for_mutual_exclusion(self):
        names = {subject.name for subject in everybody()}
        assert {"coordinator", "ricart-agrawala", "token-ring", "voting", "ordered-voting"} <= names
        assert names == {entry.name for entry in ENTRIES if not entry.claims.elects and not entry.claims.timed}

    def test_has_everything_about_each(self, compared):
        assert [each.subject.name for each in compared] == ["coordinator", "token-ring"]
        for each in compared:
            assert [measures.n for measures in each.measures] == [3, 6]
            assert {use.n for use in each.utilisation} == {6}
            assert list(each.violations) == []

    def test_depends_on_the_seed_and_not_on_who_does_the_work(self, compared):
        with ThreadPoolExecutor(2) as executor:
            assert compare(subjects(["coordinator", "token-ring"]), (3, 6), executor=executor) == compared
        assert compare(subjects(["coordinator", "token-ring"]), (3, 6), seed=1) != compared

    def test_says_what_has_been_done(self):
        told = []
        compare(subjects(["coordinator"]), (3,), listener=lambda title, share: told.append((title, share)))
        assert ("coordinator, n=3", 2 / 3) in told
        assert told[-1][1] == 1

    def test_is_plain_data(self, compared):
        told = json.loads(json.dumps([each.as_dict() for each in compared], allow_nan=False))
        assert told[1]["measured"][0]["claimed"]["messages"] == {"low": 1, "high": None}
        assert told[0]["properties"]["findings"]["S1"]["holds"]

    def test_is_a_flat_table_too(self, compared):
        rows = [row for each in compared for row in each.rows()]
        assert [(row["protocol"], row["n"]) for row in rows] == [
            ("coordinator", 3),
            ("coordinator", 6),
            ("token-ring", 3),
            ("token-ring", 6),
        ]
        assert rows[0]["messages_saturated"] == 3
        assert rows[1]["share_at_load_0.1"] == pytest.approx(0.1, abs=0.02)

    @pytest.mark.parametrize(
        ("build", "told"),
        [(broken.chatters, "in turn: an entry took 7 messages on average"), (broken.never_defers, "inside together")],
    )
    def test_tells_what_contradicts_the_claims(self, build, told):
        entry = replace(find("ricart-agrawala"), build=build)
        whole = Compared(Subject("ricart-agrawala"), (measure(entry, 4),), establish(find("coordinator")), ())
        assert any(told in text for text in whole.violations)

    @pytest.mark.parametrize(
        ("names", "settings", "told"),
        [
            (["lamprt"], [], "did you mean 'lamport'"),
            (["quorum-lease"], [], "clocks and stores"),
            ([], ["m=3"], "name them"),
            (["coordinator"], ["m=3"], "no setting 'm'"),
        ],
    )
    def test_refuses_what_cannot_be_compared(self, names, settings, told):
        with pytest.raises(UsageError, match=told):
            subjects(names, settings)

    def test_refuses_too_few_nodes_before_it_begins(self):
        with pytest.raises(UsageError, match="at least 3"):
            compare(subjects(["ordered-voting"]), (2, 64))


class TestElections:
    @pytest.mark.parametrize(("n", "best", "worst"), [(4, 3, 11), (8, 7, 55), (16, 15, 239), (64, 63, 4031)])
    def test_bully_costs_what_the_formula_says_best_and_worst(self, n, best, worst):
        assert [elect(BULLY, n, rank).messages for rank in (n - 1, 1, None)] == [best, worst, worst]

    def test_bully_costs_what_the_formula_says_for_every_rank(self):
        for rank in range(1, 12):
            cost = elect(BULLY, 12, rank)
            assert cost.messages == cost.predicted == (12 - rank) ** 2 + 12 - 2

    @pytest.mark.parametrize(("n", "rank", "kinds"), [(8, 5, (6, 3, 6)), (4, 2, (3, 1, 2))])
    def test_the_slides_example_and_their_exercise(self, n, rank, kinds):
        by_kind = elect(BULLY, n, rank).by_kind
        assert (by_kind["election"], by_kind["ok"], by_kind["coordinator"]) == kinds

    def test_the_ring_takes_2_for_each_that_lives_whoever_notices_and_two_attempts_for_the_dead(self):
        for rank in (1, 4, 7):
            cost = elect(RING, 8, rank)
            assert (cost.predicted, cost.messages - cost.to_the_dead, cost.to_the_dead) == (14, 14, 2)
        assert elect(RING, 8, None).messages == 7 * 16

    def test_end_with_the_highest_that_lives(self):
        for entry in (BULLY, RING):
            for rank in (1, 5, None):
                cost = elect(entry, 6, rank)
                assert (cost.leader, cost.violation) == (4, None)

    def test_the_formula_by_rank_is_the_algorithm_s_own_or_the_least_it_claims(self):
        assert (by_rank(BULLY).text, by_rank(RING).text) == ("(n-d)**2+n-2", "2*(n-1)")

    def test_ranks_are_the_lowest_the_highest_that_lives_and_some_between(self):
        assert ranks(4) == (1, 2, 3)
        assert ranks(64) == (1, 2, 4, 8, 16, 32, 48, 63)

    def test_are_not_algorithms_for_mutual_exclusion(self):
        with pytest.raises(UsageError, match="is no election"):
            elections(["coordinator"])
