"""What ``trinco reproduce bakery`` finds: the numbers of Bessani, Fraga & Lung 2005, sentence by sentence."""

from copy import copy
from dataclasses import replace

import pytest

from trinco.lab import bakery_experiment
from trinco.lab.bakery_costs import (
    ALGORITHM2,
    BROADCAST,
    FIRST,
    ONE_ROUND,
    OPTIMISED,
    VARIANTS,
    Alone,
    Certifying,
    Contended,
    Passing,
    servers_for,
)
from trinco.lab.bakery_experiment import QUICK, panels, reproduce, tables
from trinco.lab.bakery_findings import findings
from trinco.lab.bakery_measures import PRINTED, Measured
from trinco.lab.bakery_silence import Exhibited, Slowly, WithoutHolder, WithoutServers
from trinco.lab.reproduction import EXPERIMENTS, Verdict

SMALL = replace(QUICK, faults=(1, 2, 3), crowds=(1, 2, 4), rounds=5, passing={OPTIMISED: (8, 40), ALGORITHM2: (8, 40)})

every_f = pytest.mark.parametrize("f", [1, 2, 3])


class TestAnEntryThatNobodyElseWants:
    @every_f
    def test_takes_2_accesses_to_enter_and_1_to_leave_and_6_messages_a_server(self, f):
        """ "Apenas 2 acessos em casos sem concorrência"; "exit() é executado em apenas um acesso"."""
        cost, s = Alone(OPTIMISED, f).do(), servers_for(f)
        assert (cost.accesses, cost.messages, cost.between_servers) == ((2, 1), (4 * s, 2 * s), 0)
        assert sum(cost.messages) == {1: 24, 2: 42, 3: 60}[f]
        assert (cost.delay, cost.violation) == (4, None)

    @every_f
    def test_takes_6_accesses_in_algorithm_2_and_2_to_leave(self, f):
        """ "São necessários 6 acessos ao sistema de quóruns"."""
        cost, s = Alone(ALGORITHM2, f).do(), servers_for(f)
        assert (cost.accesses, cost.messages) == ((6, 2), (14 * s, 4 * s))
        assert sum(cost.messages) == {1: 72, 2: 126, 3: 180}[f]

    @every_f
    def test_saves_a_broadcast_for_each_read_of_a_union(self, f):
        """ "De pelo menos uma difusão a mais no sistema durante a leitura"."""
        apart = sum(Alone(ALGORITHM2, f).do().messages) - sum(Alone(ONE_ROUND, f).do().messages)
        assert apart == 2 * servers_for(f)

    @every_f
    def test_costs_as_many_messages_more_as_the_broadcast_of_3_3_takes(self, f):
        cost, s = Alone(BROADCAST, f).do(), servers_for(f)
        assert sum(cost.messages) == 6 * s + 6 * s * (s - 1) == {1: 96, 2: 294, 3: 600}[f]
        assert (cost.accesses, cost.between_servers, cost.delay) == ((2, 1), 6 * s * (s - 1), 8)


class TestACrowd:
    @pytest.mark.parametrize("k", [2, 4, 8, 16])
    def test_takes_at_most_3_accesses_and_45_messages_each(self, k):
        """ "3 acessos no caso geral"."""
        crowd = Contended(OPTIMISED, 1, k, rounds=5).do()
        assert crowd.accesses <= 3
        assert crowd.per_entry <= 45
        assert crowd.with_clients <= 8 * 4
        assert (crowd.entries, crowd.violation) == (5 * k, None)

    @pytest.mark.parametrize("k", [2, 4, 8])
    def test_takes_three_accesses_more_of_algorithm_2_for_each_other_client(self, k):
        """ "Sua complexidade de passos é O(k)"."""
        crowd = Contended(ALGORITHM2, 1, k, rounds=5).do()
        assert 6 + 2 * (k - 1) < crowd.accesses <= 6 + 3 * (k - 1)

    @pytest.mark.parametrize("k", [1, 2, 4, 8, 16])
    def test_lets_at_most_k_minus_1_in_before_a_ticket_that_q_servers_have(self, k):
        assert Contended(OPTIMISED, 1, k, rounds=5).do().overtaken_with_ticket == k - 1

    def test_of_one_costs_what_it_costs_alone(self):
        for variant in VARIANTS:
            alone = Alone(variant, 1).do()
            crowd = Contended(variant, 1, 1, rounds=5).do()
            assert (crowd.per_entry, crowd.accesses) == (sum(alone.messages), alone.accesses[0])

    @pytest.mark.parametrize("variant", [OPTIMISED, ALGORITHM2])
    def test_pays_for_who_is_there_and_not_for_who_was(self, variant):
        """ "O número de acessos ... é proporcional ao número de processos tentando executar ... concorrentemente"."""
        few, many = (Passing(variant, seen, 100).do() for seen in (8, 100))
        assert many.per_entry == pytest.approx(few.per_entry, rel=0.05)
        assert (few.violation, many.violation) == (None, None)


