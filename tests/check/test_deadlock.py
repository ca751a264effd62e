"""Deadlock: somebody waits, and nothing that must happen is left."""

from tests.check.examples.waiting import Forlorn, HopesForAChoice, Juggler
from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.core.claims import Network
from trinco.lab.exhibits.catalogue import find


def test_waiting_for_what_never_comes_is_a_deadlock() -> None:
    result = check(Model(nodes=[HopesForAChoice()]))
    assert result.violation is not None
    assert (result.violation.kind, result.violation.text) == ("deadlock", "p0 waits and nothing can move")
    assert result.progress.depth == 1


def test_that_somebody_else_could_still_ask_is_no_way_out() -> None:
    result = check(Model(nodes=[Forlorn(), Forlorn(waits=False)], k=2))
    assert result.violation is not None
    assert result.violation.kind == "deadlock"
    assert result.progress.depth == 1


def test_all_who_wait_are_named() -> None:
    result = check(find("slides/S-5").model())
    assert result.violation is not None
    assert result.violation.text == "p0 and p1 wait and nothing can move"


def test_an_end_in_which_nobody_waits_is_no_deadlock() -> None:
    assert check(Model(nodes=[Forlorn(waits=False)])).verdict is Verdict.HOLDS


def test_while_a_message_is_under_way_nothing_is_deadlocked() -> None:
    """The juggler never comes to rest: who waits beside it waits in a livelock, not in a deadlock."""
    result = check(Model(nodes=[HopesForAChoice(), Juggler()]))
    assert result.violation is not None
    assert result.violation.kind == "livelock"


def test_a_lost_request_is_found_only_where_messages_overtake_each_other() -> None:
    model = find("slides/S-1").model()
    assert model.network is Network.UNORDERED
    assert check(model).violation is not None
    ordered = Model(nodes=model.nodes, network=Network.FIFO, inputs=model.inputs)
    assert check(ordered).verdict is Verdict.HOLDS
