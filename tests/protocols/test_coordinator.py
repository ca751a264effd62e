"""The centralised algorithm with several resources and with NOK. What holds for one resource stands with the catalogue
and the checker's state counts."""

from dataclasses import replace

import pytest

from trinco.check.model import Model
from trinco.check.run import check
from trinco.check.search import Verdict
from trinco.check.standard import model_of
from trinco.core.claims import Network
from trinco.core.context import Context
from trinco.core.errors import UsageError
from trinco.core.message import Codec, Message
from trinco.core.neighbours import NoNeighboursInside
from trinco.protocols.catalogue import Entry, find
from trinco.protocols.coordinator import (
    Client,
    Coordinator,
    CoordinatorSystem,
    Grant,
    Nok,
    Release,
    Request,
    SharedCoordinator,
    system,
)
from trinco.sim.laws import Exponential, Uniform
from trinco.sim.links import Links
from trinco.sim.metrics import Metrics
from trinco.sim.scenario import Scenario
from trinco.sim.simulation import Result, run
from trinco.sim.swarm import Swarm
from trinco.sim.workload import Closed, Scripted, saturated

TWO = CoordinatorSystem(("printer", "scanner"))
NOK = CoordinatorSystem(says_nok=True)
BOTH = CoordinatorSystem(("printer", "scanner"), says_nok=True)
OUT_OF_ORDER = Links(Uniform(0.1, 20.0), ordered=False)


def scenario(build: CoordinatorSystem, n: int, **options: object) -> Scenario:
    return Scenario(protocol="coordinator", build=build, claims=build.claims, n=n, **options)  # type: ignore[arg-type]


def scripted(build: CoordinatorSystem, *asks: tuple[int, float, float]) -> Result:
    return run(scenario(build, 5, workload=Scripted(asks)))


def measured(build: CoordinatorSystem, *asks: tuple[int, float, float]) -> Metrics:
    result = scripted(build, *asks)
    assert result.violation is None
    return result.metrics


def waits(build: CoordinatorSystem, *asks: tuple[int, float, float]) -> float:
    spread = measured(build, *asks).waiting
    assert spread is not None
    return spread.max


def settled(*settings: str) -> Entry:
    return find("coordinator").set(*settings)


# Several resources


def test_one_resource_is_what_there_is_unless_more_are_named() -> None:
    assert list(system(3)) == [Coordinator(), Client(coordinator=0), Client(coordinator=0)]
    assert list(TWO(4)) == [SharedCoordinator(), Client(0, "scanner"), Client(0, "printer"), Client(0, "scanner")]


def test_who_wants_another_resource_does_not_wait() -> None:
    """Clients 1 and 3 want the scanner, client 2 the printer."""
    assert waits(TWO, (1, 0.0, 50.0), (2, 1.0, 1.0)) == 2.0
    assert waits(TWO, (1, 0.0, 50.0), (3, 1.0, 1.0)) == 53.0


def test_a_resource_that_nobody_wants_any_more_is_forgotten() -> None:
    result = scripted(TWO, (1, 0.0, 1.0), (2, 0.0, 1.0), (1, 50.0, 1.0))
    assert result.recording is not None
    used = [event.state["used"] for event in result.recording.events() if "used" in event.state]
    assert used[0] == ()
    assert (("printer", 2, ()), ("scanner", 1, ())) in used
    assert used[-2:] == [(), (("scanner", 1, ()),)]


def test_two_may_be_inside_for_two_resources_and_the_monitor_sees_two_for_one() -> None:
    assert TWO.claims.k.high(**TWO.letters(5)) == 2

    class Generous(SharedCoordinator):
        __slots__ = ()

        def on_message(self, ctx: Context, source: int, message: Message) -> None:
            if isinstance(message, Request):
                ctx.send(source, Grant(message.resource))

    class Open(CoordinatorSystem):
        def __call__(self, n: int) -> list:  # type: ignore[type-arg]
            return [Generous(), *CoordinatorSystem.__call__(self, n)[1:]]

    violation = scripted(Open(TWO.resources), (1, 0.0, 5.0), (3, 0.0, 5.0)).violation
    assert violation is not None
    assert violation.text == "p3 is inside together with its neighbour p1"
    assert scripted(Open(TWO.resources), (1, 0.0, 5.0), (2, 0.0, 5.0)).violation is None


@pytest.mark.parametrize("rounds", [1, 2, None])
def test_resources_know_nothing_of_each_other(rounds: int | None) -> None:
    """The states of two resources with two clients each are all pairs of states of one resource with two clients."""
    alone = check(model_of(settled(), n=3, rounds=rounds, reductions=False))
    shared = check(model_of(settled("resources=printer,scanner"), n=5, rounds=rounds, reductions=False))
    assert shared.verdict is Verdict.HOLDS
    assert shared.liveness
    assert shared.progress.states == alone.progress.states**2 == {1: 33, 2: 141, None: 36}[rounds] ** 2


@pytest.mark.parametrize("build", [TWO, BOTH], ids=["plain", "nok"])
def test_no_run_lets_two_in_for_one_resource(build: CoordinatorSystem) -> None:
    (monitor,) = build.monitors(4)
    assert monitor == NoNeighboursInside((0, 0b1000, 0, 0b0010))
    model = Model(nodes=build(4), k=2, network=Network.UNORDERED, inputs={"acquire": 2}, monitors=[monitor])
    result = check(replace(model, sometimes={"both resources are held": lambda view: len(view.believers()) == 2}))
    assert (result.verdict, result.liveness) == (Verdict.HOLDS, True)