class TestCertificates:
    @every_f
    def test_have_q_signatures_and_f_plus_1_more_where_tickets_need_certificates(self, f):
        sizes, q = Certifying(f, k=3).do().of, 2 * f + 1
        signatures = {kind: size.signatures for kind, size in sizes.items()}
        assert signatures == {FIRST: q, "SET": q + f + 1, "LISTEN": f + 1, "EXIT": f + 1}
        assert all(size.length > 64 * size.signatures for size in sizes.values())

    def test_do_not_grow_with_the_crowd(self):
        assert Certifying(1, k=2).do().of == Certifying(1, k=12).do().of


class TestSilence:
    @every_f
    def test_of_f_servers_is_not_noticed_and_of_one_more_stops_everything(self, f):
        within, beyond = WithoutServers(f, f).do(), WithoutServers(f, f + 1).do()
        assert (within.entries, within.wait, within.violation) == (2, 4, None)
        assert (beyond.entries, beyond.wait) == (0, None)

    def test_of_who_is_inside_ends_with_its_lease(self):
        abandoned = WithoutHolder().do()
        assert 0 < abandoned.after <= abandoned.expected
        assert abandoned.entries == 2

    def test_that_was_none_bans_nobody_and_is_suspected_ever_less(self):
        """ "Estes clientes acabarão por conseguir executar o algoritmo completamente"."""
        doubted = Slowly(entries=800, seeds=1).do()
        assert (doubted.entries, doubted.unfinished, doubted.banned, doubted.violation) == (800, 0, 0, None)
        assert doubted.given_up > 0
        assert 0 < doubted.last_suspected < 400


@pytest.fixture(scope="module")
def measured():
    return Measured(SMALL, None, None)


def changed(measured, kind, **changes):
    """The same, had all pieces of a kind come to something else."""
    other = copy(measured)
    other.outcomes = {
        piece: replace(outcome, **changes) if isinstance(piece, kind) else outcome
        for piece, outcome in measured.outcomes.items()
    }
    return other


def verdict(measured, words):
    """Of the one claim that has these words in it."""
    (found,) = [finding for finding in findings(measured) if words in finding.claim]
    return found.verdict


