"""What the paper says that a lease over clouds costs, beside what we count."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import pytest

from trinco.lab import lease_experiment
from trinco.lab.lease_costs import Counting, Progress, cost, one_of_each_provider, prices
from trinco.lab.lease_experiment import panels, reproduce, tables
from trinco.lab.lease_findings import TABLE_1, findings
from trinco.lab.lease_latency import COMPOSITES, SERVICES
from trinco.lab.lease_measures import CROWDED, Extent, Kept, Measured, Mixed, Phased
from trinco.lab.lease_upkeep import RELEASE, RELEASE_RENEWED, RENEW, upkeep
from trinco.lab.reproduction import EXPERIMENTS, Verdict

SMALL = Extent(acquisitions=60, samples=400, laws=("constant", "exponential"), clients=(1, 2, 5), seeds=1)


@pytest.fixture(scope="module")
def measured() -> Measured:
    return Measured(SMALL, None, None)


def altered(measured: Measured, changes: Mapping[Any, Any]) -> Measured:
    other = copy(measured)
    other.outcomes = {**measured.outcomes, **changes}
    return other


def verdict(measured: Measured, words: str) -> Verdict:
    (found,) = [finding.verdict for finding in findings(measured) if words in finding.claim]
    return found


class TestPrices:
    def test_say_which_edition_they_are_and_where_they_are_from(self) -> None:
        found = prices()
        assert (found.version, found.date, found.dollars_for_four_machines_a_month) == (1, "2015", 1200)
        assert "table 1" in found.source
        assert found.services.keys() == SERVICES.keys() == TABLE_1.keys()

    @pytest.mark.parametrize(
        ("service", "accesses", "micro_dollars"),
        [
            ("S3", 3, 15),
            ("GS", 3, 30),
            ("AS", 3, 0.108),
            ("RS", 3, 8.64),
            ("AQ", 3, 0.15),
            ("RQ", 3, 30.144),
            ("DDB", 2, 0),
            ("GDS", 4, 1.2),
        ],
    )
    def test_times_the_accesses_that_are_made_are_the_costs_of_table_1(
        self, service: str, accesses: int, micro_dollars: float
    ) -> None:
        counted = Counting((service,)).do()
        assert sum(counted[0].values()) == accesses
        assert cost((service,), counted) == pytest.approx(micro_dollars)

    def test_an_access_that_has_no_price_is_not_free(self) -> None:
        with pytest.raises(KeyError):
            prices().services["S3"].of({"get": 1})

    @pytest.mark.parametrize("members", [*COMPOSITES.values(), ("S3", "GDS", "AQ", "RS")])
    def test_a_composite_pays_at_all_its_services_and_not_at_a_quorum(self, members: tuple[str, ...]) -> None:
        alone = [cost((member,), Counting((member,)).do()) for member in members]
        assert cost(members, Counting(members).do()) == pytest.approx(sum(alone))

    def test_four_services_of_four_providers_never_fail_together(self) -> None:
        mixes = one_of_each_provider()
        assert len(set(mixes)) == 16
        for members in mixes:
            assert len({prices().services[member].provider for member in members}) == 4
        assert set(COMPOSITES["TR"]) not in [set(members) for members in mixes], "two of its four are of one provider"


@pytest.mark.parametrize(
    ("kind", "sure"), [("object", False), ("queue", True), ("conditional", True), ("transactional", True)]
)
def test_of_two_that_try_one_succeeds_but_on_an_object_store(kind: str, sure: bool) -> None:
    assert Progress(kind).do() is sure


class TestFindings:
    def test_say_what_is_left_of_each_claim(self, measured: Measured) -> None:
        assert [finding.verdict.value for finding in findings(measured)] == [
            "holds",
            "holds only if",
            "holds",
            "holds",
            "holds only if",
            "holds only if",
            "holds",
            "holds only if",
            "holds only if",
            "holds only if",
            "not reproduced",
            "holds only if",
            "holds only if",
            "holds",
            "not reproduced",
        ]

    def test_stand_beside_our_numbers(self, measured: Measured) -> None:
        ours = {finding.claim: finding.ours for finding in findings(measured)}
        assert ours["table 1: what it costs, in micro-dollars"] == "15, 30, 0.108, 8.64, 0.15, 30.144, 1.2"
        assert ours["an acquire over four services, in micro-dollars"].endswith("DDB+GS+AQ+RS 38.79")
        assert ours["cheaper than four machines that run a lock service"].startswith("AR: up to 22.3 million")

    @pytest.mark.parametrize(
        ("changes", "words", "expected"),
        [
            ({Counting(("GDS",)): ({"begin": 1, "read": 2, "write": 1, "commit": 1},)}, "accesses", Verdict.REFUTED),
            (
                {Counting(("GDS",)): ({"begin": 1, "read": 2, "write": 1, "commit": 1},)},
                "costs",
                Verdict.NOT_REPRODUCED,
            ),
            ({Progress("object"): True}, "one is sure to succeed", Verdict.REFUTED),
        ],
    )
    def test_would_be_others_if_it_had_come_out_otherwise(
        self, measured: Measured, changes: Mapping[Any, Any], words: str, expected: Verdict
    ) -> None:
        assert verdict(altered(measured, changes), words) is expected

    def test_see_latencies_in_another_order(self, measured: Measured) -> None:
        law = SMALL.laws[0]
        row = measured.outcomes[Mixed(law, SMALL.acquisitions)]
        slow = {**row, "AR/NAR": 0.9, "latency": {**row["latency"], "TS": 9.0, "NAR": 0.1}}
        other = altered(measured, {Mixed(law, SMALL.acquisitions): slow})
        for words in ("four object stores", "SCFS", "Datastore"):
            assert verdict(measured, words) is Verdict.ONLY_IF
            assert verdict(other, words) is Verdict.NOT_REPRODUCED

    def test_see_a_depsky_that_takes_twice_as_long(self, measured: Measured) -> None:
        twice = [{**each, "ratio": 2.0} for each in measured.depsky["simulated"]]
        piece = Phased(SMALL.acquisitions, SMALL.samples, SMALL.laws)
        other = altered(measured, {piece: {**measured.depsky, "simulated": twice}})
        assert verdict(other, "DepSky takes twice") is Verdict.HOLDS

    def test_see_renewals_and_releases_in_another_order(self, measured: Measured) -> None:
        piece, words = Kept(SMALL.laws[0], SMALL.acquisitions), "renewing and releasing"
        times = measured.outcomes[piece]
        assert verdict(measured, words) is Verdict.ONLY_IF
        for what, name in ((RENEW, "TR"), (RELEASE_RENEWED, "NAR"), (RELEASE, "TD")):
            slow = {**times, what: {**times[what], name: 9.0}}
            assert verdict(altered(measured, {piece: slow}), words) is Verdict.NOT_REPRODUCED

    def test_see_waits_that_grow_linearly_and_bases_that_do_not_cope(self, measured: Measured) -> None:
        linear = {measured.crowd(name, clients): float(clients) for name in CROWDED for clients in SMALL.clients}
        other = altered(measured, linear)
        assert verdict(other, "grows with their number") is Verdict.HOLDS
        assert verdict(other, "cope better") is Verdict.NOT_REPRODUCED


def test_with_messages_that_all_take_as_long_renewing_and_releasing_take_the_third_of_their_accesses() -> None:
    """An object store lists, writes, lists and deletes to renew, and deletes to release, once renewed after another
    look; a transaction takes four accesses for either. The third fastest is GS of AR, and Datastore of NAR."""
    times = upkeep("constant", 3)
    assert times[RENEW]["AR"] == pytest.approx(4 * 0.350, abs=1e-6)
    assert times[RENEW]["NAR"] == pytest.approx(4 * 0.150, abs=1e-6)
    assert times[RELEASE]["AR"] == times[RELEASE]["TD"] == pytest.approx(0.350, abs=1e-6)
    assert times[RELEASE]["NAR"] == pytest.approx(4 * 0.150, abs=1e-6)
    assert times[RELEASE_RENEWED]["AR"] == pytest.approx(2 * 0.350, abs=1e-6)


class TestWhatIsShown:
    def test_no_two_columns_have_the_same_heading_and_no_row_is_short(self, measured: Measured) -> None:
        for table in tables(measured):
            assert len(set(table.headings)) == len(table.headings)
            assert {len(row) for row in table.rows} == {len(table.headings)}

    def test_table_1_has_every_service_with_the_papers_figure_beside_ours(self, measured: Measured) -> None:
        shown = {row[0]: row[1:] for row in next(tables(measured)).rows}
        assert len(shown) == 8
        assert shown["Google Datastore (GDS)"] == (
            "4", "4", "1 begin, 1 read, 1 write, 1 commit", "1.2", "1.2", "deadlock", "deadlock"
        )  # fmt: skip
        assert shown["Amazon DynamoDB (DDB)"][3:5] == ("subscription", "subscription")

    def test_two_pictures_have_every_lease_and_the_machines(self, measured: Measured) -> None:
        crowds, dollars = panels(measured)
        assert [curve.label for curve in crowds.curves] == list(CROWDED)
        assert [curve.measured for curve in dollars.curves] == [True, True, False]


def test_it_is_called_leases_and_tells_of_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    assert EXPERIMENTS["leases"] == lease_experiment.__name__
    tiny = replace(SMALL, acquisitions=5, samples=20, laws=("constant",), clients=(1, 2))
    monkeypatch.setattr(lease_experiment, "QUICK", tiny)
    told: list[tuple[str, float]] = []
    made = reproduce(None, lambda title, share: told.append((title, share)), quick=True)
    assert told[-1][1] == 1.0
    assert "latency, constant" in {title for title, _ in told}
    assert len(made.findings) == 15
