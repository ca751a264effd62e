"""What a model says must never, and must sometimes, be so."""

from tests.check.examples.waiting import Forlorn
from trinco.check.model import Model
from trinco.check.replay import replay
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.check.view import View
from trinco.core.context import INSIDE, WAITING
from trinco.protocols import coordinator
from trinco.protocols.catalogue import find


def clients(**properties: object) -> Model:
    return Model(nodes=coordinator.system(3), **properties)  # type: ignore[arg-type]


def both_wait(view: View) -> bool:
    """both clients wait"""
    return view.waiting() == (1, 2)


def overtaken(view: View) -> bool:
    return view.phase(1) is WAITING and view.phase(2) is INSIDE


def unheard_of(view: View) -> bool:
    return view.node(0).queue == (1, 1)


def test_what_must_never_be_is_found_by_the_shortest_way() -> None:
    result = check(clients(never=[both_wait]))
    assert result.violation is not None
    assert (result.violation.kind, result.violation.text) == ("never", "both clients wait")
    assert result.progress.depth == 2


def test_a_property_without_words_is_told_by_its_name() -> None:
    result = check(clients(never=[overtaken]))
    assert result.violation is not None
    assert result.violation.text == "overtaken"


def test_what_never_is_breaks_nothing() -> None:
    assert check(clients(never=[unheard_of])).verdict is Verdict.HOLDS


def test_a_property_sees_the_first_state_too() -> None:
    def idle(view: View) -> bool:
        """nobody waits"""
        return view.waiting() == ()

    result = check(clients(never=[idle]))
    assert result.violation is not None
    assert result.progress.depth == 0
    assert result.counterexample is not None
    assert result.counterexample.script == ()


def test_the_way_to_what_must_never_be_replays_to_it() -> None:
    model = clients(never=[both_wait])
    result = check(model)
    assert result.counterexample is not None
    assert replay(model, result.counterexample.script) == result.violation


def test_what_happens_sometimes_is_enough() -> None:
    assert check(clients(sometimes={"both wait": both_wait, "overtaken": overtaken})).verdict is Verdict.HOLDS


def test_a_run_in_which_the_wished_for_never_happens_proves_nothing() -> None:
    result = check(clients(sometimes={"both wait": both_wait, "asked twice": unheard_of}))
    assert result.verdict is Verdict.VIOLATED
    assert result.violation is not None
    assert (result.violation.kind, result.violation.text) == ("vacuous", "this never happened: asked twice")
    assert result.counterexample is None


def test_a_run_in_which_a_process_never_enters_proves_nothing() -> None:
    result = check(Model(nodes=[Forlorn(waits=False)], inputs={}))
    assert result.violation is not None
    assert (result.violation.kind, result.violation.text) == ("vacuous", "p0 never entered in any run")


def test_at_most_k_may_be_inside() -> None:
    nodes = [Forlorn(waits=False) for _ in range(3)]
    verdicts = [check(Model(nodes=nodes, k=k)).verdict for k in (1, 2, 3)]
    assert verdicts == [Verdict.VIOLATED, Verdict.VIOLATED, Verdict.HOLDS]


def test_a_view_can_be_changed_without_changing_the_state() -> None:
    def meddling(view: View) -> bool:
        """this property changes what it is shown"""
        view.node(0).queue = (1, 2, 1, 2)
        view.node(1).coordinator = 7
        return False

    expected = check(model_of(find("coordinator"), n=3)).progress.states
    assert check(clients(never=[meddling])).progress.states == expected