class TestVerdicts:
    def test_say_what_is_left_of_each_claim(self, measured):
        holds, only_if = Verdict.HOLDS, Verdict.ONLY_IF
        assert [(finding.claim.partition(":")[0], finding.verdict) for finding in findings(measured)] == [
            ("section 2", only_if),
            ("section 2", holds),
            ("3.2", holds),
            ("3.2, 3.3", only_if),
            ("section 4", only_if),
            ("section 4", only_if),
            ("section 4, premise 1", holds),
            ("section 4", holds),
            ("section 4", holds),
            ("5.1", only_if),
            ("5.1", holds),
            ("5.1", holds),
            ("5.1", holds),
            ("5.1", only_if),
            ("5.1 with 3.3", Verdict.REFUTED),
            ("5.2", only_if),
            ("5.2", only_if),
            ("5.2", holds),
            ("5.3", only_if),
            ("5.3", only_if),
            ("5.3", holds),
        ]

    def test_stand_beside_our_numbers(self, measured):
        ours = {finding.claim: finding.ours for finding in findings(measured)}
        assert ours["5.1: messages of an entry, k=1"] == "6|U|: 24, 42, 60 for f=1, 2, 3"
        assert ours["5.1: algorithm 2 alone"] == "6 to enter, 2 to leave: 72, 126, 180 messages for f=1, 2, 3"
        assert ours["5.1: the optimised protocol alone"] == "2 and 1; 0 messages between servers"
        broadcast = ours["5.1 with 3.3: messages of an entry whose requests are broadcast among the servers"]
        assert broadcast.startswith("alone 6|U|^2: 96, 294, 600 for f=1, 2, 3; ")

    @pytest.mark.parametrize(
        ("kind", "changes", "words"),
        [
            (Alone, {"accesses": (3, 1)}, "the optimised protocol alone"),
            (Alone, {"accesses": (7, 2)}, "algorithm 2 alone"),
            (Alone, {"between_servers": 4}, "the optimised protocol alone"),
            (Alone, {"messages": (16, 9)}, "messages of an entry, k=1"),
            (Alone, {"messages": (16, 9)}, "one broadcast more"),
            (Contended, {"accesses": 3.5}, "the optimised protocol in general"),
            (Contended, {"accesses": 99.0}, "O(k) accesses"),
            (Contended, {"per_entry": 46.0}, "5.1: messages of an entry"),
            (Contended, {"overtaken_with_ticket": 9}, "starvation-freedom"),
            (Contended, {"violation": "p0 waits for ever"}, "starvation-freedom"),
            (Contended, {"violation": "p0 and p1 are inside"}, "no two correct clients inside"),
            (WithoutServers, {"wait": 99.0}, "fewer than a third"),
            (WithoutServers, {"entries": 1}, "fewer than a third"),
            (WithoutHolder, {"after": 1e6}, "premise 1"),
            (Slowly, {"unfinished": 1}, "stops erring"),
            (Slowly, {"last_suspected": 799}, "stops erring"),
            (Slowly, {"banned": 1}, "makes no mistakes"),
            (Exhibited, {"mended": False}, "are a quorum"),
            (Exhibited, {"mended": False}, "more than f servers"),
        ],
    )
    def test_would_be_refutations_if_it_had_come_out_otherwise(self, measured, kind, changes, words):
        other = changed(measured, kind, **changes)
        matching = [finding.verdict for finding in findings(other) if words in finding.claim]
        assert Verdict.REFUTED in matching

    def test_would_be_without_conditions_if_nothing_broke_as_printed(self, measured):
        sound = changed(measured, Exhibited, found=None)
        for words in ("are a quorum", "every read", "sets its number to 0", "more than f servers", "justify a ticket"):
            assert verdict(sound, words) is Verdict.HOLDS

    def test_see_a_cost_that_grows_with_those_who_came_by(self, measured):
        other = copy(measured)
        other.outcomes = {
            piece: replace(outcome, per_entry=float(piece.seen)) if isinstance(piece, Passing) else outcome
            for piece, outcome in measured.outcomes.items()
        }
        assert verdict(other, "of infinitely many") is Verdict.REFUTED

    def test_see_certificates_that_are_not_linear(self, measured):
        other = copy(measured)
        other.outcomes = {
            piece: replace(outcome, of={**outcome.of, "SET": replace(outcome.of["SET"], signatures=2**piece.f)})
            if isinstance(piece, Certifying)
            else outcome
            for piece, outcome in measured.outcomes.items()
        }
        assert verdict(other, "certificates are linear") is Verdict.REFUTED


class TestWhatIsShown:
    def test_no_two_columns_have_the_same_heading_and_no_row_is_short(self, measured):
        for table in tables(measured):
            assert len(set(table.headings)) == len(table.headings)
            assert {len(row) for row in table.rows} == {len(table.headings)}

    def test_every_rule_that_fails_as_printed_has_a_row(self, measured):
        *_, printed = tables(measured)
        assert [f"bakery/{row[0]}" for row in printed.rows] == list(PRINTED)
        assert {row[-1] for row in printed.rows} == {"yes"}

    def test_three_pictures_have_every_protocol(self, measured):
        messages, waits, by_servers = panels(measured)
        assert [curve.label for curve in messages.curves] == [curve.label for curve in waits.curves] == list(VARIANTS)
        assert messages.curves[0].xs == (1, 2, 4)
        assert messages.curves[0].ys[0] == 24
        assert by_servers.curves[1].ys == (96, 294, 600)
        assert by_servers.curves[0].xs == (4, 7, 10)


def test_it_is_called_bakery_and_tells_of_every_piece(monkeypatch):
    assert EXPERIMENTS["bakery"] == bakery_experiment.__name__
    passing = {OPTIMISED: (8,), ALGORITHM2: (8,)}
    tiny = replace(SMALL, faults=(1, 2), crowds=(1, 2), crowd_by_f=2, rounds=3, passing=passing, seeds=1, long=(40, 1))
    monkeypatch.setattr(bakery_experiment, "QUICK", tiny)
    told = []
    made = reproduce(None, lambda title, share: told.append((title, share)), quick=True)
    assert told[-1][1] == 1.0
    assert "exhibit bakery/F1" in {title for title, _ in told}
    assert len(made.findings) == 21
