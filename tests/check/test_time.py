"""Time is relative: now is always zero, a tick lowers every instant, and nothing needs a horizon."""

from collections.abc import Callable

import pytest

from tests.check.examples.clocks import Entry, Holder, Hourglass, Shelf, SlimEntry, Stopwatch, StructEntry
from tests.check.examples.lease import CountsFromTheReturn, Renewing, Tenant, system
from trinco.check.model import Clocks, Model
from trinco.check.replay import replay
from trinco.check.run import Result, check
from trinco.check.search import Verdict
from trinco.check.view import View
from trinco.core.errors import ContractBroken, UsageError

TENANTS = frozenset({1, 2})


def lease(kind: type[Tenant] = Tenant, *, ttl: int = 2, margin: int = 0, **options: object) -> Model:
    return Model(nodes=system(kind, ttl=ttl, margin=margin), **({"clocks": Clocks()} | options))  # type: ignore[arg-type]


def kind_of_violation(result: Result) -> str | None:
    return result.violation.kind if result.violation else None


def test_a_lease_counted_from_before_the_request_is_safe() -> None:
    result = check(lease(inputs={"acquire": 2}))
    assert result.verdict is Verdict.HOLDS
    assert result.liveness


def test_a_lease_counted_from_the_return_is_believed_after_the_store_gave_it_away() -> None:
    result = check(lease(CountsFromTheReturn))
    assert kind_of_violation(result) == "safety"
    assert result.counterexample is not None
    assert "time passes" in result.counterexample.script


def test_without_clocks_no_time_passes_and_a_lease_never_runs_out() -> None:
    assert check(lease(CountsFromTheReturn, clocks=None)).verdict is Verdict.HOLDS


def test_time_has_no_horizon_and_still_the_states_are_finite() -> None:
    """Tenants ask for ever. However late something happens, it is a state that was already there."""
    result = check(lease(inputs={"acquire": None}))
    assert result.verdict is Verdict.HOLDS
    assert result.progress.states == 640


@pytest.mark.parametrize(("margin", "kind"), [(0, "safety"), (1, "safety"), (2, None)])
def test_against_clocks_that_drift_by_one_the_margin_must_be_two(margin: int, kind: str | None) -> None:
    result = check(lease(ttl=4, margin=margin, clocks=Clocks(drifting=TENANTS, window=1)))
    assert kind_of_violation(result) == kind


@pytest.mark.parametrize(("margin", "kind"), [(0, "safety"), (2, "safety"), (3, "safety"), (4, None)])
def test_against_clocks_that_drift_by_two_the_margin_must_be_four(margin: int, kind: str | None) -> None:
    result = check(lease(ttl=6, margin=margin, clocks=Clocks(drifting=TENANTS, window=2)))
    assert kind_of_violation(result) == kind


def test_drift_without_a_window_is_refused_since_no_clock_could_move() -> None:
    with pytest.raises(UsageError):
        check(lease(CountsFromTheReturn, clocks=Clocks(drifting=TENANTS, window=0)))


def test_the_clocks_of_the_living_go_on_when_a_drifting_node_has_crashed() -> None:
    model = lease(ttl=4, clocks=Clocks(drifting=TENANTS, window=1), crashes=1)
    hours = ["p2 clock ticks", "time passes"] * 4
    assert replay(model, ["p1 acquire", "p0 receives ask(4) from p1", "p1 crashes", *hours]) is None


def remaining(ticks: int) -> Callable[[View], bool]:
    def holds(view: View) -> bool:
        until = view.local(0).until
        return until is not None and until.at == ticks

    return holds


def test_an_instant_counts_down_to_now_and_never_beyond() -> None:
    def beyond(view: View) -> bool:
        """an instant fell below zero"""
        until = view.local(0).until
        return until is not None and until.at < 0

    all_of_them = {f"{ticks} left": remaining(ticks) for ticks in range(5)}
    result = check(Model(nodes=[Holder()], clocks=Clocks(), sometimes=all_of_them, never=[beyond]))
    assert result.verdict is Verdict.HOLDS
    assert result.progress.states == 1 + 5 + 1  # idle; inside with 4 .. 0 ticks left; idle again


def test_who_is_inside_beyond_the_end_of_the_lease_no_longer_believes_it() -> None:
    def expired(view: View) -> bool:
        return remaining(0)(view) and view.believers() == ()

    def believes(view: View) -> bool:
        return remaining(1)(view) and view.believers() == (0,)

    model = Model(nodes=[Holder()], clocks=Clocks(), sometimes={"expired": expired, "believes": believes})
    assert check(model).verdict is Verdict.HOLDS


def test_a_tick_that_changes_nothing_is_no_step() -> None:
    result = check(Model(nodes=[Holder()], clocks=Clocks()))
    assert result.progress.transitions == 1 + 4 + 5  # asking; four ticks; leaving from each of five states


def test_how_long_ago_a_deadline_was_is_not_kept_and_asking_is_refused() -> None:
    with pytest.raises(ContractBroken, match="deadline <= now"):
        check(Model(nodes=[Hourglass()], clocks=Clocks(), inputs={"look": 1}))


@pytest.mark.parametrize("counts_on", [True, False])
def test_how_long_ago_something_was_is_not_kept_either(counts_on: bool) -> None:
    """It would never be two ticks ago, and the check would hold."""
    with pytest.raises(ContractBroken, match="keep a deadline"):
        check(Model(nodes=[Stopwatch(counts_on)], clocks=Clocks(), inputs={"look": 1}))


@pytest.mark.parametrize("kind", [Entry, SlimEntry, StructEntry])
def test_an_instant_inside_a_plain_value_counts_down_too(kind: type) -> None:
    expired = {"expired": lambda view: view.node(0).found_expired}
    result = check(Model(nodes=[Shelf(kind)], clocks=Clocks(), inputs={"look": 1}, sometimes=expired))
    assert result.verdict is Verdict.HOLDS


def test_a_tenant_may_renew_its_lease_while_it_is_inside() -> None:
    result = check(lease(Renewing, inputs={"acquire": 1, "renew": 1}))
    assert result.violation is None


def test_settling_leaves_fewer_states_and_the_same_verdict() -> None:
    settled, plain = check(lease(inputs={"acquire": 2})), check(lease(inputs={"acquire": 2}, reductions=False))
    assert (settled.verdict, plain.verdict) == (Verdict.HOLDS, Verdict.HOLDS)
    assert (settled.progress.states, plain.progress.states) == (1_988, 2_379)


def test_settling_hides_no_violation() -> None:
    kinds = {kind_of_violation(check(lease(CountsFromTheReturn, reductions=on))) for on in (True, False)}
    assert kinds == {"safety"}