def test_only_clients_of_the_same_resource_are_interchangeable() -> None:
    assert TWO.interchangeable(6) == [frozenset({2, 4}), frozenset({1, 3, 5})]
    assert system.interchangeable(4) == [frozenset({1, 2, 3})]


def test_with_the_clients_of_each_resource_merged_there_are_fewer_states_of_the_same_kinds() -> None:
    """73 of one resource with two clients, two rounds."""
    entry = settled("resources=printer,scanner")
    assert check(model_of(settled(), n=3, rounds=2, symmetry=True)).progress.states == 73
    assert check(model_of(entry, n=5, rounds=2, symmetry=True)).progress.states == 73**2


@pytest.mark.parametrize("resources", [(), ("printer", "printer")])
def test_resources_need_names_of_their_own(resources: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="a name of its own"):
        CoordinatorSystem(resources)


def test_messages_carry_the_resource_and_do_not_mention_the_only_one() -> None:
    codec = Codec(Request, Grant, Nok, Release)
    for message in (Request("printer"), Grant("printer"), Nok("printer"), Release("printer"), Request()):
        assert codec.decode(codec.encode(message)) == message
    assert b"printer" in codec.encode(Request("printer"))
    assert b"resource" not in codec.encode(Request())


# NOK


@pytest.mark.parametrize("n", [4, 8, 16, 32, 64])
def test_the_nok_is_the_fourth_message_of_whoever_must_wait(n: int) -> None:
    """ "Ou retorna uma mensagem NOK indicando que o processo não tem permissão." Only the first does not wait."""
    result = run(scenario(NOK, n, workload=saturated(3 * n)))
    assert result.violation is None
    assert sorted(result.metrics.costs) == [3] + [4] * (3 * n - 1)
    assert result.metrics.messages_by_kind["nok"] == 3 * n - 1


def test_who_need_not_wait_gets_no_nok() -> None:
    assert measured(NOK, (1, 0.0, 1.0), (2, 50.0, 1.0)).messages_by_kind == {"grant": 2, "release": 2, "request": 2}


def test_who_must_wait_is_told_at_once() -> None:
    result = scripted(NOK, (1, 0.0, 50.0), (2, 10.0, 1.0))
    assert result.recording is not None
    told = [event.at for event in result.recording.events() if isinstance(event.message, Nok) and event.node == 2]
    assert told == [12.0]


@pytest.mark.parametrize(("n", "rounds", "states"), [(3, 2, 464), (4, 1, 423), (4, 2, 12_426)])
def test_nok_is_safe_and_live_however_late_it_comes(n: int, rounds: int, states: int) -> None:
    result = check(model_of(settled("says_nok=yes"), n=n, rounds=rounds, reductions=False))
    assert (result.verdict, result.liveness) == (Verdict.HOLDS, True)
    assert result.progress.states == states


@pytest.mark.parametrize("rounds", [2, None])
def test_without_those_that_are_ignored_there_are_as_many_states_as_without_nok(rounds: int | None) -> None:
    plain, told = (check(model_of(each, n=4, rounds=rounds)) for each in (settled(), settled("says_nok=yes")))
    assert told.verdict is Verdict.HOLDS
    assert told.progress.states == plain.progress.states == {2: 1_505, None: 182}[rounds]


class TakesNokForAnAnswer(Client):
    """Takes whatever the coordinator says for a grant."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        ctx.grant()


def test_a_client_that_takes_a_nok_for_a_grant_is_caught() -> None:
    nodes = [NOK(1)[0], TakesNokForAnAnswer(0), TakesNokForAnAnswer(0)]
    violation = check(Model(nodes=nodes, network=Network.UNORDERED, reductions=False)).violation
    assert violation is not None
    assert violation.kind == "safety"


class GivesUpAtNok(Client):
    """Goes away when it is told to wait, and does not say so."""

    __slots__ = ()

    def on_message(self, ctx: Context, source: int, message: Message) -> None:
        if isinstance(message, Nok):
            ctx.refuse("somebody is inside")
        else:
            Client.on_message(self, ctx, source, message)


def test_a_client_that_goes_away_at_a_nok_is_granted_what_it_no_longer_waits_for() -> None:
    nodes = [NOK(1)[0], GivesUpAtNok(0), GivesUpAtNok(0)]
    violation = check(Model(nodes=nodes, network=Network.UNORDERED, reductions=False)).violation
    assert violation is not None
    assert violation.kind == "contract"


@pytest.mark.parametrize("build", [TWO, NOK, BOTH], ids=["two resources", "nok", "both"])
@pytest.mark.parametrize("workload", [saturated(24), Closed(24, think=Exponential(60.0))], ids=["saturated", "light"])
def test_random_runs_keep_to_the_claims(build: CoordinatorSystem, workload: Closed) -> None:
    swarm = Swarm(scenario(build, 6, workload=workload, links=OUT_OF_ORDER))
    swarm.run(range(200))
    assert (swarm.violations, swarm.done, swarm.unfinished) == ([], 200, 0)


def test_no_entry_costs_more_than_claimed_however_messages_overtake() -> None:
    for seed in range(20):
        result = run(scenario(BOTH, 7, workload=saturated(40), links=OUT_OF_ORDER, seed=seed))
        assert result.violation is None
        assert result.metrics.worst_messages_per_entry in (3, 4)
